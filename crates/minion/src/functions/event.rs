//! `event.*`: tell the master that something has happened.

use super::call::Answer;
use super::{Call, Context, Failure, Function, Param};
use crate::jobs::event_load;
use futures_util::FutureExt;
use saltern_core::ids::MinionId;
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use std::time::Duration;

/// How long the master is given to confirm an event.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "event.fire",
        params: &[Param::Required("data"), Param::Required("tag")],
        doc: "Fire an event on this machine. This agent has no bus of its own that anybody could listen to, so the \
              answer is always False; event.send reaches the master.\n\n\
              CLI Example:\n\n    saltern run '*' event.fire '{\"data\": \"here\"}' 'tag'\n",
        run: |call| call.at_once(|_| Ok(false.into())),
    },
    Function {
        name: "event.fire_master",
        params: &[Param::Required("data"), Param::Required("tag"), Param::Optional("preload", "None")],
        doc: "Fire an event on the master.\n\n\
              CLI Example:\n\n    saltern run '*' event.fire_master '{\"data\": \"here\"}' 'my/tag'\n",
        run: |call| {
            async move {
                let data = call.given("data").cloned().unwrap_or_default();
                fire(&call.context, &call.text("tag")?, data, call.get("preload")).await
            }
            .boxed()
        },
    },
    Function {
        name: "event.send",
        params: &[
            Param::Required("tag"),
            Param::Optional("data", "None"),
            Param::Optional("preload", "None"),
            Param::Optional("with_env", "False"),
            Param::Optional("with_grains", "False"),
            Param::Optional("with_pillar", "False"),
            Param::Optional("with_env_opts", "False"),
            Param::Keywords("kwargs"),
        ],
        doc: "Send an event to the master; further keyword arguments become its data.\n\n\
              with_env, with_grains, with_pillar\n    what goes along: all of it (True), or the names of a list\n\
              with_env_opts\n    whether saltenv and pillarenv go along\n\n\
              CLI Example:\n\n    saltern run '*' event.send 'my/tag' code=42 with_grains='[os, id]'\n",
        run: |call| {
            async move { fire(&call.context, &call.text("tag")?, body(&call).into(), call.get("preload")).await }
                .boxed()
        },
    },
];

fn body(call: &Call) -> Map {
    let mut body = Map::new();
    let environment = || std::env::vars().map(|(name, value)| (name.into(), value.into())).collect();
    let mut take = |param: &str, name: &str, all: &dyn Fn() -> Map| match call.get(param) {
        Some(Value::List(names)) => {
            let all = all();
            let chosen: Map = all.into_iter().filter(|(name, _)| names.contains(name)).collect();
            body.insert(name, chosen);
        }
        Some(value) if value.is_truthy() => drop(body.insert(name, all())),
        _ => {}
    };
    take("with_env", "environ", &environment);
    take("with_grains", "grains", &|| (*call.context.grains()).clone());
    take("with_pillar", "pillar", &|| (*call.context.pillar()).clone());
    if call.flag("with_env_opts", false) {
        let opt = |key: &str| call.context.opts.get(key).cloned();
        body.insert("saltenv", opt("saltenv").unwrap_or_else(|| "base".into()));
        body.insert("pillarenv", opt("pillarenv").unwrap_or_default());
    }
    for (name, value) in call.keywords() {
        body.insert(name, value.clone());
    }
    for (name, value) in call.get("data").and_then(Value::as_map).into_iter().flatten() {
        body.insert(name.clone(), value.clone());
    }
    body
}

/// Sends an event and waits until the master has it; `False` if there is none or it does not answer.
async fn fire(context: &Context, tag: &str, data: Value, preload: Option<&Value>) -> Answer {
    let Some(link) = &context.link else { return Ok(false.into()) };
    let id = MinionId::new(&context.id).map_err(|error| Failure::Exception(error.to_string()))?;
    let mut load = event_load(&id, tag, data);
    for (name, value) in preload.and_then(Value::as_map).into_iter().flatten() {
        // Who speaks, and in which message, is not the caller's to say.
        if !matches!(&*python_text(name), "id" | "cmd" | "tok" | "nonce" | "ts") {
            load.insert(name.clone(), value.clone());
        }
    }
    match link.request(load, PATIENCE).await {
        Ok(_) => Ok(true.into()),
        Err(error) => {
            tracing::warn!(tag, %error, "an event could not be sent");
            Ok(false.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::find;
    use crate::functions::testing::{Bench, map};

    #[test]
    fn the_data_is_put_together_from_what_is_asked_for() {
        let bench = Bench::with(Map::new(), map([("os", "X".into()), ("id", "m1".into())]), map([("p", 1.into())]));
        let kwargs = map([
            ("data", Value::map([("x", "data")])),
            ("with_grains", Value::list(["os"])),
            ("with_pillar", true.into()),
            ("with_env_opts", true.into()),
            ("x", "keyword".into()),
            ("y", 2.into()),
            ("__pub_jid", "1".into()),
        ]);
        let function = find("event.send").unwrap();
        let call = Call::bind(function, bench.context.clone(), vec!["tag".into()], kwargs).unwrap();
        let expected = [
            ("grains", Value::map([("os", "X")])),
            ("pillar", Value::map([("p", 1)])),
            ("saltenv", "base".into()),
            ("pillarenv", Value::Nil),
            ("x", "data".into()),
            ("y", 2.into()),
        ];
        assert_eq!(Value::Map(body(&call)), map(expected).into());
    }

    #[tokio::test]
    async fn without_a_master_nothing_is_sent() {
        assert_eq!(Bench::new().call("event.send", &["tag".into()], &[]).await, false.into());
        assert_eq!(Bench::new().call("event.fire", &[1.into(), "tag".into()], &[]).await, false.into());
    }
}
