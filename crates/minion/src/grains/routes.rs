//! The kernel's routing tables, as `/proc/net/route` and `/proc/net/ipv6_route` show them.

use super::source::read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where it leads
    pub(crate) destination: IpAddr,
    /// Bits of the destination that count
    pub(crate) prefix: u8,
    /// The next machine on the way; the unspecified address if the destination is on the link
    pub(crate) gateway: IpAddr,
    /// The interface
    pub(crate) interface: String,
    /// The kernel's `RTF_*` flags
    flags: u32,
}

const UP: u32 = 0x1;
const GATEWAY: u32 = 0x2;
const HOST: u32 = 0x4;
const REJECT: u32 = 0x200;
const NO_NEXT_HOP: u32 = 0x0020_0000;

/// The routes of this machine, IPv4 first, in the kernel's order.
pub(crate) fn routes() -> Vec<Route> {
    let mut found = read_ipv4(&read("/proc/net/route").unwrap_or_default());
    found.extend(read_ipv6(&read("/proc/net/ipv6_route").unwrap_or_default()));
    found
}

impl Route {
    /// Whether it leads everywhere.
    pub(crate) fn is_default(&self) -> bool {
        self.prefix == 0 && self.destination.is_unspecified()
    }

    /// Whether it only says that there is no way.
    pub(crate) fn is_reject(&self) -> bool {
        self.flags & REJECT != 0
    }

    /// The flags as `netstat` writes them.
    pub(crate) fn flag_letters(&self) -> String {
        let letters = [(REJECT, '!'), (UP, 'U'), (GATEWAY, 'G'), (HOST, 'H'), (NO_NEXT_HOP, 'n')];
        let is_on = |(flag, letter): &(u32, char)| self.flags & flag != 0 && !(self.is_reject() && *letter == 'U');
        letters.iter().filter(|entry| is_on(entry)).map(|(_, letter)| letter).collect()
    }
}

/// Numbers are hexadecimal and in the machine's own byte order.
pub(super) fn read_ipv4(text: &str) -> Vec<Route> {
    let one = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(columns.get(at)?, 16).ok();
        let address = |at: usize| hex(at).map(|number| Ipv4Addr::from(number.to_ne_bytes()));
        Some(Route {
            destination: address(1)?.into(),
            prefix: u8::try_from(hex(7)?.count_ones()).ok()?,
            gateway: address(2)?.into(),
            interface: (*columns.first()?).to_owned(),
            flags: hex(3)?,
        })
    };
    text.lines().skip(1).filter_map(one).collect()
}

/// Addresses are hexadecimal in the order they are spoken.
pub(super) fn read_ipv6(text: &str) -> Vec<Route> {
    let one = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let address = |at: usize| Some(Ipv6Addr::from(u128::from_str_radix(columns.get(at)?, 16).ok()?));
        Some(Route {
            destination: address(0)?.into(),
            prefix: u8::from_str_radix(columns.get(1)?, 16).ok()?,
            gateway: address(4)?.into(),
            interface: (*columns.get(9)?).to_owned(),
            flags: u32::from_str_radix(columns.get(8)?, 16).ok()?,
        })
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IPV4: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
        eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
    const IPV6: &str = "\
        fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    #[cfg(target_endian = "little")]
    #[test]
    fn ipv4_routes_are_read() {
        let found = read_ipv4(IPV4);
        assert_eq!((found[0].destination, found[0].prefix), ([192, 0, 2, 0].into(), 24));
        assert_eq!((found[1].is_default(), found[1].gateway), (true, [192, 0, 2, 1].into()));
        assert_eq!((found[0].flag_letters(), found[1].flag_letters()), ("U".into(), "UG".into()));
    }

    #[test]
    fn ipv6_routes_are_read() {
        let found = read_ipv6(IPV6);
        assert_eq!((found[0].destination, found[0].prefix), ("fd00::".parse().unwrap(), 64));
        assert_eq!((found[1].is_default(), found[1].gateway), (true, "fd00::1".parse().unwrap()));
        assert!(found[2].is_reject() && !found[1].is_reject());
        assert_eq!(found[2].flag_letters(), "!n");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text: String) {
            read_ipv4(&text);
            read_ipv6(&text);
        }
    }
}
