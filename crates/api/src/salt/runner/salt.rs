//! `salt.execute`: a function on minions, by way of a runner; with the rights of whoever calls it.

use crate::salt::function::{Call, Function, Outcome, Trouble};
use crate::salt::local;
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "salt.execute",
    params: "tgt, fun, arg=None, timeout=None, tgt_type=glob, ret=, jid=, kwarg=None, **kwargs",
    doc: "Calls a function on minions and waits for their answers.",
    secret: false,
    run: |call| Box::pin(execute(call)),
}];

async fn execute(call: Call) -> Outcome {
    let given = &call.given;
    let tgt = given.get("tgt").cloned().unwrap_or_default();
    let tgt_type = given.text("tgt_type")?.unwrap_or_else(|| "glob".into());
    let fun = given.required("fun")?;
    let args = match given.get("arg") {
        None => Vec::new(),
        Some(Value::List(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    };
    let mut kwargs: Map = given.extra.clone();
    if let Some(Value::Map(named)) = given.get("kwarg") {
        for (name, value) in named {
            kwargs.insert(name.clone(), value.clone());
        }
    }
    local::ask(&call, tgt, &tgt_type, &fun, args, kwargs).await.map_err(Trouble::Refused)
}
