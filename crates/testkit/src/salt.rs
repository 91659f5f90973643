//! Unmodified Salt: minions that connect to us, and masters to compare us with.
//!
//! A stock minion gets Salt's own defaults. What is set is what a site sets too (master, id, ports) and where its files
//! live; `publish_port` has to be among them, because a 3007 minion looks for its own setting, not for the port the
//! master told it, when it checks after a reconnect whether it is still connected.

mod master;
mod minion;

pub use crate::installed::{Line, Salt};
pub use master::StockMaster;
pub use minion::StockMinion;

use crate::tier;

/// The installed Salt of every supported line, oldest first.
///
/// A line that is not installed is left out; see [`tier`].
pub fn versions() -> Vec<Salt> {
    Line::ALL.into_iter().filter_map(version).collect()
}

/// The installed Salt of one line, if any; see [`tier`].
pub fn version(line: Line) -> Option<Salt> {
    if tier::is_fast() {
        return None;
    }
    let salt = Salt::installed(line);
    if salt.is_none() {
        tier::skip(&format!("Salt {line}"), "`make setup` installs it");
    }
    salt
}
