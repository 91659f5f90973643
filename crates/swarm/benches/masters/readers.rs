//! Many readers of the event log at once: 190 who read, 10 who do not, and 5,000 events a second.
//!
//! Who reads gets every event once, in order. Who does not costs nobody anything: events are taken in as fast as without
//! readers, and the server's memory stays where it is.

use crate::machine::{self, Peak};
use anyhow::{Context as _, Result, ensure};
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::FakeMinion;
use saltern_testkit::process::Saltern;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const READING: usize = 190;
const STALLED: usize = 10;
/// Events a second, how many a minion sends at once, and for how long
const RATE: usize = 5_000;
const BATCH: usize = 100;
const SECONDS: usize = 20;
const EVENTS: usize = RATE * SECONDS;
const PATIENCE: Duration = Duration::from_secs(120);
/// How much longer it may take to take events in while they are read, and how much larger the server may become by what
/// is not read.
const MOST_TIMES: f64 = 1.10;
const MOST_GROWTH_MB: f64 = 64.0;

/// What it took to take all events in.
struct Taken {
    /// Whole time, in seconds
    seconds: f64,
    /// One batch, in milliseconds
    median_ms: f64,
    worst_ms: f64,
}

/// Measures both, prints, and fails beyond the limits.
pub(crate) async fn run() -> Result<()> {
    let server = Saltern::start("minion_data_cache_events: no\n", &["--auto-accept", "--log-level", "warn"]).await;
    let made = server.cli(&["user", "create", "bench", "--password", "bench bench", "--role", "server-admin"]).await;
    ensure!(made.status.success(), "no user: {}", String::from_utf8_lossy(&made.stderr));
    let token = server.cli(&["token", "create", "--user", "bench", "--scope", "read"]).await;
    let token = String::from_utf8_lossy(&token.stdout).trim().to_owned();
    ensure!(token.len() == 64, "no token");
    let requests = SocketAddr::from((Ipv4Addr::LOCALHOST, server.ports().return_port));
    let minion = FakeMinion::accepted(requests, "bench").await;
    let pid = server.pid().context("the server runs")?;
    let others = machine::others_percent().await;

    println!("readers: {EVENTS} events without a reader");
    let alone = publish(&minion, "alone").await;
    println!("readers: {EVENTS} events for {READING} readers, and {STALLED} who do not read");
    let address: SocketAddr = server.url().trim_start_matches("http://").parse()?;
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        stalled.push(follow(address, &token).await?);
    }
    let mut reading = JoinSet::new();
    for _ in 0..READING {
        let stream = follow(address, &token).await?;
        reading.spawn(read_all(stream));
    }
    let (before, cpu) = (machine::resident_mb(pid)?, machine::cpu_seconds(pid));
    let peak = Peak::watch(pid);
    let together = publish(&minion, "together").await;
    let sent = Instant::now();
    let mut numbers: Option<Vec<i64>> = None;
    while let Some(read) = tokio::time::timeout(PATIENCE, reading.join_next()).await.context("readers are stuck")? {
        let read = read??;
        ensure!(read.len() == EVENTS, "a reader got {} of {EVENTS} events", read.len());
        ensure!(read.windows(2).all(|pair| pair[0] < pair[1]), "a reader got events out of order, or twice");
        let first = numbers.get_or_insert_with(|| read.clone());
        ensure!(*first == read, "two readers got different events");
    }
    let late = sent.elapsed().as_secs_f64();
    let (peak, cpu) = (machine::mebibytes(peak.stop()), machine::cpu_seconds(pid) - cpu);
    let after = machine::resident_mb(pid)?;
    drop(stalled);

    println!(
        "\n| | without readers | {READING} readers, {STALLED} stalled |\n|---|---|---|\n\
         | {EVENTS} events taken in, s | {:.2} | {:.2} |\n\
         | one request of {BATCH} events, median ms | {:.1} | {:.1} |\n\
         | … the worst, ms | {:.1} | {:.1} |\n\n\
         Every reader got every event once, in order, the last {late:.2} s after it was taken in ({:.0} events/s delivered).\n\
         Server: {cpu:.1} CPU s, {before:.0} MiB before, {after:.0} after, {peak:.0} at most. Others used {others:.1} % of the machine.",
        alone.seconds,
        together.seconds,
        alone.median_ms,
        together.median_ms,
        alone.worst_ms,
        together.worst_ms,
        as_f64(EVENTS * READING) / (together.seconds + late),
    );
    let times = together.seconds / alone.seconds;
    ensure!(times <= MOST_TIMES, "with readers it took {times:.2}× as long to take events in");
    ensure!(peak - before <= MOST_GROWTH_MB, "the server grew by {:.0} MiB", peak - before);
    Ok(())
}

/// Sends all events at the rate that was promised, or as fast as they are taken in if that is slower.
async fn publish(minion: &FakeMinion, name: &str) -> Taken {
    let begun = Instant::now();
    let mut took = Vec::new();
    for batch in 0..EVENTS / BATCH {
        let due = Duration::from_secs_f64(as_f64(batch * BATCH) / as_f64(RATE));
        tokio::time::sleep_until((begun + due).into()).await;
        let event = |number: usize| {
            let data = Value::map([("number", Value::from(i64::try_from(number).unwrap_or(0)))]);
            Value::map([("tag", Value::from(format!("bench/{name}/{number}"))), ("data", data)])
        };
        let events: Vec<Value> = (batch * BATCH..(batch + 1) * BATCH).map(event).collect();
        let mut fields = Map::new();
        fields.push("events", Value::List(events));
        let asked = Instant::now();
        minion.request("_minion_event", fields).await;
        took.push(asked.elapsed().as_secs_f64() * 1_000.0);
    }
    let seconds = begun.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    Taken { seconds, median_ms: took[took.len() / 2], worst_ms: took[took.len() - 1] }
}

/// Asks for all events to come; returns when the answer has begun.
async fn follow(server: SocketAddr, token: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(server).await?;
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {server}\r\nAccept: text/event-stream\r\nX-Auth-Token: {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !contains(&head, b"retry: ") {
        let mut piece = [0; 1024];
        let count = tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await??;
        ensure!(count > 0, "the server hung up: {}", String::from_utf8_lossy(&head));
        head.extend_from_slice(&piece[..count]);
    }
    ensure!(head.starts_with(b"HTTP/1.1 200"), "no stream: {}", String::from_utf8_lossy(&head));
    Ok(stream)
}

/// The numbers of the events that the minion sent, in the order they came. What is between them is not looked at.
async fn read_all(mut stream: TcpStream) -> Result<Vec<i64>> {
    let mut numbers = Vec::with_capacity(EVENTS);
    let mut rest: Vec<u8> = Vec::new();
    let mut piece = vec![0; 256 << 10];
    let mut current = 0;
    while numbers.len() < EVENTS {
        let count = stream.read(&mut piece).await?;
        ensure!(count > 0, "the server hung up after {} events", numbers.len());
        rest.extend_from_slice(&piece[..count]);
        let mut read = 0;
        while let Some(end) = rest[read..].iter().position(|byte| *byte == b'\n') {
            let line = &rest[read..read + end];
            if let Some(id) = line.strip_prefix(b"id: ") {
                current = std::str::from_utf8(id)?.trim().parse()?;
            } else if line.starts_with(b"data: ") && contains(&line[..line.len().min(120)], b"\"bench/together/") {
                numbers.push(current);
            }
            read += end + 1;
        }
        rest.drain(..read);
    }
    Ok(numbers)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn as_f64(count: usize) -> f64 {
    count as f64
}
