//! Which instants of a definition are due, and what is to become of each: pure decisions.

use super::definition::{CatchUp, Definition};
use saltern_core::time::Timestamp;
use std::time::Duration;

/// How late an instant may be and still be on time.
pub(super) const ON_TIME: Duration = Duration::from_secs(60);
/// Most instants looked at in one go.
pub(super) const BATCH: usize = 1_000;

/// An instant that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    pub(super) planned: Timestamp,
    /// The one after it
    pub(super) next: Option<Timestamp>,
    pub(super) verdict: Verdict,
}

/// What is to become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fire {
        late: bool,
    },
    /// Somebody asked that it be left out
    Skip,
    Miss(&'static str),
}

/// The instants that have come, from `first` on, as far as one batch goes.
pub(super) fn due(definition: &Definition, first: Timestamp, now: Timestamp) -> Vec<Instant> {
    let mut fires = definition.cron.fires(first, &definition.zone);
    let mut skip = definition.row.skip_next;
    let (mut due, mut planned) = (Vec::new(), first);
    while planned <= now && due.len() < BATCH {
        let next = fires.next();
        let verdict = if std::mem::take(&mut skip) {
            Verdict::Skip
        } else {
            judge(definition, planned, next.is_none_or(|next| next > now), now)
        };
        due.push(Instant { planned, next, verdict });
        match next {
            Some(next) => planned = next,
            None => break,
        }
    }
    due
}

fn judge(definition: &Definition, planned: Timestamp, is_newest: bool, now: Timestamp) -> Verdict {
    let age = now.since(planned);
    if age <= ON_TIME {
        return Verdict::Fire { late: false };
    }
    match definition.catch_up {
        CatchUp::None => Verdict::Miss("the server was not there in time, and catch-up is none"),
        CatchUp::Once if is_newest => Verdict::Fire { late: true },
        CatchUp::Once => Verdict::Miss("the server was not there in time, and only the newest is caught up with"),
        CatchUp::All if age <= definition.catch_up_limit() => Verdict::Fire { late: true },
        CatchUp::All => Verdict::Miss("the server was not there in time, and it is too old to be caught up with"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::ids::RecurringId;
    use saltern_store::Recurring;

    fn definition(cron: &str, catch_up: &str, limit: i64, skip_next: bool) -> Definition {
        let row = Recurring {
            id: RecurringId(1),
            name: "nightly".into(),
            org: "default".into(),
            entity_kind: "minion".into(),
            entity: "a".into(),
            owner: "root".into(),
            person: String::new(),
            creator: "root".into(),
            what: r#"{"type":"states"}"#.into(),
            cron: cron.into(),
            zone: "UTC".into(),
            seed: "1".into(),
            active: true,
            skip_next,
            spread: 0,
            overlap: "skip".into(),
            catch_up: catch_up.into(),
            catch_up_limit: limit,
            in_window: false,
            deadline: None,
            policy: "{}".into(),
            created: Timestamp(0),
            changed: Timestamp(0),
            version: 1,
            next: None,
        };
        Definition::read(row).unwrap()
    }

    const HOUR: i64 = 3_600;

    /// The verdicts of an hourly definition that was last settled at 0, by hours of downtime.
    fn verdicts(catch_up: &str, limit: i64, hours: i64) -> Vec<Verdict> {
        let now = Timestamp::from_secs(hours * HOUR + 1_800);
        let due = due(&definition("0 * * * *", catch_up, limit, false), Timestamp::from_secs(HOUR), now);
        let whole = |pair: &[Instant]| pair[0].next == Some(pair[1].planned);
        assert!(due.windows(2).all(whole), "no instant is left out: {due:?}");
        assert!(due.last().unwrap().next.unwrap() > now);
        due.into_iter().map(|instant| instant.verdict).collect()
    }

    fn missed(verdicts: &[Verdict]) -> usize {
        verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Miss(_))).count()
    }

    #[test]
    fn scenario_84_catching_up_is_by_the_policy() {
        let late = Verdict::Fire { late: true };
        assert_eq!(missed(&verdicts("none", HOUR, 5)), 5);
        let once = verdicts("once", HOUR, 5);
        assert_eq!((missed(&once), once[4]), (4, late));
        let all = verdicts("all", 3 * HOUR, 5);
        assert_eq!((missed(&all), &all[2..]), (2, &[late; 3][..]));
    }

    #[test]
    fn what_is_on_time_is_not_late_whatever_the_policy() {
        for catch_up in ["none", "once", "all"] {
            let definition = definition("* * * * *", catch_up, 60, false);
            let first = Timestamp::from_secs(60);
            let due = due(&definition, first, first.plus(ON_TIME - Duration::from_secs(1)));
            assert_eq!(due.len(), 1);
            assert_eq!(due[0].verdict, Verdict::Fire { late: false }, "{catch_up}");
        }
    }

    #[test]
    fn the_one_to_be_skipped_is_the_next_one_only() {
        let definition = definition("* * * * * *", "once", 60, true);
        let first = Timestamp::from_secs(60);
        let due = due(&definition, first, first.plus(Duration::from_secs(1)));
        assert_eq!(due[0].verdict, Verdict::Skip);
        assert_eq!(due[1].verdict, Verdict::Fire { late: false });
    }

    #[test]
    fn a_long_absence_is_taken_in_batches_that_never_fire_too_early() {
        let definition = definition("* * * * * *", "once", 60, false);
        let first = Timestamp::from_secs(60);
        let due = due(&definition, first, first.plus(Duration::from_secs(86_400)));
        assert_eq!(due.len(), BATCH);
        assert!(due.iter().all(|instant| matches!(instant.verdict, Verdict::Miss(_))));
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let definition = definition("0 * * * *", "all", HOUR, false);
        assert_eq!(due(&definition, Timestamp::from_secs(HOUR), Timestamp::from_secs(HOUR - 1)), []);
    }
}
