//! `status.*`: how the machine is doing, from `/proc`.

mod proc;

use super::call::Answer;
use super::command::{Command, blocking};
use super::{Call, Failure, Function, Outcome, Param, find_program};
use crate::clock;
use futures_util::FutureExt;
use saltern_core::target::Glob;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a master may take to take a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "status.all_status",
        params: &[],
        doc: "Tell everything that the other functions of this module tell.\n\n\
              CLI Example:\n\n    saltern run '*' status.all_status\n",
        run: |call| async move { all(&call).await }.boxed(),
    },
    Function {
        name: "status.cpuinfo",
        params: &[],
        doc: "Tell about the processor.\n\nCLI Example:\n\n    saltern run '*' status.cpuinfo\n",
        run: |call| call.blocking(|_| Ok(proc::cpuinfo(&read("cpuinfo")).into())),
    },
    Function {
        name: "status.cpustats",
        params: &[],
        doc: "Tell how the processors have spent their time since the boot.\n\n\
              CLI Example:\n\n    saltern run '*' status.cpustats\n",
        run: |call| call.blocking(|_| Ok(proc::cpustats(&read("stat")).into())),
    },
    Function {
        name: "status.diskstats",
        params: &[],
        doc: "Tell what each disk has read and written since the boot.\n\n\
              CLI Example:\n\n    saltern run '*' status.diskstats\n",
        run: |call| call.blocking(|_| Ok(proc::diskstats(&read("diskstats")).into())),
    },
    Function {
        name: "status.diskusage",
        params: &[Param::Rest("args")],
        doc: "Tell how much room file systems have, in bytes: of all, of the paths given, or of the kinds given.\n\n\
              CLI Example:\n\n    saltern run '*' status.diskusage /home ext4\n",
        run: |call| call.blocking(|call| Ok(diskusage(call.rest()).into())),
    },
    Function {
        name: "status.loadavg",
        params: &[],
        doc: "Tell the load of the last 1, 5 and 15 minutes.\n\nCLI Example:\n\n    saltern run '*' status.loadavg\n",
        run: |call| {
            call.blocking(|_| proc::loadavg(&read("loadavg")).map(Outcome::from).ok_or_else(|| missing("loadavg")))
        },
    },
    Function {
        name: "status.master",
        params: &[Param::Optional("master", "None"), Param::Optional("connected", "True")],
        doc: "Tell whether the minion has a connection to its master.\n\n\
              CLI Example:\n\n    saltern run '*' status.master\n",
        run: |call| async move { master(&call).await }.boxed(),
    },
    Function {
        name: "status.meminfo",
        params: &[],
        doc: "Tell how memory is used.\n\nCLI Example:\n\n    saltern run '*' status.meminfo\n",
        run: |call| call.blocking(|_| Ok(proc::meminfo(&read("meminfo")).into())),
    },
    Function {
        name: "status.netdev",
        params: &[],
        doc: "Tell what each interface has received and sent since the boot.\n\n\
              CLI Example:\n\n    saltern run '*' status.netdev\n",
        run: |call| call.blocking(|_| Ok(proc::netdev(&read("net/dev")).into())),
    },
    Function {
        name: "status.netstats",
        params: &[],
        doc: "Tell the counters of the network protocols.\n\nCLI Example:\n\n    saltern run '*' status.netstats\n",
        run: |call| call.blocking(|_| Ok(proc::netstats(&read("net/netstat")).into())),
    },
    Function {
        name: "status.nproc",
        params: &[],
        doc: "Tell how many processors there are.\n\nCLI Example:\n\n    saltern run '*' status.nproc\n",
        run: |call| call.at_once(|_| Ok(std::thread::available_parallelism().map_or(1, usize::from).into())),
    },
    Function {
        name: "status.pid",
        params: &[Param::Required("sig")],
        doc: "Give the numbers of the processes whose line in the process list fits a pattern, one per line.\n\n\
              CLI Example:\n\n    saltern run '*' status.pid sshd\n",
        run: |call| async move { pid(&call).await }.boxed(),
    },
    Function {
        name: "status.ping_master",
        params: &[Param::Required("master")],
        doc: "Tell whether a master's request port takes connections.\n\n\
              CLI Example:\n\n    saltern run '*' status.ping_master localhost\n",
        run: |call| async move { ping_master(&call).await }.boxed(),
    },
    Function {
        name: "status.procs",
        params: &[],
        doc: "List the processes with their users and command lines.\n\n\
              CLI Example:\n\n    saltern run '*' status.procs\n",
        run: |call| async move { Ok(proc::processes(&process_list(&call).await?).into()) }.boxed(),
    },
    Function {
        name: "status.uptime",
        params: &[],
        doc: "Tell for how long the machine has been up.\n\nCLI Example:\n\n    saltern run '*' status.uptime\n",
        run: |call| async move { uptime(&call).await }.boxed(),
    },
    Function {
        name: "status.version",
        params: &[],
        doc: "Tell the kernel's version.\n\nCLI Example:\n\n    saltern run '*' status.version\n",
        run: |call| call.blocking(|_| Ok(read("version").trim().into())),
    },
    Function {
        name: "status.vmstats",
        params: &[],
        doc: "Tell the counters of virtual memory.\n\nCLI Example:\n\n    saltern run '*' status.vmstats\n",
        run: |call| call.blocking(|_| Ok(proc::vmstats(&read("vmstat")).into())),
    },
    Function {
        name: "status.w",
        params: &[],
        doc: "List who is logged in.\n\nCLI Example:\n\n    saltern run '*' status.w\n",
        run: |call| async move { Ok(who(&call).await?.into()) }.boxed(),
    },
];

