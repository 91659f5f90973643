//! Readers of the event log while the server is killed under them: they resume by number, without a gap and without a double.

use saltern_testkit::http::{Http, Request};
use saltern_testkit::process::Saltern;
use saltern_testkit::wait;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;

const READERS: usize = 8;
/// Hooks that are fired before, around and after each of the kills
const HOOKS: usize = 40;
const KILLS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn readers_resume_after_a_kill_without_a_gap_and_without_a_double() {
    let mut server = Saltern::start("", &[]).await;
    let token = admin_token(&server).await;
    let http = Http::at(&server.url());
    let (done, finished) = watch::channel(None);
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(tokio::spawn(read(http.address(), token.clone(), finished.clone())));
    }
    for _ in 0..KILLS {
        fire(&http, &token, HOOKS).await;
        // Some are on their way when it dies, and nobody knows whether they arrived.
        let on_the_way = tokio::spawn({
            let token = token.clone();
            async move {
                for _ in 0..HOOKS {
                    if try_hook(http.address(), &token).await.is_err() {
                        return;
                    }
                }
            }
        });
        tokio::task::yield_now().await;
        server.kill9();
        on_the_way.await.expect("the sender ends");
        server.launch().await;
    }
    fire(&http, &token, HOOKS).await;
    let log: Vec<i64> = saltern_e2e::events_with_tag(&server, "*").await.iter().map(number).collect();
    let last = *log.last().expect("there are events");
    assert!(log.len() > HOOKS * KILLS);
    done.send(Some(last)).expect("readers listen");
    for reader in readers {
        let read = tokio::time::timeout(PATIENCE, reader).await.expect("a reader ends").expect("and does not panic");
        assert_eq!(read, log);
    }
}

#[tokio::test]
async fn a_caller_who_waits_late_misses_nothing() {
    let server = Saltern::start("", &["--auto-accept"]).await;
    let _minion = saltern_e2e::native::NativeMinion::start("n1", server.ports(), "");
    let token = admin_token(&server).await;
    let http = Http::at(&server.url());
    let ask = async |path: &str| http.send(&Request::get(path).token(&token)).await.json();
    wait::until("the minion to be there", PATIENCE, async || {
        ask("/api/v1/minions").await["minions"][0]["presence"] == "present"
    })
    .await;
    let run = serde_json::json!({ "target": "n1", "fun": ["cmd.run"], "arg": ["sleep 1; echo late"] });
    let accepted = http.send(&Request::post("/api/v1/run", &run).token(&token)).await.json();
    let jid = accepted["jid"].as_str().expect("it is accepted").to_owned();
    // At once it is not done, and the answer says so; whoever waits gets it when it is; whoever comes later gets it, too.
    assert_eq!(ask(&format!("/api/v1/jobs/{jid}/wait?timeout=0")).await["done"], false);
    for _ in 0..2 {
        let waited = ask(&format!("/api/v1/jobs/{jid}/wait?timeout=60")).await;
        assert_eq!(waited["done"], true, "{waited}");
        assert_eq!(waited["returns"]["n1"]["return"], "late", "{waited}");
    }
}

/// A token of somebody who sees everything.
async fn admin_token(server: &Saltern) -> String {
    let made = server.cli(&["user", "create", "ann", "--password", "correct horse", "--role", "server-admin"]).await;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let token = server.cli(&["token", "create", "--user", "ann"]).await;
    String::from_utf8_lossy(&token.stdout).trim().to_owned()
}

fn hook(token: &str) -> Request {
    Request::post("/hook/count", &serde_json::json!({ "x": 1 })).token(token)
}

async fn fire(http: &Http, token: &str, count: usize) {
    for _ in 0..count {
        let reply = http.send(&hook(token)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

/// Reads every event from the first on, through all interruptions, until it has the one it is told of.
async fn read(server: SocketAddr, token: String, finished: watch::Receiver<Option<i64>>) -> Vec<i64> {
    let mut numbers: Vec<i64> = Vec::new();
    loop {
        let last = numbers.last().copied().unwrap_or(0);
        if finished.borrow().is_some_and(|wanted| last >= wanted) {
            return numbers;
        }
        if let Ok(stream) = follow(server, &token, last).await {
            // Until it breaks, or there is a moment in which nothing comes: then it looks whether it is done.
            let _ = take(stream, &mut numbers).await;
        } else {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Asks for the events after a number. By HTTP 1.0, so that the stream is the events and nothing else.
async fn follow(server: SocketAddr, token: &str, last: i64) -> std::io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(server).await?;
    let request = format!(
        "GET /api/v1/events?since=0 HTTP/1.0\r\nHost: {server}\r\nX-Auth-Token: {token}\r\nLast-Event-ID: {last}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(BufReader::new(stream))
}

/// Takes whole events, as browsers do: what a broken connection left half is not one.
async fn take(mut stream: BufReader<TcpStream>, numbers: &mut Vec<i64>) -> std::io::Result<()> {
    let mut pending: Option<i64> = None;
    loop {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(1), stream.read_line(&mut line)).await??;
        if read == 0 {
            return Ok(());
        }
        let line = line.trim_end();
        assert!(!line.starts_with("event: gap"), "nothing was removed from the log");
        match (line.strip_prefix("id: "), line.is_empty()) {
            (Some(number), _) => pending = number.parse().ok(),
            (None, true) => numbers.extend(pending.take()),
            (None, false) => {}
        }
    }
}

/// Whether a hook was taken; nobody knows if the connection broke.
async fn try_hook(server: SocketAddr, token: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    let request = format!(
        "POST /hook/count HTTP/1.0\r\nHost: {server}\r\nX-Auth-Token: {token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map(drop)
}

fn number(event: &serde_json::Value) -> i64 {
    event["number"].as_i64().expect("an event has a number")
}
