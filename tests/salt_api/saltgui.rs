//! SaltGUI's calls, screen by screen: what its pages read of the answers has to be there in the form they read it.

use crate::capture;
use crate::stand::{Stand, credentials};
use saltern_testkit::http::{Events, Reply, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The calls a screen makes.
#[derive(Debug, Deserialize)]
struct Screen {
    screen: String,
    requests: Vec<Call>,
}

#[derive(Debug, Clone, Deserialize)]
struct Call {
    method: String,
    path: String,
    accept: Option<String>,
    body: Option<Value>,
}

/// What every screen waits for has to come before anybody waits for a dead minion: that takes this long, and three seconds
/// more on salt-api.
const FAST: Duration = Duration::from_secs(5);

#[tokio::test]
async fn every_screen_finds_what_it_reads() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    stand.bring_jobs().await;
    stand.bring_keys().await;
    prepare(stand).await;
    let mut gui = Gui { stand, token: String::new(), cookie: String::new() };
    let mut failed = Vec::new();
    for screen in capture::lines::<Screen>("saltgui.jsonl") {
        for call in &screen.requests {
            let verdict = gui.call(&screen.screen, call).await;
            failed.extend(verdict.err().map(|complaint| format!("{}: {complaint}", screen.screen)));
        }
    }
    stand.remove_keys().await;
    stand.local("web1", "saltutil.term_all_jobs", json!([])).await;
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[tokio::test]
async fn twelve_calls_at_once_are_answered() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    let token = stand.token("admin").await;
    let calls = [
        json!({ "client": "wheel", "fun": "key.list_all" }),
        json!({ "client": "runner", "fun": "jobs.list_jobs" }),
        json!({ "client": "runner", "fun": "jobs.active" }),
        json!({ "client": "local", "fun": "grains.items", "tgt": "*", "tgt_type": "glob" }),
    ];
    let asked: Vec<_> = (0..12)
        .map(|index| {
            let (http, request) = (stand.http, Request::post("/", &calls[index % calls.len()]).token(&token));
            tokio::spawn(async move { http.send(&request).await.status })
        })
        .collect();
    for asked in asked {
        assert_eq!(asked.await.unwrap(), 200);
    }
}

/// Something to see on each screen, in place of what other tests have left.
async fn prepare(stand: &Stand) {
    stand.local("web1", "schedule.delete", json!(["gui"])).await;
    stand.local("web1", "beacons.delete", json!(["memusage"])).await;
    let schedule = json!({ "client": "local", "tgt": "web1", "fun": "schedule.add", "arg": ["gui"],
        "kwarg": { "function": "test.ping", "seconds": 3600 } });
    stand.result(&schedule).await;
    stand.local("web1", "beacons.add", json!(["memusage", [{ "percent": "99%" }, { "interval": 3600 }]])).await;
    let sleep = json!({ "client": "local_async", "tgt": "web1", "fun": "test.sleep", "arg": [60] });
    stand.start_job("running", &sleep).await;
}

struct Gui<'a> {
    stand: &'a Stand,
    token: String,
    cookie: String,
}

impl Gui<'_> {
    async fn call(&mut self, screen: &str, call: &Call) -> Result<(), String> {
        let what = format!("{} {} {}", call.method, call.path, call.body.clone().unwrap_or_default());
        if call.path == "/events" {
            return self.listen().await;
        }
        let begin = Instant::now();
        let reply = self.stand.http.send(&self.request(screen, call).await).await;
        if call.path == "/login" {
            self.token = reply.json()["return"][0]["token"].as_str().unwrap_or_default().to_owned();
            let cookie = reply.header("Set-Cookie").unwrap_or_default();
            self.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        }
        let verdict = judge(screen, call, &reply);
        let is_runner = call.body.as_ref().is_some_and(|body| body["client"] == "runner");
        let slow = is_runner && begin.elapsed() > FAST;
        let verdict = verdict.and_then(|()| if slow { Err(format!("it took {:?}", begin.elapsed())) } else { Ok(()) });
        verdict.map_err(|complaint| {
            let text: String = reply.text().chars().take(400).collect();
            format!("{what}: {complaint}: {} {text}", reply.status)
        })
    }

    async fn request(&self, screen: &str, call: &Call) -> Request {
        let mut request = Request::new(&call.method, &call.path);
        request = request.header("Accept", call.accept.as_deref().unwrap_or("application/json"));
        request = request.header("Cache-Control", "no-cache").header("X-Auth-Token", &self.token);
        if !self.cookie.is_empty() {
            request = request.header("Cookie", &self.cookie);
        }
        let Some(mut body) = call.body.clone() else { return request };
        if body.get("jid").is_some() {
            let name = match screen {
                "job-partial" => "partial",
                "job-running" => "running",
                "job-orchestrate" => "runner",
                _ => "state",
            };
            body["jid"] = json!(self.stand.fill(&format!("{{jid:{name}}}"), None).await);
        }
        request.header("Content-Type", "text/plain;charset=UTF-8").body(body.to_string())
    }

    /// A page's EventSource can send nothing but the cookie.
    async fn listen(&self) -> Result<(), String> {
        let request = Request::get("/events").header("Accept", "text/event-stream").header("Cookie", &self.cookie);
        let opened = Events::open(&self.stand.http, &request).await;
        opened.map(drop).map_err(|reply| format!("the stream is refused: {} {}", reply.status, reply.text()))
    }
}

