//! The algorithms a minion may ask for, and the answer to those it may not.

use crate::house::House;
use saltern_core::value::Value;
use saltern_testkit::fake_minion::{FakeMinion, SignIn, clear};
use saltern_wire::crypto::{EncAlgo, SigAlgo};
use saltern_wire::limits::Decode;
use saltern_wire::{envelope, msgpack};

#[tokio::test]
async fn sha224_works_throughout() {
    let house = House::open().await;
    let mut minion = FakeMinion::connect(house.requests, "a").await;
    (minion.enc_algo, minion.sig_algo) = (EncAlgo::OaepSha224, SigAlgo::Pkcs1v15Sha224);
    assert_eq!(minion.auth().await, SignIn::Accepted);
    // Again, now with a token for the server to return.
    assert_eq!(minion.auth().await, SignIn::Accepted);
    minion.subscribe().await;
    house.subscribed().await;
    minion.announce().await;
    house.ping(&["a"]).await;
    let job = minion.next_job().await;
    minion.return_for(&job, true).await;
}

#[tokio::test]
async fn each_algorithm_is_chosen_by_itself() {
    let house = House::open().await;
    for (enc, sig) in [(EncAlgo::OaepSha224, SigAlgo::Pkcs1v15Sha1), (EncAlgo::OaepSha1, SigAlgo::Pkcs1v15Sha224)] {
        let mut minion = FakeMinion::connect(house.requests, "a").await;
        (minion.enc_algo, minion.sig_algo) = (enc, sig);
        assert_eq!(minion.auth().await, SignIn::Accepted);
        minion.pillar().await;
    }
}

#[tokio::test]
async fn an_unknown_algorithm_gets_salts_own_refusal_and_leaves_no_trace() {
    let house = House::open().await;
    let minion = FakeMinion::connect(house.requests, "a").await;
    for (field, told) in [("enc_algo", "bad enc algo"), ("sig_algo", "bad sig algo")] {
        for name in ["OAEP-MD5", "", "PKCS1v15-SHA256"] {
            let mut load = minion.auth_load();
            load.insert(field, name);
            let answer = msgpack::decode(minion.raw_request(clear(load, 3)).await, &Decode::before_auth()).unwrap();
            assert_eq!(answer.get("enc").and_then(Value::as_str), Some("clear"));
            assert_eq!(answer.get("load").unwrap().get("ret").unwrap().as_str(), Some(told));
        }
    }
    assert!(house.app().keys(&crate::house::caller()).is_empty());
}

#[tokio::test]
async fn an_unknown_algorithm_in_a_sealed_request_is_refused() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let honest = minion.sealed("_pillar", crate::methods::fields("_pillar"), &Default::default());
    for field in ["enc_algo", "sig_algo"] {
        let Value::Map(mut envelope) = msgpack::decode(honest.clone(), &Decode::envelope()).unwrap() else {
            panic!("a map")
        };
        envelope.insert(field, "ROT13");
        assert_eq!(minion.raw_request(msgpack::encode(&Value::Map(envelope))).await, envelope::bad_load());
    }
}
