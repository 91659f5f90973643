//! The words rights are given in: roles, grants of a role on a group, and the scope of a token.

use super::Class;
use std::fmt;

/// What somebody is to the minions of a group or of his organisation. Each includes the ones after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May do everything, in every organisation
    ServerAdmin,
    /// May do everything with the minions, users and groups of his organisation
    OrgAdmin,
    /// Operates the minions of a group and changes the group
    GroupAdmin,
    /// Calls any function on the minions of a group
    Operator,
    /// Sees the minions of a group and what happens on them
    Reader,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::ServerAdmin, Self::OrgAdmin, Self::GroupAdmin, Self::Operator, Self::Reader];

    /// The name, as in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServerAdmin => "server-admin",
            Self::OrgAdmin => "org-admin",
            Self::GroupAdmin => "group-admin",
            Self::Operator => "operator",
            Self::Reader => "reader",
        }
    }

    /// Reads the name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// Whether it may be given on one group instead of the whole organisation.
    pub const fn takes_group(self) -> bool {
        matches!(self, Self::GroupAdmin | Self::Operator | Self::Reader)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A role somebody has. Its text is `role` (in his whole organisation) or `role:group`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// The role
    pub role: Role,
    /// The group it is for; none: the whole organisation
    pub group: Option<String>,
}

/// Why a text is not a grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGrant {
    /// No role has this name.
    #[error("unknown role `{0}`; there are server-admin, org-admin, group-admin, operator and reader")]
    UnknownRole(String),
    /// A `:` with nothing behind it.
    #[error("`{0}:` names no group; leave the colon out for the whole organisation")]
    NoGroup(Role),
    /// A role that is never given on a group.
    #[error("{0} is not given on a group; leave `:{1}` out")]
    TakesNoGroup(Role, String),
}

impl Grant {
    /// Reads `role` or `role:group`.
    pub fn parse(text: &str) -> Result<Self, BadGrant> {
        let (name, group) = match text.split_once(':') {
            Some((name, group)) => (name, Some(group)),
            None => (text, None),
        };
        let role = Role::parse(name).ok_or_else(|| BadGrant::UnknownRole(name.chars().take(40).collect()))?;
        match group {
            Some("") => Err(BadGrant::NoGroup(role)),
            Some(group) if !role.takes_group() => Err(BadGrant::TakesNoGroup(role, group.to_owned())),
            group => Ok(Self { role, group: group.map(str::to_owned) }),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{}:{group}", self.role),
            None => self.role.fmt(f),
        }
    }
}

/// What a token may be used for at most, whatever its owner may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// To look
    Read,
    /// To look and to call functions, not to manage
    Operate,
    /// To everything its owner may
    All,
}

impl Scope {
    /// Every scope, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Operate, Self::All];

    /// The name, as in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::All => "all",
        }
    }

    /// Reads the name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }

    /// Whether something of this class is within it.
    pub(super) const fn covers(self, class: Class) -> bool {
        match (self, class) {
            (_, Class::Read) | (Self::Operate | Self::All, Class::Operate) | (Self::All, Class::Admin) => true,
            (Self::Read, Class::Operate | Class::Admin) | (Self::Operate, Class::Admin) => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_role_and_scope_reads_back() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(scope));
        }
        assert_eq!(Role::parse("Operator"), None);
        assert_eq!(Scope::parse(""), None);
    }

    #[test]
    fn a_grant_is_a_role_and_perhaps_a_group() {
        let on = |role, group: Option<&str>| Ok(Grant { role, group: group.map(str::to_owned) });
        assert_eq!(Grant::parse("operator"), on(Role::Operator, None));
        assert_eq!(Grant::parse("reader:web"), on(Role::Reader, Some("web")));
        assert_eq!(Grant::parse("group-admin:a:b"), on(Role::GroupAdmin, Some("a:b")));
        assert_eq!(Grant::parse("root"), Err(BadGrant::UnknownRole("root".into())));
        assert_eq!(Grant::parse("operator:"), Err(BadGrant::NoGroup(Role::Operator)));
        assert_eq!(Grant::parse("org-admin:web"), Err(BadGrant::TakesNoGroup(Role::OrgAdmin, "web".into())));
        assert_eq!(Grant::parse("server-admin:web"), Err(BadGrant::TakesNoGroup(Role::ServerAdmin, "web".into())));
    }

    proptest! {
        #[test]
        fn what_is_read_as_a_grant_is_written_the_same(text in "(server-admin|operator|reader|x)?:?\\PC{0,6}") {
            if let Ok(grant) = Grant::parse(&text) {
                prop_assert_eq!(grant.to_string(), text);
            }
        }
    }
}
