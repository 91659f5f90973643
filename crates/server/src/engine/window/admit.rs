//! What admission asks: whether each minion's window is open when its run is due, and what becomes of those whose is not.

use super::super::admission::Request;
use super::Opening;
use crate::master::{Master, Member};
use crate::{Error, clock};
use saltern_core::access::{Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_store::AuditEntry;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most minions named in a refusal.
const NAMED: usize = 5;
/// Longest reason of somebody who does not ask windows, in bytes.
const LONGEST_REASON: usize = 1_000;

/// What was found.
pub(in crate::engine) struct Fitted {
    /// Minions whose runs were moved to when their windows open
    pub(in crate::engine) moved: BTreeSet<MinionId>,
    /// In words, for the decision
    pub(in crate::engine) found: Option<String>,
}

impl Master {
    /// Refuses what would start outside of a window, or moves it, if it is to be moved.
    pub(in crate::engine) async fn fit_windows(
        self: &Arc<Self>,
        request: &mut Request,
        members: &[Arc<Member>],
        due: Timestamp,
    ) -> Result<Fitted, Error> {
        let mut fitted = Fitted { moved: BTreeSet::new(), found: None };
        if request.is_house() {
            return Ok(fitted);
        }
        if let Some(reason) = request.policy.override_window.as_deref() {
            self.may_override(request, reason, members)?;
        }
        let held = members.iter().filter(|member| self.windows.is_blacked_out(&member.id)).count();
        let held = if request.is_restricted() { held } else { 0 };
        let open = members.len() - held;
        fitted.found = Some(format!("{open} minions may start when it is due, {held} wait"));
        // What carries a chain was let in when that was launched; where it comes too late it waits.
        if !request.is_restricted() || request.policy.override_window.is_some() || request.launch.is_some() {
            return Ok(fitted);
        }
        self.look_at_groups().await?;
        let snapshot = self.windows.snapshot();
        let (mut closed, mut never) = (Vec::new(), Vec::new());
        for member in members {
            let at = request.dues.get(&member.id).copied().unwrap_or(due);
            match snapshot.opening_far(&member.id, at) {
                Opening::Open => {}
                Opening::Closed(Some(next)) if request.in_window => {
                    request.dues.insert(member.id.clone(), next);
                    fitted.moved.insert(member.id.clone());
                }
                Opening::Closed(None) if request.in_window => never.push((&member.id, at)),
                Opening::Closed(_) => closed.push((&member.id, at)),
            }
        }
        if !never.is_empty() {
            let names = self.named(&never);
            return Err(Error::Conflict(format!(
                "{} of {} minions have no next maintenance window: {names}; see to their schedules, leave them out, or have an admin of \
                 their organisation override the windows with a reason",
                never.len(),
                members.len(),
            )));
        }
        if !closed.is_empty() {
            let names = self.named(&closed);
            return Err(Error::Conflict(format!(
                "{} of {} minions are outside of their maintenance windows then: {names}; `--in-window` starts each in its \
                 next window, or an admin of their organisation overrides the windows with a reason",
                closed.len(),
                members.len(),
            )));
        }
        if !fitted.moved.is_empty() {
            let (moved, found) = (fitted.moved.len(), fitted.found.take().unwrap_or_default());
            fitted.found = Some(format!("{found}, {moved} start in their next window"));
        }
        Ok(fitted)
    }

    /// Writes down that somebody did not ask the windows; before anything is done.
    pub(in crate::engine) async fn audit_override(&self, request: &Request, minions: usize) -> Result<(), Error> {
        let Some(reason) = request.policy.override_window.as_ref().filter(|_| request.is_restricted()) else {
            return Ok(());
        };
        let detail = serde_json::json!({ "reason": reason, "minions": minions, "door": request.door });
        let entry = AuditEntry {
            at: clock::now(),
            who: request.who.clone(),
            origin: request.origin.clone(),
            what: "window.override".into(),
            subject: request.name.clone().unwrap_or_else(|| request.kind.describe(&request.params)),
            detail: detail.to_string(),
        };
        Ok(self.store.record_audit(entry).await?)
    }

    fn may_override(&self, request: &Request, reason: &str, members: &[Arc<Member>]) -> Result<(), Error> {
        if reason.trim().is_empty() || reason.len() > LONGEST_REASON {
            return Err(Error::Invalid(format!(
                "whoever overrides maintenance windows gives a reason of at most {LONGEST_REASON} bytes"
            )));
        }
        let directory = self.directory.snapshot();
        let orgs: BTreeSet<&str> = members.iter().map(|member| directory.org_of(&member.id)).collect();
        for org in orgs {
            let allowed = request.rights.may(&Wish::Manage(Thing::Windows { org }));
            allowed.map_err(|_| {
                Error::Forbidden(
                    "maintenance windows are overridden by admins of the minions' organisation and by server admins"
                        .into(),
                )
            })?;
        }
        Ok(())
    }

    fn named(&self, minions: &[(&MinionId, Timestamp)]) -> String {
        let one = |(minion, at): &(&MinionId, Timestamp)| {
            format!("{minion} (next: {})", self.windows.next_in_words(minion, *at))
        };
        let names: Vec<String> = minions.iter().take(NAMED).map(one).collect();
        let more = minions.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.join(", "))
    }
}
