//! Answers that several operations have in common.

use super::complete::problem;
use std::collections::BTreeMap;
use utoipa::IntoResponses;
use utoipa::openapi::response::Response;
use utoipa::openapi::{RefOr, ResponseBuilder};

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($status:literal => $answer:expr),+ $(,)? })+) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    [$(($status.to_owned(), $answer)),+].into()
                }
            }
        )+
    };
}

answers! {
    /// What the path names may be missing.
    Missing { "404" => problem("There is no such thing, or none that you may know of") }

    /// What is asked may contradict what is there.
    Conflict { "409" => problem("It contradicts what is there") }

    /// It is changed only at the version that is expected.
    Changed {
        "404" => problem("There is no such thing, or none that you may know of"),
        "409" => problem("It contradicts what is there"),
        "412" => problem("It was changed since you read it: read it again"),
        "428" => problem("The header `If-Match` is missing"),
    }

    /// It has a version that readers can be spared.
    Tagged {
        "304" => ResponseBuilder::new().description("You have it already: its version is in `If-None-Match`").into(),
        "404" => problem("There is no such thing, or none that you may know of"),
    }
}
