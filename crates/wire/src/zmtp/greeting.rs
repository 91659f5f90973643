//! The 64 bytes that open a ZMTP connection in each direction.
//!
//! A stranger is recognised at its first byte, so that a web browser or a port scanner is let go at once instead of
//! holding a connection until the handshake times out.

use super::error::Violation;

/// The length of a greeting.
pub const LEN: usize = 64;

/// The greeting we send: ZMTP 3.1, NULL, no server role.
pub const OURS: [u8; LEN] = {
    let mut bytes = [0; LEN];
    bytes[0] = 0xff;
    bytes[8] = 0x01;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[11] = 1;
    bytes[12] = b'N';
    bytes[13] = b'U';
    bytes[14] = b'L';
    bytes[15] = b'L';
    bytes
};

/// What a peer's greeting says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// Minor version of ZMTP 3.
    pub minor: u8,
}

impl Greeting {
    /// Reads a greeting from the beginning of `bytes`; `None` while it is incomplete and nothing is wrong with it yet.
    ///
    /// The eight bytes between the signature's marks are not looked at: peers fill them differently (wire reference,
    /// section 1.2).
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Violation> {
        if bytes.first().is_some_and(|&mark| mark != 0xff) || bytes.get(9).is_some_and(|&mark| mark != 0x7f) {
            return Err(Violation::NotZmtp);
        }
        if let Some(&major) = bytes.get(10).filter(|&&major| major < 3) {
            return Err(Violation::Version(major));
        }
        let Some(greeting) = bytes.first_chunk::<LEN>() else { return Ok(None) };
        if greeting[12..32] != OURS[12..32] {
            return Err(Violation::Mechanism);
        }
        // A later major version must speak ours when it sees it, so it counts as the newest we know.
        Ok(Some(Self { minor: if greeting[10] > 3 { 1 } else { greeting[11] } }))
    }

    /// Whether the peer speaks 3.1, which brought PING, PONG and SUBSCRIBE as commands.
    pub fn is_modern(self) -> bool {
        self.minor >= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_greeting_is_read_back() {
        assert_eq!(Greeting::parse(&OURS), Ok(Some(Greeting { minor: 1 })));
    }

    #[test]
    fn every_prefix_of_a_greeting_asks_for_more() {
        for end in 0..LEN {
            assert_eq!(Greeting::parse(&OURS[..end]), Ok(None), "at {end}");
        }
    }

    #[test]
    fn http_is_refused_at_its_first_byte() {
        assert_eq!(Greeting::parse(b"G"), Err(Violation::NotZmtp));
    }

    #[test]
    fn older_protocols_are_refused_at_the_version_byte() {
        let mut old = OURS;
        old[10] = 1;
        assert_eq!(Greeting::parse(&old[..11]), Err(Violation::Version(1)));
    }

    #[test]
    fn other_mechanisms_are_refused() {
        let mut curve = OURS;
        curve[12..17].copy_from_slice(b"CURVE");
        assert_eq!(Greeting::parse(&curve), Err(Violation::Mechanism));
    }
}
