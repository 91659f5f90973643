//! Logging in over our own API: who vouches, what becomes a session, and the cookie of it.

use crate::error::ApiError;
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
pub(crate) struct Credentials<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    /// Who is to check it
    pub(crate) auth: &'a str,
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

/// Makes a session for somebody who has the right password. The session he came with ends: its token may be known to others.
pub(crate) async fn log_in(
    app: &App,
    gate: &Gate,
    from: Source,
    shown: Credentials<'_>,
    old: Option<&Session>,
) -> Result<SignedIn, ApiError> {
    let origin = from.address.to_string();
    let vouched = match gate.vouch(from.address, shown.auth, shown.user, shown.password).await {
        Ok(identity) => Identity { user: identity.user, auth: identity.auth, groups: identity.groups },
        Err(Refused::TooMany { retry_after }) => {
            return Err(ApiError::too_many("too many log-ins were tried", retry_after));
        }
        Err(refused @ Refused::Denied) => {
            app.refused_sign_in(shown.user, shown.auth, &origin).await?;
            return Err(Error::Unauthenticated(refused.to_string()).into());
        }
    };
    let signed_in = app.sign_in(vouched, &origin, None).await?;
    if let Some(old) = old
        && old.kind == TokenKind::Session
        && old.caller.who == signed_in.session.caller.who
    {
        app.sign_out(old).await?;
    }
    Ok(signed_in)
}

impl Source {
    /// The cookie of a session. Scripts cannot read it, and other sites do not send it.
    pub(crate) fn cookie(&self, token: &str, lifetime: Duration) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("session_id={token}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", lifetime.as_secs())
    }

    /// What removes the cookie.
    pub(crate) fn no_cookie(&self) -> String {
        self.cookie("", Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_cannot_read_the_cookie_and_other_sites_do_not_send_it() {
        let source = |secure| Source { address: Ipv4Addr::LOCALHOST.into(), secure };
        let cookie = source(true).cookie("ab", Duration::from_secs(60));
        assert_eq!(cookie, "session_id=ab; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(source(false).no_cookie(), "session_id=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }
}
