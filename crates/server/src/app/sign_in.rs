//! Coming in: a name that was vouched for becomes a token, and a token becomes a caller with his rights.

use super::{App, Caller};
use crate::access::{Person, new_token};
use crate::{Error, clock};
use saltern_core::access::{Scope, Wish};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{AuditEntry, Token, TokenKind};
use std::sync::Arc;
use std::time::Duration;

/// Somebody whose name a way to log in has vouched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// His name
    pub user: String,
    /// What vouched for him: `local`, `pam`, `ldap`, `file`, `sharedsecret`
    pub auth: String,
    /// The groups it says he is in
    pub groups: Vec<String>,
}

/// A token that was shown, and who shows it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Who he is and what he may
    pub caller: Caller,
    /// The token's public name
    pub token_id: String,
    /// Whether it is a log-in or a token for programs
    pub kind: TokenKind,
    /// What vouched for him when it was made
    pub auth: String,
    /// The groups that said he is in
    pub groups: Vec<String>,
    /// When it was made
    pub created: Timestamp,
    /// When it ends
    pub expires: Timestamp,
}

/// A log-in that succeeded.
pub struct SignedIn {
    /// The token, told once
    pub token: String,
    /// What it is good for
    pub session: Session,
}

/// How often a session is looked at that nobody said anything about.
const LOOK: Duration = Duration::from_secs(2);

/// The longest time a log-in may last.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

impl App {
    /// Whether he may; the refusal says what is missing.
    pub fn may(&self, caller: &Caller, wish: &Wish<'_>) -> Result<(), Error> {
        caller.rights.may(wish).map_err(|refusal| Error::Forbidden(refusal.message))
    }

    /// Who shows this token.
    pub async fn caller_of_token(&self, secret: &str, origin: &str) -> Result<Session, Error> {
        let unknown = || Error::Unauthenticated("the token is not valid, or not any more; log in again".into());
        let master = &self.master;
        let token = master.tokens.look_up(&master.store, secret, clock::now()).await?.ok_or_else(unknown)?;
        let person = Person {
            name: token.user.clone(),
            auth: token.auth.clone(),
            groups: token.groups.clone(),
            scope: Scope::parse(&token.scope).ok_or_else(unknown)?,
        };
        let rights = master.rights(&person).await?;
        Ok(Session {
            caller: Caller {
                who: person.name.clone(),
                origin: origin.to_owned(),
                rights: Arc::new(rights),
                token: Some(secret.into()),
                person: Some(person),
            },
            token_id: token.id.clone(),
            kind: token.kind,
            auth: token.auth.clone(),
            groups: token.groups.clone(),
            created: token.created,
            expires: token.expires,
        })
    }

    /// The same caller with the rights he has now; an error if his token is not valid any more.
    pub async fn again(&self, caller: &Caller) -> Result<Caller, Error> {
        match &caller.token {
            Some(secret) => Ok(self.caller_of_token(secret.reveal(), &caller.origin).await?.caller),
            None => Ok(caller.clone()),
        }
    }

