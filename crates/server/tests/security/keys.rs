//! Keys that change, keys that are thrown out, keys that are none.

use crate::house::House;
use saltern_core::keys::KeyState;
use saltern_core::value::Value;
use saltern_server::app::KeyVerb;
use saltern_testkit::fake_minion::{FakeMinion, SignIn, clear, key_named};
use saltern_wire::envelope::{AuthReply, Error, Verdict};

async fn pending(house: &House, id: &str) -> FakeMinion {
    let mut minion = FakeMinion::connect(house.requests, id).await;
    assert_eq!(minion.auth().await, SignIn::Pending);
    minion
}

async fn accepted(house: &House, id: &str) -> FakeMinion {
    let mut minion = pending(house, id).await;
    house.decide(KeyVerb::Accept, id, &[]).await;
    assert_eq!(minion.auth().await, SignIn::Accepted);
    minion
}

#[tokio::test]
async fn another_key_for_an_accepted_id_is_denied_and_the_minion_stays_in() {
    let house = House::with([]).await;
    let minion = accepted(&house, "a").await;
    let mut thief = FakeMinion::connect_with(house.requests, "a", key_named("thief")).await;
    assert_eq!(thief.auth().await, SignIn::Pending);
    let mut known = house.keys_of("a");
    known.sort();
    let pem = |name: &str| key_named(name).public().to_pem();
    assert_eq!(known, [(KeyState::Accepted, pem("a")), (KeyState::Denied, pem("thief"))]);
    minion.request("_file_envs", ()).await;
}

#[tokio::test]
async fn auto_accept_does_not_accept_another_key_for_a_known_id() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let mut thief = FakeMinion::connect_with(house.requests, "a", key_named("thief")).await;
    assert_eq!(thief.auth().await, SignIn::Pending);
    minion.request("_file_envs", ()).await;
}

#[tokio::test]
async fn a_denied_key_is_told_to_stop_where_the_operator_wants_it_so() {
    let house = House::with([("auto_accept", true.into()), ("denied_waits", false.into())]).await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let mut thief = FakeMinion::connect_with(house.requests, "a", key_named("thief")).await;
    assert_eq!(thief.auth().await, SignIn::Rejected);
    minion.request("_file_envs", ()).await;
}

#[tokio::test]
async fn ever_new_keys_for_one_id_are_one_entry_and_one_event() {
    let house = House::with([("auto_accept", true.into()), ("auth_events", true.into())]).await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let denied = || async {
        let events = house.events_after(0).await;
        events.iter().filter(|event| event.data.get("act").and_then(Value::as_str) == Some("denied")).count()
    };
    for name in ["thief", "thief", "b", "c", "thief"] {
        let mut thief = FakeMinion::connect_with(house.requests, "a", key_named(name)).await;
        assert_eq!(thief.auth().await, SignIn::Pending);
    }
    assert_eq!(house.keys_of("a").len(), 2);
    assert_eq!(denied().await, 1);
    minion.request("_file_envs", ()).await;
}

#[tokio::test]
async fn another_key_for_a_waiting_id_is_denied_too() {
    let house = House::with([]).await;
    let mut first = pending(&house, "a").await;
    let mut second = FakeMinion::connect_with(house.requests, "a", key_named("thief")).await;
    assert_eq!(second.auth().await, SignIn::Pending);
    // What is accepted is the key that was there first.
    house.decide(KeyVerb::Accept, "a", &[]).await;
    assert_eq!(first.auth().await, SignIn::Accepted);
    assert_eq!(second.auth().await, SignIn::Pending);
}

#[tokio::test]
async fn a_rejected_minion_is_told_so_under_the_servers_signature() {
    let house = House::with([]).await;
    let minion = pending(&house, "a").await;
    house.decide(KeyVerb::Reject, "a", &[]).await;
    let told = minion.auth_with(minion.auth_load(), Some(key_named("the server").public())).await.unwrap();
    assert!(matches!(told, AuthReply::Verdict { verdict: Verdict::Rejected, is_verified: true }));
}

#[tokio::test]
async fn a_minion_rejected_while_it_runs_is_cut_off_at_once() {
    let house = House::with([]).await;
    let mut minion = accepted(&house, "a").await;
    minion.request("_file_envs", ()).await;
    house.decide(KeyVerb::Reject, "a", &[KeyState::Accepted]).await;
    assert_eq!(minion.try_request("_file_envs", ()).await.unwrap_err(), Error::BadLoad);
    assert_eq!(minion.auth().await, SignIn::Rejected);
}

#[tokio::test]
async fn a_deleted_key_waits_again_and_its_session_is_worth_nothing() {
    let house = House::with([]).await;
    let mut minion = accepted(&house, "a").await;
    house.decide(KeyVerb::Delete, "a", &[]).await;
    assert_eq!(minion.try_request("_file_envs", ()).await.unwrap_err(), Error::BadLoad);
    assert_eq!(minion.auth().await, SignIn::Pending);
    assert_eq!(minion.try_request("_file_envs", ()).await.unwrap_err(), Error::BadLoad);
}

