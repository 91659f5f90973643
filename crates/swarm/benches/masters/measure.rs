//! What is measured of one master, step by step. Each step that would spoil the next has a master of its own.

use crate::contender::{Contender, Which};
use crate::machine::{self, Peak};
use anyhow::{Result, ensure};
use saltern_swarm::{Acks, Options, Swarm};
use saltern_testkit::scratch::Scratch;
use std::time::{Duration, Instant};

/// Fleets that are pinged.
const FLEETS: [usize; 4] = [100, 500, 1_000, 2_000];
/// Those of them that are put under lasting load.
const FLOODED: [usize; 3] = [100, 1_000, 2_000];
/// A fleet that a stock master would take minutes to let in.
const LARGEST: usize = 5_000;
/// A fleet that acknowledges every job; the number is one that no other has.
const ACKNOWLEDGING: usize = 1_001;
const FLOOD: Duration = Duration::from_secs(15);
/// Jobs under way at once: what keeps the master busy without a queue that grows.
const RETURNS_AT_ONCE: usize = 4_000;
const MOST_JOBS_AT_ONCE: usize = 32;
/// Minions that sign in at once where every master copes.
const BURST: usize = 300;
/// … and where one does not.
const STORM: usize = 2_000;
const STORM_ENDS: Duration = Duration::from_secs(45);
/// How many per second a stock master can be sent, without a storm.
const STOCK_SIGN_INS: f64 = 60.0;
/// How long a ping may take before what is missing is told.
const PING_ENDS: Duration = Duration::from_secs(60);
/// How long nothing happens while that is measured.
const IDLE: Duration = Duration::from_secs(20);
/// Minions of the fleet whose master is killed, and how long they have afterwards.
const KILLED: usize = 1_000;
const AFTER_KILL: Duration = Duration::from_secs(60);
/// How often it is tried: what is lost is a matter of chance.
const KILLS: usize = 5;
const STOCK_KILLS: usize = 2;

/// What was measured of one master.
#[derive(Debug)]
pub(crate) struct Measured {
    /// How busy others kept the machine before and after
    pub(crate) others_percent: f64,
    pub(crate) base_bytes: u64,
    pub(crate) sign_ins_per_second: f64,
    pub(crate) sign_in_cpu_ms: f64,
    pub(crate) storm: Storm,
    /// The same minions once more: their keys are known now
    pub(crate) storm_again: Option<Storm>,
    pub(crate) pings: Vec<Ping>,
    pub(crate) floods: Vec<Flooded>,
    /// With every job acknowledged before it is begun
    pub(crate) flood_with_acks: Option<Flooded>,
    pub(crate) idle: Idle,
    pub(crate) kill: Kill,
}

/// Two thousand at once.
#[derive(Debug)]
pub(crate) struct Storm {
    pub(crate) minions: usize,
    pub(crate) in_within_5s: u64,
    pub(crate) in_at_the_end: u64,
    /// Until the last was in, if it was
    pub(crate) took_s: Option<f64>,
    pub(crate) per_second: f64,
}

/// From publish to the last confirmed return.
#[derive(Debug)]
pub(crate) struct Ping {
    pub(crate) minions: usize,
    /// The median of those that finished
    pub(crate) ms: Option<f64>,
    /// Returns that were confirmed in time, of the worst one
    pub(crate) confirmed: u64,
}

/// Lasting load.
#[derive(Debug)]
pub(crate) struct Flooded {
    pub(crate) minions: usize,
    pub(crate) returns_per_second: f64,
    pub(crate) cpu_s_per_1000: f64,
    pub(crate) swarm_cpu_s_per_1000: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) overdue: u64,
}

/// Nothing to do.
#[derive(Debug)]
pub(crate) struct Idle {
    pub(crate) minions: usize,
    pub(crate) bytes: u64,
    /// More than without them
    pub(crate) bytes_per_minion: f64,
    pub(crate) cpu_percent: f64,
}

/// A job accepted just before `kill -9`.
#[derive(Debug)]
pub(crate) struct Kill {
    pub(crate) minions: usize,
    /// How many have executed it in the end, in the worst of the tries
    pub(crate) executed: u64,
    pub(crate) doubles: u64,
    /// Of each try: how many had it already when the master was killed, and how many in the end
    pub(crate) tries: Vec<(u64, u64)>,
}

