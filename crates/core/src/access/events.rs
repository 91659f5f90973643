//! Who hears of an event, by its tag (salt-api reference, section 15), and what is left out of it for him.
//!
//! What is not known to be about somebody's minions is the server's own business, and for few.

use super::Sight;
use crate::event::{JobTag, tag as tags};
use crate::ids::{ActionId, Jid, MinionId};
use crate::value::Value;

/// Whom an event is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Those who see this minion
    Minion(MinionId),
    /// Those who see any of these. They get it [narrowed](narrow)
    Minions(Vec<MinionId>),
    /// Those who see any minion of this job
    Job(Jid),
    /// Those who see any minion of this action
    Action(ActionId),
    /// This person
    Person(String),
    /// Everybody who has logged in
    Everybody,
    /// Those who hear what the server does for itself and for others
    Server,
}

/// Whom an event is for. `minion` and `jid` are what the log has beside it: the minion it came from or is about, its job.
pub fn audience(tag: &str, minion: Option<&MinionId>, jid: Option<Jid>, data: &Value) -> Audience {
    let parts: Vec<&str> = tag.splitn(5, '/').collect();
    match (parts.as_slice(), minion) {
        (["salt", "run" | "wheel", ..], _) => person(data),
        (_, Some(minion)) => Audience::Minion(minion.clone()),
        (["salt", "presence", ..], None) => Audience::Minions(named(data, &["present", "new", "lost"])),
        (["salt", "auth" | "key"], None) => one(data.get("id").and_then(Value::as_str)),
        ([tags::MINION_START | tags::MINION_PING | tags::MINION_ERROR], None) => {
            one(data.get("id").and_then(Value::as_str))
        }
        (["salt", "minion" | "beacon" | "proxy", id, ..], None) => one(Some(id)),
        (["minion" | "resource", "refresh", id] | ["saltern", "minion", id, ..], None) => one(Some(id)),
        (["saltern", "run", _, id, ..] | ["salt", "state_result", _, id, ..], None) => one(Some(id)),
        (["saltern", "action", id, ..], None) => action(id),
        (["saltern", "chain", ..], None) => launch(data),
        (["saltern", "recurring", ..] | ["saltern", "notification", "recurring", ..], None) => person(data),
        (["salt", "fileserver", _, "update"], None) => Audience::Everybody,
        (["salt", "batch", text, ..], None) => of_job(Jid::parse(text).or(jid), data, BATCH_LISTS),
        (["salt", "job", ..], None) => match JobTag::parse(tag) {
            Some(job) => match job.minion() {
                Some(minion) => Audience::Minion(minion.clone()),
                None => of_job(Some(job.jid), data, &["minions"]),
            },
            None => Audience::Server,
        },
        ([text], None) if Jid::parse(text).is_some() => of_job(Jid::parse(text), data, &["minions"]),
        _ => Audience::Server,
    }
}

/// Takes the ids of minions that somebody does not see out of the lists in which the server's own events name minions.
///
/// For events whose audience is several minions, a job or an action; a minion's own event may use these words for
/// something else.
pub fn narrow(data: &mut Value, sight: &Sight) {
    let Value::Map(map) = data else { return };
    if sight.is_all() {
        return;
    }
    for (key, value) in map.iter_mut() {
        if let (Some(key), Value::List(items)) = (key.as_str(), value)
            && (LISTS.contains(&key) || BATCH_LISTS.contains(&key))
        {
            items.retain(|item| item.as_str().is_some_and(|name| sight.sees_name(name)));
        }
    }
    let kind = map.get("tgt_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(target) = map.get_mut("tgt") {
        narrow_target(&kind, target, sight);
    }
}

/// Removes the ids he does not see from a target that lists ids; the words of other targets name nobody for certain.
pub fn narrow_target(kind: &str, target: &mut Value, sight: &Sight) {
    if kind != "list" || sight.is_all() {
        return;
    }
    match target {
        Value::List(items) => items.retain(|item| item.as_str().is_some_and(|name| sight.sees_name(name))),
        // A list may also be text with commas.
        other => {
            if let Some(text) = other.as_str() {
                let seen: Vec<&str> = text.split(',').filter(|name| sight.sees_name(name.trim())).collect();
                *other = seen.join(",").into();
            }
        }
    }
}

/// Where the server's events list minions. `tgt` is such a list if ids were asked for.
const LISTS: &[&str] = &["minions", "missing", "present", "new", "lost", "tgt"];
const BATCH_LISTS: &[&str] = &["available_minions", "down_minions", "done_minions", "timedout_minions"];

fn one(id: Option<&str>) -> Audience {
    id.and_then(|id| MinionId::new(id).ok()).map_or(Audience::Server, Audience::Minion)
}

