//! `manage.*`: who is there, from the state of connections; nobody is pinged, so a dead machine costs no time.

use crate::salt::function::{Call, Function, Outcome, Trouble};
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use saltern_server::app::{KeyMatch, KeyVerb, MinionEntry};
use saltern_server::{Class, Presence};
use std::cmp::Ordering;

/// The version that is shown as the server's: clients compare minions with it, and look it up in lists of known flaws.
const MASTER_VERSION: &str = "3008.3";

const fn connected(name: &'static str, doc: &'static str) -> Function {
    Function {
        name,
        params: "subset=None, show_ip=False",
        doc,
        secret: false,
        run: |call| Box::pin(by_presence(call, true)),
    }
}

const fn away(name: &'static str, doc: &'static str) -> Function {
    Function {
        name,
        params: "subset=None, show_ip=False",
        doc,
        secret: false,
        run: |call| Box::pin(by_presence(call, false)),
    }
}

const CONNECTED: &str = "Lists the minions that are connected.";
const AWAY: &str = "Lists the minions that are not connected.";

pub(super) const FUNCTIONS: &[Function] = &[
    connected("manage.present", CONNECTED),
    connected("manage.joined", CONNECTED),
    connected("manage.allowed", CONNECTED),
    connected("manage.alived", CONNECTED),
    connected("manage.reaped", CONNECTED),
    connected("manage.list_state", CONNECTED),
    away("manage.not_present", AWAY),
    away("manage.not_joined", AWAY),
    away("manage.not_allowed", AWAY),
    away("manage.not_alived", AWAY),
    away("manage.not_reaped", AWAY),
    away("manage.list_not_state", AWAY),
    Function {
        name: "manage.up",
        params: "tgt=*, tgt_type=glob, timeout=None, gather_job_timeout=None",
        doc: "Lists the minions of a target that are connected.",
        secret: false,
        run: |call| Box::pin(up(call)),
    },
    Function {
        name: "manage.down",
        params: "removekeys=False, tgt=*, tgt_type=glob, timeout=None, gather_job_timeout=None",
        doc: "Lists the minions of a target that are not connected; with removekeys their keys are deleted.",
        secret: false,
        run: |call| Box::pin(down(call)),
    },
    Function {
        name: "manage.status",
        params: "output=True, tgt=*, tgt_type=glob, timeout=None, gather_job_timeout=None",
        doc: "Lists the minions of a target, those that are connected and those that are not.",
        secret: false,
        run: |call| Box::pin(status(call)),
    },
    Function {
        name: "manage.versions",
        params: "",
        doc: "Compares the Salt versions of minions with the one this server stands for.",
        secret: false,
        run: |call| Box::pin(versions(call)),
    },
];

fn is_up(minion: &MinionEntry) -> bool {
    matches!(minion.presence, Presence::Present(_))
}

async fn all(call: &Call) -> Result<Vec<MinionEntry>, Trouble> {
    call.salt.app.minions(&call.caller, None).await.map_err(|error| call.trouble(error))
}

async fn meant(call: &Call) -> Result<Vec<MinionEntry>, Trouble> {
    let Some(target) = call.given.target(Some("*"))? else { return Ok(Vec::new()) };
    match call.salt.app.minions(&call.caller, Some(&target)).await {
        Ok(minions) => Ok(minions),
        Err(error) if error.class() == Class::NotFound => Ok(Vec::new()),
        Err(error) => Err(call.trouble(error)),
    }
}

fn ids<'a>(minions: impl Iterator<Item = &'a MinionEntry>) -> Value {
    Value::List(minions.map(|minion| Value::from(&minion.id)).collect())
}

async fn by_presence(call: Call, wanted: bool) -> Outcome {
    let subset = call.given.texts("subset")?;
    let is_wanted = |minion: &&MinionEntry| {
        let named = subset.as_ref().is_none_or(|subset| subset.iter().any(|id| id == minion.id.as_str()));
        named && is_up(minion) == wanted
    };
    let minions = all(&call).await?;
    let minions = minions.iter().filter(is_wanted);
    if !call.given.flag("show_ip") {
        return Ok(ids(minions));
    }
    let address = |minion: &MinionEntry| minion.address.as_deref().map(without_port).map_or(Value::Nil, Value::from);
    Ok(Value::Map(minions.map(|minion| (Value::from(&minion.id), address(minion))).collect()))
}

