//! Logging in: which backend decides, what a refused person can see, and each backend against the real thing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod choice;
mod files;
mod gate;
mod ldap;
mod pam;

use futures_util::future::BoxFuture;
use saltern_api::login::{Backends, Identity, LocalUsers, Refused, Settings};
use std::sync::Arc;
use std::time::Duration;

/// The users of a server: `ann` may log in, `dora` is disabled, `sam` shows the shared secret. Checking takes different times, as it might.
struct Local;

impl LocalUsers for Local {
    fn auth_of<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Option<String>> {
        let auth = match user {
            "ann" | "dora" => Some("local"),
            "sam" => Some("sharedsecret"),
            _ => None,
        };
        Box::pin(async move { auth.map(str::to_owned) })
    }

    fn check<'a>(&'a self, user: &'a str, password: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            match user {
                "ann" => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    password == "ann's password"
                }
                "dora" => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    false
                }
                _ => false,
            }
        })
    }
}

fn backends(settings: Settings) -> Backends {
    Backends::new(settings, Arc::new(Local)).unwrap()
}

fn identity(user: &str, auth: &str, groups: &[&str]) -> Result<Identity, Refused> {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Ok(Identity { user: user.to_owned(), auth: auth.to_owned(), groups })
}
