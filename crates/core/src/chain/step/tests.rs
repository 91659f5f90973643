//! What can be a step and what cannot, and that a step is read as it was written.

use super::*;

fn step(json: &str) -> Step {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn refusal(json: &str) -> BadStep {
    step(json).check().expect_err(json)
}

#[test]
fn the_shortest_step_is_written_as_short_as_it_was_read() {
    let json = r#"{"type":"reboot"}"#;
    let read = step(json);
    read.check().unwrap();
    assert_eq!(read, Step::new("reboot", Map::new()));
    assert_eq!(serde_json::to_string(&read).unwrap(), json);
}

#[test]
fn everything_a_step_can_say_reads_back() {
    let json = r#"{"type":"package_install","params":{"packages":["nginx"]},"name":"web server",
        "target":{"group":"web"},"barrier":"80%","budget":"10%","after":"always","approval":"go on?","limit":1800,
        "repeatable":false}"#;
    let read = step(json);
    read.check().unwrap();
    assert_eq!((read.barrier, read.budget), (Barrier::Percent(80), Some(Size::Percent(10))));
    assert_eq!((read.after, read.limit), (After::Always, Some(Duration::from_secs(1800))));
    let written = serde_json::to_string(&read).unwrap();
    assert_eq!(written, json.replace("\n        ", ""));
    assert_eq!(step(&written), read);
}

