//! One ZMTP peer over any byte stream: reads frames, writes frames, keeps time.
//!
//! Everything is a poll function over state kept in the [`Connection`], so every method may be dropped half way and
//! called again: nothing is lost or sent twice. While input is awaited, queued output goes out, PINGs are answered and
//! our own are sent, so the roles above only see what concerns them.
//!
//! An idle connection owns no buffer: bytes are read into the stack and copied to the heap once there are some. That
//! also makes memory follow what has arrived, whatever a frame announces.

use super::budget::{Account, Charge};
use super::command::{Command, Ready};
use super::error::{Error, Violation, Waiting};
use super::frame::{self, Frame};
use super::greeting::{self, Greeting};
use super::options::{GATHER_MESSAGES, MAX_PARTS, Options, READ_CHUNK};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How many answers to PINGs may wait for a peer that does not read, before we stop reading from it.
const MAX_ANSWERS: usize = 4;

/// How many moments of a heartbeat interval there are at which PINGs go out.
///
/// All connections share the beat: with thousands of them one wake-up of the process then serves many, which costs a
/// fraction of the processor time of one wake-up each.
const BEATS: u32 = 100;

/// One peer.
#[derive(Debug)]
pub struct Connection<S> {
    io: S,
    options: Arc<Options>,
    max_message: usize,
    /// Arrived, not yet parsed.
    inbound: BytesMut,
    /// The parts of the message that is arriving, and their size.
    parts: Vec<Bytes>,
    message_bytes: usize,
    /// Who pays for large messages, and what the arriving one has cost so far.
    account: Option<Account>,
    charge: Option<Charge>,
    outbound: VecDeque<Bytes>,
    answers: usize,
    unflushed: bool,
    modern: bool,
    heartbeats: bool,
    heard: Instant,
    pinged: Instant,
    message_since: Option<Instant>,
    stalled_since: Option<Instant>,
    handshake_by: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

/// What a peer can tell us once the greetings are exchanged.
#[derive(Debug)]
pub enum Event {
    /// A complete message.
    Message(Message),
    /// READY.
    Ready(Ready),
    /// A subscription, in the form of ZMTP 3.1.
    Subscribe(Bytes),
    /// A subscription taken back.
    Cancel(Bytes),
}

/// A complete message. It counts against its budget until it is dropped.
#[derive(Debug)]
pub struct Message {
    /// Its parts, at least one.
    pub parts: Vec<Bytes>,
    pub(crate) charge: Option<Charge>,
}

/// What a look at the arrived bytes led to.
enum Step<T> {
    Got(T),
    Again,
    More,
    Hold,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Wraps a fresh stream. Nothing is sent, and no message accepted, before the handshake.
    pub fn new(io: S, options: Arc<Options>) -> Self {
        let now = Instant::now();
        let handshake_by = now + options.handshake_timeout;
        Self {
            io,
            max_message: 0,
            options,
            inbound: BytesMut::new(),
            parts: Vec::new(),
            message_bytes: 0,
            account: None,
            charge: None,
            outbound: VecDeque::new(),
            answers: 0,
            unflushed: false,
            modern: false,
            heartbeats: false,
            heard: now,
            pinged: now,
            message_since: None,
            stalled_since: None,
            handshake_by: Some(handshake_by),
            timer: Box::pin(sleep_until(handshake_by)),
        }
    }

    /// Replaces the limit on messages that [`Options::max_message`] set.
    pub fn set_max_message(&mut self, bytes: usize) {
        self.max_message = bytes;
    }

    /// From now on large messages are paid from this account.
    pub(crate) fn set_account(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// The handshake is over; `modern` says whether the peer speaks ZMTP 3.1.
    pub(crate) fn establish(&mut self, modern: bool) {
        self.handshake_by = None;
        self.max_message = self.options.max_message;
        self.modern = modern;
        self.heartbeats = modern && !self.options.heartbeat_interval.is_zero();
    }

    /// Whether the peer speaks ZMTP 3.1, the version that brought heartbeats and SUBSCRIBE as a command.
    pub(crate) fn is_modern(&self) -> bool {
        self.modern
    }

    /// Puts encoded bytes behind what already waits to be written.
    pub fn queue(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.outbound.push_back(bytes);
        }
    }

    /// Whether everything queued has been handed to the transport.
    pub fn is_flushed(&self) -> bool {
        self.outbound.is_empty() && !self.unflushed
    }

