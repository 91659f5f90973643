//! What the server remembers of minions: pillar and mine, and how to make it forget.

use super::{App, Caller};
use crate::{Error, body};
use saltern_core::access::Wish;
use saltern_core::ids::MinionId;
use saltern_core::target::Target;
use saltern_core::value::{Map, Value};
use std::collections::BTreeSet;

/// A kind of remembered data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// Grains
    Grains,
    /// The last pillar
    Pillar,
    /// Mine values
    Mine,
}

impl App {
    /// The pillar of a minion, made now.
    pub async fn pillar(&self, caller: &Caller, minion: &MinionId) -> Result<Value, Error> {
        let missing = || Error::NotFound(format!("there is no accepted minion {:?}", minion.as_str()));
        if !caller.sight().sees(minion) {
            return Err(missing());
        }
        self.may(caller, &Wish::SeePillar(minion))?;
        let member = self.master.member(minion.as_str()).ok_or_else(missing)?;
        Ok(self.master.pillar_for_matching(&member).await.unwrap_or_else(|| Value::Map(Map::new())))
    }

    /// What the minions of a target offer under one function.
    pub async fn mine(&self, caller: &Caller, target: &Target, fun: &str) -> Result<Vec<(MinionId, Value)>, Error> {
        let members = self.members_of(caller, target).await?;
        let meant: BTreeSet<&MinionId> = members.iter().map(|member| &member.id).collect();
        let mut offered = Vec::new();
        for entry in self.master.store.mine_of(fun).await? {
            if meant.contains(&entry.minion) {
                offered.push((entry.minion, plain(body::unpack(&entry.body)?)));
            }
        }
        Ok(offered)
    }

    /// All that one minion offers in the mine, function by function.
    pub async fn mine_of(&self, caller: &Caller, minion: &MinionId) -> Result<Map, Error> {
        let mut offered = Map::new();
        if caller.sight().sees(minion) {
            for entry in self.master.store.mine_by(minion).await? {
                offered.insert(entry.fun, plain(body::unpack(&entry.body)?));
            }
        }
        Ok(offered)
    }

    /// Forgets what is remembered of minions; they send it again.
    pub async fn forget_cached(&self, caller: &Caller, target: &Target, what: &[Cached]) -> Result<usize, Error> {
        let seen = self.members_of(caller, target).await?;
        let ids: Vec<MinionId> = seen.iter().map(|member| member.id.clone()).collect();
        self.may(caller, &Wish::Operate(&ids))?;
        let detail = serde_json::json!({ "what": format!("{what:?}"), "minions": ids.len() });
        self.master.store.record_audit(caller.audit("cache.clear", &target.to_string(), detail)).await?;
        for member in &seen {
            if what.contains(&Cached::Grains) {
                member.facts().forget_grains();
                self.master.store.remove_grains(member.id.clone()).await?;
            }
            if what.contains(&Cached::Pillar) {
                member.facts().pillar = None;
            }
            if what.contains(&Cached::Mine) {
                self.master.store.remove_mine(member.id.clone(), None).await?;
            }
        }
        Ok(seen.len())
    }
}

/// A mine value without the rule that may be around it.
fn plain(value: Value) -> Value {
    match value.get("__saltmine_acl__") {
        Some(_) => value.get("__data__").cloned().unwrap_or_default(),
        None => value,
    }
}