/// One master after the other until everything is measured.
pub(crate) async fn all(which: Which) -> Result<Measured> {
    let bench = Bench { which, keys: Scratch::new("bench-keys") };
    let others_before = machine::others_percent().await;
    let (base_bytes, idle) = bench.idle().await?;

    let master = Contender::start(which).await?;
    let (sign_ins_per_second, sign_in_cpu_ms) = bench.burst(&master).await?;
    let (mut pings, mut floods) = (Vec::new(), Vec::new());
    for minions in FLEETS {
        let swarm = bench.fleet(&master, minions, Acks::Never).await?;
        pings.push(bench.ping(&master, &swarm, minions).await?);
        if FLOODED.contains(&minions) {
            floods.push(bench.flood(&master, &swarm, minions).await);
        }
        swarm.stop().await;
    }
    let mut flood_with_acks = None;
    if which == Which::Saltern {
        floods.push(bench.flood_alone(&master, LARGEST, Acks::Never).await?);
        flood_with_acks = Some(bench.flood_alone(&master, ACKNOWLEDGING, Acks::Always).await?);
    }
    drop(master);

    let (storm, storm_again) = bench.storms().await?;
    let kill = bench.kill().await?;
    let others_percent = others_before.max(machine::others_percent().await);
    Ok(Measured {
        others_percent,
        base_bytes,
        sign_ins_per_second,
        sign_in_cpu_ms,
        storm,
        storm_again,
        pings,
        floods,
        flood_with_acks,
        idle,
        kill,
    })
}

struct Bench {
    which: Which,
    /// One RSA key for all swarms
    keys: Scratch,
}

impl Bench {
    /// Minions whose ids begin with their number, so that a job means one fleet and none that went before. They fetch no
    /// pillar and tell nothing of their start: a stock master takes a tenth of a second for each pillar.
    fn options(&self, master: &Contender, minions: usize) -> Options {
        Options {
            ret_port: master.ret_port(),
            count: minions,
            prefix: format!("of{minions}-"),
            key_dir: Some(self.keys.path().to_owned()),
            pillar: false,
            start_event: false,
            acks: Acks::Never,
            ..Options::default()
        }
    }

    async fn fleet(&self, master: &Contender, minions: usize, acks: Acks) -> Result<Swarm> {
        println!("{:?}: a fleet of {minions}", self.which);
        let sign_in_rate = if self.which == Which::Stock { STOCK_SIGN_INS } else { 0.0 };
        let swarm = Swarm::start(Options { sign_in_rate, acks, ..self.options(master, minions) }).await?;
        let patience = Duration::from_secs(60 + minions as u64 / 30);
        ensure!(swarm.all_ready(patience).await, "a fleet of {minions} did not come up: {:?}", swarm.report());
        Ok(swarm)
    }

    async fn burst(&self, master: &Contender) -> Result<(f64, f64)> {
        println!("{:?}: {BURST} sign in at once", self.which);
        let before = machine::cpu_seconds(master.group());
        let swarm = Swarm::start(self.options(master, BURST)).await?;
        ensure!(swarm.all_signed_in(STORM_ENDS).await, "{BURST} minions did not come in");
        let cpu = machine::cpu_seconds(master.group()) - before;
        let report = swarm.stop().await;
        Ok((report.sign_in.per_second, cpu * 1_000.0 / BURST as f64))
    }

    /// All at once at a master that knows none of them, and again at one that knows them all. A stock master is asked once:
    /// it does not get through the first time.
    async fn storms(&self) -> Result<(Storm, Option<Storm>)> {
        let master = Contender::start(self.which).await?;
        let first = self.storm(&master).await?;
        let again = match self.which {
            Which::Stock => None,
            Which::Saltern => Some(self.storm(&master).await?),
        };
        Ok((first, again))
    }

    async fn storm(&self, master: &Contender) -> Result<Storm> {
        println!("{:?}: {STORM} sign in at once", self.which);
        let swarm = Swarm::start(self.options(master, STORM)).await?;
        let begin = Instant::now();
        swarm.all_signed_in(Duration::from_secs(5)).await;
        let in_within_5s = swarm.progress().signed_in;
        let is_over = swarm.all_signed_in(STORM_ENDS.saturating_sub(begin.elapsed())).await;
        let report = swarm.stop().await;
        Ok(Storm {
            minions: STORM,
            in_within_5s,
            in_at_the_end: report.sign_in.minions,
            took_s: is_over.then_some(report.sign_in.took_s),
            per_second: report.sign_in.per_second,
        })
    }

