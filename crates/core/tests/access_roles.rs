//! The whole table of `Rights::may` for roles: every wish, every role, every scope of a token.
//!
//! A cell is the narrowest token that is enough: `r` one for reading, `o` one for operating, `a` one for everything; `-` none.
//! There are two organisations: acme with web1 (group web) and db1 (group db), and other with far1.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use saltern_core::access::{
    Class, Entity, Grant, Invocation, Rights, Role, Scope, Sight, Thing, Wish, runner_class, wheel_class,
};
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};

const TABLE: &str = "
                                       | none | reader | reader:web | operator:web | operator:db | operator | group-admin:web | group-admin | org-admin | org-admin of other | server-admin
see web1                               | -    | r      | r          | r            | -           | r        | r               | r           | r         | -                  | r
see db1                                | -    | r      | -          | -            | r           | r        | -               | r           | r         | -                  | r
see far1                               | -    | -      | -          | -            | -           | -        | -               | -           | -         | r                  | r
call cmd.run on web1                   | -    | -      | -          | o            | -           | o        | o               | o           | o         | -                  | o
call cmd.run on web1 db1               | -    | -      | -          | -            | -           | o        | -               | o           | o         | -                  | o
call cmd.run on web1 far1              | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | o
call cmd.run on nobody                 | -    | -      | -          | o            | o           | o        | o               | o           | o         | o                  | o
call two functions on web1             | -    | -      | -          | o            | -           | o        | o               | o           | o         | -                  | o
call find_job on web1                  | -    | o      | o          | o            | -           | o        | o               | o           | o         | -                  | o
call find_job on db1                   | -    | o      | -          | -            | o           | o        | -               | o           | o         | -                  | o
call find_job on nobody                | -    | o      | o          | o            | o           | o        | o               | o           | o         | o                  | o
operate web1                           | -    | -      | -          | o            | -           | o        | o               | o           | o         | -                  | o
operate web1 db1                       | -    | -      | -          | -            | -           | o        | -               | o           | o         | -                  | o
operate nobody                         | -    | -      | -          | o            | o           | o        | o               | o           | o         | o                  | o
approve web1                           | -    | -      | -          | o            | -           | o        | o               | o           | o         | -                  | o
approve web1 db1                       | -    | -      | -          | -            | -           | o        | -               | o           | o         | -                  | o
approve nobody                         | -    | -      | -          | o            | o           | o        | o               | o           | o         | o                  | o
runner jobs.list_jobs                  | -    | r      | r          | r            | r           | r        | r               | r           | r         | r                  | r
runner manage.down                     | -    | r      | r          | r            | r           | r        | r               | r           | r         | r                  | r
runner manage.down removekeys          | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
runner salt.execute                    | -    | -      | -          | o            | o           | o        | o               | o           | o         | o                  | o
runner salt.cmd                        | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
runner state.orchestrate               | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
runner unheard.of                      | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
wheel key.list_all                     | -    | r      | r          | r            | r           | r        | r               | r           | r         | r                  | r
wheel key.accept                       | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
decide the key of web1                 | -    | -      | -          | -            | -           | -        | -               | -           | a         | -                  | a
decide the key of far1                 | -    | -      | -          | -            | -           | -        | -               | -           | -         | a                  | a
decide some key                        | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
see the pillar of web1                 | -    | -      | -          | o            | -           | o        | o               | o           | o         | -                  | o
see the pillar of far1                 | -    | -      | -          | -            | -           | -        | -               | -           | -         | o                  | o
fire                                   | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
send a hook                            | o    | o      | o          | o            | o           | o        | o               | o           | o         | o                  | o
look at the server                     | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | r
manage the server                      | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
manage organisations                   | -    | -      | -          | -            | -           | -        | -               | -           | -         | -                  | a
manage acme                            | -    | -      | -          | -            | -           | -        | -               | -           | a         | -                  | a
manage other                           | -    | -      | -          | -            | -           | -        | -               | -           | -         | a                  | a
manage users of acme                   | -    | -      | -          | -            | -           | -        | -               | -           | a         | -                  | a
manage users of other                  | -    | -      | -          | -            | -           | -        | -               | -           | -         | a                  | a
manage group web of acme               | -    | -      | -          | -            | -           | -        | a               | a           | a         | -                  | a
manage group db of acme                | -    | -      | -          | -            | -           | -        | -               | a           | a         | -                  | a
manage group web of other              | -    | -      | -          | -            | -           | -        | -               | -           | -         | a                  | a
manage minion web1                     | -    | -      | -          | -            | -           | -        | -               | -           | a         | -                  | a
manage minion far1                     | -    | -      | -          | -            | -           | -        | -               | -           | -         | a                  | a
manage what is ones own                | a    | a      | a          | a            | a           | a        | a               | a           | a         | a                  | a
use anns private chain of acme         | r    | r      | r          | r            | r           | r        | r               | r           | r         | r                  | r
use bobs private chain of acme         | -    | -      | -          | -            | -           | -        | -               | -           | r         | -                  | r
use bobs shared chain of acme          | -    | r      | r          | r            | r           | r        | r               | r           | r         | -                  | r
use bobs shared chain of other         | -    | -      | -          | -            | -           | -        | -               | -           | -         | r                  | r
manage anns chain of acme              | o    | o      | o          | o            | o           | o        | o               | o           | o         | o                  | o
manage bobs chain of acme              | -    | -      | -          | -            | -           | -        | -               | -           | o         | -                  | o
manage bobs chain of other             | -    | -      | -          | -            | -           | -        | -               | -           | -         | o                  | o
manage states of acme                  | -    | -      | -          | -            | -           | -        | -               | -           | a         | -                  | a
manage states of other                 | -    | -      | -          | -            | -           | -        | -               | -           | -         | a                  | a
manage web1s recurring                 | -    | -      | -          | o            | -           | o        | o               | o           | o         | -                  | o
manage db1s recurring                  | -    | -      | -          | -            | o           | o        | -               | o           | o         | -                  | o
manage far1s recurring                 | -    | -      | -          | -            | -           | -        | -               | -           | -         | o                  | o
manage recurring of group web of acme  | -    | -      | -          | -            | -           | -        | o               | o           | o         | -                  | o
manage recurring of group db of acme   | -    | -      | -          | -            | -           | -        | -               | o           | o         | -                  | o
manage recurring of group web of other | -    | -      | -          | -            | -           | -        | -               | -           | -         | o                  | o
manage recurring of acme               | -    | -      | -          | -            | -           | -        | -               | -           | o         | -                  | o
manage recurring of other              | -    | -      | -          | -            | -           | -        | -               | -           | -         | o                  | o
manage recurring of a target in acme   | -    | -      | -          | -            | -           | -        | -               | -           | o         | -                  | o
manage recurring of a target in other  | -    | -      | -          | -            | -           | -        | -               | -           | -         | o                  | o
manage windows of acme                 | -    | -      | -          | -            | -           | -        | -               | -           | a         | -                  | a
manage windows of other                | -    | -      | -          | -            | -           | -        | -               | -           | -         | a                  | a
";

