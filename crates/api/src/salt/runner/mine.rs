//! `mine.get`: what minions offer under one function.

use crate::salt::function::{Call, Function, Outcome, split};
use saltern_core::value::{Map, Value};
use saltern_server::Class;

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "mine.get",
    params: "tgt, fun, tgt_type=glob",
    doc: "Shows what minions offer in the mine under a function, or under several with commas between.",
    secret: false,
    run: |call| Box::pin(get(call)),
}];

async fn get(call: Call) -> Outcome {
    let funs = split(&call.given.required("fun")?);
    let Some(target) = call.given.target(None)? else { return Ok(Value::Map(Map::new())) };
    let mut by_fun = Map::new();
    for fun in &funs {
        let offered = match call.salt.app.mine(&call.caller, &target, fun).await {
            Ok(offered) => offered,
            Err(error) if error.class() == Class::NotFound => Vec::new(),
            Err(error) => return Err(call.trouble(error)),
        };
        let by_minion: Map = offered.into_iter().map(|(minion, value)| (Value::from(&minion), value)).collect();
        if let [_] = funs.as_slice() {
            return Ok(by_minion.into());
        }
        by_fun.insert(fun.as_str(), by_minion);
    }
    Ok(by_fun.into())
}
