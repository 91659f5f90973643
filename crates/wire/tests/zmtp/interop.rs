//! Against libzmq, through the Python of a stock Salt installation (`interop_peer.py` plays its part).

use crate::support::{EchoServer, Happened, PATIENCE, PublishServer, next};
use bytes::Bytes;
use saltern_wire::zmtp::Options;
use saltern_wire::zmtp::requester::Requester;
use saltern_wire::zmtp::subscriber::Subscriber;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The sizes at which frames change their form or their number of packets.
const SIZES: [usize; 8] = [0, 1, 254, 255, 256, 65_535, 65_536, 5_000_000];

/// Heartbeats fast enough to be seen within a test.
fn restless() -> Options {
    Options {
        heartbeat_interval: Duration::from_millis(50),
        heartbeat_timeout: Duration::from_millis(1_000),
        ..Options::default()
    }
}

/// A Python process that plays one role and reports in lines.
struct Zmq {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Zmq {
    /// Starts `role`; `None` (said aloud) on a machine without Salt's Python, which in CI is a failure.
    fn play(role: &str, argument: impl ToString) -> Option<Self> {
        let python = python()?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zmtp/interop_peer.py");
        let mut child = Command::new(python)
            .args([script, role, &argument.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Some(Self { child, lines })
    }

    async fn says(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("python answers in time");
        line.expect("python's output is text").expect("python is still there")
    }

    async fn succeeds(mut self) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("python ends in time");
        assert!(status.expect("it can be waited for").success());
    }
}

fn python() -> Option<PathBuf> {
    let cached = || {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".cache/saltern/salt-3008.3/bin/python"))
    };
    let python = std::env::var_os("SALTERN_SALT_PYTHON").map(PathBuf::from).or_else(cached);
    if let Some(python) = python.filter(|python| python.exists()) {
        return Some(python);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must test against libzmq: set SALTERN_SALT_PYTHON");
    eprintln!("*** SKIPPED: no Python with pyzmq found; set SALTERN_SALT_PYTHON to test against libzmq ***");
    None
}

#[tokio::test]
async fn libzmq_req_talks_to_our_replier_in_lock_step() {
    let server = EchoServer::start(Options::default());
    let Some(zmq) = Zmq::play("req", server.addr) else { return };
    zmq.succeeds().await;
}

#[tokio::test]
async fn libzmq_req_with_identity_and_correlation_and_dealer_get_their_replies() {
    let server = EchoServer::start(Options::default());
    let Some(zmq) = Zmq::play("envelopes", server.addr) else { return };
    zmq.succeeds().await;
}

#[tokio::test]
async fn libzmq_sub_gets_everything_from_our_publisher() {
    let mut server = PublishServer::start(Options::default());
    let Some(zmq) = Zmq::play("sub", server.addr) else { return };
    server.subscribed("").await;
    for size in SIZES {
        server.publisher.publish(Bytes::from(vec![b'x'; size]));
    }
    for _ in 0..1_000 {
        server.publisher.publish(Bytes::from_static(b"small"));
    }
    zmq.succeeds().await;
}

#[tokio::test]
async fn libzmq_sub_gets_only_its_topics_and_can_cancel_them() {
    let mut server = PublishServer::start(Options::default());
    let Some(mut zmq) = Zmq::play("topics", server.addr) else { return };
    server.subscribed("b").await;
    for text in ["a1", "b1", "c1", "a2"] {
        server.publisher.publish(Bytes::from_static(text.as_bytes()));
    }
    assert_eq!(zmq.says().await, "a1 b1 a2");
    // It has cancelled `a` and subscribed to `end`, in this order.
    server.subscribed("end").await;
    for text in ["a3", "b2", "end"] {
        server.publisher.publish(Bytes::from_static(text.as_bytes()));
    }
    assert_eq!(zmq.says().await, "b2 end");
    zmq.succeeds().await;
}

#[tokio::test]
async fn our_requester_talks_to_libzmq_router() {
    let Some(mut zmq) = Zmq::play("router", "") else { return };
    let requester = Requester::connect(zmq.says().await, Options::default()).await.unwrap();
    for size in SIZES {
        let payload = Bytes::from(vec![b'x'; size]);
        assert_eq!(requester.request(payload.clone(), PATIENCE).await.unwrap(), payload);
    }
    requester.request(Bytes::from_static(b"end"), PATIENCE).await.unwrap();
    zmq.succeeds().await;
}

#[tokio::test]
async fn our_subscriber_listens_to_libzmq_pub() {
    let Some(mut zmq) = Zmq::play("xpub", "") else { return };
    let mut subscriber = Subscriber::connect(zmq.says().await, Options::default()).await.unwrap();
    for size in SIZES {
        assert_eq!(subscriber.recv().await.unwrap().len(), size);
    }
    zmq.succeeds().await;
}

#[tokio::test]
async fn libzmq_answers_our_heartbeats_and_we_answer_its() {
    let mut server = EchoServer::start(restless());
    let Some(mut zmq) = Zmq::play("heartbeat-req", server.addr) else { return };
    assert_eq!(next(&mut server.events).await, Happened::Opened);
    // It stays quiet for many heartbeats, then makes a request over the same connection.
    assert_eq!(zmq.says().await, "no disconnection");
    assert_eq!(
        server.replier.stats(),
        saltern_wire::zmtp::stats::Stats { open: 1, untrusted: 1, ..Default::default() }
    );
    zmq.succeeds().await;

    let mut server = PublishServer::start(restless());
    let Some(mut zmq) = Zmq::play("heartbeat-sub", server.addr) else { return };
    server.subscribed("").await;
    assert_eq!(zmq.says().await, "no disconnection");
    assert_eq!(server.publisher.subscribers(), 1);
    zmq.succeeds().await;
}

#[tokio::test]
async fn our_clients_and_libzmq_servers_keep_each_other_alive() {
    let Some(mut zmq) = Zmq::play("heartbeat-servers", "") else { return };
    let requester = Requester::connect(zmq.says().await, restless()).await.unwrap();
    let mut subscriber = Subscriber::connect(zmq.says().await, restless()).await.unwrap();
    assert_eq!(zmq.says().await, "no disconnection");
    assert_eq!(requester.request(Bytes::from_static(b"request"), PATIENCE).await.unwrap(), "request");
    assert_eq!(subscriber.recv().await.unwrap(), "publication");
    zmq.succeeds().await;
}

#[tokio::test]
async fn libzmq_clients_come_back_after_a_restart_of_our_server() {
    let replier = EchoServer::start(Options::default());
    let mut publisher = PublishServer::start(Options::default());
    let (reply_addr, publish_addr) = (replier.addr, publisher.addr);
    let Some(mut zmq) = Zmq::play("restart", format!("{reply_addr},{publish_addr}")) else { return };
    publisher.subscribed("").await;
    publisher.publisher.publish(Bytes::from_static(b"first"));
    assert_eq!(zmq.says().await, "first first");
    replier.stop().await;
    publisher.stop().await;
    let _replier = EchoServer::start_at(reply_addr, Options::default());
    let mut publisher = PublishServer::start_at(publish_addr, Options::default());
    publisher.subscribed("").await;
    publisher.publisher.publish(Bytes::from_static(b"second"));
    assert_eq!(zmq.says().await, "second second");
    zmq.succeeds().await;
}
