//! People of a directory, checked by binding with their password.
//!
//! Two ways to a person's entry, as in Salt: `auth.ldap.binddn` with `{{ username }}` in it is the entry's name; or an
//! account of our own (`binddn` and `bindpw`) looks for it with `auth.ldap.filter`. Then the person's password is tried, and
//! the groups are looked up. One log-in is one connection.
//!
//! Why a client of our own: two operations are needed, and the one maintained client brings sixty packages for them.
//! What goes to the server is built from parsed settings (`filter`, `template`), never by pasting a name into text, so no
//! name can change what is asked.

mod ber;
mod connection;
mod dn;
mod filter;
mod groups;
mod protocol;
mod settings;
mod template;
mod tls;

pub use settings::Settings;

use super::error::Trouble;
use super::{Error, Secret};
use connection::{Connection, Endpoint};
use filter::Filter;
use groups::Groups;
use protocol::{Scope, Search};
use std::sync::Arc;
use std::time::Duration;
use template::Template;
use tokio::sync::Semaphore;

/// How long a whole log-in may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many log-ins may talk to the directory at once.
const CONNECTIONS: usize = 16;

/// A directory, ready to be asked.
pub(super) struct Ldap {
    endpoint: Endpoint,
    way: Way,
    groups: Groups,
    connections: Arc<Semaphore>,
}

/// How a person's entry is found.
enum Way {
    /// Its name is known from the person's.
    Name(Template),
    /// Somebody looks for it.
    Search { account: Account, base: String, scope: Scope, filter: Filter },
}

/// Who looks for entries.
enum Account {
    Anonymous,
    Named { dn: String, password: Secret },
}

impl Ldap {
    pub(super) fn new(settings: Settings) -> Result<Self, Error> {
        let endpoint = settings.endpoint()?;
        if !endpoint.is_secret() {
            tracing::warn!(
                server = endpoint.host(),
                "passwords go to the LDAP server in clear text: set auth.ldap.tls or auth.ldap.starttls"
            );
        }
        Ok(Self {
            way: settings.way()?,
            groups: Groups::new(&settings)?,
            endpoint,
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }

    /// The person's groups if the password is his.
    pub(super) async fn check(&self, user: &str, password: &str) -> Result<Option<Vec<String>>, Trouble> {
        let Ok(_place) = self.connections.acquire().await else { return Ok(None) };
        let answer = tokio::time::timeout(PATIENCE, self.ask(user, password));
        answer.await.map_err(|_| Trouble::new("the LDAP server did not answer in time"))?
    }

    async fn ask(&self, user: &str, password: &str) -> Result<Option<Vec<String>>, Trouble> {
        let mut connection = Connection::open(&self.endpoint).await?;
        let dn = match &self.way {
            Way::Name(template) => dn::render(template, user),
            Way::Search { account, base, scope, filter } => {
                account.bind(&mut connection).await?;
                let search =
                    Search { base, scope: *scope, most: 2, filter: filter.encode(user), attributes: &[protocol::NONE] };
                let mut found = connection.search(&search).await?;
                match (found.pop(), found.pop()) {
                    (None, _) => return Ok(None),
                    (Some(entry), None) => entry.dn,
                    (Some(_), Some(_)) => return Err(Trouble::new("auth.ldap.filter finds more than one entry")),
                }
            }
        };
        if !connection.bind(&dn, password).await? {
            return Ok(None);
        }
        // The account may look for groups where the person may not.
        if let Way::Search { account: account @ Account::Named { .. }, .. } = &self.way {
            account.bind(&mut connection).await?;
        }
        let groups = self.groups.of(user, &mut connection).await?;
        connection.close().await;
        Ok(Some(groups))
    }
}

impl Account {
    async fn bind(&self, connection: &mut Connection) -> Result<(), Trouble> {
        match self {
            // A connection that has not bound is anonymous.
            Self::Anonymous => Ok(()),
            Self::Named { dn, password } => match connection.bind(dn, password.reveal()).await? {
                true => Ok(()),
                false => Err(Trouble::new("the LDAP server refuses auth.ldap.binddn with auth.ldap.bindpw")),
            },
        }
    }
}
