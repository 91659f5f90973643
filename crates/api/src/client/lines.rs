//! Reads an answer that comes line by line.

use super::ClientError;
use crate::shape::ErrorLine;
use crate::stream::HEARTBEAT;
use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::time::Duration;

/// The longest line that is read: a return of the largest size, with room for its escapes.
const LONGEST_LINE: usize = 256 << 20;

/// After how long a silence the connection counts as lost: three heartbeats and a bit.
const SILENCE: Duration = HEARTBEAT.saturating_mul(3).saturating_add(Duration::from_secs(5));

/// Values that come one per line.
#[derive(Debug)]
pub struct Lines<T, B = hyper::body::Incoming> {
    body: B,
    /// What came and was not read yet
    ready: BytesMut,
    /// How much of it has no line end
    looked_at: usize,
    item: PhantomData<fn() -> T>,
}

impl<T, B> Lines<T, B>
where
    T: DeserializeOwned,
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    pub(super) fn new(body: B) -> Self {
        Self { body, ready: BytesMut::new(), looked_at: 0, item: PhantomData }
    }

    /// The next value; `None` when the server has said everything. May be dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Option<Result<T, ClientError>> {
        loop {
            while let Some(line) = self.take_line() {
                if !line.trim_ascii().is_empty() {
                    return Some(read(&line));
                }
            }
            if self.ready.len() > LONGEST_LINE {
                return Some(Err(ClientError::Protocol(format!("a line is longer than {LONGEST_LINE} bytes"))));
            }
            match tokio::time::timeout(SILENCE, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.ready.extend_from_slice(&data);
                    }
                }
                Ok(Some(Err(error))) => return Some(Err(ClientError::Lost(error.to_string()))),
                Ok(None) if self.ready.is_empty() => return None,
                Ok(None) => return Some(Err(ClientError::Lost("it ended in the middle of a line".into()))),
                Err(_) => return Some(Err(ClientError::Lost("the server has fallen silent".into()))),
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        match self.ready[self.looked_at..].iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let line = self.ready.split_to(self.looked_at + at);
                self.ready.advance(1);
                self.looked_at = 0;
                Some(line)
            }
            None => {
                self.looked_at = self.ready.len();
                None
            }
        }
    }
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(line).map_err(|wrong| match serde_json::from_slice(line) {
        Ok(ErrorLine { error }) => ClientError::Refused { status: 500, problem: Box::new(error.into()) },
        Err(_) => ClientError::Protocol(wrong.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use std::convert::Infallible;

    fn lines(pieces: &[&'static str]) -> Lines<u32, impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        let frames: Vec<_> = pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))).collect();
        Lines::new(StreamBody::new(stream::iter(frames)))
    }

    #[tokio::test]
    async fn lines_are_found_however_the_bytes_were_cut() {
        let mut lines = lines(&["1", "2\n\n3", "\n", "\n4\n"]);
        let mut seen = Vec::new();
        while let Some(item) = lines.next().await {
            seen.push(item.unwrap());
        }
        assert_eq!(seen, [12, 3, 4]);
    }

    #[tokio::test]
    async fn an_end_within_a_line_is_a_lost_connection() {
        assert!(matches!(lines(&["12"]).next().await, Some(Err(ClientError::Lost(_)))));
    }

    #[tokio::test]
    async fn an_error_in_the_stream_is_an_error() {
        let mut lines = lines(&["{\"error\":{\"code\":\"busy\",\"message\":\"the disk is full\"}}\n"]);
        assert_eq!(lines.next().await.unwrap().unwrap_err().to_string(), "the disk is full");
    }
}
