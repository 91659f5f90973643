//! TCP ports that no other test takes.
//!
//! "Bind port 0, close, use the number" races with every other process on the machine. Here a port is taken from below
//! the range the kernel hands out by itself, and is held by a file lock for as long as this process lives: neither an
//! outgoing connection nor another test process can get it between the choice and its use, or while a server restarts.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Mutex;

/// The two ports of a master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MasterPorts {
    /// Where it publishes: 4505 in the field.
    pub publish_port: u16,
    /// Where it takes requests and returns: 4506 in the field.
    pub return_port: u16,
}

/// Reserves one port for this process.
pub fn free() -> u16 {
    let Ok(mut reserved) = RESERVED.lock() else { panic!("another test panicked while it reserved a port") };
    let range = candidates();
    // Processes start at different places, so that they rarely try the same locks.
    let count = range.len();
    let start = std::process::id() as usize * 97 % count;
    for offset in 0..count {
        let port = range.start + u16::try_from((start + offset) % count).unwrap_or(0);
        if let Some(lock) = reserve(port) {
            reserved.push(lock);
            return port;
        }
    }
    panic!("no free port between {} and {}", range.start, range.end)
}

/// Reserves the two ports of a master for this process.
pub fn pair() -> MasterPorts {
    MasterPorts { publish_port: free(), return_port: free() }
}

/// The locks of all ports this process has reserved; they are released when it ends.
static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// From 15000 to where the kernel's own choices begin; 15000..25000 where it chooses everywhere.
fn candidates() -> std::ops::Range<u16> {
    const FIRST: u16 = 15_000;
    let own = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    match own.split_whitespace().next().and_then(|low| low.parse::<u16>().ok()) {
        Some(low) if low > FIRST + 1_000 => FIRST..low,
        _ => FIRST..25_000,
    }
}

fn reserve(port: u16) -> Option<File> {
    let folder = lock_folder();
    std::fs::create_dir_all(&folder).ok()?;
    let lock = File::options().create(true).append(true).open(folder.join(port.to_string())).ok()?;
    lock.try_lock().ok()?;
    // Somebody who knows nothing of our locks may listen there.
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).ok()?;
    Some(lock)
}

fn lock_folder() -> PathBuf {
    std::env::temp_dir().join(format!("saltern-ports-{}", rustix::process::geteuid().as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_handed_out_twice() {
        let mut ports: Vec<u16> = (0..50).map(|_| free()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn a_port_somebody_listens_on_is_not_handed_out() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, free())).unwrap();
        let taken = listener.local_addr().unwrap().port();
        assert!(reserve(taken).is_none());
    }
}
