//! What is wrong with the real server and must not be so here, one test for each.

use crate::stand::{Stand, credentials};
use saltern_testkit::http::{Events, Reply, Request};
use serde_json::{Value, json};

macro_rules! stand_or_skip {
    ($stand:ident) => {
        let Some($stand) = Stand::shared().await else { return };
        let _turn = $stand.turn().await;
    };
}

/// A file that must not come to be, and the command that would make it.
fn forbidden(stand: &Stand, name: &str) -> (std::path::PathBuf, String) {
    let path = stand.server.root().join(name);
    let command = format!("touch {}", path.display());
    (path, command)
}

/// Everything that is said on the bus while something is done, as text.
async fn overheard(stand: &Stand, deed: impl AsyncFnOnce()) -> String {
    let request = Request::get("/events").token(&stand.token("admin").await);
    let mut events = Events::open(&stand.http, &request).await.unwrap();
    deed().await;
    // What was said before this was said before.
    stand.low(&json!({ "client": "runner", "fun": "event.send", "tag": "test/end", "data": {} })).await;
    let mut heard = String::new();
    let is_end = |event: &saltern_testkit::http::Event| event.tag == "test/end";
    events
        .until("the end", |event| {
            heard += &format!("{}\n", event.fields.join("\n"));
            is_end(event)
        })
        .await;
    heard
}

#[track_caller]
fn is_refused(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.json()["status"], status);
}