    /// Waits for the peer's greeting.
    pub(crate) async fn greeting(&mut self) -> Result<Greeting, Error> {
        poll_fn(|cx| {
            self.poll_input(cx, |conn| match Greeting::parse(&conn.inbound)? {
                Some(greeting) => {
                    conn.inbound.advance(greeting::LEN);
                    Ok(Step::Got(greeting))
                }
                None => Ok(Step::More),
            })
        })
        .await
    }

    /// Waits for what the peer says next.
    pub async fn event(&mut self) -> Result<Event, Error> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// [`Connection::event`] as a poll function.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        self.poll_input(cx, Self::take_event)
    }

    /// Waits for a message; anything else the peer says is a violation.
    pub async fn message(&mut self) -> Result<Message, Error> {
        match self.event().await? {
            Event::Message(message) => Ok(message),
            Event::Ready(_) | Event::Subscribe(_) | Event::Cancel(_) => Err(Violation::Unexpected.into()),
        }
    }

    /// Keeps the connection alive without taking a message from it, until it fails. A message that begins meanwhile is
    /// left in the transport.
    pub async fn idle(&mut self) -> Error {
        let failed = poll_fn(|cx| {
            self.poll_input(cx, |conn| match frame::begins_message(&conn.inbound) {
                true => Ok(Step::Hold),
                false => conn.take_event(),
            })
        });
        match failed.await {
            Ok(_) => Violation::Unexpected.into(),
            Err(error) => error,
        }
    }

