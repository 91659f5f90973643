//! Every capture of a real salt-api is asked again, and the answer has to be the same but for what is known to differ.

use crate::capture::{self, Capture};
use crate::compare::{self, How, differences, short};
use crate::differences::{self as table, Ours};
use crate::stand::Stand;
use crate::{checks, dialect};
use saltern_testkit::http::{Reply, Request};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an answer may take: salt-api's slowest took ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A test that asks a group again; `$bring` brings what the group speaks of.
macro_rules! group {
    ($test:ident, $group:literal $(, $bring:ident)*) => {
        #[tokio::test]
        async fn $test() {
            let Some(stand) = Stand::shared().await else { return };
            let _turn = stand.turn().await;
            $(stand.$bring().await;)*
            replay(stand, $group).await;
        }
    };
}

group!(access_is_given_and_refused_as_by_salt_api, "access");
group!(batches_answer_as_salt_api_does, "batch");
group!(bodies_are_read_as_by_salt_api, "bodies");
group!(other_sites_are_answered_as_by_salt_api, "cors");
group!(urls_and_methods_are_those_of_salt_api, "dispatch");
group!(jobs_are_told_as_by_salt_api, "jobs", bring_jobs);
group!(commands_answer_as_salt_api_does, "local");
group!(functions_of_minions_answer_as_through_salt_api, "minion");
group!(runners_answer_as_salt_api_does, "runner");
group!(sessions_are_those_of_salt_api, "sessions");
group!(convenience_urls_answer_as_salt_api_does, "urls");
group!(the_older_dialect_is_spoken, "v3006", bring_jobs, bring_pending_key);
group!(wheel_functions_answer_as_salt_api_does, "wheel", bring_keys);

