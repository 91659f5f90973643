//! `saltutil.*`: the jobs of this minion, and what it keeps up to date.
//!
//! There is nothing to synchronise: all functions are in the agent itself. The functions that do it elsewhere answer
//! as a stock minion does that has found nothing.

use super::call::Answer;
use super::{Call, Context, Failure, Function, Param};
use crate::jobs::Spool;
use crate::{Config, grains};
use futures_util::FutureExt;
use rustix::process::Signal;
use saltern_core::ids::Jid;
use saltern_core::target::{Glob, python_text};
use saltern_core::value::{Map, Value};
use std::path::Path;
use std::sync::{Arc, PoisonError};

const JID: &[Param] = &[Param::Required("jid")];

const REFRESH_PILLAR: &[Param] =
    &[Param::Optional("wait", "False"), Param::Optional("timeout", "30"), Param::Optional("clean_cache", "True")];

const SYNC: &[Param] = &[
    Param::Optional("saltenv", "None"),
    Param::Optional("refresh", "True"),
    Param::Optional("extmod_whitelist", "None"),
    Param::Optional("extmod_blacklist", "None"),
    Param::Optional("clean_pillar_cache", "False"),
];

/// What `sync_all` goes through, in stock Salt's order.
const KINDS: [&str; 18] = [
    "clouds",
    "beacons",
    "modules",
    "states",
    "sdb",
    "grains",
    "renderers",
    "returners",
    "output",
    "utils",
    "log_handlers",
    "executors",
    "proxymodules",
    "engines",
    "thorium",
    "serializers",
    "matchers",
    "resources",
];

