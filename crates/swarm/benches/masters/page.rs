//! The numbers as a page: a table of both masters with ratios, and which of the targets are met.

use crate::agent::{self, Agent};
use crate::machine;
use crate::measure::{Flooded, Measured, Storm};
use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::path::Path;

/// What stands between these in the page is ours; the rest is written by hand.
const BEGIN: &str = "<!-- numbers: written by `make bench` -->";
const END: &str = "<!-- end of numbers -->";

/// Private RSA operations of a sign-in: two of the server, and one of the swarm, which shares its cores.
const RSA_PER_SIGN_IN: f64 = 3.0;

/// Puts the numbers into the page.
pub(crate) fn write(stock: &Measured, saltern: &Measured, agent: &Agent) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md");
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (before, rest) = page.split_once(BEGIN).context("the page has lost its place for numbers")?;
    let (_, after) = rest.split_once(END).context("the page has lost its place for numbers")?;
    let numbers = numbers(stock, saltern, agent);
    std::fs::write(&path, format!("{before}{BEGIN}\n\n{numbers}\n{END}{after}"))?;
    println!("{numbers}");
    Ok(())
}

fn numbers(stock: &Measured, saltern: &Measured, agent: &Agent) -> String {
    let others = stock.others_percent.max(saltern.others_percent);
    let mut page = format!("Measured with `make bench` on {}.\n", machine::description());
    let _ = writeln!(page, "Before and after, other processes kept the machine up to {others:.0} % busy.\n");
    page += "| what | salt-master 3008 | Saltern | ratio |\n|---|---|---|---|\n";
    for row in rows(stock, saltern) {
        let _ = writeln!(page, "| {} | {} | {} | {} |", row.what, row.stock, row.saltern, row.ratio);
    }
    page += "\n| target | measured | met |\n|---|---|---|\n";
    for target in targets(stock, saltern).into_iter().chain(agent_targets(agent)) {
        let met = if target.is_met { "yes" } else { "**no**" };
        let _ = writeln!(page, "| {} | {} | {met} |", target.what, target.measured);
    }
    page
}

struct Row {
    what: String,
    stock: String,
    saltern: String,
    ratio: String,
}

fn rows(stock: &Measured, saltern: &Measured) -> Vec<Row> {
    let mut rows = vec![
        row("sign-ins per second, 300 at once", stock.sign_ins_per_second, saltern.sign_ins_per_second, count),
        row("server CPU per sign-in", stock.sign_in_cpu_ms, saltern.sign_in_cpu_ms, ms),
        Row {
            what: format!("sign-in storm: {} at once", saltern.storm.minions),
            stock: storm(&stock.storm),
            saltern: storm(&saltern.storm),
            ratio: String::new(),
        },
        Row {
            what: format!("the same minions again, their keys known: {} at once", saltern.storm.minions),
            stock: "–".into(),
            saltern: saltern.storm_again.as_ref().map_or_else(String::new, storm),
            ratio: String::new(),
        },
    ];
    for (theirs, ours) in stock.pings.iter().zip(&saltern.pings) {
        let shown = |ping: &crate::measure::Ping| match ping.ms {
            Some(took) => ms(took),
            None => format!("{} of {} in 60 s", ping.confirmed, ping.minions),
        };
        rows.push(Row {
            what: format!("publish → last return committed, {} minions", ours.minions),
            stock: shown(theirs),
            saltern: shown(ours),
            ratio: theirs.ms.zip(ours.ms).map_or_else(String::new, |(theirs, ours)| ratio(theirs, ours)),
        });
    }
    for ours in &saltern.floods {
        let theirs = stock.floods.iter().find(|theirs| theirs.minions == ours.minions);
        rows.extend(flood_rows(theirs, ours, ""));
    }
    if let Some(ours) = &saltern.flood_with_acks {
        rows.extend(flood_rows(None, ours, ", each job acknowledged first"));
    }
    rows.push(row("memory, no minions", stock.base_bytes as f64, saltern.base_bytes as f64, mib));
    let idle = format!("memory, {} idle minions", saltern.idle.minions);
    rows.push(row(&idle, stock.idle.bytes as f64, saltern.idle.bytes as f64, mib));
    let idle = format!("CPU, {} idle minions", saltern.idle.minions);
    let percent = |percent: f64| format!("{percent:.1} % of a core");
    rows.push(row(&idle, stock.idle.cpu_percent, saltern.idle.cpu_percent, percent));
    let killed = |of: &Measured| match of.kill.doubles {
        0 => format!("{} of {}", of.kill.executed, of.kill.minions),
        twice => format!("{} of {}, {twice} twice", of.kill.executed, of.kill.minions),
    };
    rows.push(Row {
        what: "minions that run a job accepted just before `kill -9`".into(),
        stock: killed(stock),
        saltern: killed(saltern),
        ratio: String::new(),
    });
    rows
}

