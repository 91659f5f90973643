//! ZMTP frames: the unit in which messages and commands travel. Pure: bytes in, frames out.
//!
//! A frame is a flag byte, a size of one or eight bytes, and a body. The size is checked as soon as it has arrived, so
//! a peer that announces 2^60 bytes is refused after nine.

use super::command::Command;
use super::error::Violation;
use super::options::MAX_COMMAND;
use bytes::{Buf, BufMut, Bytes, BytesMut};

const MORE: u8 = 0b001;
const LONG: u8 = 0b010;
const COMMAND: u8 = 0b100;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A part of a message; the last one has `more` unset.
    Part {
        /// Whether further parts of the same message follow.
        more: bool,
        /// The bytes of the part.
        body: Bytes,
    },
    /// A command.
    Command(Command),
}

/// What the first bytes of a frame say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Whether further parts of the same message follow.
    pub more: bool,
    /// Whether the body is a command.
    pub command: bool,
    /// How long the header itself is.
    pub len: usize,
    /// How long the body is.
    pub size: u64,
}

impl Header {
    /// Reads the header at the beginning of `bytes`; `None` while it is incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Violation> {
        let Some((&flags, rest)) = bytes.split_first() else { return Ok(None) };
        let (more, long, command) = (flags & MORE != 0, flags & LONG != 0, flags & COMMAND != 0);
        if flags & !(MORE | LONG | COMMAND) != 0 || (command && more) {
            return Err(Violation::Flags(flags));
        }
        let (len, size) = if long {
            let Some(size) = rest.first_chunk::<8>() else { return Ok(None) };
            (9, u64::from_be_bytes(*size))
        } else {
            let Some(&size) = rest.first() else { return Ok(None) };
            (2, u64::from(size))
        };
        Ok(Some(Self { more, command, len, size }))
    }
}

/// Takes the next complete frame off `bytes`; `None` (and `bytes` untouched) while it is incomplete.
///
/// `max_part` limits the body of a message part; commands have their own, small limit.
pub fn decode(bytes: &mut BytesMut, max_part: usize) -> Result<Option<Frame>, Violation> {
    let Some(header) = Header::parse(bytes)? else { return Ok(None) };
    let limit = if header.command { MAX_COMMAND } else { max_part };
    let size = match usize::try_from(header.size) {
        Ok(size) if size <= limit => size,
        _ => return Err(Violation::TooLarge { size: header.size, limit }),
    };
    if bytes.len() - header.len < size {
        return Ok(None);
    }
    bytes.advance(header.len);
    // An empty delimiter must not keep a read buffer alive.
    let body = if size == 0 { Bytes::new() } else { bytes.split_to(size).freeze() };
    Ok(Some(match header.command {
        true => Frame::Command(Command::parse(&body)?),
        false => Frame::Part { more: header.more, body },
    }))
}

/// Whether the frame that begins `bytes` is a message part.
pub(crate) fn begins_message(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|flags| flags & COMMAND == 0)
}

/// Everything of a message but the body of its last part: `parts` complete, then the header of a last part of `size`
/// bytes. So a large body can be written from where it is.
pub fn encode_head(parts: &[Bytes], size: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(parts.iter().map(|part| part.len() + 9).sum::<usize>() + 9);
    for part in parts {
        put_header(&mut out, MORE, part.len());
        out.put_slice(part);
    }
    put_header(&mut out, 0, size);
    out.freeze()
}

/// A whole message as it travels: every part with its header.
pub fn encode_message(parts: &[&[u8]]) -> Bytes {
    let mut out = BytesMut::with_capacity(parts.iter().map(|part| part.len() + 9).sum());
    for (index, part) in parts.iter().enumerate() {
        put_header(&mut out, if index + 1 < parts.len() { MORE } else { 0 }, part.len());
        out.put_slice(part);
    }
    out.freeze()
}

/// A command's body with its frame header.
pub(crate) fn encode_command(body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(body.len() + 9);
    put_header(&mut out, COMMAND, body.len());
    out.put_slice(body);
    out.freeze()
}

fn put_header(out: &mut BytesMut, flags: u8, size: usize) {
    match u8::try_from(size) {
        Ok(size) => out.put_slice(&[flags, size]),
        Err(_) => {
            out.put_u8(flags | LONG);
            out.put_u64(size as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_all(bytes: &[u8], max_part: usize) -> Result<Vec<Frame>, Violation> {
        let mut bytes = BytesMut::from(bytes);
        let mut frames = Vec::new();
        while let Some(frame) = decode(&mut bytes, max_part)? {
            frames.push(frame);
        }
        Ok(frames)
    }

    #[test]
    fn a_message_is_read_back_part_by_part() {
        let long = [7; 300];
        let part = |more, body: &[u8]| Frame::Part { more, body: Bytes::copy_from_slice(body) };
        assert_eq!(
            decode_all(&encode_message(&[b"", b"short", &long]), 1000),
            Ok(vec![part(true, b""), part(true, b"short"), part(false, &long)])
        );
    }

    #[test]
    fn a_head_and_its_body_are_a_message() {
        let mut joined = BytesMut::from(&encode_head(&[Bytes::new()], 5)[..]);
        joined.extend_from_slice(b"reply");
        assert_eq!(joined.freeze(), encode_message(&[b"", b"reply"]));
    }

    #[test]
    fn a_size_above_the_limit_is_refused_before_the_body_arrives() {
        let mut announced = vec![LONG];
        announced.extend((1u64 << 60).to_be_bytes());
        assert_eq!(decode_all(&announced, 1000), Err(Violation::TooLarge { size: 1 << 60, limit: 1000 }));
    }

    #[test]
    fn a_command_has_its_own_limit() {
        let mut announced = vec![COMMAND | LONG];
        announced.extend((MAX_COMMAND as u64 + 1).to_be_bytes());
        assert!(matches!(decode_all(&announced, usize::MAX), Err(Violation::TooLarge { limit: MAX_COMMAND, .. })));
    }

    #[test]
    fn reserved_flags_and_commands_in_parts_are_refused() {
        assert_eq!(decode_all(&[0x08, 0], 10), Err(Violation::Flags(0x08)));
        assert_eq!(decode_all(&[COMMAND | MORE, 0], 10), Err(Violation::Flags(COMMAND | MORE)));
    }

    #[test]
    fn a_long_header_may_carry_a_short_body() {
        let bytes = [LONG, 0, 0, 0, 0, 0, 0, 0, 2, b'o', b'k'];
        assert_eq!(decode_all(&bytes, 10), Ok(vec![Frame::Part { more: false, body: Bytes::from_static(b"ok") }]));
    }

    #[test]
    fn the_size_switches_form_at_256() {
        assert_eq!(&encode_head(&[], 255)[..], [0, 255]);
        assert_eq!(&encode_head(&[], 256)[..], [LONG, 0, 0, 0, 0, 0, 0, 1, 0]);
    }
}
