//! What a million finished runs cost a server: the same questions and the same work, before it has them and after.
//!
//! The pages are of the same length both times, so that what grows is the way to them. Before, they hold what the benchmark
//! has done itself; afterwards failed and archived actions lie behind all others.

use crate::contender::ping;
use crate::machine;
use crate::past::{self, Past};
use anyhow::{Context as _, Result, bail, ensure};
use saltern_api::client::{ActionQuery, Client, ClientError, Endpoint, EventQuery, JobQuery, RunQuery};
use saltern_api::shape::{ActionVerb, VerbRequest};
use saltern_swarm::{Acks, Options, Swarm};
use saltern_testkit::process::Saltern;
use saltern_testkit::scratch::Scratch;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Minions that a job is dispatched to.
const MINIONS: usize = 20;
/// Minions that fail whatever they are told; as many as a page of runs has.
const FAILING: usize = 100;
/// Rows of a page of actions or jobs, and of runs.
const PAGE: usize = 50;
const PAGE_OF_RUNS: usize = FAILING;
/// How often each is measured, after as many as it takes to be warm.
const TIMES: usize = 100;
const WARM: usize = 10;
const STARTS: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);
/// How much slower the past may make it, and what is noise on any machine.
const MOST_TIMES: f64 = 1.5;
const NOISE_MS: f64 = 2.0;

/// Measures both, prints the table, and fails if the past makes a list, an explanation or a dispatch slower than it may.
pub(crate) async fn run() -> Result<()> {
    let mut bench = Bench { server: Saltern::start("", &["--auto-accept"]).await, keys: Scratch::new("bench-keys") };
    let others_before = machine::others_percent().await;
    let made = bench.furnish().await?;
    println!("history: with next to nothing in the database");
    let before = bench.measure(&made).await?;

    println!("history: writing {} runs", past::ACTIONS * past::MINIONS);
    bench.server.terminate().await;
    let past = past::write(&bench.server.data_dir().join("saltern.db"), made.model)?;
    bench.server.launch().await;
    bench.check(&past).await?;
    println!("history: with all of it");
    let asked = Asked { listed: past.action, old: (past.action, past.minion.clone()), ..made };
    let after = bench.measure(&asked).await?;

    let others = others_before.max(bench.others().await);
    println!("\n{}", page(&before, &after, &past, others));
    let slower: Vec<&str> = pairs(&before, &after).filter(|pair| pair.is_too_slow()).map(|pair| pair.what).collect();
    ensure!(slower.is_empty(), "slower than {MOST_TIMES}× and {NOISE_MS} ms: {}", slower.join(", "));
    Ok(())
}

struct Bench {
    server: Saltern,
    /// One RSA key for all swarms
    keys: Scratch,
}

/// What is asked about.
struct Asked {
    /// The action that the past is copied from
    model: i64,
    /// The action whose runs are listed
    listed: i64,
    /// A run of an action of long ago
    old: (i64, String),
}

/// One number, the median of many.
#[derive(Clone, Copy)]
struct Measured {
    what: &'static str,
    unit: Unit,
    value: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// Milliseconds of something that is limited
    LimitedMs,
    Ms,
    Mb,
}

impl Bench {
    fn client(&self) -> Client {
        Client::new(Endpoint::Control(self.server.data_dir().join(saltern_api::control::FILE_NAME)))
    }

    async fn fleet(&self, prefix: &str, count: usize, fail_rate: f64) -> Result<Swarm> {
        let options = Options {
            ret_port: self.server.ports().return_port,
            count,
            prefix: prefix.to_owned(),
            key_dir: Some(self.keys.path().to_owned()),
            pillar: false,
            start_event: false,
            acks: Acks::Never,
            fail_rate,
            ..Options::default()
        };
        let swarm = Swarm::start(options).await?;
        ensure!(swarm.all_ready(PATIENCE).await, "a fleet of {count} did not come up: {:?}", swarm.report());
        Ok(swarm)
    }

