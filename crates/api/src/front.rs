//! The front door: everything that is offered over HTTP, behind one listener, with everybody identified by his token.

use crate::http::{HttpError, HttpListener, HttpSettings, Identified, Identify, TlsFiles, identified};
use crate::login::{self, Backends, Gate, Limits, LocalUsers};
use crate::{salt, v1};
use axum::Router;
use futures_util::future::BoxFuture;
use saltern_server::app::App;
use saltern_server::config::{Http, Login};
use saltern_server::{Class, Error};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Why HTTP is not offered: a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// The listener
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A way to log in
    #[error(transparent)]
    Login(#[from] login::Error),
}

/// HTTP, bound and ready to serve.
pub struct Front {
    listener: HttpListener,
    gate: Arc<Gate>,
}

impl Front {
    /// Takes the address that the configuration names; nothing if HTTP is off.
    pub fn bind(app: &App) -> Result<Option<Self>, FrontError> {
        let config = app.config();
        let Some(settings) = http_settings(&config.http) else { return Ok(None) };
        let backends = Backends::new(login_settings(&config.login)?, Arc::new(Directory(app.clone())))?;
        let gate = Arc::new(Gate::new(backends, &Limits::default()));
        Ok(Some(Self { listener: HttpListener::bind(settings)?, gate }))
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Its URL as this machine can use it.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// Answers until `stop`; then lets answers in hand finish for a while.
    pub async fn serve(self, app: App, stop: CancellationToken) {
        let router = router(app, self.gate, stop.clone());
        self.listener.serve(router, stop).await;
    }
}

/// Everything, with everybody identified.
fn router(app: App, gate: Arc<Gate>, stop: CancellationToken) -> Router {
    let router = v1::router(app.clone(), Some(gate.clone()), stop.clone()).merge(salt::routes(app.clone(), gate, stop));
    identified(router, Directory(app))
}

/// The people whom the server knows.
struct Directory(App);

impl Identify for Directory {
    async fn identify(&self, secret: &str, origin: &str) -> Result<Option<Identified>, Error> {
        match self.0.caller_of_token(secret, origin).await {
            Ok(session) => {
                let caller = session.caller.clone();
                Ok(Some(Identified::new(caller.who.as_str()).with(caller).with(session)))
            }
            Err(error) if error.class() == Class::Unauthenticated => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl LocalUsers for Directory {
    fn auth_of<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move { self.0.auth_of(user) })
    }

    fn check<'a>(&'a self, user: &'a str, password: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(self.0.check_password(user, password))
    }
}

fn http_settings(http: &Http) -> Option<HttpSettings> {
    Some(HttpSettings {
        tls: http.tls.clone().map(|(cert, key)| TlsFiles { cert, key }),
        allow_plain: http.http_plain,
        cors_origins: http.cors_origins.clone(),
        request_timeout: http.http_timeout,
        max_body: http.http_max_body,
        max_connections: http.http_max_connections,
        ..HttpSettings::new(http.address?)
    })
}

/// The backends that `external_auth` names, or that were set up by their own keys.
fn login_settings(login: &Login) -> Result<login::Settings, FrontError> {
    let rules = &login.external_auth;
    let named = |eauth: &str| rules.eauths().any(|known| known == eauth);
    let is_ldap = named("ldap") || !login.ldap.is_empty();
    let file = rules.options("file").filter(|_| named("file")).map(|options| {
        let texts: Vec<_> = options.iter().map(|(key, value)| (key.key_text(), value.key_text())).collect();
        login::file::Settings::from_options(texts.iter().map(|(key, value)| (key.as_ref(), value.as_ref())))
    });
    let secret = login.sharedsecret.as_ref().filter(|_| named("sharedsecret"));
    Ok(login::Settings {
        pam: named("pam")
            .then(|| login::pam::Settings { service: login.pam_service.clone(), confdir: login.pam_confdir.clone() }),
        ldap: is_ldap
            .then(|| {
                login::ldap::Settings::from_keys(login.ldap.iter().map(|(key, value)| (key.as_str(), value.reveal())))
            })
            .transpose()?,
        file: file.transpose()?,
        shared_secret: secret.cloned(),
    })
}
