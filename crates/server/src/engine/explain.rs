//! Why a run stands where it stands: what it waits for, what was tried, what was heard, what happens next.

use crate::master::{Master, Presence};
use crate::{Error, clock};
use saltern_core::action::Offline;
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::run::{RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_store::{Action, Run};
use std::sync::Arc;

/// Why a run stands where it stands.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Which action
    pub action: ActionId,
    /// On which minion
    pub minion: MinionId,
    /// Where it stands
    pub run: Run,
    /// One sentence on why
    pub why: String,
    /// What has happened, oldest first
    pub facts: Vec<Fact>,
    /// What happens next
    pub next: String,
}

/// One thing that has happened, or is known.
#[derive(Clone, Debug)]
pub struct Fact {
    /// When, if that is known
    pub at: Option<Timestamp>,
    /// What
    pub what: String,
}

impl Master {
    /// Explains one run.
    pub(crate) async fn explain(
        self: &Arc<Self>,
        action: &Action,
        minion: &MinionId,
    ) -> Result<Option<Explanation>, Error> {
        let Some(run) = self.store.run(action.id, minion).await? else { return Ok(None) };
        let mut facts = vec![Fact {
            at: Some(action.new.created),
            what: format!(
                "asked for by {} ({}), due {}",
                action.new.initiator,
                action.new.name,
                action.new.due.rfc3339()
            ),
        }];
        for attempt in self.store.attempts(action.id, minion).await? {
            let jid = attempt.jid.map_or_else(|| "nothing was sent".to_owned(), |jid| format!("job {jid}"));
            let how = attempt.reason.map_or("over", |reason| reason.as_str());
            let message = attempt.message.map(|message| format!(": {message}")).unwrap_or_default();
            facts.push(Fact {
                at: attempt.ended.or(attempt.sent),
                what: format!("attempt {} ({jid}) {how}{message}", attempt.number),
            });
        }
        if let (Some(sent), Some(jid)) = (run.sent, run.jid) {
            let times =
                if run.deliveries > 1 { format!(", published {} times", run.deliveries) } else { String::new() };
            facts.push(Fact { at: Some(sent), what: format!("attempt {} was sent as job {jid}{times}", run.attempt) });
        }
        if let Some(at) = run.picked_up {
            facts.push(Fact { at: Some(at), what: "the minion said that it has begun".into() });
        }
        facts.extend(self.heard_of(action.id, minion));
        facts.push(self.presence_of(minion));
        if let Some(paused) = &action.paused {
            let why = if paused.why.is_empty() { String::new() } else { format!(": {}", paused.why) };
            facts.push(Fact { at: Some(paused.at), what: format!("the action was paused by {}{why}", paused.by) });
        }
        if let Some(at) = run.ended {
            let code = run.retcode.map(|code| format!(", exit code {code}")).unwrap_or_default();
            facts.push(Fact { at: Some(at), what: format!("it ended: {}{code}", run.state.as_str()) });
        }
        if run.late {
            let what = if run.state == RunState::Cancelled {
                "it ran anyway: a return came later"
            } else {
                "a return came after it had ended"
            };
            facts.push(Fact { at: None, what: what.into() });
        }
        let mut explanation = Explanation {
            action: action.id,
            minion: minion.clone(),
            why: why(action, &run),
            next: next(action, &run, clock::now()),
            facts,
            run,
        };
        let run = &explanation.run;
        if (run.state, run.waiting_for) == (RunState::Queued, Some(WaitingFor::Window)) && action.paused.is_none() {
            explanation.why = self.windows.why_waiting(minion, run.due, clock::now());
        }
        self.explain_step(action, &mut explanation).await?;
        Ok(Some(explanation))
    }

    /// What is known in memory of a run in progress.
    fn heard_of(&self, action: ActionId, minion: &MinionId) -> Vec<Fact> {
        let mut tracker = self.engine.tracker();
        let Some(run) = tracker.get_mut(action, minion) else { return Vec::new() };
        let mut facts = Vec::new();
        if let Some(asked) = run.asked {
            let what = match run.strikes {
                0 => "it was asked whether it still runs it",
                _ => "it was asked, and said that it does not run it",
            };
            facts.push(Fact { at: Some(asked), what: what.into() });
        }
        if run.stopping {
            facts.push(Fact { at: None, what: "the minion was told to kill it".into() });
        }
        facts
    }

