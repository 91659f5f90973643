//! The backend `pam` with the real library, and services of the test's own in a folder: no user of the system is needed.

use super::identity;
use saltern_api::login::{Backends, Error, Refused, Settings, pam};
use saltern_testkit::{scratch::Scratch, tier};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

/// Takes the password that the module hands to the program on its standard input, which ends with a NUL.
const SCRIPT: &str = "#!/bin/sh\npassword=$(tr -d '\\0')\n\
                      [ \"$PAM_USER:$password\" = \"$(cat \"$(dirname \"$0\")/expected\")\" ]\n";

/// PAM with one service; nothing where there is no PAM.
fn with_service(scratch: &Scratch, rules: &str) -> Option<Backends> {
    let script = scratch.write("check", SCRIPT);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    scratch.write("expected", "patty:patty's password");
    let rules = rules.replace("CHECK", &format!("pam_exec.so quiet expose_authtok {}", script.display()));
    scratch.write("pam.d/saltern", rules);
    let confdir = Some(scratch.path().join("pam.d"));
    let pam = pam::Settings { service: "saltern".into(), confdir };
    match Backends::new(Settings { pam: Some(pam), ..Settings::default() }, Arc::new(super::Local)) {
        Ok(backends) => Some(backends),
        Err(Error::NoPam(_)) => {
            tier::skip("PAM", "there is no libpam.so.0 on this system");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn pam_vouches_for_the_right_password_and_no_other() {
    let scratch = Scratch::new("pam");
    let Some(backends) = with_service(&scratch, "auth required CHECK\naccount required pam_permit.so\n") else {
        return;
    };
    let answer = backends.vouch("pam", "patty", "patty's password").await;
    assert_eq!(answer, identity("patty", "pam", &[]));
    for (user, password) in [("patty", "wrong"), ("paul", "patty's password"), ("patty", "patty's password ")] {
        assert_eq!(backends.vouch("pam", user, password).await, Err(Refused::Denied), "{user}");
    }
}

#[tokio::test]
async fn the_right_password_of_an_account_that_may_not_be_used_is_refused() {
    let scratch = Scratch::new("pam");
    let Some(backends) = with_service(&scratch, "auth required CHECK\naccount required pam_deny.so\n") else { return };
    assert_eq!(backends.vouch("pam", "patty", "patty's password").await, Err(Refused::Denied));
}

#[tokio::test]
async fn people_of_the_system_come_with_their_groups() {
    let scratch = Scratch::new("pam");
    let rules = "auth required pam_permit.so\naccount required pam_permit.so\n";
    let Some(backends) = with_service(&scratch, rules) else { return };
    let groups = std::process::Command::new("id").args(["-Gn", "root"]).output().unwrap();
    let mut expected: Vec<String> =
        String::from_utf8(groups.stdout).unwrap().split_whitespace().map(str::to_owned).collect();
    let mut groups = backends.vouch("pam", "root", "any").await.unwrap().groups;
    expected.sort();
    groups.sort();
    assert_eq!(groups, expected);
}

#[tokio::test]
async fn a_service_that_is_missing_or_broken_lets_nobody_in() {
    let scratch = Scratch::new("pam");
    let Some(backends) = with_service(&scratch, "auth required pam_no_such_module.so\n") else { return };
    assert_eq!(backends.vouch("pam", "patty", "patty's password").await, Err(Refused::Denied));
    std::fs::remove_file(scratch.path().join("pam.d/saltern")).unwrap();
    assert_eq!(backends.vouch("pam", "patty", "patty's password").await, Err(Refused::Denied));
}

#[tokio::test]
async fn a_refusal_does_not_keep_a_thread_asleep() {
    let scratch = Scratch::new("pam");
    // The module asks for a minute of delay after a refusal.
    let rules = "auth optional pam_faildelay.so delay=60000000\nauth required CHECK\naccount required pam_permit.so\n";
    let Some(backends) = with_service(&scratch, rules) else { return };
    let refused = tokio::time::timeout(std::time::Duration::from_secs(10), backends.vouch("pam", "patty", "wrong"));
    assert_eq!(refused.await.expect("no minute of delay"), Err(Refused::Denied));
}

#[tokio::test]
async fn more_people_than_threads_are_served() {
    let scratch = Scratch::new("pam");
    let Some(backends) = with_service(&scratch, "auth required CHECK\naccount required pam_permit.so\n") else {
        return;
    };
    let backends = Arc::new(backends);
    let people = (0..24).map(|number| {
        let backends = Arc::clone(&backends);
        let password = if number % 2 == 0 { "patty's password" } else { "wrong" };
        tokio::spawn(async move { backends.vouch("pam", "patty", password).await.is_ok() == (number % 2 == 0) })
    });
    for person in people.collect::<Vec<_>>() {
        assert!(person.await.unwrap());
    }
}
