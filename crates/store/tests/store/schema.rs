//! The schema: the same on both databases, as written down in `schema.txt`, and never that of a newer program.

use crate::database::Database;
use crate::fixtures::{ALL, all_tags, event, minions, returned, work};
use saltern_store::{Error, Location, Options, Store};
use std::collections::BTreeMap;
use std::path::Path;

#[tokio::test]
async fn sqlite_has_the_schema_that_is_written_down() {
    let database = Database::sqlite();
    database.open().await.close().await;
    check_summary(&sqlite_summary(path(&database)));
}

#[tokio::test]
async fn postgres_has_the_schema_that_is_written_down() {
    let Some(database) = Database::postgres() else { return };
    database.open().await.close().await;
    check_summary(&postgres_summary(&database.connect().await).await);
}

#[tokio::test]
async fn both_databases_have_the_same_schema() {
    let (sqlite, Some(postgres)) = (Database::sqlite(), Database::postgres()) else { return };
    sqlite.open().await.close().await;
    postgres.open().await.close().await;
    assert_eq!(sqlite_summary(path(&sqlite)), postgres_summary(&postgres.connect().await).await);
}

#[tokio::test]
async fn a_newer_sqlite_file_is_refused_and_left_as_it_is() {
    let database = Database::sqlite();
    database.open().await.close().await;
    let connection = rusqlite::Connection::open(path(&database)).unwrap();
    // As an operator may have left it: not in the mode that we would switch it to.
    connection.pragma_update(None, "journal_mode", "DELETE").unwrap();
    connection.execute("INSERT INTO schema_versions VALUES (4711)", []).unwrap();
    drop(connection);
    let before = std::fs::read(path(&database)).unwrap();

    let refused = Store::open(&database.location, &Options::default()).await.err().unwrap();
    assert_newer(&refused);
    assert_eq!(std::fs::read(path(&database)).unwrap(), before);
    let beside: Vec<_> = std::fs::read_dir(path(&database).parent().unwrap()).unwrap().collect();
    assert_eq!(beside.len(), 1, "nothing was left beside it: {beside:?}");
}

