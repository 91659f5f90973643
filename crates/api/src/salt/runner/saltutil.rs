//! `saltutil.sync_*`: nothing to do here, and the answer says so. This server loads no modules from its file roots; minions
//! sync theirs with the execution functions of the same names.

use crate::salt::function::Function;
use saltern_core::value::{Map, Value};

/// What Salt's masters can be extended with.
const KINDS: [&str; 24] = [
    "clouds",
    "modules",
    "states",
    "grains",
    "renderers",
    "returners",
    "output",
    "proxymodules",
    "runners",
    "wheel",
    "engines",
    "thorium",
    "queues",
    "pillar",
    "utils",
    "sdb",
    "cache",
    "fileserver",
    "tops",
    "tokens",
    "serializers",
    "executors",
    "wrapper",
    "roster",
];

const NONE: &str = "Syncs nothing: this server loads no modules from its file roots.";

const fn sync(name: &'static str) -> Function {
    Function {
        name,
        params: "saltenv=base, extmod_whitelist=None, extmod_blacklist=None",
        doc: NONE,
        secret: false,
        run: |_| Box::pin(async { Ok(Value::List(Vec::new())) }),
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "saltutil.sync_all",
        params: "saltenv=base, extmod_whitelist=None, extmod_blacklist=None",
        doc: NONE,
        secret: false,
        run: |_| Box::pin(async { Ok(Value::Map(nothing())) }),
    },
    sync("saltutil.sync_modules"),
    sync("saltutil.sync_states"),
    sync("saltutil.sync_grains"),
    sync("saltutil.sync_renderers"),
    sync("saltutil.sync_returners"),
    sync("saltutil.sync_output"),
    sync("saltutil.sync_runners"),
    sync("saltutil.sync_wheel"),
    sync("saltutil.sync_engines"),
    sync("saltutil.sync_pillar"),
    sync("saltutil.sync_utils"),
];

fn nothing() -> Map {
    KINDS.into_iter().map(|kind| (Value::from(kind), Value::List(Vec::new()))).collect()
}
