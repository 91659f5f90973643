//! The client's end of the publish port: a SUB.
//!
//! A task owns the connection, so that heartbeats are answered however long the receiver takes for one publication.
//! Unlike libzmq's SUB it does not connect again by itself: what was published meanwhile is lost, and the minion must
//! know that to ask for it.

use super::command::{Command, SocketType};
use super::connection::Connection;
use super::error::Error;
use super::frame;
use super::options::Options;
use super::requester::Server;
use bytes::Bytes;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// How many publications may wait for the receiver. Above it the connection is not read, and in the end the publisher
/// cuts us off.
const QUEUE: usize = 1_000;

/// A subscription to a publish port.
#[derive(Debug)]
pub struct Subscriber {
    publications: mpsc::Receiver<Result<Bytes, Error>>,
}

impl Subscriber {
    /// Connects to `addr` (`host:port`) and subscribes to everything.
    pub async fn connect(addr: impl ToString, options: Options) -> Result<Self, Error> {
        Self::connect_to(addr, options, &[b""]).await
    }

    /// Connects to `addr` (`host:port`) and subscribes to what begins with one of `topics`.
    pub async fn connect_to(addr: impl ToString, options: Options, topics: &[&[u8]]) -> Result<Self, Error> {
        let server = Server { addr: addr.to_string(), options: Arc::new(options) };
        let mut conn = server.open(SocketType::Sub).await?;
        for topic in topics {
            // A command in ZMTP 3.1, a message before.
            conn.queue(match conn.is_modern() {
                true => Command::Subscribe(Bytes::copy_from_slice(topic)).encode(),
                false => frame::encode_message(&[&[&[1], *topic].concat()]),
            });
        }
        conn.flush().await?;
        let (sender, publications) = mpsc::channel(QUEUE);
        tokio::spawn(run(conn, sender));
        Ok(Self { publications })
    }

    /// The next publication: its last frame, since with topics the first is only the topic. May be dropped and called
    /// again without losing one. After an error the connection is over.
    pub async fn recv(&mut self) -> Result<Bytes, Error> {
        self.publications.recv().await.unwrap_or(Err(Error::Closed))
    }
}

async fn run(mut conn: Connection<TcpStream>, sender: mpsc::Sender<Result<Bytes, Error>>) {
    loop {
        let received = tokio::select! {
            received = conn.message() => received,
            () = sender.closed() => return,
        };
        let (item, is_last) = match received {
            Ok(mut message) => (Ok(message.parts.pop().unwrap_or_default()), false),
            Err(error) => (Err(error), true),
        };
        let permit = tokio::select! {
            biased;
            permit = sender.reserve() => permit,
            // The receiver is slow; meanwhile PINGs are still answered.
            error = conn.idle(), if !is_last => {
                let _ = sender.send(item).await;
                let _ = sender.send(Err(error)).await;
                return;
            }
        };
        match permit {
            Ok(permit) => permit.send(item),
            Err(_gone) => return,
        }
        if is_last {
            return;
        }
    }
}
