//! Reading and changing the text in files.

use super::super::call::Answer;
use super::super::command::Command;
use super::super::{Call, Failure, Function, Param};
use super::{content, diff, path, python_error, search, unexpected};
use futures_util::FutureExt;
use regex::bytes::{Captures, Regex, RegexBuilder};
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

const PATH: Param = Param::Required("path");
const LINES: &[Param] = &[PATH, Param::Rest("args"), Param::Keywords("kwargs")];

/// Python's `re.MULTILINE`, which is what Salt uses where nothing else is said.
const MULTILINE: i64 = 8;

/// Python's flags by number and names.
const FLAGS: [(i64, [&str; 2]); 4] =
    [(2, ["IGNORECASE", "I"]), (MULTILINE, ["MULTILINE", "M"]), (16, ["DOTALL", "S"]), (64, ["VERBOSE", "X"])];

pub(in super::super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "file.append",
        params: LINES,
        doc: "Add lines at the end of a file.\n\n\
              CLI Example:\n\n    saltern run '*' file.append /etc/motd 'one' 'two'\n",
        run: |call| call.blocking(append),
    },
    Function {
        name: "file.contains",
        params: &[PATH, Param::Required("text")],
        doc: "Tell whether a text is in a file.\n\n\
              CLI Example:\n\n    saltern run '*' file.contains /etc/hosts localhost\n",
        run: |call| call.blocking(contains),
    },
    Function {
        name: "file.contains_regex",
        params: &[PATH, Param::Required("regex"), Param::Optional("lchar", "''")],
        doc: "Tell whether a line of a file has something that fits a regular expression.\n\n\
              lchar\n    characters that are taken off the beginning of each line before\n\n\
              CLI Example:\n\n    saltern run '*' file.contains_regex /etc/crontab '^\\S+ root'\n",
        run: |call| call.blocking(contains_regex),
    },
    Function {
        name: "file.grep",
        params: &[PATH, Param::Required("pattern"), Param::Rest("args")],
        doc: "Let grep look for a pattern in files; options of grep can follow.\n\n\
              CLI Example:\n\n    saltern run '*' file.grep /etc/passwd nobody -- -i\n",
        run: |call| async move { grep(&call).await }.boxed(),
    },
    Function {
        name: "file.prepend",
        params: LINES,
        doc: "Add lines at the beginning of a file.\n\n\
              CLI Example:\n\n    saltern run '*' file.prepend /etc/motd 'one' 'two'\n",
        run: |call| call.blocking(prepend),
    },
    Function {
        name: "file.replace",
        params: &[
            PATH,
            Param::Required("pattern"),
            Param::Required("repl"),
            Param::Optional("count", "0"),
            Param::Optional("flags", "8"),
            Param::Optional("bufsize", "1"),
            Param::Optional("append_if_not_found", "False"),
            Param::Optional("prepend_if_not_found", "False"),
            Param::Optional("not_found_content", "None"),
            Param::Optional("backup", "'.bak'"),
            Param::Optional("dry_run", "False"),
            Param::Optional("search_only", "False"),
            Param::Optional("show_changes", "True"),
            Param::Optional("ignore_if_missing", "False"),
            Param::Optional("preserve_inode", "True"),
            Param::Optional("backslash_literal", "False"),
            Param::Optional("encoding", "None"),
        ],
        doc: "Replace what fits a regular expression in a file; give the differences.\n\n\
              repl\n    what it is replaced by; '\\1' and '\\g<name>' are groups of the expression\n\
              count\n    how many times at most; 0 is always\n\
              flags\n    Python's numbers or names: MULTILINE, IGNORECASE, DOTALL, VERBOSE\n\
              append_if_not_found, prepend_if_not_found, not_found_content\n    what is added where nothing fits\n\
              backup\n    what is put behind the name of a copy of the old file; False for none\n\
              dry_run, search_only, show_changes\n    change nothing; only look; tell what changes or just whether\n\n\
              CLI Example:\n\n    saltern run '*' file.replace /etc/app.conf '^port=.*' 'port=80'\n",
        run: |call| call.blocking(replace),
    },
    Function {
        name: "file.search",
        params: &[
            PATH,
            Param::Required("pattern"),
            Param::Optional("flags", "8"),
            Param::Optional("bufsize", "1"),
            Param::Optional("ignore_if_missing", "False"),
            Param::Optional("multiline", "False"),
        ],
        doc: "Tell whether something in a file fits a regular expression.\n\n\
              CLI Example:\n\n    saltern run '*' file.search /etc/crontab 'mymaintenance.sh'\n",
        run: |call| {
            call.blocking(|call| {
                let Some((_, bytes)) = text_file(call)? else { return Ok(false.into()) };
                Ok(expression(call)?.is_match(&bytes).into())
            })
        },
    },
    Function {
        name: "file.write",
        params: LINES,
        doc: "Write lines into a file; what was in it is gone.\n\n\
              CLI Example:\n\n    saltern run '*' file.write /etc/motd 'one' 'two'\n",
        run: |call| call.blocking(write),
    },
];