/// A function that synchronises one kind of module: there are none.
macro_rules! sync {
    ($kind:literal) => {
        Function {
            name: concat!("saltutil.sync_", $kind),
            params: SYNC,
            doc: concat!(
                "List the ",
                $kind,
                " that were brought from the master: always none, this agent has all it needs.\n\n",
                "CLI Example:\n\n    saltern run '*' saltutil.sync_",
                $kind,
                "\n"
            ),
            run: |call| async move { synced(&call, Value::List(Vec::new())).await }.boxed(),
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "saltutil.clear_cache",
        params: &[],
        doc: "Remove all files of the cache.\n\nCLI Example:\n\n    saltern run '*' saltutil.clear_cache\n",
        run: |call| call.blocking(|call| Ok(remove_files(&call.context.data_dir.join("cache")).is_ok().into())),
    },
    Function {
        name: "saltutil.find_cached_job",
        params: JID,
        doc: "Give the answer of a job that the master has not confirmed yet; the others are not kept here.\n\n\
              \
              CLI Example:\n\n    saltern run '*' saltutil.find_cached_job 20260101120000123456\n",
        run: |call| call.blocking(find_cached_job),
    },
    Function {
        name: "saltutil.find_job",
        params: JID,
        doc: "Give what is known of a job that is under way, or nothing.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.find_job 20260101120000123456\n",
        run: |call| call.at_once(|call| Ok(job(call)?.map(|(_, job)| job).unwrap_or_default().into())),
    },
    Function {
        name: "saltutil.is_running",
        params: &[Param::Required("fun")],
        doc: "List the jobs under way whose function fits a pattern.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.is_running 'state.*'\n",
        run: |call| call.at_once(is_running),
    },
    Function {
        name: "saltutil.kill_all_jobs",
        params: &[],
        doc: "Kill all jobs under way.\n\nCLI Example:\n\n    saltern run '*' saltutil.kill_all_jobs\n",
        run: |call| call.at_once(|call| Ok(signal_all(call, Signal::KILL).into())),
    },
    Function {
        name: "saltutil.kill_job",
        params: JID,
        doc: "Kill a job and all it has started.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.kill_job 20260101120000123456\n",
        run: |call| call.at_once(|call| signal(call, Signal::KILL)),
    },
    Function {
        name: "saltutil.pillar_refresh",
        params: REFRESH_PILLAR,
        doc: "Ask the master for pillar again.\n\nCLI Example:\n\n    saltern run '*' saltutil.pillar_refresh\n",
        run: |call| async move { Ok(refresh_pillar(&call.context).await.into()) }.boxed(),
    },
    Function {
        name: "saltutil.refresh_grains",
        params: &[Param::Optional("refresh_pillar", "True"), Param::Optional("clean_pillar_cache", "False")],
        doc: "Collect the grains again, and ask for the pillar that may depend on them.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.refresh_grains\n",
        run: |call| async move { refresh_grains(&call).await }.boxed(),
    },
    Function {
        name: "saltutil.refresh_modules",
        params: &[Param::Keywords("kwargs")],
        doc: "Load functions anew: nothing to do, all of them are in the agent itself.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.refresh_modules\n",
        run: |call| call.at_once(|_| Ok(true.into())),
    },
    Function {
        name: "saltutil.refresh_pillar",
        params: REFRESH_PILLAR,
        doc: "Ask the master for pillar again.\n\nCLI Example:\n\n    saltern run '*' saltutil.refresh_pillar\n",
        run: |call| async move { Ok(refresh_pillar(&call.context).await.into()) }.boxed(),
    },
    Function {
        name: "saltutil.running",
        params: &[],
        doc: "List the jobs under way, without this one.\n\nCLI Example:\n\n    saltern run '*' saltutil.running\n",
        run: |call| call.at_once(|call| Ok(Value::list(call.context.job.others()).into())),
    },
    Function {
        name: "saltutil.signal_job",
        params: &[Param::Required("jid"), Param::Required("sig")],
        doc: "Send a signal to all a job has started; one that ends processes ends the job as well.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.signal_job 20260101120000123456 15\n",
        run: |call| {
            call.at_once(|call| {
                let number = call.int("sig", 0)?;
                let known = i32::try_from(number).ok().and_then(Signal::from_named_raw);
                let unknown = || Failure::Exception(format!("ValueError: {number} is not a valid Signals"));
                signal(call, known.ok_or_else(unknown)?)
            })
        },
    },
    Function {
        name: "saltutil.sync_all",
        params: SYNC,
        doc: "List what was brought from the master, by kind: always nothing, this agent has all it needs.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.sync_all\n",
        run: |call| {
            async move { synced(&call, Value::map(KINDS.map(|kind| (kind, Value::List(Vec::new()))))).await }.boxed()
        },
    },
    sync!("beacons"),
    sync!("clouds"),
    sync!("engines"),
    sync!("executors"),
    sync!("grains"),
    sync!("log_handlers"),
    sync!("matchers"),
    sync!("modules"),
    sync!("output"),
    sync!("outputters"),
    sync!("proxymodules"),
    sync!("renderers"),
    sync!("resources"),
    sync!("returners"),
    sync!("sdb"),
    sync!("serializers"),
    sync!("states"),
    sync!("thorium"),
    sync!("utils"),
    Function {
        name: "saltutil.term_all_jobs",
        params: &[],
        doc: "Ask all jobs under way to end.\n\nCLI Example:\n\n    saltern run '*' saltutil.term_all_jobs\n",
        run: |call| call.at_once(|call| Ok(signal_all(call, Signal::TERM).into())),
    },
    Function {
        name: "saltutil.term_job",
        params: JID,
        doc: "Ask a job, and all it has started, to end.\n\n\
              CLI Example:\n\n    saltern run '*' saltutil.term_job 20260101120000123456\n",
        run: |call| call.at_once(|call| signal(call, Signal::TERM)),
    },
];

/// The job that is asked about, if it is under way and not the one that asks.
fn job(call: &Call) -> Result<Option<(Jid, Map)>, Failure> {
    let jid = Jid::parse(&call.text("jid")?).filter(|jid| call.context.job.jid() != Some(*jid));
    Ok(jid.and_then(|jid| Some((jid, call.context.job.find(jid)?))))
}

fn is_running(call: &Call) -> Answer {
    let pattern = Glob::new(&call.text("fun")?);
    let fits = |job: &Map| match job.get("fun") {
        Some(Value::List(names)) => names.iter().any(|name| pattern.matches(&python_text(name))),
        Some(name) => pattern.matches(&python_text(name)),
        None => false,
    };
    Ok(Value::list(call.context.job.others().into_iter().filter(fits)).into())
}

fn signal(call: &Call, signal: Signal) -> Answer {
    let sent = job(call)?.map(|(jid, job)| send_signal(&call.context, jid, &job, signal));
    Ok(sent.unwrap_or_default().into())
}

fn signal_all(call: &Call, signal: Signal) -> Vec<Value> {
    let jid = |job: &Map| Jid::parse(job.get("jid")?.as_str()?);
    let jobs = call.context.job.others().into_iter().filter_map(|job| Some((jid(&job)?, job)));
    jobs.map(|(jid, job)| send_signal(&call.context, jid, &job, signal).into()).collect()
}

fn send_signal(context: &Context, jid: Jid, job: &Map, signal: Signal) -> String {
    match context.job.signal(jid, signal) {
        Some(()) => {
            let pid = job.get("pid").map(python_text).unwrap_or_default();
            format!("Signal {} sent to job {jid} at pid {pid}", signal.as_raw())
        }
        None => format!("Job {jid} was not running and job data has been cleaned up"),
    }
}

fn find_cached_job(call: &Call) -> Answer {
    let kept = Jid::parse(&call.text("jid")?).map(|jid| Spool::open(&call.context.data_dir.join("spool"))?.get(jid));
    let kept = kept.transpose().map_err(|error| Failure::Command(error.to_string()))?.flatten();
    Ok(match kept {
        Some(mut answer) => {
            answer.remove("cmd");
            answer.into()
        }
        None => "Local jobs cache directory not found; you may need to enable cache_jobs on this minion".into(),
    })
}

async fn refresh_pillar(context: &Context) -> bool {
    let refreshed = context.refresh_pillar().await;
    if let Err(error) = &refreshed {
        tracing::warn!(%error, "pillar could not be refreshed");
    }
    refreshed.is_ok()
}

async fn refresh_grains(call: &Call) -> Answer {
    let context = call.context.clone();
    let collected = tokio::task::spawn_blocking(move || {
        let mut opts = (*context.opts).clone();
        opts.insert("id", &*context.id);
        opts.insert("data_dir", context.data_dir.to_string_lossy().into_owned());
        let grains = Config::load(None, opts).map(|config| grains::collect(&config));
        grains.map(|grains| *context.grains.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(grains))
    });
    let collected = collected.await.map_err(|error| Failure::Exception(error.to_string()))?;
    collected.map_err(|error| Failure::Command(error.to_string()))?;
    if call.flag("refresh_pillar", true) {
        refresh_pillar(&call.context).await;
    }
    Ok(true.into())
}

async fn synced(call: &Call, answer: Value) -> Answer {
    if call.flag("refresh", true) {
        refresh_pillar(&call.context).await;
    }
    Ok(answer.into())
}

/// Removes the files below a folder; the folders stay.
fn remove_files(folder: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_files(&entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, map};
    use crate::jobs::Running;
    use saltern_wire::load::Publish;

    const OURS: &str = "20260101000000000001";
    const OTHER: &str = "20260101000000000002";

    fn publish(jid: &str, fun: &str) -> Publish {
        let load = [
            ("jid", Value::from(jid)),
            ("fun", fun.into()),
            ("arg", Value::List(vec![])),
            ("tgt", "*".into()),
            ("tgt_type", "glob".into()),
            ("ret", "".into()),
            ("user", "root".into()),
        ];
        Publish::parse(map(load)).unwrap()
    }

    #[tokio::test]
    async fn jobs_under_way_are_told_without_the_one_that_asks() {
        let (mut bench, running) = (Bench::new(), Running::default());
        let ours = running.begin(&publish(OURS, "saltutil.running"));
        let _other = running.begin(&publish(OTHER, "state.apply"));
        bench.context.job = ours.handle();
        let list = bench.call("saltutil.running", &[], &[]).await;
        let list = list.as_list().unwrap();
        assert_eq!((list.len(), list[0].get("fun")), (1, Some(&"state.apply".into())));
        assert_eq!(bench.call("saltutil.is_running", &["state.*".into()], &[]).await, Value::list(list.to_vec()));
        assert_eq!(bench.call("saltutil.is_running", &["cmd.*".into()], &[]).await, Value::List(vec![]));
        assert_eq!(bench.call("saltutil.find_job", &[OTHER.into()], &[]).await, list[0]);
        assert_eq!(bench.call("saltutil.find_job", &["x".into()], &[]).await, Map::new().into());
    }

    #[tokio::test]
    async fn signals_reach_jobs_and_are_told_as_stock_minions_tell_them() {
        let (mut bench, running) = (Bench::new(), Running::default());
        let ours = running.begin(&publish(OURS, "saltutil.kill_job"));
        let other = running.begin(&publish(OTHER, "cmd.run"));
        bench.context.job = ours.handle();
        let pid = std::process::id();
        let sent = |number: i32| Value::from(format!("Signal {number} sent to job {OTHER} at pid {pid}"));
        assert_eq!(bench.call("saltutil.kill_job", &[OTHER.into()], &[]).await, sent(9));
        assert_eq!(bench.call("saltutil.term_job", &[OTHER.into()], &[]).await, sent(15));
        assert_eq!(bench.call("saltutil.signal_job", &[OTHER.into(), 12.into()], &[]).await, sent(12));
        assert_eq!(bench.call("saltutil.term_all_jobs", &[], &[]).await, Value::list([sent(15)]));
        assert_eq!(bench.call("saltutil.kill_job", &[OURS.into()], &[]).await, "".into());
        drop(other);
        assert_eq!(bench.call("saltutil.kill_job", &[OTHER.into()], &[]).await, "".into());
    }

    #[tokio::test]
    async fn an_answer_that_is_not_delivered_can_be_read() {
        let bench = Bench::new();
        let text = bench.call("saltutil.find_cached_job", &[OTHER.into()], &[]).await;
        assert!(text.as_str().unwrap().starts_with("Local jobs cache directory not found"));
        let spool = Spool::open(&bench.context.data_dir.join("spool")).unwrap();
        let load = map([("cmd", "_return".into()), ("return", 5.into())]);
        spool.put(Jid::parse(OTHER).unwrap(), &load, |_| Map::new()).unwrap();
        let kept = bench.call("saltutil.find_cached_job", &[OTHER.into()], &[]).await;
        assert_eq!(kept, Value::map([("return", 5)]));
    }

    #[tokio::test]
    async fn there_is_nothing_to_synchronise() {
        let all = Bench::new().call("saltutil.sync_all", &[], &[]).await;
        assert_eq!(all.as_map().unwrap().len(), KINDS.len());
        assert!(all.as_map().unwrap().values().all(|value| *value == Value::List(vec![])));
        for kind in KINDS {
            let name = format!("saltutil.sync_{kind}");
            assert_eq!(Bench::new().call(&name, &[], &[]).await, Value::List(vec![]), "{name}");
        }
    }

    #[tokio::test]
    async fn grains_are_collected_again() {
        let bench = Bench::new();
        std::fs::create_dir_all(bench.at("data")).unwrap();
        std::fs::write(bench.at("data/grains"), "roles: [web]").unwrap();
        assert_eq!(bench.call("saltutil.refresh_grains", &[], &[]).await, true.into());
        assert_eq!(bench.call("grains.get", &["roles".into()], &[]).await, Value::list(["web"]));
        assert_eq!(bench.call("grains.get", &["id".into()], &[]).await, "m1".into());
    }

    #[tokio::test]
    async fn the_cache_is_emptied() {
        let bench = Bench::new();
        assert_eq!(bench.call("saltutil.clear_cache", &[], &[]).await, true.into());
        std::fs::create_dir_all(bench.at("data/cache/files/base")).unwrap();
        std::fs::write(bench.at("data/cache/files/base/f"), "x").unwrap();
        std::fs::write(bench.at("data/grains"), "a: 1").unwrap();
        assert_eq!(bench.call("saltutil.clear_cache", &[], &[]).await, true.into());
        assert!(!bench.path().join("data/cache/files/base/f").exists());
        assert!(bench.path().join("data/grains").exists());
    }
}
