//! `mine.*`: values that minions leave with the master for each other.

use super::call::Answer;
use super::{Call, Failure, Function, Param, config, find};
use crate::jobs::call_one;
use futures_util::FutureExt;
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use std::time::Duration;

/// How long the master is given.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "mine.delete",
        params: &[Param::Required("fun")],
        doc: "Remove one value of this minion from the mine.\n\n\
              CLI Example:\n\n    saltern run '*' mine.delete network.ip_addrs\n",
        run: |call| {
            async move {
                let mut load = Map::new();
                load.push("fun", call.text("fun")?);
                ask(&call, "_mine_delete", load).await?;
                Ok(true.into())
            }
            .boxed()
        },
    },
    Function {
        name: "mine.flush",
        params: &[],
        doc: "Remove all values of this minion from the mine.\n\nCLI Example:\n\n    saltern run '*' mine.flush\n",
        run: |call| {
            async move {
                ask(&call, "_mine_flush", Map::new()).await?;
                Ok(true.into())
            }
            .boxed()
        },
    },
    Function {
        name: "mine.get",
        params: &[
            Param::Required("tgt"),
            Param::Required("fun"),
            Param::Optional("tgt_type", "'glob'"),
            Param::Optional("exclude_minion", "False"),
        ],
        doc: "Give what other minions have left in the mine: a map of minions to values, or, for several functions, of \
              functions to such maps.\n\n\
              exclude_minion\n    whether this minion's own value is left out\n\n\
              CLI Example:\n\n    saltern run '*' mine.get 'os:Debian' network.ip_addrs tgt_type=grain\n",
        run: |call| async move { get(&call).await }.boxed(),
    },
    Function {
        name: "mine.send",
        params: &[Param::Required("name"), Param::Rest("args"), Param::Keywords("kwargs")],
        doc: "Call a function and leave its value in the mine.\n\n\
              mine_function\n    the function, where 'name' is to be another name for its value\n\
              allow_tgt, allow_tgt_type\n    which minions may read it\n\n\
              CLI Example:\n\n    saltern run '*' mine.send eth0_ip mine_function=network.ip_addrs eth0\n",
        run: |call| async move { send(&call).await }.boxed(),
    },
    Function {
        name: "mine.update",
        params: &[Param::Optional("clear", "False"), Param::Optional("mine_functions", "None")],
        doc: "Call all functions of the setting mine_functions and leave their values in the mine.\n\n\
              clear\n    whether what was there before is removed\n\
              mine_functions\n    other functions, as a map or a list\n\n\
              CLI Example:\n\n    saltern run '*' mine.update\n",
        run: |call| async move { update(&call).await }.boxed(),
    },
    Function {
        name: "mine.valid",
        params: &[],
        doc: "Give the part of the setting mine_functions whose functions exist.\n\n\
              CLI Example:\n\n    saltern run '*' mine.valid\n",
        run: |call| call.at_once(valid),
    },
];

/// One entry of `mine_functions`, taken apart.
struct Entry {
    /// The function, where the entry's name is another name for it
    function: Option<String>,
    args: Vec<Value>,
    kwargs: Map,
    readers: Map,
}

impl Entry {
    fn read(definition: &Value) -> Self {
        let (mut args, mut kwargs) = (Vec::new(), Map::new());
        let parts = match definition {
            Value::List(parts) => parts.as_slice(),
            Value::Map(_) => std::slice::from_ref(definition),
            _ => &[],
        };
        for part in parts {
            match part {
                Value::Map(map) => {
                    map.iter().for_each(|(name, value)| drop(kwargs.insert(name.clone(), value.clone())))
                }
                value => args.push(value.clone()),
            }
        }
        Self::new(args, kwargs)
    }

    fn new(args: Vec<Value>, mut kwargs: Map) -> Self {
        let function = kwargs.remove("mine_function").map(|name| python_text(&name).into_owned());
        let mut readers = Map::new();
        for key in ["allow_tgt", "allow_tgt_type"] {
            if let Some(value) = kwargs.remove(key).filter(Value::is_truthy) {
                readers.push(key, value);
            }
        }
        Self { function, args, kwargs, readers }
    }

    /// What is left in the mine; nothing if the function does not exist or fails.
    async fn value(self, call: &Call, alias: &str) -> Option<Value> {
        let name = self.function.as_deref().unwrap_or(alias);
        let mut arguments = self.args;
        if !self.kwargs.is_empty() {
            let mut kwargs = self.kwargs;
            kwargs.insert("__kwarg__", true);
            arguments.push(kwargs.into());
        }
        let (outcome, trouble) = call_one(name, &arguments, &call.context).await;
        if trouble.is_some() {
            tracing::warn!(function = name, "a function of the mine failed");
            return None;
        }
        if self.readers.get("allow_tgt").is_none() {
            return Some(outcome.value);
        }
        let mut guarded = Map::new();
        guarded.push("__data__", outcome.value);
        guarded.push("__saltmine_acl__", 1);
        self.readers.into_iter().for_each(|(key, value)| guarded.push(key, value));
        Some(guarded.into())
    }
}

