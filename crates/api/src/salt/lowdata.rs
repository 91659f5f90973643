//! Low data: what clients post, read as a whole before any of it is done.
//!
//! An element that makes no sense refuses the request; none of its neighbours has run by then. Unknown keys mean nothing for
//! the `local` family and are keyword arguments for runners and wheel functions, as with salt-api. Nulls mean "not given":
//! pepper sends `"batch": null`.

use super::error::{Failure, Voice};
use super::words;
use saltern_core::action::{Batch, Size};
use saltern_core::target::{Target, TargetError, python_text};
use saltern_core::value::{Map, Value};
use std::time::Duration;

/// The names of clients, as `GET /` lists them.
pub(super) const CLIENTS: [&str; 9] =
    ["local", "local_async", "local_batch", "local_subset", "runner", "runner_async", "ssh", "wheel", "wheel_async"];

/// Most elements of one request.
const MOST_ELEMENTS: usize = 1_000;

/// Most keys of an element, and most arguments of a function.
const MOST_ARGUMENTS: usize = 2_000;

/// The longest time that can be asked for.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Low {
    /// For minions
    Local(Local),
    /// For the server's own functions
    Master(Master),
}

/// A command for minions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Local {
    pub(super) manner: Manner,
    /// Nothing where the type is not known: it matches nobody, as with salt-api
    pub(super) target: Option<Target>,
    pub(super) funs: Vec<String>,
    /// For several functions one list each
    pub(super) args: Vec<Value>,
    pub(super) kwargs: Map,
    pub(super) timeout: Option<Duration>,
    pub(super) gather: Option<Duration>,
    pub(super) full_return: bool,
    /// Whole return events instead of values, for batches
    pub(super) raw: bool,
    pub(super) ret: String,
    pub(super) metadata: Option<Map>,
}

/// How minions are asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Manner {
    /// And waited for
    Wait,
    /// And not waited for
    Async,
    /// So many of them, at random
    Subset(usize),
    /// Some at a time
    Batch {
        batch: Batch,
        /// Stop at the first failure
        failhard: bool,
    },
}

/// A call of one of the server's own functions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Master {
    pub(super) house: House,
    /// Answer at once; the result is in the event
    pub(super) background: bool,
    pub(super) fun: String,
    pub(super) args: Vec<Value>,
    pub(super) kwargs: Map,
    pub(super) full_return: bool,
    pub(super) timeout: Option<Duration>,
}

/// The two families of the server's own functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum House {
    /// `salt-run`
    Runner,
    /// `salt-wheel`
    Wheel,
}

impl House {
    /// Its name, as in `runner.jobs.active`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::Wheel => "wheel",
        }
    }
}

impl Low {
    /// Whose words refusals of it are told in.
    pub(super) const fn voice(&self) -> Voice {
        match self {
            Self::Local(_) => Voice::Local,
            Self::Master(_) => Voice::Master,
        }
    }
}

/// The elements of a body: one object, or a list of objects.
pub(super) fn elements(body: Value) -> Result<Vec<Map>, Failure> {
    let items = match body {
        Value::Map(map) if !map.is_empty() => vec![Value::Map(map)],
        Value::List(items) => items,
        _ => return Err(Failure::invalid("Lowstates must be a list")),
    };
    if items.len() > MOST_ELEMENTS {
        return Err(Failure::invalid(format!("one request has at most {MOST_ELEMENTS} commands")));
    }
    let element = |(n, item): (usize, Value)| match item {
        Value::Map(map) => Ok(map),
        _ => Err(Failure::invalid(format!("Lowstates must be a list of objects; number {} is not one", n + 1))),
    };
    items.into_iter().enumerate().map(element).collect()
}

/// Reads one element. `enabled` are the clients that may be used; nothing: all.
pub(super) fn read(low: &Map, enabled: Option<&[String]>) -> Result<Low, Failure> {
    let many = |value: &Value| match value {
        Value::List(items) => items.len() > MOST_ARGUMENTS,
        Value::Map(map) => map.len() > MOST_ARGUMENTS,
        _ => false,
    };
    if low.len() > MOST_ARGUMENTS || ["arg", "kwarg"].iter().any(|key| low.get(key).is_some_and(many)) {
        return Err(Failure::invalid(format!("a command has at most {MOST_ARGUMENTS} arguments")));
    }
    let client = low.get("client").cloned().unwrap_or_default();
    let unknown = || Failure::invalid(format!("Invalid client specified: '{}'", python_text(&client)));
    let client = client.as_str().filter(|name| CLIENTS.contains(name)).ok_or_else(unknown)?;
    if enabled.is_some_and(|enabled| !enabled.iter().any(|name| name == client)) {
        return Err(Failure::invalid(format!(
            "Client disabled: '{client}'. Add to 'netapi_enable_clients' master config option to enable."
        )));
    }
    let manner = match client {
        "local" => Manner::Wait,
        "local_async" => Manner::Async,
        "local_subset" => Manner::Subset(subset(low)?),
        "local_batch" => Manner::Batch { batch: batch(low)?, failhard: flag(low, "failhard") },
        "runner" => return master(low, House::Runner, false).map(Low::Master),
        "runner_async" => return master(low, House::Runner, true).map(Low::Master),
        "wheel" => return master(low, House::Wheel, false).map(Low::Master),
        "wheel_async" => return master(low, House::Wheel, true).map(Low::Master),
        _ => return Err(Failure::invalid("the client 'ssh' is not available: this server has no SSH minions yet")),
    };
    local(low, client, manner).map(Low::Local)
}

