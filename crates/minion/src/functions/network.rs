//! `network.*`: interfaces, addresses, routes, and whether somebody can be reached.

use super::call::Answer;
use super::command::{Command, operand};
use super::{Call, Failure, Function, Param};
use crate::grains::interfaces::{Address, Interface, interfaces};
use crate::grains::routes::{Route, routes};
use futures_util::FutureExt;
use saltern_core::value::{Map, Value};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const FAMILY: Param = Param::Optional("family", "None");
const INTERFACE: Param = Param::Optional("interface", "None");
const LOOPBACK: Param = Param::Optional("include_loopback", "False");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "network.connect",
        params: &[Param::Required("host"), Param::Optional("port", "None"), Param::Keywords("kwargs")],
        doc: "Tell whether a TCP port takes connections. timeout (5 seconds) and family (ipv4, ipv6) are taken as keyword arguments.\n\n\
              CLI Example:\n\n    saltern run '*' network.connect archlinux.org 80\n    saltern run '*' network.connect archlinux.org 80 timeout=3 family=ipv4\n",
        run: |call| async move { connect(&call).await }.boxed(),
    },
    Function {
        name: "network.default_route",
        params: &[FAMILY],
        doc: "Tell the default routes, of IPv4 (inet), IPv6 (inet6) or both.\n\n\
              CLI Example:\n\n    saltern run '*' network.default_route\n",
        run: |call| call.blocking(|call| Ok(told_routes(call, Route::is_default)?.into())),
    },
    Function {
        name: "network.get_hostname",
        params: &[],
        doc: "Tell the host name.\n\nCLI Example:\n\n    saltern run '*' network.get_hostname\n",
        run: |call| call.at_once(|_| Ok(rustix::system::uname().nodename().to_string_lossy().into_owned().into())),
    },
    Function {
        name: "network.hw_addr",
        params: &[Param::Required("iface")],
        doc: "Tell the hardware address of an interface.\n\nCLI Example:\n\n    saltern run '*' network.hw_addr eth0\n",
        run: |call| call.blocking(hardware_address),
    },
    Function {
        name: "network.hwaddr",
        params: &[Param::Required("iface")],
        doc: "The same as network.hw_addr.\n\nCLI Example:\n\n    saltern run '*' network.hwaddr eth0\n",
        run: |call| call.blocking(hardware_address),
    },
    Function {
        name: "network.interface",
        params: &[Param::Required("iface")],
        doc: "Tell the IPv4 addresses of an interface.\n\nCLI Example:\n\n    saltern run '*' network.interface eth0\n",
        run: |call| {
            call.blocking(|call| {
                Ok(find(&call.text("iface")?)
                    .map_or(Value::Nil, |found| told(&found).remove("inet").unwrap_or_default())
                    .into())
            })
        },
    },
    Function {
        name: "network.interface_ip",
        params: &[Param::Required("iface")],
        doc: "Tell the first IPv4 address of an interface; empty if it has none.\n\n\
              CLI Example:\n\n    saltern run '*' network.interface_ip eth0\n",
        run: |call| {
            call.blocking(|call| {
                let found = find(&call.text("iface")?);
                let first = found.and_then(|found| found.addresses.into_iter().find(|address| address.ip.is_ipv4()));
                Ok(first.map(|address| address.ip.to_string()).unwrap_or_default().into())
            })
        },
    },
    Function {
        name: "network.interfaces",
        params: &[],
        doc: "Tell all about the interfaces.\n\nCLI Example:\n\n    saltern run '*' network.interfaces\n",
        run: |call| {
            call.blocking(|_| {
                Ok(Value::map(interfaces().iter().map(|interface| (&interface.name, told(interface)))).into())
            })
        },
    },
    Function {
        name: "network.ip_addrs",
        params: &[INTERFACE, LOOPBACK, Param::Optional("cidr", "None"), Param::Optional("type", "None")],
        doc: "List the IPv4 addresses: of one interface, in one network (cidr), public or private ones (type).\n\n\
              CLI Example:\n\n    saltern run '*' network.ip_addrs\n    saltern run '*' network.ip_addrs cidr=10.0.0.0/8\n",
        run: |call| call.blocking(|call| addresses(call, IpAddr::is_ipv4)),
    },
    Function {
        name: "network.ip_addrs6",
        params: &[INTERFACE, LOOPBACK, Param::Optional("cidr", "None")],
        doc: "List the IPv6 addresses: of one interface, in one network (cidr).\n\n\
              CLI Example:\n\n    saltern run '*' network.ip_addrs6\n",
        run: |call| call.blocking(|call| addresses(call, IpAddr::is_ipv6)),
    },
    Function {
        name: "network.ipaddrs",
        params: &[INTERFACE, LOOPBACK, Param::Optional("cidr", "None"), Param::Optional("type", "None")],
        doc: "The same as network.ip_addrs.\n\nCLI Example:\n\n    saltern run '*' network.ipaddrs\n",
        run: |call| call.blocking(|call| addresses(call, IpAddr::is_ipv4)),
    },
    Function {
        name: "network.ping",
        params: &[
            Param::Required("host"),
            Param::Optional("timeout", "False"),
            Param::Optional("return_boolean", "False"),
        ],
        doc: "Ping a host four times and give what ping says, or only whether it answered.\n\n\
              CLI Example:\n\n    saltern run '*' network.ping archlinux.org\n    saltern run '*' network.ping archlinux.org return_boolean=True timeout=3\n",
        run: |call| async move { ping(&call).await }.boxed(),
    },
    Function {
        name: "network.routes",
        params: &[FAMILY],
        doc: "Tell the routes, of IPv4 (inet), IPv6 (inet6) or both.\n\n\
              CLI Example:\n\n    saltern run '*' network.routes\n",
        run: |call| call.blocking(|call| Ok(told_routes(call, |_| true)?.into())),
    },
    Function {
        name: "network.subnets",
        params: &[Param::Optional("interfaces", "None")],
        doc: "List the IPv4 networks this machine is in.\n\n\
              CLI Example:\n\n    saltern run '*' network.subnets\n    saltern run '*' network.subnets interfaces=eth1\n",
        run: |call| call.blocking(|call| Ok(subnets(&chosen(call.get("interfaces")), IpAddr::is_ipv4).into())),
    },
    Function {
        name: "network.subnets6",
        params: &[],
        doc: "List the IPv6 networks this machine is in.\n\nCLI Example:\n\n    saltern run '*' network.subnets6\n",
        run: |call| call.blocking(|_| Ok(subnets(&interfaces(), IpAddr::is_ipv6).into())),
    },
];

