//! The OpenAPI document: made from the routes, completed with what all of them have in common, and shown to people.
//!
//! A route that is in the router is in the document, because the same line puts it into both (`v1::routes`). Each operation
//! tells what it answers when all goes well and what is special about it; `complete` adds what the machinery around every
//! operation answers, so that nobody can forget it: no log-in, a query that is not understood, a body that is too large.

mod complete;
mod describe;
mod escape;
mod page;
mod reference;
mod responses;

pub(crate) use complete::{WITHOUT_KEY, complete};
pub(crate) use page::{STYLE, page};
pub use reference::reference;
pub(crate) use responses::{Changed, Conflict, Missing, Tagged};

use serde_json::Value;

/// The document of `/api/v1`, as it is served.
pub fn document() -> Value {
    let (_, document) = crate::v1::routes().split_for_parts();
    complete(&document)
}
