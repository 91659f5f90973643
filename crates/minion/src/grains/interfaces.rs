//! The network interfaces and their addresses, asked of the kernel over netlink.
//!
//! One socket, two questions (links, addresses), no program started. What the kernel answers is read with bounds checked
//! everywhere: a message that makes no sense is passed over.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, sockopt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its name
    pub(crate) name: String,
    /// Whether it is administratively up
    pub(crate) is_up: bool,
    /// Its hardware address, written as `ip link` writes it
    pub(crate) hwaddr: Option<String>,
    /// The interface it stands on: `eth0` of the VLAN `eth0.5`
    pub(crate) parent: Option<String>,
    /// Its addresses, IPv4 and IPv6, in the kernel's order
    pub(crate) addresses: Vec<Address>,
}

/// One address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The address
    pub(crate) ip: IpAddr,
    /// Bits of the network
    pub(crate) prefix: u8,
    /// Broadcast address (IPv4)
    pub(crate) broadcast: Option<Ipv4Addr>,
    /// Label (IPv4)
    pub(crate) label: Option<String>,
    /// `global`, `link`, `host`, `site`
    pub(crate) scope: String,
    /// Whether it is a second address in the network of another (IPv4)
    pub(crate) is_secondary: bool,
}

/// The interfaces of this machine, in the kernel's order; none if the kernel does not answer.
pub(crate) fn interfaces() -> Vec<Interface> {
    let answers = |question| dump(question).unwrap_or_default();
    read(&answers(GET_LINK), &answers(GET_ADDRESS))
}

