//! Salt's `external_auth` against what salt-api answered: the recorded cases of authorisation, with the users of the recording.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use saltern_core::access::{Entry, Invocation, RawRules, Rights, Rule, Sight, Wish};
use saltern_core::ids::MinionId;
use saltern_core::target::{Facts, Nodegroups, Target, TargetType};
use saltern_core::value::{Map, Value};

/// `external_auth` of the recording.
const RECORDED: &str = r#"{
    "file": {
        "^filename": "/etc/salt/users", "^hashtype": "plaintext",
        "admin": [".*", "@runner", "@wheel", "@jobs"],
        "ops": [".*", {"@runner": ["jobs.*", "manage.*"]}, {"@wheel": ["key.list_all", "key.finger"]}],
        "tester": ["test.*", "grains.items", "sys.doc"],
        "webonly": [{"web*": ["test.*", "grains.*"]}],
        "runneronly": ["@runner"],
        "wheelonly": ["@wheel"],
        "jobsonly": ["@jobs"],
        "argonly": [{"*": ["test.ping", {"test.echo": {"args": ["ok.*"]}}, {"test.kwarg": {"kwargs": {"a": "1"}}}]}]
    },
    "sharedsecret": {"*": [".*", "@runner", "@wheel", "@jobs"]}
}"#;

/// Recorded case, user, client, function(s) with arguments, minions of the target, and whether salt-api did it.
const CASES: &str = r#"
argonly-echo-denied       | argonly    | local  | test.echo ["bad"]             | web1            | no
argonly-echo-ok           | argonly    | local  | test.echo ["okay"]            | web1            | yes
argonly-kwarg-denied      | argonly    | local  | test.kwarg {"a": 2}           | web1            | no
argonly-kwarg-ok          | argonly    | local  | test.kwarg {"a": 1}           | web1            | yes
jobs-noperm               | tester     | runner | jobs.list_jobs                |                 | no
jobsonly-jobs             | jobsonly   | runner | jobs.list_job                 |                 | yes
jobsonly-local            | jobsonly   | local  | test.ping                     | web1            | no
jobsonly-manage           | jobsonly   | runner | manage.present                |                 | no
keys-noperm               | tester     | wheel  | key.list_all                  |                 | no
noperm-local              | noperm     | local  | test.ping                     | web1            | no
ops-runner-allowed        | ops        | runner | manage.present                |                 | yes
ops-runner-bad-syntax     | ops        | runner | manage                        |                 | no
ops-runner-denied         | ops        | runner | state.orchestrate             |                 | no
ops-wheel-allowed         | ops        | wheel  | key.list_all                  |                 | yes
ops-wheel-bad-syntax      | ops        | wheel  | key                           |                 | no
ops-wheel-denied          | ops        | wheel  | key.accept                    |                 | no
runneronly-local          | runneronly | local  | test.ping                     | web1            | no
runneronly-runner         | runneronly | runner | manage.present                |                 | yes
runneronly-wheel          | runneronly | wheel  | key.list_all                  |                 | no
tester-allowed            | tester     | local  | test.ping                     | web1            | yes
tester-compound-mixed     | tester     | local  | test.ping, cmd.run ["id"]     | web1            | no, though salt-api did it
tester-denied             | tester     | local  | cmd.run ["id"]                | web1            | no
tester-denied-async       | tester     | local  | cmd.run ["id"]                | web1            | no
tester-denied-batch       | tester     | local  | cmd.run ["id"]                | web1            | no
tester-denied-nomatch     | tester     | local  | cmd.run ["id"]                |                 | no
tester-find_job           | tester     | local  | saltutil.find_job ["2020"]    | web1            | yes
tester-prefix-regex       | tester     | local  | grains.itemsX                 | web1            | yes
tester-runner-denied      | tester     | runner | jobs.list_jobs                |                 | no
tester-runner_async-denied| tester     | runner | jobs.list_jobs                |                 | no
tester-wheel-denied       | tester     | wheel  | key.list_all                  |                 | no
minions-noperm            | runneronly | local  | grains.items                  | web1 db1 ghost1 | no
webonly-allowed           | webonly    | local  | test.ping                     | web1            | yes
webonly-fun-denied        | webonly    | local  | cmd.run ["id"]                | web1            | no
webonly-other-minion      | webonly    | local  | test.ping                     | db1             | no
webonly-star              | webonly    | local  | test.ping                     | web1 db1 ghost1 | no
wheelonly-runner          | wheelonly  | runner | manage.present                |                 | no
wheelonly-wheel           | wheelonly  | wheel  | key.list_all                  |                 | yes
admin does all            | admin      | local  | test.ping, cmd.run ["id"]     | web1 db1 ghost1 | yes
admin does all            | admin      | runner | state.orchestrate             |                 | yes
admin does all            | admin      | wheel  | key.accept                    |                 | yes
allowed on nobody         | webonly    | local  | test.ping                     |                 | yes
find_job where he sees    | webonly    | local  | saltutil.find_job             | web1            | yes
find_job where he does not| webonly    | local  | saltutil.find_job             | db1             | no
find_job carries nothing  | tester     | local  | saltutil.find_job, cmd.run    | web1            | no
"#;

