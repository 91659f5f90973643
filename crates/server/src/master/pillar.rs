//! Pillar for minions: rendered here, sealed for each.
//!
//! A minion gets the pillar of its own id and nothing else. Its grains are what it says of itself: they come in with the
//! request, are kept, and choose nothing beyond what the operator's top file and templates let them choose.

use super::{Master, Member, entry};
use crate::config::Config;
use crate::{Error, body, clock};
use saltern_core::event;
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::FileRoots;
use saltern_render::merge::Strategy;
use saltern_render::pillar::{Compiler, Pillar, Request, Settings};
use saltern_render::targets::Targets;
use saltern_store::GrainsRow;
use std::sync::Arc;

/// Pillar up to this size is remembered for targets that ask for it; larger ones are compiled again when they do.
const REMEMBERED: usize = 64 * 1024;

/// What makes pillar, with the compiled targets that its top files share.
pub(super) struct Pillars {
    compiler: Compiler,
    targets: Arc<Targets>,
    opts: Map,
}

/// What a minion asks for besides its id.
#[derive(Default)]
struct Wanted {
    grains: Map,
    saltenv: Option<String>,
    pillarenv: Option<String>,
    over: Option<Map>,
}

impl Pillars {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let invalid = |error: saltern_render::Error| Error::Start(error.to_string());
        let roots = FileRoots::new(config.pillar_roots.clone(), config.files.clone()).map_err(invalid)?;
        let settings = Settings {
            merging: Strategy::from_name(&config.pillar_source_merging_strategy).unwrap_or_default(),
            merge_lists: config.pillar_merge_lists,
            pillarenv_from_saltenv: config.pillarenv_from_saltenv,
            safe_render_error: config.pillar_safe_render_error,
            env_order: config.env_order.clone(),
            ..Settings::default()
        };
        // What templates may know of the server: what minions are told anyway.
        let mut opts = config.state_opts.clone();
        opts.insert("master_id", config.id.as_str());
        let targets = Targets::new(config.nodegroups.clone());
        Ok(Self { compiler: Compiler::new(Arc::new(roots), settings).map_err(invalid)?, targets, opts })
    }

    fn compile(&self, id: &str, wanted: &Wanted) -> Pillar {
        self.compiler.compile(&Request {
            id,
            grains: &wanted.grains,
            saltenv: wanted.saltenv.as_deref(),
            pillarenv: wanted.pillarenv.as_deref(),
            pillar_override: wanted.over.as_ref(),
            opts: &self.opts,
            matches: self.targets.of_minion(id, Value::Map(wanted.grains.clone()), None),
        })
    }
}

impl Master {
    /// Answers `_pillar`, and keeps the grains that come with it: they are the only regular source of grains.
    pub(super) async fn serve_pillar(self: &Arc<Self>, member: &Arc<Member>, mut load: Map) -> Result<Value, Error> {
        let text = |load: &Map, name: &str| {
            load.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let map = |value: Option<Value>| match value {
            Some(Value::Map(map)) => Some(map),
            _ => None,
        };
        let wanted = Wanted {
            grains: map(load.remove("grains")).unwrap_or_default(),
            saltenv: text(&load, "saltenv"),
            pillarenv: text(&load, "pillarenv"),
            over: map(load.remove("pillar_override")),
        };
        self.keep_grains(member, &wanted.grains).await?;
        let is_plain =
            wanted.over.as_ref().is_none_or(Map::is_empty) && wanted.saltenv.is_none() && wanted.pillarenv.is_none();
        let pillar = self.compile_pillar(member, wanted).await?;
        if is_plain {
            self.remember_pillar(member, &pillar);
        }
        Ok(pillar)
    }

    /// The pillar a target sees: the one last served, or one compiled now from the grains we know.
    pub(crate) async fn pillar_for_matching(self: &Arc<Self>, member: &Arc<Member>) -> Option<Value> {
        if let Some(pillar) = member.pillar() {
            return Some(pillar);
        }
        // Without grains it was never up, and would not run the job either.
        let Some(Value::Map(grains)) = member.grains() else { return None };
        let pillar = self.compile_pillar(member, Wanted { grains, ..Wanted::default() }).await.ok()?;
        self.remember_pillar(member, &pillar);
        Some(pillar)
    }

    async fn compile_pillar(self: &Arc<Self>, member: &Arc<Member>, wanted: Wanted) -> Result<Value, Error> {
        let _turn = self.renders.acquire().await.map_err(|_| Error::Stopping)?;
        let (pillars, member) = (self.pillars.clone(), member.clone());
        let compiled = tokio::task::spawn_blocking(move || {
            let pillar = pillars.compile(member.id.as_str(), &wanted);
            for error in &pillar.details {
                tracing::error!(minion = %member.id, %error, "pillar could not be rendered");
            }
            Value::Map(pillar.value)
        });
        compiled.await.map_err(|error| Error::Internal(format!("a pillar compilation died: {error}")))
    }

    fn remember_pillar(&self, member: &Arc<Member>, pillar: &Value) {
        let packed = body::pack_binary(pillar);
        member.facts().pillar = (packed.bytes.len() <= REMEMBERED).then(|| Arc::new(packed));
    }

    async fn keep_grains(self: &Arc<Self>, member: &Arc<Member>, grains: &Map) -> Result<(), Error> {
        let grains = Value::Map(grains.clone());
        self.note_version(member, &grains);
        if let Some(boot) = grains.get("boot_id").and_then(Value::as_str) {
            self.learn_boot_id(member, boot, clock::now()).await?;
        }
        let now = clock::now();
        let packed = Arc::new(body::pack_binary(&grains));
        let mut events = Vec::new();
        if self.config.minion_data_cache_events {
            let told = Value::map([("Minion data cache refresh", Value::from(&member.id))]);
            events.push(entry(now, event::tag::minion_refresh(&member.id), told, Some(&member.id), None));
        }
        if member.facts().has_grains(&packed) {
            member.facts().grains_at = Some(now);
            return Ok(self.store.log_events(events).await?);
        }
        let row = GrainsRow { minion: member.id.clone(), at: now, body: (*packed).clone() };
        self.store.record_grains(row, events).await?;
        member.facts().set_grains(packed, now);
        Ok(())
    }
}
