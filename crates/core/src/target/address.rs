//! `ipcidr` targets: an address that one of the minion's has to be, or a network that one of them has to be in.

use super::TargetError;
use crate::value::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A compiled `ipcidr` target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// `ipv4` or `ipv6`: the grain that lists the minion's addresses
    grain: &'static str,
    wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// In the spelling the grain uses; compared as text, as Salt does
    Address(String),
    Network(ipnet::IpNet),
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        let bad = |reason| TargetError::BadNetwork { text: text.into(), reason };
        if let Some(address) = parse_address(text) {
            return Ok(Self { grain: grain_of(address), wanted: Wanted::Address(spell(address, scope_of(text))) });
        }
        let Some((address, mask)) = text.split_once('/') else {
            return Err(bad("it is neither"));
        };
        let address: IpAddr = address.parse().map_err(|_| bad("the part before `/` is not an address"))?;
        let prefix =
            prefix_length(address, mask).ok_or_else(|| bad("the part after `/` is not a prefix length or netmask"))?;
        let network = ipnet::IpNet::new(address, prefix).map_err(|_| bad("the prefix is too long"))?;
        if network.network() != address {
            return Err(bad("it has host bits set"));
        }
        Ok(Self { grain: grain_of(address), wanted: Wanted::Network(network) })
    }

    /// The grain that decides.
    pub(crate) fn grain(&self) -> &'static str {
        self.grain
    }

    pub(crate) fn matches(&self, grains: &Value) -> bool {
        let Some(listed) = grains.get(self.grain) else { return false };
        match (&self.wanted, listed) {
            (Wanted::Address(wanted), Value::List(items)) => items.iter().any(|item| item.as_str() == Some(wanted)),
            // Python's `in` on a text looks for a part of it.
            (Wanted::Address(wanted), Value::Text(text)) => text.contains(wanted.as_str()),
            (Wanted::Address(wanted), Value::Map(map)) => map.get(wanted).is_some(),
            (Wanted::Network(network), Value::List(items)) => any_inside(network, items),
            (Wanted::Network(network), item) => any_inside(network, std::slice::from_ref(item)),
            _ => false,
        }
    }
}

/// Salt gives up at the first entry that is no address; so does this.
fn any_inside(network: &ipnet::IpNet, items: &[Value]) -> bool {
    let addresses = items.iter().map(|item| item.as_str().and_then(parse_address));
    addresses.take_while(Option::is_some).flatten().any(|address| network.contains(&address))
}

fn grain_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ipv4" } else { "ipv6" }
}

/// An address, with or without an IPv6 scope (`fe80::1%eth0`).
fn parse_address(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        None => text.parse().ok(),
        Some((address, scope)) if !scope.is_empty() && !scope.contains(['%', '/']) => {
            address.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        Some(_) => None,
    }
}

fn scope_of(text: &str) -> &str {
    text.find('%').map_or("", |at| &text[at..])
}

/// Python spells an IPv4-mapped address in hexadecimal, Rust with dots.
fn spell(address: IpAddr, scope: &str) -> String {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            let [.., high, low] = v6.segments();
            format!("::ffff:{high:x}:{low:x}{scope}")
        }
        address => format!("{address}{scope}"),
    }
}

/// `8`, `255.0.0.0` or `0.255.255.255`.
fn prefix_length(address: IpAddr, mask: &str) -> Option<u8> {
    if !mask.is_empty() && mask.bytes().all(|b| b.is_ascii_digit()) {
        return mask.parse().ok();
    }
    let mask = u32::from(mask.parse::<Ipv4Addr>().ok().filter(|_| address.is_ipv4())?);
    let contiguous = |mask: u32| mask.leading_ones() + mask.trailing_zeros() >= 32;
    let ones = if contiguous(mask) { mask } else { !mask };
    contiguous(ones).then_some(ones.leading_ones() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, addresses: &[&str], expected: bool) {
        let grain = if target.contains("::") { "ipv6" } else { "ipv4" };
        let grains = Value::map([(grain, Value::list(addresses.iter().copied()))]);
        assert_eq!(Address::parse(target).unwrap().matches(&grains), expected, "{target} in {addresses:?}");
    }

    #[test]
    fn addresses_compare_as_text_and_networks_contain() {
        check("10.0.0.1", &["127.0.0.1", "10.0.0.1"], true);
        check("10.0.0.1", &["10.0.0.11"], false);
        check("10.0.0.0/8", &["127.0.0.1", "10.9.9.9"], true);
        check("10.0.0.0/255.0.0.0", &["10.9.9.9"], true);
        check("10.0.0.0/0.255.255.255", &["10.9.9.9"], true);
        check("2001:DB8::1", &["2001:db8::1"], true);
        check("2001:db8::/32", &["::1", "2001:db8:7::9"], true);
        check("::ffff:1.2.3.4", &["::ffff:102:304"], true);
        check("fe80::/10", &["fe80::1%eth0"], true);
    }

    #[test]
    fn an_entry_that_is_no_address_ends_the_search() {
        check("10.0.0.0/8", &["nonsense", "10.0.0.1"], false);
        check("10.0.0.0/8", &["10.0.0.1", "nonsense"], true);
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for bad in [
            "127.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0/8",
            "10.0.0.0/",
            "web1",
            "",
            "10.0.0.0/8/8",
            "10.0.0.0/255.0.255.0",
            "::1/0.0.0.0",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