/// An interface in Salt's shape.
fn told(interface: &Interface) -> Map {
    let mut told = Map::new();
    told.push("up", interface.is_up);
    if let Some(parent) = &interface.parent {
        told.push("parent", parent);
    }
    if let Some(hwaddr) = &interface.hwaddr {
        told.push("hwaddr", hwaddr);
    }
    let of = |keep: &dyn Fn(&&Address) -> bool| {
        interface.addresses.iter().filter(keep).map(told_address).collect::<Vec<Value>>()
    };
    let lists = [
        ("inet", of(&|address| address.ip.is_ipv4() && !address.is_secondary)),
        ("inet6", of(&|address| address.ip.is_ipv6())),
        ("secondary", of(&|address| address.is_secondary)),
    ];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        told.push(name, list);
    }
    told
}

fn told_address(address: &Address) -> Value {
    let mut told = Map::new();
    if address.is_secondary {
        told.push("type", "inet");
    }
    told.push("address", address.ip.to_string());
    if address.ip.is_ipv4() {
        told.push("netmask", Ipv4Addr::from(mask4(address.prefix)).to_string());
        told.push("broadcast", address.broadcast.map(|ip| ip.to_string()));
        told.push("label", address.label.clone());
    } else {
        // Text, because `ip` gives text and nobody has turned it into a number since.
        told.push("prefixlen", address.prefix.to_string());
        told.push("scope", &address.scope);
    }
    Value::Map(told)
}

fn find(name: &str) -> Option<Interface> {
    interfaces().into_iter().find(|interface| interface.name == name)
}

fn hardware_address(call: &Call) -> Answer {
    let name = call.text("iface")?;
    let all = interfaces();
    Ok(match all.iter().find(|interface| interface.name == name) {
        Some(Interface { hwaddr: Some(hwaddr), .. }) => hwaddr.clone().into(),
        Some(_) => format!("Interface \"{name}\" does not have a hardware address").into(),
        None => {
            let names: Vec<String> = all.iter().map(|interface| format!("\"{}\"", interface.name)).collect();
            format!("Interface \"{name}\" not in available interfaces: {}", names.join(", ")).into()
        }
    })
}

fn addresses(call: &Call, family: fn(&IpAddr) -> bool) -> Answer {
    let network = match call.opt_text("cidr")? {
        Some(cidr) => Some(read_network(&cidr).ok_or_else(|| Failure::Command(format!("'{cidr}' is not a network")))?),
        None => None,
    };
    let kind = if call.has_param("type") { call.opt_text("type")? } else { None };
    let loopback = call.flag("include_loopback", false);
    let keep = |ip: &IpAddr| {
        family(ip)
            && (loopback || !ip.is_loopback())
            && network.is_none_or(|(base, prefix)| network_of(*ip, prefix) == network_of(base, prefix))
            && match kind.as_deref() {
                _ if network.is_some() => true,
                Some("public") => !is_private(*ip),
                Some("private") => is_private(*ip),
                _ => true,
            }
    };
    let found: BTreeSet<IpAddr> = chosen(call.get("interface"))
        .iter()
        .flat_map(|interface| &interface.addresses)
        .map(|address| address.ip)
        .filter(keep)
        .collect();
    Ok(Value::list(found.iter().map(IpAddr::to_string)).into())
}