fn flood_rows(theirs: Option<&Flooded>, ours: &Flooded, how: &str) -> Vec<Row> {
    let of = format!("{} minions{how}", ours.minions);
    let pair = |what: String, pick: fn(&Flooded) -> f64, show: fn(f64) -> String| match theirs {
        Some(theirs) => row(&what, pick(theirs), pick(ours), show),
        None => Row { what, stock: "–".into(), saltern: show(pick(ours)), ratio: String::new() },
    };
    let mut rows = vec![
        pair(format!("returns per second, sustained, {of}"), |of| of.returns_per_second, count),
        pair(format!("… server CPU per 1,000 returns, {of}"), |of| of.cpu_s_per_1000, seconds),
        pair(format!("… the swarm's own CPU per 1,000 returns, {of}"), |of| of.swarm_cpu_s_per_1000, seconds),
        pair(format!("… server memory at its peak, {of}"), |of| of.peak_bytes as f64, mib),
    ];
    if ours.overdue + theirs.map_or(0, |theirs| theirs.overdue) > 0 {
        rows.push(pair(format!("… returns not confirmed in three tries, {of}"), |of| of.overdue as f64, count));
    }
    rows
}

struct Target {
    what: &'static str,
    measured: String,
    is_met: bool,
}

fn agent_targets(agent: &Agent) -> [Target; 2] {
    [
        Target {
            what: "an idle native minion ≤ 15 MB resident",
            measured: format!("{:.1} MB", agent.resident_mb),
            is_met: agent.resident_mb <= agent::MOST_RESIDENT_MB,
        },
        Target {
            what: "`saltern up --minions 3` answers a `test.ping` within 3 s of its start",
            measured: format!("{:.0} ms", agent.up_ms),
            is_met: agent.up_ms <= agent::MOST_UP_MS,
        },
    ]
}