/// The host of an address.
fn without_port(address: &str) -> String {
    match address.parse::<std::net::SocketAddr>() {
        Ok(address) => address.ip().to_canonical().to_string(),
        Err(_) => address.to_owned(),
    }
}

async fn up(call: Call) -> Outcome {
    Ok(ids(meant(&call).await?.iter().filter(|minion| is_up(minion))))
}

async fn down(call: Call) -> Outcome {
    let minions = meant(&call).await?;
    let away: Vec<&MinionEntry> = minions.iter().filter(|minion| !is_up(minion)).collect();
    if call.given.flag("removekeys") && !away.is_empty() {
        let which = KeyMatch::Ids(away.iter().map(|minion| minion.id.to_string()).collect());
        let deleted = call.salt.app.decide_keys(&call.caller, KeyVerb::Delete, &which, &[]).await;
        deleted.map_err(|error| call.trouble(error))?;
    }
    Ok(ids(away.into_iter()))
}

async fn status(call: Call) -> Outcome {
    let minions = meant(&call).await?;
    let (up, down): (Vec<_>, Vec<_>) = minions.iter().partition(|minion| is_up(minion));
    Ok(Value::map([("up", ids(up.into_iter())), ("down", ids(down.into_iter()))]))
}

async fn versions(call: Call) -> Outcome {
    let minions = all(&call).await?;
    Ok(compare(minions.iter().map(|minion| (&minion.id, minion.version.as_deref().filter(|_| is_up(minion))))))
}

/// Minions in groups by the version of those that are there; a group that nobody is in is left out.
fn compare<'a>(minions: impl Iterator<Item = (&'a MinionId, Option<&'a str>)>) -> Value {
    let (mut same, mut older, mut newer, mut away) = (Map::new(), Map::new(), Map::new(), Map::new());
    for (id, version) in minions {
        let Some(version) = version else {
            away.push(id, false);
            continue;
        };
        let group = match numbers(version).cmp(&numbers(MASTER_VERSION)) {
            Ordering::Less => &mut older,
            Ordering::Equal => &mut same,
            Ordering::Greater => &mut newer,
        };
        group.push(id, version);
    }
    let groups = [
        ("Minion requires update", older),
        ("Up to date", same),
        ("Minion newer than master", newer),
        ("Minion offline", away),
    ];
    let mut told: Map = groups
        .into_iter()
        .filter(|(_, group)| !group.is_empty())
        .map(|(name, group)| (name.into(), group.into()))
        .collect();
    told.push("Master", MASTER_VERSION);
    told.into()
}

/// The numbers of a version, to compare it by.
fn numbers(version: &str) -> Vec<u64> {
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
    version.split('.').map_while(|part| digits(part).parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("3006.9") < numbers("3006.28"));
        assert!(numbers("3008.3") == numbers("3008.3"));
        assert!(numbers("3008.3rc1+12.gabc") >= numbers("3008.3"));
        assert!(numbers("3009") > numbers(MASTER_VERSION));
    }

    #[test]
    fn addresses_are_shown_without_their_port() {
        assert_eq!(without_port("192.0.2.2:45678"), "192.0.2.2");
        assert_eq!(without_port("[2001:db8::1]:4505"), "2001:db8::1");
        assert_eq!(without_port("192.0.2.2"), "192.0.2.2");
    }

    #[test]
    fn minions_are_grouped_by_their_version() {
        let [a, b, c] = ["a", "b", "c"].map(|id| MinionId::new(id).unwrap());
        let minions = [(&a, Some("3006.9")), (&b, Some("3008.3")), (&c, None)];
        assert_eq!(
            serde_json::to_string(&compare(minions.into_iter())).unwrap(),
            r#"{"Minion requires update":{"a":"3006.9"},"Up to date":{"b":"3008.3"},"Minion offline":{"c":false},"Master":"3008.3"}"#
        );
    }
}
