//! What could not be processed, as JSON.

use super::Time;
use crate::app;
use saltern_core::value::Value;
use saltern_server::body;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of what was set aside, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterList {
    /// The letters
    pub dead_letters: Vec<DeadLetter>,
    /// What `before` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// Something that was received and could not be processed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// Its number
    pub number: i64,
    /// When it came
    pub at: Time,
    /// From which minion
    pub minion: Option<String>,
    /// What it was
    pub what: String,
    /// Why it could not be processed
    pub error: String,
    /// What was in it, as far as that can be read
    #[schema(value_type = Value)]
    pub body: Value,
}

impl From<(i64, app::DeadLetter)> for DeadLetter {
    fn from((number, letter): (i64, app::DeadLetter)) -> Self {
        Self {
            number,
            at: letter.at.into(),
            minion: letter.minion.map(|minion| minion.to_string()),
            what: letter.what,
            error: letter.error,
            body: body::unpack(&letter.body).unwrap_or_default(),
        }
    }
}
