//! The whole table of `run::step`: every standing, every input, what becomes of it.
//!
//! A cell is the state after the input with its reason or what it waits for; `-` nothing, `late` the return is kept and the
//! status stays, `no:…` the verb is refused. `#a.d` follows where attempt or deliveries change, `+` where the attempt goes
//! into history.

use saltern_core::action::{Offline, Policy, Retry, RetryWhen};
use saltern_core::ids::Jid;
use saltern_core::run::{
    Change, Input, OFFLINE_GRACE, Outcome, Reason, Refusal, RunState, Standing, Verdict, WaitingFor, step,
};
use saltern_core::time::Timestamp;
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_secs(1_790_000_000);

const TABLE: &str = "
| new                   | again                 | resend                | sent                  | picked_up             | completed        | lost                  | stopped          | cancelled
claim own         | sent #1.1             | -                     | sent #1.2             | -                     | -                     | -                | -                     | -                | -
claim other       | sent #1.1             | sent #2.1             | -                     | -                     | -                     | -                | -                     | -                | -
ack own           | -                     | picked_up #2.1        | picked_up             | picked_up             | -                     | -                | -                     | -                | -
ack other         | -                     | -                     | -                     | -                     | -                     | -                | -                     | -                | -
good own          | late                  | completed             | completed             | completed             | completed             | late             | completed             | late             | late
good other        | late                  | late                  | late                  | late                  | late                  | late             | late                  | late             | late
bad own           | late                  | failed:returned_error | failed:returned_error | failed:returned_error | failed:returned_error | late             | failed:returned_error | late             | late
bad other         | late                  | late                  | late                  | late                  | late                  | late             | late                  | late             | late
accepted own      | -                     | picked_up #2.1        | picked_up             | picked_up             | -                     | -                | -                     | -                | -
accepted other    | -                     | -                     | -                     | -                     | -                     | -                | -                     | -                | -
settled true      | -                     | -                     | completed             | completed             | completed             | -                | -                     | -                | -
settled false     | -                     | -                     | failed:lost           | failed:lost           | failed:lost           | -                | -                     | -                | -
unreachable       | queued:offline        | queued:offline        | queued:offline        | -                     | -                     | -                | -                     | -                | -
wait slot         | queued:slot           | queued:slot           | queued:slot           | -                     | -                     | -                | -                     | -                | -
redeliver         | -                     | -                     | -                     | queued:redelivery     | -                     | -                | -                     | -                | -
not started true  | -                     | -                     | -                     | queued:backoff #1.0+  | -                     | -                | -                     | -                | -
not started false | -                     | -                     | -                     | failed:not_delivered  | -                     | -                | -                     | -                | -
gone              | -                     | -                     | -                     | failed:not_delivered  | failed:lost           | -                | -                     | -                | -
deadline          | failed:expired        | failed:expired        | failed:not_delivered  | failed:not_delivered  | failed:lost           | -                | -                     | -                | -
timed out         | -                     | -                     | -                     | failed:timed_out      | failed:timed_out      | -                | -                     | -                | -
stopped           | -                     | -                     | failed:stopped        | failed:stopped        | failed:stopped        | -                | -                     | -                | -
prerequisite      | failed:prerequisite   | failed:prerequisite   | -                     | -                     | -                     | -                | -                     | -                | -
not needed        | cancelled:not_needed  | cancelled:not_needed  | -                     | -                     | -                     | -                | -                     | -                | -
refused           | failed:refused        | failed:refused        | -                     | -                     | -                     | -                | -                     | -                | -
outside window    | failed:window         | failed:window         | -                     | -                     | -                     | -                | -                     | -                | -
cancel            | cancelled:cancelled   | cancelled:cancelled   | no:sent               | no:sent               | no:sent               | no:ended         | no:ended              | no:ended         | no:ended
budget            | cancelled:budget      | cancelled:budget      | no:sent               | no:sent               | no:sent               | no:ended         | no:ended              | no:ended         | no:ended
fail              | failed:failed_by_hand | failed:failed_by_hand | failed:failed_by_hand | failed:failed_by_hand | failed:failed_by_hand | no:ended         | no:ended              | no:ended         | no:ended
retry             | no:open               | no:open               | no:open               | no:open               | no:open               | queued:due #1.0+ | queued:due #1.0+      | queued:due #1.0+ | queued:due
";