fn local(low: &Map, client: &str, manner: Manner) -> Result<Local, Failure> {
    let tgt = given(low, "tgt").ok_or_else(|| Failure::invalid(format!("{client} takes a target: send 'tgt'")))?;
    let (funs, args, kwargs) = functions(low, client)?;
    // Whoever chooses a job's id could make it look like another one, or never find it again.
    if given(low, "jid").is_some_and(Value::is_truthy) {
        return Err(Failure::invalid("'jid' cannot be chosen: the server gives each job its own, see the reply"));
    }
    Ok(Local {
        manner,
        target: target(low, tgt)?,
        funs,
        args,
        kwargs,
        timeout: seconds(low, "timeout")?,
        gather: seconds(low, "gather_job_timeout")?,
        full_return: flag(low, "full_return"),
        raw: flag(low, "raw"),
        ret: texts(low, "ret")?.join(","),
        metadata: object(low, "metadata")?,
    })
}

fn target(low: &Map, tgt: &Value) -> Result<Option<Target>, Failure> {
    let kind = given(low, "tgt_type").or_else(|| given(low, "expr_form"));
    let kind = match kind {
        Some(kind) => kind.as_str().ok_or_else(|| Failure::invalid("'tgt_type' is text"))?,
        // A list of ids can only be that.
        None if tgt.as_list().is_some() => "list",
        None => "glob",
    };
    let delimiter = match given(low, "delimiter") {
        Some(delimiter) => Some(delimiter.as_str().ok_or_else(|| Failure::invalid("'delimiter' is text"))?),
        None => None,
    };
    match Target::read(kind, tgt, delimiter) {
        Ok(target) => Ok(Some(target)),
        Err(TargetError::UnknownType(_)) => Ok(None),
        Err(error) => Err(Failure::invalid(error.to_string())),
    }
}

type Functions = (Vec<String>, Vec<Value>, Map);

fn functions(low: &Map, client: &str) -> Result<Functions, Failure> {
    let kwargs = object(low, "kwarg")?.unwrap_or_default();
    let args = list(low, "arg");
    match given(low, "fun") {
        Some(Value::Text(fun)) if !fun.is_empty() => {
            let (args, kwargs) = words::sort(args, kwargs);
            Ok((vec![fun.to_string()], args, kwargs))
        }
        Some(Value::List(funs)) if !funs.is_empty() => {
            let names: Option<Vec<String>> = funs.iter().map(|fun| fun.as_str().map(str::to_owned)).collect();
            let names = names.ok_or_else(|| Failure::invalid("'fun' is a function or a list of functions"))?;
            // One function in a list may have its arguments as a plain list, too.
            if let [_] = names.as_slice()
                && !matches!(args.as_slice(), [Value::List(_)])
            {
                let (args, kwargs) = words::sort(args, kwargs);
                return Ok((names, args, kwargs));
            }
            if !kwargs.is_empty() {
                return Err(Failure::invalid("several functions take their keyword arguments in 'arg', as \"k=v\""));
            }
            several(names, args)
        }
        _ => Err(Failure::invalid(format!("{client} takes a function: send 'fun'"))),
    }
}

/// The arguments of several functions: one list each, missing ones are empty.
fn several(names: Vec<String>, mut args: Vec<Value>) -> Result<Functions, Failure> {
    if args.is_empty() {
        args = vec![Value::List(Vec::new()); names.len()];
    }
    if args.len() != names.len() {
        return Err(Failure::invalid("several functions take one list of arguments each in 'arg'"));
    }
    let mut lists = Vec::with_capacity(args.len());
    for arg in args {
        let Value::List(items) = arg else {
            return Err(Failure::invalid("several functions take one list of arguments each in 'arg'"));
        };
        let (mut items, mut kwargs) = words::sort(items, Map::new());
        if !kwargs.is_empty() {
            kwargs.insert("__kwarg__", true);
            items.push(kwargs.into());
        }
        lists.push(Value::List(items));
    }
    if let [_] = names.as_slice()
        && let Some(Value::List(items)) = lists.pop()
    {
        let (items, kwargs) = words::sort(items, Map::new());
        return Ok((names, items, kwargs));
    }
    Ok((names, lists, Map::new()))
}

