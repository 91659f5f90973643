//! Users as JSON, and whoever asks.

use super::Time;
use saltern_core::access::Rights;
use saltern_server::app;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Users, in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserList {
    /// The users
    pub users: Vec<User>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A user, without the password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// The name to log in with
    pub name: String,
    /// The organisation
    pub org: String,
    /// What vouches for the user: `local`, `pam`, `ldap`, `file` or `sharedsecret`
    pub auth: String,
    /// What people call the user
    pub full_name: String,
    /// Whether the user is kept out
    pub disabled: bool,
    /// What the user was given: `role` or `role:group`
    pub roles: Vec<String>,
    /// Since when
    pub created: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// A user to be made.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// The name to log in with: letters, digits and `- _ . @`
    #[schema(pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,63}$")]
    pub name: String,
    /// The organisation; nothing: that of whoever makes the user
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// What vouches for the user: `local` (usual), `pam`, `ldap`, `file` or `sharedsecret`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The password; only of local users, who need one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = Password, write_only)]
    pub password: Option<String>,
    /// What people call the user
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub full_name: Option<String>,
    /// Whether the user is kept out
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// `server-admin`, `org-admin`, `group-admin:GROUP`, `operator[:GROUP]`, `reader[:GROUP]`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
}

/// What a user is to be; what is left out stays as it is.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// The organisation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// What vouches for the user: `local` (usual), `pam`, `ldap`, `file` or `sharedsecret`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The password; only of local users, who need one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = Password, write_only)]
    pub password: Option<String>,
    /// What people call the user
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub full_name: Option<String>,
    /// Whether the user is kept out
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// `server-admin`, `org-admin`, `group-admin:GROUP`, `operator[:GROUP]`, `reader[:GROUP]`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
}

/// One's own password, to be changed.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The password so far
    #[schema(format = Password, write_only)]
    pub old: String,
    /// The new one
    #[schema(format = Password, write_only)]
    pub new: String,
}

/// Whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The name
    pub name: String,
    /// The organisation; empty for people whom only Salt's rules know
    pub org: String,
    /// Whether everything is allowed
    pub server_admin: bool,
    /// Whether everything in the organisation is allowed
    pub org_admin: bool,
    /// What the token in use may at most: `read`, `operate` or `all`
    pub scope: String,
    /// The entry in the directory, if there is one
    pub user: Option<User>,
    /// What vouched for the log-in; nothing on the control socket
    pub auth: Option<String>,
    /// When the token in use ends; nothing on the control socket
    pub expires: Option<Time>,
}

impl NewUser {
    /// The name, and the rest in the domain's words.
    pub(crate) fn read(self) -> (String, app::UserChange) {
        let Self { name, org, auth, password, full_name, disabled, roles } = self;
        (name, app::UserChange { org, auth, password, full_name, disabled, roles })
    }
}

impl UserChange {
    /// The domain's words for it.
    pub(crate) fn read(self) -> app::UserChange {
        let Self { org, auth, password, full_name, disabled, roles } = self;
        app::UserChange { org, auth, password, full_name, disabled, roles }
    }
}

impl Me {
    pub(crate) fn of(rights: &Rights, user: Option<app::UserEntry>, session: Option<&app::Session>) -> Self {
        Self {
            name: rights.user.clone(),
            org: rights.org.clone(),
            server_admin: rights.server_admin,
            org_admin: rights.org_admin,
            scope: rights.scope.as_str().into(),
            user: user.map(Into::into),
            auth: session.map(|session| session.auth.clone()),
            expires: session.map(|session| session.expires.into()),
        }
    }
}

impl From<app::UserEntry> for User {
    fn from(entry: app::UserEntry) -> Self {
        let app::UserEntry { name, org, auth, full_name, disabled, roles, created, version } = entry;
        Self { name, org, auth, full_name, disabled, roles, created: created.into(), version }
    }
}
