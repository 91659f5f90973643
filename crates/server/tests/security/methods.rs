//! Every command that only an accepted minion may use, with fields that make it do something.

use saltern_core::value::{Map, Value};

/// The commands. `crates/server/src/master/requests.rs` dispatches on the same list.
pub(crate) const METHODS: [&str; 26] = [
    "_return",
    "_minion_event",
    "_pillar",
    "_register_resources",
    "_master_opts",
    "_master_tops",
    "_mine",
    "_mine_get",
    "_mine_delete",
    "_mine_flush",
    "minion_pub",
    "minion_publish",
    "pub_ret",
    "minion_runner",
    "revoke_auth",
    "_file_recv",
    "_file_envs",
    "_file_list",
    "_dir_list",
    "_file_list_emptydirs",
    "_symlink_list",
    "_file_hash",
    "_file_find",
    "_file_hash_and_stat",
    "_serve_file",
    "_syndic_return",
];

/// What would be asked for.
pub(crate) fn fields(cmd: &str) -> Map {
    let fields: Vec<(&str, Value)> = match cmd {
        "_return" => vec![
            ("jid", "req".into()),
            ("fun", "test.ping".into()),
            ("fun_args", Value::List(Vec::new())),
            ("return", true.into()),
            ("retcode", 0.into()),
        ],
        "_minion_event" => vec![("tag", "custom/tag".into()), ("data", Value::map([("a", 1)])), ("pretag", Value::Nil)],
        "_pillar" => vec![("grains", Value::map([("os", "Debian")])), ("ver", "2".into())],
        "_mine" => vec![("data", Value::map([("network.ip_addrs", Value::list(["10.0.0.1"]))]))],
        "_mine_get" => vec![("tgt", "*".into()), ("fun", "network.ip_addrs".into())],
        "_mine_delete" => vec![("fun", "network.ip_addrs".into())],
        "minion_pub" | "minion_publish" => {
            vec![("tgt", "*".into()), ("fun", "test.ping".into()), ("arg", Value::List(Vec::new())), ("tmo", 0.into())]
        }
        "pub_ret" => vec![("jid", "20261115200427443183".into())],
        "minion_runner" => vec![("fun", "manage.up".into()), ("arg", Value::List(Vec::new()))],
        "_file_recv" => vec![("path", Value::list(["x"])), ("loc", 0.into()), ("data", "x".into()), ("size", 1.into())],
        _ => vec![("saltenv", "base".into()), ("path", "file".into()), ("prefix", "".into()), ("loc", 0.into())],
    };
    fields.into_iter().map(|(name, value)| (name.into(), value)).collect()
}
