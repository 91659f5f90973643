//! A town to walk in: two organisations with minions, groups and people of every role.

use crate::house::{House, caller};
use saltern_core::ids::MinionId;
use saltern_core::target::{Target, TargetType};
use saltern_core::value::Value;
use saltern_server::Error;
use saltern_server::app::{Accepted, Caller, Group, Identity, RunRequest, Session, UserChange};

/// The password of everybody.
pub(crate) const PASSWORD: &str = "correct horse";

/// A server with minions web1, web2, db1 in the default organisation and north1 in `north`; groups `web` (by target),
/// `db` (by name) and `north-all`; and people, see [`Town::open`].
pub(crate) struct Town {
    pub(crate) house: House,
}

pub(crate) fn id(text: &str) -> MinionId {
    MinionId::new(text).unwrap()
}

/// A ping of whom a shell pattern means.
pub(crate) fn ping(pattern: &str) -> RunRequest {
    RunRequest {
        target: Target::new(TargetType::Glob, pattern),
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

impl Town {
    /// Opens it. People: `root` (server admin), `boss` (org admin), `webadmin` (group admin of web), `webop` (operator of
    /// web), `dbop` (operator of db), `reader` (reader of the organisation), `webreader` (reader of web), `nobody` (no role),
    /// and in `north`: `northboss` (org admin), `northop` (operator of north-all).
    pub(crate) async fn open() -> Self {
        Self::with([]).await
    }

    /// The same with these settings.
    pub(crate) async fn with<const N: usize>(settings: [(&str, Value); N]) -> Self {
        let town = Self { house: House::with(settings).await };
        let app = town.house.app();
        for minion in ["web1", "web2", "db1", "north1"] {
            app.make_keys(&caller(), Some(&id(minion)), None, false).await.unwrap();
        }
        app.put_organisation(&caller(), "north", "", None).await.unwrap();
        app.set_minion_org(&caller(), &id("north1"), "north").await.unwrap();
        let by_target = |pattern: &str| Some(("glob".to_owned(), pattern.to_owned()));
        town.group("web", "default", by_target("web*"), &[]).await;
        town.group("db", "default", None, &["db1"]).await;
        town.group("north-all", "north", by_target("*"), &[]).await;
        for (name, org, role) in [
            ("root", "default", "server-admin"),
            ("boss", "default", "org-admin"),
            ("webadmin", "default", "group-admin:web"),
            ("webop", "default", "operator:web"),
            ("dbop", "default", "operator:db"),
            ("reader", "default", "reader"),
            ("webreader", "default", "reader:web"),
            ("nobody", "default", ""),
            ("northboss", "north", "org-admin"),
            ("northop", "north", "operator:north-all"),
        ] {
            town.user(name, org, role).await;
        }
        town
    }

    async fn group(&self, name: &str, org: &str, target: Option<(String, String)>, members: &[&str]) {
        let group = Group {
            name: name.into(),
            org: org.into(),
            description: String::new(),
            target,
            members: members.iter().map(|member| id(member)).collect(),
            created: saltern_core::time::Timestamp(0),
            version: 0,
        };
        self.house.app().put_group(&caller(), group, None).await.unwrap();
    }

    /// Makes a user; several roles have blanks between them.
    pub(crate) async fn user(&self, name: &str, org: &str, roles: &str) {
        let roles = roles.split_whitespace().map(str::to_owned).collect();
        let change = UserChange {
            org: Some(org.into()),
            password: Some(PASSWORD.into()),
            roles: Some(roles),
            ..UserChange::default()
        };
        self.house.app().create_user(&caller(), name, change).await.unwrap();
    }

    /// Logs somebody in.
    pub(crate) async fn session(&self, user: &str) -> (String, Session) {
        let identity = Identity { user: user.into(), auth: "local".into(), groups: vec![] };
        let signed_in = self.house.app().sign_in(identity, "192.0.2.1", None).await.unwrap();
        (signed_in.token, signed_in.session)
    }

    /// The same, as a caller.
    pub(crate) async fn caller(&self, user: &str) -> Caller {
        self.session(user).await.1.caller
    }

    /// Removes the first events behind the server's back, as retention would.
    pub(crate) fn forget_events(&self, up_to: i64) {
        let path = self.house.dir.path().join("data/saltern.db");
        let database = rusqlite::Connection::open(path).unwrap();
        database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        database.execute("DELETE FROM events WHERE number <= ?1", [up_to]).unwrap();
    }

    /// Somebody pings.
    pub(crate) async fn ping(&self, who: &Caller, pattern: &str) -> Result<Accepted, Error> {
        self.house.app().run(who, ping(pattern)).await
    }
}
