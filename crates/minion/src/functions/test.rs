//! `test.*`: is it there, does it listen, what does it make of arguments.

use super::{Call, Failure, Function, Outcome, Param};
use futures_util::FutureExt;
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "test.ping",
        params: &[],
        doc: "Tell that the minion is up and answers.\n\nCLI Example:\n\n    saltern run '*' test.ping\n",
        run: |_| async { Ok(true.into()) }.boxed(),
    },
    Function {
        name: "test.echo",
        params: &[Param::Required("text")],
        doc: "Give the text back.\n\nCLI Example:\n\n    saltern run '*' test.echo 'hello'\n",
        run: |call| async move { Ok(call.get("text").cloned().unwrap_or_default().into()) }.boxed(),
    },
    Function {
        name: "test.arg",
        params: &[Param::Rest("args"), Param::Keywords("kwargs")],
        doc: "Show how arguments arrive.\n\nCLI Example:\n\n    saltern run '*' test.arg 1 two three=3\n",
        run: |call| async move { Ok(arguments(&call)) }.boxed(),
    },
    Function {
        name: "test.kwarg",
        params: &[Param::Keywords("kwargs")],
        doc: "Give the keyword arguments back.\n\nCLI Example:\n\n    saltern run '*' test.kwarg a=1 b=2\n",
        run: |call| {
            async move { Ok(Value::map(call.keywords().map(|(name, value)| (name, value.clone()))).into()) }.boxed()
        },
    },
    Function {
        name: "test.sleep",
        params: &[Param::Required("length")],
        doc: "Wait for this many seconds.\n\nCLI Example:\n\n    saltern run '*' test.sleep 20\n",
        run: |call| async move { sleep(&call).await }.boxed(),
    },
    Function {
        name: "test.true",
        params: &[],
        doc: "Give True.\n\nCLI Example:\n\n    saltern run '*' test.true\n",
        run: |_| async { Ok(true.into()) }.boxed(),
    },
    Function {
        name: "test.false",
        params: &[],
        doc: "Give False.\n\nCLI Example:\n\n    saltern run '*' test.false\n",
        run: |_| async { Ok(false.into()) }.boxed(),
    },
    Function {
        name: "test.exception",
        params: &[Param::Optional("message", "'Test Exception'")],
        doc: "Fail with an exception.\n\nCLI Example:\n\n    saltern run '*' test.exception 'Oh no!'\n",
        run: |call| {
            async move { Err(Failure::Exception(call.opt_text("message")?.unwrap_or_else(|| "Test Exception".into()))) }
                .boxed()
        },
    },
    Function {
        name: "test.retcode",
        params: &[Param::Optional("code", "42")],
        doc: "Return with this exit code.\n\nCLI Example:\n\n    saltern run '*' test.retcode 5\n",
        run: |call| async move { Ok(Outcome { value: true.into(), retcode: call.int("code", 42)? }) }.boxed(),
    },
    Function {
        name: "test.version",
        params: &[],
        doc: "Give the version of the agent.\n\nCLI Example:\n\n    saltern run '*' test.version\n",
        run: |_| async { Ok(env!("CARGO_PKG_VERSION").into()) }.boxed(),
    },
];

fn arguments(call: &Call) -> Outcome {
    let kwargs: Map = call.keywords().map(|(name, value)| (Value::from(name), value.clone())).collect();
    Value::map([("args", Value::List(call.rest().to_vec())), ("kwargs", Value::Map(kwargs))]).into()
}

async fn sleep(call: &Call) -> Result<Outcome, Failure> {
    tokio::time::sleep(call.seconds("length")?.unwrap_or_default()).await;
    Ok(true.into())
}
