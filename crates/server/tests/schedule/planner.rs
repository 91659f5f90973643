//! Definitions whose instants lie in the past, and the proof that each instant was accounted for once.

use crate::house::{House, caller};
use crate::ledger::Ledger;
use saltern_calendar::cron::Cron;
use saltern_calendar::zone::Zone;
use saltern_core::ids::{MinionId, RecurringId};
use saltern_core::time::Timestamp;
use saltern_server::app::{CatchUp, EntityKind, EntityRef, Overlap, RecurringDraft, RecurringWhat};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A definition, and the first instant that is to be accounted for.
pub(crate) struct Planned {
    pub(crate) id: RecurringId,
    pub(crate) cron: Cron,
    pub(crate) zone: Zone,
    pub(crate) first: Timestamp,
}

pub(crate) fn now() -> Timestamp {
    saltern_server::clock::now()
}

pub(crate) fn ping() -> RecurringWhat {
    RecurringWhat::read(r#"{"type":"function","params":{"fun":"test.ping"}}"#).unwrap()
}

pub(crate) fn on_minion(id: &str) -> EntityRef {
    EntityRef::new(EntityKind::Minion, id)
}

/// A ping on the minion `a`, which is away: an action is made each time, whatever became of the last one.
pub(crate) fn on_a(name: &str, cron: &str) -> RecurringDraft {
    let draft = RecurringDraft::new(name, on_minion("a"), ping(), cron);
    RecurringDraft { overlap: Overlap::Allow, catch_up: CatchUp::All, ..draft }
}

impl House {
    pub(crate) async fn define(&self, draft: RecurringDraft) -> RecurringId {
        self.app().create_recurring(&caller(), draft).await.unwrap().recurring.id
    }

    /// The minion `a` is known, and away.
    pub(crate) async fn knows_a(&self) {
        self.app().make_keys(&caller(), Some(&MinionId::new("a").unwrap()), None, false).await.unwrap();
    }

    /// Has the definitions looked at: one more was made.
    pub(crate) async fn knock(&self) {
        let nobody = EntityRef::new(EntityKind::Target, "nobody");
        let draft = RecurringDraft::new(format!("knock {}", now().0), nobody, ping(), "@yearly");
        self.define(RecurringDraft { active: false, ..draft }).await;
    }

    /// A definition that is not active yet.
    pub(crate) async fn plan(&self, draft: RecurringDraft, ago: Duration) -> Planned {
        let (cron, zone) = (Cron::parse(&draft.cron, "").unwrap(), Zone::parse(&draft.zone).unwrap());
        let first = cron.next(now().minus(ago), &zone).unwrap();
        let id = self.define(RecurringDraft { active: false, ..draft }).await;
        Planned { id, cron, zone, first }
    }
}

/// Lets the definitions fire from their first instants on, all at once.
pub(crate) async fn activate(ledger: &Ledger, plans: &[Planned]) {
    let one =
        |plan: &Planned| format!("UPDATE recurring SET active = 1, next = {} WHERE id = {}", plan.first.0, plan.id);
    ledger.change(&plans.iter().map(one).collect::<Vec<_>>().join("; ")).await;
}

/// Every instant of every definition from its first to its newest has one row, and has fired as one action; nobody has made
/// an action without a row; and next is what follows the newest.
pub(crate) async fn prove(ledger: &Ledger, plans: &[Planned]) {
    let mut accounted: BTreeMap<i64, Vec<Timestamp>> = BTreeMap::new();
    let mut fired = BTreeSet::new();
    let rows = "SELECT recurring, planned, CAST(CASE WHEN outcome = 'fired' THEN 1 ELSE 0 END AS BIGINT), \
        coalesce(action, 0) FROM fires ORDER BY recurring, planned";
    for [recurring, planned, is_fired, action] in ledger.rows(rows).await {
        assert_eq!(is_fired, 1, "recurring action {recurring} at {}", Timestamp(planned).rfc3339());
        assert!(fired.insert((recurring, action)), "action {action} is of two instants");
        accounted.entry(recurring).or_default().push(Timestamp(planned));
    }
    let actions = "SELECT recurring, id FROM actions WHERE recurring IS NOT NULL";
    let made: Vec<(i64, i64)> = ledger.rows(actions).await.into_iter().map(|[recurring, id]| (recurring, id)).collect();
    assert_eq!(made.len(), fired.len(), "one action for each instant");
    assert_eq!(made.into_iter().collect::<BTreeSet<_>>(), fired);
    let next: BTreeMap<i64, Timestamp> = ledger
        .rows("SELECT id, next FROM recurring WHERE next IS NOT NULL")
        .await
        .into_iter()
        .map(|[id, next]| (id, Timestamp(next)))
        .collect();
    for plan in plans {
        let instants = accounted.remove(&plan.id.0).unwrap_or_default();
        let by_cron = std::iter::once(plan.first).chain(plan.cron.fires(plan.first, &plan.zone));
        let mut by_cron = by_cron.take(instants.len() + 1).collect::<Vec<_>>();
        assert_eq!(by_cron.pop(), next.get(&plan.id.0).copied(), "what is next of {}", plan.id);
        assert_eq!(instants, by_cron, "the instants of {}", plan.id);
    }
    assert_eq!(accounted, BTreeMap::new(), "of nobody");
}
