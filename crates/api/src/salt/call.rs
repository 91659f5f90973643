//! Calls of the server's own functions: looked up, permitted, written down, run to their end, told.
//!
//! A call runs in a task of its own, so neither a client that hangs up nor one that has waited long enough leaves it half
//! done. Its arguments and its value are in events and (for runners) in the list of jobs, unless the function has secrets.

use super::error::{Failure, Proof, Voice};
use super::function::{Call, Function, Trouble};
use super::lowdata::{House, Master};
use super::{Salt, runner, stamp, wheel};
use axum::http::StatusCode;
use saltern_core::access::{Invocation, Rights, Wish};
use saltern_core::value::{Map, Value};
use saltern_server::Error;
use saltern_server::app::{Called, Caller};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a runner is waited for unless told.
const PATIENCE: Duration = Duration::from_secs(300);

/// Most bytes of arguments or of a value that are kept; more of a value where nobody waits and it is nowhere else.
const KEPT: usize = 64 << 10;
const KEPT_FOR_LATER: usize = 4 << 20;

/// What stands in the place of a secret.
const HIDDEN: &str = "**********";

/// Who asks, and how he showed who he is.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) caller: Caller,
    pub(super) proof: Proof,
}

impl Asker {
    /// What the server says, in the words of a client.
    pub(super) fn failure(&self, error: Error, voice: Voice) -> Failure {
        Failure::of(error, voice, self.proof, &self.caller.who)
    }
}

/// A call that may be made.
pub(super) struct Permitted {
    asker: Asker,
    call: Master,
    /// Nothing: there is no such function, and the answer says so (wheel only)
    function: Option<&'static Function>,
}

/// A call that has ended.
struct Ended {
    value: Value,
    /// What its event tells
    data: Value,
}

/// Looks a call up and asks whether it may be made; nothing has happened yet.
pub(super) fn permit(salt: &Salt, asker: Asker, call: Master) -> Result<Permitted, Failure> {
    let function = match call.house {
        House::Runner => {
            let missing = || Failure::invalid(format!("'{}' is not available.", call.fun));
            Some(runner::find(&call.fun).ok_or_else(missing)?)
        }
        House::Wheel => wheel::find(&call.fun),
    };
    let invocation = Invocation { fun: &call.fun, arg: &call.args, kwarg: &call.kwargs };
    let wish = match call.house {
        House::Runner => Wish::Runner(invocation),
        House::Wheel => Wish::Wheel(invocation),
    };
    salt.app.may(&asker.caller, &wish).map_err(|error| asker.failure(error, Voice::Master))?;
    // Salt's rules are about functions, not about what they answer: who may call one is answered about everybody.
    let sees = asker.caller.rights.sight_for(&wish);
    let mut asker = asker;
    if sees != asker.caller.rights.sees {
        asker.caller.rights = Arc::new(Rights { sees, ..Rights::clone(&asker.caller.rights) });
    }
    Ok(Permitted { asker, call, function })
}

/// Makes a call; the element that its client finds in `return`.
pub(super) async fn make(salt: &Salt, permitted: Permitted) -> Result<Value, Failure> {
    let Permitted { asker, call, function } = permitted;
    let busy = || Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too many calls are under way; try again in a moment");
    let place = salt.places.take(&asker.caller.who).ok_or_else(busy)?;
    let is_secret = function.is_some_and(|function| function.secret);
    let told_args = if is_secret { Value::List(Vec::new()) } else { kept(fun_args(&call.args, &call.kwargs), KEPT) };
    let fun = format!("{}.{}", call.house.as_str(), call.fun);
    let called = salt.app.begin_call(&asker.caller, &fun, told_args).await?;
    let (house, background, full_return) = (call.house, call.background, call.full_return);
    let patience = call.timeout.unwrap_or(PATIENCE);
    let (tell, told) = oneshot::channel();
    let task = {
        let (salt, called) = (salt.clone(), called.clone());
        async move {
            let ended = carry_out(&salt, asker, call, function, &called, is_secret).await;
            drop(place);
            // Nobody waits any more: the event has told it.
            let _ = tell.send(ended);
        }
    };
    tokio::spawn(task);
    if background {
        return Ok(Value::map([("tag", Value::from(called.tag())), ("jid", called.jid.into())]));
    }
    let ended = match house {
        House::Runner => tokio::time::timeout(patience, told).await.map_err(|_| Failure::too_late())?,
        House::Wheel => told.await,
    };
    let ended = ended.map_err(|_| Error::Internal(format!("{fun} was not finished")))??;
    Ok(element(house, full_return, &called, ended))
}

