//! What this process itself costs: a load generator that is dearer than the server measures itself.

use serde::Serialize;

/// The unit of processor time in `/proc`: the same on every architecture, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time and memory of this process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Seconds in our own code.
    pub user_s: f64,
    /// Seconds in the kernel on our behalf.
    pub system_s: f64,
    /// The most memory that was resident at once.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// As the kernel tells it; zeros where there is no `/proc`.
    pub fn now() -> Self {
        let read = |name| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let (user_s, system_s) = processor_times(&read("stat"));
        Self { user_s, system_s, peak_rss_bytes: peak_rss(&read("status")) }
    }

    /// Seconds of processor time in all.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

fn processor_times(stat: &str) -> (f64, f64) {
    // `pid (name) state …`: the name may contain anything, so reading starts after the last bracket.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().unwrap_or(0) as f64);
    let mut seconds = || ticks.next().unwrap_or(0.0) / TICKS_PER_SECOND;
    (seconds(), seconds())
}

fn peak_rss(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_a_hostile_name() {
        let stat = "7 (a) b (c) R 1 7 7 0 -1 0 1 2 3 4 250 50 0 0 20 0";
        assert_eq!(processor_times(stat), (2.5, 0.5));
        assert_eq!(processor_times(""), (0.0, 0.0));
    }

    #[test]
    fn this_process_costs_something() {
        assert!(Usage::now().peak_rss_bytes > 1 << 20);
    }
}
