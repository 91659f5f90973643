//! `minions.connected`: who is there.

use crate::salt::function::{Call, Function, Outcome};
use saltern_core::value::Value;
use saltern_server::Presence;

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "minions.connected",
    params: "",
    doc: "Lists the minions that are connected.",
    secret: false,
    run: |call| Box::pin(connected(call)),
}];

async fn connected(call: Call) -> Outcome {
    let minions = call.salt.app.minions(&call.caller, None).await.map_err(|error| call.trouble(error))?;
    let there = minions.iter().filter(|minion| matches!(minion.presence, Presence::Present(_)));
    Ok(Value::List(there.map(|minion| Value::from(&minion.id)).collect()))
}