async fn all(call: &Call) -> Answer {
    // A file system that hangs must hold up this call only.
    let mut told = blocking(|| {
        let mut told = Map::new();
        told.push("cpuinfo", proc::cpuinfo(&read("cpuinfo")));
        told.push("cpustats", proc::cpustats(&read("stat")));
        told.push("diskstats", proc::diskstats(&read("diskstats")));
        told.push("diskusage", diskusage(&[]));
        told.push("loadavg", proc::loadavg(&read("loadavg")));
        told.push("meminfo", proc::meminfo(&read("meminfo")));
        told.push("netdev", proc::netdev(&read("net/dev")));
        told.push("netstats", proc::netstats(&read("net/netstat")));
        told.push("vmstats", proc::vmstats(&read("vmstat")));
        told
    })
    .await?;
    told.push("uptime", uptime(call).await?.value);
    told.push("w", who(call).await?);
    Ok(told.into())
}

async fn uptime(call: &Call) -> Answer {
    let seconds = read("uptime").split(['.', ' ']).next().and_then(|seconds| seconds.parse::<i64>().ok());
    let seconds = seconds.ok_or_else(|| missing("uptime"))?;
    let users = if find_program("who").is_some() {
        let done = Command::tool("who").args(["-s"]).run(&call.context).await?;
        Some(done.text().lines().count())
    } else {
        None
    };
    Ok(uptime_told(seconds, clock::now(), users).into())
}

fn uptime_told(seconds: i64, now: Timestamp, users: Option<usize>) -> Map {
    let since = now.minus(Duration::from_secs(seconds.unsigned_abs()));
    let mut told = Map::new();
    told.push("seconds", seconds);
    told.push("since_iso", since.stamp().trim_end_matches("+00:00"));
    told.push("since_t", since.0.div_euclid(1_000_000));
    told.push("days", seconds / 86_400);
    told.push("time", format!("{}:{}", seconds % 86_400 / 3600, seconds % 3600 / 60));
    if let Some(users) = users {
        told.push("users", users);
    }
    told
}

/// Free and total bytes; names that begin with a slash are paths, others are kinds of file systems, with wildcards.
fn diskusage(args: &[Value]) -> Map {
    let names: Vec<String> = args.iter().map(|arg| arg.key_text().into_owned()).collect();
    let (paths, kinds): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| name.starts_with('/'));
    let kinds: Vec<Glob> =
        if names.is_empty() { vec![Glob::new("*")] } else { kinds.into_iter().map(|kind| Glob::new(kind)).collect() };
    let mut selected: BTreeSet<String> = paths.into_iter().cloned().collect();
    for line in read("mounts").lines() {
        let mut columns = line.split_whitespace().skip(1);
        if let (Some(path), Some(kind)) = (columns.next(), columns.next())
            && kinds.iter().any(|glob| glob.matches(kind))
        {
            selected.insert(path.to_owned());
        }
    }
    let mut told = Map::new();
    for path in selected {
        if let Ok(stat) = rustix::fs::statvfs(&path) {
            let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
            told.push(path, Value::map([("available", bytes(stat.f_bavail)), ("total", bytes(stat.f_blocks))]));
        }
    }
    told
}