fn targets(stock: &Measured, saltern: &Measured) -> Vec<Target> {
    let both = || {
        let same = |ours: &&Flooded| stock.floods.iter().find(|theirs| theirs.minions == ours.minions);
        saltern.floods.iter().filter_map(move |ours| Some((same(&ours)?, ours)))
    };
    let least = |ratios: Vec<f64>| ratios.into_iter().fold(f64::INFINITY, f64::min);
    let speed = least(both().map(|(theirs, ours)| ours.returns_per_second / theirs.returns_per_second).collect());
    let cpu = least(both().map(|(theirs, ours)| theirs.cpu_s_per_1000 / ours.cpu_s_per_1000).collect());
    let flat = |pick: fn(&Flooded) -> f64| {
        let values: Vec<f64> = saltern.floods.iter().map(pick).collect();
        values.iter().copied().fold(0.0, f64::max) / least(values)
    };
    let (speed_spread, cpu_spread) = (flat(|of| of.returns_per_second), flat(|of| of.cpu_s_per_1000));
    let ping = stock.pings.last().zip(saltern.pings.last()).and_then(|(theirs, ours)| Some(theirs.ms? / ours.ms?));
    let allowed = machine::rsa_operations_per_second() / RSA_PER_SIGN_IN;
    let known = saltern.storm_again.as_ref().map_or(0.0, |storm| storm.per_second);
    let sign_ins = known / allowed * 100.0;
    let per_minion = saltern.idle.bytes_per_minion;
    let memory = stock.idle.bytes as f64 / saltern.idle.bytes.max(1) as f64;
    let storm = saltern.storm.took_s;
    let kill = &saltern.kill;
    vec![
        Target {
            what: "returns per second ≥ 100×",
            measured: format!("{speed:.0}× at the least"),
            is_met: speed >= 100.0,
        },
        Target {
            what: "returns per second flat from 100 to 5,000 minions",
            measured: format!("the best is {speed_spread:.2}× the worst"),
            is_met: speed_spread <= 1.5,
        },
        Target {
            what: "CPU per 1,000 returns ≤ 1/100",
            measured: format!("1/{cpu:.0} at the most"),
            is_met: cpu >= 100.0,
        },
        Target {
            what: "CPU per 1,000 returns flat in the number of minions",
            measured: format!("the most is {cpu_spread:.2}× the least"),
            is_met: cpu_spread <= 1.5,
        },
        Target {
            what: "publish → last return committed, 2,000 minions, ≤ 1/50",
            measured: ping.map_or("the stock master did not finish".into(), |ping| format!("1/{ping:.0}")),
            is_met: ping.is_none_or(|ping| ping >= 50.0) && saltern.pings.last().is_some_and(|ours| ours.ms.is_some()),
        },
        Target {
            what: "sign-ins per second of known minions ≥ 70 % of what RSA allows (two operations here, one in the swarm)",
            measured: format!("{sign_ins:.0} % of {allowed:.0}"),
            is_met: sign_ins >= 70.0,
        },
        Target {
            what: "2,000 sign in at once: all within 5 s",
            measured: storm.map_or("never".into(), |took| format!("{took:.1} s")),
            is_met: storm.is_some_and(|took| took <= 5.0),
        },
        Target {
            what: "memory with 2,000 idle minions ≤ 1/8",
            measured: format!("1/{memory:.1}"),
            is_met: memory >= 8.0,
        },
        Target {
            what: "memory per idle minion ≤ 15 KB",
            measured: format!("{:.1} KB", per_minion / 1_000.0),
            is_met: per_minion <= 15_000.0,
        },
        Target {
            what: "idle CPU with 2,000 minions < 1 % of a core",
            measured: format!("{:.1} %", saltern.idle.cpu_percent),
            is_met: saltern.idle.cpu_percent < 1.0,
        },
        Target {
            what: "a job accepted just before `kill -9` reaches every minion, once",
            measured: format!("{} of {}, {} twice", kill.executed, kill.minions, kill.doubles),
            is_met: kill.executed == kill.minions as u64 && kill.doubles == 0,
        },
    ]
}

fn row(what: &str, theirs: f64, ours: f64, show: fn(f64) -> String) -> Row {
    Row { what: what.to_owned(), stock: show(theirs), saltern: show(ours), ratio: ratio(theirs, ours) }
}

/// How many times the larger is the smaller.
fn ratio(theirs: f64, ours: f64) -> String {
    let (large, small) = if theirs > ours { (theirs, ours) } else { (ours, theirs) };
    match large / small {
        times if !times.is_finite() => String::new(),
        times if times < 10.0 => format!("{times:.1}×"),
        times => format!("{times:.0}×"),
    }
}

fn storm(storm: &Storm) -> String {
    match storm.took_s {
        Some(took) => format!("all in after {took:.1} s ({:.0} per second)", storm.per_second),
        None => format!("{} in after 5 s, {} after 45 s", storm.in_within_5s, storm.in_at_the_end),
    }
}

fn count(number: f64) -> String {
    format!("{number:.0}")
}

fn ms(millis: f64) -> String {
    if millis < 10.0 { format!("{millis:.2} ms") } else { format!("{millis:.0} ms") }
}

fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{seconds:.3} s") } else { format!("{seconds:.1} s") }
}

fn mib(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / f64::from(1 << 20))
}
