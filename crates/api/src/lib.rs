//! What is offered over HTTP: our own API under `/api/v1`, and the client that the command line uses.
//!
//! Today it is served on the control socket in the data directory, to whoever may open that file. Another listener (TCP with
//! users and tokens) has to do one thing: put a [`saltern_server::app::Caller`] into each request. Nothing else here knows
//! how a request came.
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
pub mod shape;
mod stream;
mod v1;

pub use v1::router;

use control::{ControlError, ControlSocket};
use saltern_server::app::App;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Offers `app` on a control socket at `path` until `stop`.
pub async fn serve(app: App, path: &Path, stop: CancellationToken) -> Result<(), ControlError> {
    ControlSocket::bind(path).await?.serve(app, stop).await
}
