//! `state.*`: orchestration is not available yet, and is answered as an orchestration that was not found.

use crate::salt::function::{Call, Function, Outcome};
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "state.orchestrate",
        params: "mods=None, saltenv=base, test=None, exclude=None, pillar=None, **kwargs",
        doc: "Orchestration is not available on this server yet.",
        secret: false,
        run: |call| Box::pin(orchestrate(call)),
    },
    Function {
        name: "state.orch",
        params: "mods=None, saltenv=base, test=None, exclude=None, pillar=None, **kwargs",
        doc: "The same as state.orchestrate.",
        secret: false,
        run: |call| Box::pin(orchestrate(call)),
    },
    Function {
        name: "state.orchestrate_single",
        params: "fun=None, name=None, **kwargs",
        doc: "Orchestration is not available on this server yet.",
        secret: false,
        run: |call| Box::pin(single(call)),
    },
    Function {
        name: "state.orchestrate_show_sls",
        params: "mods=None, saltenv=base, **kwargs",
        doc: "Shows the orchestrations there are: none.",
        secret: false,
        run: |call| Box::pin(show_sls(call)),
    },
];

const NOT_YET: &str =
    "Orchestration is not available on this server yet; run its steps as jobs, or as a chain of actions";

fn by_master(call: &Call, value: Value) -> Value {
    Value::map([(call.salt.app.config().id.as_str(), value)])
}

async fn orchestrate(call: Call) -> Outcome {
    let told = by_master(&call, Value::list([NOT_YET]));
    Ok(Value::map([("data", told), ("outputter", "highstate".into()), ("retcode", 1.into())]))
}

async fn single(call: Call) -> Outcome {
    Ok(by_master(&call, Value::list([NOT_YET])))
}

async fn show_sls(call: Call) -> Outcome {
    Ok(by_master(&call, Value::Map(Map::new())))
}
