//! The files of `/proc` in the shapes that Salt gives them. Pure: text in, values out.

use saltern_core::value::{Map, Value};

/// A number where it is one.
fn number(text: &str) -> Value {
    match text.parse::<u64>() {
        Ok(number) => number.into(),
        Err(_) => text.parse::<f64>().map_or_else(|_| text.into(), Value::from),
    }
}

/// `/proc/loadavg`
pub(super) fn loadavg(text: &str) -> Option<Value> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    Some(Value::map([("1-min", numbers.next()??), ("5-min", numbers.next()??), ("15-min", numbers.next()??)]))
}

/// `/proc/meminfo`: values stay text, with their unit beside them.
pub(super) fn meminfo(text: &str) -> Map {
    let mut told = Map::new();
    for (name, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        let mut words = rest.split_whitespace();
        let mut entry = Map::new();
        entry.push("value", words.next().unwrap_or_default());
        if let Some(unit) = words.next() {
            entry.push("unit", unit);
        }
        told.insert(name, entry);
    }
    told
}

/// `/proc/cpuinfo`: one map for all processors, so the last one is told.
pub(super) fn cpuinfo(text: &str) -> Map {
    let mut told = Map::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let name = name.trim();
        let value = if name == "flags" { Value::list(value.split_whitespace()) } else { value.trim().into() };
        told.insert(name, value);
    }
    told
}

/// `/proc/stat`
pub(super) fn cpustats(text: &str) -> Map {
    const CPU: [(&str, usize); 8] =
        [("idle", 4), ("iowait", 5), ("irq", 6), ("nice", 2), ("softirq", 7), ("steal", 8), ("system", 3), ("user", 1)];
    let mut told = Map::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, first, rest @ ..] = &words[..] else { continue };
        let many =
            |key| Value::map([("total", number(first)), (key, Value::list(rest.iter().map(|word| number(word))))]);
        let value = match *name {
            "cpu" => Value::map(CPU.map(|(key, at)| (key, words.get(at).map_or(Value::Int(0), |word| number(word))))),
            "intr" => many("irqs"),
            "softirq" => many("softirqs"),
            _ => number(first),
        };
        told.insert(*name, value);
    }
    told
}

/// `/proc/diskstats`; kernels that tell more are cut to what Salt knows.
pub(super) fn diskstats(text: &str) -> Map {
    const COLUMNS: [&str; 14] = [
        "major",
        "minor",
        "device",
        "reads_issued",
        "reads_merged",
        "sectors_read",
        "ms_spent_reading",
        "writes_completed",
        "writes_merged",
        "sectors_written",
        "ms_spent_writing",
        "io_in_progress",
        "ms_spent_in_io",
        "weighted_ms_spent_in_io",
    ];
    let mut told = Map::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(device) = words.get(2).filter(|_| words.len() >= COLUMNS.len()) {
            told.insert(*device, Value::map(COLUMNS.into_iter().zip(&words).map(|(name, word)| (name, number(word)))));
        }
    }
    told
}

/// `/proc/vmstat`
pub(super) fn vmstats(text: &str) -> Map {
    let mut told = Map::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        told.push(name, number(value.trim()));
    }
    told
}

/// `/proc/net/dev`
pub(super) fn netdev(text: &str) -> Map {
    const COLUMNS: [&str; 16] = [
        "rx_bytes",
        "rx_packets",
        "rx_errs",
        "rx_drop",
        "rx_fifo",
        "rx_frame",
        "rx_compressed",
        "rx_multicast",
        "tx_bytes",
        "tx_packets",
        "tx_errs",
        "tx_drop",
        "tx_fifo",
        "tx_colls",
        "tx_carrier",
        "tx_compressed",
    ];
    let mut told = Map::new();
    for (name, rest) in text.lines().skip(2).filter_map(|line| line.rsplit_once(':')) {
        let name = name.trim();
        let mut entry = Map::new();
        entry.push("iface", name);
        for (column, word) in COLUMNS.into_iter().zip(rest.split_whitespace()) {
            entry.push(column, number(word));
        }
        told.insert(name, entry);
    }
    told
}

/// `/proc/net/netstat`: a line of names, then a line of numbers.
pub(super) fn netstats(text: &str) -> Map {
    let mut told = Map::new();
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        if let (Some((protocol, names)), Some((same, numbers))) = (pair[0].split_once(':'), pair[1].split_once(':'))
            && protocol == same
        {
            let entries = names.split_whitespace().zip(numbers.split_whitespace().map(number));
            told.insert(protocol, Value::map(entries));
        }
    }
    told
}