fn person(data: &Value) -> Audience {
    let user = data.get("user").and_then(Value::as_str).filter(|user| !user.is_empty());
    user.map_or(Audience::Server, |user| Audience::Person(user.to_owned()))
}

fn action(id: &str) -> Audience {
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let id = is_number.then(|| id.parse().ok()).flatten();
    id.map_or(Audience::Server, |id| Audience::Action(ActionId(id)))
}

/// An event of a launch is about one minion, or about all of one of its actions.
fn launch(data: &Value) -> Audience {
    match (data.get("minion"), data.get("action").and_then(Value::as_i64)) {
        (Some(minion), _) => one(minion.as_str()),
        (None, Some(id)) => Audience::Action(ActionId(id)),
        (None, None) => Audience::Server,
    }
}

/// The minions an event names, or those of its job if it names none.
fn of_job(jid: Option<Jid>, data: &Value, keys: &[&str]) -> Audience {
    let minions = named(data, keys);
    match jid {
        Some(jid) if minions.is_empty() => Audience::Job(jid),
        None if minions.is_empty() => Audience::Server,
        _ => Audience::Minions(minions),
    }
}

fn named(data: &Value, keys: &[&str]) -> Vec<MinionId> {
    let lists = keys.iter().filter_map(|key| data.get(key)?.as_list());
    lists.flatten().filter_map(|item| MinionId::new(item.as_str()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JID: &str = "20261115200427443183";

    fn id(text: &str) -> MinionId {
        MinionId::new(text).unwrap()
    }

    fn jid() -> Jid {
        Jid::parse(JID).unwrap()
    }

    fn sight(names: &[&str]) -> Sight {
        names.iter().map(|name| id(name)).collect()
    }

    fn check(tag: &str, data: &Value, expected: Audience) {
        assert_eq!(audience(&tag.replace("JID", JID), None, None, data), expected, "{tag}");
    }

    #[test]
    fn what_is_about_a_minion_is_for_those_who_see_it() {
        let data = Value::map([("id", "web1")]);
        for tag in [
            "salt/auth",
            "salt/key",
            "minion_start",
            "minion_ping",
            "_salt_error",
            "salt/minion/web1/start",
            "salt/beacon/web1/load/",
            "salt/beacon/web1/inotify//etc/passwd",
            "salt/proxy/web1/start",
            "salt/job/JID/ret/web1",
            "salt/job/JID/ack/web1",
            "salt/job/JID/start/web1",
            "salt/job/JID/prog/web1/3",
            "salt/job/JID/sub/web1/error/state.sls",
            "salt/state_result/JID/web1/nginx",
            "minion/refresh/web1",
            "resource/refresh/web1",
            "saltern/minion/web1/lost",
            "saltern/run/17/web1",
        ] {
            check(tag, &data, Audience::Minion(id("web1")));
        }
    }

    #[test]
    fn what_a_minion_sent_is_for_those_who_see_it_whatever_its_tag() {
        for tag in ["my/own/tag", "salt/custom", "saltern/notification/dead_letter"] {
            assert_eq!(audience(tag, Some(&id("web1")), None, &Value::Nil), Audience::Minion(id("web1")), "{tag}");
        }
    }

    #[test]
    fn a_publication_is_for_those_who_see_one_of_its_minions() {
        let data = Value::map([("minions", Value::list(["web1", "db1"]))]);
        for tag in ["JID", "salt/job/JID/new", "salt/job/JID/publish"] {
            check(tag, &data, Audience::Minions(vec![id("web1"), id("db1")]));
            check(tag, &Value::Nil, Audience::Job(jid()));
        }
    }

    #[test]
    fn a_batch_is_for_those_who_see_one_of_its_minions() {
        let data = Value::map([("available_minions", Value::list(["web1"])), ("down_minions", Value::list(["db1"]))]);
        check("salt/batch/JID/start", &data, Audience::Minions(vec![id("web1"), id("db1")]));
        check("salt/batch/JID/start", &Value::Nil, Audience::Job(jid()));
        assert_eq!(audience("salt/batch/x/start", None, Some(jid()), &Value::Nil), Audience::Job(jid()));
        check("salt/batch/x/start", &Value::Nil, Audience::Server);
    }

    #[test]
    fn presence_is_for_those_who_see_whom_it_names() {
        let data = Value::map([("new", Value::list(["web1"])), ("lost", Value::list(["db1"]))]);
        check("salt/presence/change", &data, Audience::Minions(vec![id("web1"), id("db1")]));
        check("salt/presence/present", &Value::Nil, Audience::Minions(vec![]));
    }

    #[test]
    fn a_call_of_the_server_is_for_who_made_it() {
        let data = Value::map([("user", "ann")]);
        check("salt/run/JID/new", &data, Audience::Person("ann".into()));
        check("salt/wheel/JID/ret", &data, Audience::Person("ann".into()));
        check("salt/run/JID/ret", &Value::Nil, Audience::Server);
        check("salt/run/JID/ret", &Value::map([("user", "")]), Audience::Server);
    }

    #[test]
    fn what_recurs_is_for_its_owner() {
        let data = Value::map([("user", "ann")]);
        for tag in ["saltern/recurring/7/fired", "saltern/recurring/7/digest", "saltern/notification/recurring"] {
            check(tag, &data, Audience::Person("ann".into()));
            check(tag, &Value::Nil, Audience::Server);
        }
    }

    #[test]
    fn an_action_is_for_those_who_see_it() {
        check("saltern/action/17/ended", &Value::Nil, Audience::Action(ActionId(17)));
        for tag in ["saltern/action/x/ended", "saltern/action/+1/ended", "saltern/action//ended", "saltern/action"] {
            check(tag, &Value::Nil, Audience::Server);
        }
    }

    #[test]
    fn a_launch_is_for_those_who_see_its_minion_or_its_action() {
        let both = Value::map([("minion", Value::from("web1")), ("action", 17.into())]);
        check("saltern/chain/3/minion", &both, Audience::Minion(id("web1")));
        check("saltern/chain/3/ended", &Value::map([("action", 17)]), Audience::Action(ActionId(17)));
        check("saltern/chain/3/ended", &Value::Nil, Audience::Server);
        check("saltern/chain/3/minion", &Value::map([("minion", "../x")]), Audience::Server);
        check("saltern/chain/3/ended", &Value::map([("action", "17")]), Audience::Server);
    }

    #[test]
    fn what_is_unknown_is_the_servers() {
        let data = Value::map([("id", Value::from("web1")), ("minions", Value::list(["web1"]))]);
        for tag in [
            "",
            "key",
            "salt/netapi/hook/deploy",
            "salt/auth/creds",
            "salt/job/JID/unheard/of",
            "salt/job/x/new",
            "salt/cloud/vm1/created",
            "salt/stats/x",
            "syndic/web1/salt/auth",
            "my/own/tag",
            "saltern/notification/x",
            "saltern/state/web/changed",
            "salt/minion/../start",
        ] {
            check(tag, &data, Audience::Server);
        }
        check("salt/auth", &Value::map([("id", "../x")]), Audience::Server);
    }

    #[test]
    fn narrowing_takes_out_what_is_not_seen_and_nothing_else() {
        let full = Value::map([
            ("minions", Value::list(["web1", "db1"])),
            ("missing", Value::list(["db2"])),
            ("down_minions", Value::list(["db1", "web1"])),
            ("tgt", Value::list(["web1", "db1"])),
            ("arg", Value::list(["db1"])),
            ("fun", Value::from("test.ping")),
        ]);
        let mut narrowed = full.clone();
        narrow(&mut narrowed, &sight(&["web1"]));
        let expected = Value::map([
            ("minions", Value::list(["web1"])),
            ("missing", Value::List(vec![])),
            ("down_minions", Value::list(["web1"])),
            ("tgt", Value::list(["web1"])),
            ("arg", Value::list(["db1"])),
            ("fun", Value::from("test.ping")),
        ]);
        assert_eq!(narrowed, expected);
        let mut untouched = full.clone();
        narrow(&mut untouched, &Sight::All);
        assert_eq!(untouched, full);
    }

    #[test]
    fn a_target_that_is_a_list_in_text_is_narrowed() {
        let told = |kind: &str| {
            let mut data = Value::map([("tgt_type", kind), ("tgt", "web1, db1,web2")]);
            narrow(&mut data, &sight(&["web1", "web2"]));
            data.get("tgt").unwrap().as_str().unwrap().to_owned()
        };
        assert_eq!(told("list"), "web1,web2");
        assert_eq!(told("glob"), "web1, db1,web2");
    }

    proptest! {
        #[test]
        fn what_came_from_a_minion_is_never_for_more_people(tag in "(salt|saltern|job|run|ret|minion|/|db1|web1|\\PC){0,8}") {
            let told = audience(&tag, Some(&id("db1")), None, &Value::map([("id", "web1"), ("user", "ann")]));
            let is_call = tag.starts_with("salt/run") || tag.starts_with("salt/wheel");
            prop_assert!(is_call || told == Audience::Minion(id("db1")), "{:?}", told);
        }

        #[test]
        fn any_tag_without_a_minion_has_an_audience(tag in "(salt|saltern|job|run|ret|minion|action|batch|/|1|\\PC){0,8}") {
            audience(&tag, None, None, &Value::Nil);
        }
    }
}