#[tokio::test]
async fn one_permitted_function_does_not_permit_the_others_beside_it() {
    stand_or_skip!(stand);
    let (file, command) = forbidden(stand, "compound");
    for client in ["local", "local_async", "local_batch", "local_subset"] {
        let low = json!({ "client": client, "tgt": "web1", "fun": ["test.ping", "cmd.run"], "arg": [[], [command]] });
        is_refused(&stand.low_as("tester", &low).await, 401);
    }
    stand.local("web1", "test.ping", json!([])).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn a_refused_call_tells_nobody_a_secret() {
    stand_or_skip!(stand);
    let token = stand.token("tester").await;
    let heard = overheard(stand, async || {
        let low = json!({ "client": "local", "tgt": "web1", "fun": "cmd.run", "arg": ["id"] });
        is_refused(&stand.low_as("tester", &low).await, 401);
        let mut low = low;
        low["token"] = json!(token);
        is_refused(&stand.http.send(&Request::post("/run", &low)).await, 401);
        low["token"] = Value::Null;
        low.as_object_mut().unwrap().extend(credentials("tester").as_object().unwrap().clone());
        is_refused(&stand.http.send(&Request::post("/run", &low)).await, 401);
    })
    .await;
    assert!(!heard.contains(&token) && !heard.contains("testerpw"), "{heard}");
}

#[tokio::test]
async fn private_keys_are_not_told_on_the_bus() {
    stand_or_skip!(stand);
    let heard = overheard(stand, async || {
        for low in [
            json!({ "client": "wheel", "fun": "key.gen", "id_": "evmin" }),
            json!({ "client": "wheel", "fun": "key.gen_accept", "id_": "evmin" }),
        ] {
            let made = stand.result(&low).await;
            let private = made["data"]["return"]["priv"].as_str().unwrap_or_default();
            assert!(private.contains("PRIVATE KEY"), "{made}");
        }
        let mut form = credentials("admin");
        form["mid"] = json!("kick1");
        let reply = stand.http.send(&Request::post("/keys", &form)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    })
    .await;
    stand.remove_keys().await;
    assert!(heard.contains("evmin") && !heard.contains("PRIVATE KEY"), "{heard}");
}

#[tokio::test]
async fn credentials_of_a_hooks_caller_are_not_told_on_the_bus() {
    stand_or_skip!(stand);
    let token = stand.token("admin").await;
    let heard = overheard(stand, async || {
        let request = Request::post("/hook/secret", &json!({ "foo": "bar" })).token(&token);
        let cookie = format!("session_id={token}");
        let request = request.header("Cookie", &cookie).header("X-Other", "kept");
        assert_eq!(stand.http.send(&request).await.json(), json!({ "success": true }));
        let bearer = Request::post("/hook/bearer", &json!({})).header("Authorization", &format!("Bearer {token}"));
        assert_eq!(stand.http.send(&bearer).await.status, 200);
    })
    .await;
    assert!(heard.contains("salt/netapi/hook/secret") && heard.contains("kept"), "{heard}");
    assert!(!heard.contains(&token), "{heard}");
}

#[tokio::test]
async fn secrets_of_the_configuration_are_told_to_nobody() {
    stand_or_skip!(stand);
    for low in [
        json!({ "client": "wheel", "fun": "config.values" }),
        json!({ "client": "runner", "fun": "config.get", "kwarg": { "key": "sharedsecret" } }),
        json!({ "client": "runner", "fun": "config.get", "kwarg": { "key": "external_auth" } }),
    ] {
        let text = stand.low(&low).await.text();
        assert!(!text.contains("s3cret") && !text.contains("users.txt"), "{low}: {text}");
    }
}

#[tokio::test]
async fn a_preflight_is_answered_on_every_url() {
    stand_or_skip!(stand);
    for path in
        ["/", "/login", "/logout", "/token", "/run", "/minions", "/jobs", "/keys", "/events", "/hook/x", "/stats"]
    {
        let request = Request::new("OPTIONS", path).header("Origin", "http://example.test");
        let request = request.header("Access-Control-Request-Method", "POST");
        let request = request.header("Access-Control-Request-Headers", "content-type,x-auth-token");
        let reply = stand.http.send(&request).await;
        crate::checks::preflight(&reply).unwrap_or_else(|complaint| panic!("{path}: {complaint}"));
    }
    let foreign = Request::new("OPTIONS", "/").header("Origin", "http://evil.test");
    let reply = stand.http.send(&foreign.header("Access-Control-Request-Method", "POST")).await;
    assert_eq!(reply.header("Access-Control-Allow-Origin"), None);
}

#[tokio::test]
async fn what_cannot_be_answered_is_not_run() {
    stand_or_skip!(stand);
    let (file, command) = forbidden(stand, "unacceptable");
    let low = json!({ "client": "local", "tgt": "web1", "fun": "cmd.run", "arg": [command] });
    let request = Request::post("/", &low).header("Accept", "application/xml").token(&stand.token("admin").await);
    assert_eq!(stand.http.send(&request).await.status, 406);
    stand.local("web1", "test.ping", json!([])).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn one_mistake_in_a_list_and_nothing_of_it_is_run() {
    stand_or_skip!(stand);
    let (file, command) = forbidden(stand, "half");
    let good = json!({ "client": "local", "tgt": "web1", "fun": "cmd.run", "arg": [command] });
    for (bad, status) in [
        (json!({ "client": "nope" }), 400),
        (json!({ "client": "local", "tgt": "web1" }), 400),
        (json!({ "client": "runner", "fun": "no.such" }), 400),
        (json!("low data"), 400),
    ] {
        is_refused(&stand.low(&json!([good, bad])).await, status);
    }
    stand.local("web1", "test.ping", json!([])).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn one_call_that_is_not_permitted_and_nothing_of_the_list_is_run() {
    stand_or_skip!(stand);
    let good = json!({ "client": "local", "tgt": "web1", "fun": "test.echo", "arg": ["ran all the same"] });
    let bad = json!({ "client": "local", "tgt": "web1", "fun": "cmd.run", "arg": ["id"] });
    let heard = overheard(stand, async || {
        is_refused(&stand.low_as("tester", &json!([good, bad])).await, 401);
        is_refused(&stand.low_as("tester", &json!([good, { "client": "wheel", "fun": "key.list_all" }])).await, 401);
    })
    .await;
    assert!(!heard.contains("ran all the same"), "{heard}");
}

#[tokio::test]
async fn the_old_name_of_the_target_type_counts() {
    stand_or_skip!(stand);
    let low = json!({ "client": "local", "tgt": "roles:web1", "expr_form": "grain", "fun": "test.ping" });
    assert_eq!(stand.result(&low).await, json!({ "web1": true }));
    let low = json!({ "client": "local", "tgt": "db1", "tgt_type": "glob", "expr_form": "grain", "fun": "test.ping" });
    assert_eq!(stand.result(&low).await, json!({ "db1": true }));
}

#[tokio::test]
async fn false_in_a_form_is_false() {
    stand_or_skip!(stand);
    for (word, full) in [("false", false), ("False", false), ("0", false), ("true", true)] {
        let request = Request::new("POST", "/").header("Content-Type", "application/x-www-form-urlencoded");
        let request = request.token(&stand.token("admin").await);
        let request = request.body(format!("client=local&tgt=web1&fun=test.ping&full_return={word}"));
        let body = stand.http.send(&request).await.json();
        assert_eq!(body["return"][0]["web1"].is_object(), full, "{word}: {body}");
    }
}

#[tokio::test]
async fn a_compound_command_can_be_searched_for_like_any_other() {
    stand_or_skip!(stand);
    let low = json!({ "client": "local_async", "tgt": "web1", "fun": ["test.ping", "test.echo"], "arg": [[], ["x"]] });
    let jid = stand.start_job("compound", &low).await;
    for function in ["test.echo", "test.ping", "test.*"] {
        let low = json!({ "client": "runner", "fun": "jobs.list_jobs", "search_function": function });
        let found = stand.result(&low).await;
        assert!(found.get(&jid).is_some(), "{function}: {found}");
    }
}

#[tokio::test]
async fn a_job_id_is_not_for_the_caller_to_choose() {
    stand_or_skip!(stand);
    let running =
        stand.start_job("first", &json!({ "client": "local_async", "tgt": "web1", "fun": "test.ping" })).await;
    for jid in ["abc", "", "../../x", "99999999999999999999", running.as_str()] {
        let low = json!({ "client": "local", "tgt": "web1", "fun": "test.ping", "jid": jid });
        let reply = stand.low(&low).await;
        // An empty one is none, which is what clients send that have no opinion.
        let expected = if jid.is_empty() { 200 } else { 400 };
        assert_eq!(reply.status, expected, "{jid:?}: {}", reply.text());
    }
    let last = stand.result(&json!({ "client": "runner", "fun": "jobs.last_run", "function": "test.ping" })).await;
    let last: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert!(last.len() == 1 && last[0].len() == 20 && last[0].starts_with("20"), "{last:?}");
}

#[tokio::test]
async fn a_failed_state_is_no_success() {
    stand_or_skip!(stand);
    let mut expected = Vec::new();
    for (state, success) in [("hello", true), ("fail", false), ("nosuch", false)] {
        let low = json!({ "client": "local_async", "tgt": "web1", "fun": "state.apply", "arg": [state] });
        let jid = stand.start_job(state, &low).await;
        stand.wait_for_job(&jid, &["web1"]).await;
        let low = json!({ "client": "runner", "fun": "jobs.exit_success", "jid": jid });
        expected.push((state, stand.result(&low).await, success));
    }
    for (state, got, success) in expected {
        assert_eq!(got, json!({ "web1": success }), "{state}");
    }
}

#[tokio::test]
async fn a_key_pair_is_made_for_who_may_and_only_once() {
    stand_or_skip!(stand);
    let ask = async |user: &str, password: &str| {
        let form = json!({ "mid": "kick1", "username": user, "password": password, "eauth": "file" });
        stand.http.send(&Request::post("/keys", &form)).await
    };
    is_refused(&ask("ops", "wrong").await, 401);
    is_refused(&ask("tester", "testerpw").await, 401);
    is_refused(&stand.http.send(&Request::post("/keys", &json!({ "mid": "kick1" }))).await, 401);
    let made = ask("admin", "adminpw").await;
    crate::checks::archive(&made).unwrap();
    is_refused(&ask("admin", "adminpw").await, 409);
    stand.remove_keys().await;
}

#[tokio::test]
async fn a_login_gives_a_new_session_and_a_cookie_that_scripts_cannot_read() {
    stand_or_skip!(stand);
    let old = stand.log_in("admin").await;
    let request =
        Request::post("/login", &credentials("tester")).token(&old).header("Cookie", &format!("session_id={old}"));
    let reply = stand.http.send(&request).await;
    let new = reply.json()["return"][0]["token"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    let cookie = reply.header("Set-Cookie").unwrap().to_ascii_lowercase();
    for part in ["httponly", "samesite=lax", "path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("secure"), "a cookie for TLS only would be lost here: {cookie}");
}

#[tokio::test]
async fn who_is_not_logged_in_gets_no_cookie() {
    stand_or_skip!(stand);
    let wrong = json!({ "username": "webonly", "password": "wrong", "eauth": "file" });
    for request in
        [Request::get("/"), Request::get("/minions"), Request::post("/login", &wrong), Request::get("/stats")]
    {
        let reply = stand.http.send(&request).await;
        assert_eq!(reply.header("Set-Cookie"), None, "{request:?}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_cannot_use_a_visitors_cookie() {
    stand_or_skip!(stand);
    let token = stand.token("admin").await;
    let low = json!({ "client": "local", "tgt": "web1", "fun": "test.ping" });
    let request =
        Request::new("POST", "/").header("Content-Type", "text/plain").header("Cookie", &format!("session_id={token}"));
    let foreign = request.clone().header("Origin", "http://evil.test").header("Sec-Fetch-Site", "cross-site");
    assert_eq!(stand.http.send(&foreign.body(low.to_string())).await.status, 401);
    let own = request.header("Origin", &stand.http.url()).header("Sec-Fetch-Site", "same-origin");
    assert_eq!(stand.http.send(&own.body(low.to_string())).await.status, 200);
}

#[tokio::test]
async fn a_users_name_is_not_a_pattern() {
    stand_or_skip!(stand);
    for user in ["adm*", "*", "admi[n]"] {
        let login = json!({ "username": user, "password": "adminpw", "eauth": "file" });
        assert_eq!(stand.http.send(&Request::post("/login", &login)).await.status, 401, "{user}");
    }
    let anybody = json!({ "username": "adm*", "password": "s3cret", "eauth": "sharedsecret" });
    let reply = stand.http.send(&Request::post("/login", &anybody)).await;
    assert_eq!(reply.json()["return"][0]["user"], "adm*");
}

#[tokio::test]
async fn large_answers_are_compressed_for_who_asks() {
    stand_or_skip!(stand);
    let low = json!({ "client": "local", "tgt": "*", "fun": "grains.items" });
    let request = Request::post("/", &low).token(&stand.token("admin").await);
    let plain = stand.http.send(&request).await;
    assert_eq!(plain.header("Content-Encoding"), None);
    let packed = stand.http.send(&request.header("Accept-Encoding", "gzip")).await;
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    assert!(packed.body.starts_with(&[0x1f, 0x8b]) && packed.body.len() < plain.body.len() / 2);
}

#[tokio::test]
async fn functions_in_one_text_are_permitted_one_by_one() {
    stand_or_skip!(stand);
    let (file, command) = forbidden(stand, "comma");
    let low = json!({ "client": "local", "tgt": "web1", "fun": "test.ping,cmd.run", "arg": [[], [command]] });
    let reply = stand.low_as("tester", &low).await;
    // Refused, or asked for as one function that does not exist; run it is not.
    assert!(reply.status == 401 || reply.text().contains("is not available"), "{} {}", reply.status, reply.text());
    assert!(!file.exists());
}
