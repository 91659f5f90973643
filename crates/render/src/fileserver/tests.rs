//! The file server: what is listed and served, and every way out of the roots that is not there.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let full = dir.path().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, content).unwrap();
    }
    dir
}

fn roots(dirs: &[&TempDir]) -> FileRoots {
    with_settings(dirs, Settings::default())
}

fn with_settings(dirs: &[&TempDir], settings: Settings) -> FileRoots {
    let dirs = dirs.iter().map(|dir| dir.path().to_owned()).collect();
    FileRoots::new([("base".to_owned(), dirs)], settings).unwrap()
}

fn text(server: &FileRoots, path: &str) -> Option<String> {
    let chunk = server.read_chunk("base", path, 0, 1000).unwrap()?;
    Some(String::from_utf8(chunk.to_vec()).unwrap())
}

#[test]
fn the_first_root_wins() {
    let (one, two) = (tree(&[("a", "one")]), tree(&[("a", "two"), ("b", "two")]));
    let server = roots(&[&one, &two]);
    assert_eq!(text(&server, "a").unwrap(), "one");
    assert_eq!(text(&server, "b").unwrap(), "two");
    assert_eq!(server.file_list("base", "").unwrap(), ["a", "b"]);
}

#[test]
fn traversal_is_refused_in_every_form() {
    let dir = tree(&[("in/file", "x")]);
    let server = roots(&[&dir]);
    for path in [
        "..",
        "../x",
        "in/../../x",
        "in/..",
        "/etc/passwd",
        "//etc/passwd",
        "in\\..\\x",
        "..\\x",
        "a\0b",
        "",
        ".",
        "./.",
        "./../x",
        "in/./../../x",
    ] {
        assert!(matches!(server.read_chunk("base", path, 0, 1), Err(Error::Path { .. })), "{path:?}");
        assert!(server.find("base", path).is_err(), "{path:?}");
        assert!(server.hash("base", path).is_err(), "{path:?}");
    }
    let long = "a/".repeat(5000);
    assert!(server.find("base", &long).is_err());
}

#[test]
fn harmless_spellings_of_a_path_are_cleaned() {
    let dir = tree(&[("in/file", "x")]);
    let server = roots(&[&dir]);
    assert_eq!(text(&server, "./in//file").unwrap(), "x");
    assert_eq!(server.find("base", "in/./file").unwrap().unwrap().rel, "in/file");
    assert_eq!(text(&server, "%2e%2e/x"), None);
    assert_eq!(text(&server, "in/file/more"), None);
    assert_eq!(text(&server, "in"), None);
}

#[test]
fn links_that_leave_the_root_are_neither_served_nor_listed() {
    let (dir, outside) = (tree(&[("a", "x")]), tree(&[("secret", "s"), ("d/secret", "s")]));
    symlink(outside.path().join("secret"), dir.path().join("abs")).unwrap();
    symlink(outside.path().join("d"), dir.path().join("dir")).unwrap();
    symlink(format!("../{}/secret", outside.path().file_name().unwrap().to_str().unwrap()), dir.path().join("rel"))
        .unwrap();
    symlink("/nonexistent/x", dir.path().join("dangling")).unwrap();
    let server = roots(&[&dir]);
    for path in ["abs", "dir/secret", "rel", "dangling"] {
        assert_eq!(server.find("base", path).unwrap(), None, "{path}");
        assert_eq!(server.hash("base", path).unwrap(), None, "{path}");
    }
    let listing = server.listing("base").unwrap();
    assert_eq!(listing.files, ["a"]);
    assert!(listing.dirs.is_empty() && listing.links.is_empty());
}

#[test]
fn links_inside_the_root_are_followed_relative_and_absolute() {
    let dir = tree(&[("d/a", "x")]);
    symlink("a", dir.path().join("d/rel")).unwrap();
    symlink(dir.path().join("d/a"), dir.path().join("abs")).unwrap();
    symlink("d", dir.path().join("e")).unwrap();
    symlink(".", dir.path().join("loop")).unwrap();
    let server = roots(&[&dir]);
    for path in ["d/rel", "abs", "e/a", "e/rel", "loop/d/a"] {
        assert_eq!(text(&server, path).as_deref(), Some("x"), "{path}");
    }
    let listing = server.listing("base").unwrap();
    assert_eq!(listing.files, ["abs", "d/a", "d/rel", "e/a", "e/rel"]);
    assert_eq!(listing.dirs, ["d", "e", "loop"]);
    assert_eq!(listing.links["e"], "d");

    let still = with_settings(&[&dir], Settings { follow_symlinks: false, ..Settings::default() });
    assert_eq!(still.listing("base").unwrap().files, ["abs", "d/a", "d/rel"]);
    let none = with_settings(&[&dir], Settings { ignore_symlinks: true, ..Settings::default() });
    assert_eq!(none.listing("base").unwrap().files, ["d/a"]);
}

