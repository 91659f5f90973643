//! House rules that no compiler checks, as tests over the files of the checkout.
//!
//! Each rule is a pure function from a file's path and text to complaints; the tests at the end apply it to every file
//! and to one bad example. Words that are forbidden are spelt in two halves here, so that this file passes too.

use std::path::{Component, Path, PathBuf};

/// Folders that hold no files of ours.
const NOT_OURS: [&str; 5] = [".git", ".data", "target", "node_modules", "__pycache__"];
/// The kinds of files people read, and that must therefore stay short.
const WRITTEN_BY_HAND: [&str; 8] = ["rs", "md", "toml", "sh", "py", "sql", "yml", "yaml"];
const LONGEST_FILE: usize = 1_000;
/// Pages that are made from the code, and as long as they have to be.
const MADE: &str = "docs/reference";

/// Unfinished or disabled work.
const UNFINISHED: [&str; 5] = [
    concat!("todo", "!("),
    concat!("unimple", "mented!("),
    concat!("#[ign", "ore"),
    concat!("FIX", "ME"),
    concat!("TO", "DO:"),
];
/// Where home directories and build machines' checkouts are.
const MACHINE_PATHS: [&str; 4] = [HOMES[0], HOMES[1], concat!("/ro", "ot/"), concat!("/wo", "rk/")];
/// The folders in which each user has one.
const HOMES: [&str; 2] = [concat!("/ho", "me/"), concat!("/Us", "ers/")];
/// Package registries and how to choose one: which registry is used is the reader's business, not the project's.
const REGISTRIES: [&str; 8] = [
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("artifac", "tory"),
    concat!("index", "-url"),
    concat!("replace", "-with"),
];
const CRATES_IO: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

/// A file of the checkout: its path from the root, and its text.
struct File {
    path: PathBuf,
    text: String,
}

impl File {
    fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }
}

fn first_line_says_what_lives_here(file: &File) -> Option<String> {
    let told = !file.has_extension("rs") || file.text.starts_with("//! ");
    (!told).then(|| "its first line is not a `//!` comment that says what lives here".to_owned())
}

fn is_short(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    let is_made = file.path.starts_with(MADE);
    let by_hand = !is_made && WRITTEN_BY_HAND.iter().any(|extension| file.has_extension(extension));
    (by_hand && lines > LONGEST_FILE).then(|| format!("it has {lines} lines; split it below {LONGEST_FILE}"))
}

fn is_finished(file: &File) -> Option<String> {
    if !file.has_extension("rs") {
        return None;
    }
    find_line(&file.text, |line| UNFINISHED.into_iter().find(|word| line.contains(word)))
}

fn names_no_machine_path(file: &File) -> Option<String> {
    find_line(&file.text, |line| MACHINE_PATHS.into_iter().find(|path| starts_a_path(line, path)))
}

/// Whether an absolute path into `folder` begins in the line: a bare folder, or one inside another path, is a mere example.
fn starts_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let is_of_a_name = |c: char| c.is_alphanumeric() || "._-".contains(c);
        let goes_on = line[..at].ends_with(|c: char| is_of_a_name(c) || "~)}>*/".contains(c));
        let rest = &line[at + folder.len()..];
        let after_name = rest.trim_start_matches(is_of_a_name);
        // A home in the password file's format is an example; a file in it is somebody's.
        let is_named = after_name.len() < rest.len();
        !goes_on && is_named && (!HOMES.contains(&folder) || after_name.starts_with('/'))
    })
}

fn names_no_registry(file: &File) -> Option<String> {
    if file.path == Path::new("Cargo.lock") {
        let foreign = |line: &str| line.starts_with("source = ") && !line.contains(CRATES_IO);
        return find_line(&file.text, |line| foreign(line).then_some("a source other than crates.io"));
    }
    find_line(&file.text, |line| REGISTRIES.into_iter().find(|host| line.contains(host)))
}

/// Links to files that are not there; `exists` answers for a path from the root.
fn links_lead_somewhere(file: &File, exists: impl Fn(&Path) -> bool) -> Option<String> {
    if !file.has_extension("md") {
        return None;
    }
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let mut in_code = false;
    find_line(&file.text, |line| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let prose = if in_code { String::new() } else { without_code(line) };
        let broken = links(&prose).into_iter().find(|link| {
            let target = link.split('#').next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            !outside && !exists(&normalise(&folder.join(target)))
        });
        broken.map(|link| format!("a link to {link}, which is not there"))
    })
}

