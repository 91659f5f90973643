//! `test.*`: is it there, does it listen, what does it make of arguments.

use super::call::Answer;
use super::{Call, Digest, Failure, Function, Outcome, Param, all};
use crate::grains::SALT_RELEASE;
use crate::jobs::call_one;
use futures_util::FutureExt;
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;

const ANYTHING: &[Param] = &[Param::Rest("args"), Param::Keywords("kwargs")];
const RANDOM: &[Param] = &[Param::Optional("size", "9999999999"), Param::Optional("hash_type", "None")];
const RANDOM_DOC: &str =
    "Give the hash of a random number.\n\nCLI Example:\n\n    saltern run '*' test.random_hash hash_type=sha256\n";
const VERSIONS_DOC: &str =
    "Tell versions: of the agent, and of the system.\n\nCLI Example:\n\n    saltern run '*' test.versions\n";

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "test.arg",
        params: ANYTHING,
        doc: "Show how arguments arrive.\n\nCLI Example:\n\n    saltern run '*' test.arg 1 two three=3\n",
        run: |call| call.at_once(arguments),
    },
    Function {
        name: "test.arg_clean",
        params: ANYTHING,
        doc: "Show how arguments arrive, without those the master adds.\n\n\
              CLI Example:\n\n    saltern run '*' test.arg_clean 1 two three=3\n",
        run: |call| call.at_once(arguments),
    },
    Function {
        name: "test.arg_repr",
        params: ANYTHING,
        doc: "Show how arguments arrive, as Python writes them.\n\n\
              CLI Example:\n\n    saltern run '*' test.arg_repr 1 two three=3\n",
        run: |call| call.at_once(written_arguments),
    },
    Function {
        name: "test.arg_type",
        params: ANYTHING,
        doc: "Show as what arguments arrive.\n\nCLI Example:\n\n    saltern run '*' test.arg_type 1 two three=3\n",
        run: |call| call.at_once(argument_types),
    },
    Function {
        name: "test.assertion",
        params: &[Param::Required("assertion")],
        doc: "Fail unless the argument is true.\n\nCLI Example:\n\n    saltern run '*' test.assertion False\n",
        run: |call| {
            call.at_once(|call| match call.get("assertion").is_some_and(Value::is_truthy) {
                true => Ok(Value::Nil.into()),
                false => Err(Failure::Exception("AssertionError".into())),
            })
        },
    },
    Function {
        name: "test.conf_test",
        params: &[],
        doc: "Give the setting test.foo.\n\nCLI Example:\n\n    saltern run '*' test.conf_test\n",
        run: |call| another(call, "config.option", vec!["test.foo".into()]).boxed(),
    },
    Function {
        name: "test.cross_test",
        params: &[Param::Required("func"), Param::Optional("args", "None")],
        doc: "Call another function.\n\n\
              CLI Example:\n\n    saltern run '*' test.cross_test file.file_exists '[/etc/hosts]'\n",
        run: |call| {
            async move {
                let (name, args) = (call.text("func")?, call.get("args").and_then(Value::as_list).unwrap_or_default());
                let args = args.to_vec();
                another(call, &name, args).await
            }
            .boxed()
        },
    },
    Function {
        name: "test.echo",
        params: &[Param::Required("text")],
        doc: "Give the text back.\n\nCLI Example:\n\n    saltern run '*' test.echo 'hello'\n",
        run: |call| call.at_once(|call| Ok(call.get("text").cloned().unwrap_or_default().into())),
    },
    Function {
        name: "test.exception",
        params: &[Param::Optional("message", "'Test Exception'")],
        doc: "Fail with an exception.\n\nCLI Example:\n\n    saltern run '*' test.exception 'Oh no!'\n",
        run: |call| {
            call.at_once(|call| {
                Err(Failure::Exception(call.opt_text("message")?.unwrap_or_else(|| "Test Exception".into())))
            })
        },
    },
    Function {
        name: "test.false",
        params: &[],
        doc: "Give False.\n\nCLI Example:\n\n    saltern run '*' test.false\n",
        run: |call| call.at_once(|_| Ok(false.into())),
    },
    Function {
        name: "test.get_opts",
        params: &[],
        doc: "Give the configuration of the minion.\n\nCLI Example:\n\n    saltern run '*' test.get_opts\n",
        run: |call| another(call, "config.items", Vec::new()).boxed(),
    },
    Function {
        name: "test.kwarg",
        params: &[Param::Keywords("kwargs")],
        doc: "Give the keyword arguments back.\n\nCLI Example:\n\n    saltern run '*' test.kwarg a=1 b=2\n",
        run: |call| call.at_once(|call| Ok(keywords(call).into())),
    },
    Function {
        name: "test.not_loaded",
        params: &[],
        doc: "List modules that are there and could not be loaded: none, here.\n\n\
              CLI Example:\n\n    saltern run '*' test.not_loaded\n",
        run: |call| call.at_once(|_| Ok(Value::List(Vec::new()).into())),
    },
    Function {
        name: "test.outputter",
        params: &[Param::Required("data")],
        doc: "Give the data back, to see how it is shown.\n\n\
              CLI Example:\n\n    saltern run '*' test.outputter foobar\n",
        run: |call| call.at_once(|call| Ok(call.get("data").cloned().unwrap_or_default().into())),
    },
    Function {
        name: "test.ping",
        params: &[],
        doc: "Tell that the minion is up and answers.\n\nCLI Example:\n\n    saltern run '*' test.ping\n",
        run: |call| call.at_once(|_| Ok(true.into())),
    },
    Function {
        name: "test.provider",
        params: &[Param::Required("module")],
        doc: "Name what provides a module: here, the module itself.\n\n\
              CLI Example:\n\n    saltern run '*' test.provider service\n",
        run: |call| {
            call.at_once(|call| {
                let module = call.text("module")?;
                Ok(if modules().contains(module.as_str()) { module } else { String::new() }.into())
            })
        },
    },
    Function {
        name: "test.providers",
        params: &[],
        doc: "Name what provides each module: here, the module itself.\n\n\
              CLI Example:\n\n    saltern run '*' test.providers\n",
        run: |call| call.at_once(|_| Ok(Value::map(modules().into_iter().map(|name| (name, name))).into())),
    },
    Function {
        name: "test.rand_sleep",
        params: &[Param::Optional("max", "60")],
        doc: "Wait for a random time of at most this many seconds.\n\n\
              CLI Example:\n\n    saltern run '*' test.rand_sleep 60\n",
        run: |call| {
            async move {
                let most = u64::try_from(call.int("max", 60)?).unwrap_or(0);
                tokio::time::sleep(Duration::from_secs(random_up_to(most)?)).await;
                Ok(true.into())
            }
            .boxed()
        },
    },
    Function { name: "test.rand_str", params: RANDOM, doc: RANDOM_DOC, run: |call| call.at_once(random_hash) },
    Function { name: "test.random_hash", params: RANDOM, doc: RANDOM_DOC, run: |call| call.at_once(random_hash) },
    Function {
        name: "test.retcode",
        params: &[Param::Optional("code", "42")],
        doc: "Return with this exit code.\n\nCLI Example:\n\n    saltern run '*' test.retcode 5\n",
        run: |call| call.at_once(|call| Ok(Outcome { value: true.into(), retcode: call.int("code", 42)? })),
    },
    Function {
        name: "test.sleep",
        params: &[Param::Required("length")],
        doc: "Wait for this many seconds.\n\nCLI Example:\n\n    saltern run '*' test.sleep 20\n",
        run: |call| {
            async move {
                tokio::time::sleep(call.seconds("length")?.unwrap_or_default()).await;
                Ok(true.into())
            }
            .boxed()
        },
    },
    Function {
        name: "test.true",
        params: &[],
        doc: "Give True.\n\nCLI Example:\n\n    saltern run '*' test.true\n",
        run: |call| call.at_once(|_| Ok(true.into())),
    },
    Function {
        name: "test.try",
        params: &[
            Param::Required("module"),
            Param::Optional("return_try_exception", "False"),
            Param::Keywords("kwargs"),
        ],
        doc: "Call another function with the further keyword arguments; None if it fails.\n\n\
              CLI Example:\n\n    saltern run '*' test.try module=test.sleep length=0\n",
        run: |call| async move { attempt(&call).await }.boxed(),
    },
    Function {
        name: "test.version",
        params: &[],
        doc: "Give the version of the agent.\n\nCLI Example:\n\n    saltern run '*' test.version\n",
        run: |call| call.at_once(|_| Ok(env!("CARGO_PKG_VERSION").into())),
    },
    Function { name: "test.versions", params: &[], doc: VERSIONS_DOC, run: |call| call.at_once(versions_report) },
    Function {
        name: "test.versions_information",
        params: &[],
        doc: "Tell versions, of the agent and of the system, as a map.\n\n\
              CLI Example:\n\n    saltern run '*' test.versions_information\n",
        run: |call| call.at_once(|call| Ok(versions(call).into())),
    },
    Function {
        name: "test.versions_report",
        params: &[],
        doc: VERSIONS_DOC,
        run: |call| call.at_once(versions_report),
    },
];

