//! What becomes of recurring actions when their owner, or what they are done on, is removed.
//!
//! None may go on for somebody who gets the same name later: they pass to an heir, or they stop.

use crate::Result;
use crate::db::{Effects, Locking, Tx, locking, params};
use crate::events::NewEvent;
use saltern_core::ids::{MinionId, RecurringId};

/// Words the events of recurring actions that have another owner once it is known which they are.
pub type HeirEvents = Box<dyn Fn(&[RecurringId]) -> Vec<NewEvent> + Send>;

/// Who takes over the recurring actions of a user that is removed.
pub struct Heir {
    /// His name
    pub owner: String,
    /// What his rights are made of each time, as JSON text
    pub person: String,
    /// What is told of those that he takes over; not asked if there are none
    pub events: HeirEvents,
}

const THOSE_OF: Locking = locking!("SELECT id FROM recurring WHERE owner = ?1 ORDER BY id");
// It would run with the rights of another from now on: that is for him to decide.
const TAKE_OVER: &str = "UPDATE recurring SET owner = ?2, person = ?3, active = 0, next = NULL, version = version + 1 \
    WHERE id = ?1";
const STOP: &str = "UPDATE recurring SET active = 0, next = NULL, version = version + 1 WHERE id = ?1";
const STOP_ON: &str = "UPDATE recurring SET active = 0, next = NULL, version = version + 1 \
    WHERE entity_kind = ?1 AND entity = ?2 AND active = 1";

/// Gives the recurring actions of a user to his heir, who lets them go on when he has looked at them.
pub(crate) async fn hand_over(tx: &Tx<'_>, effects: &mut Effects, owner: &str, heir: Option<&Heir>) -> Result<()> {
    let rows = tx.query_locking(&THOSE_OF, params![owner]).await?;
    let ids = rows.iter().map(|row| row.int(0).map(RecurringId)).collect::<Result<Vec<_>>>()?;
    if ids.is_empty() {
        return Ok(());
    }
    match heir {
        Some(Heir { owner, person, events }) => {
            tx.execute_many(TAKE_OVER, ids.iter().map(|id| params![*id, owner, person]).collect()).await?;
            effects.log(&events(&ids));
        }
        None => drop(tx.execute_many(STOP, ids.into_iter().map(|id| params![id]).collect()).await?),
    }
    Ok(())
}

/// Stops what recurs on a minion that is gone.
pub(crate) async fn forget_minion(tx: &Tx<'_>, minion: &MinionId) -> Result<()> {
    tx.execute(STOP_ON, params!["minion", minion]).await.map(drop)
}

/// Stops what recurs on a group that is gone.
pub(crate) async fn forget_group(tx: &Tx<'_>, group: &str) -> Result<()> {
    tx.execute(STOP_ON, params!["group", group]).await.map(drop)
}
