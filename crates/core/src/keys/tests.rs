//! The decision table: every known state, same and other key, every policy.

use super::*;

const ONE: &str = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----";
const TWO: &str = "-----BEGIN PUBLIC KEY-----\nBBBB\n-----END PUBLIC KEY-----";

/// What the lists say about the id.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lists {
    Silent,
    Sign,
    Reject,
    SignAndReject,
}

fn policy(lists: Lists) -> Policy {
    let mut policy = Policy::default();
    if matches!(lists, Lists::Sign | Lists::SignAndReject) {
        policy.autosign = IdPatterns::parse("web*");
    }
    if matches!(lists, Lists::Reject | Lists::SignAndReject) {
        policy.autoreject = IdPatterns::parse("web*");
    }
    policy
}

fn with<R>(
    policy: &Policy,
    known: Option<(KeyState, &str)>,
    change: impl FnOnce(&mut Request<'_>),
    then: impl FnOnce(Decision<'_>) -> R,
) -> R {
    let id = MinionId::new("web1").unwrap();
    let mut request = Request {
        id: &id,
        presented: ONE,
        usable: true,
        known,
        grains: None,
        invited: false,
        connected: false,
        connected_count: 0,
        policy,
    };
    change(&mut request);
    then(decide(&request))
}

/// Answer, event and what is recorded, as one line.
fn line(decision: Decision<'_>) -> String {
    let stored = match decision.store {
        None => "nothing".to_owned(),
        Some(Record { state, pem }) => format!("{} {}", state.as_str(), if pem == ONE { "presented" } else { "known" }),
    };
    format!("{:?} {} store {stored}", decision.answer, decision.act.as_str())
}

#[test]
fn every_combination_has_its_decision() {
    use KeyState::{Accepted, Denied, Rejected, Unaccepted};
    use Lists::{Reject, Sign, SignAndReject, Silent};
    // Known key, what the lists say → decision; the last column is with `denied_waits` off.
    type Row = (Option<(KeyState, &'static str)>, Lists, &'static str, &'static str);
    let table: &[Row] = &[
        (None, Silent, "Pending pend store unaccepted presented", ""),
        (None, Sign, "Accepted accept store accepted presented", ""),
        (None, Reject, "Refused reject store rejected presented", ""),
        (None, SignAndReject, "Refused reject store rejected presented", ""),
        (Some((Denied, TWO)), Silent, "Pending pend store unaccepted presented", ""),
        (Some((Denied, ONE)), Silent, "Pending pend store unaccepted presented", ""),
        (Some((Denied, TWO)), Sign, "Accepted accept store accepted presented", ""),
        (Some((Denied, ONE)), Sign, "Accepted accept store accepted presented", ""),
        (Some((Denied, TWO)), Reject, "Refused reject store rejected presented", ""),
        (Some((Denied, ONE)), Reject, "Refused reject store rejected presented", ""),
        (Some((Denied, TWO)), SignAndReject, "Refused reject store rejected presented", ""),
        (Some((Denied, ONE)), SignAndReject, "Refused reject store rejected presented", ""),
        (Some((Accepted, ONE)), Silent, "Accepted accept store nothing", ""),
        (Some((Accepted, ONE)), Sign, "Accepted accept store nothing", ""),
        (Some((Accepted, ONE)), Reject, "Accepted accept store nothing", ""),
        (Some((Accepted, ONE)), SignAndReject, "Accepted accept store nothing", ""),
        (
            Some((Accepted, TWO)),
            Silent,
            "Pending denied store denied presented",
            "Refused denied store denied presented",
        ),
        (Some((Accepted, TWO)), Sign, "Pending denied store denied presented", "Refused denied store denied presented"),
        (
            Some((Accepted, TWO)),
            Reject,
            "Pending denied store denied presented",
            "Refused denied store denied presented",
        ),
        (
            Some((Accepted, TWO)),
            SignAndReject,
            "Pending denied store denied presented",
            "Refused denied store denied presented",
        ),
        (Some((Rejected, ONE)), Silent, "Refused reject store nothing", ""),
        (Some((Rejected, ONE)), Sign, "Refused reject store nothing", ""),
        (Some((Rejected, ONE)), Reject, "Refused reject store nothing", ""),
        (Some((Rejected, ONE)), SignAndReject, "Refused reject store nothing", ""),
        (Some((Rejected, TWO)), Silent, "Refused reject store nothing", ""),
        (Some((Rejected, TWO)), Sign, "Refused reject store nothing", ""),
        (Some((Rejected, TWO)), Reject, "Refused reject store nothing", ""),
        (Some((Rejected, TWO)), SignAndReject, "Refused reject store nothing", ""),
        (Some((Unaccepted, ONE)), Silent, "Pending pend store nothing", ""),
        (Some((Unaccepted, ONE)), Sign, "Accepted accept store accepted presented", ""),
        (Some((Unaccepted, ONE)), Reject, "Refused reject store rejected presented", ""),
        (Some((Unaccepted, ONE)), SignAndReject, "Refused reject store rejected presented", ""),
        (
            Some((Unaccepted, TWO)),
            Silent,
            "Pending denied store denied presented",
            "Refused denied store denied presented",
        ),
        (
            Some((Unaccepted, TWO)),
            Sign,
            "Pending denied store denied presented",
            "Refused denied store denied presented",
        ),
        (Some((Unaccepted, TWO)), Reject, "Refused reject store rejected known", ""),
        (Some((Unaccepted, TWO)), SignAndReject, "Refused reject store rejected known", ""),
    ];
    assert_eq!(table.len(), 4 * (1 + 2 * 4), "every combination is listed");
    for &(known, lists, waiting, refusing) in table {
        let mut policy = policy(lists);
        assert_eq!(with(&policy, known, |_| (), line), waiting, "{known:?} {lists:?}");
        policy.denied_waits = false;
        let expected = if refusing.is_empty() { waiting } else { refusing };
        assert_eq!(with(&policy, known, |_| (), line), expected, "{known:?} {lists:?}, denied does not wait");
        // Open mode skips all of it.
        policy.open_mode = true;
        let stored = if known == Some((Accepted, ONE)) { "nothing" } else { "accepted presented" };
        assert_eq!(
            with(&policy, known, |_| (), line),
            format!("Accepted accept store {stored}"),
            "{known:?}, open mode"
        );
        // A full house comes before everything, unless the minion is in it.
        policy.max_minions = 10;
        let crowd =
            |connected| move |request: &mut Request<'_>| (request.connected_count, request.connected) = (11, connected);
        assert_eq!(with(&policy, known, crowd(false), line), "Full full store nothing");
        assert_eq!(with(&policy, known, crowd(true), line), format!("Accepted accept store {stored}"));
    }
}

#[test]
fn the_limit_is_the_number_of_minions_that_fit() {
    let policy = Policy { max_minions: 10, auto_accept: true, ..Policy::default() };
    let answer = |count| with(&policy, None, |request| request.connected_count = count, |decision| decision.answer);
    assert_eq!((answer(10), answer(11)), (Answer::Accepted, Answer::Full));
}

#[test]
fn each_way_of_signing_accepts_a_new_key() {
    let silent = Policy::default();
    let answer = |policy: &Policy, change: fn(&mut Request<'_>)| with(policy, None, change, |decision| decision.answer);
    assert_eq!(answer(&silent, |_| ()), Answer::Pending);
    assert_eq!(answer(&Policy { auto_accept: true, ..Policy::default() }, |_| ()), Answer::Accepted);
    assert_eq!(answer(&silent, |request| request.invited = true), Answer::Accepted);
    let mut rules = GrainRules::default();
    rules.add("uuid", "1234");
    let by_grain = Policy { autosign_grains: rules, ..Policy::default() };
    for (value, expected) in [("1234", Answer::Accepted), ("999", Answer::Pending)] {
        let grains = Value::map([("uuid", value)]);
        let id = MinionId::new("web1").unwrap();
        let request = Request {
            id: &id,
            presented: ONE,
            usable: true,
            known: None,
            grains: Some(&grains),
            invited: false,
            connected: false,
            connected_count: 0,
            policy: &by_grain,
        };
        assert_eq!(decide(&request).answer, expected);
    }
}

#[test]
fn a_key_that_cannot_be_used_is_never_recorded() {
    for known in
        [None, Some((KeyState::Accepted, TWO)), Some((KeyState::Unaccepted, TWO)), Some((KeyState::Accepted, ONE))]
    {
        for open_mode in [false, true] {
            let policy = Policy { open_mode, ..policy(Lists::Sign) };
            assert_eq!(
                with(&policy, known, |request| request.usable = false, line),
                "Refused error store nothing",
                "{known:?}"
            );
        }
    }
}

#[test]
fn keys_compare_without_regard_to_line_ends() {
    assert!(same_key(ONE, &format!("\n{}\r\n", ONE.replace('\n', "\r\n"))));
    assert!(!same_key(ONE, TWO));
}

#[test]
fn states_read_back_by_name() {
    for state in KeyState::ALL {
        assert_eq!(KeyState::parse(state.as_str()), Some(state));
    }
    assert_eq!(KeyState::parse("pending"), Some(KeyState::Unaccepted));
    assert_eq!(KeyState::parse("all"), None);
}

#[test]
fn events_say_true_only_for_accepted_and_pending() {
    let results = [Act::Accept, Act::Pend, Act::Reject, Act::Denied, Act::Full, Act::Error].map(Act::result);
    assert_eq!(results, [true, true, false, false, false, false]);
}