#[test]
fn every_input_in_every_standing() {
    let actual = render(&Policy::default());
    let lines = |text: &str| text.trim().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&actual), lines(TABLE), "the table is\n{actual}");
}

#[test]
fn only_reasons_that_nobody_was_sure_of_yield_to_a_late_return() {
    for reason in Reason::ALL {
        let state = match reason {
            Reason::Cancelled | Reason::Budget | Reason::NotNeeded => RunState::Cancelled,
            _ => RunState::Failed,
        };
        let run = Standing { reason: Some(reason), ..sent_as(state) };
        let yields = matches!(reason, Reason::Lost | Reason::NotDelivered);
        for (verdict, state, reason) in
            [(GOOD, RunState::Completed, None), (BAD, RunState::Failed, Some(Reason::ReturnedError))]
        {
            match step(&run, Input::Return(mine(), verdict), &Policy::default(), NOW) {
                Outcome::Change(change) if yields => {
                    assert_eq!(change.standing, Standing { state, reason, ..run.clone() })
                }
                outcome => assert!(!yields && outcome == Outcome::Late, "{:?}: {outcome:?}", run.reason),
            }
        }
    }
}

#[test]
fn what_ended_is_moved_by_nothing_automatic() {
    for reason in Reason::ALL {
        let run = Standing { reason: Some(reason), ..sent_as(RunState::Failed) };
        for (name, input) in inputs() {
            let outcome = step(&run, input, &Policy::default(), NOW);
            let may_change = matches!(input, Input::Return(..) | Input::Retry);
            assert!(may_change || !matches!(outcome, Outcome::Change(_)), "{reason:?} {name}: {outcome:?}");
        }
    }
}

#[test]
fn another_attempt_needs_proof_or_permission_and_one_that_is_left() {
    use RetryWhen::{Always, NotStarted};
    let cases = [
        // input, state, may be done twice, what it is otherwise
        (Input::NotDelivered(true), RunState::Sent, [true, true], Reason::NotDelivered),
        (Input::NotDelivered(false), RunState::Sent, [false, true], Reason::NotDelivered),
        (Input::Gone, RunState::Sent, [false, true], Reason::NotDelivered),
        (Input::Gone, RunState::PickedUp, [false, true], Reason::Lost),
        (Input::Return(mine(), BAD), RunState::Sent, [false, true], Reason::ReturnedError),
        (Input::Return(mine(), BAD), RunState::PickedUp, [false, true], Reason::ReturnedError),
        (Input::TimedOut, RunState::PickedUp, [false, false], Reason::TimedOut),
        (Input::Deadline, RunState::PickedUp, [false, false], Reason::Lost),
        (Input::Stopped, RunState::PickedUp, [false, false], Reason::Stopped),
    ];
    for (input, state, may, reason) in cases {
        for (when, may) in [NotStarted, Always].into_iter().zip(may) {
            for attempt in [1, 2, 3] {
                let retry = Retry { attempts: 3, when, ..Retry::default() };
                let policy = Policy { retry, ..Policy::default() };
                let run = Standing { attempt, ..sent_as(state) };
                let after = changed(step(&run, input, &policy, NOW));
                let wanted = if may && attempt < 3 {
                    let standing = Standing {
                        state: RunState::Queued,
                        waiting_for: Some(WaitingFor::Backoff),
                        deliveries: 0,
                        jid: run.jid.filter(|_| reason != Reason::ReturnedError),
                        ..run.clone()
                    };
                    let due = Some(NOW.plus(retry.pause_after(attempt)));
                    Change { standing, due, closes_attempt: true }
                } else {
                    let standing = Standing { state: RunState::Failed, reason: Some(reason), ..run.clone() };
                    Change { standing, due: None, closes_attempt: false }
                };
                assert_eq!(after, wanted, "{input:?} {state:?} {when:?} attempt {attempt}");
            }
        }
    }
}

