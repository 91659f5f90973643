//! Whom a target means, among the accepted minions and by what is known of them here.

use super::{Master, Member};
use crate::Error;
use saltern_core::target::{Facts, Needs, Target, TargetType};
use saltern_core::value::{Map, Value};
use std::sync::Arc;

/// A minion as a target sees it; grains and pillar only when the target asks for them.
struct View<'a> {
    member: &'a Member,
    grains: Option<Arc<Value>>,
    pillar: Option<Value>,
}

impl Facts for View<'_> {
    fn id(&self) -> &str {
        self.member.id.as_str()
    }

    fn grains(&self) -> Option<&Value> {
        self.grains.as_deref()
    }

    fn pillar(&self) -> Option<&Value> {
        self.pillar.as_ref()
    }
}

impl Master {
    /// The accepted minions a target means, in the order of their ids, and the names of a list that nobody has.
    pub(crate) async fn resolve(self: &Arc<Self>, target: &Target) -> Result<(Vec<Arc<Member>>, Vec<String>), Error> {
        let matcher = target.compile(&self.config.nodegroups).map_err(|error| Error::Invalid(error.to_string()))?;
        let listed = matcher.listed().unwrap_or_default();
        let missing = listed.iter().filter(|id| self.member(id).is_none()).map(ToString::to_string).collect();
        let asked: Vec<Arc<Member>> = match matcher.candidates() {
            Some(mut ids) => {
                ids.sort_unstable();
                ids.dedup();
                ids.into_iter().filter_map(|id| self.member(id)).collect()
            }
            None => self.members(),
        };
        let Needs { grains, pillar } = matcher.needs();
        let keys = matcher.grain_keys().map(|keys| keys.into_iter().map(str::to_owned).collect::<Arc<[String]>>());
        let mut found = Vec::new();
        for member in asked {
            let pillar = if pillar { self.pillar_for_matching(&member).await } else { None };
            let grains = if grains { member.grains_asked(keys.as_ref()) } else { None };
            if matcher.matches(&View { member: &member, grains, pillar }) {
                found.push(member);
            }
        }
        found.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok((found, missing))
    }
}

/// The target in a minion's request. Pillar is compared exactly, so that patterns cannot be used to guess what others have.
pub(super) fn asked_by_minion(load: &Map) -> Option<Target> {
    let tgt_type = load.get("tgt_type").or_else(|| load.get("expr_form")).and_then(Value::as_str).unwrap_or("glob");
    let mut target = Target::read(tgt_type, load.get("tgt")?, load.get("delimiter").and_then(Value::as_str)).ok()?;
    target.kind = match target.kind {
        TargetType::Pillar | TargetType::PillarPcre => TargetType::PillarExact,
        TargetType::Compound => TargetType::CompoundPillarExact,
        other => other,
    };
    Some(target)
}

/// Whether one minion is meant, by its own grains and pillar: for top files and mine rules.
pub(super) fn is_meant(
    matcher: &saltern_core::target::Matcher,
    member: &Member,
    grains: Option<Value>,
    pillar: Option<Value>,
) -> bool {
    matcher.matches(&View { member, grains: grains.map(Arc::new), pillar })
}
