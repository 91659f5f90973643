//! Which tags a minion may send (wire reference, section 14; CVE-2025-22239).
//!
//! A minion is believed about itself only. What the server or an operator says has tags of its own, and automation acts on
//! them: a minion that could send `salt/auth` or another minion's return would drive it. The rule is asked for every
//! event, whether it came alone or in a batch.

use crate::ids::MinionId;

/// Longest tag, in bytes.
pub const MAX_TAG: usize = 1024;

/// Why a minion may not send a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReservedTag {
    /// Only the server says this.
    #[error("the tag is reserved for the server")]
    Server,
    /// It is about another minion.
    #[error("the tag speaks for another minion")]
    OtherMinion,
    /// Returns come as returns, where they are checked against the job.
    #[error("returns are not sent as events")]
    Return,
    /// No tag at all.
    #[error("the tag is empty")]
    Empty,
    /// Longer than [`MAX_TAG`].
    #[error("the tag is longer than {MAX_TAG} bytes")]
    TooLong,
    /// A control character, which could forge lines in logs and streams.
    #[error("the tag contains a control character")]
    ControlCharacter,
}

/// Whether the minion `id` may send an event with this tag.
pub fn may_send(id: &MinionId, tag: &str) -> Result<(), ReservedTag> {
    if tag.is_empty() {
        return Err(ReservedTag::Empty);
    }
    if tag.len() > MAX_TAG {
        return Err(ReservedTag::TooLong);
    }
    if tag.chars().any(char::is_control) {
        return Err(ReservedTag::ControlCharacter);
    }
    // The bare job id is the old tag of a publication.
    if tag.len() == 20 && tag.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ReservedTag::Server);
    }
    let mut parts = tag.split('/');
    let mut next = || parts.next();
    let (first, second) = (next().unwrap_or(""), next());
    match (first, second) {
        ("key" | "syndic" | "syndic_start" | "saltern" | "salt", None) => Err(ReservedTag::Server),
        ("key" | "syndic" | "saltern", Some(_)) => Err(ReservedTag::Server),
        ("minion" | "resource", Some("refresh")) => Err(ReservedTag::Server),
        ("salt", Some("job")) => {
            next();
            job(id, next(), next())
        }
        ("salt", Some("minion" | "beacon" | "proxy")) => own(id, next()),
        ("salt", Some("state_result")) => {
            next();
            own(id, next())
        }
        ("salt", Some(second)) if is_servers(second) => Err(ReservedTag::Server),
        _ => Ok(()),
    }
}

/// `salt/job/<jid>/<what>/<id>`: what a minion may say about a job is named here, everything else is the server's.
fn job(id: &MinionId, what: Option<&str>, about: Option<&str>) -> Result<(), ReservedTag> {
    match what {
        Some("prog" | "ack" | "start") => own(id, about),
        Some("ret" | "return" | "returns") => Err(ReservedTag::Return),
        _ => Err(ReservedTag::Server),
    }
}

fn own(id: &MinionId, about: Option<&str>) -> Result<(), ReservedTag> {
    if about == Some(id.as_str()) { Ok(()) } else { Err(ReservedTag::OtherMinion) }
}

/// The second part of `salt/…` tags that only the server fires.
fn is_servers(part: &str) -> bool {
    matches!(
        part,
        "auth"
            | "key"
            | "run"
            | "wheel"
            | "cloud"
            | "cluster"
            | "presence"
            | "stats"
            | "fileserver"
            | "syndic"
            | "batch"
            | "netapi"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(tag: &str, expected: Result<(), ReservedTag>) {
        assert_eq!(may_send(&MinionId::new("web1").unwrap(), tag), expected, "{tag:?}");
    }

    #[test]
    fn a_minion_speaks_for_itself() {
        for tag in [
            "minion_start",
            "minion_ping",
            "_salt_error",
            "salt/minion/web1/start",
            "salt/beacon/web1/load/",
            "salt/beacon/web1/inotify//etc/passwd",
            "salt/job/20261115200427443183/prog/web1/3",
            "salt/job/20261115200427443183/ack/web1",
            "salt/job/20261115200427443183/start/web1",
            "salt/state_result/20261115200427443183/web1/nginx",
            "custom",
            "my/own/tag",
            "salt/custom/tag",
            "suse/systemid/generate",
            "keys",
            "saltern-like",
            "minion/other",
        ] {
            check(tag, Ok(()));
        }
    }

    #[test]
    fn the_servers_tags_are_refused() {
        for tag in [
            "salt",
            "salt/auth",
            "salt/auth/creds",
            "salt/key",
            "salt/key/",
            "key",
            "key/x",
            "salt/run/1/new",
            "salt/wheel/1/ret",
            "salt/cloud/vm/created",
            "salt/cluster/x",
            "salt/presence/change",
            "salt/presence/present",
            "salt/stats/worker",
            "salt/fileserver/roots/update",
            "salt/syndic/x/start",
            "salt/batch/1/new",
            "salt/netapi/hook/deploy",
            "syndic/web1/salt/auth",
            "syndic_start",
            "saltern/run/1",
            "saltern",
            "minion/refresh/web1",
            "resource/refresh/web1",
            "20261115200427443183",
            "salt/job",
            "salt/job/20261115200427443183",
            "salt/job/20261115200427443183/new",
            "salt/job/20261115200427443183/publish",
            "salt/job/20261115200427443183/error",
            "salt/job/20261115200427443183/sub/web1/error/state.sls",
            "salt/job/x/y/new",
        ] {
            check(tag, Err(ReservedTag::Server));
        }
    }

    #[test]
    fn returns_are_no_events_even_ones_own() {
        for tag in ["ret/web1", "ret/db1", "return", "returns", "return/web1"] {
            check(&format!("salt/job/20261115200427443183/{tag}"), Err(ReservedTag::Return));
        }
    }

    #[test]
    fn nobody_speaks_for_another() {
        for tag in [
            "salt/minion/db1/start",
            "salt/minion",
            "salt/minion/",
            "salt/minion/web1x/start",
            "salt/beacon/db1/load/",
            "salt/proxy/db1/start",
            "salt/job/20261115200427443183/prog/db1/1",
            "salt/job/20261115200427443183/ack/db1",
            "salt/job/20261115200427443183/start/db1",
            "salt/job/20261115200427443183/ack",
            "salt/state_result/20261115200427443183/db1/x",
        ] {
            check(tag, Err(ReservedTag::OtherMinion));
        }
    }

    #[test]
    fn tags_have_limits() {
        check("", Err(ReservedTag::Empty));
        check(&"x".repeat(MAX_TAG), Ok(()));
        check(&"x".repeat(MAX_TAG + 1), Err(ReservedTag::TooLong));
        check("a\nb", Err(ReservedTag::ControlCharacter));
        check("a\u{85}b", Err(ReservedTag::ControlCharacter));
    }

    proptest! {
        #[test]
        fn job_tags_pass_only_for_progress_of_ones_own(rest in "[a-z0-9]{1,20}/(new|publish|ret|prog|ack|start|sub)(/(web1|db1|x))?(/1)?") {
            let tag = format!("salt/job/{rest}");
            let parts: Vec<&str> = tag.split('/').collect();
            let own = matches!(parts[3], "prog" | "ack" | "start") && parts.get(4) == Some(&"web1");
            prop_assert_eq!(may_send(&MinionId::new("web1").unwrap(), &tag).is_ok(), own);
        }
    }
}
