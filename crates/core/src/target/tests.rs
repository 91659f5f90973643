//! Targets as a whole; each engine's own tests stand beside it, and `tests/targets.rs` asks Salt.

use super::*;
use crate::ids::MinionId;
use proptest::prelude::*;

fn id(text: &str) -> MinionId {
    MinionId::new(text).unwrap()
}

fn groups() -> Nodegroups {
    let mut groups = Nodegroups::new();
    groups.define("web", ["web1 or web2"]);
    groups.define("broken", ["web1 or"]);
    groups
}

fn compile(kind: TargetType, expression: &str) -> Result<Matcher, TargetError> {
    Target::new(kind, expression).compile(&groups())
}

#[test]
fn types_are_read_by_salts_names() {
    for kind in TargetType::ALL {
        assert_eq!(TargetType::parse(kind.as_str()), Ok(kind));
    }
    let error = TargetType::parse("gloob").unwrap_err();
    assert_eq!(error.to_string(), "unknown target type `gloob`");
    assert!(error.hint().contains("glob"));
}

#[test]
fn who_is_named_is_all_who_has_to_be_asked() {
    let candidates = |kind, expression: &str| {
        let matcher = compile(kind, expression).unwrap();
        let mut ids: Option<Vec<String>> = matcher.candidates().map(|ids| ids.into_iter().map(str::to_owned).collect());
        if let Some(ids) = &mut ids {
            ids.sort_unstable();
        }
        ids.map(|ids| ids.join(" "))
    };
    let compound = |expression| candidates(TargetType::Compound, expression);
    assert_eq!(candidates(TargetType::List, "b,a").as_deref(), Some("a b"));
    assert_eq!(compound("L@a,b").as_deref(), Some("a b"));
    assert_eq!(compound("L@a,b or L@c").as_deref(), Some("a b c"));
    assert_eq!(compound("L@a,b and G@os:Debian and L@c").as_deref(), Some("c"));
    for expression in ["web*", "L@a or web*", "not L@a", "G@os:Debian", "L@a or not L@b"] {
        assert_eq!(compound(expression), None, "{expression}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    for (kind, expression, message) in [
        (TargetType::Glob, "", "the target is empty"),
        (TargetType::Compound, "web1 web2", "`and` or `or` is missing before `web2` at word 2"),
        (TargetType::Compound, "web1 AND web2", "`and` or `or` is missing before `AND` at word 2"),
        (TargetType::Compound, "and web1", "a term is missing before `and` at word 1"),
        (TargetType::Compound, "web1 or", "a term is missing before the end at word 3"),
        (TargetType::Compound, "web1 and ( or web2 )", "a term is missing before `or` at word 4"),
        (TargetType::Compound, "not not web1", "a term is missing before `not` at word 2"),
        (TargetType::Compound, "( web1", "`(` is never closed at word 1"),
        (TargetType::Compound, "web1 )", "`)` closes nothing at word 2"),
        (TargetType::Compound, ") web1", "`)` closes nothing at word 1"),
        (TargetType::Compound, "web1 or ( )", "there is nothing between `(` and `)` at word 4"),
        (TargetType::Compound, "(web1 or web2)", "a parenthesis is glued to the word `(web1` at word 1"),
        (TargetType::Compound, "web1 ( web2 )", "`and` or `or` is missing before `(` at word 2"),
        (TargetType::Compound, "N@broken", "a term is missing before `)` at word 2 of nodegroup `broken`"),
        (TargetType::Compound, "N@gone or web1", "there is no nodegroup `gone`"),
        (TargetType::Compound, "R@%x", "range (`R@`) targets are not supported"),
        (TargetType::Range, "%x", "range targets are not supported"),
        (TargetType::Nodegroup, "gone", "there is no nodegroup `gone`"),
        (TargetType::Grain, "os", "`os` has no `:` between key and value"),
        (TargetType::Pcre, "web(", "`web(` is not a valid regular expression: missing `)` (at character 4)"),
        (TargetType::Ipcidr, "127.0.0.1/8", "`127.0.0.1/8` is not an IP address or network: it has host bits set"),
    ] {
        let error = compile(kind, expression).expect_err(expression);
        assert_eq!(error.to_string(), message);
        assert!(!error.hint().is_empty() && !error.hint().ends_with('.'));
    }
}

#[test]
fn needs_name_only_what_is_asked_for() {
    let needs = |kind, expression| {
        let needs = compile(kind, expression).unwrap().needs();
        (needs.grains, needs.pillar)
    };
    assert_eq!(needs(TargetType::Glob, "*"), (false, false));
    assert_eq!(needs(TargetType::Grain, "os:*"), (true, false));
    assert_eq!(needs(TargetType::Ipcidr, "10.0.0.0/8"), (true, false));
    assert_eq!(needs(TargetType::PillarExact, "a:b"), (false, true));
    assert_eq!(needs(TargetType::Compound, "web* and L@web1 or N@web"), (false, false));
    assert_eq!(needs(TargetType::Compound, "web* and not I@a:b or G@os:*"), (true, true));
    assert!(compile(TargetType::Compound, "E@web and N@web").unwrap().ids_only());
}

#[test]
fn grain_keys_are_those_that_decide() {
    let keys = |text| {
        let matcher = compile(TargetType::Compound, text).unwrap();
        matcher.grain_keys().map(|keys| keys.join(" "))
    };
    assert_eq!(keys("G@os:Debian and not ( P|@ec2|tags|x or S@10.0.0.0/8 ) or G@os:x"), Some("ec2 ipv4 os".into()));
    assert_eq!(keys("web* and I@a:b"), Some(String::new()));
    assert_eq!(keys("G@os:Debian or G@*:x"), None);
    assert_eq!(keys("G@80:http"), None);
}

#[test]
fn listed_ids_are_those_named_and_not_excluded() {
    let listed = |target: Target| {
        let matcher = target.compile(&groups()).unwrap();
        matcher.listed().map(|ids| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(listed(Target::list(["b", "a", "b"])), Some(vec!["b".into(), "a".into()]));
    assert_eq!(listed(Target::new(TargetType::List, "a,,b")), Some(vec!["a".into(), "b".into()]));
    assert_eq!(listed(Target::list(Vec::<String>::new())), Some(vec![]));
    assert_eq!(listed(Target::new(TargetType::Glob, "a")), None);
    assert_eq!(
        listed(Target::new(TargetType::Compound, "L@a,b and not L@c or ( L@d )")),
        Some(vec!["a".into(), "b".into(), "d".into()])
    );
}

#[test]
fn minions_without_data_match_no_data_term_but_its_negation() {
    let matcher = compile(TargetType::Compound, "web* and not G@os:Debian").unwrap();
    assert!(matcher.matches(&id("web1")));
    assert!(!compile(TargetType::Grain, "os:*").unwrap().matches(&id("web1")));
    assert!(!compile(TargetType::Pillar, "os:*").unwrap().matches(&id("web1")));
}

#[test]
fn a_nodegroup_counts_as_one_term() {
    let matcher = compile(TargetType::Compound, "N@web and not web1").unwrap();
    assert!(matcher.matches(&id("web2")));
    assert!(!matcher.matches(&id("web1")));
}

#[test]
fn expansion_leaves_nothing_a_minion_could_not_read() {
    let expand = |kind, text| Target::new(kind, text).expand(&groups()).unwrap();
    assert_eq!(expand(TargetType::Nodegroup, "web"), Target::new(TargetType::Compound, "( web1 or web2 )"));
    assert_eq!(
        expand(TargetType::Compound, "N@web and G@os:Debian"),
        Target::new(TargetType::Compound, "( web1 or web2 ) and G@os:Debian")
    );
    assert_eq!(expand(TargetType::Glob, "N@web"), Target::new(TargetType::Glob, "N@web"));
}

#[test]
fn targets_are_read_as_clients_send_them() {
    assert_eq!(Target::read("glob", &"*".into(), None), Ok(Target::new(TargetType::Glob, "*")));
    assert_eq!(Target::read("list", &Value::list(["a", "b"]), Some(":")), Ok(Target::list(["a", "b"])));
    assert_eq!(Target::read("grain", &"a|b".into(), Some("|")).unwrap().delimiter, '|');
    assert!(matches!(Target::read("grain", &"a".into(), Some("::")), Err(TargetError::BadDelimiter(_))));
    assert!(matches!(Target::read("glob", &5.into(), None), Err(TargetError::WrongShape { .. })));
    let list = Target { kind: TargetType::Glob, ..Target::list(["a"]) };
    assert!(matches!(list.compile(&groups()), Err(TargetError::WrongShape { kind: "glob", .. })));
}

#[test]
fn what_is_too_large_is_refused() {
    let deep = format!("{}a{}", "( ".repeat(101), " )".repeat(101));
    let regexes = vec!["E@a"; 101].join(" or ");
    let words = vec!["a"; 20_001].join(" or ");
    for expression in [deep, regexes, words] {
        assert!(matches!(compile(TargetType::Compound, &expression), Err(TargetError::TooLarge { .. })));
    }
    assert!(matches!(compile(TargetType::Glob, &"a".repeat(5000)), Err(TargetError::TooLarge { .. })));
}

#[test]
fn a_list_of_every_minion_is_compiled_and_matched() {
    let ids: Vec<String> = (0..100_000).map(|n| format!("minion-{n}.example.org")).collect();
    let matcher = Target::list(&ids).compile(&Nodegroups::new()).unwrap();
    assert!(ids.iter().step_by(1000).all(|text| matcher.matches(&id(text))));
    assert!(!matcher.matches(&id("minion-100000.example.org")));
}

proptest! {
    #[test]
    fn any_text_compiles_or_is_refused(
        kind in prop::sample::select(TargetType::ALL.to_vec()),
        expression in prop_oneof![
            "\\PC{0,30}",
            "((G|P|I|J|L|S|E|N|R|Z)[|@:]?@[a-z:*()\\[\\\\]{0,6}|and|or|not|\\(|\\)|web[*1]| ){0,12}",
        ],
    ) {
        if let Ok(matcher) = compile(kind, &expression) {
            matcher.matches(&id("web1"));
        }
    }

    #[test]
    fn parentheses_follow_precedence(a in any::<bool>(), b in any::<bool>(), c in any::<bool>()) {
        let word = |hit: bool| if hit { "web*" } else { "db*" };
        let answer = |text: String| compile(TargetType::Compound, &text).unwrap().matches(&id("web1"));
        let (x, y, z) = (word(a), word(b), word(c));
        prop_assert_eq!(answer(format!("{x} or {y} and not {z}")), a || b && !c);
        prop_assert_eq!(answer(format!("( {x} or {y} ) not {z}")), (a || b) && !c);
        prop_assert_eq!(answer(format!("not {x} and {y} or {z}")), !a && b || c);
        prop_assert_eq!(answer(format!("not ( {x} and {y} or {z} )")), !(a && b || c));
    }
}
