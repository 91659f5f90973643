//! Secrets are in no log, no database and no readable file.

use crate::house::House;
use crate::logs;
use crate::methods::{METHODS, fields};
use saltern_core::value::Value;
use saltern_server::app::KeyVerb;
use saltern_testkit::fake_minion::{FakeMinion, Forgery, key_named};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const PILLAR_SECRET: &str = "correct-horse-battery-staple";

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[tokio::test]
async fn secrets_are_neither_logged_nor_stored() {
    let mut house =
        House::furnished(vec![("auto_accept".into(), true.into()), ("auth_events".into(), true.into())], |dir| {
            std::fs::write(dir.join("pillar/top.sls"), "base:\n  '*': [common, broken]\n").unwrap();
            std::fs::write(dir.join("pillar/common.sls"), format!("password: {PILLAR_SECRET}\n")).unwrap();
            std::fs::write(dir.join("pillar/broken.sls"), format!("a: {PILLAR_SECRET}\nb: [\n")).unwrap();
        })
        .await;
    let mut minion = FakeMinion::start(house.requests, "secretive").await;
    house.subscribed().await;
    let pillar = minion.pillar().await;
    assert_eq!(pillar.get("password").and_then(Value::as_str), Some(PILLAR_SECRET));
    let mut secrets = vec![minion.access().session.clone(), minion.access().shared.clone()];
    // Every way to succeed and to fail, so that everything that could be said is said.
    house.ping(&["secretive"]).await;
    let job = minion.next_job().await;
    minion.return_for(&job, true).await;
    for cmd in METHODS {
        let bytes = minion.sealed(cmd, fields(cmd), &Forgery::default());
        minion.raw_request(bytes.clone()).await;
        minion.raw_request(bytes).await;
        for forgery in [
            Forgery { behind: 10_000, ..Forgery::default() },
            Forgery { token: Some(vec![1; 256]), ..Forgery::default() },
            Forgery { inner_id: Some("other".into()), ..Forgery::default() },
        ] {
            let _ = minion.forged_request(cmd, fields(cmd), &forgery).await;
        }
    }
    FakeMinion::connect_with(house.requests, "secretive", key_named("thief")).await.auth().await;
    FakeMinion::accepted(house.requests, "doomed").await;
    house.decide(KeyVerb::Delete, "doomed", &[]).await;
    minion.auth().await;
    secrets.push(minion.access().shared.clone());
    house.restart().await;

    let pem_line = |name: &str| key_named(name).to_pem().unwrap().lines().nth(3).unwrap().to_owned();
    let token = minion.key.token().unwrap();
    let mut needles: Vec<Vec<u8>> = secrets.iter().map(|key| key.as_str().as_bytes().to_vec()).collect();
    needles.push(PILLAR_SECRET.into());
    needles.push(pem_line("the server").into());
    needles.push(pem_line("secretive").into());
    needles.push(token.clone());
    needles.push(format!("{token:?}").into());
    let pki = house.dir.path().join("data/pki");
    let stored: Vec<_> =
        files_below(&house.dir.path().join("data")).into_iter().filter(|path| !path.starts_with(&pki)).collect();
    assert!(stored.iter().any(|path| path.ends_with("saltern.db")));
    for needle in &needles {
        let shown = String::from_utf8_lossy(&needle[..20]).into_owned();
        assert!(!logs::contain(needle), "{shown}… is in the log");
        for path in &stored {
            assert!(!contains(&std::fs::read(path).unwrap(), needle), "{shown}… is in {}", path.display());
        }
    }
    // That the log was captured at all.
    assert!(logs::contain(b"a replayed request was refused"));
}

#[tokio::test]
async fn the_servers_own_secrets_are_for_its_eyes_only() {
    let house = House::furnished(Vec::new(), |dir| std::fs::remove_dir_all(dir.join("data")).unwrap()).await;
    let data = house.dir.path().join("data");
    for folder in [data.clone(), data.join("pki")] {
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }
    let files = files_below(&data.join("pki"));
    assert!(["master.pem", "keys.json"].iter().all(|name| files.contains(&data.join("pki").join(name))));
    for path in files.into_iter().chain(files_below(&data.join("nonces"))) {
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
}