#[tokio::test]
async fn a_minion_with_a_new_key_does_not_share_the_session_of_the_old_one() {
    let house = House::with([]).await;
    let old = accepted(&house, "a").await;
    house.decide(KeyVerb::Delete, "a", &[]).await;
    let mut new = FakeMinion::connect_with(house.requests, "a", key_named("a reinstalled")).await;
    assert_eq!(new.auth().await, SignIn::Pending);
    house.decide(KeyVerb::Accept, "a", &[]).await;
    assert_eq!(new.auth().await, SignIn::Accepted);
    assert_ne!(new.access().session, old.access().session);
    assert_eq!(old.try_request("_file_envs", ()).await.unwrap_err(), Error::BadLoad);
}

/// Asserts whether what `decide` did has changed the shared key, and that `b` gets its jobs either way.
async fn rotates(house: &House, b: &mut FakeMinion, witness: &FakeMinion, expected: bool) {
    let jid = house.ping(&["b"]).await;
    let frame = b.next_frame().await;
    assert_eq!(witness.open_publication(frame.clone()).is_err(), expected, "whether old keys open new publications");
    let opened = match b.open_publication(frame.clone()) {
        Ok(opened) => opened,
        Err(_) => {
            assert_eq!(b.auth().await, SignIn::Accepted);
            b.open_publication(frame).unwrap()
        }
    };
    assert_eq!(opened.load.get("jid").unwrap().as_str(), Some(jid.as_str()));
}

#[tokio::test]
async fn whoever_is_thrown_out_cannot_read_what_is_published_later() {
    for verb in [KeyVerb::Reject, KeyVerb::Delete] {
        let house = House::with([]).await;
        let a = accepted(&house, "a").await;
        let mut b = accepted(&house, "b").await;
        b.subscribe().await;
        house.subscribed().await;
        rotates(&house, &mut b, &a, false).await;
        house.decide(verb, "a", &[KeyState::Accepted]).await;
        rotates(&house, &mut b, &a, true).await;
    }
}

#[tokio::test]
async fn accepting_a_denied_key_throws_the_old_one_out() {
    let house = House::with([]).await;
    let old = accepted(&house, "a").await;
    let mut b = accepted(&house, "b").await;
    b.subscribe().await;
    house.subscribed().await;
    let mut new = FakeMinion::connect_with(house.requests, "a", key_named("a reinstalled")).await;
    assert_eq!(new.auth().await, SignIn::Pending);
    house.decide(KeyVerb::Accept, "a", &[KeyState::Denied]).await;
    assert_eq!(new.auth().await, SignIn::Accepted);
    assert_eq!(old.try_request("_file_envs", ()).await.unwrap_err(), Error::BadLoad);
    rotates(&house, &mut b, &old, true).await;
}

#[tokio::test]
async fn decisions_about_keys_that_were_never_in_change_no_key() {
    let house = House::with([]).await;
    let mut b = accepted(&house, "b").await;
    let witness = accepted(&house, "c").await;
    b.subscribe().await;
    house.subscribed().await;
    for verb in [KeyVerb::Accept, KeyVerb::Reject, KeyVerb::Delete] {
        let id = verb.word();
        let mut new = FakeMinion::connect_with(house.requests, id, key_named("new")).await;
        assert_eq!(new.auth().await, SignIn::Pending);
        house.decide(verb, id, &[]).await;
    }
    rotates(&house, &mut b, &witness, false).await;
}

#[tokio::test]
async fn a_version_2_minion_that_is_thrown_out_is_not_served_under_the_key_it_knows() {
    let house = House::with([("minimum_auth_version", 2.into())]).await;
    let mut a = accepted(&house, "a").await;
    a.version = 2;
    a.request("_file_envs", ()).await;
    house.decide(KeyVerb::Delete, "a", &[]).await;
    assert_eq!(a.try_request("_file_envs", ()).await.unwrap_err(), Error::BadLoad);
}

#[tokio::test]
async fn what_is_no_usable_key_is_rejected_and_not_recorded() {
    let house = House::open().await;
    let minion = FakeMinion::connect(house.requests, "a").await;
    let private = minion.key.to_pem().unwrap();
    let broken = minion.key.public().to_pem().replace("MII", "MIJ");
    let long = format!("{}{}", minion.key.public().to_pem(), " ".repeat(50_000) + "x");
    for pem in [
        "",
        "x",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        SMALL_KEY,
        HUGE_EXPONENT,
        EVEN_EXPONENT,
        EC_KEY,
        private.as_str(),
        &broken,
        &long,
    ] {
        let mut load = minion.auth_load();
        load.insert("pub", pem);
        let told = minion.auth_with(load, Some(key_named("the server").public())).await.unwrap();
        let is_rejected = matches!(told, AuthReply::Verdict { verdict: Verdict::Rejected, is_verified: true });
        assert!(is_rejected, "{}: {told:?}", &pem[..pem.len().min(60)]);
    }
    assert!(house.app().keys(&crate::house::caller()).is_empty());
    house.serves().await;
}

