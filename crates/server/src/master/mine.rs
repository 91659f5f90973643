//! The mine: what minions offer to each other.

use super::{Master, Member, targets};
use crate::{Error, body, clock};
use saltern_core::target::Target;
use saltern_core::value::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Most functions of one request: each is a look into the database.
const MOST_FUNS: usize = 256;

impl Master {
    /// `_mine`: adds or replaces values.
    pub(super) async fn put_mine(&self, member: &Arc<Member>, load: &Map) -> Result<Value, Error> {
        let Some(data) = load.get("data").and_then(Value::as_map) else { return Ok(false.into()) };
        let entries = data.iter().map(|(fun, value)| (fun.key_text().into_owned(), body::pack(value))).collect();
        let clear = load.get("clear").is_some_and(Value::is_truthy);
        self.store.put_mine(member.id.clone(), clock::now(), entries, clear).await?;
        Ok(true.into())
    }

    /// `_mine_delete`: removes one function's value.
    pub(super) async fn delete_mine(&self, member: &Arc<Member>, load: &Map) -> Result<Value, Error> {
        let Some(fun) = load.get("fun").and_then(Value::as_str) else { return Ok(false.into()) };
        self.store.remove_mine(member.id.clone(), Some(fun.to_owned())).await?;
        Ok(true.into())
    }

    /// `_mine_flush`: removes all of a minion's values.
    pub(super) async fn flush_mine(&self, member: &Arc<Member>) -> Result<Value, Error> {
        self.store.remove_mine(member.id.clone(), None).await?;
        Ok(true.into())
    }

    /// `_mine_get`: what the minions of a target offer to the asker.
    pub(super) async fn get_mine(self: &Arc<Self>, asker: &Arc<Member>, load: &Map) -> Result<Value, Error> {
        let (funs, single) = match load.get("fun") {
            Some(Value::Text(text)) => {
                let funs: Vec<String> = text.split(',').map(|fun| fun.trim().to_owned()).collect();
                let single = funs.len() == 1;
                (funs, single)
            }
            Some(Value::List(items)) => {
                (items.iter().filter_map(|fun| fun.as_str().map(str::to_owned)).collect(), false)
            }
            _ => return Ok(Value::Map(Map::new())),
        };
        if funs.len() > MOST_FUNS {
            tracing::warn!(minion = %asker.id, "a mine request for too many functions was refused");
            return Ok(Value::Map(Map::new()));
        }
        let Some(target) = targets::asked_by_minion(load) else { return Ok(Value::Map(Map::new())) };
        // A target that makes no sense means nobody, as with stock masters.
        let Ok((meant, _)) = self.resolve(&target).await else { return Ok(Value::Map(Map::new())) };
        let meant: HashSet<&str> = meant.iter().map(|member| member.id.as_str()).collect();
        let mut answer = Map::new();
        for fun in funs {
            let mut by_minion = Map::new();
            for entry in self.store.mine_of(&fun).await? {
                if meant.contains(entry.minion.as_str())
                    && let Some(value) = self.offered(asker, body::unpack(&entry.body)?)
                {
                    by_minion.push(entry.minion.as_str(), value);
                }
            }
            if single {
                return Ok(Value::Map(by_minion));
            }
            answer.insert(fun, by_minion);
        }
        Ok(Value::Map(answer))
    }

    /// The value, if its rule lets this minion have it.
    fn offered(&self, asker: &Arc<Member>, value: Value) -> Option<Value> {
        let is_ruled = value.get("__saltmine_acl__").is_some();
        if !is_ruled {
            return Some(value);
        }
        let data = value.get("__data__").cloned().unwrap_or_default();
        let Some(tgt) = value.get("allow_tgt").filter(|tgt| tgt.is_truthy()) else { return Some(data) };
        let tgt_type = value.get("allow_tgt_type").and_then(Value::as_str).unwrap_or("glob");
        let matcher = Target::read(tgt_type, tgt, None).ok()?.compile(&self.config.nodegroups).ok()?;
        targets::is_meant(&matcher, asker, asker.grains(), asker.pillar()).then_some(data)
    }
}