fn keywords(call: &Call) -> Map {
    call.keywords().map(|(name, value)| (Value::from(name), value.clone())).collect()
}

fn arguments(call: &Call) -> Answer {
    Ok(Value::map([("args", Value::List(call.rest().to_vec())), ("kwargs", keywords(call).into())]).into())
}

fn written_arguments(call: &Call) -> Answer {
    let list = Value::List(call.rest().to_vec());
    let list = python_text(&list);
    let inner = list.trim_start_matches('[').strip_suffix(']').unwrap_or_default();
    // Python tells a tuple of one from a thing in parentheses by a comma.
    let args = if call.rest().len() == 1 { format!("({inner},)") } else { format!("({inner})") };
    let kwargs = python_text(&keywords(call).into()).into_owned();
    Ok(Value::map([("args", args), ("kwargs", kwargs)]).into())
}

fn argument_types(call: &Call) -> Answer {
    let kind = |value: &Value| {
        let name = match value {
            Value::Nil => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::UInt(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "dict",
            Value::Ext(78, _) => "datetime.datetime",
            Value::Ext(..) => "msgpack.ext.ExtType",
        };
        format!("<class '{name}'>")
    };
    let args = Value::list(call.rest().iter().map(kind));
    let kwargs = Value::map(call.keywords().map(|(name, value)| (name, kind(value))));
    Ok(Value::map([("args", args), ("kwargs", kwargs)]).into())
}

fn modules() -> BTreeSet<&'static str> {
    all().filter_map(|function| function.name.split('.').next()).collect()
}

