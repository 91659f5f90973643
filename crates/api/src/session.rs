//! Logging in over HTTP, whichever API it is asked of: who vouches, what becomes a session, and the cookie of it.

use crate::http::Peer;
use crate::login::{Gate, Refused};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use saltern_server::Error;
use saltern_server::app::{App, Identity, Session, SignedIn, TokenKind};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    address: IpAddr,
    secure: bool,
}

/// What somebody shows to be let in.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
    /// Who is to check it
    pub(crate) auth: String,
}

/// Why somebody is not let in.
pub(crate) enum NotIn {
    /// Whatever was wrong
    Denied,
    /// Too many tries; when another one makes sense
    TooMany(Duration),
    /// Not his fault
    Failed(Error),
}

impl From<Error> for NotIn {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Source {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<Peer>();
        Ok(Self {
            address: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address.ip().to_canonical()),
            secure: peer.is_some_and(|peer| peer.secure),
        })
    }
}

impl Source {
    /// Of somebody whose origin is known already.
    pub(crate) fn of(origin: &str) -> Self {
        Self { address: origin.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), secure: false }
    }

    /// As audit entries have it.
    pub(crate) fn origin(&self) -> String {
        self.address.to_string()
    }

    /// The cookie of a session. Scripts cannot read it, and other sites do not send it.
    pub(crate) fn cookie(&self, signed_in: &SignedIn) -> String {
        let Session { created, expires, .. } = &signed_in.session;
        self.cookie_with(&signed_in.token, expires.since(*created))
    }

    /// What removes the cookie.
    pub(crate) fn no_cookie(&self) -> String {
        self.cookie_with("", Duration::ZERO)
    }

    fn cookie_with(&self, token: &str, lifetime: Duration) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("session_id={token}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", lifetime.as_secs())
    }
}

/// Asks the backend. A refusal goes into the audit log.
pub(crate) async fn vouch(app: &App, gate: &Gate, from: Source, shown: &Credentials) -> Result<Identity, NotIn> {
    match gate.vouch(from.address, &shown.auth, &shown.user, &shown.password).await {
        Ok(identity) => Ok(identity),
        Err(Refused::TooMany { retry_after }) => Err(NotIn::TooMany(retry_after)),
        Err(Refused::Denied) => {
            app.refused_sign_in(&shown.user, &shown.auth, &from.origin()).await?;
            Err(NotIn::Denied)
        }
    }
}

/// Makes a session for somebody who has the right password. The session he came with ends: its token may be known to others.
pub(crate) async fn log_in(
    app: &App,
    gate: &Gate,
    from: Source,
    shown: &Credentials,
    lifetime: Option<Duration>,
    old: Option<&Session>,
) -> Result<SignedIn, NotIn> {
    let identity = vouch(app, gate, from, shown).await?;
    let signed_in = app.sign_in(identity, &from.origin(), lifetime).await?;
    if let Some(old) = old
        && old.kind == TokenKind::Session
        && old.caller.who == signed_in.session.caller.who
    {
        app.sign_out(old).await?;
    }
    Ok(signed_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_cannot_read_the_cookie_and_other_sites_do_not_send_it() {
        let source = |secure| Source { address: Ipv4Addr::LOCALHOST.into(), secure };
        let cookie = source(true).cookie_with("ab", Duration::from_secs(60));
        assert_eq!(cookie, "session_id=ab; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(source(false).no_cookie(), "session_id=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }
}
