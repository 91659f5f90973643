//! The times of what recurs as JSON: what became of those that have come, and whom those to come would hit.

use super::Time;
use crate::app;
use saltern_core::ids::MinionId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What became of the times of something that recurs, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FireList {
    /// One for each time
    pub fires: Vec<Fire>,
    /// What `before` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<Time>,
}

/// What became of a time. There is exactly one for each, whatever was down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fire {
    /// For when it was planned
    pub planned: Time,
    /// `fired`, `skipped`, `missed` or `refused`
    pub outcome: String,
    /// Why, where it was not simply done
    pub why: String,
    /// When it was decided
    pub at: Time,
    /// The action that was made
    pub action: Option<i64>,
    /// The launch that was made
    pub launch: Option<i64>,
    /// On how many minions
    pub minions: i64,
    /// How many were left out
    pub skipped: i64,
    /// Whether it was done later than planned
    pub late: bool,
    /// Who was left out, as far as you see them
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// The times to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedFireList {
    /// In their order
    pub fires: Vec<PlannedFire>,
}

/// A time to come, and whom it would hit as things are now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedFire {
    /// When
    pub at: Time,
    /// Who would take part
    pub minions: Vec<String>,
    /// Who would be left out
    pub left_out: Vec<LeftOut>,
}

/// A minion that is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// Which one
    pub minion: String,
    /// Why
    pub why: String,
}

impl From<app::FireEntry> for Fire {
    fn from(app::FireEntry { fire, left_out }: app::FireEntry) -> Self {
        Self {
            planned: fire.planned.into(),
            outcome: fire.outcome,
            why: fire.why,
            at: fire.at.into(),
            action: fire.action.map(|action| action.0),
            launch: fire.launch.map(|launch| launch.0),
            minions: fire.minions,
            skipped: fire.skipped,
            late: fire.late,
            left_out: all(left_out),
        }
    }
}

impl From<app::PlannedFire> for PlannedFire {
    fn from(fire: app::PlannedFire) -> Self {
        Self { at: fire.at.into(), minions: super::jobs::texts(&fire.minions), left_out: all(fire.left_out) }
    }
}

fn all(left_out: Vec<(MinionId, String)>) -> Vec<LeftOut> {
    left_out.into_iter().map(|(minion, why)| LeftOut { minion: minion.to_string(), why }).collect()
}