const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`
const REQUEST_ALL: u16 = 0x301;
// Lengths of `nlmsghdr`, `ifinfomsg` and `ifaddrmsg`.
const HEADER: usize = 16;
const LINK_HEAD: usize = 16;
const ADDRESS_HEAD: usize = 8;

/// Asks for everything of a kind, and gives the answers one after the other.
fn dump(question: u16) -> rustix::io::Result<Vec<u8>> {
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(1)))?;
    // Length, kind, flags, sequence, port; then one word that says "all families".
    let mut message = Vec::with_capacity(HEADER + LINK_HEAD);
    message.extend(((HEADER + LINK_HEAD) as u32).to_ne_bytes());
    message.extend(question.to_ne_bytes());
    message.extend(REQUEST_ALL.to_ne_bytes());
    message.resize(HEADER + LINK_HEAD, 0);
    rustix::net::sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let (mut all, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let (length, _) = rustix::net::recv(&socket, &mut part[..], RecvFlags::empty())?;
        let is_last = length == 0 || messages(&part[..length]).any(|(kind, _)| matches!(kind, DONE | ERROR));
        all.extend_from_slice(&part[..length]);
        if is_last {
            return Ok(all);
        }
    }
}

fn read(links: &[u8], addresses: &[u8]) -> Vec<Interface> {
    let mut found: Vec<(u32, Option<u32>, Interface)> = Vec::new();
    for (_, body) in messages(links).filter(|(kind, _)| *kind == NEW_LINK) {
        let (Some(index), Some(flags)) = (word(body, 4), word(body, 8)) else { continue };
        let (mut interface, mut on, mut is_elsewhere) =
            (Interface { is_up: flags & 1 == 1, ..Interface::default() }, None, false);
        for (kind, value) in attributes(body, LINK_HEAD) {
            match kind {
                1 => interface.hwaddr = hardware_address(value),
                3 => interface.name = text(value),
                5 => on = word(value, 0),
                37 => is_elsewhere = true,
                _ => {}
            }
        }
        // The other end may live in another network namespace, where its number means nothing here.
        if let (Some(other), true) = (on, is_elsewhere) {
            interface.parent = Some(format!("if{other}"));
            on = None;
        }
        found.push((index, on, interface));
    }
    let names: Vec<(u32, String)> =
        found.iter().map(|(index, _, interface)| (*index, interface.name.clone())).collect();
    for (_, on, interface) in &mut found {
        if let Some(on) = on {
            let known = names.iter().find(|(index, _)| index == on).map(|(_, name)| name.clone());
            interface.parent = Some(known.unwrap_or_else(|| if *on == 0 { "NONE".into() } else { format!("if{on}") }));
        }
    }
    for (_, body) in messages(addresses).filter(|(kind, _)| *kind == NEW_ADDRESS) {
        if let Some((index, address)) = read_address(body)
            && let Some((_, _, interface)) = found.iter_mut().find(|(known, _, _)| *known == index)
        {
            interface.addresses.push(address);
        }
    }
    found.into_iter().map(|(_, _, interface)| interface).collect()
}

fn read_address(body: &[u8]) -> Option<(u32, Address)> {
    let [_, prefix, flags, scope, ..] = *body else { return None };
    let index = word(body, 4)?;
    let (mut address, mut local, mut broadcast, mut label) = (None, None, None, None);
    for (kind, value) in attributes(body, ADDRESS_HEAD) {
        match kind {
            1 => address = ip(value),
            2 => local = ip(value),
            3 => label = Some(text(value)),
            4 => broadcast = ip(value),
            _ => {}
        }
    }
    // On a point-to-point link `address` is the other end, and ours has no network around it.
    let (ip, prefix) = match (local, address) {
        (Some(local), Some(peer)) if local != peer => (local, if local.is_ipv4() { 32 } else { 128 }),
        (Some(ip), _) | (None, Some(ip)) => (ip, prefix),
        (None, None) => return None,
    };
    let scope = match scope {
        0 => "global".into(),
        200 => "site".into(),
        253 => "link".into(),
        254 => "host".into(),
        other => other.to_string(),
    };
    let broadcast = match broadcast {
        Some(IpAddr::V4(broadcast)) => Some(broadcast),
        _ => None,
    };
    // The same bit means "temporary" on an IPv6 address.
    Some((index, Address { ip, prefix, broadcast, label, scope, is_secondary: ip.is_ipv4() && flags & 1 == 1 }))
}

/// The messages in a run of bytes: kind and body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = word(bytes, 0)? as usize;
        let message = bytes.get(..length).filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((half(message, 4)?, &message[HEADER..]))
    })
}

/// The attributes behind the fixed part of a body: kind and value.
fn attributes(body: &[u8], head: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut bytes = body.get(head..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = usize::from(half(bytes, 0)?);
        let attribute = bytes.get(..length).filter(|attribute| attribute.len() >= 4)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The two upper bits are flags.
        Some((half(attribute, 2)? & 0x3fff, &attribute[4..]))
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
        _ => None,
    }
}

/// Tunnels carry IPv4 addresses where others carry hardware ones.
fn hardware_address(bytes: &[u8]) -> Option<String> {
    match bytes.len() {
        0 => None,
        4 => ip(bytes).map(|ip| ip.to_string()),
        _ => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, head: &[u8], attributes: &[Vec<u8>]) -> Vec<u8> {
        let body: Vec<u8> = [head, &attributes.concat()].concat();
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes
    }

    fn link(index: u32, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let head = [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), [0; 4]].concat();
        message(NEW_LINK, &head, attributes)
    }

    #[test]
    fn links_and_addresses_are_put_together() {
        let links = [
            link(2, 1, &[attribute(3, b"eth0\0"), attribute(1, &[2, 0, 0, 0, 0, 9])]),
            link(3, 0, &[attribute(3, b"eth0.5\0"), attribute(5, &2u32.to_ne_bytes())]),
        ]
        .concat();
        let head = |flags: u8| [[2, 24, flags, 0], 2u32.to_ne_bytes()].concat();
        let first = [
            attribute(1, &[10, 0, 0, 2]),
            attribute(2, &[10, 0, 0, 2]),
            attribute(3, b"eth0\0"),
            attribute(4, &[10, 0, 0, 255]),
        ];
        let second = [attribute(1, &[10, 0, 0, 3]), attribute(2, &[10, 0, 0, 3])];
        let addresses = [message(NEW_ADDRESS, &head(0), &first), message(NEW_ADDRESS, &head(1), &second)].concat();
        let found = read(&links, &addresses);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].is_up, found[0].hwaddr.as_deref()),
            ("eth0", true, Some("02:00:00:00:00:09"))
        );
        assert_eq!(
            (found[1].name.as_str(), found[1].is_up, found[1].parent.as_deref()),
            ("eth0.5", false, Some("eth0"))
        );
        let address = &found[0].addresses[0];
        assert_eq!(
            (address.ip, address.prefix, address.broadcast),
            ([10, 0, 0, 2].into(), 24, Some([10, 0, 0, 255].into()))
        );
        assert!(!address.is_secondary && found[0].addresses[1].is_secondary);
    }

    #[test]
    fn a_point_to_point_address_stands_alone() {
        let attributes = [attribute(1, &[10, 8, 0, 1]), attribute(2, &[10, 8, 0, 2])];
        let body = message(NEW_ADDRESS, &[[2, 24, 0, 0], 1u32.to_ne_bytes()].concat(), &attributes);
        let (_, address) = read_address(&body[HEADER..]).unwrap();
        assert_eq!((address.ip, address.prefix), ([10, 8, 0, 2].into(), 32));
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let interfaces = interfaces();
        let lo = interfaces.iter().find(|interface| interface.name == "lo").unwrap();
        assert!(lo.addresses.iter().all(|address| address.ip.is_loopback()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(links: Vec<u8>, addresses: Vec<u8>) {
            read(&links, &addresses);
        }
    }
}