    fn presence_of(&self, minion: &MinionId) -> Fact {
        let presence = self.member(minion.as_str()).map(|member| {
            let facts = member.facts();
            (facts.presence, facts.last_seen)
        });
        match presence {
            None => Fact { at: None, what: "the minion is not accepted any more".into() },
            Some((Presence::Present(since), _)) => {
                Fact { at: Some(since), what: "the minion is connected since then".into() }
            }
            Some((Presence::Absent(since), _)) => {
                Fact { at: Some(since), what: "the minion is not connected since then".into() }
            }
            Some((Presence::Unknown, seen)) => {
                Fact { at: Some(seen), what: "the minion was last seen then, before the server started".into() }
            }
        }
    }
}

fn why(action: &Action, run: &Run) -> String {
    let message = || run.message.clone().map(|message| format!(": {message}")).unwrap_or_default();
    match (run.state, run.waiting_for) {
        (RunState::Queued, _) if action.paused.is_some() => "it waits because the action is paused".into(),
        (RunState::Queued, Some(what)) => match what {
            WaitingFor::Due => format!("it waits until it is due, {}", action.new.due.rfc3339()),
            WaitingFor::Window => "it waits until the minion may be changed".into(),
            WaitingFor::Offline => "it waits for the minion, which is not connected".into(),
            WaitingFor::Slot => "it waits for a free place: as many as may run at once are running".into(),
            WaitingFor::Rate => "it waits because no more runs may be started this second (start_rate)".into(),
            WaitingFor::Wave => "it waits for the wave before it, or for its soak time".into(),
            WaitingFor::EarlierStep => "it waits for an earlier step of its chain".into(),
            WaitingFor::Approval => "it waits for somebody's approval".into(),
            WaitingFor::Paused => "it waits because the action is paused".into(),
            WaitingFor::Backoff => "the attempt before failed, and it waits before the next".into(),
            WaitingFor::Redelivery => {
                "nothing was heard of it, and it is about to be sent again under the same job id".into()
            }
            WaitingFor::Facts => "it waits until something is known of the minion that has to be known first".into(),
            WaitingFor::Chain => "it waits for another chain that is under way on this minion".into(),
            WaitingFor::Barrier => "it waits until the step before has ended on enough minions".into(),
            WaitingFor::Overlap => "it waits until the time before it has ended on this minion".into(),
        },
        (RunState::Queued, None) => "it is about to be sent".into(),
        (RunState::Sent, _) => "it was sent, and the minion has not said anything yet".into(),
        (RunState::PickedUp, _) => "the minion is at it".into(),
        (RunState::Completed, _) => format!("it is done{}", message()),
        (RunState::Failed, _) => format!("it failed, {}{}", run.reason.map_or("", |reason| reason.as_str()), message()),
        (RunState::Cancelled, _) => format!("it was cancelled{}", message()),
    }
}

fn next(action: &Action, run: &Run, now: Timestamp) -> String {
    let deadline = action.new.deadline.rfc3339();
    let due = run.due.filter(|due| *due > now).map(|due| format!("looked at again {}", due.rfc3339()));
    match run.state {
        RunState::Queued => match (run.waiting_for, action.new.policy.offline) {
            _ if action.paused.is_some() => {
                format!("`saltern action resume {}` lets it go on; it ends {deadline}", action.id)
            }
            (Some(WaitingFor::Offline), Offline::Hold) => format!("sent when the minion is back, or ended {deadline}"),
            _ => due.map_or_else(
                || format!("sent as soon as it may be, or ended {deadline}"),
                |due| format!("{due}, or ended {deadline}"),
            ),
        },
        RunState::Sent => format!("sent again or asked about if nothing is heard; ended {deadline} at the latest"),
        RunState::PickedUp => format!("its return; asked about if it is silent; ended {deadline} at the latest"),
        RunState::Completed | RunState::Failed | RunState::Cancelled => {
            format!("nothing by itself; `saltern action retry {} --minion {}` does it again", action.id, run.minion)
        }
    }
}
