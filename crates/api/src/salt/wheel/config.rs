//! `config.values`: what clients may know of the configuration, and nothing with a secret in it.

use crate::salt::Salt;
use crate::salt::function::{Call, Function, Outcome};
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "config.values",
    params: "",
    doc: "Shows the settings that are meant for clients: the id, nodegroups, timeouts and everything that begins with saltgui_.",
    secret: false,
    run: |call| Box::pin(values(call)),
}];

async fn values(call: Call) -> Outcome {
    Ok(shown_config(&call.salt).into())
}

/// The settings that clients may see.
pub(in crate::salt) fn shown_config(salt: &Salt) -> Map {
    let config = salt.app.config();
    let mut shown = Map::from_iter([
        ("id".into(), Value::from(config.id.as_str())),
        ("timeout".into(), config.timeout.as_secs().into()),
        ("gather_job_timeout".into(), config.gather_job_timeout.as_secs().into()),
        ("publish_port".into(), config.publish_port.into()),
        ("ret_port".into(), config.ret_port.into()),
        ("nodegroups".into(), config.nodegroups_value.clone()),
    ]);
    for (name, value) in &config.shown {
        shown.insert(name.clone(), value.clone());
    }
    shown
}
