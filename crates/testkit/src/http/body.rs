//! Where a reply's body ends: by its length, by its last chunk, or with the connection.

use super::{Reply, read_line};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;

/// What is still to be read of a body.
#[derive(Debug)]
pub(super) enum Body {
    /// So many bytes
    Length(usize),
    /// Chunks, until an empty one
    Chunked,
    /// Everything until the connection ends
    Open,
    /// Nothing
    Done,
}

impl Body {
    /// The body that follows this head.
    pub(super) fn of(head: &Reply, method: &str) -> Self {
        let is_chunked = head.header("Transfer-Encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let length = head.header("Content-Length").and_then(|length| length.parse().ok());
        match length {
            _ if method == "HEAD" || head.status == 204 || head.status == 304 || head.status == 101 => Self::Done,
            _ if is_chunked => Self::Chunked,
            Some(length) => Self::Length(length),
            None => Self::Open,
        }
    }

    /// The next bytes; nothing at the end.
    pub(super) async fn next(&mut self, connection: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
        match self {
            Self::Done | Self::Length(0) => None,
            Self::Length(left) => {
                let bytes = take(connection, *left).await?;
                *left -= bytes.len();
                Some(bytes)
            }
            Self::Open => take(connection, usize::MAX).await,
            Self::Chunked => {
                let bytes = next_chunk(connection).await;
                if bytes.is_none() {
                    *self = Self::Done;
                }
                bytes
            }
        }
    }
}

/// What is there, but no more than so much.
async fn take(connection: &mut BufReader<TcpStream>, most: usize) -> Option<Vec<u8>> {
    let there = connection.fill_buf().await.unwrap_or_default();
    let bytes = there[..there.len().min(most)].to_vec();
    connection.consume(bytes.len());
    (!bytes.is_empty()).then_some(bytes)
}

async fn next_chunk(connection: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let line = read_line(connection).await?;
    let size = line.split(';').next().unwrap_or_default().trim();
    let size = usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("no size of a chunk: {line:?}"));
    let mut bytes = vec![0; size];
    let read = connection.read_exact(&mut bytes).await;
    read.unwrap_or_else(|error| panic!("a chunk of {size} bytes ended early: {error}"));
    let end = read_line(connection).await;
    assert!(end.as_deref() == Some("") || size == 0, "a chunk did not end where it said: {end:?}");
    (size > 0).then_some(bytes)
}