    /// Is told when somebody's rights or tokens may have changed.
    pub fn access_changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.master.directory.changes()
    }

    /// Whether a local user has this password. Takes as long whether or not there is one.
    pub async fn check_password(&self, user: &str, password: &str) -> bool {
        let snapshot = self.master.directory.snapshot();
        let known = snapshot.users.get(user).filter(|user| user.auth == LOCAL && !user.disabled);
        self.master.passwords.check(password, known.and_then(|user| user.password.as_deref())).await
    }

    /// What vouches for a user that is in the directory.
    pub fn auth_of(&self, user: &str) -> Option<String> {
        self.master.directory.snapshot().users.get(user).map(|user| user.auth.clone())
    }

    /// Somebody who was vouched for, for this one request.
    pub async fn caller_of(&self, identity: &Identity, origin: &str) -> Result<Caller, Error> {
        let Identity { user, auth, groups } = identity.clone();
        let person = Person { name: user, auth, groups, scope: Scope::All };
        let caller = Caller::with_rights(origin, self.master.rights(&person).await?);
        Ok(Caller { person: Some(person), ..caller })
    }

    /// Makes a session for somebody who was vouched for.
    pub async fn sign_in(
        &self,
        identity: Identity,
        origin: &str,
        lifetime: Option<Duration>,
    ) -> Result<SignedIn, Error> {
        let login = &self.master.config.login;
        let asked = lifetime.filter(|_| login.token_expire_user_override).map(|asked| asked.min(LONGEST));
        // Who could not do anything with a session gets none.
        self.caller_of(&identity, origin).await?;
        let (secret, hash) = new_token()?;
        let now = clock::now();
        let token = Token {
            id: secret_id(&hash),
            hash,
            kind: TokenKind::Session,
            user: identity.user,
            auth: identity.auth,
            groups: identity.groups,
            name: String::new(),
            scope: Scope::All.as_str().into(),
            created: now,
            expires: now.plus(asked.unwrap_or(login.token_expire)),
            last_used: Some(now),
            origin: origin.to_owned(),
        };
        let audit = AuditEntry {
            at: now,
            who: token.user.clone(),
            origin: origin.to_owned(),
            what: "session.create".into(),
            subject: token.user.clone(),
            detail: serde_json::json!({ "auth": token.auth }).to_string(),
        };
        self.master.store.put_token(token, audit).await?;
        let session = self.caller_of_token(&secret, origin).await?;
        Ok(SignedIn { token: secret, session })
    }

    /// A log-in that failed goes into the audit log: who was named, and from where.
    pub async fn refused_sign_in(&self, user: &str, auth: &str, origin: &str) -> Result<(), Error> {
        let entry = AuditEntry {
            at: clock::now(),
            who: user.chars().take(100).collect(),
            origin: origin.to_owned(),
            what: "session.refuse".into(),
            subject: String::new(),
            detail: serde_json::json!({ "auth": auth.chars().take(40).collect::<String>() }).to_string(),
        };
        Ok(self.master.store.record_audit(entry).await?)
    }

    /// Ends a session, or takes a token back: the one that was shown.
    pub async fn sign_out(&self, session: &Session) -> Result<(), Error> {
        let audit = session.caller.audit("session.delete", &session.caller.who, serde_json::json!({}));
        self.master.store.delete_token(session.token_id.clone(), audit).await?;
        self.forget_tokens(|token| token.id == session.token_id);
        Ok(())
    }

    /// Ends when this session is no longer good: signed out, taken back, expired, its user shut out.
    pub async fn session_ended(&self, session: &Session) {
        let mut changes = self.access_changes();
        while self.again(&session.caller).await.is_ok() {
            let left = session.expires.since(clock::now()).min(LOOK);
            tokio::select! {
                told = changes.changed() => {
                    if told.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// Takes back the token that is shown: one's own, or anybody's for a server admin.
    pub async fn revoke(&self, caller: &Caller, secret: &str) -> Result<bool, Error> {
        let Ok(session) = self.caller_of_token(secret, &caller.origin).await else { return Ok(false) };
        if session.caller.who != caller.who && !caller.rights.server_admin {
            return Ok(false);
        }
        self.sign_out(&session).await?;
        Ok(true)
    }

    /// What salt-api's log-in tells of his permissions.
    pub fn perms(&self, session: &Session) -> Value {
        let rules = &self.master.config.login.external_auth;
        let rights = &session.caller.rights;
        if rights.rules.is_empty() {
            return rights.perms();
        }
        rules.perms(&session.auth, &session.caller.who, &session.groups)
    }

    pub(super) fn forget_tokens(&self, is_gone: impl Fn(&Token) -> bool) {
        self.master.tokens.forget(is_gone);
        self.master.directory.tell_change();
    }
}

/// What vouches for users whose passwords we keep.
pub(super) const LOCAL: &str = "local";

/// The name of a token that may be shown: the beginning of its hash says nothing of the token.
pub(super) fn secret_id(hash: &[u8; 32]) -> String {
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
