//! Which backend decides.

use super::{backends, identity};
use saltern_api::login::{Backends, Refused, Secret, Settings, file};
use saltern_testkit::scratch::Scratch;

const DENIED: Result<saltern_api::login::Identity, Refused> = Err(Refused::Denied);

/// A file in which `ann` has another password than the local one, and the shared secret beside it.
fn with_file_and_secret(scratch: &Scratch) -> Backends {
    let path = scratch.write("users", "ann:filed\nfred:filed\ndora:filed\n");
    let file = file::Settings::from_options([("filename", path.to_str().unwrap())]).unwrap();
    let shared_secret = Some(Secret::from("the shared secret"));
    backends(Settings { file: Some(file), shared_secret, ..Settings::default() })
}

#[tokio::test(start_paused = true)]
async fn without_backends_every_name_means_the_local_users() {
    let backends = backends(Settings::default());
    for eauth in ["local", "saltern", "auto", "pam", "ldap", "file", "sharedsecret", "mysql", ""] {
        let answer = backends.vouch(eauth, "ann", "ann's password").await;
        assert_eq!(answer, identity("ann", "local", &[]), "{eauth}");
        assert_eq!(backends.vouch(eauth, "ann", "wrong").await, DENIED, "{eauth}");
        assert_eq!(backends.vouch(eauth, "stranger", "ann's password").await, DENIED, "{eauth}");
    }
}

#[tokio::test]
async fn a_configured_backend_decides_by_itself() {
    let scratch = Scratch::new("login");
    let backends = with_file_and_secret(&scratch);
    assert_eq!(backends.vouch("file", "ann", "filed").await, identity("ann", "file", &[]));
    assert_eq!(backends.vouch("file", "ann", "ann's password").await, DENIED);
    assert_eq!(backends.vouch("local", "ann", "filed").await, DENIED);
    assert_eq!(backends.vouch("sharedsecret", "zoe", "the shared secret").await, identity("zoe", "sharedsecret", &[]));
    assert_eq!(backends.vouch("sharedsecret", "ann", "ann's password").await, DENIED);
}

#[tokio::test]
async fn auto_asks_another_backend_only_for_people_who_are_not_local() {
    let scratch = Scratch::new("login");
    let backends = with_file_and_secret(&scratch);
    assert_eq!(backends.vouch("auto", "ann", "ann's password").await, identity("ann", "local", &[]));
    assert_eq!(backends.vouch("auto", "ann", "filed").await, DENIED);
    assert_eq!(backends.vouch("auto", "fred", "filed").await, identity("fred", "file", &[]));
    assert_eq!(backends.vouch("auto", "fred", "the shared secret").await, DENIED);
    // Disabled here is disabled, whoever else would vouch.
    assert_eq!(backends.vouch("auto", "dora", "filed").await, DENIED);
    // Who is known to come by another way comes by that one, also if it is not the first.
    assert_eq!(backends.vouch("auto", "sam", "the shared secret").await, identity("sam", "sharedsecret", &[]));
}

#[tokio::test]
async fn an_empty_password_is_nobodys() {
    let scratch = Scratch::new("login");
    let path = scratch.write("users", "ann:\n");
    let file = file::Settings::from_options([("filename", path.to_str().unwrap())]).unwrap();
    let backends = backends(Settings { file: Some(file), ..Settings::default() });
    assert_eq!(backends.vouch("file", "ann", "").await, DENIED);
}
