//! Who somebody is: the backends that check a password, and the gate in front of them.
//!
//! [`Gate`] is what the HTTP side calls: it counts tries, lets every refusal take the same time and asks [`Backends`], which
//! chooses the one backend that decides. What a person may do is no question here: a backend vouches for a name and its
//! groups, and the server knows the rest.
//!
//! Invariants: a refusal never tells what was wrong, neither by its words nor by its time; no backend ever sees an empty
//! password, since an LDAP server takes one for an anonymous bind and says yes; passwords are in no log and no error.

mod error;
pub mod file;
mod gate;
pub mod ldap;
pub mod pam;
mod shared_secret;
mod tries;

pub use error::Error;
pub use gate::{Gate, Limits};
pub use saltern_server::app::Identity;
pub use saltern_server::config::Secret;

use error::Trouble;
use futures_util::future::BoxFuture;
use shared_secret::SharedSecret;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long anybody waits for a backend; one that needs longer counts as broken.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest name and password that are looked at, in bytes.
const LONGEST_USER: usize = 256;
const LONGEST_PASSWORD: usize = 1024;
/// The order in which `auto` looks for a backend.
const AUTO: [Kind; 3] = [Kind::Pam, Kind::Ldap, Kind::File];

/// Which backends there are: those that `external_auth` names. None of them is needed for local users.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The system's own users.
    pub pam: Option<pam::Settings>,
    /// A directory.
    pub ldap: Option<ldap::Settings>,
    /// A file of names and passwords.
    pub file: Option<file::Settings>,
    /// One password for everybody; an empty one is refused at start.
    pub shared_secret: Option<Secret>,
}

/// The users whom the server itself knows by name and password.
pub trait LocalUsers: Send + Sync {
    /// The backend that vouches for a user whom the server knows, disabled ones included: `local` if his password is kept here.
    fn auth_of<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Option<String>>;
    /// Whether this is the user's password and he may log in.
    fn check<'a>(&'a self, user: &'a str, password: &'a str) -> BoxFuture<'a, bool>;
}

/// Why somebody is not let in, which is all he is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Whatever was wrong: name, password, backend.
    #[error("the user name or the password is wrong")]
    Denied,
    /// He or his neighbours try too often.
    #[error("too many log-ins: try again in {} s", retry_after.as_secs().max(1))]
    TooMany {
        /// When another try makes sense.
        retry_after: Duration,
    },
}

/// All backends of a server.
pub struct Backends {
    pam: Option<pam::Pam>,
    ldap: Option<ldap::Ldap>,
    file: Option<file::PasswordFile>,
    shared_secret: Option<SharedSecret>,
    local: Arc<dyn LocalUsers>,
}

impl Backends {
    /// Makes the backends ready; what could never work is an error now and not at the first log-in.
    pub fn new(settings: Settings, local: Arc<dyn LocalUsers>) -> Result<Self, Error> {
        Ok(Self {
            pam: settings.pam.map(pam::Pam::new).transpose()?,
            ldap: settings.ldap.map(ldap::Ldap::new).transpose()?,
            file: settings.file.map(file::PasswordFile::new).transpose()?,
            shared_secret: settings.shared_secret.map(SharedSecret::new).transpose()?,
            local,
        })
    }

    /// Asks the backend that `eauth` means whether this is the user's password.
    ///
    /// Counts nothing and pads nothing: whoever answers people from afar goes through [`Gate::vouch`].
    pub async fn vouch(&self, eauth: &str, user: &str, password: &str) -> Result<Identity, Refused> {
        if !is_plausible(user, password) {
            return Err(Refused::Denied);
        }
        let kind = self.choose(eauth, user).await;
        let auth = kind.name();
        let late = |_| Err(Trouble::new("it did not answer in time"));
        let answer = tokio::time::timeout(PATIENCE, self.ask(kind, user, password)).await.unwrap_or_else(late);
        match answer {
            Ok(Some(groups)) => Ok(Identity { user: user.to_owned(), auth: auth.to_owned(), groups }),
            Ok(None) => Err(Refused::Denied),
            Err(trouble) => {
                tracing::warn!(auth, user, %trouble, "log-in refused: the backend could not check it");
                Err(Refused::Denied)
            }
        }
    }