    /// The memory of a fresh master without minions, and what it costs to have some that do nothing.
    async fn idle(&self) -> Result<(u64, Idle)> {
        let master = Contender::start(self.which).await?;
        // A stock master's processes are up one after the other.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let (base, data) = (machine::memory_bytes(master.group()), machine::data_bytes(master.group()));
        let swarm = self.fleet(&master, STORM, Acks::Never).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (begin, before) = (Instant::now(), machine::cpu_seconds(master.group()));
        tokio::time::sleep(IDLE).await;
        let cpu = machine::cpu_seconds(master.group()) - before;
        let cpu_percent = cpu / begin.elapsed().as_secs_f64() * 100.0;
        let more = machine::data_bytes(master.group()).saturating_sub(data);
        let idle = Idle {
            minions: STORM,
            bytes: machine::memory_bytes(master.group()),
            bytes_per_minion: more as f64 / STORM as f64,
            cpu_percent,
        };
        swarm.stop().await;
        Ok((base, idle))
    }

    async fn ping(&self, master: &Contender, swarm: &Swarm, minions: usize) -> Result<Ping> {
        let times = if self.which == Which::Stock && minions >= 1_000 { 1 } else { 5 };
        let (mut took, mut confirmed) = (Vec::new(), minions as u64);
        for _ in 0..times {
            let jid = master.publish(&format!("of{minions}-*")).await?;
            let is_finished = swarm.job_finished(&jid, PING_ENDS).await;
            let job = swarm.job(&jid);
            confirmed = confirmed.min(job.as_ref().map_or(0, |job| job.confirmed));
            took.extend(job.and_then(|job| job.since_jid_ms).filter(|_| is_finished));
        }
        took.sort_by(f64::total_cmp);
        Ok(Ping { minions, ms: took.get(took.len() / 2).copied(), confirmed })
    }

    async fn flood_alone(&self, master: &Contender, minions: usize, acks: Acks) -> Result<Flooded> {
        let swarm = self.fleet(master, minions, acks).await?;
        let flooded = self.flood(master, &swarm, minions).await;
        swarm.stop().await;
        Ok(flooded)
    }

    async fn flood(&self, master: &Contender, swarm: &Swarm, minions: usize) -> Flooded {
        let target = format!("of{minions}-*");
        let at_once = (RETURNS_AT_ONCE / minions).clamp(2, MOST_JOBS_AT_ONCE);
        let (before, own_before) = (machine::cpu_seconds(master.group()), swarm.report().usage.cpu_s());
        let peak = Peak::watch(master.group());
        let flood = swarm.flood(FLOOD, at_once, async || master.publish(&target).await.is_ok()).await;
        let cpu = machine::cpu_seconds(master.group()) - before;
        let report = swarm.report();
        let per_1000 = |seconds: f64| seconds * 1_000.0 / flood.returns.max(1) as f64;
        Flooded {
            minions,
            returns_per_second: flood.per_second,
            cpu_s_per_1000: per_1000(cpu),
            swarm_cpu_s_per_1000: per_1000(report.usage.cpu_s() - own_before),
            peak_bytes: peak.stop(),
            overdue: report.errors.get("return_overdue").copied().unwrap_or(0),
        }
    }

    /// Each try has a master and a fleet of its own.
    async fn kill(&self) -> Result<Kill> {
        let mut kill = Kill { minions: KILLED, executed: KILLED as u64, doubles: 0, tries: Vec::new() };
        for _ in 0..if self.which == Which::Stock { STOCK_KILLS } else { KILLS } {
            println!("{:?}: kill -9", self.which);
            let mut master = Contender::start(self.which).await?;
            let swarm = self.fleet(&master, KILLED, Acks::Never).await?;
            let jid = master.publish(&format!("of{KILLED}-*")).await?;
            let executed = || swarm.job(&jid).map_or(0, |job| job.executed);
            let before = executed();
            master.kill_and_restart().await?;
            swarm.job_finished(&jid, AFTER_KILL).await;
            kill.tries.push((before, executed()));
            kill.executed = kill.executed.min(executed());
            kill.doubles += swarm.job(&jid).map_or(0, |job| job.double_executions);
            swarm.stop().await;
        }
        Ok(kill)
    }
}