#[test]
fn a_minion_that_is_away_is_given_a_moment_by_default() {
    let run = new();
    let first = changed(step(&run, Input::Unreachable, &Policy::default(), NOW));
    assert_eq!((first.standing.waiting_for, first.due), (Some(WaitingFor::Offline), Some(NOW.plus(OFFLINE_GRACE))));
    let second = changed(step(&first.standing, Input::Unreachable, &Policy::default(), NOW));
    assert_eq!((second.standing.state, second.standing.reason), (RunState::Failed, Some(Reason::Offline)));
}

#[test]
fn a_minion_that_is_away_is_tried_so_often_so_far_apart() {
    let every = Duration::from_secs(300);
    let policy = Policy { offline: Offline::Retry { tries: 2, every }, ..Policy::default() };
    let mut run = new();
    for attempt in [1, 2] {
        let change = changed(step(&run, Input::Unreachable, &policy, NOW));
        assert_eq!((change.standing.attempt, change.due), (attempt, Some(NOW.plus(every))));
        run = change.standing;
    }
    assert_eq!(changed(step(&run, Input::Unreachable, &policy, NOW)).standing.reason, Some(Reason::Offline));
}

#[test]
fn a_minion_that_is_away_is_waited_for_without_a_due_time() {
    let policy = Policy { offline: Offline::Hold, ..Policy::default() };
    let change = changed(step(&new(), Input::Unreachable, &policy, NOW));
    assert_eq!((change.standing.waiting_for, change.due), (Some(WaitingFor::Offline), None));
    let over = changed(step(&change.standing, Input::Deadline, &policy, NOW));
    assert_eq!((over.standing.state, over.standing.reason), (RunState::Failed, Some(Reason::Offline)));
}

#[test]
fn what_was_sent_once_is_not_called_offline() {
    for policy in [Policy::default(), Policy { offline: Offline::Hold, ..Policy::default() }] {
        let away = Standing { waiting_for: Some(WaitingFor::Offline), ..resend() };
        let over = changed(step(&away, Input::Deadline, &policy, NOW));
        assert_eq!(over.standing.reason, Some(Reason::NotDelivered));
    }
    let given_up = Standing { waiting_for: Some(WaitingFor::Offline), ..resend() };
    let over = changed(step(&given_up, Input::Unreachable, &Policy::default(), NOW));
    assert_eq!(over.standing.reason, Some(Reason::NotDelivered), "its return would still count");
}

#[test]
fn a_wait_says_what_for_and_until_when() {
    for what in WaitingFor::ALL {
        for until in [None, Some(NOW.plus(Duration::from_secs(60)))] {
            let change = changed(step(&new(), Input::Wait(what, until), &Policy::default(), NOW));
            assert_eq!(change.standing, Standing { waiting_for: Some(what), ..new() });
            assert_eq!((change.due, change.closes_attempt), (until, false));
        }
    }
}

#[test]
fn what_is_sent_again_is_due_at_once() {
    let resent = changed(step(&sent_as(RunState::Sent), Input::Redeliver, &Policy::default(), NOW));
    assert_eq!(resent.due, Some(NOW));
    let retried = changed(step(&sent_as(RunState::Completed), Input::Retry, &Policy::default(), NOW));
    assert_eq!(retried.due, Some(NOW));
}