#[test]
fn limits_and_budgets_may_be_texts_or_numbers() {
    let read = step(r#"{"type":"reboot","limit":"1h30m","budget":2}"#);
    assert_eq!((read.limit(), read.budget), (Duration::from_secs(5400), Some(Size::Count(2))));
    assert_eq!(step(r#"{"type":"reboot","budget":"3"}"#).budget, Some(Size::Count(3)));
    assert_eq!(step(r#"{"type":"reboot","limit":1.5}"#).limit(), Duration::from_millis(1500));
    let nothing = step(r#"{"type":"reboot","limit":null,"budget":null}"#);
    assert_eq!((nothing.limit(), nothing.budget), (DEFAULT_LIMIT, None));
}

#[test]
fn what_is_not_a_step_is_refused_when_it_is_read() {
    for bad in [
        "{}",
        r#"{"type":"reboot","params":[]}"#,
        r#"{"type":"reboot","parms":{}}"#,
        r#"{"type":"reboot","barrier":"some"}"#,
        r#"{"type":"reboot","budget":-1}"#,
        r#"{"type":"reboot","budget":1.5}"#,
        r#"{"type":"reboot","budget":"101%"}"#,
        r#"{"type":"reboot","after":"never"}"#,
        r#"{"type":"reboot","limit":"soon"}"#,
        r#"{"type":"reboot","limit":-1}"#,
        r#"{"type":"reboot","limit":true}"#,
    ] {
        assert!(serde_json::from_str::<Step>(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_cannot_be_a_step_is_refused_when_it_is_checked() {
    assert!(matches!(refusal(r#"{"type":"dance"}"#), BadStep::UnknownType(_)));
    assert!(matches!(refusal(r#"{"type":"package_install"}"#), BadStep::Params(BadParams::Missing("packages"))));
    let two = r#"{"type":"function","params":{"fun":["test.ping","test.version"]}}"#;
    assert_eq!(refusal(two), BadStep::SeveralFunctions);
    let own = r#"{"type":"function","params":{"fun":"saltern_chain.clear"}}"#;
    assert_eq!(refusal(own), BadStep::OwnModule("saltern_chain.clear".into()));
    assert_eq!(refusal(r#"{"type":"reboot","barrier":"0%"}"#), BadStep::Percent);
    assert_eq!(refusal(r#"{"type":"reboot","budget":"0%"}"#), BadStep::Percent);
    assert_eq!(refusal(r#"{"type":"reboot","limit":0}"#), BadStep::Limit);
    assert_eq!(refusal(r#"{"type":"reboot","limit":"8d"}"#), BadStep::Limit);
    assert_eq!(refusal(r#"{"type":"reboot","name":" "}"#), BadStep::Text("name"));
    assert_eq!(refusal(r#"{"type":"reboot","approval":"a\nb"}"#), BadStep::Text("approval"));
    assert_eq!(refusal(r#"{"type":"reboot","target":{"group":""}}"#), BadStep::NoGroup);
    let long = format!(r#"{{"type":"reboot","name":"{}"}}"#, "x".repeat(1001));
    assert_eq!(refusal(&long), BadStep::Text("name"));
}

#[test]
fn what_json_cannot_carry_is_refused() {
    let mut odd = step(r#"{"type":"function","params":{"fun":"test.echo"}}"#);
    odd.params.insert("arg", Value::List(vec![f64::INFINITY.into()]));
    assert_eq!(odd.check(), Err(BadStep::NotJson));
}

#[test]
fn named_arguments_are_named_or_refused() {
    let marked = r#"{"type":"function","params":{"fun":"cmd.run","arg":["ls",{"__kwarg__":true,"cwd":"/"}]}}"#;
    let call = step(marked).call().unwrap();
    assert_eq!((call.arg, call.kwarg.get("cwd")), (vec!["ls".into()], Some(&"/".into())));
    let text = |arg: &str| step(&format!(r#"{{"type":"function","params":{{"fun":"cmd.run","arg":["{arg}"]}}}}"#));
    for odd in ["cwd=/", "test=True", "_x.y-z=", "ä=1"] {
        assert_eq!(text(odd).check(), Err(BadStep::NamedArgument(odd.into())), "{odd}");
    }
    for fine in ["echo a=b", "a==b", "=x", "5=x", "plain"] {
        text(fine).check().unwrap();
    }
}

#[test]
fn an_error_of_a_chain_names_its_step() {
    let (good, bad) = (step(r#"{"type":"reboot"}"#), step(r#"{"type":"reboot","limit":0}"#));
    assert_eq!(check_all(&[good.clone(), bad]).unwrap_err().to_string(), "step 2: a limit is 1 second to 7 days");
    assert_eq!(check_all(&[]), Err(BadStep::Count));
    assert_eq!(check_all(&vec![good.clone(); MOST_STEPS + 1]), Err(BadStep::Count));
    check_all(&vec![good; MOST_STEPS]).unwrap();
}

#[test]
fn the_first_step_cannot_be_for_after_a_failure() {
    let (plain, on_failure) = (step(r#"{"type":"reboot"}"#), step(r#"{"type":"reboot","after":"failed"}"#));
    check_all(&[plain.clone(), on_failure.clone()]).unwrap();
    let refused = check_all(&[on_failure, plain]).unwrap_err();
    assert_eq!(refused, BadStep::InStep { number: 1, source: BadStep::NothingToFail.into() });
}

#[test]
fn steps_that_are_too_large_together_are_refused() {
    let body = "x".repeat(300 * 1024);
    let large = step(&format!(r#"{{"type":"script","params":{{"body":"{body}"}}}}"#));
    check_all(&vec![large.clone(); 3]).unwrap();
    assert_eq!(check_all(&vec![large; 4]), Err(BadStep::Large));
}

#[test]
fn names_of_chains_are_one_trimmed_line() {
    for good in ["a", "Patch the web servers, rack 1", "ä", &"x".repeat(255)] {
        check_name(good).unwrap();
    }
    for bad in ["", " ", " a", "a ", "a\nb", "\u{7}", &"x".repeat(256)] {
        assert_eq!(check_name(bad), Err(BadStep::Name), "{bad:?}");
    }
}

#[test]
fn a_launch_replaces_the_parameters_it_names() {
    let mut changed = step(r#"{"type":"states","params":{"mods":["web"],"test":true}}"#);
    let Value::Map(with) = Value::map([("mods", Value::list(["db"])), ("saltenv", "dev".into())]) else { return };
    changed.changes(&with);
    let wanted = step(r#"{"type":"states","params":{"mods":["db"],"test":true,"saltenv":"dev"}}"#);
    assert_eq!(changed, wanted);
}

#[test]
fn a_step_is_called_by_its_name_or_by_what_it_does() {
    assert_eq!(step(r#"{"type":"reboot"}"#).describe(), "reboot");
    assert_eq!(step(r#"{"type":"reboot","name":"new kernel"}"#).describe(), "new kernel");
    assert_eq!(step(r#"{"type":"dance"}"#).describe(), "dance");
}

#[test]
fn what_may_be_done_twice_is_said_by_the_step_or_by_its_type() {
    let is = |json: &str| step(json).is_repeatable();
    assert!(is(r#"{"type":"states"}"#) && !is(r#"{"type":"states","repeatable":false}"#));
    assert!(!is(r#"{"type":"script"}"#) && is(r#"{"type":"script","repeatable":true}"#));
    assert!(!is(r#"{"type":"dance"}"#));
}
