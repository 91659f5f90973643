//! What `run::step` keeps whatever happens in whatever order: a run and its minion, with deliveries, acknowledgements and
//! returns that are lost, late or doubled, and everything a server or a person may throw in between.
//!
//! Not here: what each single input does (`run_table`).

use proptest::collection::vec;
use proptest::prelude::*;
use saltern_core::action::{Offline, Policy, Retry, RetryWhen};
use saltern_core::ids::{Jid, JidSource};
use saltern_core::run::{Input, Outcome, Reason, RunState, Standing, Verdict, WaitingFor, step};
use saltern_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_secs(1_790_000_000);

/// One thing that happens. Numbers choose among what there is to choose from.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The dispatcher takes the run, and the publish reaches the minion or not
    Dispatch { arrives: bool },
    /// The dispatcher gets it wrong: a new job id for what was sent, or one that was used
    DispatchUnder(usize),
    /// A publish that was on its way arrives
    Arrive(usize),
    /// The minion finishes a job it has begun
    Finish { which: usize, good: bool },
    /// An acknowledgement of a job the minion has begun is heard, perhaps late or again
    HearAck(usize),
    /// A return of a job the minion has finished is heard, perhaps late or again
    HearReturn(usize),
    /// The minion is asked, and has nothing of the job
    Ask,
    /// The agent restarts: what it had begun is over
    AgentRestart,
    /// The server restarts: what was not delivered yet is lost
    ServerRestart,
    /// Any other input
    Other(Input),
}

fn other() -> impl Strategy<Value = Input> {
    let waits = prop::sample::select(WaitingFor::ALL.to_vec());
    prop_oneof![
        Just(Input::Unreachable),
        waits.prop_map(|what| Input::Wait(what, None)),
        any::<bool>().prop_map(Input::Settled),
        Just(Input::NotDelivered(false)),
        Just(Input::Gone),
        Just(Input::Deadline),
        Just(Input::TimedOut),
        Just(Input::Stopped),
        Just(Input::Prerequisite),
        Just(Input::NotNeeded),
        Just(Input::Refused),
        Just(Input::OutsideWindow),
        Just(Input::Cancel),
        Just(Input::Budget),
        Just(Input::Fail),
        Just(Input::Retry),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<bool>().prop_map(|arrives| Event::Dispatch { arrives }),
        1 => any::<usize>().prop_map(Event::DispatchUnder),
        2 => any::<usize>().prop_map(Event::Arrive),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, good)| Event::Finish { which, good }),
        2 => any::<usize>().prop_map(Event::HearAck),
        2 => any::<usize>().prop_map(Event::HearReturn),
        2 => Just(Event::Ask),
        1 => Just(Event::AgentRestart),
        1 => Just(Event::ServerRestart),
        // Redelivery is what the rest turns on.
        2 => Just(Event::Other(Input::Redeliver)),
        4 => other().prop_map(Event::Other),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let offline = prop_oneof![
        Just(Offline::Fail),
        Just(Offline::Hold),
        (1_u32..4).prop_map(|tries| Offline::Retry { tries, every: Duration::from_secs(60) }),
    ];
    (1_u32..4, any::<bool>(), offline).prop_map(|(attempts, always, offline)| {
        let when = if always { RetryWhen::Always } else { RetryWhen::NotStarted };
        Policy { retry: Retry { attempts, when, ..Retry::default() }, offline, ..Policy::default() }
    })
}

/// The run, the minion, and what is on its way between them.
struct World {
    policy: Policy,
    run: Standing,
    jids: JidSource,
    /// Publishes that were sent and may still arrive
    on_its_way: Vec<Jid>,
    /// Jobs the minion has started; it keeps a ledger, so none a second time
    started: BTreeSet<Jid>,
    running: BTreeSet<Jid>,
    finished: BTreeMap<Jid, bool>,
    /// Attempts that went into history
    closed: BTreeSet<u32>,
    /// Whether another attempt may follow the newest that was sent
    may_follow: bool,
}