#[tokio::test]
async fn a_key_with_blanks_in_it_is_the_same_key() {
    let house = House::with([]).await;
    let mut minion = pending(&house, "a").await;
    let mut load = minion.auth_load();
    load.insert("pub", format!("  {}  \n", minion.key.public().to_pem().replace('\n', "\r\n \n")));
    minion.raw_request(clear(load, 3)).await;
    assert_eq!(house.keys_of("a"), [(KeyState::Unaccepted, minion.key.public().to_pem())]);
    house.decide(KeyVerb::Accept, "a", &[]).await;
    assert_eq!(minion.auth().await, SignIn::Accepted);
}

#[tokio::test]
async fn a_sign_in_that_proves_nothing_gets_nothing_it_could_read() {
    let house = House::open().await;
    FakeMinion::accepted(house.requests, "a").await;
    // The public key is no secret; without the private one the answer cannot be opened.
    let thief = FakeMinion::connect_with(house.requests, "a", key_named("thief")).await;
    let mut load = thief.auth_load();
    load.insert("pub", key_named("a").public().to_pem());
    assert_eq!(thief.auth_with(load, None).await.unwrap_err(), Error::NotForUs("aes"));
}

/// A genuine RSA key of 1024 bits.
const SMALL_KEY: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDIvx0H0jdAeeKTjJy3buj11GTF\n\
hVfGUzxH/lgAupWcLz59BYX5N1mSDe3sQpkzn3O9mubc/Qy3GbwDAF3trQ00mxQl\n\
cUQwFjGz+yx1sBf92jp86m/2dOMWst974UWLXUm0mABBgV+tsuFM2xDExk63ZFur\n\
D1J63cBhAHpqvJvd8QIDAQAB\n\
-----END PUBLIC KEY-----";

/// 2048 bits with an exponent as long as the modulus: each use would cost as much as a private operation.
const HUGE_EXPONENT: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIICITANBgkqhkiG9w0BAQEFAAOCAg4AMIICCQKCAQEAmPE10l9VcgMwGFDFo4/V\n\
R5I6c2mU47+RGmHb4i5EFYuul7qU0O2oL49tBVhO+Ko4kidmWB4nocCKamPsJO3m\n\
pGtMskJKI9WWIhe+rdvElsuOgZc+C+zXsDiY0ZD569rMDLHinGWM2hSV5gr1k70E\n\
zw/WMPHynQ2plT9I8aCfdrWhcLM4OSYwWfKMEF0fsXwjkMGSz9OslK8PId22bK1K\n\
Jo0Rbs4XOPfZPZwXJBHiC49rDVSbbwNnWhYAo1oJmVDYNvZ1zIHnTvXo4l2UDtkE\n\
dZUxmF1dncn4GBjoEYkvkCvSPwgkEosvMwxcf9Cmo6RQZRMnDiaeDTfyp03kUua0\n\
OQKCAQB/kwolmCifzVmlSnux/uCPVxJCQlBRwczRf5rK4B9QV8oCE16SsdPyjt4N\n\
esO66p4T3u+GqxAx0PZG4fQKCXyXa/RsaX0sr4Lu6sviJuh1VVeQ+C7B0/z/Kjr0\n\
1GsKGOiDDge8HjmPEBK9Ss767L04m+S8/Em2Sghy5sw6urztIFfuBc3gCQLHfr/y\n\
BoZzRyFM3SBVkw1urxT0cz8+fRv7x6LqILLxTJQuBTGay1x0Jz+Y4ndMvYetXJCp\n\
WHQD5DDsZqeHledh0XcxrxBQa/Lvxvh3GG12sH6IHtFiri6xVH8VBSQ0ubXfnndp\n\
sQ9CBbSQenDDEBLwN7ZM5CKMOPsp\n\
-----END PUBLIC KEY-----";

/// 2048 bits with an exponent that has no inverse.
const EVEN_EXPONENT: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmPE10l9VcgMwGFDFo4/V\n\
R5I6c2mU47+RGmHb4i5EFYuul7qU0O2oL49tBVhO+Ko4kidmWB4nocCKamPsJO3m\n\
pGtMskJKI9WWIhe+rdvElsuOgZc+C+zXsDiY0ZD569rMDLHinGWM2hSV5gr1k70E\n\
zw/WMPHynQ2plT9I8aCfdrWhcLM4OSYwWfKMEF0fsXwjkMGSz9OslK8PId22bK1K\n\
Jo0Rbs4XOPfZPZwXJBHiC49rDVSbbwNnWhYAo1oJmVDYNvZ1zIHnTvXo4l2UDtkE\n\
dZUxmF1dncn4GBjoEYkvkCvSPwgkEosvMwxcf9Cmo6RQZRMnDiaeDTfyp03kUua0\n\
OQIDAQAA\n\
-----END PUBLIC KEY-----";

/// A key of another kind.
const EC_KEY: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEA/K1gyAUC65sGdfOM10TGakHzl/l\n\
oobLE6bzawJJLpxhCJZ5jupHnwssSz7NArBi8Q4RtSLf4egOB9ZFpL0fTA==\n\
-----END PUBLIC KEY-----";