    /// Enough actions of every kind to fill a page of each.
    async fn furnish(&self) -> Result<Asked> {
        let failing = self.fleet("failing-", FAILING, 1.0).await?;
        let mut failed = Vec::new();
        for _ in 0..PAGE {
            failed.push(self.dispatch(&failing, "failing-*").await?.action);
        }
        failing.stop().await;
        let swarm = self.fleet("well-", MINIONS, 0.0).await?;
        let mut done = Vec::new();
        for _ in 0..2 * PAGE {
            done.push(self.dispatch(&swarm, "well-*").await?.action);
        }
        swarm.stop().await;
        let request = VerbRequest { ids: done[..PAGE].to_vec(), ..VerbRequest::default() };
        self.client().act(ActionVerb::Archive, &request).await?;
        let minion =
            self.client().runs(failed[0], &RunQuery::default()).await?.runs.first().map(|run| run.minion.clone());
        let minion = minion.context("nothing has run")?;
        Ok(Asked { model: done[PAGE], listed: failed[0], old: (failed[0], minion) })
    }

    async fn measure(&mut self, asked: &Asked) -> Result<Vec<Measured>> {
        let mut all = self.starts().await?.to_vec();
        let swarm = self.fleet("well-", MINIONS, 0.0).await?;
        let fresh = self.dispatch(&swarm, "well-*").await?.action;
        let minion = self.client().runs(fresh, &RunQuery::default()).await?.runs.first().map(|run| run.minion.clone());
        all.extend(self.lists(asked.listed).await?);
        let (old, old_minion) = (asked.old.0, asked.old.1.as_str());
        let minion = minion.context("nothing has run")?;
        let client = &self.client();
        all.push(
            asking("explain a run, old action", async || client.explain(old, old_minion).await.map(|_| 1), 1).await?,
        );
        all.push(
            asking("explain a run, new action", async || client.explain(fresh, &minion).await.map(|_| 1), 1).await?,
        );
        let mut took = Vec::new();
        for _ in 0..TIMES {
            took.push(self.dispatch(&swarm, "well-*").await?.took_ms);
        }
        all.push(Measured {
            what: "publish → last return committed, 20 minions",
            unit: Unit::LimitedMs,
            value: median(took),
        });
        swarm.stop().await;
        Ok(all)
    }

    async fn lists(&self, listed: i64) -> Result<Vec<Measured>> {
        let client = &self.client();
        let actions = |state: &str, archived: bool| ActionQuery {
            limit: Some(PAGE),
            state: (!state.is_empty()).then(|| state.to_owned()),
            archived,
            ..ActionQuery::default()
        };
        let mut all = Vec::new();
        for (what, query, rows) in [
            ("actions, page of 50", actions("", false), PAGE),
            ("failed actions, page of 50", actions("failed", false), PAGE),
            ("archived actions, page of 50", actions("", true), PAGE),
            ("open actions (none)", actions("open", false), 0),
        ] {
            all.push(asking(what, async || Ok(client.actions(&query).await?.actions.len()), rows).await?);
        }
        let jobs = JobQuery { limit: Some(PAGE), ..JobQuery::default() };
        all.push(asking("jobs, page of 50", async || Ok(client.jobs(&jobs).await?.jobs.len()), PAGE).await?);
        let runs = RunQuery { limit: Some(PAGE_OF_RUNS), ..RunQuery::default() };
        let runs = async || Ok(client.runs(listed, &runs).await?.runs.len());
        all.push(asking("runs of an action, page of 100", runs, PAGE_OF_RUNS).await?);
        Ok(all)
    }