/// Calls a function on behalf of another URL; its value.
pub(super) async fn value_of(
    salt: &Salt,
    asker: Asker,
    house: House,
    fun: &str,
    kwargs: Map,
) -> Result<Value, Failure> {
    let call = Master {
        house,
        background: false,
        fun: fun.to_owned(),
        args: Vec::new(),
        kwargs,
        full_return: true,
        timeout: None,
    };
    let element = make(salt, permit(salt, asker, call)?).await?;
    Ok(element.get("data").and_then(|data| data.get("return")).cloned().unwrap_or_default())
}

async fn carry_out(
    salt: &Salt,
    asker: Asker,
    call: Master,
    function: Option<&'static Function>,
    called: &Called,
    is_secret: bool,
) -> Result<Ended, Failure> {
    let outcome = match function {
        Some(function) => run(salt, asker, &call, function).await,
        None => Err(Trouble::Raised(format!("'{}' is not available.", call.fun))),
    };
    let (value, success, refused) = match outcome {
        Ok(value) => (value, true, None),
        Err(Trouble::Raised(text)) => (raised(&call, &text), false, None),
        Err(Trouble::Refused(failure)) => (Value::from(failure.message()), false, Some(failure)),
    };
    let limit = if call.background { KEPT_FOR_LATER } else { KEPT };
    let told = if is_secret && success { Value::from(HIDDEN) } else { kept(value.clone(), limit) };
    let data = salt.app.end_call(called, told, success).await?;
    match refused {
        Some(failure) => Err(failure),
        None => Ok(Ended { value, data }),
    }
}

async fn run(salt: &Salt, asker: Asker, call: &Master, function: &'static Function) -> Result<Value, Trouble> {
    let given =
        function.bind(&call.args, &call.kwargs, call.house == House::Wheel).map_err(|wrong| match call.house {
            House::Runner => {
                Trouble::Raised(format!("\nPassed invalid arguments: {wrong}\n\nUsage:\n\n{}", function.text()))
            }
            House::Wheel => Trouble::Raised(wrong),
        })?;
    (function.run)(Call { salt: salt.clone(), caller: asker.caller, proof: asker.proof, given }).await
}

/// A failure as clients know it.
fn raised(call: &Master, text: &str) -> Value {
    if call.house == House::Runner && text.starts_with("\nPassed invalid arguments") {
        return text.into();
    }
    format!("Exception occurred in {} {}: {text}", call.house.as_str(), call.fun).into()
}

fn element(house: House, full_return: bool, called: &Called, ended: Ended) -> Value {
    let Ended { value, mut data } = ended;
    if house == House::Runner && !full_return {
        return value;
    }
    stamp::restamp(&mut data);
    if let Value::Map(map) = &mut data {
        map.insert("return", value);
        if house == House::Wheel {
            map.remove("fun_args");
        }
    }
    match house {
        House::Runner => Value::map([("data", data), ("tag", format!("{}/ret", called.tag()).into())]),
        House::Wheel => Value::map([("tag", Value::from(called.tag())), ("data", data)]),
    }
}

/// The value, or a word in its place if it is too large for the log: the list of all jobs, say, which a page asks for
/// every few seconds.
fn kept(value: Value, limit: usize) -> Value {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    match serde_json::to_writer(Counter(limit), &value) {
        Ok(()) => value,
        Err(_) => format!("(more than {limit} bytes, not kept)").into(),
    }
}

/// Arguments as events and jobs show them: keyword arguments in one object at the end.
fn fun_args(args: &[Value], kwargs: &Map) -> Value {
    let mut all = args.to_vec();
    if !kwargs.is_empty() {
        all.push(Value::Map(kwargs.clone()));
    }
    Value::List(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyword_arguments_are_shown_in_one_object_at_the_end() {
        let kwargs = Map::from_iter([("a".into(), "b".into())]);
        let expected: Value = serde_json::from_str(r#"[1, {"a": "b"}]"#).unwrap();
        assert_eq!(fun_args(&[1.into()], &kwargs), expected);
        assert_eq!(fun_args(&[], &Map::new()), Value::List(Vec::new()));
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        assert_eq!(kept(Value::from("abc"), 5), "abc".into());
        assert_eq!(kept(Value::from("abcd"), 5), "(more than 5 bytes, not kept)".into());
    }

    #[test]
    fn a_failure_names_its_function() {
        let call = Master {
            house: House::Wheel,
            background: false,
            fun: "key.accept".into(),
            args: Vec::new(),
            kwargs: Map::new(),
            full_return: false,
            timeout: None,
        };
        assert_eq!(raised(&call, "boom").as_str(), Some("Exception occurred in wheel key.accept: boom"));
    }
}