/// The interfaces that are meant: one, several, or all.
fn chosen(value: Option<&Value>) -> Vec<Interface> {
    let names: Vec<String> = match value {
        None => return interfaces(),
        Some(Value::List(items)) => items.iter().map(|item| item.key_text().into_owned()).collect(),
        Some(value) => value.key_text().split(',').map(|name| name.trim().to_owned()).collect(),
    };
    interfaces().into_iter().filter(|interface| names.contains(&interface.name)).collect()
}

fn subnets(interfaces: &[Interface], family: fn(&IpAddr) -> bool) -> Value {
    let addresses = interfaces.iter().flat_map(|interface| &interface.addresses);
    let networks: BTreeSet<(IpAddr, u8)> = addresses
        .filter(|address| family(&address.ip) && !address.ip.is_loopback())
        .map(|address| (network_of(address.ip, address.prefix), address.prefix))
        .collect();
    Value::list(networks.into_iter().map(|(network, prefix)| format!("{network}/{prefix}")))
}

fn told_routes(call: &Call, keep: fn(&Route) -> bool) -> Result<Value, Failure> {
    let family = call.opt_text("family")?;
    if let Some(family) = family.as_deref().filter(|family| !matches!(*family, "inet" | "inet6")) {
        return Err(Failure::Command(format!("Invalid address family {family}")));
    }
    let fits = |route: &&Route| {
        family.as_deref().is_none_or(|family| (family == "inet") == route.destination.is_ipv4()) && keep(route)
    };
    Ok(Value::list(routes().iter().filter(fits).map(told_route)))
}

fn told_route(route: &Route) -> Value {
    let (family, destination, netmask) = match route.destination {
        IpAddr::V4(ip) => ("inet", ip.to_string(), Ipv4Addr::from(mask4(route.prefix)).to_string()),
        IpAddr::V6(ip) => ("inet6", format!("{ip}/{}", route.prefix), String::new()),
    };
    Value::map([
        ("addr_family", family.to_owned()),
        ("destination", destination),
        ("gateway", route.gateway.to_string()),
        ("netmask", netmask),
        ("flags", route.flag_letters()),
        ("interface", route.interface.clone()),
    ])
}

async fn connect(call: &Call) -> Answer {
    let keyword = |name: &str| call.keywords().find(|(known, _)| *known == name).map(|(_, value)| value);
    let told = |result: bool, comment: String| {
        Ok(Value::map([("result", Value::Bool(result)), ("comment", comment.into())]).into())
    };
    let host = call.text("host")?;
    let Some(port) = call.opt_text("port")? else { return told(false, "Required argument, port, is missing.".into()) };
    if keyword("proto").is_some_and(|proto| proto.as_str() != Some("tcp")) {
        return Err(Failure::Command("network.connect knows only tcp".into()));
    }
    let seconds = keyword("timeout").and_then(|value| value.key_text().parse().ok()).unwrap_or(5.0);
    let patience = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(5));
    let family = keyword("family").and_then(Value::as_str);
    let fits = |address: &std::net::SocketAddr| match family {
        Some("ipv4") => address.is_ipv4(),
        Some("ipv6") => address.is_ipv6(),
        _ => true,
    };
    let address = match port.parse::<u16>() {
        Ok(port) => match tokio::time::timeout(patience, tokio::net::lookup_host((host.as_str(), port))).await {
            Ok(Ok(mut addresses)) => addresses.find(fits),
            _ => None,
        },
        Err(_) => None,
    };
    let Some(address) = address else {
        return told(false, format!("Unable to resolve host {host} on tcp port {port}"));
    };
    let place = format!("{host} ({}) on tcp port {port}", address.ip());
    match tokio::time::timeout(patience, tokio::net::TcpStream::connect(address)).await {
        Ok(Ok(_)) => told(true, format!("Successfully connected to {place}")),
        _ => told(false, format!("Unable to connect to {place}")),
    }
}

async fn ping(call: &Call) -> Answer {
    let host = operand(call, "host")?;
    let mut command = Command::tool("ping");
    if call.get("timeout").is_some_and(Value::is_truthy) {
        let seconds = call.int("timeout", 0)?;
        command = command.args(["-W", &seconds.to_string()]);
    }
    let done = command.args(["-c", "4", &host]).run(&call.context).await?;
    if call.flag("return_boolean", false) {
        return Ok(done.is_ok().into());
    }
    Ok(String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).trim_end().to_owned().into())
}