/// Calls another function in the place of this one.
async fn another(call: Call, name: &str, args: Vec<Value>) -> Answer {
    Ok(call_one(name, &args, &call.context).await.0)
}

async fn attempt(call: &Call) -> Answer {
    let mut kwargs = keywords(call);
    kwargs.insert("__kwarg__", true);
    let (outcome, trouble) = call_one(&call.text("module")?, &[kwargs.into()], &call.context).await;
    Ok(match trouble {
        Some(_) if !call.flag("return_try_exception", false) => Value::Nil.into(),
        _ => outcome.value.into(),
    })
}

/// A number from 0 up to and including `most`.
fn random_up_to(most: u64) -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Failure::Exception(error.to_string()))?;
    let random = u64::from_le_bytes(bytes);
    Ok(most.checked_add(1).map_or(random, |range| random % range))
}

fn random_hash(call: &Call) -> Answer {
    let configured = || call.context.opts.get("hash_type").and_then(Value::as_str).map(str::to_owned);
    let kind = call.opt_text("hash_type")?.or_else(configured).unwrap_or_else(|| "sha256".into());
    let size = u64::try_from(call.int("size", 9_999_999_999)?).unwrap_or(0);
    let unknown = || Failure::Exception(format!("AttributeError: module 'hashlib' has no attribute '{kind}'"));
    let hash = Digest::of(&kind, random_up_to(size)?.to_string().as_bytes());
    Ok(hash.ok_or_else(unknown)?.into())
}

fn versions(call: &Call) -> Map {
    let grains = call.context.grains();
    let (major, minor) = SALT_RELEASE;
    let salt = [("Saltern", env!("CARGO_PKG_VERSION").to_owned()), ("Salt", format!("{major}.{minor}"))];
    let system = [("system", "kernel"), ("dist", "osfinger"), ("release", "kernelrelease"), ("machine", "cpuarch")];
    let system = system.map(|(name, grain)| (name, grains.get(grain).cloned().unwrap_or_default()));
    [("Salt Version", Value::map(salt)), ("System Versions", Value::map(system))]
        .into_iter()
        .map(|(name, value)| (Value::from(name), value))
        .collect()
}