/// The targets of `[text](target)` in a line.
fn links(line: &str) -> Vec<String> {
    let targets = line.split("](").skip(1);
    targets.filter_map(|rest| rest.split([')', ' ']).next()).map(str::to_owned).collect()
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The path without `.` and `..`, so that it can be compared with others from the root.
fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// The first line in which something is found, as a complaint with its number.
fn find_line<T: std::fmt::Display>(text: &str, mut find: impl FnMut(&str) -> Option<T>) -> Option<String> {
    text.lines().enumerate().find_map(|(index, line)| Some(format!("line {}: {}", index + 1, find(line)?)))
}

/// All text files of the checkout, in order.
fn files() -> Vec<File> {
    let mut found = Vec::new();
    collect(crate::root(), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(folder: &Path, found: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                collect(&path, found);
            }
        } else if let (true, Ok(text)) = (kind.is_file(), std::fs::read_to_string(&path)) {
            // What is not UTF-8 is data: recorded bytes, images.
            let path = path.strip_prefix(crate::root()).unwrap_or(&path).to_owned();
            found.push(File { path, text });
        }
    }
}

mod tests {
    use super::*;

    #[track_caller]
    fn no_file_breaks(rule: impl Fn(&File) -> Option<String>) {
        let complaints: Vec<String> =
            files().iter().filter_map(|file| Some(format!("{}: {}", file.path.display(), rule(file)?))).collect();
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn every_source_file_begins_by_saying_what_lives_there() {
        assert!(first_line_says_what_lives_here(&file("a.rs", "use std::fmt;")).is_some());
        assert!(first_line_says_what_lives_here(&file("a.rs", "//! Formats.\n")).is_none());
        no_file_breaks(first_line_says_what_lives_here);
    }

    #[test]
    fn no_file_is_longer_than_a_thousand_lines() {
        assert!(is_short(&file("a.md", &"x\n".repeat(1_001))).is_some());
        assert!(is_short(&file("recorded.json", &"x\n".repeat(1_001))).is_none());
        no_file_breaks(is_short);
    }

    #[test]
    fn nothing_is_left_unfinished_or_switched_off() {
        for word in UNFINISHED {
            assert_eq!(is_finished(&file("a.rs", &format!("\n  {word}"))), Some(format!("line 2: {word}")));
        }
        assert!(is_finished(&file("a.rs", "let todo = ignored;")).is_none());
        no_file_breaks(is_finished);
    }

    #[test]
    fn no_path_of_somebodys_machine_is_written_down() {
        for path in MACHINE_PATHS {
            assert!(names_no_machine_path(&file("a.md", &format!("see `{path}main/x`"))).is_some());
            assert!(names_no_machine_path(&file("a.md", &format!("under the prefix `{path}`"))).is_none());
            assert!(names_no_machine_path(&file("a.md", &format!("a/b{path}main/x"))).is_none());
        }
        assert!(names_no_machine_path(&file("a.rs", &format!("ann:x:1000:1000::{}ann:/bin/sh", HOMES[0]))).is_none());
        no_file_breaks(names_no_machine_path);
    }

    #[test]
    fn no_registry_is_chosen_for_the_reader() {
        for host in REGISTRIES {
            assert!(names_no_registry(&file("a.toml", &format!("x = \"{host}\""))).is_some());
        }
        assert!(names_no_registry(&file("Cargo.lock", "source = \"registry+https://example.org/index\"")).is_some());
        assert!(names_no_registry(&file("Cargo.lock", &format!("source = \"{CRATES_IO}\""))).is_none());
        no_file_breaks(names_no_registry);
    }

    #[test]
    fn relative_links_in_documents_lead_somewhere() {
        let exists = |path: &Path| path == Path::new("docs/there.md");
        let check = |text: &str| links_lead_somewhere(&file("docs/how-to/a.md", text), exists);
        assert_eq!(check("[a](../there.md#part) [b](https://example.org) [c](#here)"), None);
        assert_eq!(check("`[a](gone.md)`\n```\n[a](gone.md)\n```\n"), None);
        assert_eq!(check("\n[a](gone.md)"), Some("line 2: a link to gone.md, which is not there".into()));
        no_file_breaks(|file| links_lead_somewhere(file, |path| crate::root().join(path).exists()));
    }
}