    /// From the start of the process to the first answer, and its memory then. Leaves the server running.
    async fn starts(&mut self) -> Result<[Measured; 2]> {
        let (mut took, mut resident) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            self.server.terminate().await;
            let (client, begin) = (self.client(), Instant::now());
            // Looked at more often than a launch does by itself.
            let serves = async {
                while client.status().await.is_err() {
                    if begin.elapsed() > PATIENCE {
                        bail!("the server does not serve");
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Ok(begin.elapsed())
            };
            let ((), serving) = tokio::join!(self.server.launch(), serves);
            took.push(serving?.as_secs_f64() * 1_000.0);
            resident.push(machine::resident_mb(self.server.pid().unwrap_or(0))?);
        }
        Ok([
            Measured { what: "start of the server to its first answer", unit: Unit::Ms, value: median(took) },
            Measured { what: "memory after the start", unit: Unit::Mb, value: median(resident) },
        ])
    }

    async fn dispatch(&self, swarm: &Swarm, target: &str) -> Result<Dispatched> {
        let accepted = ping(&self.server, target).await?;
        let jid = accepted.jid.context("a job that is due has an id")?;
        // A job that was only just seen may count as finished: it is when everybody it is for has been confirmed.
        let all = accepted.minions.len() as u64;
        let finished = async {
            loop {
                swarm.job_finished(&jid, PATIENCE).await;
                let job = swarm.job(&jid).filter(|job| job.confirmed >= all);
                if let Some(took_ms) = job.and_then(|job| job.since_jid_ms) {
                    return took_ms;
                }
                tokio::task::yield_now().await;
            }
        };
        let took_ms = tokio::time::timeout(PATIENCE, finished).await.context("a job did not finish")?;
        Ok(Dispatched { action: accepted.action, took_ms })
    }

    /// That the server takes what was written for its own.
    async fn check(&self, past: &Past) -> Result<()> {
        let job = self.client().job(&past.jid).await?;
        let (runs, returns) = (job.runs.len(), job.returns.len());
        let query =
            EventQuery { since: Some(0), jid: Some(past.jid.clone()), stored_only: true, ..EventQuery::default() };
        let mut stored = self.client().events(&query).await?;
        let mut events = 0;
        while let Some(event) = stored.next().await {
            ensure!(event?.data.get("return").is_some(), "an event of the past has no return");
            events += 1;
        }
        let all = usize::try_from(past::MINIONS)?;
        ensure!(
            [runs, returns, events] == [all; 3],
            "{runs} runs, {returns} returns and {events} events instead of {all}"
        );
        Ok(())
    }

    /// How busy others are, with the server out of the way.
    async fn others(&mut self) -> f64 {
        self.server.terminate().await;
        machine::others_percent().await
    }
}

struct Dispatched {
    action: i64,
    took_ms: f64,
}

/// The median time of an answer, which must have so many rows.
async fn asking(
    what: &'static str,
    ask: impl AsyncFn() -> Result<usize, ClientError>,
    rows: usize,
) -> Result<Measured> {
    let mut took = Vec::new();
    for turn in 0..WARM + TIMES {
        let begin = Instant::now();
        let found = ask().await?;
        let elapsed = begin.elapsed();
        ensure!(found == rows, "{what}: {found} rows instead of {rows}");
        if turn >= WARM {
            took.push(elapsed.as_secs_f64() * 1_000.0);
        }
    }
    Ok(Measured { what, unit: Unit::LimitedMs, value: median(took) })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

struct Pair {
    what: &'static str,
    unit: Unit,
    before: f64,
    after: f64,
}

impl Pair {
    fn is_too_slow(&self) -> bool {
        self.unit == Unit::LimitedMs && self.after > MOST_TIMES * self.before + NOISE_MS
    }
}

fn pairs(before: &[Measured], after: &[Measured]) -> impl Iterator<Item = Pair> {
    let pair = |(before, after): (&Measured, &Measured)| Pair {
        what: before.what,
        unit: before.unit,
        before: before.value,
        after: after.value,
    };
    before.iter().zip(after).map(pair)
}

fn page(before: &[Measured], after: &[Measured], past: &Past, others: f64) -> String {
    let mut page = format!("Measured with `make bench PHASE=history` on {}.\n", machine::description());
    let _ = writeln!(page, "Before and after, other processes kept the machine up to {others:.0} % busy.");
    let _ = writeln!(page, "The database had {:.0} MB in the end.\n", past.bytes as f64 / 1e6);
    page += "| what | empty | a million runs | ratio | within the limit |\n|---|---|---|---|---|\n";
    for pair in pairs(before, after) {
        let shown = |value: f64| match pair.unit {
            Unit::LimitedMs | Unit::Ms => format!("{value:.2} ms"),
            Unit::Mb => format!("{value:.1} MB"),
        };
        let verdict = match pair.unit {
            Unit::LimitedMs if pair.is_too_slow() => "**no**",
            Unit::LimitedMs => "yes",
            Unit::Ms | Unit::Mb => "–",
        };
        let ratio = pair.after / pair.before;
        let _ = writeln!(
            page,
            "| {} | {} | {} | {ratio:.2}× | {verdict} |",
            pair.what,
            shown(pair.before),
            shown(pair.after)
        );
    }
    page
}
