//! `doc.*`: what functions there are. Those of the server are in its tables; minions are asked for theirs.

use crate::salt::function::{Call, Function, Outcome, Trouble};
use crate::salt::local;
use crate::salt::{runner, wheel};
use saltern_core::value::{Map, Value};
use std::collections::BTreeMap;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "doc.runner",
        params: "",
        doc: "Explains the runner functions.",
        secret: false,
        run: |_| Box::pin(async { Ok(explained(runner::all())) }),
    },
    Function {
        name: "doc.wheel",
        params: "",
        doc: "Explains the wheel functions.",
        secret: false,
        run: |_| Box::pin(async { Ok(explained(wheel::all())) }),
    },
    Function {
        name: "doc.execution",
        params: "",
        doc: "Explains the execution functions: asks all connected minions for `sys.doc`.",
        secret: false,
        run: |call| Box::pin(execution(call)),
    },
];

fn explained(functions: impl Iterator<Item = &'static Function>) -> Value {
    let mut all: Vec<&Function> = functions.collect();
    all.sort_by_key(|function| function.name);
    Value::Map(all.into_iter().map(|function| (Value::from(function.name), function.text().into())).collect())
}

async fn execution(call: Call) -> Outcome {
    let answers =
        local::ask(&call, "*".into(), "glob", "sys.doc", Vec::new(), Map::new()).await.map_err(Trouble::Refused)?;
    let mut all: BTreeMap<String, &Value> = BTreeMap::new();
    for docs in answers.as_map().into_iter().flat_map(Map::values).filter_map(Value::as_map) {
        for (name, doc) in docs {
            // The first minion that has a function explains it.
            all.entry(name.key_text().into_owned()).or_insert(doc);
        }
    }
    Ok(Value::map(all.into_iter().map(|(name, doc)| (name, doc.clone()))))
}
