//! Names and addresses: interfaces, gateways, resolver, host name. No question leaves the machine.

use super::interfaces::{Address, Interface, interfaces};
use super::routes::{Route, routes};
use super::source::read;
use saltern_core::value::{Map, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Adds the grains of the network.
pub(super) fn add(grains: &mut Map) {
    let interfaces = interfaces();
    add_addresses(grains, &interfaces);
    add_gateways(grains, &routes());
    if let Some(text) = ["/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"].iter().find_map(read) {
        grains.insert("dns", resolver(&text));
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    add_names(grains, &name, &Hosts::read(&read("/etc/hosts").unwrap_or_default()), &interfaces);
}

fn add_addresses(grains: &mut Map, interfaces: &[Interface]) {
    let per_interface = |keep: fn(&Address) -> bool| {
        Value::map(interfaces.iter().map(|interface| {
            // Second addresses come last, as in Salt.
            let (first, second): (Vec<_>, Vec<_>) =
                interface.addresses.iter().filter(|a| keep(a)).partition(|a| !a.is_secondary);
            (&interface.name, Value::list(first.into_iter().chain(second).map(|address| address.ip.to_string())))
        }))
    };
    grains.insert("ip4_interfaces", per_interface(|address| address.ip.is_ipv4()));
    grains.insert("ip6_interfaces", per_interface(|address| address.ip.is_ipv6()));
    grains.insert("ip_interfaces", per_interface(|_| true));
    let hardware = interfaces.iter().filter_map(|interface| Some((&interface.name, interface.hwaddr.as_ref()?)));
    grains.insert("hwaddr_interfaces", Value::map(hardware));
    let all: BTreeSet<IpAddr> =
        interfaces.iter().flat_map(|interface| &interface.addresses).map(|address| address.ip).collect();
    grains.insert("ipv4", Value::list(all.iter().filter(|ip| ip.is_ipv4()).map(IpAddr::to_string)));
    grains.insert("ipv6", Value::list(all.iter().filter(|ip| ip.is_ipv6()).map(IpAddr::to_string)));
}

/// The address of the first gateway; true where everything is on the link, false where there is no way out.
fn add_gateways(grains: &mut Map, routes: &[Route]) {
    let mut ways: [Value; 2] = [false.into(), false.into()];
    for route in routes.iter().filter(|route| route.is_default() && !route.is_reject()) {
        let way = &mut ways[usize::from(route.gateway.is_ipv6())];
        if *way == Value::Bool(false) {
            *way = if route.gateway.is_unspecified() { true.into() } else { route.gateway.to_string().into() };
        }
    }
    let [ipv4, ipv6] = ways;
    grains.insert("ip_gw", [&ipv4, &ipv6].into_iter().any(|way| *way != Value::Bool(false)));
    grains.insert("ip4_gw", ipv4);
    grains.insert("ip6_gw", ipv6);
}

fn add_names(grains: &mut Map, name: &str, hosts: &Hosts, interfaces: &[Interface]) {
    let fqdn = hosts.canonical(name).unwrap_or(name).to_owned();
    let (host, domain) = fqdn.split_once('.').unwrap_or((&fqdn, ""));
    grains.insert("localhost", name);
    grains.insert("host", host);
    grains.insert("domain", domain);
    let addresses = hosts.addresses(&fqdn);
    grains.insert("fqdn_ip4", Value::list(addresses.iter().filter(|ip| ip.is_ipv4()).map(IpAddr::to_string)));
    grains.insert("fqdn_ip6", Value::list(addresses.iter().filter(|ip| ip.is_ipv6()).map(IpAddr::to_string)));
    let own = interfaces
        .iter()
        .flat_map(|interface| &interface.addresses)
        .map(|address| address.ip)
        .filter(|ip| !ip.is_loopback());
    let names: BTreeSet<&str> = own.filter_map(|ip| hosts.name_of(ip)).collect();
    grains.insert("fqdns", Value::list(names));
    grains.insert("fqdn", fqdn);
}

/// `/etc/hosts`.
struct Hosts(Vec<(IpAddr, Vec<String>)>);

impl Hosts {
    fn read(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split('#').next()?.split_whitespace();
            Some((words.next()?.parse().ok()?, words.map(str::to_owned).collect()))
        };
        Self(text.lines().filter_map(line).collect())
    }

    fn lines_with<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a (IpAddr, Vec<String>)> {
        self.0.iter().filter(move |(_, names)| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The name that stands first where this one stands.
    fn canonical<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.lines_with(name).find_map(|(_, names)| names.first()).map(String::as_str)
    }

    fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let unique: BTreeSet<IpAddr> = self.lines_with(name).map(|(ip, _)| *ip).collect();
        unique.into_iter().collect()
    }

    fn name_of(&self, ip: IpAddr) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == ip).and_then(|(_, names)| names.first()).map(String::as_str)
    }
}

