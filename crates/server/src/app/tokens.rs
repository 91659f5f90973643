//! Tokens: what programs log in with, and which log-ins are open.

use super::sign_in::secret_id;
use super::users::check_rank;
use super::{App, Caller};
use crate::access::new_token;
use crate::{Error, clock};
use saltern_core::access::{Scope, Thing, Wish};
use saltern_core::time::Timestamp;
use saltern_store::{Token, TokenKind};
use std::time::Duration;

/// A token that is wanted.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Whose; nothing: his own
    pub user: Option<String>,
    /// What it is for
    pub name: String,
    /// What it may at most
    pub scope: Scope,
    /// How long it lasts
    pub lifetime: Duration,
}

/// A token in a list, without the token.
#[derive(Clone, Debug)]
pub struct TokenEntry {
    /// Its public name
    pub id: String,
    /// Whether it is a log-in or for programs
    pub kind: TokenKind,
    /// Whose
    pub user: String,
    /// What it is for
    pub name: String,
    /// What it may at most
    pub scope: String,
    /// When it was made
    pub created: Timestamp,
    /// When it ends
    pub expires: Timestamp,
    /// When it was last used
    pub last_used: Option<Timestamp>,
    /// From where it was made
    pub origin: String,
}

/// The longest life of a token.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Most tokens in one answer.
const PAGE: usize = 1_000;

impl App {
    /// Makes a token. It is told now and never again.
    pub async fn create_token(&self, caller: &Caller, wanted: NewToken) -> Result<(String, TokenEntry), Error> {
        // Or a token for reading that ends today would make one for the next ten years.
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let user = wanted.user.unwrap_or_else(|| caller.who.clone());
        let known = self.master.directory.snapshot().users.get(&user).cloned();
        let (auth, groups) = match &known {
            Some(known) => (known.auth.clone(), Vec::new()),
            // Somebody whom only Salt's rules know: his token is what his log-in was.
            None if user == caller.who => self.vouched(caller).await?,
            None => return Err(Error::NotFound(format!("there is no user {user:?}"))),
        };
        if user != caller.who {
            let org = known.as_ref().map(|known| known.org.clone()).unwrap_or_default();
            let missing = || Error::NotFound(format!("there is no user {user:?}"));
            self.user(caller, &user).map_err(|_| missing())?;
            self.may(caller, &Wish::Manage(Thing::Users { org: &org }))?;
            if let Some(known) = &known {
                check_rank(caller, known)?;
            }
            // A backend vouches for him, and its rules reach beyond the organisation: nobody else may do it in its place.
            let has_rules = !self.master.config.login.external_auth.entries(&auth, &user, &groups).is_empty();
            if has_rules && !caller.rights.server_admin {
                return Err(Error::Forbidden(format!(
                    "external_auth gives {user:?} rights: he makes his tokens himself, or a server admin does"
                )));
            }
        }
        if wanted.lifetime.is_zero() || wanted.lifetime > LONGEST {
            return Err(Error::Invalid("a token lasts at least a second and at most ten years".into()));
        }
        if wanted.name.len() > 200 {
            return Err(Error::Invalid("a token's name has at most 200 bytes".into()));
        }
        let (secret, hash) = new_token()?;
        let now = clock::now();
        let token = Token {
            id: secret_id(&hash),
            hash,
            kind: TokenKind::Api,
            user,
            auth,
            groups,
            name: wanted.name,
            scope: wanted.scope.as_str().into(),
            created: now,
            expires: now.plus(wanted.lifetime),
            last_used: None,
            origin: caller.origin.clone(),
        };
        let detail = serde_json::json!({ "id": token.id, "scope": token.scope, "name": token.name });
        let audit = caller.audit("token.create", &token.user, detail);
        let made = entry(&token);
        self.master.store.put_token(token, audit).await?;
        Ok((secret, made))
    }

    /// Tokens and open log-ins, his own or (for those who look after people) everybody's.
    pub async fn tokens(
        &self,
        caller: &Caller,
        user: Option<&str>,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TokenEntry>, Error> {
        let wanted = match user {
            Some(name) if name != caller.who => {
                let org = self.user(caller, name)?.org;
                self.may(caller, &Wish::Manage(Thing::Users { org: &org }))?;
                Some(name.to_owned())
            }
            Some(name) => Some(name.to_owned()),
            None if caller.rights.may(&Wish::Manage(Thing::Server)).is_ok() => None,
            None => Some(caller.who.clone()),
        };
        let rows = self.master.store.tokens(wanted.as_deref(), after, limit.clamp(1, PAGE)).await?;
        Ok(rows.iter().map(entry).collect())
    }

    /// Takes a token back, or ends a log-in.
    pub async fn delete_token(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let missing = || Error::NotFound(format!("there is no token {id:?}"));
        let token = self.master.store.token_by_id(id).await?.ok_or_else(missing)?;
        if token.user != caller.who {
            let org = self.user(caller, &token.user).map(|user| user.org).or_else(|_| {
                // People whom only Salt's rules know have no entry: the server admin looks after them.
                if caller.rights.server_admin { Ok(String::new()) } else { Err(missing()) }
            })?;
            self.may(caller, &Wish::Manage(Thing::Users { org: &org })).map_err(|_| missing())?;
            if let Some(owner) = self.master.directory.snapshot().users.get(&token.user) {
                check_rank(caller, owner)?;
            }
        }
        let audit = caller.audit("token.delete", &token.user, serde_json::json!({ "id": id }));
        self.master.store.delete_token(id.to_owned(), audit).await?;
        self.forget_tokens(|known| known.id == id);
        Ok(())
    }

    /// What vouched for a caller whom the directory does not know.
    async fn vouched(&self, caller: &Caller) -> Result<(String, Vec<String>), Error> {
        let Some(secret) = &caller.token else {
            return Err(Error::Invalid("name the user the token is for".into()));
        };
        let session = self.caller_of_token(secret.reveal(), &caller.origin).await?;
        Ok((session.auth, session.groups))
    }
}

fn entry(token: &Token) -> TokenEntry {
    TokenEntry {
        id: token.id.clone(),
        kind: token.kind,
        user: token.user.clone(),
        name: token.name.clone(),
        scope: token.scope.clone(),
        created: token.created,
        expires: token.expires,
        last_used: token.last_used,
        origin: token.origin.clone(),
    }
}