#[tokio::test]
async fn other_settings_have_the_same_effect_as_with_salt_api() {
    if saltern_testkit::tier::is_fast() {
        return;
    }
    let mut stand = Stand::otherwise().await;
    let all = capture::GROUPS.into_iter().flat_map(capture::group);
    let mut failed = Vec::new();
    for capture in all.filter(|capture| table::OTHERWISE.contains(&capture.case.as_str())) {
        if capture.case == "session-after-api-restart" {
            stand.token("admin").await;
            stand.restart().await;
        }
        failed.extend(complaints(&stand, &capture).await);
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[test]
fn every_file_of_the_corpus_is_used() {
    let names = std::fs::read_dir(capture::folder()).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> =
        names.filter_map(|name| name.to_str()?.strip_suffix(".jsonl").map(str::to_owned)).collect();
    names.sort();
    let mut used: Vec<&str> = capture::GROUPS.into_iter().chain(["pepper", "saltgui"]).collect();
    used.sort_unstable();
    assert_eq!(names, used);
}

#[test]
fn every_difference_is_one_of_a_capture_and_is_named_once() {
    let captures: Vec<Capture> = capture::GROUPS.into_iter().flat_map(capture::group).collect();
    let cases: BTreeSet<&str> = captures.iter().map(|capture| capture.case.as_str()).collect();
    assert_eq!(cases.len(), captures.len(), "a capture is there twice");
    let different = table::DIFFERENCES.iter().map(|(case, _, _)| *case);
    let mut named: Vec<&str> = different.chain(table::NOT_APPLICABLE.iter().map(|(case, _)| *case)).collect();
    let idle: Vec<&&str> = named.iter().chain(&table::OTHERWISE).filter(|case| !cases.contains(*case)).collect();
    assert!(idle.is_empty(), "no such captures: {idle:?}");
    named.sort_unstable();
    let twice: Vec<&[&str]> = named.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "named twice: {twice:?}");
    let unexplained = table::DIFFERENCES
        .iter()
        .map(|(case, _, why)| (case, why))
        .chain(table::NOT_APPLICABLE.iter().map(|(case, why)| (case, why)));
    let unexplained: Vec<_> = unexplained.filter(|(_, why)| why.is_empty()).collect();
    assert!(unexplained.is_empty(), "{unexplained:?}");
}

/// Asks everything of a group again; fails with all that is not as it should be.
async fn replay(stand: &Stand, group: &str) {
    let mut failed = Vec::new();
    for capture in capture::group(group) {
        let case = capture.case.as_str();
        if table::is_left_out(case) || table::OTHERWISE.contains(&case) {
            continue;
        }
        before(stand, case).await;
        failed.extend(complaints(stand, &capture).await);
        after(stand, case).await;
    }
    stand.remove_keys().await;
    assert!(failed.is_empty(), "\n{} complaints\n{}\n", failed.len(), failed.join("\n"));
}

/// What has to be so before a request, beyond what the requests before it did.
async fn before(stand: &Stand, case: &str) {
    let sleep = |tgt: &str, seconds: u32| json!({ "client": "local_async", "tgt": tgt, "tgt_type": "compound", "fun": "test.sleep", "arg": [seconds] });
    match case {
        "minion-saltutil.running-one" => {
            let mut low = sleep("web1", 40);
            low["tgt_type"] = json!("glob");
            let jid = stand.start_job("sleeping", &low).await;
            wait_until_running(stand, &jid, 1).await;
        }
        "runner-jobs.active-some" => {
            let jid = stand.start_job("active", &sleep("L@web1,db1", 25)).await;
            wait_until_running(stand, &jid, 2).await;
        }
        "runner-jobs.active-none" | "v3006.9--runner-jobs.active" => wait_until_idle(stand).await,
        "wheel-key.accept-comma" => stand.sign_in("pend1").await,
        _ => {}
    }
}

async fn after(stand: &Stand, case: &str) {
    if case == "runner-jobs.active-some" {
        let low = json!({ "client": "local", "tgt": "web1,db1", "tgt_type": "list", "fun": "saltutil.term_all_jobs" });
        stand.low(&low).await;
    }
}

/// Waits until so many minions say that they run a job.
async fn wait_until_running(stand: &Stand, jid: &str, count: usize) {
    let low =
        json!({ "client": "local", "tgt": "web1,db1", "tgt_type": "list", "fun": "saltutil.find_job", "arg": [jid] });
    saltern_testkit::wait::until_ok("a job to run", PATIENCE, async || {
        let found = stand.result(&low).await;
        let running = found.as_object().map_or(0, |found| found.values().filter(|job| job["jid"] == jid).count());
        if running == count { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
}

/// Waits until no job runs that an earlier group has left behind.
async fn wait_until_idle(stand: &Stand) {
    let low = json!({ "client": "runner", "fun": "jobs.active" });
    saltern_testkit::wait::until_ok("all jobs to be over", Duration::from_secs(90), async || {
        let active = stand.result(&low).await;
        if active == json!({}) { Ok(()) } else { Err(active.to_string()) }
    })
    .await;
}

/// What is not as it should be, each with the name of the capture.
pub(crate) async fn complaints(stand: &Stand, capture: &Capture) -> Vec<String> {
    let found = match stand.http.send_within(PATIENCE, &request(stand, capture).await).await {
        Some(reply) => judge(stand, capture, &reply),
        None => vec![format!("no answer within {PATIENCE:?}")],
    };
    found.into_iter().map(|complaint| format!("{}: {complaint}", capture.case)).collect()
}

/// The request of a capture, with what is different each time filled in.
pub(crate) async fn request(stand: &Stand, capture: &Capture) -> Request {
    let user = capture.user.as_deref();
    let asked = &capture.request;
    let mut request = Request::new(&asked.method, &stand.fill(&asked.path, user).await);
    for (name, value) in asked.headers.iter().filter(|(name, _)| *name != "Transfer-Encoding") {
        request = request.header(name, &stand.fill(value, user).await);
    }
    let body = match &asked.body {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let request = request.body(stand.fill(&body, user).await);
    if asked.headers.contains_key("Transfer-Encoding") {
        // What was sent is not part of the capture: the real server did not read it.
        return request.body(r#"[{"client":"local","tgt":"web1","fun":"test.ping"}]"#).chunked();
    }
    request
}

fn judge(stand: &Stand, capture: &Capture, reply: &Reply) -> Vec<String> {
    match table::of(&capture.case) {
        None => as_captured(stand, capture, reply, how(capture)),
        Some(Ours::Form) => as_captured(stand, capture, reply, How { shape: true, ..how(capture) }),
        Some(Ours::Apart(apart)) => as_captured(stand, capture, reply, How { apart, ..how(capture) }),
        Some(Ours::Status(status)) => error(reply, status, None),
        Some(Ours::Checked(check)) => check(reply).err().into_iter().collect(),
        Some(Ours::Says(status, text)) => {
            let expected: Value = serde_json::from_str(text).expect("what is expected is JSON");
            let mut found = has_status(reply, status);
            found.extend(body(stand, &expected, reply, How { shape: false, ..how(capture) }));
            found
        }
        Some(Ours::Like(other)) => {
            let all = capture::GROUPS.into_iter().flat_map(capture::group);
            let like = all.into_iter().find(|capture| capture.case == other).expect("the other capture is there");
            let like = Capture { case: like.case, response: like.response, ..capture.clone() };
            judge(stand, &like, reply)
        }
    }
}

/// In a batch who is first comes first.
fn how(capture: &Capture) -> How<'static> {
    How { shape: capture.response.trimmed, any_order: capture.case.contains("local_batch"), apart: EXTRAS }
}

/// What is said in addition, and harms nobody: who logged in under the names that other clients look for.
const EXTRAS: &[&str] = &["return.0.name", "return.0.username"];

fn as_captured(stand: &Stand, capture: &Capture, reply: &Reply, how: How<'_>) -> Vec<String> {
    let answered = &capture.response;
    if let Some(message) = &answered.error {
        return error(reply, answered.status, Some(message));
    }
    let mut found = has_status(reply, answered.status);
    found.extend(headers(capture, reply));
    if let Some(expected) = &answered.json {
        let mut expected = expected.clone();
        dialect::older(&mut expected);
        if capture.salt.starts_with("3006") && !names_web1(&capture.request.body) {
            dialect::with_db1(&mut expected);
        }
        found.extend(body(stand, &denied_beside_accepted(expected), reply, how));
    }
    if let Some(expected) = &answered.text {
        found.extend(text(expected, reply));
    }
    if answered.tar.is_some() {
        found.extend(checks::archive(reply).err());
    }
    if answered.page && !reply.text().contains("<title>the app</title>") && !reply.text().contains("export const") {
        found.push(format!("it is not the page: {}", reply.text()));
    }
    found
}

fn names_web1(body: &Option<Value>) -> bool {
    body.as_ref().is_some_and(|body| body.to_string().contains("\"web1"))
}

/// A key is denied because its id has another: there is an accepted one, which the captures' set-up had not.
fn denied_beside_accepted(mut expected: Value) -> Value {
    fn add(value: &mut Value) {
        match value {
            Value::Object(object) => {
                let denied = object.get("minions_denied").is_some_and(|denied| denied.to_string().contains("den1"));
                match object.get_mut("minions") {
                    Some(Value::Array(accepted)) if denied => accepted.push(json!("den1")),
                    Some(Value::Object(fingers)) if denied => drop(fingers.insert("den1".into(), json!("<text>"))),
                    _ => object.values_mut().for_each(add),
                }
            }
            Value::Array(list) => list.iter_mut().for_each(add),
            _ => {}
        }
    }
    add(&mut expected);
    expected
}

fn has_status(reply: &Reply, status: u16) -> Vec<String> {
    let differs = (reply.status != status).then(|| {
        let text: String = reply.text().chars().take(300).collect();
        format!("status: expected {status}, got {} {text}", reply.status)
    });
    differs.into_iter().collect()
}

/// An error is JSON with its status and its reason.
fn error(reply: &Reply, status: u16, message: Option<&str>) -> Vec<String> {
    let mut found = has_status(reply, status);
    if !found.is_empty() {
        return found;
    }
    let is_json = reply.header("Content-Type").is_some_and(|kind| kind.starts_with("application/json"));
    let body = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
    if !is_json || body["status"] != status || !body["return"].is_string() {
        found.push(format!(
            "an error is {{status, return, …}} in JSON, got {:?} {}",
            reply.header("Content-Type"),
            reply.text()
        ));
    } else if let Some(message) = message.filter(|message| !message.is_empty() && body["return"] != **message) {
        found.push(format!("message: expected {message:?}, got {}", body["return"]));
    }
    if status == 405 && reply.header("Allow").is_none() {
        found.push("a method that is not allowed is told without those that are".into());
    }
    found
}

fn headers(capture: &Capture, reply: &Reply) -> Vec<String> {
    let mut found = Vec::new();
    let theirs = |name: &str| capture.response.headers.get(name).map(String::as_str);
    let mut same = |name: &str, ours: Option<&str>| {
        if ours != theirs(name) {
            found.push(format!("{name}: expected {:?}, got {ours:?}", theirs(name)));
        }
    };
    let without_space = reply.header("Content-Type").map(|kind| kind.replace("; ", ";"));
    if !capture.response.page {
        same("Content-Type", without_space.as_deref());
    }
    for name in ["Content-Disposition", "WWW-Authenticate"] {
        same(name, reply.header(name));
    }
    if theirs("X-Auth-Token").is_some() {
        found.extend(login_headers(reply));
    } else if reply.header("Set-Cookie").is_some() && !capture.request.path.starts_with("/logout") {
        found.push("a cookie is set by logging in and out only".into());
    }
    // What one user may see must not be kept for another.
    let private = ["private", "no-store", "no-cache"];
    let is_private =
        || reply.header("Cache-Control").is_some_and(|cache| private.iter().any(|word| cache.contains(word)));
    if capture.user.is_some() && !is_private() {
        found.push(format!("Cache-Control: {:?} lets others see it", reply.header("Cache-Control")));
    }
    found
}

/// The token is in the header, in the cookie and in the body.
fn login_headers(reply: &Reply) -> Vec<String> {
    let mut found = Vec::new();
    let token = reply.header("X-Auth-Token").unwrap_or_default();
    if !(reply.text().contains(token) && token.len() == 64) {
        found.push(format!("X-Auth-Token: {token:?} is not the token"));
    }
    let cookie = reply.header("Set-Cookie").unwrap_or_default();
    for part in [format!("session_id={token}"), "Path=/".into(), "HttpOnly".into(), "SameSite=Lax".into()] {
        if !cookie.split(';').any(|found| found.trim().eq_ignore_ascii_case(&part)) {
            found.push(format!("Set-Cookie: {part} is missing in {cookie:?}"));
        }
    }
    found
}

fn body(stand: &Stand, expected: &Value, reply: &Reply, how: How<'_>) -> Vec<String> {
    match serde_json::from_str::<Value>(&stand.moved(&reply.text())) {
        Ok(mut got) => {
            dialect::without_additions(&mut got);
            differences(expected, &got, how)
        }
        Err(_) => vec![format!("expected {}, got no JSON: {}", short(expected), reply.text())],
    }
}

/// Text that is no JSON: every line is there, in its order; lines may be added.
fn text(expected: &str, reply: &Reply) -> Vec<String> {
    let got = compare::normal(&reply.text(), false);
    let mut lines = got.lines();
    let wanted = compare::normal(expected, true);
    let newer = ["- destroy", "__pub_minion_is_target", "__pub_pure_resource_target", "__pub_resource_targets"];
    let missing =
        wanted.lines().find(|line| !newer.iter().any(|newer| line.contains(newer)) && !lines.any(|ours| ours == *line));
    missing.map(|line| format!("expected the line {line:?}, got {got:?}")).into_iter().collect()
}
