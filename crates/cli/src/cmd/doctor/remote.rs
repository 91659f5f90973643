//! What a running server says of itself, judged.

use super::Finding;
use crate::failure::Failure;
use crate::output::when;
use saltern_api::client::{Client, JobQuery};
use saltern_api::shape::{Minion, Status};
use saltern_core::ids::Jid;
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::path::Path;
use std::time::Duration;

/// How many names a line has at most.
const NAMES: usize = 5;

pub(super) async fn check(client: &Client, status: &Status) -> Result<Vec<Finding>, Failure> {
    let minions = client.minions(None).await?.minions;
    let newest = client.jobs(&JobQuery { limit: Some(1), internal: true, ..JobQuery::default() }).await?.jobs;
    let newest = newest.first().and_then(|job| Jid::parse(&job.jid)?.instant());
    let mut findings = vec![
        Finding::ok("server", format!("{}, up {}", status.version, when::span(Duration::from_secs(status.up_seconds)))),
        database(status),
        ports(status),
        open_files(status),
        keys(status),
        presence(status, &minions),
        settings(status),
        time(status.now.0, clock::now(), newest),
    ];
    // Only on its own machine is the data directory here.
    if client.endpoint().url().is_none() {
        findings.insert(3, disk(Path::new(&status.data_dir)));
    }
    Ok(findings)
}

fn database(status: &Status) -> Finding {
    /// As many writes as the server commits in about a second.
    const BEHIND: usize = 10_000;
    let seen = format!("{}, {} events", status.database, status.last_event);
    if status.write_backlog > BEHIND {
        let seen = format!("{seen}, {} writes wait", status.write_backlog);
        return Finding::warn("database", seen, "the disk or the database server is too slow for this load");
    }
    Finding::ok("database", seen)
}

fn ports(status: &Status) -> Finding {
    let connections = status.publish_port.connections.unwrap_or(0);
    let seen = format!("{} ({connections} subscribers), {}", status.publish_port.port, status.ret_port.port);
    if status.dropped_auths > 0 {
        let hint = "more machines sign in at once than this one can serve; they come again by themselves";
        return Finding::warn("ports", format!("{seen}, {} sign-ins dropped", status.dropped_auths), hint);
    }
    Finding::ok("ports", seen)
}

pub(super) fn disk(dir: &Path) -> Finding {
    match rustix::fs::statvfs(dir) {
        Ok(stat) => {
            judge_disk(stat.f_bavail.saturating_mul(stat.f_frsize), stat.f_blocks.saturating_mul(stat.f_frsize))
        }
        Err(error) => {
            Finding::warn("disk", format!("cannot look at {}: {error}", dir.display()), "use the server's own account")
        }
    }
}

fn judge_disk(free: u64, size: u64) -> Finding {
    const MIB: u64 = 1 << 20;
    let percent = if size == 0 { 0 } else { u128::from(free) * 100 / u128::from(size) };
    let seen = format!("{} MiB free ({percent} %) for the data directory", free / MIB);
    let hint = "make room: a server that cannot write accepts no job and no return";
    if free < 64 * MIB {
        Finding::fail("disk", seen, hint)
    } else if free < 1024 * MIB && percent < 10 {
        Finding::warn("disk", seen, hint)
    } else {
        Finding::ok("disk", seen)
    }
}

fn open_files(status: &Status) -> Finding {
    // A minion has two connections; the rest is the server's own.
    let needed = status.accepted as u64 * 2 + 256;
    match status.open_files_limit {
        None => Finding::ok("open files", "no limit"),
        Some(limit) if limit < needed => Finding::fail(
            "open files",
            format!("{limit} allowed, {needed} needed for {} minions", status.accepted),
            "raise LimitNOFILE= of the service, or `ulimit -n`",
        ),
        Some(limit) => Finding::ok("open files", format!("{limit} allowed")),
    }
}

fn keys(status: &Status) -> Finding {
    let Status { pending, denied, .. } = status;
    match (pending, denied) {
        (0, 0) => Finding::ok("keys", "none waits"),
        (_, 0) => Finding::warn(
            "keys",
            format!("{pending} wait for a decision"),
            "`saltern key list`, then `saltern key accept`",
        ),
        _ => Finding::warn(
            "keys",
            format!("{pending} wait for a decision, {denied} denied: they claim the id of another key"),
            "installed anew: `saltern key accept ID --include-denied`; else find out who it is",
        ),
    }
}

fn presence(status: &Status, minions: &[Minion]) -> Finding {
    let away: Vec<&str> =
        minions.iter().filter(|minion| minion.presence != "present").map(|minion| minion.id.as_str()).collect();
    let seen = format!("{} of {} connected", status.present, status.accepted);
    if away.is_empty() {
        return Finding::ok("minions", seen);
    }
    let more = if away.len() > NAMES { ", …" } else { "" };
    let names = away[..away.len().min(NAMES)].join(", ");
    Finding::warn("minions", format!("{seen}; away: {names}{more}"), "`saltern minion list` tells since when")
}

fn settings(status: &Status) -> Finding {
    if status.ignored_settings.is_empty() {
        return Finding::ok("settings", "all are known");
    }
    let names = status.ignored_settings.join(", ");
    Finding::warn(
        "settings",
        format!("ignored: {names}"),
        "they are Salt's and mean nothing here; they may go from the file",
    )
}

fn time(server: Timestamp, ours: Timestamp, newest_job: Option<Timestamp>) -> Finding {
    let apart = server.since(ours).max(ours.since(server));
    let seen = when::instant(server);
    if apart > Duration::from_secs(5) {
        return Finding::warn(
            "clock",
            format!("{seen}, {} from the one here", when::span(apart)),
            "set both clocks by NTP",
        );
    }
    match newest_job {
        Some(newest) if newest > server.plus(Duration::from_secs(5)) => Finding::warn(
            "clock",
            format!("{seen}, but the newest job is of {}", when::instant(newest)),
            "the clock was set back; requests of minions may be refused as too old",
        ),
        _ => Finding::ok("clock", seen),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_full_disk_is_a_failure_and_a_filling_one_a_warning() {
        const GIB: u64 = 1 << 30;
        assert_eq!(judge_disk(1 << 20, 100 * GIB).level, Level::Fail);
        assert_eq!(judge_disk(GIB / 2, 100 * GIB).level, Level::Warn);
        assert_eq!(judge_disk(GIB / 2, GIB).level, Level::Ok, "small, but half empty");
        assert_eq!(judge_disk(50 * GIB, 100 * GIB).level, Level::Ok);
    }

    #[test]
    fn a_clock_that_was_set_back_is_noticed() {
        let now = Timestamp::from_secs(1_794_772_591);
        let later = now.plus(Duration::from_secs(60));
        assert_eq!(time(now, now, Some(now)).level, Level::Ok);
        assert_eq!(time(now, now, Some(later)).level, Level::Warn);
        assert_eq!(time(now, later, None).level, Level::Warn);
    }
}
