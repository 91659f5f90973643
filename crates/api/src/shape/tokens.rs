//! Tokens and log-ins as JSON.

use super::Time;
use super::jobs::seconds;
use saltern_core::access::Scope;
use saltern_server::{Error, app};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// Tokens and open log-ins, in the order of ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// The tokens
    pub tokens: Vec<Token>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A token, without the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its public name
    pub id: String,
    /// `session` for a log-in, `api` for a token that was made for a program
    pub kind: String,
    /// Whose
    pub user: String,
    /// What it is for
    pub name: String,
    /// What it may at most: `read`, `operate` or `all`
    pub scope: String,
    /// When it was made
    pub created: Time,
    /// When it ends
    pub expires: Time,
    /// When it was last used
    pub last_used: Option<Time>,
    /// From where it was made
    pub origin: String,
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Whose; nothing: one's own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What it is for
    #[serde(default)]
    #[schema(max_length = 200)]
    pub name: String,
    /// What it may at most: `read`, `operate` or `all`
    #[serde(default = "all")]
    #[schema(pattern = "^(read|operate|all)$")]
    pub scope: String,
    /// How many seconds it lasts; nothing: 90 days
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 315_360_000)]
    pub lifetime: Option<f64>,
}

/// A new token, with the secret: it is told now and never again.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// The secret, for `X-Auth-Token` or `Authorization: Bearer`
    #[serde(rename = "token")]
    pub secret: String,
    /// The token
    #[serde(flatten)]
    pub entry: Token,
}

/// A name and a password.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    /// The name
    pub user: String,
    /// The password
    #[schema(format = Password, write_only)]
    pub password: String,
    /// Who checks it: `local`, `pam`, `ldap`, `file`, `sharedsecret`, or `auto`: whichever knows the name
    #[serde(default = "auto")]
    pub auth: String,
}

/// A log-in that succeeded.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct LoggedIn {
    /// The secret, for `X-Auth-Token` or `Authorization: Bearer`; it is also set as a cookie
    pub token: String,
    /// Whose
    pub user: String,
    /// What vouched for the user
    pub auth: String,
    /// When it was made
    pub created: Time,
    /// When it ends
    pub expires: Time,
}

/// How long a token lasts unless told.
const USUAL: Duration = Duration::from_secs(90 * 86_400);

fn all() -> String {
    Scope::All.as_str().into()
}

fn auto() -> String {
    "auto".into()
}

impl NewToken {
    /// The domain's words for it.
    pub(crate) fn read(self) -> Result<app::NewToken, Error> {
        let unknown = || Error::Invalid(format!("{:?} is no scope: there are read, operate and all", self.scope));
        let scope = Scope::parse(&self.scope).ok_or_else(unknown)?;
        let lifetime = seconds("lifetime", self.lifetime)?.unwrap_or(USUAL);
        Ok(app::NewToken { user: self.user, name: self.name, scope, lifetime })
    }
}

impl From<app::TokenEntry> for Token {
    fn from(entry: app::TokenEntry) -> Self {
        let app::TokenEntry { id, kind, user, name, scope, created, expires, last_used, origin } = entry;
        let kind = kind.as_str().into();
        let (created, expires, last_used) = (created.into(), expires.into(), last_used.map(Time));
        Self { id, kind, user, name, scope, created, expires, last_used, origin }
    }
}

impl From<app::SignedIn> for LoggedIn {
    fn from(app::SignedIn { token, session }: app::SignedIn) -> Self {
        let (created, expires) = (session.created.into(), session.expires.into());
        Self { token, user: session.caller.who, auth: session.auth, created, expires }
    }
}

/// Reads a token's public name from a path or a query.
pub(crate) fn read_token_id(text: &str) -> Result<&str, Error> {
    let is_id = !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some(text).ok_or_else(|| Error::Invalid(format!("{text:?} is not the id of a token")))
}
