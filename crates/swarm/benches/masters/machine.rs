//! What the operating system knows: the processor time and memory of a master with all its processes, and the machine.

use anyhow::{Context as _, Result, ensure};
use saltern_swarm::Usage;
use saltern_wire::crypto::{PrivateKey, SigAlgo};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The unit of processor time in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time that a process group has used, children that have ended included.
pub(crate) fn cpu_seconds(group: u32) -> f64 {
    // utime, stime and those of children that were waited for; a living child's time is counted at the child.
    let ticks = |fields: &[u64]| fields.iter().sum::<u64>() as f64;
    stats(group).values().map(|fields| ticks(&fields[11..15])).sum::<f64>() / TICKS_PER_SECOND
}

/// Bytes of memory of a process group; what several processes share counts once.
pub(crate) fn memory_bytes(group: u32) -> u64 {
    proportional_share(group, "Pss:")
}

/// The part of it that is no file's: what grows with the number of minions.
pub(crate) fn data_bytes(group: u32) -> u64 {
    proportional_share(group, "Pss_Anon:")
}

/// Megabytes of memory that a single process has resident, what it shares with others included.
pub(crate) fn resident_mb(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the kernel tells no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    ensure!(kib > 0.0, "process {pid} has no memory");
    Ok(kib / 1_024.0)
}

/// Bytes in megabytes.
#[expect(clippy::cast_precision_loss, reason = "memory far below 2^53 bytes")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    (bytes >> 10) as f64 / 1_024.0
}

fn proportional_share(group: u32, name: &str) -> u64 {
    let share = |pid: u32| {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = rollup.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    stats(group).into_keys().map(share).sum()
}

/// How busy all cores are, in percent, while nothing of ours runs: what others take from the measurement.
pub(crate) async fn others_percent() -> f64 {
    let (begin, before) = (Instant::now(), busy_seconds());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    (busy_seconds() - before) / begin.elapsed().as_secs_f64() / cores * 100.0
}

/// Seconds that the cores have worked since the machine was started, together.
fn busy_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    // user, nice, system; then idle and iowait; then irq, softirq, steal.
    let ticks: Vec<f64> = line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
    let busy = |range: std::ops::Range<usize>| ticks.get(range).unwrap_or_default().iter().sum::<f64>();
    (busy(0..3) + busy(5..8)) / TICKS_PER_SECOND
}

/// The fields of `/proc/<pid>/stat` after the name, by process of the group.
fn stats(group: u32) -> HashMap<u32, Vec<u64>> {
    let mut found = HashMap::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<u64> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        if fields.len() > 15 && fields[2] == u64::from(group) {
            found.insert(pid, fields);
        }
    }
    found
}

/// The most memory of a process group, looked at twice a second until it is asked for.
pub(crate) struct Peak {
    watching: tokio::task::JoinHandle<()>,
    most: Arc<AtomicU64>,
}

impl Peak {
    pub(crate) fn watch(group: u32) -> Self {
        let most = Arc::<AtomicU64>::default();
        let seen = most.clone();
        let watching = tokio::spawn(async move {
            loop {
                seen.fetch_max(memory_bytes(group), Relaxed);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        Self { watching, most }
    }

    pub(crate) fn stop(self) -> u64 {
        self.watching.abort();
        self.most.load(Relaxed)
    }
}

/// The machine in a line, without names and dates.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: u64 = total.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let gib = kib as f64 / f64::from(1 << 20);
    let rsa = rsa_operations_per_second();
    format!(
        "{cores} cores, {gib:.0} GiB of memory, {rsa:.0} private RSA-2048 operations per second on all cores together"
    )
}

/// Private RSA operations per second on all cores together, if they have nothing else to do.
pub(crate) fn rsa_operations_per_second() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let key = PrivateKey::generate(2048).expect("a key can be made");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (begin, before) = (Instant::now(), Usage::now().cpu_s());
        let count = || {
            let mut count = 0_u64;
            while begin.elapsed() < Duration::from_secs(1) {
                count += u64::from(key.sign(SigAlgo::Pkcs1v15Sha1, b"how many of these?").is_ok());
            }
            count
        };
        let signed: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        });
        // By processor time: what others do meanwhile is not the machine's limit.
        signed as f64 / (Usage::now().cpu_s() - before).max(0.01) * cores as f64
    })
}

/// Allows this process as many open files as the system lets it: each light minion has two connections.
pub(crate) fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Whoever needs more than there are is told by the connections that fail.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
