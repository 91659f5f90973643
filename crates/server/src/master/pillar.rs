//! Pillar for minions: rendered here, sealed for each.

use super::{Master, Member, entry};
use crate::config::Config;
use crate::{Error, body, clock};
use saltern_core::event;
use saltern_core::value::{Map, Value};
use saltern_store::GrainsRow;
use std::sync::Arc;

pub(super) struct Compiler;
pub(super) fn compiler(_config: &Config) -> Result<Compiler, Error> { Ok(Compiler) }

/// Pillar up to this size is remembered for targets that ask for it; larger ones are compiled again when they do.
const REMEMBERED: usize = 64 * 1024;

impl Master {
    /// Answers `_pillar`, and keeps the grains that come with it: they are the only regular source of grains.
    pub(super) async fn serve_pillar(self: &Arc<Self>, member: &Arc<Member>, mut load: Map) -> Result<Value, Error> {
        let grains = load.remove("grains").unwrap_or_else(|| Value::Map(Map::new()));
        self.keep_grains(member, &grains).await?;
        Ok(Value::Map(Map::new()))
    }

    pub(super) async fn pillar_for_matching(self: &Arc<Self>, member: &Arc<Member>) -> Option<Value> {
        member.pillar()
    }

    async fn keep_grains(&self, member: &Arc<Member>, grains: &Value) -> Result<(), Error> {
        self.note_version(member, grains);
        let now = clock::now();
        let packed = Arc::new(body::pack_binary(grains));
        let mut events = Vec::new();
        if self.config.minion_data_cache_events {
            let told = Value::map([("Minion data cache refresh", Value::from(&member.id))]);
            events.push(entry(now, event::tag::minion_refresh(&member.id), told, Some(&member.id), None));
        }
        let unchanged = {
            let mut facts = member.facts();
            facts.grains_at = Some(now);
            facts.grains.replace(packed.clone()).is_some_and(|before| before == packed)
        };
        if unchanged {
            return Ok(self.store.log_events(events).await?);
        }
        let row = GrainsRow { minion: member.id.clone(), at: now, body: (*packed).clone() };
        Ok(self.store.record_grains(row, events).await?)
    }
}