fn versions_report(call: &Call) -> Answer {
    let mut report = String::new();
    for (title, entries) in &versions(call) {
        report.push_str(&format!("{}:\n", python_text(title)));
        for (name, version) in entries.as_map().into_iter().flatten() {
            report.push_str(&format!("{:>18}: {}\n", python_text(name), python_text(version)));
        }
        report.push_str(" \n");
    }
    Ok(report.trim_end().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, call, map};

    #[tokio::test]
    async fn arguments_come_back_as_they_came() {
        let args = [1.into(), "x".into()];
        let kwargs = [("a", Value::from(2.5)), ("b", true.into()), ("c", Value::Nil)];
        let told = call("test.arg", &args, &kwargs).await;
        assert_eq!(told.get("args"), Some(&Value::list(args.clone())));
        assert_eq!(told.get("kwargs"), Some(&map(kwargs.clone()).into()));
        let told = call("test.arg_repr", &args, &kwargs).await;
        assert_eq!(told.get("args"), Some(&"(1, 'x')".into()));
        assert_eq!(told.get("kwargs"), Some(&"{'a': 2.5, 'b': True, 'c': None}".into()));
        let told = call("test.arg_repr", &args[..1], &[]).await;
        assert_eq!(told, Value::map([("args", "(1,)"), ("kwargs", "{}")]));
        let told = call("test.arg_type", &args, &kwargs).await;
        assert_eq!(told.get("args"), Some(&Value::list(["<class 'int'>", "<class 'str'>"])));
        let kinds = Value::map([("a", "<class 'float'>"), ("b", "<class 'bool'>"), ("c", "<class 'NoneType'>")]);
        assert_eq!(told.get("kwargs"), Some(&kinds));
    }

    #[tokio::test]
    async fn failures_can_be_had() {
        let bench = Bench::new();
        assert_eq!(
            bench.fail("test.exception", &["Oh no!".into()], &[]).await,
            "The minion function caused an exception: Oh no!"
        );
        assert!(bench.try_call("test.assertion", &[false.into()], &[]).await.is_err());
        assert_eq!(bench.call("test.assertion", &[true.into()], &[]).await, Value::Nil);
        assert_eq!(bench.try_call("test.retcode", &[], &[]).await.unwrap().retcode, 42);
    }

    #[tokio::test]
    async fn other_functions_can_be_called() {
        let bench = Bench::new();
        assert_eq!(bench.call("test.cross_test", &["test.echo".into(), Value::list(["x"])], &[]).await, "x".into());
        assert_eq!(bench.call("test.conf_test", &[], &[]).await, "unconfigured".into());
        assert_eq!(bench.call("test.get_opts", &[], &[]).await.get("id"), Some(&"m1".into()));
        assert_eq!(bench.call("test.try", &["test.echo".into()], &[("text", "x".into())]).await, "x".into());
        assert_eq!(bench.call("test.try", &["test.exception".into()], &[]).await, Value::Nil);
    }

    #[tokio::test]
    async fn random_hashes_differ() {
        let (one, other) = (call("test.random_hash", &[], &[]).await, call("test.random_hash", &[], &[]).await);
        assert_eq!(one.as_str().map(str::len), Some(64));
        assert_ne!(one, other);
        assert_eq!(call("test.rand_str", &[], &[("hash_type", "md5".into())]).await.as_str().map(str::len), Some(32));
        assert_eq!(call("test.rand_sleep", &[0.into()], &[]).await, true.into());
    }

    #[tokio::test]
    async fn versions_name_agent_and_system() {
        let bench = Bench::with(Map::new(), map([("kernelrelease", "6.1".into())]), Map::new());
        let versions = bench.call("test.versions_information", &[], &[]).await;
        assert_eq!(versions.get("System Versions").and_then(|system| system.get("release")), Some(&"6.1".into()));
        let report = bench.call("test.versions", &[], &[]).await;
        assert!(report.as_str().is_some_and(|text| text.contains("           release: 6.1")), "{report:?}");
    }
}
