//! Two servers on one database, and who of them did what.

use crate::knows_a;
use crate::ledger::{LONG, Ledger};
use crate::plans::INSTANTS;
use saltern_testkit::process::{Saltern, run_to_end};
use saltern_testkit::wait;
use tokio::task::JoinSet;

const NAMES: [&str; 2] = ["one", "other"];

/// Two servers that share a database and their keys.
pub(crate) struct Pair {
    pub(crate) servers: [Saltern; 2],
}

impl Pair {
    pub(crate) async fn start(url: &str) -> Self {
        // The database knows each by its name.
        let [mut one, mut other] = NAMES.map(|name| {
            let config = format!("id: {name}\ndatabase: {url}?application_name={name}\n");
            Saltern::prepare(&config, &["--auto-accept"])
        });
        one.launch().await;
        knows_a(&one).await;
        let [from, to] = [&one, &other].map(|server| server.data_dir().join("pki"));
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
        other.launch().await;
        Self { servers: [one, other] }
    }

    /// People at this server look after these definitions, all at once: what is due of each is accounted for before they are
    /// answered.
    pub(crate) fn look_after(&self, server: usize, ids: &[i64]) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for id in ids {
            // It is so already: nothing is changed.
            let look = self.servers[server].cli_command(&["recurring", "skip-next", &id.to_string(), "--undo"]);
            // Whatever the answer: others may be at it, and the server may be dead.
            clients.spawn(async { drop(run_to_end(look, LONG).await) });
        }
        clients
    }
}

/// From now on the database notes with each instant whose connection accounted for it.
pub(crate) async fn sign_rows(ledger: &Ledger) {
    let signed = "ALTER TABLE fires ADD COLUMN server TEXT NOT NULL DEFAULT current_setting('application_name')";
    ledger.change(signed).await;
}

/// How many instants each server has accounted for.
pub(crate) async fn signed(ledger: &Ledger) -> [i64; 2] {
    let [one, other] = NAMES;
    let counts = format!(
        "SELECT count(*) FILTER (WHERE server = '{one}'), count(*) FILTER (WHERE server = '{other}') FROM fires"
    );
    ledger.rows(&counts).await[0]
}

/// The server with the lowest place: the one that fires by itself. One that was killed had other places before.
pub(crate) async fn first(ledger: &Ledger) -> usize {
    let places = format!(
        "SELECT CAST(name = '{}' AS INT)::BIGINT FROM (SELECT DISTINCT ON (name) name, place FROM servers ORDER BY name, beat DESC) \
         AS living ORDER BY place",
        NAMES[1]
    );
    usize::try_from(ledger.rows::<1>(&places).await[0][0]).unwrap()
}

/// Waits until all that was due of these is accounted for; nobody but this server may have done so.
pub(crate) async fn until_settled(ledger: &Ledger, ids: &[i64], server: usize) {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let counts = format!(
        "SELECT count(*), count(*) FILTER (WHERE server = '{}') FROM fires WHERE recurring IN ({})",
        NAMES[server],
        ids.join(", ")
    );
    let due = ids.len() as i64 * INSTANTS as i64;
    wait::until_ok(&format!("{due} instants to be accounted for by one server"), LONG, async || {
        let [all, own] = ledger.rows(&counts).await[0];
        assert_eq!(all, own, "the other one is dead");
        if own >= due { Ok(()) } else { Err(own) }
    })
    .await;
}

/// Waits until the database has noticed that the servers are dead: it may still be at the last thing they have sent.
pub(crate) async fn until_gone(ledger: &Ledger) {
    let [one, other] = NAMES;
    let left = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('{one}', '{other}')");
    wait::until("their connections to be gone", LONG, async || ledger.rows::<1>(&left).await == [[0]]).await;
}
