//! The tags the server fires (wire reference, section 10.2), one function or constant each, so that no tag is spelt twice.

use crate::ids::{Jid, MinionId};

/// A minion asked to sign in, and what became of it.
pub const AUTH: &str = "salt/auth";
/// A key changed its state by hand.
pub const KEY: &str = "salt/key";
/// The shared AES key changed.
pub const KEY_ROTATED: &str = "key";
/// A minion started (the old tag; its id is in the body).
pub const MINION_START: &str = "minion_start";
/// A minion's keep-alive.
pub const MINION_PING: &str = "minion_ping";
/// A minion reports that one of its functions failed with an exception.
pub const MINION_ERROR: &str = "_salt_error";
/// Minions came or went.
pub const PRESENCE_CHANGE: &str = "salt/presence/change";
/// Who is there.
pub const PRESENCE_PRESENT: &str = "salt/presence/present";
/// A syndic started (the old tag).
pub const SYNDIC_START: &str = "syndic_start";

/// A job was published, the old tag: the bare job id.
pub fn job(jid: Jid) -> String {
    jid.to_string()
}

/// A job was accepted for these minions.
pub fn job_new(jid: Jid) -> String {
    format!("salt/job/{jid}/new")
}

/// A job was published.
pub fn job_publish(jid: Jid) -> String {
    format!("salt/job/{jid}/publish")
}

/// A publication was refused.
pub fn job_error(jid: Jid) -> String {
    format!("salt/job/{jid}/error")
}

/// A minion returned.
pub fn job_ret(jid: Jid, id: &MinionId) -> String {
    format!("salt/job/{jid}/ret/{id}")
}

/// A minion says how far it is: the `n`th item or state.
pub fn job_prog(jid: Jid, id: &MinionId, n: u64) -> String {
    format!("salt/job/{jid}/prog/{id}/{n}")
}

/// A minion took the job over.
pub fn job_ack(jid: Jid, id: &MinionId) -> String {
    format!("salt/job/{jid}/ack/{id}")
}

/// A minion began to run the job.
pub fn job_start(jid: Jid, id: &MinionId) -> String {
    format!("salt/job/{jid}/start/{id}")
}

/// A state of a state run failed.
pub fn job_sub_error(jid: Jid, id: &MinionId, fun: &str) -> String {
    format!("salt/job/{jid}/sub/{id}/error/{fun}")
}

/// A state with `fire_event` finished.
pub fn state_result(jid: Jid, id: &MinionId, name: &str) -> String {
    format!("salt/state_result/{jid}/{id}/{name}")
}

/// A minion started.
pub fn minion_start(id: &MinionId) -> String {
    format!("salt/minion/{id}/start")
}

/// A minion's grains were renewed by its pillar request.
pub fn minion_refresh(id: &MinionId) -> String {
    format!("minion/refresh/{id}")
}

/// A minion's resources were renewed.
pub fn resource_refresh(id: &MinionId) -> String {
    format!("resource/refresh/{id}")
}

/// A beacon of a minion fired. An empty `sub` leaves the `/` at the end, as minions send it.
pub fn beacon(id: &MinionId, beacon: &str, sub: &str) -> String {
    format!("salt/beacon/{id}/{beacon}/{sub}")
}

/// A runner was called.
pub fn run_new(jid: Jid) -> String {
    format!("salt/run/{jid}/new")
}

/// A runner returned.
pub fn run_ret(jid: Jid) -> String {
    format!("salt/run/{jid}/ret")
}

/// A wheel function was called.
pub fn wheel_new(jid: Jid) -> String {
    format!("salt/wheel/{jid}/new")
}

/// A wheel function returned.
pub fn wheel_ret(jid: Jid) -> String {
    format!("salt/wheel/{jid}/ret")
}

/// A worker's statistics.
pub fn stats(worker: &str) -> String {
    format!("salt/stats/{worker}")
}

/// A file server backend updated its files.
pub fn fileserver_update(backend: &str) -> String {
    format!("salt/fileserver/{backend}/update")
}

/// A step in the life of a cloud machine: `creating`, `deploying`, `created`, `destroyed` …
pub fn cloud(machine: &str, step: &str) -> String {
    format!("salt/cloud/{machine}/{step}")
}

/// A syndic started.
pub fn syndic_start(id: &MinionId) -> String {
    format!("salt/syndic/{id}/start")
}

/// An event a syndic passed on.
pub fn syndic(id: &MinionId, tag: &str) -> String {
    format!("syndic/{id}/{tag}")
}

/// A step in the life of a batch: `new`, `progress`, `halted` …
pub fn batch(jid: Jid, step: &str) -> String {
    format!("salt/batch/{jid}/{step}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_spelt_as_salt_spells_them() {
        let jid = Jid::parse("20261115200427443183").unwrap();
        let id = MinionId::new("web1").unwrap();
        for (made, expected) in [
            (job(jid), "20261115200427443183"),
            (job_new(jid), "salt/job/20261115200427443183/new"),
            (job_publish(jid), "salt/job/20261115200427443183/publish"),
            (job_error(jid), "salt/job/20261115200427443183/error"),
            (job_ret(jid, &id), "salt/job/20261115200427443183/ret/web1"),
            (job_prog(jid, &id, 3), "salt/job/20261115200427443183/prog/web1/3"),
            (job_ack(jid, &id), "salt/job/20261115200427443183/ack/web1"),
            (job_start(jid, &id), "salt/job/20261115200427443183/start/web1"),
            (job_sub_error(jid, &id, "state.sls"), "salt/job/20261115200427443183/sub/web1/error/state.sls"),
            (state_result(jid, &id, "nginx"), "salt/state_result/20261115200427443183/web1/nginx"),
            (minion_start(&id), "salt/minion/web1/start"),
            (minion_refresh(&id), "minion/refresh/web1"),
            (resource_refresh(&id), "resource/refresh/web1"),
            (beacon(&id, "load", ""), "salt/beacon/web1/load/"),
            (run_new(jid), "salt/run/20261115200427443183/new"),
            (run_ret(jid), "salt/run/20261115200427443183/ret"),
            (wheel_new(jid), "salt/wheel/20261115200427443183/new"),
            (wheel_ret(jid), "salt/wheel/20261115200427443183/ret"),
            (stats("mworker-1"), "salt/stats/mworker-1"),
            (fileserver_update("roots"), "salt/fileserver/roots/update"),
            (cloud("vm1", "created"), "salt/cloud/vm1/created"),
            (syndic_start(&id), "salt/syndic/web1/start"),
            (syndic(&id, "salt/auth"), "syndic/web1/salt/auth"),
            (batch(jid, "new"), "salt/batch/20261115200427443183/new"),
        ] {
            assert_eq!(made, expected);
        }
    }
}