/// The master answers on its request port, or it does not.
async fn master(call: &Call) -> Answer {
    let Some(link) = &call.context.link else { return Ok(Value::Nil.into()) };
    let address = match call.opt_text("master")? {
        Some(master) => with_port(call, &master),
        None => link.master_address(),
    };
    Ok((is_reachable(&address).await == call.flag("connected", true)).into())
}

async fn ping_master(call: &Call) -> Answer {
    let address = with_port(call, &call.text("master")?);
    Ok(is_reachable(&address).await.into())
}

fn with_port(call: &Call, master: &str) -> String {
    if master
        .rsplit_once(':')
        .is_some_and(|(host, port)| port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']')))
    {
        return master.to_owned();
    }
    let port = call.context.opts.get("master_port").and_then(Value::as_i64).unwrap_or(4506);
    if master.contains(':') { format!("[{master}]:{port}") } else { format!("{master}:{port}") }
}

async fn is_reachable(address: &str) -> bool {
    matches!(tokio::time::timeout(CONNECT_PATIENCE, tokio::net::TcpStream::connect(address)).await, Ok(Ok(_)))
}

async fn pid(call: &Call) -> Answer {
    let pattern = call.text("sig")?;
    let pattern =
        regex::Regex::new(&pattern).map_err(|error| Failure::Command(format!("'sig' is not a pattern: {error}")))?;
    let own = std::process::id().to_string();
    let list = process_list(call).await?;
    let number = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    // Neither we nor the program that makes the list are what is looked for.
    let is_other = |line: &&str| number(line).as_ref() != Some(&own) && !line.trim_end().ends_with("ps -efHww");
    let numbers: Vec<String> =
        list.lines().skip(1).filter(|line| pattern.is_match(line)).filter(is_other).filter_map(number).collect();
    Ok(numbers.join("\n").into())
}

async fn process_list(call: &Call) -> Result<String, Failure> {
    Ok(Command::tool("ps").args(["-efHww"]).succeed(&call.context).await?.text())
}

async fn who(call: &Call) -> Result<Value, Failure> {
    if find_program("w").is_none() {
        return Ok(Value::List(Vec::new()));
    }
    Ok(proc::logins(&Command::tool("w").args(["-fh"]).run(&call.context).await?.text()))
}

fn read(file: &str) -> String {
    std::fs::read(format!("/proc/{file}")).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn missing(file: &str) -> Failure {
    Failure::Command(format!("File /proc/{file} was not found."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn uptime_is_told_in_salts_shape() {
        let told = Value::Map(uptime_told(93_784, Timestamp(1_700_000_000_250_000), Some(2)));
        let expected = Value::map([
            ("seconds", Value::Int(93_784)),
            ("since_iso", "2023-11-13T20:10:16.250000".into()),
            ("since_t", 1_699_906_216.into()),
            ("days", 1.into()),
            ("time", "2:3".into()),
            ("users", 2.into()),
        ]);
        assert_eq!(told, expected);
    }

    #[tokio::test]
    async fn this_machine_tells_all_about_itself() {
        let bench = Bench::new();
        let told = bench.call("status.all_status", &[], &[]).await;
        for name in ["cpuinfo", "cpustats", "diskusage", "loadavg", "meminfo", "netdev", "uptime", "vmstats"] {
            assert!(told.get(name).is_some_and(Value::is_truthy), "{name}");
        }
        assert!(bench.call("status.nproc", &[], &[]).await.as_i64().is_some_and(|n| n > 0));
        assert!(bench.call("status.version", &[], &[]).await.as_str().unwrap().starts_with("Linux version"));
        assert!(bench.call("status.diskusage", &["/".into()], &[]).await.get("/").is_some());
    }

    #[tokio::test]
    async fn a_process_is_found_by_its_line() {
        let mut child = std::process::Command::new("sleep").arg("98765").spawn().unwrap();
        let found = Bench::new().call("status.pid", &["sleep 9876[5]".into()], &[]).await;
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.as_str().unwrap().lines().any(|pid| pid == child.id().to_string()), "{found:?}");
    }

    #[tokio::test]
    async fn a_master_is_reachable_or_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let bench = Bench::new();
        assert_eq!(bench.call("status.ping_master", &[address.as_str().into()], &[]).await, true.into());
        drop(listener);
        assert_eq!(bench.call("status.ping_master", &[address.as_str().into()], &[]).await, false.into());
    }
}
