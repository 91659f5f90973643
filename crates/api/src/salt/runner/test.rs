//! `test.*`: for trying clients out.

use crate::salt::function::{Call, Function, Outcome, Trouble};
use saltern_core::value::Value;
use std::time::Duration;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "test.arg",
        params: "*args, **kwargs",
        doc: "Shows the arguments it was given.",
        secret: false,
        run: |call| Box::pin(async { Ok(arguments(call)) }),
    },
    Function {
        name: "test.raw_arg",
        params: "*args, **kwargs",
        doc: "Shows the arguments it was given.",
        secret: false,
        run: |call| Box::pin(async { Ok(arguments(call)) }),
    },
    Function {
        name: "test.sleep",
        params: "s_time=10",
        doc: "Waits for some seconds, an hour at most.",
        secret: false,
        run: |call| Box::pin(sleep(call)),
    },
    Function {
        name: "test.stream",
        params: "",
        doc: "Succeeds. Salt shows its progress on a terminal; there is none here.",
        secret: false,
        run: |_| Box::pin(async { Ok(true.into()) }),
    },
    Function {
        name: "test.metasyntactic",
        params: "locality=us",
        doc: "Lists words that mean nothing.",
        secret: false,
        run: |_| Box::pin(async { Ok(Value::list(WORDS)) }),
    },
];

const WORDS: [&str; 14] = [
    "foo", "bar", "baz", "qux", "quux", "quuz", "corge", "grault", "garply", "waldo", "fred", "plugh", "xyzzy", "thud",
];

/// The longest that can be slept: a call takes a place as long as it runs.
const LONGEST: f64 = 3_600.0;

fn arguments(call: Call) -> Value {
    Value::map([("args", Value::List(call.given.rest)), ("kwargs", Value::Map(call.given.extra))])
}

async fn sleep(call: Call) -> Outcome {
    let seconds = match call.given.get("s_time") {
        None => Some(10.0),
        Some(Value::Float(seconds)) => Some(*seconds),
        Some(value) => value.as_i64().map(|seconds| seconds as f64).or_else(|| value.as_str()?.trim().parse().ok()),
    };
    let wrong = || Trouble::Raised("'s_time' must be a number of seconds, 3600 at most".into());
    let seconds = seconds.filter(|seconds| (0.0..=LONGEST).contains(seconds)).ok_or_else(wrong)?;
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    Ok(true.into())
}
