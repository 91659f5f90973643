//! What low data means, case by case; the cases are those of captured requests.

use super::*;
use proptest::prelude::*;
use saltern_core::target::TargetType;

fn low(json: &str) -> Map {
    match serde_json::from_str(json).unwrap() {
        Value::Map(map) => map,
        other => panic!("{other:?} is no object"),
    }
}

fn local(json: &str) -> Local {
    match read(&low(json), None).unwrap() {
        Low::Local(local) => local,
        Low::Master(master) => panic!("{master:?}"),
    }
}

fn master(json: &str) -> Master {
    match read(&low(json), None).unwrap() {
        Low::Master(master) => master,
        Low::Local(local) => panic!("{local:?}"),
    }
}

fn refusal(json: &str) -> String {
    let failure = read(&low(json), None).unwrap_err();
    assert_eq!(failure.status(), 400);
    failure.message().to_owned()
}

#[test]
fn one_object_or_a_list_of_them() {
    let read = |json: &str| elements(serde_json::from_str(json).unwrap()).map(|elements| elements.len()).ok();
    assert_eq!(read(r#"{"a": 1}"#), Some(1));
    assert_eq!(read(r#"[{"a": 1}, {}]"#), Some(2));
    assert_eq!(read("[]"), Some(0));
    for bad in ["{}", "null", "\"hello\"", "5", "[\"x\"]", "[[]]"] {
        assert_eq!(read(bad), None, "{bad}");
    }
}

#[test]
fn a_command_needs_no_more_than_target_and_function() {
    let read = local(r#"{"client": "local", "tgt": "*", "fun": "test.ping"}"#);
    assert_eq!(read.target.unwrap().to_string(), "glob *");
    assert_eq!((read.manner, read.funs, read.full_return), (Manner::Wait, vec!["test.ping".to_owned()], false));
    assert!(read.args.is_empty() && read.kwargs.is_empty() && read.timeout.is_none());
}

#[test]
fn nulls_and_unknown_keys_mean_nothing() {
    let json =
        r#"{"client": "local", "tgt": "*", "fun": "test.ping", "batch": null, "timeout": null, "frobnicate": 1}"#;
    assert_eq!(local(json).manner, Manner::Wait);
}

#[test]
fn the_old_name_of_the_target_type_is_honoured() {
    let read = |json: &str| local(json).target.unwrap().kind;
    let json = r#"{"client": "local", "tgt": "a,b", "expr_form": "list", "fun": "test.ping"}"#;
    assert_eq!(read(json), TargetType::List);
    let json = r#"{"client": "local", "tgt": "a*", "expr_form": "list", "tgt_type": "glob", "fun": "test.ping"}"#;
    assert_eq!(read(json), TargetType::Glob);
}

#[test]
fn a_list_as_target_is_a_list_of_ids() {
    let read = local(r#"{"client": "local", "tgt": ["web1", "db1"], "fun": "test.ping"}"#);
    assert_eq!(read.target.unwrap().to_string(), "list web1,db1");
}

#[test]
fn a_target_type_nobody_knows_matches_nobody() {
    assert_eq!(local(r#"{"client": "local", "tgt": "x", "tgt_type": "bogus", "fun": "test.ping"}"#).target, None);
}

#[test]
fn arguments_keep_their_types_and_keyword_arguments_are_found() {
    let read = local(
        r#"{"client": "local", "tgt": "*", "fun": "test.arg", "arg": ["a", 2, "k=3", "1", null], "kwarg": {"x": {"y": [1]}}}"#,
    );
    assert_eq!(read.args, [Value::from("a"), 2.into(), "1".into(), Value::Nil]);
    assert_eq!(Value::Map(read.kwargs), serde_json::from_str(r#"{"k": 3, "x": {"y": [1]}}"#).unwrap());
}

#[test]
fn one_argument_needs_no_list() {
    let read = local(r#"{"client": "local", "tgt": "*", "fun": "test.echo", "arg": "single"}"#);
    assert_eq!(read.args, [Value::from("single")]);
}

#[test]
fn several_functions_have_a_list_of_arguments_each() {
    let read = local(r#"{"client": "local", "tgt": "*", "fun": ["test.ping", "test.arg"], "arg": [[], ["a", "k=1"]]}"#);
    assert_eq!(read.funs, ["test.ping", "test.arg"]);
    let expected: Value = serde_json::from_str(r#"[[], ["a", {"k": 1, "__kwarg__": true}]]"#).unwrap();
    assert_eq!(Value::List(read.args), expected);
    refusal(r#"{"client": "local", "tgt": "*", "fun": ["test.ping", "test.arg"], "arg": [[]]}"#);
    refusal(r#"{"client": "local", "tgt": "*", "fun": ["test.ping", "test.arg"], "arg": ["a", "b"]}"#);
    refusal(r#"{"client": "local", "tgt": "*", "fun": ["test.ping", 5]}"#);
}

#[test]
fn a_list_of_one_function_is_one_function() {
    for json in [
        r#"{"client": "local", "tgt": "*", "fun": ["test.echo"], "arg": ["hi"]}"#,
        r#"{"client": "local", "tgt": "*", "fun": ["test.echo"], "arg": [["hi"]]}"#,
    ] {
        let read = local(json);
        assert_eq!((read.funs.len(), read.args), (1, vec![Value::from("hi")]), "{json}");
    }
}

#[test]
fn forms_say_false_in_words() {
    for word in ["false", "False", "0", "no", ""] {
        let json = format!(r#"{{"client": "local", "tgt": "*", "fun": "test.ping", "full_return": "{word}"}}"#);
        assert!(!local(&json).full_return, "{word:?}");
    }
    assert!(local(r#"{"client": "local", "tgt": "*", "fun": "test.ping", "full_return": "true"}"#).full_return);
}

#[test]
fn batches_are_numbers_or_percentages() {
    let size = |batch: &str| {
        let json = format!(r#"{{"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch": {batch}}}"#);
        match local(&json).manner {
            Manner::Batch { batch, .. } => batch.size,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(size("null"), Size::Percent(10));
    assert_eq!(size("\"1\""), Size::Count(1));
    assert_eq!(size("2"), Size::Count(2));
    assert_eq!(size("\"50%\""), Size::Percent(50));
    assert_eq!(
        refusal(r#"{"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch": "abc"}"#),
        "Invalid batch specification 'abc': must be an integer or percentage string like '10' or '25%'."
    );
    refusal(r#"{"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch": 0}"#);
}

#[test]
fn a_subset_is_three_unless_told() {
    let manner =
        |more: &str| local(&format!(r#"{{"client": "local_subset", "tgt": "*", "fun": "test.ping"{more}}}"#)).manner;
    assert_eq!(manner(""), Manner::Subset(3));
    assert_eq!(manner(r#", "subset": 1"#), Manner::Subset(1));
    assert_eq!(manner(r#", "sub": "2""#), Manner::Subset(2));
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    assert_eq!(refusal(r#"{"tgt": "*", "fun": "test.ping"}"#), "Invalid client specified: 'None'");
    assert_eq!(refusal(r#"{"client": "nope"}"#), "Invalid client specified: 'nope'");
    assert_eq!(refusal(r#"{"client": "local", "fun": "test.ping"}"#), "local takes a target: send 'tgt'");
    assert_eq!(refusal(r#"{"client": "local", "tgt": "*"}"#), "local takes a function: send 'fun'");
    assert_eq!(refusal(r#"{"client": "runner"}"#), "runner takes at least 1 argument (0 given)");
    assert_eq!(refusal(r#"{"client": "wheel", "fun": "key"}"#), "A command invocation error occurred: Check syntax.");
    assert!(refusal(r#"{"client": "ssh", "tgt": "*", "fun": "test.ping"}"#).contains("not available"));
}

#[test]
fn nobody_chooses_a_job_id() {
    assert!(refusal(r#"{"client": "local", "tgt": "*", "fun": "test.ping", "jid": "abc"}"#).contains("'jid'"));
    local(r#"{"client": "local", "tgt": "*", "fun": "test.ping", "jid": ""}"#);
}

#[test]
fn clients_can_be_turned_off() {
    let ping = low(r#"{"client": "runner", "fun": "jobs.active"}"#);
    let failure = read(&ping, Some(&["local".into()])).unwrap_err();
    assert_eq!(
        failure.message(),
        "Client disabled: 'runner'. Add to 'netapi_enable_clients' master config option to enable."
    );
    assert!(read(&ping, Some(&["runner".into()])).is_ok());
}

#[test]
fn other_keys_of_a_runner_are_its_keyword_arguments() {
    let read = master(
        r#"{"client": "runner", "fun": "test.arg", "arg": [1, "x=y"], "kwarg": {"a": "b"}, "num": 3, "token": "t",
            "key": "k", "timeout": 5, "full_return": true}"#,
    );
    assert_eq!(read.args, [Value::from(1)]);
    assert_eq!(Value::Map(read.kwargs), serde_json::from_str(r#"{"x": "y", "a": "b", "num": 3}"#).unwrap());
    assert_eq!((read.full_return, read.timeout), (true, Some(Duration::from_secs(5))));
}

#[test]
fn a_key_can_be_given_in_kwarg() {
    let read = master(r#"{"client": "runner", "fun": "config.get", "kwarg": {"key": "timeout"}}"#);
    assert_eq!(read.kwargs.get("key"), Some(&"timeout".into()));
}

#[test]
fn times_are_seconds_in_any_spelling() {
    let timeout = |value: &str| {
        let json = format!(r#"{{"client": "local", "tgt": "*", "fun": "test.ping", "timeout": {value}}}"#);
        read(&low(&json), None).ok().map(|read| match read {
            Low::Local(local) => local.timeout,
            Low::Master(_) => None,
        })
    };
    assert_eq!(timeout("5"), Some(Some(Duration::from_secs(5))));
    assert_eq!(timeout("\"5\""), Some(Some(Duration::from_secs(5))));
    assert_eq!(timeout("0.5"), Some(Some(Duration::from_millis(500))));
    assert_eq!(timeout("0"), Some(None));
    assert_eq!(timeout("1e300"), None);
    assert_eq!(timeout("-1"), None);
    assert_eq!(timeout("\"soon\""), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            proptest::collection::vec(("[a-z_]{1,8}", inner), 0..4).prop_map(Value::map),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_read_or_refused(client in 0..CLIENTS.len(), keys in proptest::collection::vec((0..14usize, any_json()), 0..8)) {
        let names = ["tgt", "tgt_type", "fun", "arg", "kwarg", "timeout", "batch", "subset", "metadata", "ret", "jid",
            "delimiter", "full_return", "gather_job_timeout"];
        let mut map = low(r#"{"tgt": "*", "fun": "test.ping"}"#);
        map.insert("client", CLIENTS[client]);
        for (name, value) in keys {
            map.insert(names[name], value);
        }
        if let Err(failure) = read(&map, None) {
            prop_assert_eq!(failure.status().as_u16(), 400);
        }
    }

    #[test]
    fn any_body_is_elements_or_refused(body in any_json()) {
        let _ = elements(body);
    }
}
