//! `ps.*`: processes.

use super::call::Answer;
use super::{Call, Failure, Function, Param, accounts};
use rustix::process::{Pid, Signal, kill_process};
use saltern_core::value::{Map, Value};
use std::os::unix::fs::MetadataExt;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "ps.get_pid_list",
        params: &[],
        doc: "List the numbers of all processes.\n\nCLI Example:\n\n    saltern run '*' ps.get_pid_list\n",
        run: |call| call.blocking(|_| Ok(Value::list(pids()).into())),
    },
    Function {
        name: "ps.kill_pid",
        params: &[Param::Required("pid"), Param::Optional("signal", "15")],
        doc: "Send a signal to a process. True if it was sent.\n\n\
              CLI Example:\n\n    saltern run '*' ps.kill_pid 2000 signal=9\n",
        run: |call| call.at_once(kill),
    },
    Function {
        name: "ps.pgrep",
        params: &[
            Param::Required("pattern"),
            Param::Optional("user", "None"),
            Param::Optional("full", "False"),
            Param::Optional("pattern_is_regex", "False"),
        ],
        doc: "Give the numbers of the processes whose name contains a text, or their whole command line with full=True.\n\n\
              CLI Example:\n\n    saltern run '*' ps.pgrep sshd\n    saltern run '*' ps.pgrep 'ssh.*' user=root pattern_is_regex=True\n",
        run: |call| call.blocking(pgrep),
    },
    Function {
        name: "ps.proc_info",
        params: &[Param::Required("pid"), Param::Optional("attrs", "None")],
        doc: "Tell about one process.\n\n\
              CLI Example:\n\n    saltern run '*' ps.proc_info 2322\n    saltern run '*' ps.proc_info 2322 attrs='[\"pid\", \"name\"]'\n",
        run: |call| call.blocking(proc_info),
    },
];

fn kill(call: &Call) -> Answer {
    let wrong = |name: &str| Failure::Arguments(format!("'{name}' is not a number a process or a signal can have"));
    let pid = i32::try_from(call.int("pid", 0)?)
        .ok()
        .filter(|pid| *pid > 0)
        .and_then(Pid::from_raw)
        .ok_or_else(|| wrong("pid"))?;
    let signal =
        i32::try_from(call.int("signal", 15)?).ok().and_then(Signal::from_named_raw).ok_or_else(|| wrong("signal"))?;
    Ok(kill_process(pid, signal).is_ok().into())
}

fn pgrep(call: &Call) -> Answer {
    let pattern = call.text("pattern")?;
    let regex = match call.flag("pattern_is_regex", false) {
        true => Some(
            regex::Regex::new(&pattern)
                .map_err(|error| Failure::Command(format!("'pattern' is not a pattern: {error}")))?,
        ),
        false => None,
    };
    let (user, full) = (call.opt_text("user")?, call.flag("full", false));
    let uid = user.as_deref().map(|name| accounts::user(name).map(|user| user.uid));
    let fits = |pid: &u32| {
        let line = if full { command_line(*pid).join(" ") } else { name(*pid) };
        let text_fits = regex.as_ref().map_or_else(|| line.contains(&pattern), |regex| regex.is_match(&line));
        let user_fits = uid.is_none_or(|uid| {
            std::fs::metadata(format!("/proc/{pid}")).ok().map(|meta| meta.uid()) == uid && uid.is_some()
        });
        text_fits && user_fits
    };
    let found: Vec<u32> = pids().into_iter().filter(fits).collect();
    Ok(if found.is_empty() { Value::Nil } else { Value::list(found) }.into())
}

fn proc_info(call: &Call) -> Answer {
    let pid = u32::try_from(call.int("pid", 0)?)
        .map_err(|_| Failure::Arguments("'pid' is not the number of a process".into()))?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|_| Failure::Command(format!("process PID not found (pid={pid})")))?;
    let told = describe(pid, &status);
    let wanted: Option<Vec<String>> = match call.get("attrs") {
        None => None,
        Some(Value::List(items)) => Some(items.iter().map(|item| item.key_text().into_owned()).collect()),
        Some(value) => Some(value.key_text().split(',').map(|name| name.trim().to_owned()).collect()),
    };
    Ok(match wanted {
        None => told,
        Some(names) => {
            told.into_iter().filter(|(name, _)| names.iter().any(|wanted| *wanted == name.key_text())).collect()
        }
    }
    .into())
}

