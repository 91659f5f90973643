//! A server with HTTP in this process, two organisations with minions and groups, and people of every role, each with a token.

use crate::cases::Case;
use saltern_api::Front;
use saltern_core::access::Scope;
use saltern_core::ids::MinionId;
use saltern_core::value::Value;
use saltern_server::app::{
    App, Assignee, AssigneeKind, Caller, Group, Identity, NewToken, RunRequest, StateDraft, UserChange,
};
use saltern_server::config::{Config, Sources};
use saltern_server::{Server, serve};
use saltern_testkit::fake_minion::key_named;
use saltern_testkit::http::{Http, Reply, Request};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Somebody who asks.
pub(crate) struct Person {
    pub(crate) name: &'static str,
    org: &'static str,
    role: &'static str,
    /// The minions he sees
    pub(crate) sees: &'static [&'static str],
}

const fn person(name: &'static str, org: &'static str, role: &'static str, sees: &'static [&'static str]) -> Person {
    Person { name, org, role, sees }
}

/// Who asks: without a token, without a role, with each role, and from another organisation.
pub(crate) const PEOPLE: &[Person] = &[
    person("none", "", "", &[]),
    person("nobody", "default", "", &[]),
    person("reader", "default", "reader", &["web1", "web2", "sql1"]),
    person("webreader", "default", "reader:web", &["web1", "web2"]),
    person("dbop", "default", "operator:db", &["sql1"]),
    person("webop", "default", "operator:web", &["web1", "web2"]),
    person("webadmin", "default", "group-admin:web", &["web1", "web2"]),
    person("boss", "default", "org-admin", &["web1", "web2", "sql1"]),
    person("northop", "north", "operator:north-all", &["north1"]),
    person("northboss", "north", "org-admin", &["north1"]),
    person("root", "default", "server-admin", &["web1", "web2", "sql1", "north1"]),
];

pub(crate) const PASSWORD: &str = "correct horse";

/// Everything.
pub(crate) struct Town {
    app: App,
    http: Http,
    tokens: BTreeMap<&'static str, String>,
    made: AtomicUsize,
    stop: CancellationToken,
    _server: Server,
    _dir: tempfile::TempDir,
}

impl Drop for Town {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Town {
    pub(crate) async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pki = dir.path().join("data/pki");
        std::fs::create_dir_all(&pki).unwrap();
        std::fs::write(pki.join("master.pem"), key_named("the server").to_pem().unwrap().as_bytes()).unwrap();
        let settings = [
            ("data_dir", Value::from(dir.path().join("data").to_str().unwrap())),
            ("interface", "127.0.0.1".into()),
            ("publish_port", 0.into()),
            ("ret_port", 0.into()),
            ("http", "127.0.0.1:0".into()),
            ("timeout", 1.into()),
            ("gather_job_timeout", 1.into()),
        ];
        let overrides = settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let server = serve(Config::load(Sources { overrides, ..Sources::default() }).unwrap()).await.unwrap();
        let app = server.app();
        let front = Front::bind(&app).unwrap().unwrap();
        let http = Http::new(front.local_addr());
        let stop = CancellationToken::new();
        tokio::spawn(front.serve(app.clone(), stop.clone()));
        let (tokens, made) = (BTreeMap::new(), AtomicUsize::new(0));
        let mut town = Self { app, http, tokens, made, stop, _server: server, _dir: dir };
        town.furnish().await;
        town
    }

    async fn furnish(&mut self) {
        for minion in ["web1", "web2", "sql1", "north1"] {
            self.key(minion).await;
        }
        let app = &self.app;
        app.put_organisation(&admin(), "north", "", None).await.unwrap();
        app.set_minion_org(&admin(), &MinionId::new("north1").unwrap(), "north").await.unwrap();
        self.group("web", "default", Some("web*")).await;
        self.group("db", "default", Some("sql*")).await;
        self.group("north-all", "north", Some("*")).await;
        for person in PEOPLE.iter().skip(1) {
            let roles = Some(person.role.to_owned()).filter(|role| !role.is_empty()).into_iter().collect();
            self.user(person.name, person.org, roles).await;
            let token = self.session(person.name).await;
            self.tokens.insert(person.name, token);
        }
    }

    async fn session(&self, user: &str) -> String {
        let identity = Identity { user: user.into(), auth: "local".into(), groups: vec![] };
        self.app.sign_in(identity, "192.0.2.1", None).await.unwrap().token
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: &Request) -> Reply {
        self.http.send(request).await
    }

    /// Asks on behalf of somebody; returns what was sent, and the reply.
    pub(crate) async fn ask(&self, case: &Case, person: &Person) -> (String, Reply) {
        let mut names = BTreeMap::new();
        for place in [
            "user",
            "group",
            "org",
            "state",
            "token",
            "webhook",
            "key",
            "action",
            "jid",
            "chain",
            "shared",
            "launch",
            "later",
            "recurring",
            "calendar",
            "schedule",
            "new",
        ] {
            if case.path.contains(&format!("{{{place}}}")) || case.body.contains(&format!("{{{place}}}")) {
                self.make(place, &mut names).await;
            }
        }
        let fill = |text: &str| {
            names.iter().fold(text.to_owned(), |text, (place, name)| text.replace(&format!("{{{place}}}"), name))
        };
        let (path, body) = (fill(case.path), fill(case.body));
        let mut request = Request::new(case.method, &path);
        // Whoever logs out, or in again, loses his token: he has another for that.
        let ends = case.path.contains("/sessions") || case.path == "/logout";
        match self.tokens.get(person.name) {
            Some(_) if ends => request = request.token(&self.session(person.name).await),
            Some(token) => request = request.token(token),
            None => {}
        }
        if !body.is_empty() {
            request = request.header("Content-Type", "application/json").body(body.clone());
        }
        if matches!(case.method, "PUT" | "PATCH" | "DELETE") {
            request = request.header("If-Match", "*");
        }
        let reply = self.http.send(&request).await;
        if let Some(id) = names.get("webhook") {
            // There is a limit to how many somebody has.
            let remove = Request::new("DELETE", &format!("/api/v1/webhooks/{id}")).header("If-Match", "*");
            self.http.send(&remove.token(&self.tokens["root"])).await;
        }
        (format!("{path} {body}"), reply)
    }

    async fn make(&self, place: &'static str, names: &mut BTreeMap<&'static str, String>) {
        let name = format!("x{}", self.made.fetch_add(1, Ordering::Relaxed));
        let name = match place {
            "user" => {
                self.user(&name, "default", vec![]).await;
                name
            }
            "group" => {
                self.group(&name, "default", Some("web*")).await;
                name
            }
            "org" => {
                self.app.put_organisation(&admin(), &name, "", None).await.unwrap();
                name
            }
            "state" => {
                let draft = StateDraft { name: name.clone(), content: "a: {}".into(), ..StateDraft::default() };
                self.app.put_state(&admin(), draft, None).await.unwrap();
                let to = Assignee { kind: AssigneeKind::Minion, subject: "web1".into() };
                self.app.assign_state(&admin(), None, &name, to).await.unwrap();
                name
            }
            "token" => {
                let lifetime = Duration::from_secs(60);
                let user = Some("webop".to_owned());
                let wanted = NewToken { user, name, scope: Scope::Read, lifetime };
                self.app.create_token(&admin(), wanted).await.unwrap().1.id
            }
            "webhook" => self.webhook(&name).await,
            "chain" => self.chain("webop", &name, r#""web?""#, false).await,
            "shared" => self.chain("webop", &name, r#""web?""#, true).await,
            "launch" => {
                let chain = self.chain("root", &name, r#"{"minions":["web1","sql1"]}"#, false).await;
                let body = format!(r#"{{"due":"{}"}}"#, later());
                self.post("root", &format!("/api/v1/chains/{chain}/launch"), &body).await
            }
            "later" => later(),
            "recurring" => {
                let (entity, what) =
                    (r#"{"kind":"minion","subject":"web1"}"#, r#"{"type":"states","params":{"test":true}}"#);
                let body = format!(
                    r#"{{"name":"{name}","entity":{entity},"what":{what},"cron":"0 4 * * SUN","active":false}}"#
                );
                self.post("webop", "/api/v1/recurring", &body).await
            }
            "calendar" => self.calendar(&name).await,
            "schedule" => {
                let calendar = self.calendar(&name).await;
                let body = format!(r#"{{"name":"{name}","org":"default","calendar":"{calendar}"}}"#);
                self.post("root", "/api/v1/schedules", &body).await;
                name
            }
            "key" => {
                self.key(&name).await;
                name
            }
            "action" | "jid" => {
                let accepted = self.app.run(&admin(), ping()).await.unwrap();
                let jid = accepted.jid.unwrap().to_string();
                if place == "action" { accepted.action.to_string() } else { jid }
            }
            _ => name,
        };
        names.insert(place, name);
    }

    async fn webhook(&self, name: &str) -> String {
        let body = format!(r#"{{"name":"{name}","url":"http://127.0.0.1:9/","active":false}}"#);
        self.post("root", "/api/v1/webhooks", &body).await
    }

    /// A calendar with one window a day.
    async fn calendar(&self, name: &str) -> String {
        let ical = [
            "BEGIN:VCALENDAR\\r\\nVERSION:2.0\\r\\nPRODID:x\\r\\nBEGIN:VEVENT\\r\\nUID:1\\r\\nDTSTAMP:20260101T000000Z\\r\\n",
            "DTSTART:20260101T020000Z\\r\\nDTEND:20260101T040000Z\\r\\nRRULE:FREQ=DAILY\\r\\nSUMMARY:a\\r\\nEND:VEVENT\\r\\n",
            "END:VCALENDAR\\r\\n",
        ];
        let body = format!(r#"{{"name":"{name}","org":"default","ical":"{}"}}"#, ical.concat());
        self.post("root", "/api/v1/calendars", &body).await;
        name.to_owned()
    }

    /// A chain of two steps, of which the second asks first.
    async fn chain(&self, owner: &str, name: &str, target: &str, shared: bool) -> String {
        let step = format!(r#""type":"function","params":{{"fun":"test.ping"}},"target":{target}"#);
        let steps = format!(r#"[{{{step}}},{{{step},"approval":"go on?"}}]"#);
        let body = format!(r#"{{"name":"{name}","shared":{shared},"steps":{steps}}}"#);
        self.post(owner, "/api/v1/chains", &body).await
    }

    /// Has somebody make something; tells its number.
    async fn post(&self, who: &str, path: &str, body: &str) -> String {
        let request = Request::new("POST", path)
            .token(&self.tokens[who])
            .header("Content-Type", "application/json")
            .body(body.to_owned());
        let reply = self.http.send(&request).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["id"].to_string()
    }

    async fn key(&self, minion: &str) {
        self.app.make_keys(&admin(), Some(&MinionId::new(minion).unwrap()), None, false).await.unwrap();
    }

    async fn group(&self, name: &str, org: &str, target: Option<&str>) {
        let group = Group {
            name: name.into(),
            org: org.into(),
            description: String::new(),
            target: target.map(|pattern| ("glob".into(), pattern.into())),
            members: vec![],
            created: saltern_core::time::Timestamp(0),
            version: 0,
        };
        self.app.put_group(&admin(), group, None).await.unwrap();
    }

    async fn user(&self, name: &str, org: &str, roles: Vec<String>) {
        let change = UserChange {
            org: Some(org.into()),
            password: Some(PASSWORD.into()),
            roles: Some(roles),
            ..UserChange::default()
        };
        self.app.create_user(&admin(), name, change).await.unwrap();
    }
}

/// An hour from now: nothing that is due then happens before everybody has asked.
fn later() -> String {
    saltern_core::time::Timestamp(saltern_server::clock::now().0 + 3_600_000_000).rfc3339()
}

fn admin() -> Caller {
    Caller::administrator("town", "test")
}

fn ping() -> RunRequest {
    RunRequest {
        target: saltern_core::target::Target::list(["web1"]),
        funs: vec!["test.ping".into()],
        args: vec![],
        kwargs: saltern_core::value::Map::new(),
        policy: saltern_core::action::Policy::default(),
        due: None,
        deadline: None,
        metadata: None,
        ret: String::new(),
        in_window: false,
    }
}
