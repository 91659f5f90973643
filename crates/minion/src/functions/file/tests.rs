//! What `file.*` answers, compared with what stock Salt answers.

use crate::functions::testing::Bench;
use saltern_core::value::{Map, Value};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.at("a.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::write(bench.at("b"), "no newline").unwrap();
    std::fs::create_dir_all(bench.at("d/sub")).unwrap();
    std::fs::write(bench.at("d/big"), vec![b'x'; 3000]).unwrap();
    symlink("a.txt", bench.at("l")).unwrap();
    std::fs::set_permissions(bench.at("a.txt"), PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::set_permissions(bench.at("b"), PermissionsExt::from_mode(0o4755)).unwrap();
    bench
}

/// Calls a function with a path of the bench and more arguments.
async fn on(bench: &Bench, name: &str, file: &str, more: &[Value]) -> Value {
    let args: Vec<Value> = std::iter::once(bench.at(file).into()).chain(more.iter().cloned()).collect();
    bench.call(name, &args, &[]).await
}

fn text(bench: &Bench, file: &str) -> String {
    std::fs::read_to_string(bench.at(file)).unwrap()
}

#[tokio::test]
async fn stats_tell_all_of_a_file() {
    let bench = bench();
    on(&bench, "file.touch", "a.txt", &[1_000_000_000.into(), 1_000_000_000.into()]).await;
    let stats = on(&bench, "file.stats", "a.txt", &[]).await;
    let names: Vec<_> = stats.as_map().unwrap().iter().map(|(name, _)| name.as_str().unwrap()).collect();
    let expected =
        ["inode", "uid", "gid", "group", "user", "atime", "mtime", "ctime", "size", "mode", "type", "target"];
    assert_eq!(names, expected);
    assert_eq!(stats.get("mtime"), Some(&1_000_000_000.0.into()));
    assert_eq!((stats.get("size"), stats.get("mode")), (Some(&14.into()), Some(&"0640".into())));
    let target = std::fs::canonicalize(bench.at("a.txt")).unwrap().to_str().unwrap().to_owned();
    assert_eq!((stats.get("type"), stats.get("target")), (Some(&"file".into()), Some(&target.into())));
    let link = bench.call("file.stats", &[bench.at("l").into()], &[("follow_symlinks", false.into())]).await;
    assert_eq!((link.get("type"), link.get("target")), (Some(&"link".into()), Some(&bench.at("l").into())));
    let failed = bench.fail("file.stats", &[bench.at("nope").into()], &[]).await;
    assert_eq!(failed, format!("ERROR: Path not found: {}", bench.at("nope")));
    let lstat = on(&bench, "file.lstat", "a.txt", &[]).await;
    assert_eq!(lstat.get("st_mode"), Some(&33184.into()));
    assert_eq!(on(&bench, "file.lstat", "nope", &[]).await, Map::new().into());
}

#[tokio::test]
async fn single_facts_can_be_asked() {
    let bench = bench();
    assert_eq!(on(&bench, "file.file_exists", "a.txt", &[]).await, true.into());
    assert_eq!(on(&bench, "file.file_exists", "d", &[]).await, false.into());
    assert_eq!(on(&bench, "file.directory_exists", "d", &[]).await, true.into());
    assert_eq!(on(&bench, "file.is_link", "l", &[]).await, true.into());
    assert_eq!(on(&bench, "file.get_mode", "b", &[]).await, "4755".into());
    assert_eq!(on(&bench, "file.access", "a.txt", &["r".into()]).await, true.into());
    let failed = bench.fail("file.access", &[bench.at("b").into(), "q".into()], &[]).await;
    assert_eq!(failed, "ERROR executing 'file.access': Invalid mode specified.");
    let uid = std::fs::metadata(bench.at("b")).unwrap().uid();
    assert_eq!(on(&bench, "file.get_uid", "b", &[]).await, uid.into());
    assert_eq!(on(&bench, "file.diskusage", "d", &[]).await, 3000.into());
    assert_eq!(bench.call("file.user_to_uid", &["root".into()], &[]).await, 0.into());
    assert_eq!(bench.call("file.user_to_uid", &["nosuch".into()], &[]).await, "".into());
    assert_eq!(bench.call("file.gid_to_group", &[0.into()], &[]).await, "root".into());
    assert_eq!(bench.call("file.uid_to_user", &[4_000_000_000_u32.into()], &[]).await, 4_000_000_000_u32.into());
}

#[tokio::test]
async fn hashes_are_computed_and_checked() {
    let bench = bench();
    let sha = "b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2";
    assert_eq!(on(&bench, "file.get_hash", "a.txt", &[]).await, sha.into());
    assert_eq!(on(&bench, "file.get_hash", "a.txt", &["md5".into()]).await, "deed54b823522e0525693b090363f9df".into());
    assert_eq!(on(&bench, "file.get_sum", "nope", &[]).await, "File not found".into());
    assert_eq!(on(&bench, "file.check_hash", "a.txt", &[sha.into()]).await, true.into());
    assert_eq!(on(&bench, "file.check_hash", "a.txt", &["md5:00".into()]).await, false.into());
    let failed = bench.fail("file.check_hash", &[bench.at("a.txt").into(), "00".into()], &[]).await;
    assert!(
        failed.starts_with("ERROR executing 'file.check_hash': Hash 00 (length: 2) could not be matched"),
        "{failed}"
    );
}

#[tokio::test]
async fn paths_are_taken_apart_and_put_together() {
    let bench = Bench::new();
    for (name, args, expected) in [
        ("file.join", vec!["/a", "b", "c"], "/a/b/c"),
        ("file.join", vec!["/a", "/b"], "/b"),
        ("file.basename", vec!["/a/b"], "b"),
        ("file.basename", vec!["/a/"], ""),
        ("file.dirname", vec!["/a/b"], "/a"),
        ("file.dirname", vec!["/a"], "/"),
        ("file.dirname", vec!["a"], ""),
        ("file.normpath", vec!["/a/../b//c/"], "/b/c"),
        ("file.normpath", vec!["/../a/./b"], "/a/b"),
        ("file.normpath", vec!["../a/../.."], "../.."),
    ] {
        let values: Vec<Value> = args.iter().map(|arg| Value::from(*arg)).collect();
        assert_eq!(bench.call(name, &values, &[]).await, expected.into(), "{name} {args:?}");
    }
}

#[tokio::test]
async fn modes_are_set_in_octal() {
    let bench = bench();
    assert_eq!(on(&bench, "file.set_mode", "a.txt", &["0600".into()]).await, "0600".into());
    assert_eq!(on(&bench, "file.set_mode", "a.txt", &[644.into()]).await, "0644".into());
    assert_eq!(on(&bench, "file.set_mode", "a.txt", &["0999".into()]).await, "Invalid Mode 999".into());
    let failed = bench.fail("file.set_mode", &[bench.at("nope").into(), "0600".into()], &[]).await;
    assert_eq!(failed, format!("ERROR: {}: File not found", bench.at("nope")));
}

#[tokio::test]
async fn folders_are_made_and_removed() {
    let bench = bench();
    assert_eq!(on(&bench, "file.makedirs", "x/y/", &[]).await, Value::Nil);
    let told = on(&bench, "file.makedirs", "x/y/", &[]).await;
    assert_eq!(told, format!("Directory '{}' already exists", bench.at("x/y")).into());
    let made = bench.call("file.mkdir", &[bench.at("x/z/w").into()], &[("mode", "0700".into())]).await;
    assert_eq!(made, true.into());
    assert_eq!(std::fs::metadata(bench.at("x/z")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(on(&bench, "file.remove", "x", &[]).await, true.into());
    assert_eq!(on(&bench, "file.remove", "x", &[]).await, false.into());
    assert!(bench.fail("file.remove", &["/".into()], &[]).await.contains("is not removed"));
    assert_eq!(on(&bench, "file.rmdir", "d", &[]).await, false.into());
    assert_eq!(on(&bench, "file.rmdir", "d/sub", &[]).await, true.into());
    assert_eq!(on(&bench, "file.readdir", "d", &[]).await, Value::list([".", "..", "big"]));
}

#[tokio::test]
async fn files_are_copied_moved_and_renamed() {
    let bench = bench();
    assert_eq!(on(&bench, "file.copy", "a.txt", &[bench.at("c").into()]).await, true.into());
    assert_eq!(std::fs::metadata(bench.at("c")).unwrap().mode() & 0o777, 0o640);
    let failed = bench.fail("file.copy", &[bench.at("d").into(), bench.at("d2").into()], &[]).await;
    assert!(failed.ends_with("Cannot copy overwriting a directory without recurse flag set to true!"), "{failed}");
    assert_eq!(on(&bench, "file.copy", "d", &[bench.at("d2").into(), true.into()]).await, true.into());
    assert_eq!(text(&bench, "d2/big").len(), 3000);
    let told = on(&bench, "file.move", "c", &[bench.at("d2").into()]).await;
    assert_eq!(told.get("comment"), Some(&format!("'{}' moved to '{}'", bench.at("c"), bench.at("d2")).into()));
    assert_eq!(text(&bench, "d2/c"), "one\ntwo\nthree\n");
    let failed = bench.fail("file.rename", &[bench.at("nope").into(), bench.at("q").into()], &[]).await;
    assert_eq!(failed, format!("ERROR: Could not rename '{}' to '{}'", bench.at("nope"), bench.at("q")));
    assert_eq!(on(&bench, "file.rename", "b", &[bench.at("q").into()]).await, true.into());
    assert_eq!(on(&bench, "file.link", "q", &[bench.at("hard").into()]).await, true.into());
}

#[tokio::test]
async fn links_are_made_and_only_replaced_by_force() {
    let bench = bench();
    let link = |to: &str| [Value::from(bench.at(to)), Value::from(bench.at("l2"))];
    assert_eq!(bench.call("file.symlink", &link("b"), &[]).await, true.into());
    assert_eq!(bench.call("file.symlink", &link("b"), &[]).await, true.into());
    let failed = bench.fail("file.symlink", &link("a.txt"), &[]).await;
    assert_eq!(failed, format!("ERROR: Found existing symlink: {}", bench.at("l2")));
    for how in ["force", "atomic"] {
        let to = if how == "force" { "a.txt" } else { "b" };
        assert_eq!(bench.call("file.symlink", &link(to), &[(how, true.into())]).await, true.into());
        assert_eq!(on(&bench, "file.readlink", "l2", &[]).await, bench.at(to).into());
    }
    let failed = bench.fail("file.symlink", &[bench.at("a.txt").into(), bench.at("b").into()], &[]).await;
    assert_eq!(failed, format!("ERROR: Existing path is not a symlink: {}", bench.at("b")));
    assert_eq!(on(&bench, "file.readlink", "l", &[]).await, "a.txt".into());
    let failed = bench.fail("file.readlink", &[bench.at("b").into()], &[]).await;
    assert_eq!(failed, format!("ERROR executing 'file.readlink': A valid link was not specified: {}", bench.at("b")));
}

#[tokio::test]
async fn owners_that_do_not_exist_are_told() {
    let bench = bench();
    let told = on(&bench, "file.chown", "b", &["nosuch".into(), "root".into()]).await;
    assert_eq!(told, "User does not exist\n".into());
    let told = on(&bench, "file.chown", "nope", &["root".into(), "nosuch".into()]).await;
    assert_eq!(told, "Group does not exist\nFile not found".into());
    let meta = std::fs::metadata(bench.at("b")).unwrap();
    assert_eq!(on(&bench, "file.chown", "b", &[meta.uid().into(), meta.gid().into()]).await, Value::Nil);
}

#[tokio::test]
async fn lines_are_written_appended_and_prepended() {
    let bench = bench();
    let told = on(&bench, "file.write", "w", &["one".into(), 2.into()]).await;
    assert_eq!(told, format!("Wrote 2 lines to \"{}\"", bench.at("w")).into());
    let told = on(&bench, "file.append", "b", &["three".into(), "four".into()]).await;
    assert_eq!(told, format!("Wrote 2 lines to \"{}\"", bench.at("b")).into());
    assert_eq!(text(&bench, "b"), "no newline\nthree\nfour\n");
    let told = on(&bench, "file.prepend", "w", &["zero".into()]).await;
    assert_eq!(told, format!("Prepended 1 lines to \"{}\"", bench.at("w")).into());
    assert_eq!(on(&bench, "file.read", "w", &[]).await, "zero\none\n2\n".into());
    let list = [("args", Value::list(["x", "y"]))];
    bench.call("file.append", &[bench.at("w").into()], &list).await;
    assert_eq!(text(&bench, "w"), "zero\none\n2\nx\ny\n");
    assert_eq!(on(&bench, "file.truncate", "w", &[4.into()]).await, Value::Nil);
    assert_eq!(on(&bench, "file.seek_read", "w", &[2.into(), 1.into()]).await, "er".into());
    let failed = bench.fail("file.read", &["/nope".into()], &[]).await;
    assert!(failed.ends_with("FileNotFoundError: [Errno 2] No such file or directory: '/nope'"), "{failed}");
}

#[tokio::test]
async fn text_is_looked_for() {
    let bench = bench();
    assert_eq!(on(&bench, "file.search", "a.txt", &["^t".into()]).await, true.into());
    assert_eq!(on(&bench, "file.search", "a.txt", &["^t".into(), 0.into()]).await, false.into());
    assert_eq!(on(&bench, "file.search", "a.txt", &["^T".into(), Value::list(["I", "MULTILINE"])]).await, true.into());
    let failed = bench.fail("file.search", &["/nope".into(), "x".into()], &[]).await;
    assert_eq!(failed, "ERROR executing 'file.search': File not found: /nope");
    assert_eq!(on(&bench, "file.contains", "a.txt", &["two".into()]).await, true.into());
    assert_eq!(on(&bench, "file.contains", "nope", &["two".into()]).await, false.into());
    assert_eq!(on(&bench, "file.contains_regex", "a.txt", &["^thr".into()]).await, true.into());
    assert_eq!(on(&bench, "file.contains_regex", "a.txt", &["^wo".into(), "t".into()]).await, true.into());
    let told = on(&bench, "file.grep", "a.*", &["TW".into(), "-i".into()]).await;
    assert_eq!((told.get("retcode"), told.get("stdout")), (Some(&0.into()), Some(&"two".into())));
}

#[tokio::test]
async fn text_is_replaced_and_the_differences_told() {
    let bench = bench();
    let told = on(&bench, "file.replace", "a.txt", &[r"^(t)(\w+)".into(), r"\2\1".into()]).await;
    assert_eq!(told, "--- \n+++ \n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+wot\n+hreet\n".into());
    assert_eq!(text(&bench, "a.txt"), "one\nwot\nhreet\n");
    assert_eq!(text(&bench, "a.txt.bak"), "one\ntwo\nthree\n");
    assert_eq!(std::fs::metadata(bench.at("a.txt")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(on(&bench, "file.replace", "a.txt", &["nomatch".into(), "x".into()]).await, "".into());
    let args = [bench.at("a.txt").into(), "nomatch".into(), "x".into()];
    let kwargs = [("append_if_not_found", Value::from(true)), ("backup", false.into()), ("show_changes", false.into())];
    assert_eq!(bench.call("file.replace", &args, &kwargs).await, true.into());
    assert_eq!(bench.call("file.replace", &args, &kwargs).await, false.into());
    assert_eq!(text(&bench, "a.txt"), "one\nwot\nhreet\nx\n");
    let args = [bench.at("a.txt").into(), "o".into(), "0".into()];
    let told = bench.call("file.replace", &args, &[("count", 1.into()), ("dry_run", true.into())]).await;
    assert_eq!(told, "--- \n+++ \n@@ -1,4 +1,4 @@\n-one\n+0ne\n wot\n hreet\n x\n".into());
    assert_eq!(text(&bench, "a.txt"), "one\nwot\nhreet\nx\n");
}

#[tokio::test]
async fn binary_files_are_not_changed() {
    let bench = bench();
    std::fs::write(bench.at("bin"), b"a\0b").unwrap();
    let failed = bench.fail("file.replace", &[bench.at("bin").into(), "a".into(), "x".into()], &[]).await;
    assert!(failed.contains("Cannot perform string replacements on a binary file"), "{failed}");
}

#[tokio::test]
async fn files_are_found_by_what_they_are() {
    let bench = bench();
    let root = Value::from(bench.at(""));
    let find = async |kwargs: &[(&str, Value)]| bench.call("file.find", std::slice::from_ref(&root), kwargs).await;
    let paths = |names: &[&str]| Value::list(names.iter().map(|name| bench.at(name)));
    assert_eq!(find(&[("name", "*.txt".into())]).await, paths(&["a.txt"]));
    assert_eq!(find(&[("size", "+2k".into()), ("type", "f".into())]).await, paths(&["d/big"]));
    assert_eq!(find(&[("grep", "^thr|no new".into()), ("iname", "[AB]*".into())]).await, paths(&["b"]));
    assert_eq!(find(&[("mtime", "+1d".into())]).await, paths(&[]));
    assert_eq!(find(&[("type", "d".into()), ("mindepth", 1.into())]).await, paths(&["d", "d/sub"]));
    let shown = find(&[("maxdepth", 1.into()), ("type", "f".into()), ("print", "name,size,type".into())]).await;
    let entry = |name: &str, size: i64| Value::list([Value::from(name), size.into(), "f".into()]);
    assert_eq!(shown, Value::list([entry("a.txt", 14), entry("b", 10), entry("l", 14)]));
    assert_eq!(find(&[("bogus", 1.into())]).await, "error: invalid option \"bogus\"".into());
    assert_eq!(find(&[("type", "q".into())]).await, "error: invalid file type \"q\"".into());
    assert_eq!(find(&[("name", "".into())]).await, "error: missing value for \"name\" option".into());
    let deleted = bench.call("file.find", &[root.clone(), "delete".into()], &[("name", "b*".into())]).await;
    assert_eq!(deleted, paths(&["b", "d/big"]));
    assert!(!bench.path().join("b").exists() && bench.path().join("d").exists());
    assert_eq!(on(&bench, "file.path_exists_glob", "*.txt", &[]).await, true.into());
    assert_eq!(on(&bench, "file.path_exists_glob", "*.nope", &[]).await, false.into());
}
