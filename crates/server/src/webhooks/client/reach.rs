//! How far the server goes for somebody: not to itself for people who administer an organisation only.
//!
//! Who may name an address for the server to read could otherwise have it ask services that trust this machine, or the
//! ones that clouds run on link-local addresses, and learn from the errors what is there. The names are looked up here and
//! what they mean is judged, not the name: at every redirect anew, and the connection goes to what was judged.

use super::{Address, Failure};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpStream;

/// Whereto connections are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    #[default]
    Anywhere,
    /// Neither to this machine nor to an address that holds on its own network link only
    Far,
}

impl Reach {
    pub(super) async fn connect(self, address: &Address) -> Result<TcpStream, Failure> {
        let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await;
        let mut found: Vec<SocketAddr> = found.map_err(Failure::Unreachable)?.collect();
        if self == Self::Far {
            found.retain(|address| !is_near(address.ip()));
            if found.is_empty() {
                return Err(Failure::TooNear);
            }
        }
        let stream = TcpStream::connect(found.as_slice()).await.map_err(Failure::Unreachable)?;
        // An address of its own network card leads here, too.
        let is_own = matches!((stream.local_addr(), stream.peer_addr()), (Ok(own), Ok(peer)) if own.ip() == peer.ip());
        if self == Self::Far && is_own { Err(Failure::TooNear) } else { Ok(stream) }
    }
}

/// Where Amazon's machines ask about themselves, which is no link-local address.
const CLOUD: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whether an address is one of this machine, of its link, or of nobody in particular.
fn is_near(ip: IpAddr) -> bool {
    let is_near_v4 = |ip: Ipv4Addr| {
        // 0.0.0.0/8 is this machine, too.
        ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || ip.is_broadcast() || ip.octets()[0] == 0
    };
    match ip {
        IpAddr::V4(ip) => is_near_v4(ip),
        // An IPv4 address written as an IPv6 one leads to the same place.
        IpAddr::V6(ip) => match ip.to_ipv4() {
            Some(v4) if !ip.is_loopback() && !ip.is_unspecified() => is_near_v4(v4),
            _ => {
                ip.is_loopback()
                    || ip.is_unspecified()
                    || ip.is_multicast()
                    || ip.is_unicast_link_local()
                    || ip == CLOUD
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_told_from_what_is_not() {
        for near in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "169.254.169.254", "255.255.255.255", "224.0.0.1"]
        {
            assert!(is_near(near.parse().unwrap()), "{near}");
        }
        for near in [
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "fd00:ec2::254",
        ] {
            assert!(is_near(near.parse().unwrap()), "{near}");
        }
        // Calendars are kept inside: private addresses are what this is for.
        for far in ["10.0.0.1", "192.168.1.1", "192.0.2.1", "2001:db8::1", "fd00::1", "::ffff:10.0.0.1"] {
            assert!(!is_near(far.parse().unwrap()), "{far}");
        }
    }
}
