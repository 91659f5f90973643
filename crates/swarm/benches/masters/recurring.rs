//! What recurs, all of it in the same second: 1,000 definitions over 10,000 minions, of whom 2,000 are connected.
//!
//! Told apart: until the last definition has fired, and until every minion that is there has done its part. Meanwhile
//! somebody pings a minion again and again, and waits for each answer; and the server's memory has a limit.

use crate::machine::{self, Peak};
use anyhow::{Context as _, Result, ensure};
use futures_util::StreamExt as _;
use rusqlite::{Connection, OpenFlags};
use saltern_api::client::{Client, Endpoint};
use saltern_api::shape::{
    CatchUp, EntityKind, Functions, JobStep, Overlap, RecurringDraft, RecurringEntity, RecurringWhat, RunRequest,
};
use saltern_core::action::{Offline, Policy};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::clock;
use saltern_swarm::{Options, Swarm};
use saltern_testkit::process::Saltern;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const DEFINITIONS: usize = 1_000;
/// Minions that are connected, and others that were. Each publication reaches everybody who is there: more of them measure
/// the sockets of this machine, and the swarm.
const THERE: usize = 2_000;
const AWAY: usize = 8_000;
/// Minions of one definition.
const EACH: usize = (THERE + AWAY) / DEFINITIONS;
/// How many definitions are made at the same time, and how long all of them may take.
const AT_ONCE: usize = 16;
const MAKING: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(300);
/// Until the last has fired, until a ping is answered meanwhile, and how much larger the server may become by it.
const MOST_SECONDS: f64 = 10.0;
const MOST_PING_SECONDS: f64 = 1.0;
const MOST_GROWTH_MB: f64 = 256.0;

/// Who waits for answers of a minion while everything is due.
struct Pinger {
    client: Client,
    minion: String,
}

