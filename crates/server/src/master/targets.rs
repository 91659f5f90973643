//! Whom a target means, among the accepted minions and by what is known of them here.

use super::{Master, Member};
use crate::Error;
use saltern_core::target::{Facts, Needs, Target};
use saltern_core::value::Value;
use std::sync::Arc;

/// A minion as a target sees it; grains and pillar only when the target asks for them.
struct View<'a> {
    member: &'a Member,
    grains: Option<Value>,
    pillar: Option<Value>,
}

impl Facts for View<'_> {
    fn id(&self) -> &str {
        self.member.id.as_str()
    }

    fn grains(&self) -> Option<&Value> {
        self.grains.as_ref()
    }

    fn pillar(&self) -> Option<&Value> {
        self.pillar.as_ref()
    }
}

impl Master {
    /// The accepted minions a target means, in the order of their ids, and the names of a list that nobody has.
    pub(crate) async fn resolve(self: &Arc<Self>, target: &Target) -> Result<(Vec<Arc<Member>>, Vec<String>), Error> {
        let matcher = target.compile(&self.config.nodegroups).map_err(|error| Error::Invalid(error.to_string()))?;
        if let Some(listed) = matcher.listed() {
            let (mut found, mut missing) = (Vec::new(), Vec::new());
            for id in listed {
                match self.member(id) {
                    Some(member) => found.push(member),
                    None => missing.push(id.to_string()),
                }
            }
            found.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            found.dedup_by(|a, b| a.id == b.id);
            return Ok((found, missing));
        }
        let Needs { grains, pillar } = matcher.needs();
        let mut found = Vec::new();
        for member in self.members() {
            let pillar = if pillar { self.pillar_for_matching(&member).await } else { None };
            let view = View { member: &member, grains: if grains { member.grains() } else { None }, pillar };
            if matcher.matches(&view) {
                found.push(member.clone());
            }
        }
        found.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok((found, Vec::new()))
    }
}

/// Whether one minion is meant, by its own grains and pillar: for top files and mine rules.
pub(super) fn is_meant(matcher: &saltern_core::target::Matcher, member: &Member, grains: Option<Value>, pillar: Option<Value>) -> bool {
    matcher.matches(&View { member, grains, pillar })
}