/// The lines given, each with its line break, and their number.
fn lines(call: &Call) -> (String, usize) {
    let given = call.keywords().find(|(name, _)| *name == "args").map(|(_, value)| value);
    let items = match given {
        Some(Value::List(items)) => items.as_slice(),
        Some(value) => std::slice::from_ref(value),
        None => call.rest(),
    };
    (items.iter().map(|item| format!("{}\n", python_text(item))).collect(), items.len())
}

fn write(call: &Call) -> Answer {
    let (path, (text, count)) = (path(call, "path")?, lines(call));
    std::fs::write(&path, text).map_err(unexpected(&path))?;
    Ok(format!("Wrote {count} lines to \"{}\"", path.display()).into())
}

fn append(call: &Call) -> Answer {
    use std::io::{Read, Seek, SeekFrom};
    let (path, (text, count)) = (path(call, "path")?, lines(call));
    let added = (|| {
        let mut file = OpenOptions::new().read(true).append(true).open(&path)?;
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        let first = if last == *b"\n" { "" } else { "\n" };
        file.write_all(format!("{first}{text}").as_bytes())
    })();
    added.map_err(unexpected(&path))?;
    Ok(format!("Wrote {count} lines to \"{}\"", path.display()).into())
}

fn prepend(call: &Call) -> Answer {
    let (path, (text, count)) = (path(call, "path")?, lines(call));
    let old = if path.exists() { content(&path)? } else { Vec::new() };
    std::fs::write(&path, [text.as_bytes(), &old].concat()).map_err(unexpected(&path))?;
    Ok(format!("Prepended {count} lines to \"{}\"", path.display()).into())
}

fn contains(call: &Call) -> Answer {
    let (path, text) = (path(call, "path")?, call.text("text")?);
    if !path.exists() {
        return Ok(false.into());
    }
    let wanted = regex::escape(text.trim());
    let wanted = Regex::new(&wanted).map_err(|error| Failure::Exception(error.to_string()))?;
    Ok(wanted.is_match(&content(&path)?).into())
}

fn contains_regex(call: &Call) -> Answer {
    let (path, wanted) = (path(call, "path")?, call.text("regex")?);
    let taken_off = call.opt_text("lchar")?.unwrap_or_default();
    if !path.exists() {
        return Ok(false.into());
    }
    let wanted = compiled(&wanted, 0)?;
    let bytes = content(&path)?;
    let fits = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        wanted.is_match(line.trim_start_matches(|c| taken_off.contains(c)).as_bytes())
    };
    Ok(bytes.split(|byte| *byte == b'\n').any(fits).into())
}

async fn grep(call: &Call) -> Answer {
    let options: Vec<String> = call.rest().iter().map(|option| python_text(option).into_owned()).collect();
    let (text, pattern) = (path(call, "path")?.to_string_lossy().into_owned(), call.text("pattern")?);
    let looked = tokio::task::spawn_blocking({
        let text = text.clone();
        move || search::fitting(&text)
    });
    let mut files = looked.await.map_err(|error| Failure::Exception(error.to_string()))??;
    if files.is_empty() {
        files.push(text.into());
    }
    let command = Command::tool("grep").args(options).args(["-e", &pattern, "--"]).args(files);
    let done = command.run(&call.context).await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let mut map = Map::with_capacity(4);
    map.push("pid", done.pid);
    map.push("retcode", done.code);
    map.push("stdout", text(&done.stdout));
    map.push("stderr", text(&done.stderr));
    Ok(map.into())
}