#[test]
fn recorded_decisions_are_ours() {
    let rules = read(RECORDED);
    for case in CASES.trim().lines() {
        let cells: Vec<&str> = case.split('|').map(str::trim).collect();
        let [_, user, client, calls, minions, expected] = cells.as_slice() else { panic!("{case}") };
        let rights = rights(&rules, "file", user, &[]);
        let calls: Vec<Call> = calls.split(", ").map(Call::read).collect();
        let calls: Vec<Invocation<'_>> = calls.iter().map(Call::invocation).collect();
        let minions: Vec<MinionId> = minions.split_whitespace().map(id).collect();
        let answer = match *client {
            "local" => rights.may(&Wish::Call { calls: &calls, minions: &minions }),
            "runner" => rights.may(&Wish::Runner(calls[0])),
            "wheel" => rights.may(&Wish::Wheel(calls[0])),
            other => panic!("{other}"),
        };
        assert_eq!(answer.is_ok(), *expected == "yes", "{case}: {answer:?}");
    }
}

#[test]
fn recorded_permissions_are_shown_as_salt_api_shows_them() {
    let rules = read(RECORDED);
    for (eauth, user, shown) in [
        ("file", "admin", r#"[".*", "@jobs", "@runner", "@wheel"]"#),
        ("file", "ops", r#"[".*", {"@runner": ["jobs.*", "manage.*"]}, {"@wheel": ["key.list_all", "key.finger"]}]"#),
        ("file", "tester", r#"["grains.items", "sys.doc", "test.*"]"#),
        ("file", "webonly", r#"[{"web*": ["test.*", "grains.*"]}]"#),
        ("file", "noperm", "{}"),
        ("sharedsecret", "anyone", r#"[".*", "@jobs", "@runner", "@wheel"]"#),
        ("pam", "admin", "{}"),
    ] {
        assert_eq!(rules.perms(eauth, user, &[]), json(shown), "{eauth} {user}");
    }
}

#[test]
fn entries_for_others_are_shown_to_all_and_apply_to_those_without_their_own() {
    let rules = read(r#"{"file": {"tester": ["test.*", "grains.items", "sys.doc"], "*": ["grains.item", "test.*"]}}"#);
    assert_eq!(rules.perms("file", "tester", &[]), json(r#"["grains.item", "grains.items", "sys.doc", "test.*"]"#));
    let item = |user| allows(&rights(&rules, "file", user, &[]), "grains.item");
    assert!(!item("tester"), "recorded as acl-named-plus-star");
    assert!(item("another"));
}

#[test]
fn groups_add_to_ones_own() {
    let rules = read(r#"{"pam": {"ann": ["test.*"], "ops%": ["cmd.*"], "*": ["sys.*"]}}"#);
    let patterns = |user: &str, groups: &[&str]| -> Vec<String> {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let text = |entry| match entry {
            Entry::Function(pattern) => pattern.as_str().to_owned(),
            other => panic!("{other:?}"),
        };
        rules.entries("pam", user, &groups).into_iter().map(text).collect()
    };
    assert_eq!(patterns("ann", &[]), ["test.*"]);
    assert_eq!(patterns("ann", &["ops", "users"]), ["test.*", "cmd.*"]);
    assert_eq!(patterns("bob", &["ops"]), ["cmd.*", "sys.*"], "a group's entry is not one's own");
    assert_eq!(patterns("bob", &["ops%", "OPS"]), ["sys.*"]);
    assert_eq!(rules.perms("pam", "bob", &["ops".into()]), json(r#"["cmd.*", "sys.*"]"#));
}

#[test]
fn who_may_only_kill_jobs_has_no_say_in_what_begins() {
    let rules = read(r#"{"pam": {"night": ["saltutil.kill_job"], "ops": [".*"]}}"#);
    let minions = [MinionId::new("web1").unwrap()];
    let (night, ops) = (rights(&rules, "pam", "night", &[]), rights(&rules, "pam", "ops", &[]));
    assert!(night.may(&Wish::Operate(&minions)).is_ok() && night.may(&Wish::Approve(&minions)).is_err());
    assert!(ops.may(&Wish::Operate(&minions)).is_ok() && ops.may(&Wish::Approve(&minions)).is_ok());
}

#[test]
fn a_name_that_is_a_pattern_is_only_a_name() {
    let rules = read(r#"{"pam": {"ann": [".*"], "ops%": [".*"], "^option": [".*"]}}"#);
    for name in [".*", "a*", "ann|x", "Ann", "ann ", "ops", "ops%", "*", "", "^option", "%"] {
        assert_eq!(rules.entries("pam", name, &[]), [], "{name:?}");
        assert_eq!(rules.perms("pam", name, &[]), json("{}"), "{name:?}");
    }
    let others = read(r#"{"pam": {"*": ["test.ping"]}}"#);
    assert_eq!(others.entries("pam", "*", &[]).len(), 1, "as anybody without an entry, and once");
}

#[test]
fn options_are_kept_apart_from_names() {
    let rules = read(RECORDED);
    let options = rules.options("file").unwrap();
    assert_eq!(options.get("filename").and_then(Value::as_str), Some("/etc/salt/users"));
    assert_eq!(options.len(), 2);
    assert!(rules.options("sharedsecret").unwrap().is_empty());
    assert!(rules.options("pam").is_none());
    assert_eq!(rules.eauths().collect::<Vec<_>>(), ["file", "sharedsecret"]);
}

#[test]
fn nothing_written_is_nothing_allowed() {
    for text in ["null", "{}", r#"{"pam": null}"#, r#"{"pam": {"ann": null}}"#, r#"{"pam": {"ann": []}}"#] {
        assert_eq!(read(text).entries("pam", "ann", &[]), [], "{text}");
    }
    assert!(read("null").is_empty() && !read(r#"{"pam": null}"#).is_empty());
}

#[test]
fn what_cannot_be_understood_is_refused_with_its_place() {
    for (text, expected) in [
        ("[]", "external_auth: has to be a map"),
        (r#"{"pam": ["ann"]}"#, "pam: has to be a map"),
        (r#"{"pam": {"ann": "test.*"}}"#, "pam.ann: has to be a list of entries"),
        (r#"{"pam": {"ann": [5]}}"#, "pam.ann[0]: has to be text, or a map with one key"),
        (r#"{"pam": {"ann": [".*", {"a": ["x"], "b": ["y"]}]}}"#, "pam.ann[1]: has to be text, or a map with one key"),
        (r#"{"pam": {"ann": ["test.("]}}"#, "pam.ann[0]: `test.(` is not a valid regular expression: "),
        (r#"{"pam": {"ann": [""]}}"#, "pam.ann[0]: the pattern is empty"),
        (r#"{"pam": {"ann": ["@"]}}"#, "pam.ann[0]: `@` needs the name of a module"),
        (r#"{"pam": {"ann": [{"": ["x"]}]}}"#, "pam.ann[0].: the target is empty"),
        (r#"{"pam": {"ann": [{"web*": null}]}}"#, "pam.ann[0].web*: names no function"),
        (r#"{"pam": {"ann": [{"web*": ["a", "*"]}]}}"#, "pam.ann[0].web*[1]: `*` is not a valid regular expression"),
        (r#"{"pam": {"ann": [{"ldap(OU=x)": ["a"]}]}}"#, "pam.ann[0]: `ldap(…)` is not supported"),
        (
            r#"{"pam": {"ann": [{"w": [{"f": {"argz": []}}]}]}}"#,
            "pam.ann[0].w[0].f.argz: has to be a map of `args` and `kwargs`",
        ),
        (r#"{"pam": {"ann": [{"w": [{"f": null}]}]}}"#, "pam.ann[0].w[0].f: has to be a map of `args` and `kwargs`"),
        (
            r#"{"pam": {"ann": [{"w": [{"f": {"args": [1]}}]}]}}"#,
            "pam.ann[0].w[0].f.args: `1` has to be text; put it in quotes",
        ),
        (
            r#"{"pam": {"ann": [{"w": [{"f": {"kwargs": {"a": "("}}}]}]}}"#,
            "pam.ann[0].w[0].f.kwargs: `(` is not a valid",
        ),
    ] {
        let error = RawRules::read(&json(text)).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text}\n  says {error}\n  not  {expected}");
    }
}

#[test]
fn an_empty_list_of_arguments_allows_nothing() {
    let rules = read(r#"{"pam": {"ann": [{"*": [{"test.ping": []}]}], "bob": [{"*": [{"test.ping": {}}]}]}}"#);
    assert!(!allows(&rights(&rules, "pam", "ann", &[]), "test.ping"));
    assert!(allows(&rights(&rules, "pam", "bob", &[]), "test.ping"), "no condition on the arguments");
}

#[test]
fn a_single_thing_may_stand_for_a_list() {
    let rules = read(
        r#"{"pam": {"ann": [{"*": "test.*"}, {"@runner": "jobs.*"}, {"*": {"sys.doc": [{"args": ["a"]}, {"args": ["b"]}]}}]}}"#,
    );
    let person = rights(&rules, "pam", "ann", &[]);
    assert!(allows(&person, "test.ping") && !allows(&person, "sys.doc"));
    for (arg, expected) in [("a", true), ("b", true), ("c", false)] {
        let arg = [Value::from(arg)];
        let call = Invocation { fun: "sys.doc", arg: &arg, kwarg: &Map::new() };
        assert_eq!(person.may(&Wish::Call { calls: &[call], minions: &[id("web1")] }).is_ok(), expected);
    }
}

#[test]
fn rules_for_different_minions_add_up() {
    let rules = read(r#"{"pam": {"ann": [{"web*": ["test.*"]}, {"db*": ["test.ping"]}]}}"#);
    let person = rights(&rules, "pam", "ann", &[]);
    let may = |fun, names: &[&str]| {
        let minions: Vec<MinionId> = names.iter().map(|name| id(name)).collect();
        let call = Invocation::bare(fun);
        person.may(&Wish::Call { calls: &[call], minions: &minions }).is_ok()
    };
    assert!(may("test.ping", &["web1", "db1"]));
    assert!(may("test.echo", &["web1"]) && !may("test.echo", &["web1", "db1"]));
    assert!(!may("test.ping", &["web1", "db1", "ghost1"]));
}

#[test]
fn sight_follows_the_rules() {
    let rules = read(RECORDED);
    let sees = |user, name| rights(&rules, "file", user, &[]).may(&Wish::See(&id(name))).is_ok();
    for (user, web, db) in [
        ("admin", true, true),
        ("tester", true, true),
        ("webonly", true, false),
        ("runneronly", true, true),
        ("jobsonly", true, true),
        ("wheelonly", false, false),
        ("noperm", false, false),
    ] {
        assert_eq!((sees(user, "web1"), sees(user, "db1")), (web, db), "{user}");
    }
}

#[test]
fn what_a_rule_lets_somebody_ask_of_the_server_is_answered_in_full() {
    let rules = read(RECORDED);
    let wheel = rights(&rules, "file", "wheelonly", &[]);
    let call = Invocation::bare;
    assert!(wheel.sight_for(&Wish::Wheel(call("key.list_all"))).is_all());
    assert!(wheel.sight_for(&Wish::Runner(call("manage.up"))).is_empty());
    let web = rights(&rules, "file", "webonly", &[]);
    assert!(!web.sight_for(&Wish::Wheel(call("key.list_all"))).is_all());
}

#[test]
fn pillar_keys_and_events_follow_the_rules() {
    let rules = read(
        r#"{"pam": {"items": [{"web*": ["pillar.items"]}], "sender": [{"@runner": ["event.send"]}],
            "keys": ["@key"], "accepts": [{"@wheel": ["key.accept"]}], "all": ["@runner", "@wheel"]}}"#,
    );
    let may = |user, wish: Wish<'_>| rights(&rules, "pam", user, &[]).may(&wish).is_ok();
    assert!(may("items", Wish::SeePillar(&id("web1"))) && !may("items", Wish::SeePillar(&id("db1"))));
    assert!(may("sender", Wish::Fire) && may("all", Wish::Fire) && !may("items", Wish::Fire));
    for decide in [None, Some(&id("web1"))] {
        assert!(may("keys", Wish::DecideKey(decide)) && may("all", Wish::DecideKey(decide)));
        assert!(!may("accepts", Wish::DecideKey(decide)), "who may accept may not yet delete");
    }
}

#[test]
fn targets_of_people_with_salts_rules_are_not_narrowed() {
    let rules = read(RECORDED);
    assert!(!rights(&rules, "file", "webonly", &[]).narrows() && !rights(&rules, "file", "tester", &[]).narrows());
    assert!(rights(&rules, "file", "jobsonly", &[]).narrows(), "his rules say nothing about minions");
}

/// One function with its arguments: `test.echo ["okay"]`, `test.kwarg {"a": 1}`.
struct Call {
    fun: String,
    arg: Vec<Value>,
    kwarg: Map,
}

impl Call {
    fn read(text: &str) -> Self {
        let (fun, given) = text.split_once(' ').unwrap_or((text, "[]"));
        let (arg, kwarg) = match json(given) {
            Value::List(arg) => (arg, Map::new()),
            Value::Map(kwarg) => (vec![], kwarg),
            other => panic!("{other:?}"),
        };
        Self { fun: fun.to_owned(), arg, kwarg }
    }

    fn invocation(&self) -> Invocation<'_> {
        Invocation { fun: &self.fun, arg: &self.arg, kwarg: &self.kwarg }
    }
}

struct Minion(&'static str);

impl Facts for Minion {
    fn id(&self) -> &str {
        self.0
    }
    fn grains(&self) -> Option<&Value> {
        None
    }
    fn pillar(&self) -> Option<&Value> {
        None
    }
}

fn rights(rules: &RawRules, eauth: &str, user: &str, groups: &[String]) -> Rights {
    let mut rights = Rights::nobody(user);
    let resolve = |entry: Entry| {
        let minions = match &entry {
            Entry::Target { expression, .. } => members(expression),
            _ => Sight::All,
        };
        Rule { entry, minions }
    };
    rights.take_rules(rules.entries(eauth, user, groups).into_iter().map(resolve).collect());
    rights
}

/// Who of the recording's minions a compound expression means.
fn members(expression: &str) -> Sight {
    let matcher = Target::new(TargetType::Compound, expression).compile(&Nodegroups::default()).unwrap();
    [Minion("web1"), Minion("db1"), Minion("ghost1")].iter().filter(|m| matcher.matches(*m)).map(|m| id(m.0)).collect()
}

fn allows(rights: &Rights, fun: &str) -> bool {
    let call = Invocation::bare(fun);
    rights.may(&Wish::Call { calls: &[call], minions: &[id("web1")] }).is_ok()
}

fn read(text: &str) -> RawRules {
    RawRules::read(&json(text)).unwrap_or_else(|error| panic!("{error}"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn id(text: &str) -> MinionId {
    MinionId::new(text).unwrap()
}
