//! `pillar.show_pillar`: the pillar of one minion.

use crate::salt::function::{Call, Function, Outcome, Trouble};
use saltern_core::ids::MinionId;

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "pillar.show_pillar",
    params: "minion, **kwargs",
    doc: "Shows the pillar of a minion.",
    secret: false,
    run: |call| Box::pin(show(call)),
}];

async fn show(call: Call) -> Outcome {
    let minion = call.given.required("minion")?;
    let minion = MinionId::new(&minion).map_err(|error| Trouble::Raised(error.to_string()))?;
    call.salt.app.pillar(&call.caller, &minion).await.map_err(|error| call.trouble(error))
}