fn read_network(cidr: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = cidr.split_once('/').unwrap_or((cidr, ""));
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let prefix = if prefix.is_empty() { longest } else { prefix.parse().ok()? };
    (prefix <= longest).then_some((address, prefix))
}

fn network_of(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip) & mask4(prefix)).into(),
        IpAddr::V6(ip) => {
            Ipv6Addr::from(u128::from(ip) & u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0)).into()
        }
    }
}

fn mask4(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0)
}

/// Networks that are not routed in the world, as Python's `ipaddress` sees them.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_documentation()
                || ip.is_unspecified()
                || ip.is_broadcast()
                || a == 0
                || (a, b & 0xfe) == (198, 18)
                || (a, b, c) == (192, 0, 0)
                || a >= 240
        }
        IpAddr::V6(ip) => {
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
                || ip.segments()[..2] == [0x2001, 0xdb8]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    fn address(ip: &str, prefix: u8, is_secondary: bool) -> Address {
        Address {
            ip: ip.parse().unwrap(),
            prefix,
            broadcast: None,
            label: Some("eth0".into()),
            scope: "global".into(),
            is_secondary,
        }
    }

    fn interface() -> Interface {
        let addresses =
            vec![address("192.0.2.2", 24, false), address("192.0.2.3", 24, true), address("fd00::2", 64, false)];
        Interface {
            name: "eth0".into(),
            is_up: true,
            hwaddr: Some("02:00:00:00:00:01".into()),
            parent: None,
            addresses,
        }
    }

    #[test]
    fn an_interface_is_told_in_salts_shape() {
        let told = Value::Map(told(&interface()));
        let inet = Value::map([
            ("address", Value::from("192.0.2.2")),
            ("netmask", "255.255.255.0".into()),
            ("broadcast", Value::Nil),
            ("label", "eth0".into()),
        ]);
        assert_eq!(told.get("inet"), Some(&Value::list([inet])));
        let inet6 = Value::map([("address", "fd00::2"), ("prefixlen", "64"), ("scope", "global")]);
        assert_eq!(told.get("inet6"), Some(&Value::list([inet6])));
        assert_eq!(told.get("secondary").and_then(Value::as_list).map(<[Value]>::len), Some(1));
        assert_eq!((told.get("up"), told.get("parent")), (Some(&true.into()), None));
    }

    #[test]
    fn networks_are_told_once() {
        assert_eq!(subnets(&[interface()], IpAddr::is_ipv4), Value::list(["192.0.2.0/24"]));
        assert_eq!(subnets(&[interface()], IpAddr::is_ipv6), Value::list(["fd00::/64"]));
    }

    #[test]
    fn networks_are_read() {
        assert_eq!(read_network("10.0.0.0/8"), Some(([10, 0, 0, 0].into(), 8)));
        assert_eq!(read_network("10.0.0.1"), Some(([10, 0, 0, 1].into(), 32)));
        assert_eq!(read_network("10.0.0.0/33"), None);
        assert_eq!(network_of([10, 1, 2, 3].into(), 0), IpAddr::from([0, 0, 0, 0]));
        assert_eq!(network_of("fd00::1".parse().unwrap(), 0), "::".parse::<IpAddr>().unwrap());
    }

    #[tokio::test]
    async fn this_machine_knows_its_loopback() {
        let bench = Bench::new();
        let all = bench.call("network.interfaces", &[], &[]).await;
        assert!(all.get("lo").is_some());
        let loopback = bench
            .call("network.ip_addrs", &[], &[("include_loopback", true.into()), ("cidr", "127.0.0.0/8".into())])
            .await;
        assert!(loopback.as_list().unwrap().contains(&"127.0.0.1".into()));
        assert!(
            bench
                .call("network.hw_addr", &["nope".into()], &[])
                .await
                .as_str()
                .unwrap()
                .starts_with("Interface \"nope\" not in")
        );
        assert!(bench.fail("network.routes", &["ipx".into()], &[]).await.contains("Invalid address family ipx"));
    }

    #[tokio::test]
    async fn a_port_takes_connections_or_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let bench = Bench::new();
        let args = ["127.0.0.1".into(), port.into()];
        let told = bench.call("network.connect", &args, &[]).await;
        assert_eq!(
            told.get("comment"),
            Some(&format!("Successfully connected to 127.0.0.1 (127.0.0.1) on tcp port {port}").into())
        );
        drop(listener);
        assert_eq!(bench.call("network.connect", &args, &[]).await.get("result"), Some(&false.into()));
        assert_eq!(
            bench.call("network.connect", &args[..1], &[]).await.get("comment"),
            Some(&"Required argument, port, is missing.".into())
        );
    }
}
