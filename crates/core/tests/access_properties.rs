//! What has to hold for whatever rights and whatever wish.

use proptest::prelude::*;
use saltern_core::access::{
    Condition, Entity, Entry, Grant, Invocation, Pattern, RawRules, Rights, Role, Rule, Scope, Sight, Thing, Wish,
};
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};

const MINIONS: [&str; 4] = ["minion-a", "minion-b", "minion-c", "minion-d"];
const FUNCTIONS: [&str; 9] = [
    "test.ping",
    "cmd.run",
    "pillar.items",
    "saltutil.find_job",
    "saltutil.kill_job",
    "jobs.list_job",
    "key.accept",
    "event.send",
    "",
];

proptest! {
    #[test]
    fn a_list_of_calls_is_allowed_if_and_only_if_each_is_on_each_minion(
        rights in any_rights(),
        funs in prop::collection::vec(any_fun(), 1..4),
        minions in prop::collection::vec(any_minion(), 1..4),
    ) {
        let calls: Vec<Invocation<'_>> = funs.iter().copied().map(Invocation::bare).collect();
        let whole = rights.may(&Wish::Call { calls: &calls, minions: &minions }).is_ok();
        let each = calls.iter().all(|call| minions.iter().all(|minion| {
            rights.may(&Wish::Call { calls: &[*call], minions: std::slice::from_ref(minion) }).is_ok()
        }));
        prop_assert_eq!(whole, each);
    }

    #[test]
    fn a_narrower_scope_never_allows_more(rights in any_rights(), wish in any_wish()) {
        let may = |scope| wish.asked(|wish| Rights { scope, ..rights.clone() }.may(wish).is_ok());
        let [read, operate, all] = Scope::ALL.map(may);
        prop_assert!(read <= operate && operate <= all);
    }

    #[test]
    fn another_role_or_rule_never_takes_anything_away(rights in any_rights(), grant in any_grant(), rule in any_rule(), wish in any_wish()) {
        let before = wish.asked(|wish| rights.may(wish).is_ok());
        let mut more = rights.clone();
        more.take_grant(&grant.0, grant.1);
        more.take_rules(rights.rules.iter().cloned().chain([rule]).collect());
        prop_assert!(before <= wish.asked(|wish| more.may(wish).is_ok()));
    }

    #[test]
    fn a_refusal_names_no_minion_that_is_not_seen(rights in any_rights(), wish in any_wish()) {
        if let Err(refusal) = wish.asked(|wish| rights.may(wish)) {
            for name in MINIONS {
                let is_named = refusal.message.contains(name);
                prop_assert!(!is_named || rights.sees.sees(&id(name)), "{}", refusal.message);
            }
        }
    }

    #[test]
    fn who_may_do_something_to_a_minion_sees_it(rights in any_rights(), fun in any_fun(), minion in any_minion()) {
        let call = Invocation::bare(fun);
        let minions = [minion];
        let does = [
            rights.may(&Wish::Call { calls: &[call], minions: &minions }),
            rights.may(&Wish::Operate(&minions)),
            rights.may(&Wish::SeePillar(&minions[0])),
            rights.may(&Wish::Manage(Thing::Minion(&minions[0]))),
        ];
        let sees = rights.may(&Wish::See(&minions[0])).is_ok();
        prop_assert!(sees || does.iter().all(Result::is_err));
    }

    #[test]
    fn nobody_may_nothing_and_the_administrator_everything(wish in any_wish()) {
        prop_assert!(wish.asked(|wish| Rights::nobody("ann").may(wish)).is_err());
        prop_assert!(wish.asked(|wish| Rights::administrator("ann").may(wish)).is_ok());
    }

    #[test]
    fn odd_patterns_are_refused_or_asked_without_harm(
        pattern in r"[\\\[\]\(\){}?*+|^$.@%:=!<>a-c0-9ä ]{0,24}",
        fun in "\\PC{0,40}",
        arg in "\\PC{0,40}",
    ) {
        let target = Value::map([(pattern.as_str(), Value::list([Value::map([(
            pattern.as_str(),
            Value::map([("args", Value::list([pattern.as_str()]))]),
        )])]))]);
        let value = Value::map([("pam", Value::map([("ann", Value::list([Value::from(pattern.as_str()), target]))]))]);
        if let Ok(rules) = RawRules::read(&value) {
            let mut rights = Rights::nobody("ann");
            let rule = |entry| Rule { entry, minions: Sight::All };
            rights.take_rules(rules.entries("pam", "ann", &[]).into_iter().map(rule).collect());
            let (arg, kwarg) = ([Value::from(arg)], Map::new());
            let call = Invocation { fun: &fun, arg: &arg, kwarg: &kwarg };
            for wish in [Wish::Call { calls: &[call], minions: &[] }, Wish::Runner(call), Wish::Wheel(call), Wish::Fire] {
                drop(rights.may(&wish));
            }
        }
    }

    #[test]
    fn anything_is_read_as_rules_or_refused(value in any_value()) {
        if let Ok(rules) = RawRules::read(&value) {
            for eauth in rules.eauths() {
                drop((rules.entries(eauth, "a", &["b".into()]), rules.perms(eauth, "a", &[])));
            }
        }
    }
}

