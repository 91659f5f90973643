//! No file request leads out of the roots.

use crate::house::House;
use saltern_core::value::Value;
use saltern_testkit::fake_minion::FakeMinion;
use std::os::unix::fs::symlink;

const SECRET: &str = "the secret outside";

async fn furnished() -> (House, FakeMinion) {
    let house = House::furnished(vec![("auto_accept".into(), true.into())], |dir| {
        std::fs::write(dir.join("secret"), SECRET).unwrap();
        std::fs::create_dir(dir.join("outside")).unwrap();
        std::fs::write(dir.join("outside/secret"), SECRET).unwrap();
        let files = dir.join("files");
        std::fs::create_dir(files.join("folder")).unwrap();
        std::fs::write(files.join("file"), "open").unwrap();
        std::fs::write(files.join("folder/file"), "open").unwrap();
        symlink(dir.join("secret"), files.join("absolute-link")).unwrap();
        symlink("../secret", files.join("relative-link")).unwrap();
        symlink("../outside", files.join("folder-link")).unwrap();
        symlink("folder/file", files.join("inner-link")).unwrap();
    })
    .await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    (house, minion)
}

fn fields(path: &str, env: &str) -> [(&'static str, Value); 3] {
    [("path", path.into()), ("saltenv", env.into()), ("loc", 0.into())]
}

/// Asserts that every command that takes a path finds nothing there.
async fn finds_nothing(minion: &FakeMinion, path: &str, env: &str) {
    let served = minion.request("_serve_file", fields(path, env)).await;
    assert_eq!(served.get("data").unwrap().as_bytes(), Some(&b""[..]), "_serve_file {path:?} of {env:?}");
    assert_eq!(
        minion.request("_file_hash", fields(path, env)).await,
        Value::from(""),
        "_file_hash {path:?} of {env:?}"
    );
    let found = minion.request("_file_find", fields(path, env)).await;
    assert_eq!(found.get("path").unwrap().as_str(), Some(""), "_file_find {path:?} of {env:?}");
    let both = minion.request("_file_hash_and_stat", fields(path, env)).await;
    assert_eq!(both, Value::list([Value::from(""), Value::Nil]), "_file_hash_and_stat {path:?} of {env:?}");
}

#[tokio::test]
async fn paths_that_leave_the_root_find_nothing() {
    let (house, minion) = furnished().await;
    let absolute = house.dir.path().join("secret").to_str().unwrap().to_owned();
    for path in [
        "../secret",
        "folder/../../secret",
        "./../secret",
        "..//secret",
        &absolute,
        &format!("/{absolute}"),
        "file\0",
        "../secret\0file",
        "..\\secret",
        "folder\\..\\..\\secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "absolute-link",
        "relative-link",
        "folder-link/secret",
        "folder",
        "file/../file",
        "",
        ".",
        "/",
        "|../secret",
        &format!("{}secret", "../".repeat(2_000)),
    ] {
        finds_nothing(&minion, path, "base").await;
    }
    let served = minion.request("_serve_file", fields("file", "base")).await;
    assert_eq!(served.get("data").unwrap().as_str(), Some("open"));
}

#[tokio::test]
async fn environments_that_are_none_find_nothing() {
    let (house, minion) = furnished().await;
    let absolute = house.dir.path().join("files").to_str().unwrap().to_owned();
    for env in ["../base", "..", "/", "base/..", "base/", "base\0", "BASE", "dev", "__env__", "*", &absolute] {
        finds_nothing(&minion, "file", env).await;
        for cmd in ["_file_list", "_dir_list", "_file_list_emptydirs"] {
            let listed = minion.request(cmd, [("saltenv", env), ("prefix", "")]).await;
            assert_eq!(listed, Value::List(Vec::new()), "{cmd} of {env:?}");
        }
        assert_eq!(minion.request("_symlink_list", [("saltenv", env)]).await.as_map().map(|map| map.len()), Some(0));
    }
}

#[tokio::test]
async fn an_environment_of_the_request_cannot_leave_a_root_that_has_its_name() {
    let house = House::with([("auto_accept", true.into())]).await;
    let root = house.dir.path().join("envs");
    std::fs::create_dir_all(root.join("dev")).unwrap();
    std::fs::write(root.join("dev/file"), "open").unwrap();
    std::fs::write(house.dir.path().join("file"), SECRET).unwrap();
    let template = format!("{}/__env__", root.display());
    let roots = Value::map([("__env__", Value::list([template]))]);
    let house = House::with([("auto_accept", true.into()), ("file_roots", roots)]).await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let served = minion.request("_serve_file", fields("file", "dev")).await;
    assert_eq!(served.get("data").unwrap().as_str(), Some("open"));
    for env in ["..", "../envs/dev", "dev/..", ".", "dev/../..", "dev\0", "/"] {
        finds_nothing(&minion, "file", env).await;
    }
}

#[tokio::test]
async fn lists_stay_inside_the_root() {
    let (_house, minion) = furnished().await;
    for prefix in ["", "/", "..", "../", "folder-link", "relative-link"] {
        for cmd in ["_file_list", "_dir_list", "_file_list_emptydirs"] {
            let listed = minion.request(cmd, [("saltenv", "base"), ("prefix", prefix)]).await;
            for path in listed.as_list().unwrap() {
                let path = path.as_str().unwrap();
                assert!(
                    !path.contains("secret") && !path.contains("..") && !path.starts_with('/'),
                    "{cmd} {prefix:?}: {path}"
                );
            }
        }
    }
    let listed = minion.request("_file_list", [("saltenv", "base"), ("prefix", "")]).await;
    assert!(listed.as_list().unwrap().contains(&"inner-link".into()), "{listed:?}");
}

#[tokio::test]
async fn answers_do_not_tell_where_files_lie() {
    let (house, minion) = furnished().await;
    let here = house.dir.path().to_str().unwrap();
    for cmd in
        ["_file_find", "_file_hash", "_file_hash_and_stat", "_serve_file", "_file_list", "_dir_list", "_master_opts"]
    {
        let answer = minion.request(cmd, fields("file", "base")).await;
        assert!(!format!("{answer:?}").contains(here), "{cmd}: {answer:?}");
    }
}

#[tokio::test]
async fn fields_of_a_wrong_kind_find_nothing() {
    let (_house, minion) = furnished().await;
    for wrong in [Value::Nil, 7.into(), Value::list(["file"]), Value::map([("file", 1)]), Value::from(&b"\xff"[..])] {
        for field in ["path", "saltenv", "loc", "prefix"] {
            for cmd in ["_file_find", "_file_hash", "_serve_file", "_file_list", "_symlink_list", "_file_hash_and_stat"]
            {
                minion.request(cmd, [(field, wrong.clone())]).await;
            }
        }
    }
    for loc in [-1, i64::MIN, i64::MAX, 4] {
        let [path, env, _] = fields("file", "base");
        let served = minion.request("_serve_file", [path, env, ("loc", loc.into())]).await;
        let data = served.get("data").unwrap().as_bytes().unwrap();
        assert!(data.is_empty() || data == b"open", "{loc}: {served:?}");
    }
}

#[tokio::test]
async fn uploads_and_self_revocation_are_off() {
    let (house, minion) = furnished().await;
    for path in [Value::list(["x"]), Value::list(["..", "x"]), "../x".into()] {
        let upload = [("path", path), ("loc", 0.into()), ("data", "x".into()), ("size", 1.into())];
        assert_eq!(minion.request("_file_recv", upload).await, Value::from(false));
    }
    assert_eq!(minion.request("revoke_auth", ()).await, Value::from(false));
    assert_eq!(house.keys_of("a").len(), 1);
    minion.request("_file_envs", ()).await;
}
