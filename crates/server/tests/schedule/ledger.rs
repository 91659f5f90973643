//! The tables of a server, read and changed behind its back; on either database.

use saltern_testkit::wait;
use std::path::Path;
use std::time::Duration;
use tokio_postgres::NoTls;

/// Longer than anything here takes, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// A connection to the tables.
pub(crate) enum Ledger {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

impl Ledger {
    /// The tables in a server's directory.
    pub(crate) fn sqlite(dir: &Path) -> Self {
        let database = rusqlite::Connection::open(dir.join("data/saltern.db")).unwrap();
        database.busy_timeout(LONG).unwrap();
        Self::Sqlite(database)
    }

    pub(crate) async fn postgres(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(async move { connection.await.unwrap() });
        Self::Postgres(client)
    }

    /// Rows of numbers.
    pub(crate) async fn rows<const N: usize>(&self, sql: &str) -> Vec<[i64; N]> {
        match self {
            Self::Sqlite(database) => {
                let mut statement = database.prepare(sql).unwrap();
                let rows = statement.query_map([], |row| Ok(std::array::from_fn(|index| row.get(index).unwrap())));
                rows.unwrap().map(Result::unwrap).collect()
            }
            Self::Postgres(client) => {
                let rows = client.query(sql, &[]).await.unwrap();
                rows.iter().map(|row| std::array::from_fn(|index| row.get(index))).collect()
            }
        }
    }

    /// Statements that take effect together.
    pub(crate) async fn change(&self, sql: &str) {
        let sql = format!("BEGIN; {sql}; COMMIT");
        match self {
            Self::Sqlite(database) => database.execute_batch(&sql).unwrap(),
            Self::Postgres(client) => client.batch_execute(&sql).await.unwrap(),
        }
    }

    /// How many instants are accounted for.
    pub(crate) async fn accounted(&self) -> i64 {
        self.rows::<1>("SELECT count(*) FROM fires").await[0][0]
    }

    /// Waits until so many are.
    pub(crate) async fn until_accounted(&self, count: i64) {
        wait::until_ok(&format!("{count} instants to be accounted for"), LONG, async || {
            let accounted = self.accounted().await;
            if accounted >= count { Ok(()) } else { Err(accounted) }
        })
        .await;
    }
}