impl World {
    fn new(policy: Policy) -> Self {
        let waiting_for = Some(WaitingFor::Due);
        let run = Standing { state: RunState::Queued, reason: None, waiting_for, attempt: 0, deliveries: 0, jid: None };
        Self {
            policy,
            run,
            jids: JidSource::default(),
            on_its_way: Vec::new(),
            started: BTreeSet::new(),
            running: BTreeSet::new(),
            finished: BTreeMap::new(),
            closed: BTreeSet::new(),
            may_follow: true,
        }
    }

    fn happens(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Dispatch { arrives } => {
                let jid = match self.run.jid {
                    Some(jid) if self.run.deliveries > 0 => jid,
                    _ => self.jids.next(NOW),
                };
                self.dispatch(jid, arrives)
            }
            Event::DispatchUnder(which) => {
                let used = self.run.jid.filter(|_| which % 2 == 0);
                let jid = used.unwrap_or_else(|| self.jids.next(NOW));
                self.dispatch(jid, true)
            }
            Event::Arrive(which) => {
                if let Some(jid) = pick(self.on_its_way.iter(), which) {
                    self.deliver(*jid);
                }
                Ok(())
            }
            Event::Finish { which, good } => {
                if let Some(jid) = pick(self.running.iter(), which).copied() {
                    self.running.remove(&jid);
                    self.finished.insert(jid, good);
                }
                Ok(())
            }
            Event::HearAck(which) => match pick(self.started.iter(), which) {
                Some(jid) => self.input(Input::Ack(*jid)),
                None => Ok(()),
            },
            Event::HearReturn(which) => match pick(self.finished.iter(), which) {
                Some((jid, good)) => {
                    self.input(Input::Return(*jid, Verdict { success: *good, retcode: i64::from(!good) }))
                }
                None => Ok(()),
            },
            Event::Ask => match self.run.jid.filter(|jid| !self.started.contains(jid)) {
                Some(jid) => {
                    // Once it has said that it never had the job, it does not take it any more.
                    self.on_its_way.retain(|sent| *sent != jid);
                    self.input(Input::NotDelivered(true))
                }
                None => Ok(()),
            },
            Event::AgentRestart => {
                self.running.clear();
                self.input(Input::Gone)
            }
            Event::ServerRestart => {
                self.on_its_way.clear();
                Ok(())
            }
            Event::Other(input) => self.input(input),
        }
    }

    fn dispatch(&mut self, jid: Jid, arrives: bool) -> Result<(), TestCaseError> {
        let before = self.run.clone();
        self.input(Input::Claim(jid))?;
        // Only what was claimed is published.
        if self.run != before {
            prop_assert_eq!((self.run.state, self.run.jid), (RunState::Sent, Some(jid)));
            self.on_its_way.push(jid);
            if arrives {
                self.deliver(jid);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, jid: Jid) {
        if self.started.insert(jid) {
            self.running.insert(jid);
        }
    }

    fn input(&mut self, input: Input) -> Result<(), TestCaseError> {
        let before = self.run.clone();
        let Outcome::Change(change) = step(&before, input, &self.policy, NOW) else { return Ok(()) };
        let after = change.standing;
        if change.closes_attempt {
            prop_assert!(self.closed.insert(after.attempt), "attempt {} is closed twice", after.attempt);
        }
        is_sound(&before, input, &after)?;
        self.starts_another_only_if_it_may(&before, input, &after)?;
        self.run = after;
        Ok(())
    }

    fn starts_another_only_if_it_may(
        &mut self,
        before: &Standing,
        input: Input,
        after: &Standing,
    ) -> Result<(), TestCaseError> {
        if let Input::Claim(jid) = input {
            prop_assert_eq!(before.state, RunState::Queued);
            if before.deliveries > 0 {
                prop_assert_eq!((before.jid, before.attempt), (Some(jid), after.attempt), "redelivery keeps its job");
                return Ok(());
            }
            prop_assert!(self.may_follow, "another attempt although the one before may have started");
            prop_assert!(before.jid != Some(jid), "another attempt under the same job id");
            self.may_follow = false;
        }
        if input == Input::Retry {
            self.may_follow = true;
        } else if after.state == RunState::Queued && after.deliveries == 0 && before.deliveries > 0 {
            let is_repeatable = self.policy.retry.when == RetryWhen::Always;
            prop_assert!(is_repeatable || input == Input::NotDelivered(true), "{:?} makes another attempt", input);
            self.may_follow = true;
        }
        Ok(())
    }
}

fn is_sound(before: &Standing, input: Input, after: &Standing) -> Result<(), TestCaseError> {
    let is_bad = matches!(after.state, RunState::Failed | RunState::Cancelled);
    prop_assert_eq!(after.reason.is_some(), is_bad, "a reason is set on what failed and on nothing else");
    prop_assert_eq!(after.waiting_for.is_some(), after.state == RunState::Queued);
    prop_assert!(after.attempt >= before.attempt, "attempts are not counted back");
    if matches!(after.state, RunState::Sent | RunState::PickedUp) {
        prop_assert!(after.deliveries > 0 && after.jid.is_some() && after.attempt > 0);
    }
    if before.state.is_terminal() {
        let was_unsure = matches!(before.reason, Some(Reason::Lost | Reason::NotDelivered));
        let is_truth = matches!(input, Input::Return(jid, _) if before.jid == Some(jid)) && was_unsure;
        prop_assert!(is_truth || input == Input::Retry, "{:?} moved what had ended", input);
    }
    if after.state == RunState::Cancelled {
        prop_assert_eq!((before.state, after.deliveries), (RunState::Queued, 0), "what was sent is not cancelled");
    }
    if input == Input::Deadline {
        prop_assert!(after.state.is_terminal());
    }
    Ok(())
}

fn pick<T>(mut from: impl ExactSizeIterator<Item = T>, which: usize) -> Option<T> {
    let many = from.len();
    from.nth(which.checked_rem(many)?)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_order_of_events_breaks_a_guarantee(policy in policy(), events in vec(event(), 0..60)) {
        let mut world = World::new(policy);
        for event in events {
            world.happens(event)?;
        }
        // Everything ends, and what has ended stays.
        world.input(Input::Deadline)?;
        prop_assert!(world.run.state.is_terminal());
        let ended = world.run.clone();
        for input in [Input::Deadline, Input::Gone, Input::Redeliver, Input::Unreachable, Input::NotDelivered(true)] {
            world.input(input)?;
        }
        prop_assert_eq!(world.run, ended);
    }

    /// Without permission to repeat and without a person, the work is begun at most once, whatever is lost.
    #[test]
    fn the_work_is_begun_once(attempts in 1_u32..5, events in vec(event(), 0..60)) {
        let retry = Retry { attempts, when: RetryWhen::NotStarted, ..Retry::default() };
        let mut world = World::new(Policy { retry, ..Policy::default() });
        for event in events {
            if !matches!(event, Event::Other(Input::Retry)) {
                world.happens(event)?;
            }
        }
        prop_assert!(world.started.len() <= 1, "begun under {:?}", world.started);
        if world.run.state == RunState::Cancelled {
            prop_assert!(world.started.is_empty(), "cancelled, and ran");
        }
    }

    /// What the minion did and told is what the run says, as long as nobody decided otherwise.
    #[test]
    fn a_return_that_is_heard_is_the_truth(
        guesses in vec(prop::sample::select(vec![
            Input::Redeliver, Input::Gone, Input::NotDelivered(false), Input::Deadline, Input::Unreachable,
        ]), 0..6),
        good in any::<bool>(),
    ) {
        let mut world = World::new(Policy::default());
        world.happens(Event::Dispatch { arrives: true })?;
        for guess in guesses {
            world.input(guess)?;
        }
        world.happens(Event::Finish { which: 0, good })?;
        for _ in 0..2 {
            world.happens(Event::HearReturn(0))?;
            let wanted = if good { RunState::Completed } else { RunState::Failed };
            prop_assert_eq!(world.run.state, wanted);
            prop_assert_eq!(world.run.reason, (!good).then_some(Reason::ReturnedError));
        }
    }
}
