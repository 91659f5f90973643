//! Empty databases of both kinds, and the macro that runs one behaviour on each.

use saltern_store::{Location, Options, Store};
use saltern_testkit::{
    postgres::{self, Passing},
    scratch::Scratch,
};

/// An empty database that nobody else uses, gone when this is dropped.
pub(crate) struct Database {
    pub(crate) location: Location,
    _keeper: Keeper,
}

/// What removes the database when it is dropped.
#[expect(dead_code, reason = "held for what their drops do")]
enum Keeper {
    Folder(Scratch),
    Passing(Passing),
    Nobody,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let folder = Scratch::new("store");
        Self { location: Location::Sqlite(folder.path().join("saltern.db")), _keeper: Keeper::Folder(folder) }
    }

    /// Nothing where PostgreSQL is not installed or not wanted.
    pub(crate) fn postgres() -> Option<Self> {
        let database = postgres::passing_database()?;
        Some(Self { location: Location::parse(&database.url()).unwrap(), _keeper: Keeper::Passing(database) })
    }

    /// The database at an address.
    pub(crate) fn at(address: &str) -> Self {
        Self { location: Location::parse(address).unwrap(), _keeper: Keeper::Nobody }
    }

    pub(crate) async fn open(&self) -> Store {
        self.open_with(&Options::default()).await
    }

    pub(crate) async fn open_with(&self, options: &Options) -> Store {
        Store::open(&self.location, options).await.unwrap()
    }

    /// Runs statements behind the store's back.
    pub(crate) async fn tamper(&self, sql: &str) {
        match &self.location {
            Location::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
            Location::Postgres(_) => self.connect().await.batch_execute(sql).await.unwrap(),
        }
    }

    /// A connection of the test's own, past the store.
    pub(crate) async fn connect(&self) -> tokio_postgres::Client {
        let Location::Postgres(url) = &self.location else { panic!("only PostgreSQL has connections") };
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

/// Runs each of these behaviours (`async fn(Database)`) on a SQLite file and on PostgreSQL.
///
/// A behaviour that is left out is dead code, which the linter refuses.
macro_rules! on_both_databases {
    ($($behaviour:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    super::$behaviour(crate::database::Database::sqlite()).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    if let Some(database) = crate::database::Database::postgres() {
                        super::$behaviour(database).await;
                    }
                }
            )*
        }
    };
}
pub(crate) use on_both_databases;
