//! How the databases carry out what lists are made of: by index, however much there is.
//!
//! A page that reads a whole table is quick on a developer's machine and takes the server down in its third year. So every
//! statement of a list is explained here on a database of some size, and none may read all of a table that grows.

use crate::{Location, Options, Store, audit, events, grains, jobs, mine, returns, runs};
use saltern_testkit::scratch::Scratch;

/// What grows with time or with the number of minions.
const LARGE: [&str; 6] = ["jobs", "runs", "returns", "events", "audit", "grains"];

/// What SQLite may read from end to end: what the recursion over open actions has found, and an index that holds nothing
/// but what is wanted.
const SMALL: [&str; 2] = ["SCAN o", "SCAN j USING INDEX jobs_unpublished"];

/// Every statement that a list is read with, by name.
const LISTS: [(&str, &str); 10] = [
    ("jobs", jobs::PAGE),
    ("open jobs", jobs::OPEN_PAGE),
    ("unpublished jobs", jobs::UNPUBLISHED),
    ("runs", runs::OF_ACTION),
    ("returns", returns::OF_JOB),
    ("events", events::AFTER),
    ("events of a job", events::OF_JOB_AFTER),
    ("audit", audit::BEFORE),
    ("grains", grains::AFTER),
    ("mine", mine::OF_FUN),
];

/// 20,000 jobs of two runs each, of which the newest ten are open and the newest five unpublished; as many returns, and
/// twice as many events.
const FIXTURE: [&str; 7] = [
    "INSERT INTO jobs SELECT CAST(20260000000000000000 + n AS TEXT), n, n, CASE WHEN n > 19995 THEN NULL ELSE n END, \
     'test.ping', '[]', '*', 'glob', 'root', 'a', '', CAST('load' AS BLOB), 0 FROM numbers",
    "INSERT INTO runs SELECT n, m, CASE WHEN n > 19990 THEN 'sent' ELSE 'completed' END, NULL, NULL, 1, \
     CAST(20260000000000000000 + n AS TEXT), n, n, NULL, CASE WHEN n > 19990 THEN NULL ELSE n END, 0 \
     FROM numbers CROSS JOIN (SELECT 'a' AS m UNION ALL SELECT 'b') AS two",
    "INSERT INTO returns SELECT CAST(20260000000000000000 + n AS TEXT), 'a', n, 'test.ping', 0, 1, 1, CAST('r' AS BLOB) \
     FROM numbers",
    "INSERT INTO events SELECT 2 * n + k, n, 'tag', 'a', CAST(20260000000000000000 + n AS TEXT), k - 1, CAST('e' AS BLOB) \
     FROM numbers CROSS JOIN (SELECT 0 AS k UNION ALL SELECT 1) AS two",
    "INSERT INTO audit SELECT n, n, 'root', 'socket', 'job.create', 'a', '{}' FROM numbers",
    "INSERT INTO grains SELECT 'm' || n, n, 1, CAST('g' AS BLOB) FROM numbers",
    "INSERT INTO mine SELECT 'm' || (n / 10), 'fun' || (n % 10), n, 1, CAST('v' AS BLOB) FROM numbers",
];

#[tokio::test]
async fn sqlite_reads_no_large_table_from_end_to_end() {
    let folder = Scratch::new("plans");
    let path = folder.path().join("saltern.db");
    Store::open(&Location::Sqlite(path.clone()), &Options::default()).await.unwrap().close().await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    // One transaction, and no statistics: our server never gathers any.
    connection.execute_batch("BEGIN").unwrap();
    for statement in FIXTURE {
        let numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)";
        let (insert, select) = statement.split_once(" SELECT ").unwrap();
        let sum = select.replace("20260000000000000000 + n AS TEXT", "'20260000' || printf('%012d', n) AS TEXT");
        connection.execute_batch(&format!("{insert} {numbers} SELECT {sum}")).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();

    for (name, sql) in LISTS {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan: Vec<String> = statement.raw_query().mapped(|row| row.get(3)).map(Result::unwrap).collect();
        let scans = plan.iter().filter(|step| step.starts_with("SCAN ") && !SMALL.contains(&step.as_str()));
        assert_eq!(scans.count(), 0, "{name}: {plan:#?}");
        let sorts = plan.iter().filter(|step| step.contains("USE TEMP B-TREE")).count();
        assert_eq!(sorts, usize::from(name == "open jobs"), "{name}: {plan:#?}");
    }
}

#[tokio::test]
async fn postgres_reads_no_large_table_from_end_to_end() {
    let Some(url) = saltern_testkit::postgres::fresh_database() else { return };
    Store::open(&Location::parse(&url).unwrap(), &Options::default()).await.unwrap().close().await;
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for statement in FIXTURE {
        let numbers = statement.replace("numbers", "(SELECT generate_series(1, 20000)::bigint AS n) AS numbers");
        client.batch_execute(&numbers.replace("AS BLOB", "AS BYTEA")).await.unwrap();
    }
    client.batch_execute("ANALYZE").await.unwrap();

    for (name, sql) in LISTS {
        // The plan for whatever parameters, and the one for those of a first page.
        for mode in ["force_generic_plan", "force_custom_plan"] {
            let plan = postgres_plan(&client, sql, mode).await;
            if name.starts_with("events") {
                let by_whole_key = "Index Cond: ((jid = e.jid) AND (minion = e.minion))";
                assert!(plan.contains(by_whole_key), "{name}, {mode}:\n{plan}");
            }
            for table in LARGE {
                assert!(!plan.contains(&format!("Seq Scan on {table}")), "{name}, {mode}:\n{plan}");
            }
        }
    }
}

async fn postgres_plan(client: &tokio_postgres::Client, sql: &str, mode: &str) -> String {
    let prepared = client.prepare(&sql.replace('?', "$")).await.unwrap();
    let values = prepared.params().iter().map(|kind| match kind.name() {
        "int8" => "100",
        _ => "'20260000000000019000'",
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let kinds = prepared.params().iter().map(tokio_postgres::types::Type::name).collect::<Vec<_>>().join(", ");
    let prepare = format!("SET plan_cache_mode = {mode}; PREPARE explained ({kinds}) AS {}", sql.replace('?', "$"));
    client.batch_execute(&prepare).await.unwrap();
    let rows = client.query(&format!("EXPLAIN EXECUTE explained ({values})"), &[]).await.unwrap();
    client.batch_execute("DEALLOCATE explained").await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}