type Verdict = Result<(), String>;

fn judge(screen: &str, call: &Call, reply: &Reply) -> Verdict {
    if call.path.starts_with("/static/") {
        return must(reply.status == 404, "a file that is not there");
    }
    if screen == "cmd-runner-unknown" && call.path == "/" {
        return must(reply.status == 400, "a function that is not there");
    }
    must(reply.status == 200, "it is an error")?;
    let body = reply.json();
    match (call.path.as_str(), &call.body) {
        ("/stats", _) => must(is_table(&body), "each value is an object"),
        ("/login", _) => login(&body["return"][0]),
        ("/", Some(low)) => low_data(screen, low, &body["return"][0]),
        _ => Ok(()),
    }
}

fn login(login: &Value) -> Verdict {
    must(login["token"].is_string() && login["user"] == "admin" && login["eauth"] == "file", "who it is")?;
    must(login["start"].is_number() && login["expire"].is_number(), "until when")?;
    must(login["perms"].as_array().is_some_and(|perms| !perms.is_empty()), "what he may")
}

fn low_data(screen: &str, low: &Value, got: &Value) -> Verdict {
    let wheel = &got["data"]["return"];
    match low["fun"].as_str().unwrap_or_default() {
        "config.values" => {
            must(wheel["nodegroups"]["web"].is_string() && wheel["saltgui_templates"].is_object(), "its own settings")
        }
        "key.list_all" => {
            let lists = ["minions", "minions_pre", "minions_rejected", "minions_denied"];
            must(lists.iter().all(|list| wheel[list].is_array()), "four lists that can be sorted")
        }
        "key.finger" => {
            must(wheel["minions"]["web1"].as_str().is_some_and(|finger| finger.len() == 95), "fingerprints")
        }
        "key.accept" => {
            must(wheel["minions"] == json!(["pend1"]) && got["data"]["success"] == true, "where the key is")
        }
        "key.delete" => must(*wheel == json!({}), "nothing"),
        "minions.connected" => must(*wheel == json!(["db1", "web1"]), "who is connected"),
        "state.orchestrate_show_sls" => must(got.as_object().is_some_and(|all| all.len() == 1), "one object"),
        "jobs.list_jobs" => job_list(got),
        "jobs.active" => active(got),
        "jobs.list_job" => job(screen, got),
        "manage.versions" => versions(got),
        "manage.present" => must(got["data"]["return"] == json!(["db1", "web1"]), "who is there"),
        _ if low["client"] == "local" => minions(screen, low, got),
        fun => Err(format!("nobody says what {fun} has to give")),
    }
}

fn minions(screen: &str, low: &Value, got: &Value) -> Verdict {
    if screen == "cmd-nomatch" {
        return must(*got == json!({}), "nobody");
    }
    let all = got.as_object().filter(|all| !all.is_empty()).ok_or("minions are expected")?;
    // Pages show `false` as offline; anything else would be shown as an error.
    let to_all = low["tgt"] == "*" || low["tgt"] == "N@all";
    must(!to_all || (all["ghost1"] == false && all.contains_key("db1")), "a dead minion is false")?;
    let web1 = &got["web1"];
    let full = low["full_return"] == true;
    must(!full || web1.get("retcode").is_some_and(Value::is_number), "how it ended")?;
    let value = if full { &web1["ret"] } else { web1 };
    let right = match low["fun"].as_str().unwrap_or_default() {
        "beacons.list_available" => value.is_array(),
        "grains.items" => {
            ["saltversion", "os", "osrelease"].iter().all(|grain| value[grain].is_string())
                && value["fqdn_ip4"].is_array()
        }
        "pillar.obfuscate" => value["greet"] == "<str>",
        "pillar.items" => value["greet"] == "world" && value["nested"]["a"] == 1,
        "mine.valid" => value["test.ping"] == json!([]),
        "mine.get" => value["web1"] == true,
        "beacons.list" => value["memusage"] == json!([{ "percent": "99%" }, { "interval": 3600 }]),
        "schedule.list" => value["gui"]["function"] == "test.ping" && value["gui"]["seconds"] == 3600,
        "test.version" => value.is_string() && web1["retcode"] == 0,
        "test.ping" => *value == true,
        "nosuch.func" => *value == "'nosuch.func' is not available." && web1["retcode"] == 1,
        "state.apply" => {
            let states = value.as_object().filter(|states| states.len() == 2);
            let fields = ["result", "comment", "changes", "__sls__", "__id__", "__run_num__", "start_time", "duration"];
            let complete = |state: &Value| fields.iter().all(|field| state.get(field).is_some());
            web1["out"] == "highstate" && states.is_some_and(|states| states.values().all(complete))
        }
        "test.arg" => value["args"] == json!(["one", 2]) && value["kwargs"]["j"] == json!({ "a": 1 }),
        fun => return Err(format!("nobody says what {fun} has to give")),
    };
    must(right, "what the page shows")
}

