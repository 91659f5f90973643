//! What is offered over HTTP: our own API under `/api/v1`, and the client that the command line uses.
//!
//! It is served on the control socket in the data directory, to whoever may open that file (`control`), and over HTTP to
//! whoever shows a token (`front`). Both put a [`saltern_server::app::Caller`] into each request; nothing behind them knows how
//! a request came.
//!
//! Must never know: the store, the wire, SQL. It calls [`saltern_server::app::App`] and nothing below.
//!
//! Main types: [`control::ControlSocket`] (the listener), [`client::Client`] (the other end), and [`shape`], the JSON that
//! goes between them. Then read `v1`: one file per resource.

mod app;
pub mod client;
pub mod control;
mod error;
mod extract;
mod fields;
mod follow;
mod front;
pub mod http;
mod idempotency;
pub mod login;
pub mod openapi;
mod salt;
mod session;
pub mod shape;
mod stream;
mod v1;

pub use front::{Front, FrontError};
pub use v1::router;

use control::{ControlError, ControlSocket};
use saltern_server::app::App;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Offers `app` on a control socket at `path` until `stop`.
pub async fn serve(app: App, path: &Path, stop: CancellationToken) -> Result<(), ControlError> {
    ControlSocket::bind(path).await?.serve(app, stop).await
}
