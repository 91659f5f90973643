//! A websocket's client end: as much of RFC 6455 as text, pings and closing need.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::body::Body;
use super::{Http, PATIENCE, Reply, Request};

/// The key of the RFC's own example, and what a server has to answer to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
/// A client masks what it sends; any four bytes will do.
const MASK: [u8; 4] = [7, 77, 177, 222];
/// More than any frame a test expects: a length that is garbage is noticed.
const LARGEST: u64 = 64 << 20;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// An open websocket.
#[derive(Debug)]
pub struct WebSocket {
    writer: OwnedWriteHalf,
    /// Read by a task of its own: whoever stops waiting for a frame loses none of it
    frames: mpsc::UnboundedReceiver<Frame>,
}

/// Whether it is the last of its message, what it is, what is in it.
type Frame = (bool, u8, Vec<u8>);

/// What the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A text
    Text(String),
    /// The answer to a ping, with what was in it
    Pong(Vec<u8>),
    /// It closes, or the connection ended
    Closed,
}

impl WebSocket {
    /// Upgrades a GET request; whatever is not 101 is a reply like any other.
    pub async fn open(http: &Http, request: Request) -> Result<Self, Reply> {
        let request = request
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", KEY);
        let (mut connection, mut head) = match tokio::time::timeout(PATIENCE, http.open(&request)).await {
            Ok(opened) => opened,
            Err(_) => panic!("the websocket was not answered within {PATIENCE:?}"),
        };
        if head.status == 101 {
            assert_eq!(head.header("Sec-WebSocket-Accept"), Some(ACCEPT), "the server did not accept this key");
            // What came with the head is not lost with the buffer.
            let ahead = std::io::Cursor::new(connection.buffer().to_vec());
            let (reader, writer) = connection.into_inner().into_split();
            let (sender, frames) = mpsc::unbounded_channel();
            tokio::spawn(read_frames(BufReader::new(ahead.chain(reader)), sender));
            return Ok(Self { writer, frames });
        }
        let mut body = Body::of(&head, "GET");
        while let Some(bytes) = body.next(&mut connection).await {
            head.body.extend_from_slice(&bytes);
        }
        Err(head)
    }

    /// Sends a text.
    pub async fn send(&mut self, text: &str) {
        self.frame(TEXT, text.as_bytes()).await;
    }

    /// Sends a ping.
    pub async fn ping(&mut self, content: &[u8]) {
        self.frame(PING, content).await;
    }

    /// Says that it is over.
    pub async fn close(&mut self) {
        self.frame(CLOSE, &1000u16.to_be_bytes()).await;
    }

    /// The next message; fails the test when none comes.
    pub async fn receive(&mut self) -> Message {
        match self.receive_within(PATIENCE).await {
            Some(message) => message,
            None => panic!("nothing came on the websocket within {PATIENCE:?}"),
        }
    }

    /// The next message if one comes within this time.
    pub async fn receive_within(&mut self, patience: Duration) -> Option<Message> {
        tokio::time::timeout(patience, self.read()).await.ok()
    }

    /// The next text; fails the test when the server closes instead.
    pub async fn text(&mut self) -> String {
        loop {
            match self.receive().await {
                Message::Text(text) => return text,
                Message::Pong(_) => {}
                Message::Closed => panic!("the server closed the websocket"),
            }
        }
    }

    async fn frame(&mut self, opcode: u8, content: &[u8]) {
        let mut frame = vec![0x80 | opcode];
        match u16::try_from(content.len()) {
            Ok(length @ 0..=125) => frame.push(0x80 | length as u8),
            Ok(length) => {
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(0x80 | 127);
                frame.extend((content.len() as u64).to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(content.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        let sent = self.writer.write_all(&frame).await;
        sent.unwrap_or_else(|error| panic!("cannot send on the websocket: {error}"));
    }

    async fn read(&mut self) -> Message {
        // Messages in parts are short here, and their parts come together.
        let mut whole = Vec::new();
        loop {
            let Some((last, opcode, content)) = self.frames.recv().await else { return Message::Closed };
            match opcode {
                CLOSE => return Message::Closed,
                PING => self.frame(PONG, &content).await,
                PONG => return Message::Pong(content),
                _ => {
                    whole.extend_from_slice(&content);
                    if last {
                        return Message::Text(String::from_utf8_lossy(&whole).into_owned());
                    }
                }
            }
        }
    }
}

async fn read_frames(mut reader: impl AsyncRead + Unpin, frames: mpsc::UnboundedSender<Frame>) {
    while let Some(frame) = read_frame(&mut reader).await {
        if frames.send(frame).is_err() {
            return;
        }
    }
}

async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> Option<Frame> {
    let first = reader.read_u8().await.ok()?;
    let second = reader.read_u8().await.ok()?;
    assert!(second & 0x80 == 0, "a server does not mask what it sends");
    let length = match second {
        126 => reader.read_u16().await.ok()?.into(),
        127 => reader.read_u64().await.ok()?,
        short => u64::from(short),
    };
    assert!(length <= LARGEST, "a frame of {length} bytes");
    let mut content = vec![0; usize::try_from(length).ok()?];
    reader.read_exact(&mut content).await.ok()?;
    Some((first & 0x80 != 0, first & 0x0f, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn texts_go_both_ways_and_the_end_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = Http::new(listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 2048];
            let count = socket.read(&mut asked).await.unwrap();
            let head = format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n");
            socket.write_all(head.as_bytes()).await.unwrap();
            let mut frame = [0; 8];
            socket.read_exact(&mut frame).await.unwrap();
            socket.write_all(b"\x01\x02he\x80\x01y\x8a\x01p\x88\x00").await.unwrap();
            (String::from_utf8_lossy(&asked[..count]).into_owned(), frame)
        });
        let mut socket = WebSocket::open(&http, Request::get("/ws")).await.unwrap();
        socket.send("ok").await;
        assert_eq!(socket.text().await, "hey");
        assert_eq!(socket.receive().await, Message::Pong(b"p".to_vec()));
        assert_eq!(socket.receive().await, Message::Closed);
        let (asked, frame) = server.await.unwrap();
        assert!(asked.contains("Upgrade: websocket\r\n") && !asked.contains("Connection: close"), "{asked}");
        assert_eq!(frame, [0x81, 0x82, MASK[0], MASK[1], MASK[2], MASK[3], b'o' ^ MASK[0], b'k' ^ MASK[1]]);
    }
}