/// What is never an argument of a runner or wheel function: it is about the call, not for it.
const RESERVED: [&str; 13] = [
    "client",
    "fun",
    "arg",
    "kwarg",
    "token",
    "username",
    "password",
    "eauth",
    "user",
    "key",
    "timeout",
    "full_return",
    "print_event",
];

fn master(low: &Map, house: House, background: bool) -> Result<Master, Failure> {
    let missing = || Failure::invalid(format!("{} takes at least 1 argument (0 given)", house.as_str()));
    let fun = given(low, "fun").and_then(Value::as_str).filter(|fun| !fun.is_empty()).ok_or_else(missing)?;
    if house == House::Wheel && !fun.contains('.') {
        return Err(Failure::invalid("A command invocation error occurred: Check syntax."));
    }
    let (args, mut kwargs) = words::sort(list(low, "arg"), object(low, "kwarg")?.unwrap_or_default());
    for (name, value) in low {
        let is_argument = name.as_str().is_some_and(|name| !RESERVED.contains(&name) && !name.starts_with("__"));
        if is_argument && kwargs.find(name).is_none() {
            kwargs.push(name.clone(), value.clone());
        }
    }
    Ok(Master {
        house,
        background,
        fun: fun.to_owned(),
        args,
        kwargs,
        full_return: flag(low, "full_return"),
        timeout: seconds(low, "timeout")?,
    })
}

fn subset(low: &Map) -> Result<usize, Failure> {
    let Some(wanted) = given(low, "subset").or_else(|| given(low, "sub")) else { return Ok(3) };
    let number = whole(wanted).and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or_else(|| Failure::invalid("'subset' is a number of minions above 0"))
}

fn batch(low: &Map) -> Result<Batch, Failure> {
    let size = match given(low, "batch") {
        None => Size::Percent(10),
        Some(wanted) => batch_size(wanted).ok_or_else(|| {
            Failure::invalid(format!(
                "Invalid batch specification '{}': must be an integer or percentage string like '10' or '25%'.",
                python_text(wanted)
            ))
        })?,
    };
    Ok(Batch { size, wait: seconds(low, "batch_wait")?.unwrap_or_default() })
}

fn batch_size(wanted: &Value) -> Option<Size> {
    if let Some(percent) = wanted.as_str().and_then(|text| text.trim().strip_suffix('%')) {
        let percent: f64 = percent.trim().parse().ok()?;
        // Half a percent of a fleet is still somebody.
        return (percent > 0.0 && percent <= 100.0).then(|| Size::Percent(percent.ceil() as u8));
    }
    whole(wanted).and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0).map(Size::Count)
}

/// What stands under a key, unless it is null.
pub(super) fn given<'a>(low: &'a Map, key: &str) -> Option<&'a Value> {
    low.get(key).filter(|value| !value.is_nil())
}

/// Text under a key.
pub(super) fn text<'a>(low: &'a Map, key: &str) -> Option<&'a str> {
    given(low, key).and_then(Value::as_str)
}

/// Whether a key is set; forms have nothing but text, so `false` in words is false.
pub(super) fn flag(low: &Map, key: &str) -> bool {
    given(low, key).is_some_and(is_set)
}

/// Whether a value means yes.
pub(super) fn is_set(value: &Value) -> bool {
    match value.as_str() {
        Some(text) => !matches!(text.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off" | "none"),
        None => value.is_truthy(),
    }
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A number of seconds under a key; 0 means as configured.
pub(super) fn seconds(low: &Map, key: &str) -> Result<Option<Duration>, Failure> {
    let Some(value) = given(low, key) else { return Ok(None) };
    let number = match value {
        Value::Float(float) => Some(*float),
        Value::Text(text) if text.trim().is_empty() => return Ok(None),
        Value::Text(text) => text.trim().parse().ok(),
        other => other.as_i64().map(|number| number as f64),
    };
    let wrong = || Failure::invalid(format!("'{key}' is a number of seconds"));
    let time = Duration::try_from_secs_f64(number.ok_or_else(wrong)?).map_err(|_| wrong())?.min(LONGEST);
    Ok((!time.is_zero()).then_some(time))
}

fn list(low: &Map, key: &str) -> Vec<Value> {
    match given(low, key) {
        None => Vec::new(),
        Some(Value::List(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    }
}

fn texts(low: &Map, key: &str) -> Result<Vec<String>, Failure> {
    let text = |value: Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = list(low, key).into_iter().map(text).collect();
    texts.ok_or_else(|| Failure::invalid(format!("'{key}' is text, or a list of texts")))
}

fn object(low: &Map, key: &str) -> Result<Option<Map>, Failure> {
    match given(low, key) {
        None => Ok(None),
        Some(Value::Map(map)) => Ok(Some(map.clone())),
        // An empty form field.
        Some(Value::Text(text)) if text.trim().is_empty() => Ok(None),
        Some(_) => Err(Failure::invalid(format!("'{key}' is an object"))),
    }
}

#[cfg(test)]
#[path = "lowdata_tests.rs"]
mod tests;