/// The list of `ps -ef`.
pub(super) fn processes(text: &str) -> Map {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let column = |names: [&str; 2], otherwise| header.iter().position(|name| names.contains(name)).unwrap_or(otherwise);
    let (user, pid, command) = (column(["USER", "UID"], 0), column(["PID", "PID"], 1), column(["CMD", "COMMAND"], 7));
    let mut told = Map::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let (Some(user), Some(pid), Some(command)) = (words.get(user), words.get(pid), words.get(command..)) {
            told.insert(*pid, Value::map([("user", (*user).to_owned()), ("cmd", command.join(" "))]));
        }
    }
    told
}

/// The list of `w -fh`.
pub(super) fn logins(text: &str) -> Value {
    let one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [user, tty, login, idle, jcpu, pcpu, what @ ..] = &words[..] else { return None };
        let entries = [("idle", idle), ("jcpu", jcpu), ("login", login), ("pcpu", pcpu), ("tty", tty), ("user", user)];
        let entries = entries.into_iter().map(|(key, value)| (key, (*value).to_owned()));
        Some(Value::map(entries.chain([("what", what.join(" "))])))
    };
    Value::list(text.lines().filter_map(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn load_is_three_numbers() {
        assert_eq!(
            loadavg("0.50 1.25 2.00 1/200 4711\n"),
            Some(Value::map([("1-min", 0.5), ("5-min", 1.25), ("15-min", 2.0)]))
        );
        assert_eq!(loadavg(""), None);
    }

    #[test]
    fn memory_keeps_its_units() {
        let told = Value::Map(meminfo("MemTotal:       24684100 kB\nHugePages_Total:       0\n"));
        assert_eq!(told.get("MemTotal"), Some(&Value::map([("value", "24684100"), ("unit", "kB")])));
        assert_eq!(told.get("HugePages_Total"), Some(&Value::map([("value", "0")])));
    }

    #[test]
    fn the_last_processor_is_told() {
        let told = Value::Map(cpuinfo(
            "processor\t: 0\nflags\t\t: fpu vme\npower management:\n\nprocessor\t: 1\nflags\t\t: fpu\n",
        ));
        assert_eq!(told.get("processor"), Some(&"1".into()));
        assert_eq!(told.get("flags"), Some(&Value::list(["fpu"])));
        assert_eq!(told.get("power management"), Some(&"".into()));
    }

    #[test]
    fn processor_time_is_told_by_use() {
        let told = Value::Map(cpustats(
            "cpu  484307 0 106939 553309 4656 0 3311 711 0 0\n\
                cpu0 231151 0 1 2 3 4 5 6 0 0\n\
                intr 5496978 0 9\n\
                ctxt 77\n",
        ));
        assert_eq!(told.get("cpu").and_then(|cpu| cpu.get("idle")), Some(&553_309.into()));
        assert_eq!(told.get("cpu0"), Some(&231_151.into()));
        assert_eq!(
            told.get("intr"),
            Some(&Value::map([("total", Value::Int(5_496_978)), ("irqs", Value::list([0, 9]))]))
        );
        assert_eq!(told.get("ctxt"), Some(&77.into()));
    }

    #[test]
    fn disks_and_interfaces_are_told_by_column() {
        let disks = Value::Map(diskstats(" 254       0 vda 100 1 2 3 4 5 6 7 0 9 10 0 0 0 0\n"));
        assert_eq!(disks.get("vda").and_then(|disk| disk.get("weighted_ms_spent_in_io")), Some(&10.into()));
        let text = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\n";
        let devices = Value::Map(netdev(text));
        assert_eq!(devices.get("lo").and_then(|lo| lo.get("tx_bytes")), Some(&300.into()));
        assert_eq!(devices.get("lo").and_then(|lo| lo.get("iface")), Some(&"lo".into()));
    }

    #[test]
    fn protocols_pair_names_with_numbers() {
        let told = Value::Map(netstats("TcpExt: A B\nTcpExt: 1 2\nIpExt: C\nIpExt: 3\n"));
        assert_eq!(told.get("TcpExt"), Some(&Value::map([("A", 1), ("B", 2)])));
        assert_eq!(told.get("IpExt"), Some(&Value::map([("C", 3)])));
    }

    #[test]
    fn processes_and_logins_are_told() {
        let ps = "UID          PID    PPID  C STIME TTY          TIME CMD\n\
            root           1       0  0 21:48 ?        00:00:11 /sbin/init splash\n";
        assert_eq!(
            Value::Map(processes(ps)).get("1"),
            Some(&Value::map([("user", "root"), ("cmd", "/sbin/init splash")]))
        );
        let w = logins("ann      pts/0     10:03    1.00s  0.05s  0.01s vim notes.txt\n");
        assert_eq!(w.as_list().unwrap()[0].get("what"), Some(&"vim notes.txt".into()));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[ -~\n\t]{0,200}") {
            loadavg(&text);
            meminfo(&text);
            cpuinfo(&text);
            cpustats(&text);
            diskstats(&text);
            vmstats(&text);
            netdev(&text);
            netstats(&text);
            processes(&text);
            logins(&text);
        }
    }
}