/// A wish that owns what it speaks of.
#[derive(Clone, Debug)]
struct OwnedWish {
    kind: u8,
    fun: &'static str,
    minions: Vec<MinionId>,
    org: &'static str,
}

impl OwnedWish {
    fn asked<T>(&self, ask: impl FnOnce(&Wish<'_>) -> T) -> T {
        let calls = [Invocation::bare(self.fun)];
        let call = calls[0];
        let (first, org) = (&self.minions[0], self.org);
        ask(&match self.kind {
            0 => Wish::See(first),
            1 => Wish::Call { calls: &calls, minions: &self.minions },
            2 => Wish::Operate(&self.minions),
            3 => Wish::Runner(call),
            4 => Wish::Wheel(call),
            5 => Wish::DecideKey(Some(first)),
            6 => Wish::DecideKey(None),
            7 => Wish::SeePillar(first),
            8 => Wish::Fire,
            9 => Wish::Manage(Thing::Server),
            10 => Wish::Manage(Thing::Organisations),
            11 => Wish::Manage(Thing::Organisation(org)),
            12 => Wish::Manage(Thing::Users { org }),
            13 => Wish::Manage(Thing::Group { org, name: "web" }),
            14 => Wish::Manage(Thing::Minion(first)),
            15 => Wish::Call { calls: &calls, minions: &[] },
            16 => Wish::UseChain { org, owner: "bob", shared: false },
            17 => Wish::UseChain { org, owner: "bob", shared: true },
            18 => Wish::Manage(Thing::Chain { org, owner: "bob" }),
            19 => Wish::Manage(Thing::States { org }),
            20 => Wish::Manage(Thing::Recurring { org, entity: Entity::Minion(first) }),
            21 => Wish::Manage(Thing::Recurring { org, entity: Entity::Group("web") }),
            22 => Wish::Manage(Thing::Recurring { org, entity: Entity::Target }),
            23 => Wish::Manage(Thing::Windows { org }),
            24 => Wish::Approve(&self.minions),
            _ => Wish::Operate(&[]),
        })
    }
}

fn id(text: &str) -> MinionId {
    MinionId::new(text).expect("a minion id")
}

fn any_minion() -> impl Strategy<Value = MinionId> {
    prop::sample::select(&MINIONS[..]).prop_map(id)
}

fn any_fun() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&FUNCTIONS[..])
}

fn any_sight() -> impl Strategy<Value = Sight> {
    let some = prop::collection::vec(any_minion(), 0..3).prop_map(|minions| minions.into_iter().collect());
    prop_oneof![1 => Just(Sight::All), 5 => some]
}

fn any_grant() -> impl Strategy<Value = (Grant, Sight)> {
    // Server admins are left out: they may everything, and would drown the others.
    let role = prop::sample::select(&Role::ALL[1..]);
    (role, any::<bool>(), any_sight()).prop_map(|(role, on_group, sight)| {
        let group = (on_group && role.takes_group()).then(|| "web".to_owned());
        (Grant { role, group }, sight)
    })
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let pattern =
        prop::sample::select(vec![".*", "test.*", "cmd.run$", "saltutil", "pillar.items", "jobs.*", "key", "event"]);
    (0..8_u8, pattern, any_sight()).prop_map(|(kind, text, minions)| {
        let fun = Pattern::new(text).expect("a pattern");
        let conditions = vec![Condition { fun: fun.clone(), arguments: None }];
        let entry = match kind {
            0 => Entry::Function(fun),
            1 | 2 => return Rule { entry: Entry::Target { expression: "x".into(), conditions }, minions },
            3 => Entry::AllRunner,
            4 => Entry::AllWheel,
            5 => Entry::Module("key".into()),
            6 => Entry::Runner(conditions),
            _ => Entry::Wheel(conditions),
        };
        Rule { entry, minions: Sight::All }
    })
}

fn any_rights() -> impl Strategy<Value = Rights> {
    let (grants, rules) = (prop::collection::vec(any_grant(), 0..3), prop::collection::vec(any_rule(), 0..3));
    (grants, rules).prop_map(|(grants, rules)| {
        let mut rights = Rights::nobody("ann");
        rights.org = "acme".into();
        for (grant, sight) in grants {
            rights.take_grant(&grant, sight);
        }
        rights.take_rules(rules);
        rights
    })
}

fn any_wish() -> impl Strategy<Value = OwnedWish> {
    let minions = prop::collection::vec(any_minion(), 1..3);
    let org = prop::sample::select(vec!["acme", "other"]);
    (0..26_u8, any_fun(), minions, org).prop_map(|(kind, fun, minions, org)| OwnedWish { kind, fun, minions, org })
}

fn any_value() -> impl Strategy<Value = Value> {
    let word =
        || prop::sample::select(vec!["pam", "a", "b%", "*", "^x", "@runner", "@", "", "args", "kwargs", "(", "test.*"]);
    let leaf = prop_oneof![Just(Value::Nil), any::<i64>().prop_map(Value::from), word().prop_map(Value::from)];
    leaf.prop_recursive(6, 40, 4, move |inner| {
        let entries = prop::collection::vec((word(), inner.clone()), 0..3);
        prop_oneof![prop::collection::vec(inner, 0..3).prop_map(Value::List), entries.prop_map(Value::map)]
    })
}