/// The file of the parameter `path`, behind links, and what is in it. Nothing if it may be missing and is.
fn text_file(call: &Call) -> Result<Option<(std::path::PathBuf, Vec<u8>)>, Failure> {
    let given = path(call, "path")?;
    let Ok(real) = given.canonicalize() else {
        if call.flag("ignore_if_missing", false) {
            return Ok(None);
        }
        return Err(Failure::Invocation(format!("File not found: {}", given.display())));
    };
    let bytes = content(&real)?;
    if bytes.iter().take(512).any(|byte| *byte == 0) {
        let text = format!("Cannot perform string replacements on a binary file: {}", real.display());
        return Err(Failure::Invocation(text));
    }
    Ok(Some((real, bytes)))
}

fn expression(call: &Call) -> Result<Regex, Failure> {
    let multiline = call.has_param("multiline") && call.flag("multiline", false);
    compiled(&call.text("pattern")?, flags(call)? | if multiline { MULTILINE } else { 0 })
}

fn flags(call: &Call) -> Result<i64, Failure> {
    let by_name = |value: &Value| {
        let name = python_text(value).to_uppercase();
        let found = FLAGS.iter().find(|(_, names)| names.contains(&name.as_str()));
        found
            .map(|(flag, _)| *flag)
            .ok_or_else(|| Failure::Command(format!("Invalid re flag given: {}", python_text(value))))
    };
    match call.get("flags") {
        None => Ok(MULTILINE),
        Some(Value::Int(number)) => Ok(*number),
        Some(Value::List(names)) => names.iter().try_fold(0, |flags, name| Ok(flags | by_name(name)?)),
        Some(name) => by_name(name),
    }
}

fn compiled(pattern: &str, flags: i64) -> Result<Regex, Failure> {
    let built = RegexBuilder::new(pattern)
        .case_insensitive(flags & 2 != 0)
        .multi_line(flags & MULTILINE != 0)
        .dot_matches_new_line(flags & 16 != 0)
        .ignore_whitespace(flags & 64 != 0)
        .build();
    built.map_err(|error| Failure::Command(format!("not a regular expression that this minion knows: {error}")))
}

fn replace(call: &Call) -> Answer {
    let is_search = call.flag("search_only", false);
    let (is_appended, is_prepended) =
        (call.flag("append_if_not_found", false), call.flag("prepend_if_not_found", false));
    if is_search && (is_appended || is_prepended) {
        return Err(Failure::Invocation("search_only cannot be used with append/prepend_if_not_found".into()));
    }
    if is_appended && is_prepended {
        return Err(Failure::Invocation("Only one of append and prepend_if_not_found is permitted".into()));
    }
    let Some((path, old)) = text_file(call)? else { return Ok(false.into()) };
    let wanted = expression(call)?;
    if is_search {
        return Ok(wanted.is_match(&old).into());
    }
    let repl = python_text(call.given("repl").unwrap_or(&Value::Nil)).into_owned();
    let template =
        if call.flag("backslash_literal", false) { vec![Part::Text(repl.clone())] } else { template(&repl, &wanted)? };
    let count = usize::try_from(call.int("count", 0)?).unwrap_or(0);
    let mut found = wanted.is_match(&old);
    let mut new = wanted.replacen(&old, count, |captures: &Captures<'_>| filled(&template, captures));
    if is_appended || is_prepended {
        let added = call.opt_text("not_found_content")?.unwrap_or(repl);
        found = found || old.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_end() == added.as_bytes());
        if !found {
            new = Cow::Owned(with_line(&new, &added, is_prepended));
        }
    }
    let is_changed = *new != *old;
    if is_changed && !call.flag("dry_run", false) {
        store(call, &path, &new)?;
    }
    if !call.flag("show_changes", true) {
        return Ok(is_changed.into());
    }
    let (old, new) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
    let (old, new) = (old.split_inclusive('\n').collect::<Vec<_>>(), new.split_inclusive('\n').collect::<Vec<_>>());
    Ok(diff::unified(&old, &new).into())
}