#[test]
fn an_attempt_goes_into_history_once() {
    let always = Retry { when: RetryWhen::Always, ..Retry::default() };
    let every = Duration::from_secs(1);
    let policy = Policy { retry: always, offline: Offline::Retry { tries: 5, every }, ..Policy::default() };
    // It is in history since it became queued again.
    assert!(!changed(step(&again(), Input::Return(mine(), BAD), &policy, NOW)).closes_attempt);
    let tried = changed(step(&again(), Input::Unreachable, &policy, NOW));
    assert_eq!((tried.standing.attempt, tried.closes_attempt), (2, true), "a try is a number of its own");
    let waits = changed(step(&resend(), Input::Unreachable, &policy, NOW));
    assert_eq!((waits.standing.attempt, waits.closes_attempt), (1, false), "what was sent is still out");
    let cancelled = changed(step(&again(), Input::Cancel, &policy, NOW)).standing;
    assert!(!changed(step(&cancelled, Input::Retry, &policy, NOW)).closes_attempt);
    // Its job begins after all: that is the next attempt, which can be closed in its turn.
    let begun = changed(step(&again(), Input::Ack(mine()), &policy, NOW)).standing;
    assert_eq!((begun.attempt, begun.deliveries), (2, 1));
    assert!(changed(step(&begun, Input::Gone, &policy, NOW)).closes_attempt);
}

#[test]
fn what_is_still_heard_of_a_job_does_not_pass_for_the_next() {
    let always = Retry { when: RetryWhen::Always, ..Retry::default() };
    let policy = Policy { retry: always, ..Policy::default() };
    let asked = changed(step(
        &Standing { reason: Some(Reason::Lost), ..sent_as(RunState::Failed) },
        Input::Retry,
        &policy,
        NOW,
    ));
    let failed = changed(step(&sent_as(RunState::PickedUp), Input::Return(mine(), BAD), &policy, NOW));
    for run in [asked.standing, failed.standing] {
        assert_eq!(step(&run, Input::Ack(mine()), &policy, NOW), Outcome::Nothing);
        assert_eq!(step(&run, Input::Accepted(mine()), &policy, NOW), Outcome::Nothing);
        assert_eq!(step(&run, Input::Return(mine(), GOOD), &policy, NOW), Outcome::Late);
        assert_eq!(step(&run, Input::Return(mine(), BAD), &policy, NOW), Outcome::Late);
    }
}

const GOOD: Verdict = Verdict { success: true, retcode: 0 };
const BAD: Verdict = Verdict { success: false, retcode: 3 };

fn mine() -> Jid {
    Jid::at(NOW)
}

fn other() -> Jid {
    Jid::at(NOW.plus(Duration::from_secs(1)))
}

/// Nothing was ever sent.
fn new() -> Standing {
    let waiting_for = Some(WaitingFor::Due);
    Standing { state: RunState::Queued, reason: None, waiting_for, attempt: 0, deliveries: 0, jid: None }
}

/// An attempt is over, and the next waits.
fn again() -> Standing {
    Standing { waiting_for: Some(WaitingFor::Backoff), attempt: 1, jid: Some(mine()), ..new() }
}

/// Sent, and waiting to be sent again under the same job id.
fn resend() -> Standing {
    Standing { waiting_for: Some(WaitingFor::Redelivery), deliveries: 1, ..again() }
}

fn sent_as(state: RunState) -> Standing {
    Standing { state, waiting_for: None, ..resend() }
}

fn standings() -> Vec<(&'static str, Standing)> {
    let ended = |state, reason| Standing { reason: Some(reason), ..sent_as(state) };
    vec![
        ("new", new()),
        ("again", again()),
        ("resend", resend()),
        ("sent", sent_as(RunState::Sent)),
        ("picked_up", sent_as(RunState::PickedUp)),
        ("completed", sent_as(RunState::Completed)),
        ("lost", ended(RunState::Failed, Reason::Lost)),
        ("stopped", ended(RunState::Failed, Reason::Stopped)),
        (
            "cancelled",
            Standing { state: RunState::Cancelled, reason: Some(Reason::Cancelled), waiting_for: None, ..new() },
        ),
    ]
}

