//! The same calls here and in a stock Salt on the same machine: whoever reads a return cannot tell the difference.

use super::testing::Bench;
use saltern_core::value::{Map, Value};
use std::path::PathBuf;

/// Calls functions given as JSON, `[[name, [args]], …]`, and prints their answers as JSON.
const CALLER: &str = "
import json, sys, salt.client, salt.config
opts = salt.config.minion_config(sys.argv[1])
opts['file_client'] = 'local'
caller = salt.client.Caller(mopts=opts)
print(json.dumps([caller.cmd(name, *args) for name, args in json.loads(sys.argv[2])]))
";

/// The Python of the stock Salt of this line, where the tests' set-up has put it.
fn stock_python() -> Option<PathBuf> {
    let cache = std::env::var_os("SALTERN_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/saltern")))?;
    let (major, minor) = crate::grains::SALT_RELEASE;
    Some(cache.join(format!("salt-{major}.{minor}/bin/python"))).filter(|path| path.exists())
}

fn ask_stock(python: &PathBuf, calls: &[(&str, Vec<Value>)]) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("minion");
    std::fs::write(&conf, format!("id: m1\nroot_dir: {}\nfile_client: local\n", dir.path().display())).unwrap();
    let calls =
        Value::list(calls.iter().map(|(name, args)| Value::list([Value::from(*name), Value::List(args.clone())])));
    let output = std::process::Command::new(python)
        .args(["-W", "ignore", "-c", CALLER])
        .arg(&conf)
        .arg(serde_json::to_string(&calls).unwrap())
        .output()
        .unwrap();
    let answers: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    answers.as_list().unwrap().to_vec()
}

#[tokio::test]
async fn functions_answer_as_those_of_a_stock_minion() {
    let Some(python) = stock_python() else {
        eprintln!("SKIPPED: stock Salt is not installed, so functions were not compared with its own");
        return;
    };
    let text = |text: &str| Value::from(text);
    let mut calls = vec![
        ("group.getent", vec![]),
        ("group.info", vec![text("root")]),
        ("mount.active", vec![]),
        ("network.get_hostname", vec![]),
        ("network.hw_addr", vec![text("lo")]),
        ("network.hw_addr", vec![text("nope")]),
        ("network.interface", vec![text("lo")]),
        ("network.interface_ip", vec![text("lo")]),
        ("network.interfaces", vec![]),
        ("network.ip_addrs", vec![]),
        ("network.ip_addrs6", vec![]),
        ("network.subnets", vec![]),
        ("network.subnets6", vec![]),
        ("status.nproc", vec![]),
        ("status.version", vec![]),
        ("sysctl.get", vec![text("kernel.ostype")]),
        ("user.getent", vec![]),
        ("user.info", vec![text("root")]),
        ("user.list_groups", vec![text("root")]),
        ("user.list_users", vec![]),
        ("user.primary_group", vec![text("root")]),
    ];
    if super::find_program("netstat").is_some() {
        // Without it stock Salt asks another program, and tells IPv6 routes differently.
        calls.extend([("network.default_route", vec![]), ("network.routes", vec![])]);
    }
    if super::find_program("dpkg-query").is_some() {
        calls.extend([
            ("pkg.list_pkgs", vec![]),
            ("pkg.version", vec![text("dpkg"), text("no-such-package")]),
            ("pkg.owner", vec![text("/usr/bin/dpkg-query"), text("/no/such/file")]),
            ("pkg.file_list", vec![text("dpkg")]),
            ("pkg.version_cmp", vec![text("1.0-1"), text("1.0-1+b1")]),
            ("pkg.get_selections", vec![text("dpkg")]),
            ("pkg.info_installed", vec![text("dpkg")]),
        ]);
    }
    let stock = ask_stock(&python, &calls);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = Map::new();
    settings.insert("id", "m1");
    settings.insert("data_dir", dir.path().to_str().unwrap());
    let grains = crate::grains::collect(&crate::Config::load(None, settings).unwrap());
    let bench = Bench::with(Map::new(), grains, Map::new());
    let mut differing = Vec::new();
    for ((name, args), stock) in calls.iter().zip(stock) {
        let ours = bench.call(name, args, &[]).await;
        if ours != stock {
            differing.push(format!("{name} {args:?}\n  stock {stock:?}\n  ours  {ours:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
