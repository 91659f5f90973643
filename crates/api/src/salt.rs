//! salt-api's URLs at the root, in the dialect of Salt 3006 and 3007: pepper, SaltGUI, Halite and scripts work unchanged.
//!
//! A request is read (`body`, `lowdata`), its format agreed on (`accept`), its sender identified (`session`), and only then
//! is anything done: commands for minions in `local`, the server's own functions in `runner` and `wheel`. What salt-api does
//! wrong (results of others for everybody, one permitted function that permits all, secrets in events …) is not done here.
//!
//! Not here: the socket, TLS, CORS, compression, limits (`http`); passwords (`login`); what may be done (`core::access`).

mod accept;
mod body;
mod call;
mod commands;
mod error;
mod events;
mod function;
mod halite;
mod hook;
mod jobs;
mod keys;
mod local;
mod lowdata;
mod pages;
mod places;
mod run;
mod runner;
mod session;
mod stamp;
mod stats;
mod summary;
mod wheel;
mod words;
mod ws;

use crate::login::Gate;
use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::{MethodRouter, get, post};
use error::Failure;
use places::Places;
use saltern_server::app::App;
use stats::Counters;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Salt {
    app: App,
    gate: Arc<Gate>,
    /// Ends the answers that have no end
    stop: CancellationToken,
    places: Arc<Places>,
    counters: Arc<Counters>,
}

/// The routes. Whoever serves them puts a [`saltern_server::app::Session`] into the extensions of requests that show a valid
/// token, and a [`crate::http::Peer`] into all.
pub(crate) fn routes(app: App, gate: Arc<Gate>, stop: CancellationToken) -> Router {
    let salt = Salt { app, gate, stop, places: Arc::default(), counters: Arc::new(Counters::new()) };
    let routes: [(&str, MethodRouter<Salt>); 22] = [
        ("/login", get(session::ask_to_log_in).post(session::log_in)),
        ("/logout", post(session::log_out)),
        ("/token", get(commands::welcome).post(session::make_token)),
        ("/run", get(commands::welcome).post(commands::post_run)),
        ("/run/{token}", post(commands::post_run_by_path)),
        ("/minions", get(commands::minions).post(commands::post_minions)),
        ("/minions/{mid}", get(commands::minion).post(commands::post_minions)),
        ("/jobs", get(commands::jobs).post(commands::post)),
        ("/jobs/{jid}", get(commands::job).post(commands::post)),
        ("/jobs/{jid}/{timeout}", get(commands::job_with_timeout)),
        ("/keys", get(keys::list).post(keys::make)),
        ("/keys/{mid}", get(keys::show)),
        ("/events", get(events::follow)),
        ("/ws", get(ws::open)),
        ("/ws/{token}", get(ws::open_by_path)),
        ("/hook", post(hook::fire_root)),
        ("/stats", get(stats::show)),
        ("/app", get(pages::app)),
        ("/event/{token}", get(halite::events)),
        ("/fire", post(halite::fire)),
        ("/fire/{token}", post(halite::fire_by_path)),
        ("/signature", post(halite::signature)),
    ];
    let mut router = Router::new()
        .route("/", get(commands::welcome).post(commands::post).fallback(no_such_method))
        .route("/app/{*path}", get(pages::app).fallback(no_such_method))
        .route("/static/{*path}", get(pages::file).fallback(no_such_method))
        .route("/hook/{*path}", post(hook::fire).fallback(no_such_method))
        .route("/signature/{token}", post(halite::signature_by_path).fallback(no_such_method));
    for (path, methods) in routes {
        let methods = methods.fallback(no_such_method);
        // A slash at the end changes nothing.
        router = router.route(&format!("{path}/"), methods.clone()).route(path, methods);
    }
    router
        .layer(middleware::from_fn_with_state(salt.clone(), pages::prefer))
        .layer(middleware::from_fn_with_state(salt.clone(), stats::count))
        .with_state(salt)
}

async fn no_such_method() -> Failure {
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "Specified method is invalid for this resource")
}
