//! What holds for every type; each type's own tests are in its file.

use super::*;
use proptest::prelude::*;

/// Parameters written as JSON.
pub(super) fn params(json: &str) -> Map {
    match returned(json) {
        Value::Map(map) => map,
        other => panic!("not a map: {other:?}"),
    }
}

/// A return written as JSON.
pub(super) fn returned(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The call that these parameters make.
pub(super) fn compiled(name: &str, json: &str) -> Call {
    find(name).unwrap().compile(&params(json)).unwrap()
}

/// Why they make none.
#[track_caller]
pub(super) fn refused(name: &str, json: &str) -> BadParams {
    find(name).unwrap().compile(&params(json)).expect_err(json)
}

#[test]
fn names_are_words_and_lead_back_to_their_type() {
    for kind in ALL {
        let word = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(word(kind.name()), "{}", kind.name());
        assert!(
            std::ptr::addr_eq(find(kind.name()).unwrap(), kind) || find(kind.name()).unwrap().title() == kind.title()
        );
        assert!(!kind.title().is_empty() && !kind.help().is_empty() && !kind.help().contains('\n'));
        for param in kind.params() {
            assert!(word(param.name) && !param.help.is_empty(), "{} {}", kind.name(), param.name);
        }
    }
    assert!(find("nonsense").is_none());
}

#[test]
fn no_two_types_and_no_two_parameters_share_a_name() {
    let is_unique = |mut names: Vec<&str>| {
        let many = names.len();
        names.sort_unstable();
        names.dedup();
        names.len() == many
    };
    assert!(is_unique(ALL.iter().map(|kind| kind.name()).collect()));
    assert!(is_unique(ALL.iter().map(|kind| kind.title()).collect()));
    for kind in ALL {
        assert!(is_unique(kind.params().iter().map(|param| param.name).collect()), "{}", kind.name());
    }
}

#[test]
fn an_unknown_parameter_is_answered_with_those_there_are() {
    for kind in ALL {
        let error = kind.compile(&params(r#"{"nonsense": 1}"#)).unwrap_err().to_string();
        assert!(error.starts_with("there is no parameter 'nonsense'"), "{error}");
        for param in kind.params() {
            assert!(error.contains(param.name), "{error}");
        }
    }
}

#[test]
fn what_is_required_must_be_given() {
    for kind in ALL {
        let missing = kind.params().iter().find(|param| param.required).map(|param| BadParams::Missing(param.name));
        assert_eq!(kind.compile(&Map::new()).err(), missing, "{}", kind.name());
    }
}

#[test]
fn a_parameter_of_another_kind_is_refused_with_the_kind_it_should_be() {
    let error = refused("states", r#"{"test": "yes"}"#);
    assert_eq!(error.to_string(), "the parameter 'test' must be true or false");
    assert_eq!(refused("states", r#"{"mods": {"a": 1}}"#), BadParams::Kind { name: "mods", kind: Kind::Names });
    assert_eq!(refused("script", r#"{"body": 5}"#), BadParams::Kind { name: "body", kind: Kind::Body });
    assert_eq!(refused("reboot", r#"{"delay": 1.5}"#), BadParams::Kind { name: "delay", kind: Kind::Number });
}

#[test]
fn what_is_none_was_not_given() {
    let call = compiled("script", r#"{"body": "true", "user": null, "timeout": null, "cwd": ""}"#);
    assert_eq!(call.kwarg.iter().map(|(name, _)| name.as_str().unwrap()).collect::<Vec<_>>(), ["lang", "code"]);
}

/// What the reference of action types says of windows, beside what may be done twice and what ends it.
#[test]
fn the_table_of_types() {
    let row = |kind: &dyn ActionType| {
        let nothing = Map::new();
        (kind.name(), kind.is_restricted(&nothing), kind.is_repeatable(&nothing), kind.ends(&nothing))
    };
    assert_eq!(
        ALL.map(row),
        [
            ("function", true, false, Ends::ByReturn),
            ("script", true, false, Ends::ByReturn),
            ("states", true, true, Ends::ByReturn),
            ("package_install", true, true, Ends::ByReturn),
            ("package_update", true, true, Ends::ByReturnOrAgentStart),
            ("package_remove", true, true, Ends::ByReturn),
            ("service_restart", true, false, Ends::ByReturn),
            ("reboot", true, false, Ends::ByBoot),
            ("agent_update", true, true, Ends::ByReturnOrAgentStart),
        ]
    );
}

#[test]
fn what_restarts_the_agent_is_checked_afterwards_and_nothing_else() {
    for kind in ALL {
        let nothing = Map::new();
        let is_agent = kind.restarts(&nothing) == Restarts::Agent;
        assert_eq!(kind.check_after(&nothing).is_some(), is_agent, "{}", kind.name());
    }
    let ping = find("package_update").unwrap().check_after(&Map::new()).unwrap();
    assert_eq!((ping.call.funs, ping.expect), (vec!["test.ping".to_owned()], true.into()));
}

#[test]
fn a_failed_job_is_a_failure_of_every_type() {
    let failed = returned(r#"{"return": "Minion in blackout mode", "retcode": 1, "success": false}"#);
    for kind in ALL {
        assert_eq!(kind.judge(&Map::new(), &failed), Verdict { success: false, retcode: 1 }, "{}", kind.name());
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z.=,#! /\n-]{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<Vec<u8>>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            prop::sample::select(vec!["result", "retcode", "return", "success", "test", "__kwarg__"])
                .prop_map(Value::from),
            inner.clone(),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|entries| Value::Map(entries.into_iter().collect())),
        ]
    })
}

fn some_params() -> impl Strategy<Value = Map> {
    let names: Vec<&str> = ALL.iter().flat_map(|kind| kind.params()).map(|param| param.name).collect();
    let entry = (prop::sample::select(names), anything());
    prop::collection::vec(entry, 0..4)
        .prop_map(|entries| entries.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

proptest! {
    /// Anything may be asked and anything may come back: an answer there is, and it is one line where one line is promised.
    #[test]
    fn nothing_given_or_returned_is_too_much(params in some_params(), value in anything()) {
        for kind in ALL {
            if let Ok(call) = kind.compile(&params) {
                prop_assert!(!call.funs.is_empty() && call.funs.iter().all(|fun| fun.contains('.')));
                prop_assert!(call.funs.len() == 1 || (call.kwarg.is_empty() && call.arg.len() == call.funs.len()));
            }
            let _ = (kind.restarts(&params), kind.ends(&params), kind.is_restricted(&params), kind.is_repeatable(&params));
            prop_assert!(!kind.describe(&params).contains('\n'));
            let verdict = kind.judge(&params, &value);
            prop_assert!(!verdict.success || verdict.retcode == 0);
        }
    }
}