/// Measures, prints, and fails beyond the limits.
pub(crate) async fn run() -> Result<()> {
    let mut server = Saltern::start("", &["--auto-accept", "--log-level", "warn"]).await;
    let swarm = |prefix: &str, count| {
        let options =
            Options { ret_port: server.ports().return_port, prefix: prefix.into(), count, ..Options::default() };
        Swarm::start(Options { pillar: false, start_event: false, ..options })
    };
    let away = swarm("away-", AWAY).await?;
    ensure!(away.all_ready(PATIENCE).await, "the first swarm did not come up: {:?}", away.report());
    away.stop().await;
    let there = swarm("there-", THERE).await?;
    ensure!(there.all_ready(PATIENCE).await, "the swarm did not come up: {:?}", there.report());
    let client = || Client::new(Endpoint::Control(server.data_dir().join(saltern_api::control::FILE_NAME)));
    let due = define_all(&Arc::new(client()), &ids(&client()).await?).await?;
    let pid = server.pid().context("the server runs")?;
    let (before, cpu) = (machine::resident_mb(pid)?, machine::cpu_seconds(pid));
    let (peak, over) = (Peak::watch(pid), CancellationToken::new());
    let pinger = Pinger { client: client(), minion: ids(&client()).await?.0.swap_remove(0) };
    let alone = pinger.ping().await?;
    let pinging = tokio::spawn(pinger.until(over.clone(), due));

    let tables = Connection::open_with_flags(
        server.data_dir().join("saltern.db"),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let fired = until(&tables, "SELECT count(*) FROM fires WHERE outcome = 'fired'", DEFINITIONS, due).await?;
    let done = "SELECT coalesce(sum(completed), 0) FROM actions WHERE recurring IS NOT NULL";
    let done = until(&tables, done, THERE, due).await?;
    over.cancel();
    let pings = pinging.await??;
    let peak = machine::mebibytes(peak.stop());
    let cpu = machine::cpu_seconds(pid) - cpu;
    let rows = number(&tables, "SELECT count(*) FROM fires")?;
    let runs = number(&tables, "SELECT sum(total) FROM actions WHERE recurring IS NOT NULL")?;
    there.stop().await;
    server.kill9();

    let worst = pings.iter().copied().fold(0.0, f64::max);
    println!(
        "\n{DEFINITIONS} definitions of {EACH} minions each were due together; {THERE} minions were there, {AWAY} were not. All \
         had fired after {fired:.1} s, and who was there was done after {done:.1} s.\n{} pings meanwhile, the slowest was answered \
         after {:.0} ms ({:.0} ms before). Server: {cpu:.1} CPU s, {before:.0} MiB before, {peak:.0} at most.",
        pings.len(),
        worst * 1_000.0,
        alone * 1_000.0,
    );
    ensure!(usize::try_from(rows)? == DEFINITIONS, "{rows} instants are accounted for");
    ensure!(usize::try_from(runs)? == THERE + AWAY, "there are {runs} runs");
    ensure!(fired <= MOST_SECONDS, "it took {fired:.1} s until the last had fired");
    ensure!(!pings.is_empty() && worst <= MOST_PING_SECONDS, "a ping took {worst:.2} s, of {}", pings.len());
    ensure!(peak - before <= MOST_GROWTH_MB, "the server grew by {:.0} MiB", peak - before);
    Ok(())
}

/// Those who are there, and those who are away.
async fn ids(client: &Client) -> Result<(Vec<String>, Vec<String>)> {
    let ids = client.minions(None).await?.minions.into_iter().map(|minion| minion.id);
    let (there, away): (Vec<String>, Vec<String>) = ids.partition(|id| id.starts_with("there-"));
    ensure!((there.len(), away.len()) == (THERE, AWAY), "the server knows {} and {}", there.len(), away.len());
    Ok((there, away))
}

/// Makes all definitions; tells when they are due.
async fn define_all(client: &Arc<Client>, (there, away): &(Vec<String>, Vec<String>)) -> Result<Timestamp> {
    let at = clock::now().plus(MAKING);
    let due = Timestamp::from_secs((at.secs() / 60 + 1) * 60);
    let minute = due.secs() / 60;
    let cron = format!("0 {} {} * * *", minute % 60, minute / 60 % 24);
    let shares = there.chunks(THERE / DEFINITIONS).zip(away.chunks(AWAY / DEFINITIONS));
    let drafts = shares.enumerate().map(|(number, (there, away))| RecurringDraft {
        name: format!("definition {number}"),
        entity: RecurringEntity {
            kind: EntityKind::Target,
            subject: format!("L@{}", [there, away].concat().join(",")),
        },
        what: RecurringWhat { kind: Some("function".into()), chain: None, params: Value::map([("fun", "test.ping")]) },
        cron: cron.clone(),
        zone: "UTC".into(),
        active: true,
        spread: 0,
        overlap: Overlap::Skip,
        catch_up: CatchUp::Once,
        catch_up_limit: 3_600,
        in_window: false,
        deadline: None,
        policy: Policy { offline: Offline::Hold, ..Policy::default() },
    });
    let making = drafts.map(|draft| {
        let client = client.clone();
        async move { client.create_recurring(&draft).await }
    });
    let mut making = futures_util::stream::iter(making).buffer_unordered(AT_ONCE);
    let mut made = 0;
    while let Some(one) = making.next().await {
        one?;
        made += 1;
    }
    ensure!(made == DEFINITIONS, "{made} definitions were made");
    ensure!(clock::now() < due, "it took too long to make {made} definitions");
    println!("recurring: {made} definitions are due at {}", due.rfc3339());
    Ok(due)
}

impl Pinger {
    /// Seconds until the minion's answer is there.
    async fn ping(&self) -> Result<f64> {
        let asked = Instant::now();
        let request = RunRequest {
            target: self.minion.as_str().into(),
            tgt_type: "list".into(),
            delimiter: None,
            fun: Functions::One("test.ping".into()),
            arg: Vec::new(),
            kwarg: Value::Nil,
            ack: None,
            policy: Policy { interactive: true, ..Policy::default() },
            due: None,
            deadline: None,
            metadata: Value::Nil,
            ret: String::new(),
            in_window: false,
        };
        let jid = self.client.run(&request).await?.jid.context("a job that is due has an id")?;
        let mut steps = self.client.watch(&jid, None).await?;
        while let Some(step) = steps.next().await {
            if matches!(step?, JobStep::Return { .. }) {
                return Ok(asked.elapsed().as_secs_f64());
            }
        }
        anyhow::bail!("{} did not answer", self.minion)
    }

    /// Pings from the time on that everything is due; tells how long each took.
    async fn until(self, over: CancellationToken, due: Timestamp) -> Result<Vec<f64>> {
        tokio::time::sleep(due.since(clock::now())).await;
        let mut took = Vec::new();
        while !over.is_cancelled() {
            took.push(self.ping().await?);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(took)
    }
}

/// Seconds after everything was due until a number in the tables is so large.
async fn until(tables: &Connection, sql: &str, most: usize, due: Timestamp) -> Result<f64> {
    loop {
        let found = number(tables, sql)?;
        if usize::try_from(found)? >= most {
            return Ok(clock::now().since(due).as_secs_f64());
        }
        ensure!(clock::now().since(due) < PATIENCE, "it takes too long: {found} of {most}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn number(tables: &Connection, sql: &str) -> Result<i64> {
    Ok(tables.query_row(sql, [], |row| row.get(0))?)
}