/// `resolv.conf` as a map.
fn resolver(text: &str) -> Value {
    let (mut servers, mut search, mut sortlist, mut domain, mut options) =
        (Vec::<IpAddr>::new(), Vec::new(), Vec::new(), String::new(), Vec::new());
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(directive) = words.next() else { continue };
        let args: Vec<&str> = words.take_while(|word| !word.starts_with(['#', ';'])).collect();
        let Some(first) = args.first() else { continue };
        match directive.to_ascii_lowercase().as_str() {
            "nameserver" => servers.extend(first.parse::<IpAddr>().ok().filter(|ip| !servers.contains(ip))),
            "domain" => domain = (*first).to_owned(),
            "search" => search = args,
            "sortlist" => sortlist = args,
            "options" if !options.contains(first) => options.push(*first),
            _ => {}
        }
    }
    Value::map([
        ("nameservers", Value::list(servers.iter().map(IpAddr::to_string))),
        ("ip4_nameservers", Value::list(servers.iter().filter(|ip| ip.is_ipv4()).map(IpAddr::to_string))),
        ("ip6_nameservers", Value::list(servers.iter().filter(|ip| ip.is_ipv6()).map(IpAddr::to_string))),
        ("sortlist", Value::list(sortlist)),
        ("domain", domain.into()),
        ("search", Value::list(search)),
        ("options", Value::list(options)),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::routes::read_ipv6;
    use super::*;

    #[test]
    fn the_first_way_out_is_the_gateway() {
        let route = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n";
        let no_route = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";
        for (text, ip_gw, ip6_gw) in [(route, true, "fd00::1".into()), (no_route, false, Value::Bool(false))] {
            let mut grains = Map::new();
            add_gateways(&mut grains, &read_ipv6(text));
            assert_eq!(grains.get("ip_gw"), Some(&ip_gw.into()));
            assert_eq!((grains.get("ip4_gw"), grains.get("ip6_gw")), (Some(&false.into()), Some(&ip6_gw)));
        }
    }

    #[test]
    fn the_resolvers_file_is_told_in_salts_shape() {
        let found = resolver(
            "# x\n\
                nameserver 10.0.0.1\n\
                nameserver fd00::53 # second\n\
                nameserver 10.0.0.1\n\
                search a.example b.example\n\
                options ndots:2\n",
        );
        assert_eq!(found.get("nameservers"), Some(&Value::list(["10.0.0.1", "fd00::53"])));
        assert_eq!(found.get("ip6_nameservers"), Some(&Value::list(["fd00::53"])));
        assert_eq!(found.get("search"), Some(&Value::list(["a.example", "b.example"])));
        assert_eq!(found.get("domain"), Some(&"".into()));
    }

    #[test]
    fn the_full_name_is_the_first_in_hosts() {
        let hosts = Hosts::read("127.0.0.1 localhost\n127.0.1.1 web1.example.com web1 # us\n");
        let mut grains = Map::new();
        add_names(&mut grains, "web1", &hosts, &[]);
        let text = |name: &str| grains.get(name).and_then(Value::as_str).unwrap().to_owned();
        assert_eq!(
            (text("fqdn"), text("host"), text("domain"), text("localhost")),
            ("web1.example.com".into(), "web1".into(), "example.com".into(), "web1".into())
        );
        assert_eq!(grains.get("fqdn_ip4"), Some(&Value::list(["127.0.1.1"])));
    }
}