fn inputs() -> Vec<(String, Input)> {
    let jobs = [mine(), other()];
    let of_jobs = |make: fn(Jid) -> Input| jobs.map(make);
    let mut inputs = Vec::new();
    inputs.extend(of_jobs(Input::Claim));
    inputs.extend(of_jobs(Input::Ack));
    inputs.extend(of_jobs(|jid| Input::Return(jid, GOOD)));
    inputs.extend(of_jobs(|jid| Input::Return(jid, BAD)));
    inputs.extend(of_jobs(Input::Accepted));
    inputs.extend([Input::Settled(true), Input::Settled(false)]);
    inputs.extend([Input::Unreachable, Input::Wait(WaitingFor::Slot, None), Input::Redeliver]);
    inputs.extend([Input::NotDelivered(true), Input::NotDelivered(false)]);
    inputs.extend([Input::Gone, Input::Deadline, Input::TimedOut, Input::Stopped, Input::Prerequisite]);
    inputs.extend([Input::NotNeeded, Input::Refused, Input::OutsideWindow]);
    inputs.extend([Input::Cancel, Input::Budget, Input::Fail, Input::Retry]);
    inputs.into_iter().map(|input| (name(input), input)).collect()
}

/// Names every input; one that is new does not compile until it is here, and then belongs into `inputs`.
fn name(input: Input) -> String {
    let of = |jid: Jid| if jid == mine() { "own" } else { "other" };
    match input {
        Input::Claim(jid) => format!("claim {}", of(jid)),
        Input::Ack(jid) => format!("ack {}", of(jid)),
        Input::Return(jid, verdict) => format!("{} {}", if verdict.success { "good" } else { "bad" }, of(jid)),
        Input::Accepted(jid) => format!("accepted {}", of(jid)),
        Input::Settled(good) => format!("settled {good}"),
        Input::Unreachable => "unreachable".into(),
        Input::Wait(what, _) => format!("wait {}", what.as_str()),
        Input::Redeliver => "redeliver".into(),
        Input::NotDelivered(proven) => format!("not started {proven}"),
        Input::Gone => "gone".into(),
        Input::Deadline => "deadline".into(),
        Input::TimedOut => "timed out".into(),
        Input::Stopped => "stopped".into(),
        Input::Prerequisite => "prerequisite".into(),
        Input::NotNeeded => "not needed".into(),
        Input::Refused => "refused".into(),
        Input::OutsideWindow => "outside window".into(),
        Input::Cancel => "cancel".into(),
        Input::Budget => "budget".into(),
        Input::Fail => "fail".into(),
        Input::Retry => "retry".into(),
    }
}

fn render(policy: &Policy) -> String {
    let standings = standings();
    let mut rows =
        vec![std::iter::once("").chain(standings.iter().map(|(name, _)| *name)).map(str::to_owned).collect()];
    for (name, input) in inputs() {
        let mut row: Vec<String> = vec![name];
        row.extend(standings.iter().map(|(_, run)| cell(run, step(run, input, policy, NOW))));
        rows.push(row);
    }
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=standings.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect::<Vec<_>>().join(" | ")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cell(before: &Standing, outcome: Outcome) -> String {
    match outcome {
        Outcome::Nothing => "-".into(),
        Outcome::Late => "late".into(),
        Outcome::Refused(Refusal::Sent) => "no:sent".into(),
        Outcome::Refused(Refusal::Ended) => "no:ended".into(),
        Outcome::Refused(Refusal::Open) => "no:open".into(),
        Outcome::Change(Change { standing, closes_attempt, .. }) => {
            let why = standing.reason.map(Reason::as_str).or(standing.waiting_for.map(WaitingFor::as_str));
            let why = why.map(|why| format!(":{why}")).unwrap_or_default();
            let counts = (standing.attempt, standing.deliveries);
            let counts = if counts == (before.attempt, before.deliveries) {
                String::new()
            } else {
                format!(" #{}.{}", counts.0, counts.1)
            };
            format!("{}{why}{counts}{}", standing.state.as_str(), if closes_attempt { "+" } else { "" })
        }
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a helper of tests, outside of any that the lint would see")]
fn changed(outcome: Outcome) -> Change {
    match outcome {
        Outcome::Change(change) => change,
        other => panic!("no change but {other:?}"),
    }
}