#[tokio::test]
async fn a_newer_postgres_database_is_refused_and_left_as_it_is() {
    let Some(database) = Database::postgres() else { return };
    let outside = database.connect().await;
    outside.batch_execute("CREATE TABLE schema_versions (number BIGINT PRIMARY KEY)").await.unwrap();
    outside.batch_execute("INSERT INTO schema_versions VALUES (4711)").await.unwrap();
    let refused = Store::open(&database.location, &Options::default()).await.err().unwrap();
    assert_newer(&refused);
    let tables = outside.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", &[]).await.unwrap();
    assert_eq!(tables.len(), 1, "no table of ours was made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_servers_may_open_an_empty_postgres_database_at_once() {
    let Some(database) = Database::postgres() else { return };
    let opening = (0..6).map(|_| database.open());
    for (n, store) in futures_util::future::join_all(opening).await.into_iter().enumerate() {
        store.log_events(vec![event(&n.to_string())]).await.unwrap();
    }
    assert_eq!(all_tags(&database.open().await).await.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_may_open_an_empty_sqlite_file_at_once() {
    let database = Database::sqlite();
    let opening = (0..6).map(|_| database.open());
    for (n, store) in futures_util::future::join_all(opening).await.into_iter().enumerate() {
        store.log_events(vec![event(&n.to_string())]).await.unwrap();
    }
    assert_eq!(all_tags(&database.open().await).await.len(), 6);
}

/// Ids are paged by, so their order may not depend on where the database was made.
#[tokio::test]
async fn the_order_of_ids_does_not_depend_on_the_databases_locale() {
    let Some(template) = Database::postgres() else { return };
    let name = "localised";
    let create = format!(
        "CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LC_COLLATE 'C' LC_CTYPE 'C'"
    );
    let outside = template.connect().await;
    if let Err(error) = outside.batch_execute(&create).await {
        return saltern_testkit::tier::skip("a PostgreSQL with ICU", &format!("{error:?}"));
    }
    let sorted = outside.query_one("SELECT 'B' < 'a' COLLATE \"en-US-x-icu\"", &[]).await.unwrap();
    assert!(!sorted.get::<_, bool>(0), "this locale has another order than ours");

    let Location::Postgres(url) = &template.location else { panic!("a PostgreSQL database has an address") };
    let (server, _) = url.rsplit_once('/').unwrap();
    let location = Location::parse(&format!("{server}/{name}")).unwrap();
    let store = Store::open(&location, &Options::default()).await.unwrap();
    let action = store.create(work(1, &["a", "B", "a-1", "a.1", "A", "b"])).await.unwrap();
    for id in ["a", "B", "a-1", "a.1", "A", "b"] {
        store.record_return(returned(1, Some(action), id)).await.unwrap();
    }
    let runs = store.runs(action, "", ALL).await.unwrap();
    let by_bytes = minions(&["A", "B", "a", "a-1", "a.1", "b"]);
    assert_eq!(runs.into_iter().map(|run| run.minion).collect::<Vec<_>>(), by_bytes);
    let page = store.runs(action, "B", 2).await.unwrap();
    assert_eq!(page.into_iter().map(|run| run.minion).collect::<Vec<_>>(), by_bytes[2..4]);
}

fn assert_newer(refused: &Error) {
    assert!(matches!(refused, Error::Newer { found: 4711, .. }), "{refused:?}");
    let text = refused.to_string();
    assert!(text.starts_with("the database has schema 4711, this program knows up to "), "{text}");
}

fn path(database: &Database) -> &Path {
    let Location::Sqlite(path) = &database.location else { panic!("a SQLite database has a file") };
    path
}

/// Compares with `schema.txt`; `UPDATE=1` rewrites it.
fn check_summary(summary: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, summary).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(summary, written, "after a change that is meant, UPDATE=1 writes {} anew", file.display());
}

/// A table as both databases can be asked for it.
#[derive(Default)]
struct Table {
    columns: Vec<String>,
    key: String,
    indexes: BTreeMap<String, String>,
}

fn summary(tables: &BTreeMap<String, Table>) -> String {
    let mut text = String::new();
    for (name, table) in tables {
        text += &format!("{name}\n");
        for column in &table.columns {
            text += &format!("    {column}\n");
        }
        text += &format!("    primary key ({})\n", table.key);
        for (index, what) in &table.indexes {
            text += &format!("    index {index} {what}\n");
        }
    }
    text
}

fn sqlite_summary(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    let texts = |sql: &str, name: &str| {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([name], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
        rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let mut tables = BTreeMap::new();
    for (name, _) in texts("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE ?1", "sqlite_%")
    {
        // A primary key is never null, whatever SQLite says of an INTEGER PRIMARY KEY.
        let columns = "SELECT name, CASE type WHEN 'INTEGER' THEN 'integer' WHEN 'TEXT' THEN 'text' WHEN 'BLOB' THEN 'bytes' \
                       ELSE type END || CASE WHEN \"notnull\" OR pk > 0 THEN ' not null' ELSE '' END \
                       FROM pragma_table_info(?1) ORDER BY cid";
        let key = "SELECT name, name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk";
        let mut table = Table::default();
        table.columns.extend(texts(columns, &name).into_iter().map(|(column, kind)| format!("{column} {kind}")));
        table.key = texts(key, &name).into_iter().map(|(column, _)| column).collect::<Vec<_>>().join(", ");
        let indexes = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL";
        for (index, sql) in texts(indexes, &name) {
            let (_, what) = sql.split_once(&format!(" ON {name} ")).unwrap();
            table.indexes.insert(index, what.replace(" WHERE ", " where "));
        }
        tables.insert(name, table);
    }
    summary(&tables)
}

async fn postgres_summary(client: &tokio_postgres::Client) -> String {
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    let columns = "SELECT table_name::text, column_name::text, \
                   CASE data_type WHEN 'bigint' THEN 'integer' WHEN 'bytea' THEN 'bytes' ELSE data_type END || \
                   CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END \
                   FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position";
    for row in client.query(columns, &[]).await.unwrap() {
        let (table, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        tables.entry(table).or_default().columns.push(format!("{column} {kind}"));
    }
    let indexes = "SELECT t.relname::text, i.relname::text, x.indisprimary, pg_get_expr(x.indpred, x.indrelid), \
                   (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = i.oid) \
                   FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid \
                   WHERE t.relnamespace = 'public'::regnamespace";
    for row in client.query(indexes, &[]).await.unwrap() {
        let (table, index, columns): (String, String, String) = (row.get(0), row.get(1), row.get(4));
        let table = tables.entry(table).or_default();
        if row.get(2) {
            table.key = columns;
            continue;
        }
        // PostgreSQL says more than was written: brackets around every part, and the type of every text.
        let condition = row.get::<_, Option<String>>(3).map(|text| text.replace(['(', ')'], "").replace("::text", ""));
        let condition = condition.map(|text| format!(" where {text}")).unwrap_or_default();
        table.indexes.insert(index, format!("({columns}){condition}"));
    }
    summary(&tables)
}