async fn send(call: &Call) -> Answer {
    let name = call.text("name")?;
    let kwargs = call.keywords().map(|(name, value)| (Value::from(name), value.clone())).collect();
    let entry = Entry::new(call.rest().to_vec(), kwargs);
    let Some(value) = entry.value(call, &name).await else { return Ok(false.into()) };
    let mut data = Map::new();
    data.push(name, value);
    store(call, data, false).await
}

async fn update(call: &Call) -> Answer {
    let functions = match call.get("mine_functions").filter(|value| value.is_truthy()) {
        Some(Value::Map(map)) => map.clone(),
        Some(Value::List(names)) => names.iter().map(|name| (name.clone(), Map::new().into())).collect(),
        Some(_) => return Ok(Value::Nil.into()),
        None => configured(call),
    };
    if functions.is_empty() {
        return Ok(Value::Nil.into());
    }
    let mut data = Map::new();
    for (alias, definition) in &functions {
        let alias = python_text(alias);
        if let Some(value) = Entry::read(definition).value(call, &alias).await {
            data.insert(alias.into_owned(), value);
        }
    }
    store(call, data, call.flag("clear", false)).await
}

fn valid(call: &Call) -> Answer {
    let functions = configured(call);
    if functions.is_empty() {
        return Ok(Value::Nil.into());
    }
    let mut valid = Map::new();
    for (alias, definition) in &functions {
        let entry = Entry::read(definition);
        if find(entry.function.as_deref().unwrap_or(&python_text(alias))).is_none() {
            continue;
        }
        let shown = match entry.function {
            None => definition.clone(),
            Some(function) => {
                let kwargs = entry.kwargs.into_iter().map(|(name, value)| Value::Map(Map::from_iter([(name, value)])));
                Value::map([(function, Value::List(entry.args.into_iter().chain(kwargs).collect()))])
            }
        };
        valid.insert(alias.clone(), shown);
    }
    Ok(valid.into())
}

fn configured(call: &Call) -> Map {
    config::merged(call, "mine_functions").and_then(|value| value.as_map().cloned()).unwrap_or_default()
}

async fn store(call: &Call, data: Map, clear: bool) -> Answer {
    let mut load = Map::new();
    load.push("data", data);
    load.push("clear", clear);
    ask(call, "_mine", load).await?;
    Ok(true.into())
}

async fn get(call: &Call) -> Answer {
    let mut load = Map::new();
    load.push("tgt", call.get("tgt").cloned().unwrap_or_default());
    load.push("fun", call.get("fun").cloned().unwrap_or_default());
    load.push("tgt_type", call.opt_text("tgt_type")?.unwrap_or_else(|| "glob".into()));
    let mut answer = ask(call, "_mine_get", load).await?;
    if call.flag("exclude_minion", false)
        && let Value::Map(values) = &mut answer
    {
        values.remove(&call.context.id);
    }
    Ok(answer.into())
}

async fn ask(call: &Call, what: &str, mut load: Map) -> Result<Value, Failure> {
    load.insert("cmd", what);
    load.insert("id", &*call.context.id);
    let answer = call.context.link()?.request_apart(load, PATIENCE).await;
    answer.map_err(|error| Failure::Command(format!("the master did not answer {what}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, map};
    use saltern_render::yaml::load;

    fn bench() -> Bench {
        let opts = "mine_functions:
              test.ping: []
              greeting: [{mine_function: test.echo}, hello]
              no.such: []
              guarded: {mine_function: test.echo, text: x, allow_tgt: 'web*', allow_tgt_type: glob}";
        let Value::Map(opts) = load(opts).unwrap() else { panic!("not a map") };
        Bench::with(opts, Map::new(), map([("mine_functions", Value::map([("test.true", Value::List(vec![]))]))]))
    }

    #[tokio::test]
    async fn functions_that_exist_are_valid() {
        let expected =
            "{test.ping: [], greeting: {test.echo: [hello]}, guarded: {test.echo: [{text: x}]}, test.true: []}";
        assert_eq!(bench().call("mine.valid", &[], &[]).await, load(expected).unwrap());
        assert_eq!(Bench::new().call("mine.valid", &[], &[]).await, Value::Nil);
        assert_eq!(Bench::new().call("mine.update", &[], &[]).await, Value::Nil);
    }

    #[tokio::test]
    async fn entries_are_called_and_guarded() {
        let bench = bench();
        let call = Call::bind(find("mine.valid").unwrap(), bench.context.clone(), vec![], Map::new()).unwrap();
        let functions = configured(&call);
        let value = async |alias: &str| Entry::read(functions.get(alias).unwrap()).value(&call, alias).await;
        assert_eq!(value("test.ping").await, Some(true.into()));
        assert_eq!(value("greeting").await, Some("hello".into()));
        assert_eq!(value("no.such").await, None);
        let expected = "{__data__: x, __saltmine_acl__: 1, allow_tgt: 'web*', allow_tgt_type: glob}";
        assert_eq!(value("guarded").await, Some(load(expected).unwrap()));
    }

    #[tokio::test]
    async fn without_a_master_there_is_no_mine() {
        let text = bench().fail("mine.get", &["*".into(), "test.ping".into()], &[]).await;
        assert_eq!(text, "ERROR: there is no master: this is a local call");
        assert_eq!(bench().call("mine.send", &["no.such".into()], &[]).await, false.into());
    }
}