#[test]
fn ignored_paths_are_neither_served_nor_listed() {
    let dir = tree(&[("a.pyc", ""), (".git/config", ""), ("d/.git/x", ""), ("keep", "")]);
    let settings = Settings {
        ignore_regex: vec![r"/\.git($|/)".to_owned()],
        ignore_glob: vec!["*.pyc".to_owned()],
        ..Settings::default()
    };
    let server = with_settings(&[&dir], settings);
    assert_eq!(server.listing("base").unwrap().files, ["keep"]);
    assert_eq!(server.find("base", ".git/config").unwrap(), None);
    assert_eq!(server.find("base", "a.pyc").unwrap(), None);
}

#[test]
fn built_in_files_are_in_every_environment_and_win() {
    let dir = tree(&[("_executors/x.py", "theirs")]);
    let server = FileRoots::new(
        [("base".to_owned(), vec![dir.path().to_owned()]), ("dev".to_owned(), vec![])],
        Settings::default(),
    )
    .unwrap()
    .with_builtin("_executors/x.py", &b"ours"[..])
    .unwrap();
    assert_eq!(text(&server, "_executors/x.py").unwrap(), "ours");
    assert_eq!(server.file_list("dev", "_executors").unwrap(), ["_executors/x.py"]);
    assert_eq!(server.dir_list("dev", "").unwrap(), ["_executors"]);
    let hash = server.hash("dev", "_executors/x.py").unwrap().unwrap();
    assert_eq!(hash, hex(&Sha256::digest(b"ours")));
    assert_eq!(server.find("dev", "_executors/x.py").unwrap().unwrap().stat[6], 4);
    assert_eq!(server.hash("nowhere", "_executors/x.py").unwrap(), None);
}

#[test]
fn a_hash_follows_the_file() {
    let dir = tree(&[("a", "one")]);
    let server = roots(&[&dir]);
    let one = server.hash("base", "a").unwrap();
    assert_eq!(server.hash("base", "a").unwrap(), one);
    fs::write(dir.path().join("a"), "two!").unwrap();
    assert_eq!(server.hash("base", "a").unwrap().unwrap(), hex(&Sha256::digest(b"two!")));
}

#[test]
fn chunks_end_in_an_empty_one() {
    let dir = tree(&[("a", "hello")]);
    let server = roots(&[&dir]);
    let chunk = |offset, len| server.read_chunk("base", "a", offset, len).unwrap().unwrap();
    assert_eq!(chunk(0, 3), "hel");
    assert_eq!(chunk(3, usize::MAX), "lo");
    assert_eq!(chunk(5, 3), "");
    assert_eq!(chunk(u64::MAX >> 1, 3), "");
    assert_eq!(server.read_chunk("base", "b", 0, 1).unwrap(), None);
}

#[test]
fn empty_directories_and_prefixes_are_told() {
    let dir = tree(&[("a/b/c", ""), ("x", "")]);
    fs::create_dir_all(dir.path().join("empty/er")).unwrap();
    let server = roots(&[&dir]);
    assert_eq!(server.empty_dirs("base", "").unwrap(), ["empty/er"]);
    assert_eq!(server.dir_list("base", "/a/").unwrap(), ["a", "a/b"]);
    assert_eq!(server.file_list("base", "a").unwrap(), ["a/b/c"]);
    assert_eq!(server.file_list("other", "").unwrap(), Vec::<String>::new());
}

#[test]
fn a_named_pipe_is_not_a_file_and_does_not_block() {
    let dir = tree(&[]);
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let server = roots(&[&dir]);
    assert_eq!(server.find("base", "pipe").unwrap(), None);
    assert!(server.file_list("base", "").unwrap().is_empty());
}

#[test]
fn the_walk_is_bounded() {
    let dir = tree(&[("a", ""), ("b", ""), ("c", "")]);
    let server = with_settings(&[&dir], Settings { max_entries: 2, ..Settings::default() });
    assert!(matches!(server.listing("base"), Err(Error::TooManyFiles { .. })));
}

#[test]
fn the_wildcard_environment_takes_clean_names_only() {
    let dir = tree(&[("dev/a", "x"), ("secret", "s")]);
    let template = dir.path().join("__env__");
    let server = FileRoots::new([("__env__".to_owned(), vec![template])], Settings::default()).unwrap();
    assert!(server.find("dev", "a").unwrap().is_some());
    for env in ["..", ".", "", "dev/..", "../x", "a\\b", "a\0", ".hidden", "a/b"] {
        assert!(!server.has_env(env), "{env:?}");
        assert_eq!(server.find(env, "secret").unwrap(), None, "{env:?}");
    }
    assert_eq!(server.envs(), ["__env__"]);
}