    /// Waits until everything queued is written.
    pub async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| {
            loop {
                self.poll_output(cx)?;
                if self.is_flushed() {
                    return Poll::Ready(Ok(()));
                }
                ready!(self.poll_timer(cx))?;
            }
        })
        .await
    }

    /// Writes what is queued, reads what arrives, keeps the timers, until `take` finds what it looks for.
    fn poll_input<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&mut Self) -> Result<Step<T>, Error>,
    ) -> Poll<Result<T, Error>> {
        loop {
            self.poll_output(cx)?;
            if self.answers < MAX_ANSWERS {
                match take(self)? {
                    Step::Got(found) => return Poll::Ready(Ok(found)),
                    Step::Again => continue,
                    Step::Hold => {}
                    Step::More => {
                        self.note_unfinished();
                        if let Poll::Ready(read) = self.poll_read(cx) {
                            read?;
                            continue;
                        }
                    }
                }
            }
            ready!(self.poll_timer(cx))?;
        }
    }

    fn take_event(&mut self) -> Result<Step<Event>, Error> {
        let room = self.max_message.saturating_sub(self.message_bytes);
        let Some(frame) = frame::decode(&mut self.inbound, room)? else { return Ok(Step::More) };
        if self.inbound.is_empty() {
            self.inbound = BytesMut::new();
        }
        match frame {
            Frame::Part { more, body } => self.take_part(more, body),
            Frame::Command(command) => self.take_command(command),
        }
    }

    fn take_part(&mut self, more: bool, body: Bytes) -> Result<Step<Event>, Error> {
        if self.parts.len() + usize::from(more) >= MAX_PARTS {
            return Err(Violation::TooManyParts.into());
        }
        self.message_bytes += body.len();
        self.parts.push(body);
        if more {
            return Ok(Step::Again);
        }
        self.message_bytes = 0;
        self.message_since = None;
        let charge = self.charge.take().inspect(Charge::complete);
        Ok(Step::Got(Event::Message(Message { parts: std::mem::take(&mut self.parts), charge })))
    }

    fn take_command(&mut self, command: Command) -> Result<Step<Event>, Error> {
        Ok(match command {
            Command::Ping { context, .. } => {
                self.queue(Command::Pong { context }.encode());
                self.answers += 1;
                Step::Again
            }
            Command::Pong { .. } | Command::Unknown => Step::Again,
            Command::Error(reason) => return Err(Error::Refused(reason)),
            Command::Ready(ready) => Step::Got(Event::Ready(ready)),
            Command::Subscribe(topic) => Step::Got(Event::Subscribe(topic)),
            Command::Cancel(topic) => Step::Got(Event::Cancel(topic)),
        })
    }

    /// Starts the clock of a message that has begun.
    fn note_unfinished(&mut self) {
        if self.inbound.is_empty() && self.parts.is_empty() {
            self.message_since = None;
        } else if self.message_since.is_none() {
            self.message_since = Some(Instant::now());
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut space = [const { MaybeUninit::uninit() }; READ_CHUNK];
        let mut chunk = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut chunk))?;
        if chunk.filled().is_empty() {
            return Poll::Ready(Err(Error::Closed));
        }
        self.heard = Instant::now();
        self.inbound.extend_from_slice(chunk.filled());
        let held = self.inbound.len() + self.message_bytes;
        if held > READ_CHUNK {
            match (&self.charge, &self.account) {
                (Some(charge), _) => charge.grow_to(held)?,
                (None, Some(account)) => self.charge = Some(account.charge(held)?),
                (None, None) => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes as much as the transport takes; what is left, `cx` will be woken for.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        while !self.outbound.is_empty() {
            let mut slices = [IoSlice::new(&[]); GATHER_MESSAGES];
            let mut count = 0;
            for (slice, bytes) in slices.iter_mut().zip(&self.outbound) {
                *slice = IoSlice::new(bytes);
                count += 1;
            }
            match Pin::new(&mut self.io).poll_write_vectored(cx, &slices[..count]) {
                Poll::Ready(Ok(0)) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Poll::Ready(Ok(written)) => self.note_written(written),
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => {
                    self.stalled_since.get_or_insert_with(Instant::now);
                    return Ok(());
                }
            }
        }
        if self.unflushed {
            match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Ready(flushed) => {
                    flushed?;
                    self.unflushed = false;
                    self.stalled_since = None;
                }
                Poll::Pending => {
                    self.stalled_since.get_or_insert_with(Instant::now);
                }
            }
        }
        Ok(())
    }

    fn note_written(&mut self, mut written: usize) {
        self.stalled_since = None;
        self.unflushed = true;
        while let Some(first) = self.outbound.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.outbound.pop_front();
        }
        self.answers = 0;
        // A burst of publications must not leave its queue behind in every connection.
        self.outbound = VecDeque::new();
    }

    /// When the connection next needs attention without anything arriving.
    fn due(&self) -> Option<Instant> {
        let options = &self.options;
        [
            self.handshake_by,
            self.stalled_since.map(|since| since + options.write_stall),
            self.message_since.map(|since| since + options.message_timeout),
            self.heartbeats.then(|| self.ping_at().min(self.heard + options.heartbeat_timeout)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn ping_at(&self) -> Instant {
        let interval = self.options.heartbeat_interval;
        on_the_beat(self.heard.max(self.pinged) + interval, interval / BEATS)
    }

    /// Ready with an error when time is up for something, ready without one when a PING has been queued.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            let Some(due) = self.due() else { return Poll::Pending };
            // Most deadlines move into the future while they wait: the timer is left where it is, and set again only
            // when it fires too early. It must move at once when an earlier one appears.
            if self.timer.is_elapsed() || due < self.timer.deadline() {
                self.timer.as_mut().reset(due);
            }
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            let passed = |since: Option<Instant>, limit: Duration| since.is_some_and(|since| now >= since + limit);
            let options = &self.options;
            if passed(self.handshake_by, Duration::ZERO) {
                return Poll::Ready(Err(Error::TimedOut(Waiting::Handshake)));
            }
            if passed(self.stalled_since, options.write_stall) {
                return Poll::Ready(Err(Error::TimedOut(Waiting::Writing)));
            }
            if passed(self.message_since, options.message_timeout) {
                return Poll::Ready(Err(Error::TimedOut(Waiting::Message)));
            }
            if self.heartbeats && passed(Some(self.heard), options.heartbeat_timeout) {
                return Poll::Ready(Err(Error::TimedOut(Waiting::Heartbeat)));
            }
            if self.heartbeats && now >= self.ping_at() {
                self.pinged = now;
                self.queue(Command::Ping { ttl: 0, context: Bytes::new() }.encode());
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// The first common beat at or after `at`.
fn on_the_beat(at: Instant, beat: Duration) -> Instant {
    static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
    let beat = beat.as_nanos().max(1);
    // Simulated clocks may stand before the epoch that another one set.
    let late = match at.checked_duration_since(*EPOCH) {
        Some(after) => after.as_nanos() % beat,
        None => (beat - EPOCH.duration_since(at).as_nanos() % beat) % beat,
    };
    let wait = (beat - late) % beat;
    at + Duration::from_nanos(u64::try_from(wait).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_are_common_and_never_early_nor_a_beat_late() {
        let (now, beat) = (Instant::now(), Duration::from_millis(100));
        let first = on_the_beat(now, beat);
        for ms in 0..1_000 {
            for at in [now + Duration::from_millis(ms), now.checked_sub(Duration::from_millis(ms)).unwrap()] {
                let moved = on_the_beat(at, beat);
                assert!(moved >= at && moved < at + beat);
                let apart = moved.max(first).duration_since(moved.min(first));
                assert_eq!(apart.as_nanos() % beat.as_nanos(), 0);
            }
        }
    }
}
