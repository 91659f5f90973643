//! Organisations as JSON.

use super::Time;
use saltern_server::app;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Organisations, in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrganisationList {
    /// The organisations
    pub organisations: Vec<Organisation>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// An organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Organisation {
    /// Its name
    pub name: String,
    /// What it is
    pub description: String,
    /// Since when
    pub created: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// An organisation to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOrganisation {
    /// Its name: letters, digits and `- _ . @`
    #[schema(pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,63}$")]
    pub name: String,
    /// What it is
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub description: String,
}

/// What an organisation is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganisationContent {
    /// What it is
    #[schema(max_length = 1000)]
    pub description: String,
}

impl From<app::Organisation> for Organisation {
    fn from(org: app::Organisation) -> Self {
        let app::Organisation { name, description, created, version } = org;
        Self { name, description, created: created.into(), version }
    }
}
