//! Event streams and websockets: what a real salt-api sent when something happened is sent here, too.

use crate::capture::{self, Capture};
use crate::captures;
use crate::compare::{How, differences, normal};
use crate::dialect;
use crate::differences as table;
use crate::stand::{Stand, credentials};
use saltern_testkit::http::{Events, Message, Request, WebSocket};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long what a request causes may take to be on the stream.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time in which nothing is said.
const SILENCE: Duration = Duration::from_secs(35);

#[tokio::test]
async fn streams_are_refused_as_by_salt_api() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    let mut failed = Vec::new();
    for capture in captures_of_streams() {
        let answered = &capture.response;
        let is_refused = answered.stream.is_none() && answered.frames.as_ref().is_none_or(Vec::is_empty);
        if is_refused || table::of(&capture.case).is_some() {
            failed.extend(captures::complaints(stand, &capture).await);
        }
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[tokio::test]
async fn events_come_as_from_salt_api() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    let mut failed = Vec::new();
    let streams = captures_of_streams().into_iter().filter(|capture| capture.response.stream.is_some());
    for capture in streams.filter(|capture| table::of(&capture.case).is_none()) {
        stand.bring_keys().await;
        match CAUSES.iter().find(|(case, _)| *case == capture.case) {
            Some((_, causes)) => failed.extend(watch(stand, &capture, causes).await),
            None => failed.push(format!("{}: nobody says what caused it", capture.case)),
        }
    }
    stand.remove_keys().await;
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[tokio::test]
async fn websockets_speak_as_those_of_salt_api() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    let mut failed = Vec::new();
    for capture in captures_of_streams() {
        let frames = capture.response.frames.clone().unwrap_or_default();
        if !frames.is_empty() {
            let said = talk(stand, &capture, &frames).await;
            failed.extend(said.err().map(|complaint| format!("{}: {complaint}", capture.case)));
        }
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[tokio::test]
async fn a_stream_begins_as_it_should_and_ends_with_the_session() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    let token = stand.log_in("admin").await;
    let request = Request::get("/events").header("Accept", "text/event-stream").token(&token);
    let mut events = Events::open(&stand.http, &request).await.unwrap();
    assert_eq!(
        events.head.header("Content-Type").map(|kind| kind.replace("; ", ";")).as_deref(),
        Some("text/event-stream;charset=utf-8")
    );
    assert!(events.head.header("Cache-Control").is_some_and(|cache| cache.contains("no-cache")));
    assert_eq!(events.head.header("Content-Encoding"), None);
    assert_eq!(events.line().await.as_deref(), Some("retry: 400"));

    stand.local("web1", "test.ping", json!([])).await;
    let event = events.until("the ping's return", |event| event.tag.ends_with("/ret/web1")).await;
    let [tag, data] = event.fields.as_slice() else { panic!("an event is two lines: {:?}", event.fields) };
    assert_eq!(*tag, format!("tag: {}", event.tag));
    assert!(data.starts_with(r#"data: {"data":"#), "the data comes first, then the tag: {data}");

    let reply = stand.http.send(&Request::new("POST", "/logout").token(&token)).await;
    assert_eq!(reply.status, 200);
    let ended = tokio::time::timeout(Duration::from_secs(5), async { while events.line().await.is_some() {} });
    assert!(ended.await.is_ok(), "who has logged out hears nothing more");
}

#[tokio::test]
async fn a_stream_on_which_nothing_happens_is_kept_alive() {
    let Some(stand) = Stand::shared().await else { return };
    // Who may see nothing hears nothing else; proxies cut a line on which nothing is said for a while.
    let request = Request::get("/events").token(&stand.token("noperm").await);
    let mut events = Events::open(&stand.http, &request).await.unwrap();
    for expected in ["retry: 400", ": keepalive", ""] {
        let line = events.line_within(SILENCE).await.expect("nothing was said for too long");
        assert_eq!(line.as_deref(), Some(expected));
    }
}

fn captures_of_streams() -> Vec<Capture> {
    let all = capture::group("streams");
    all.into_iter().filter(|capture| !table::is_left_out(&capture.case)).collect()
}

/// What somebody does while others listen.
#[derive(Clone, Copy)]
enum Cause {
    /// Low data, as JSON
    Low(&'static str),
    /// A hook: path, content type, body
    Hook(&'static str, &'static str, &'static str),
    /// `web1` starts
    Start,
}

use Cause::{Hook, Low, Start};

const PING: Cause = Low(r#"{"client":"local_async","tgt":"web1","fun":"test.ping"}"#);

/// What was done when a capture was made.
const CAUSES: &[(&str, &[Cause])] = &[
    (
        "events-stream-job",
        &[Low(
            r#"{"client":"local_async","tgt":"web1","fun":"test.arg","arg":["a"],"kwarg":{"k":"v"},"metadata":{"ticket":"T-1"}}"#,
        )],
    ),
    ("events-eauth-token-header", &[PING]),
    ("v3006.9--events-header-only", &[PING]),
    ("v3006.9--events-cookie", &[PING]),
    (
        "events-stream-keys",
        &[
            Low(r#"{"client":"wheel","fun":"key.accept","match":"pend2"}"#),
            Low(r#"{"client":"wheel","fun":"key.reject","match":"pend2","include_accepted":true}"#),
            Low(r#"{"client":"wheel","fun":"key.delete","match":"pend2"}"#),
        ],
    ),
    (
        "events-stream-mixed",
        &[
            Low(r#"{"client":"runner","fun":"test.arg","arg":[1],"kwarg":{"a":"b"}}"#),
            Low(r#"{"client":"runner_async","fun":"jobs.list_job","jid":"20200101000000000000"}"#),
            Low(r#"{"client":"wheel","fun":"key.delete","match":"pend*"}"#),
            Low(r#"{"client":"wheel","fun":"key.delete","match":"rej1"}"#),
            Low(r#"{"client":"wheel","fun":"key.delete","match":"den1"}"#),
            Low(r#"{"client":"wheel","fun":"key.list_all"}"#),
            Hook("/hook/my/tag", "application/json", r#"{"foo": "bar"}"#),
            Hook("/hook/form", "application/x-www-form-urlencoded", "a=1&b=2"),
            Low(r#"{"client":"wheel","fun":"key.gen_accept","id_":"evmin"}"#),
            Low(r#"{"client":"wheel","fun":"key.delete","match":"evmin"}"#),
            Low(r#"{"client":"local","tgt":"web1","fun":"state.apply","arg":["fail"]}"#),
            Low(r#"{"client":"local","tgt":"web1","fun":"nosuch.func"}"#),
        ],
    ),
    ("events-stream-minion-start", &[Start]),
    (
        "events-stream-state-progress",
        &[Low(
            r#"{"client":"local_async","tgt":"web1","fun":"state.apply","arg":["hello"],"kwarg":{"state_events":true}}"#,
        )],
    ),
];

/// Events that came for other reasons, or that only 3008 sends.
fn is_noise(tag: &str, case: &str) -> bool {
    let newer = tag.ends_with("/publish") || tag.starts_with("resource/");
    // Keys were rotated; a minion signed in again, which is told once a minute at most here.
    let beside = ["salt/beacon/", "salt/presence/", "minion/refresh/"].iter().any(|begin| tag.starts_with(begin));
    let again = tag == "key" || tag == "salt/auth";
    // A job of the minion's own schedule came in between.
    let scheduled = case == "events-stream-minion-start" && tag.contains("/ret/");
    newer || beside || again || scheduled
}

/// What is not compared: the caller's token is not told to others, a private key to nobody, and a key is public.
const APART: &[&str] = &["headers", "pub"];

/// Salt counts the arguments of wheel functions out by their place and adds the defaults; here they are told as they came.
const APART_WHEEL: &[&str] = &["fun_args", "tag"];

/// Listens while something is done, until everything that was captured has come.
async fn watch(stand: &Stand, capture: &Capture, causes: &[Cause]) -> Vec<String> {
    let request = captures::request(stand, capture).await;
    let mut events = match Events::open(&stand.http, &request).await {
        Ok(events) => events,
        Err(reply) => return vec![format!("{}: refused with {} {}", capture.case, reply.status, reply.text())],
    };
    let first = events.line().await;
    let mut failed = Vec::new();
    if first.as_deref() != Some("retry: 400") {
        failed.push(format!("{}: begins with {first:?}", capture.case));
    }
    for cause in causes {
        act(stand, *cause).await;
    }
    let mut expected = expected_events(capture);
    let mut nearest = vec!["no such event came".to_owned(); expected.len()];
    let deadline = Instant::now() + PATIENCE;
    while expected.iter().any(Option::is_some) && Instant::now() < deadline {
        let Ok(came) = events.next_within(Duration::from_secs(10)).await else { break };
        let Some(event) = came else { break };
        let mut got: Value = serde_json::from_str(&stand.moved(&event.data.to_string())).unwrap();
        dialect::without_additions(&mut got);
        for (wanted, nearest) in expected.iter_mut().zip(&mut nearest) {
            let Some((tag, data)) = wanted.as_ref().filter(|(tag, _)| *tag == normal(&event.tag, false)) else {
                continue;
            };
            let secret = tag.ends_with("/ret") && data.to_string().contains("PRIVATE KEY");
            let wheel = if tag.starts_with("salt/wheel/") { APART_WHEEL } else { &[] };
            let apart = APART.iter().chain(wheel).copied().chain(secret.then_some("return"));
            let apart: Vec<&str> = apart.collect();
            let found = differences(data, &got, How { apart: &apart, ..How::default() });
            if found.is_empty() {
                *wanted = None;
                break;
            }
            *nearest = found.join("; ");
        }
    }
    for (wanted, nearest) in expected.into_iter().zip(nearest) {
        failed.extend(wanted.map(|(tag, _)| format!("{}: {tag}: {nearest}", capture.case)));
    }
    failed
}

async fn act(stand: &Stand, cause: Cause) {
    match cause {
        Low(low) => drop(stand.low(&serde_json::from_str(low).unwrap()).await),
        Hook(path, kind, body) => {
            let request = Request::new("POST", path).header("Content-Type", kind).token(&stand.token("admin").await);
            stand.http.send(&request.body(body)).await;
        }
        Start => stand.restart_minion("web1").await,
    }
}

/// The events of a capture in the older dialect, without those that have nothing to do with what was done.
fn expected_events(capture: &Capture) -> Vec<Option<(String, Value)>> {
    let lines = capture.response.stream.iter().flatten().filter_map(|line| line.strip_prefix("data: "));
    let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tagged = events.map(|mut event| (event["tag"].as_str().unwrap_or_default().to_owned(), event["data"].take()));
    let meant = tagged.filter(|(tag, _)| !is_noise(tag, &capture.case));
    let older = meant.map(|(tag, mut data)| {
        dialect::older(&mut data);
        if tag == "salt/key" {
            let act = data["act"].as_str().unwrap_or_default().trim_end_matches("ed").to_owned();
            data["act"] = json!(act);
        }
        Some((normal(&tag, true), data))
    });
    older.collect()
}

/// Goes through the frames of a capture: says what the client said, does what was done, hears what the server said.
async fn talk(stand: &Stand, capture: &Capture, frames: &[Value]) -> Result<(), String> {
    let request = captures::request(stand, capture).await;
    let mut socket = WebSocket::open(&stand.http, request)
        .await
        .map_err(|reply| format!("refused: {} {}", reply.status, reply.text()))?;
    let mut started = 0;
    let mut jid = String::new();
    for frame in frames {
        if let Some(text) = frame["client"].as_str() {
            socket.send(text).await;
        } else if frame.get("action").is_some() {
            started += 1;
            let is_second = started == 2 && capture.case == "ws-format_events";
            let (fun, arg) = if is_second { ("grains.item", json!(["id"])) } else { ("test.ping", json!([])) };
            let low = json!({ "client": "local_async", "tgt": "web1", "fun": fun, "arg": arg });
            jid = stand.start_job("websocket", &low).await;
            stand.wait_for_job(&jid, &["web1"]).await;
        } else if frame["server_opcode"] == 1 {
            let payload = frame["payload"].as_str().unwrap_or_default();
            hear(&mut socket, payload, &jid).await?;
        }
    }
    socket.ping(b"still there?").await;
    let pong = async { while socket.receive().await != Message::Pong(b"still there?".to_vec()) {} };
    tokio::time::timeout(PATIENCE, pong).await.map_err(|_| "a ping was not answered")?;
    socket.close().await;
    let closed = async { while socket.receive().await != Message::Closed {} };
    tokio::time::timeout(PATIENCE, closed).await.map_err(|_| "it was not closed".to_owned())
}

/// Waits for a frame like this one.
async fn hear(socket: &mut WebSocket, payload: &str, jid: &str) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(15);
    let left = || deadline.saturating_duration_since(Instant::now());
    let Some(expected) = parse(payload) else {
        // Events may come in between.
        while let Some(Message::Text(text)) = socket.receive_within(left()).await {
            if text == payload {
                return Ok(());
            }
        }
        return Err(format!("{payload:?} did not come"));
    };
    let looks_for_a_job = expected["data"]["fun"] == "saltutil.find_job";
    if looks_for_a_job || expected["tag"].as_str().is_some_and(|tag| is_noise(tag, "")) {
        return Ok(());
    }
    let mut nearest = "nothing like it came".to_owned();
    while let Some(Message::Text(text)) = socket.receive_within(left()).await {
        let mut got = parse(&text).ok_or_else(|| format!("no JSON: {text}"))?;
        dialect::without_additions(&mut got);
        let (wanted, got) = match expected["jobs"].as_object() {
            // The jobs that were there before are told again; the newest one is meant.
            Some(jobs) => (jobs.values().next_back().cloned().unwrap_or_default(), got["jobs"][jid].clone()),
            None => (expected.clone(), got),
        };
        let mut wanted = wanted;
        dialect::older(&mut wanted);
        let found = differences(&wanted, &got, How::default());
        if found.is_empty() {
            return Ok(());
        }
        if normal(got["tag"].as_str().unwrap_or_default(), false)
            == normal(wanted["tag"].as_str().unwrap_or_default(), true)
        {
            nearest = found.join("; ");
        }
    }
    Err(format!("{payload}: {nearest}"))
}

/// The JSON of a frame: an event with its prefix and its blank line, or a summary.
fn parse(payload: &str) -> Option<Value> {
    let text = match payload.strip_prefix("data: ") {
        Some(event) => event.strip_suffix("\n\n")?,
        None => payload,
    };
    serde_json::from_str(text).ok().filter(Value::is_object)
}

#[tokio::test]
async fn who_may_see_nothing_hears_nothing() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    let login = stand.http.send(&Request::post("/login", &credentials("noperm"))).await;
    let token = login.json()["return"][0]["token"].as_str().unwrap().to_owned();
    let mut events = Events::open(&stand.http, &Request::get("/events").token(&token)).await.unwrap();
    stand.local("web1", "test.echo", json!(["private"])).await;
    stand.http.send(&Request::new("POST", "/logout").token(&token)).await;
    let mut heard = Vec::new();
    while let Some(line) = events.line().await {
        heard.push(line);
    }
    assert!(!heard.iter().any(|line| line.starts_with("data:")), "{heard:?}");
}

#[tokio::test]
async fn who_may_use_some_minions_hears_of_these() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    let request = Request::get("/events").token(&stand.token("webonly").await);
    let mut events = Events::open(&stand.http, &request).await.unwrap();
    for id in ["db1", "web1"] {
        stand.local(id, "test.echo", json!([format!("said by {id}")])).await;
    }
    let mut heard = Vec::new();
    let last = events.until("the return of web1", |event| {
        heard.push(event.data.to_string());
        event.tag.ends_with("/ret/web1") && event.data["return"] == "said by web1"
    });
    last.await;
    assert!(!heard.iter().any(|data| data.contains("db1")), "{heard:?}");
}