fn describe(pid: u32, status: &str) -> Map {
    let fields = Fields::read(status);
    let link = |name: &str| {
        std::fs::read_link(format!("/proc/{pid}/{name}")).ok().map(|path| path.to_string_lossy().into_owned())
    };
    let mut told = Map::new();
    told.push("pid", pid);
    told.push("ppid", fields.ppid);
    told.push("name", fields.name);
    told.push("username", fields.uids.first().and_then(|uid| accounts::user_of(*uid)).map(|user| user.name));
    told.push("status", fields.state);
    told.push("cmdline", Value::list(command_line(pid)));
    told.push("exe", link("exe"));
    told.push("cwd", link("cwd"));
    told.push("uids", Value::list(fields.uids));
    told.push("gids", Value::list(fields.gids));
    told.push("num_threads", fields.threads);
    told.push("num_fds", std::fs::read_dir(format!("/proc/{pid}/fd")).ok().map(Iterator::count));
    told.push("memory_info", Value::map([("rss", fields.rss_kib * 1024), ("vms", fields.vms_kib * 1024)]));
    told
}

/// What `/proc/<pid>/status` tells.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fields {
    name: String,
    state: &'static str,
    ppid: u32,
    uids: Vec<u32>,
    gids: Vec<u32>,
    threads: u32,
    rss_kib: u64,
    vms_kib: u64,
}

impl Fields {
    fn read(text: &str) -> Self {
        let mut fields = Self::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key, value.trim()))
        {
            let first = value.split_whitespace().next().unwrap_or_default();
            // Real, effective and saved; the last one of the file system is not told.
            let three = || value.split_whitespace().take(3).filter_map(|id| id.parse().ok()).collect();
            match key {
                "Name" => fields.name = value.to_owned(),
                "State" => fields.state = state(first),
                "PPid" => fields.ppid = first.parse().unwrap_or_default(),
                "Uid" => fields.uids = three(),
                "Gid" => fields.gids = three(),
                "Threads" => fields.threads = first.parse().unwrap_or_default(),
                "VmRSS" => fields.rss_kib = first.parse().unwrap_or_default(),
                "VmSize" => fields.vms_kib = first.parse().unwrap_or_default(),
                _ => {}
            }
        }
        fields
    }
}

fn state(letter: &str) -> &'static str {
    match letter {
        "R" => "running",
        "S" => "sleeping",
        "D" => "disk-sleep",
        "T" => "stopped",
        "t" => "tracing-stop",
        "Z" => "zombie",
        "X" | "x" => "dead",
        "I" => "idle",
        _ => "unknown",
    }
}

fn pids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

fn name(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.trim_end();
    // The kernel keeps 15 letters; the rest is in the command line.
    let whole = command_line(pid)
        .first()
        .and_then(|first| first.rsplit('/').next())
        .filter(|whole| name.len() == 15 && whole.starts_with(name))
        .map(str::to_owned);
    whole.unwrap_or_else(|| name.to_owned())
}

fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.trim_end_matches('\0').split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn the_status_of_a_process_is_read() {
        let text = "Name:\tsshd\n\
            State:\tS (sleeping)\n\
            PPid:\t1\n\
            Uid:\t0\t0\t0\t0\n\
            Gid:\t0\t1\t2\t3\n\
            VmSize:\t   15432 kB\n\
            VmRSS:\t    9000 kB\n\
            Threads:\t3\n";
        let fields = Fields::read(text);
        assert_eq!((fields.name.as_str(), fields.state, fields.ppid), ("sshd", "sleeping", 1));
        assert_eq!((fields.gids, fields.threads, fields.rss_kib), (vec![0, 1, 2], 3, 9000));
    }

    #[tokio::test]
    async fn this_process_is_found_and_told() {
        let bench = Bench::new();
        let pid = std::process::id();
        let info = bench.call("ps.proc_info", &[pid.into()], &[]).await;
        assert_eq!(info.get("pid"), Some(&pid.into()));
        assert!(info.get("exe").and_then(Value::as_str).is_some_and(|exe| exe.contains("saltern_minion")));
        let some = bench.call("ps.proc_info", &[pid.into()], &[("attrs", Value::list(["pid"]))]).await;
        assert_eq!(some, Value::map([("pid", pid)]));
        let found = bench.call("ps.pgrep", &["saltern_minion".into()], &[("full", true.into())]).await;
        assert!(found.as_list().unwrap().contains(&pid.into()));
        assert_eq!(bench.call("ps.pgrep", &["no-such-process-name".into()], &[]).await, Value::Nil);
        assert!(bench.call("ps.get_pid_list", &[], &[]).await.as_list().unwrap().contains(&1.into()));
    }

    #[tokio::test]
    async fn only_real_processes_are_signalled() {
        let bench = Bench::new();
        for pid in [0, -1] {
            assert!(bench.fail("ps.kill_pid", &[pid.into()], &[]).await.contains("'pid' is not a number"));
        }
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(bench.call("ps.kill_pid", &[child.id().into()], &[]).await, true.into());
        child.wait().unwrap();
    }
}