#[test]
fn every_wish_by_every_role_with_every_token() {
    let rows: Vec<Vec<&str>> =
        TABLE.trim_matches('\n').lines().map(|line| line.split('|').map(str::trim).collect()).collect();
    let (people, rows) = rows.split_first().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        assert_eq!(row.len(), people.len(), "{}: a cell for each role", row[0]);
        for (person, expected) in people.iter().zip(row).skip(1) {
            let actual = with_wish(row[0], |wish| narrowest_scope(&rights(person), wish));
            if actual != *expected {
                wrong.push(format!("{} by {person}: {actual}, not {expected}", row[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_role_is_in_the_table() {
    let head = TABLE.trim_matches('\n').lines().next().unwrap();
    for role in Role::ALL {
        assert!(head.split('|').any(|column| column.trim() == role.as_str()), "{role}");
    }
}

#[test]
fn a_refusal_says_what_is_missing() {
    let say = |person: &str, wish: &str| with_wish(wish, |wish| rights(person).may(wish).unwrap_err().message);
    assert_eq!(
        say("reader", "call cmd.run on web1"),
        "you are not allowed `cmd.run` on `web1`: it needs the role operator there, or a rule in external_auth"
    );
    assert_eq!(
        say("reader", "runner salt.execute"),
        "you are not allowed `salt.execute`: it needs the role operator, or a rule in external_auth"
    );
    let mut reader = rights("server-admin");
    reader.scope = Scope::Read;
    let refusal = with_wish("fire", |wish| reader.may(wish).unwrap_err());
    assert_eq!(refusal.message, "this token is for `read` only; use one with a wider scope");
}

#[test]
fn a_refusal_is_the_same_whether_an_unseen_minion_exists() {
    let person = rights("reader:web");
    let refused = |name: &str| person.may(&Wish::See(&id(name))).unwrap_err();
    assert_eq!(refused("far1"), refused("nobody-has-this-name"));
    let call = |name: &str| {
        let run = Invocation::bare("cmd.run");
        person.may(&Wish::Call { calls: &[run], minions: &[id(name)] }).unwrap_err()
    };
    assert_eq!(call("far1"), call("nobody-has-this-name"));
    assert!(!call("far1").message.contains("far1"));
}

#[test]
fn who_administers_every_minion_there_may_be_decides_any_key() {
    let mut person = Rights::nobody("ann");
    person.take_grant(&Grant { role: Role::OrgAdmin, group: None }, Sight::All);
    assert!(person.may(&Wish::DecideKey(None)).is_ok());
}

#[test]
fn to_call_no_function_at_all_is_refused() {
    let person = rights("operator");
    assert!(person.may(&Wish::Call { calls: &[], minions: &[id("web1")] }).is_err());
}

#[test]
fn roles_add_up() {
    let mut person = rights("operator:web");
    person.take_grant(&Grant::parse("reader:db").unwrap(), [id("db1")].into_iter().collect());
    assert!(person.may(&Wish::See(&id("db1"))).is_ok() && person.may(&Wish::Operate(&[id("web1")])).is_ok());
    assert!(person.may(&Wish::Operate(&[id("db1")])).is_err());
}

#[test]
fn a_role_on_a_group_without_minions_is_still_a_role() {
    let mut person = Rights::nobody("ann");
    person.take_grant(&Grant::parse("reader:empty").unwrap(), Sight::none());
    assert!(with_wish("runner jobs.list_jobs", |wish| person.may(wish)).is_ok());
}

#[test]
fn targets_of_people_with_roles_are_narrowed() {
    assert!(rights("operator:web").narrows() && rights("none").narrows());
}

#[test]
fn what_the_login_shows_of_a_role_is_what_the_role_may() {
    assert_eq!(rights("server-admin").perms(), Value::list([".*", "@jobs", "@runner", "@wheel"]));
    assert_eq!(rights("none").perms(), Value::Map(Map::new()));
    let names = |perms: &Value, key: &str| -> Vec<String> {
        let lists = perms.as_list().unwrap().iter().filter_map(|entry| entry.get(key)?.as_list());
        lists.flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let (reader, operator) = (rights("reader").perms(), rights("operator:web").perms());
    assert!(names(&reader, "@runner").iter().all(|name| runner_class(name) == Class::Read));
    assert!(names(&reader, "@wheel").iter().all(|name| wheel_class(name) == Class::Read));
    assert!(names(&operator, "@runner").contains(&"salt.execute".into()));
    assert_eq!(operator.as_list().unwrap()[0], Value::from(".*"));
    assert_ne!(reader.as_list().unwrap()[0], Value::from(".*"));
}

fn id(text: &str) -> MinionId {
    MinionId::new(text).unwrap()
}

/// Somebody of a column.
fn rights(person: &str) -> Rights {
    let mut rights = Rights::nobody("ann");
    let (grant, org) = match person.split_once(" of ") {
        Some((grant, org)) => (grant, org),
        None => (person, "acme"),
    };
    rights.org = org.into();
    if grant == "none" {
        return rights;
    }
    let grant = Grant::parse(grant).unwrap();
    let minions: &[&str] = match (grant.group.as_deref(), org) {
        (Some("web"), _) => &["web1"],
        (Some("db"), _) => &["db1"],
        (None, "acme") => &["web1", "db1"],
        (None, "other") => &["far1"],
        other => panic!("{other:?}"),
    };
    rights.take_grant(&grant, minions.iter().map(|name| id(name)).collect());
    rights
}

fn narrowest_scope(rights: &Rights, wish: &Wish<'_>) -> &'static str {
    let with = |scope| Rights { scope, ..rights.clone() }.may(wish).is_ok();
    match [Scope::Read, Scope::Operate, Scope::All].map(with) {
        [true, true, true] => "r",
        [false, true, true] => "o",
        [false, false, true] => "a",
        [false, false, false] => "-",
        other => panic!("a narrower token may more: {other:?}"),
    }
}

/// The wish of a row.
fn with_wish<T>(row: &str, then: impl FnOnce(&Wish<'_>) -> T) -> T {
    let words: Vec<&str> = row.split(' ').collect();
    let plain = Invocation::bare;
    let ids = |names: &[&str]| -> Vec<MinionId> {
        names.iter().filter(|name| **name != "nobody").map(|name| id(name)).collect()
    };
    match words.as_slice() {
        ["see", name] => then(&Wish::See(&id(name))),
        ["call", "two", "functions", "on", names @ ..] => {
            then(&Wish::Call { calls: &[plain("test.ping"), plain("cmd.run")], minions: &ids(names) })
        }
        ["call", "find_job", "on", names @ ..] => {
            then(&Wish::Call { calls: &[plain("saltutil.find_job")], minions: &ids(names) })
        }
        ["call", fun, "on", names @ ..] => then(&Wish::Call { calls: &[plain(fun)], minions: &ids(names) }),
        ["operate", names @ ..] => then(&Wish::Operate(&ids(names))),
        ["approve", names @ ..] => then(&Wish::Approve(&ids(names))),
        ["runner", fun] => then(&Wish::Runner(plain(fun))),
        ["runner", fun, flag] => {
            let kwarg: Map = [(Value::from(*flag), Value::from(true))].into_iter().collect();
            then(&Wish::Runner(Invocation { fun, arg: &[], kwarg: &kwarg }))
        }
        ["wheel", fun] => then(&Wish::Wheel(plain(fun))),
        ["decide", "the", "key", "of", name] => then(&Wish::DecideKey(Some(&id(name)))),
        ["decide", "some", "key"] => then(&Wish::DecideKey(None)),
        ["see", "the", "pillar", "of", name] => then(&Wish::SeePillar(&id(name))),
        ["fire"] => then(&Wish::Fire),
        ["send", "a", "hook"] => then(&Wish::Hook),
        ["look", "at", "the", "server"] => then(&Wish::Inspect),
        ["manage", "the", "server"] => then(&Wish::Manage(Thing::Server)),
        ["manage", "organisations"] => then(&Wish::Manage(Thing::Organisations)),
        ["manage", "users", "of", org] => then(&Wish::Manage(Thing::Users { org })),
        ["manage", "group", name, "of", org] => then(&Wish::Manage(Thing::Group { org, name })),
        ["manage", "minion", name] => then(&Wish::Manage(Thing::Minion(&id(name)))),
        ["use", whose, kind, "chain", "of", org] => {
            then(&Wish::UseChain { org, owner: whose.trim_end_matches('s'), shared: *kind == "shared" })
        }
        ["manage", whose, "chain", "of", org] => {
            then(&Wish::Manage(Thing::Chain { org, owner: whose.trim_end_matches('s') }))
        }
        ["manage", "states", "of", org] => then(&Wish::Manage(Thing::States { org })),
        ["manage", "recurring", "of", "group", name, "of", org] => {
            then(&Wish::Manage(Thing::Recurring { org, entity: Entity::Group(name) }))
        }
        ["manage", "recurring", "of", "a", "target", "in", org] => {
            then(&Wish::Manage(Thing::Recurring { org, entity: Entity::Target }))
        }
        ["manage", "recurring", "of", org] => {
            then(&Wish::Manage(Thing::Recurring { org, entity: Entity::Organisation(org) }))
        }
        ["manage", whose, "recurring"] => {
            let minion = id(whose.trim_end_matches('s'));
            then(&Wish::Manage(Thing::Recurring { org: "acme", entity: Entity::Minion(&minion) }))
        }
        ["manage", "windows", "of", org] => then(&Wish::Manage(Thing::Windows { org })),
        ["manage", "what", "is", "ones", "own"] => then(&Wish::Manage(Thing::Own)),
        ["manage", org] => then(&Wish::Manage(Thing::Organisation(org))),
        _ => panic!("no such wish: {row}"),
    }
}