fn job_list(got: &Value) -> Verdict {
    let jobs = got.as_object().filter(|jobs| !jobs.is_empty()).ok_or("there are jobs")?;
    let fields = ["Function", "Arguments", "Target", "Target-type", "User", "StartTime"];
    let complete =
        |(jid, job): (&String, &Value)| jid.len() == 20 && fields.iter().all(|field| job.get(field).is_some());
    must(jobs.iter().all(complete), "what each row shows")?;
    must(jobs.values().all(|job| is_start_time(&job["StartTime"])), "times it can read")
}

/// `2026, Nov 15 18:54:13.231715`
fn is_start_time(time: &Value) -> bool {
    let time = time.as_str().unwrap_or_default();
    time.len() == 28 && time[4..].starts_with(", ") && time.as_bytes()[21] == b'.'
}

fn active(got: &Value) -> Verdict {
    let jobs = got.as_object().ok_or("an object of jobs")?;
    let lists = |job: &Value| job["Running"].is_array() && job["Returned"].is_array();
    must(jobs.values().all(lists), "who runs it and who has returned")?;
    let pids = jobs.values().flat_map(|job| job["Running"].as_array().cloned().unwrap_or_default());
    let is_pid = |running: Value| running.as_object().is_some_and(|running| running.values().all(Value::is_number));
    must(pids.into_iter().all(is_pid), "a process id per minion")
}

fn job(screen: &str, got: &Value) -> Verdict {
    must(is_start_time(&got["StartTime"]) && got["Result"].is_object(), "when, and with what result")?;
    let results = got["Result"].as_object().ok_or("results")?;
    match screen {
        "job-orchestrate" => {
            let result = results.values().next().ok_or("a runner's result")?;
            must(
                result["return"]["fun_args"].is_array() && result["return"].get("return").is_some(),
                "what a runner was asked",
            )
        }
        "job-running" => must(got["Minions"] == json!(["web1"]) && results.is_empty(), "who is still to answer"),
        _ => {
            let told = |result: &Value| result["success"].is_boolean() && result["retcode"].is_number();
            must(got["Minions"].is_array() && results.values().all(told), "how it ended on each")?;
            let expected = if screen == "job-partial" { 2 } else { 1 };
            must(results.len() == expected, "who has answered")
        }
    }
}

fn versions(got: &Value) -> Verdict {
    let master = got["Master"].as_str().unwrap_or_default();
    // Anything else lights up warnings about ancient Salt.
    must(master.starts_with("300"), "a version like Salt's")?;
    must(got["Minion offline"]["ghost1"] == false, "who is off")
}

fn is_table(value: &Value) -> bool {
    value.as_object().is_some_and(|table| table.values().all(Value::is_object))
}

fn must(fact: bool, expected: &str) -> Verdict {
    if fact { Ok(()) } else { Err(format!("expected {expected}")) }
}

#[tokio::test]
async fn keys_are_told_live_in_the_words_it_knows() {
    let Some(stand) = Stand::shared().await else { return };
    let _turn = stand.turn().await;
    stand.bring_keys().await;
    let login = stand.http.send(&Request::post("/login", &credentials("admin"))).await;
    let cookie = login.header("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
    let mut events = Events::open(&stand.http, &Request::get("/events").header("Cookie", &cookie)).await.unwrap();
    for (fun, act) in [("key.accept", "accept"), ("key.delete", "delete")] {
        stand.result(&json!({ "client": "wheel", "fun": fun, "match": "pend1" })).await;
        let event =
            events.until("the key's event", |event| event.tag == "salt/key" && event.data["id"] == "pend1").await;
        assert_eq!((&event.data["act"], &event.data["result"]), (&json!(act), &json!(true)));
    }
    stand.sign_in("pend1").await;
    let event = events.until("the new key", |event| event.tag == "salt/auth" && event.data["id"] == "pend1").await;
    assert_eq!(event.data["act"], "pend");
    stand.remove_keys().await;
}
