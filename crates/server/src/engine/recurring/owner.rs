//! As whose work something recurs: what is kept of the owner, and what he may do when it fires.
//!
//! Rights are made anew each time. Who has lost them, or is gone, has his definitions refused; nothing runs with rights that
//! somebody once had.

use super::definition::Definition;
use super::instants::Round;
use crate::Error;
use crate::access::Person;
use crate::app::Caller;
use crate::master::Master;
use saltern_core::access::{Rights, Scope};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What vouches for people that only our directory knows.
const LOCAL: &str = "local";

/// What is kept of an owner.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Kept {
    /// Somebody who was vouched for
    Person { user: String, auth: String, groups: Vec<String> },
    /// Whoever may open the control socket
    Socket { socket: bool },
}

/// What is kept of somebody who becomes an owner, as JSON text.
pub(crate) fn kept_owner(caller: &Caller) -> Result<String, Error> {
    let kept = match &caller.person {
        Some(Person { name, auth, groups, .. }) => {
            Kept::Person { user: name.clone(), auth: auth.clone(), groups: groups.clone() }
        }
        None if caller.rights.server_admin => Kept::Socket { socket: true },
        None => return Err(Error::Forbidden("log in first: what recurs is done as somebody's work".into())),
    };
    serde_json::to_string(&kept).map_err(|error| Error::Internal(error.to_string()))
}

impl Master {
    /// The owner as he is now, or why there is none; looked up once in a round.
    pub(super) async fn owner_in_round(
        self: &Arc<Self>,
        round: &Round,
        definition: &Definition,
    ) -> Result<Arc<Rights>, Error> {
        let cell = round.owner(&definition.row);
        let rights = cell.get_or_try_init(|| async {
            Ok::<_, Error>(Arc::new(self.owner_now(&definition.row.owner, &definition.row.person).await?))
        });
        Ok(rights.await?.clone())
    }

    async fn owner_now(self: &Arc<Self>, owner: &str, kept: &str) -> Result<Rights, Error> {
        let broken = |_| Error::Internal(format!("what is kept of the owner {owner:?} cannot be read"));
        match serde_json::from_str(kept).map_err(broken)? {
            Kept::Socket { socket: true } => Ok(Rights::administrator(owner)),
            Kept::Socket { socket: false } => Err(Error::Forbidden(format!("{owner:?} is nobody"))),
            Kept::Person { user, auth, groups } => {
                if auth == LOCAL && !self.directory.snapshot().users.contains_key(&user) {
                    return Err(Error::Forbidden(format!("its owner {user:?} is not a user any more")));
                }
                // What the token that he came with was for was asked when he made it.
                let person = Person { name: user, auth, groups, scope: Scope::All };
                self.rights(&person).await.map_err(|error| match error {
                    Error::Unauthenticated(why) => Error::Forbidden(format!("its owner {owner:?}: {why}")),
                    other => other,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_people_and_of_the_socket_differs() {
        let person = r#"{"user":"ann","auth":"pam","groups":["wheel"]}"#;
        let kept: Kept = serde_json::from_str(person).unwrap();
        assert_eq!(kept, Kept::Person { user: "ann".into(), auth: "pam".into(), groups: vec!["wheel".into()] });
        assert_eq!(serde_json::to_string(&kept).unwrap(), person);
        let socket = kept_owner(&Caller::administrator("root", "socket")).unwrap();
        assert_eq!(socket, r#"{"socket":true}"#);
        assert_eq!(serde_json::from_str::<Kept>(&socket).unwrap(), Kept::Socket { socket: true });
    }

    #[test]
    fn somebody_without_a_name_that_was_vouched_for_owns_nothing() {
        let caller = Caller::with_rights("test", Rights::nobody("x"));
        assert!(kept_owner(&caller).is_err());
    }
}