    /// The backend that decides. A name that is not configured means the local users: clients send what their login page
    /// happens to offer.
    async fn choose(&self, eauth: &str, user: &str) -> Kind {
        let named = [Kind::Pam, Kind::Ldap, Kind::File, Kind::SharedSecret];
        if let Some(kind) = named.into_iter().find(|kind| kind.name() == eauth && self.has(*kind)) {
            return kind;
        }
        if eauth != "auto" {
            return Kind::Local;
        }
        match self.local.auth_of(user).await {
            Some(auth) => named.into_iter().find(|kind| kind.name() == auth && self.has(*kind)).unwrap_or(Kind::Local),
            None => AUTO.into_iter().find(|kind| self.has(*kind)).unwrap_or(Kind::Local),
        }
    }

    fn has(&self, kind: Kind) -> bool {
        match kind {
            Kind::Local => true,
            Kind::Pam => self.pam.is_some(),
            Kind::Ldap => self.ldap.is_some(),
            Kind::File => self.file.is_some(),
            Kind::SharedSecret => self.shared_secret.is_some(),
        }
    }

    /// The user's groups if the password is his, nothing if it is not.
    async fn ask(&self, kind: Kind, user: &str, password: &str) -> Result<Option<Vec<String>>, Trouble> {
        let without_groups = |is_his: bool| is_his.then(Vec::new);
        match kind {
            Kind::Pam => match &self.pam {
                Some(pam) => pam.check(user, password).await,
                None => Ok(None),
            },
            Kind::Ldap => match &self.ldap {
                Some(ldap) => ldap.check(user, password).await,
                None => Ok(None),
            },
            Kind::File => match &self.file {
                Some(file) => file.check(user, password).await.map(without_groups),
                None => Ok(None),
            },
            Kind::SharedSecret => {
                Ok(without_groups(self.shared_secret.as_ref().is_some_and(|secret| secret.check(password))))
            }
            Kind::Local => Ok(without_groups(self.local.check(user, password).await)),
        }
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [Kind::Local, Kind::Pam, Kind::Ldap, Kind::File, Kind::SharedSecret];
        f.debug_set().entries(all.into_iter().filter(|kind| self.has(*kind)).map(Kind::name)).finish()
    }
}

/// One kind of backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Local,
    Pam,
    Ldap,
    File,
    SharedSecret,
}

impl Kind {
    /// What Salt calls it, where Salt has it.
    const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Pam => "pam",
            Self::Ldap => "ldap",
            Self::File => "file",
            Self::SharedSecret => "sharedsecret",
        }
    }
}

/// Whether any backend should see these at all. Names with blanks around them or control characters are nobody's, but
/// some backends would take them for the name without, and two names would be one person.
fn is_plausible(user: &str, password: &str) -> bool {
    let name = !user.is_empty() && user.len() <= LONGEST_USER && user.trim() == user;
    let password_fits = !password.is_empty() && password.len() <= LONGEST_PASSWORD;
    name && password_fits && !user.chars().any(char::is_control) && !password.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_that_no_backend_should_see() {
        let long = "x".repeat(LONGEST_PASSWORD + 1);
        let refused =
            [("", "pw"), ("ann", ""), (" ann", "pw"), ("ann ", "pw"), ("a\nb", "pw"), ("ann", "p\0w"), ("ann", &long)];
        for (user, password) in refused {
            assert!(!is_plausible(user, password), "{user:?} {password:?}");
        }
        assert!(is_plausible("ann", "pw"));
        assert!(is_plausible("ann marie@example.org", " pass word "));
    }
}
