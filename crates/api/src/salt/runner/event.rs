//! `event.send`: an event of one's own.

use crate::salt::function::{Call, Function, Outcome};
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "event.send",
    params: "tag, data=None",
    doc: "Puts an event into the log.",
    secret: false,
    run: |call| Box::pin(send(call)),
}];

async fn send(call: Call) -> Outcome {
    let tag = call.given.required("tag")?;
    let data = call.given.get("data").cloned().unwrap_or_else(|| Value::Map(Map::new()));
    call.salt.app.fire(&call.caller, &tag, data).await.map_err(|error| call.trouble(error))?;
    Ok(true.into())
}
