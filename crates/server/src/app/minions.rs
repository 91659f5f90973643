//! Minions: who there is, who is there, what is known of each.

use super::{App, Caller};
use crate::Error;
use crate::master::{Facts, Member, Presence};
use saltern_core::access::{Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::AckMethod;
use std::sync::Arc;

/// A minion in a list.
#[derive(Clone, Debug)]
pub struct MinionEntry {
    /// Its id
    pub id: MinionId,
    /// Whether it is there, and since when
    pub presence: Presence,
    /// When it was first accepted
    pub first_seen: Timestamp,
    /// Its last authenticated traffic
    pub last_seen: Timestamp,
    /// When its agent last said that it started
    pub started: Option<Timestamp>,
    /// Where it connects from
    pub address: Option<String>,
    /// Its Salt version
    pub version: Option<String>,
    /// How it can acknowledge jobs
    pub ack_method: AckMethod,
    /// The operator's word about that
    pub ack_setting: Option<bool>,
    /// Whether it says that its machine has to be rebooted
    pub reboot_needed: Option<bool>,
    /// The organisation it belongs to
    pub org: String,
}

/// Everything known of a minion.
#[derive(Clone, Debug)]
pub struct MinionDetail {
    /// What a list shows
    pub entry: MinionEntry,
    /// Its key's fingerprint
    pub fingerprint: Option<String>,
    /// Its grains, as it last sent them
    pub grains: Option<Value>,
    /// When it sent them
    pub grains_at: Option<Timestamp>,
}

impl App {
    /// The accepted minions, all or those of a target, in the order of ids.
    pub async fn minions(&self, caller: &Caller, target: Option<&Target>) -> Result<Vec<MinionEntry>, Error> {
        let members = match target {
            Some(target) => self.members_of(caller, target).await?,
            None => {
                let mut members = self.master.members();
                members.retain(|member| caller.sight().sees(&member.id));
                members.sort_unstable_by(|a, b| a.id.cmp(&b.id));
                members
            }
        };
        let snapshot = self.master.directory.snapshot();
        Ok(members.iter().map(|member| entry(member, snapshot.org_of(&member.id))).collect())
    }

    /// One minion.
    pub fn minion(&self, caller: &Caller, id: &str) -> Result<MinionDetail, Error> {
        let member = self.member_seen(caller, id)?;
        let org = self.master.directory.snapshot().org_of(&member.id).to_owned();
        Ok(MinionDetail {
            entry: entry(&member, &org),
            fingerprint: member.key().map(saltern_wire::crypto::PublicKey::fingerprint),
            grains: member.grains(),
            grains_at: member.facts().grains_at,
        })
    }

    /// Sets whether jobs ask this minion to acknowledge; nothing means as the server does.
    pub async fn set_minion_ack(&self, caller: &Caller, id: &str, setting: Option<bool>) -> Result<(), Error> {
        let member = self.member_seen(caller, id)?;
        self.may(caller, &Wish::Manage(Thing::Minion(&member.id)))?;
        self.master.store.record_audit(caller.audit("minion.set", id, serde_json::json!({ "ack": setting }))).await?;
        {
            let mut facts = member.facts();
            facts.ack_setting = setting;
            facts.dirty = true;
        }
        self.master.record_minions().await;
        Ok(())
    }
}

impl App {
    /// The minions of a target that he sees. One that asks for pillar means those whose pillar he may read: with patterns,
    /// who matches would tell it letter by letter.
    pub(super) async fn members_of(&self, caller: &Caller, target: &Target) -> Result<Vec<Arc<Member>>, Error> {
        let (mut members, _) = self.master.resolve(target).await?;
        let matcher = target.compile(&self.master.config.nodegroups);
        let asks_pillar = matcher.is_ok_and(|matcher| matcher.needs().pillar);
        let may_ask = |id: &MinionId| !asks_pillar || self.may(caller, &Wish::SeePillar(id)).is_ok();
        members.retain(|member| caller.sight().sees(&member.id) && may_ask(&member.id));
        Ok(members)
    }

    /// A minion he sees; one he does not see is not there.
    fn member_seen(&self, caller: &Caller, id: &str) -> Result<Arc<Member>, Error> {
        let member = self.master.member(id).filter(|member| caller.sight().sees(&member.id));
        member.ok_or_else(|| {
            Error::NotFound(format!("there is no accepted minion {id:?}; `saltern key list` shows those that wait"))
        })
    }
}

fn entry(member: &Member, org: &str) -> MinionEntry {
    let facts: Facts = member.facts().clone();
    MinionEntry {
        id: member.id.clone(),
        presence: facts.presence,
        first_seen: facts.first_seen,
        last_seen: facts.last_seen,
        started: facts.started,
        address: facts.address,
        version: facts.version,
        ack_method: facts.ack_method,
        ack_setting: facts.ack_setting,
        reboot_needed: facts.reboot_needed,
        org: org.to_owned(),
    }
}