fn with_line(text: &[u8], line: &str, is_first: bool) -> Vec<u8> {
    let line = format!("{line}\n").into_bytes();
    match text.last() {
        _ if is_first => [&line, text].concat(),
        None | Some(b'\n') => [text, &line].concat(),
        Some(_) => [text, b"\n", &line].concat(),
    }
}

/// Writes the new text into the same file, which keeps its names and its owner; a copy of the old one first, if wanted.
fn store(call: &Call, path: &Path, text: &[u8]) -> Result<(), Failure> {
    let ending = match call.given("backup") {
        None => Some(".bak".to_owned()),
        Some(value) if !value.is_truthy() => None,
        Some(value) => Some(python_text(value).into_owned()),
    };
    let failed = |error: std::io::Error| Failure::Command(format!("Exception: {}", python_error(&error, path)));
    if let Some(ending) = ending {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        std::fs::copy(path, name).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}

/// A piece of what something is replaced by.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

/// Reads Python's form: `\1`, `\g<1>`, `\g<name>`, `\n` and its like.
fn template(text: &str, wanted: &Regex) -> Result<Vec<Part>, Failure> {
    let bad = |what: &str| Failure::Exception(format!("re.error: {what}"));
    let group = |name: &str| {
        let number = name.parse().ok().or_else(|| wanted.capture_names().position(|known| known == Some(name)));
        let number = number.filter(|number| *number < wanted.captures_len());
        number.map(Part::Group).ok_or_else(|| bad(&format!("invalid group reference {name}")))
    };
    let (mut parts, mut plain) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let next = after.chars().next().ok_or_else(|| bad("bad escape (end of pattern)"))?;
        rest = &after[next.len_utf8()..];
        match next {
            'n' => plain.push('\n'),
            't' => plain.push('\t'),
            'r' => plain.push('\r'),
            '0'..='9' => {
                let digits = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
                rest = &after[digits..];
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(group(&after[..digits])?);
            }
            'g' => {
                let name = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
                let (name, behind) = name.ok_or_else(|| bad("missing group name"))?;
                rest = behind;
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(group(name)?);
            }
            letter if letter.is_ascii_alphabetic() => return Err(bad(&format!("bad escape \\{letter}"))),
            other => {
                // A backslash before anything else stays, but for its own kind.
                if other != '\\' {
                    plain.push('\\');
                }
                plain.push(other);
            }
        }
    }
    plain.push_str(rest);
    parts.push(Part::Text(plain));
    Ok(parts)
}

fn filled(template: &[Part], captures: &Captures<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for part in template {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Group(number) => {
                out.extend_from_slice(captures.get(*number).map_or(&[][..], |group| group.as_bytes()))
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn replaced(pattern: &str, repl: &str, text: &str) -> String {
        let wanted = compiled(pattern, MULTILINE).unwrap();
        let parts = template(repl, &wanted).unwrap();
        let new = wanted.replace_all(text.as_bytes(), |captures: &Captures<'_>| filled(&parts, captures)).into_owned();
        String::from_utf8(new).unwrap()
    }

    #[test]
    fn replacements_are_written_as_in_python() {
        assert_eq!(replaced("^(t)(\\w+)", "\\2\\1", "one\ntwo\nthree"), "one\nwot\nhreet");
        assert_eq!(replaced("(?P<x>a)b", "\\g<x>\\g<1>$1", "ab"), "aa$1");
        assert_eq!(replaced("a", "x\\ny\\\\z\\.", "a"), "x\ny\\z\\.");
        for bad in ["\\2", "\\g<no>", "\\q", "x\\"] {
            assert!(template(bad, &compiled("(a)", 0).unwrap()).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_replacement_is_taken_or_refused(text in any::<String>()) {
            let _ = template(&text, &compiled("(a)", 0).unwrap());
        }
    }
}
