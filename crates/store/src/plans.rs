//! How the databases carry out what lists are made of: by index, however much there is.
//!
//! A page that reads a whole table is quick on a developer's machine and takes the server down in its third year. So every
//! statement of a list is explained here on a database of some size, and none may read all of a table that grows.

use crate::{
    Location, Options, Store, actions, audit, calls, chains, dead_letters, events, fires, functions, grains, jobs,
    launches, mine, queue, recurring, retention, returns, runs, tokens, webhooks, windows,
};
use saltern_testkit::scratch::Scratch;

/// What grows with time or with the number of minions.
const LARGE: [&str; 17] = [
    "actions",
    "attempts",
    "audit",
    "calls",
    "dead_letters",
    "events",
    "fires",
    "grains",
    "jobs",
    "launch_minions",
    "launches",
    "plans",
    "requests",
    "returns",
    "runs",
    "tokens",
    "webhook_dead",
];

/// What SQLite may read from end to end: indexes that hold nothing but what is open.
const SMALL: [&str; 4] = [
    "SCAN o USING INDEX actions_overdue",
    "SCAN o USING COVERING INDEX actions_open",
    "SCAN calls USING INDEX calls_open",
    "SCAN f USING INDEX fires_undigested",
];

/// Every statement that a list is read with, by name.
const LISTS: [(&str, &str); 72] = [
    ("actions", actions::PAGE_ALL),
    ("open actions, newest first", actions::PAGE_OPEN),
    ("failed actions", actions::PAGE_FAILED),
    ("completed actions", actions::PAGE_COMPLETED),
    ("archived actions", actions::ARCHIVE_ALL),
    ("archived open actions", actions::ARCHIVE_OPEN),
    ("archived failed actions", actions::ARCHIVE_FAILED),
    ("archived completed actions", actions::ARCHIVE_COMPLETED),
    ("open actions", actions::OPEN),
    ("overdue actions", actions::OVERDUE),
    ("finished actions", retention::FINISHED),
    ("finished housekeeping", queue::HOUSEKEEPING),
    ("jobs", jobs::PAGE),
    ("open jobs", jobs::OPEN_PAGE),
    ("jobs of an action", jobs::OF_ACTION),
    ("runs", runs::OF_ACTION),
    ("runs in a state", runs::IN_STATE),
    ("due runs", runs::DUE),
    ("next due", runs::NEXT_DUE),
    ("runs in progress", runs::IN_PROGRESS),
    ("open runs of a minion", runs::OPEN_OF_MINION),
    ("attempts", runs::ATTEMPTS),
    ("returns", returns::OF_JOB),
    ("events", events::AFTER),
    ("events of a job", events::OF_JOB_AFTER),
    ("dead letters", dead_letters::BEFORE),
    ("audit", audit::PAGE),
    ("audit of a user", audit::PAGE_BY_WHO),
    ("audit of a thing", audit::PAGE_BY_SUBJECT),
    ("audit from the beginning", audit::AFTER),
    ("calls", calls::PAGE),
    ("open calls", calls::OPEN),
    ("functions", functions::SEARCH),
    ("a token", tokens::BY_HASH),
    ("tokens", tokens::PAGE),
    ("tokens of a user", tokens::PAGE_OF_USER),
    ("dead deliveries", webhooks::DEAD),
    ("old tokens", retention::OLD_TOKENS),
    ("old requests", retention::OLD_REQUESTS),
    ("old calls", retention::OLD_CALLS),
    ("old dead deliveries", retention::OLD_DEAD_DELIVERIES),
    ("grains", grains::AFTER),
    ("mine", mine::OF_FUN),
    ("steps of a launch", actions::OF_LAUNCH),
    ("chains", chains::PAGE),
    ("chains of a name", chains::NAMED),
    ("chains of an owner", chains::KEPT),
    ("launches", launches::PAGE_ALL),
    ("open launches, newest first", launches::PAGE_OPEN),
    ("launches of a chain", launches::PAGE_OF_CHAIN),
    ("open launches of a chain", launches::PAGE_OPEN_OF_CHAIN),
    ("open launches", launches::OPEN),
    ("old launches", launches::purge::OLDEST),
    ("actions of an old launch", launches::purge::ACTIONS),
    ("minions of a launch", launches::minions::PAGE),
    ("minions of a launch in a state", launches::minions::IN_STATE),
    ("open launches of a minion", launches::minions::OPEN_OF_MINION),
    ("minions that are taken", launches::minions::HELD),
    ("stranded minions", launches::watch::STRANDED),
    ("runs begun before", launches::watch::BEGUN_BEFORE),
    ("what runs wait for", launches::watch::WAITING),
    ("recurring actions", recurring::PAGE),
    ("recurring actions on something", recurring::OF_ENTITY),
    ("recurring actions that are due", recurring::DUE),
    ("the next instant", recurring::NEXT),
    ("open runs of a recurring action", recurring::OPEN_RUNS),
    ("runs that another time waits for", recurring::EARLIER),
    ("open minions of a recurring action", recurring::OPEN_MINIONS),
    ("instants", fires::BEFORE),
    ("instants to be told of", fires::UNDIGESTED),
    ("old instants", retention::OLD_FIRES),
    ("runs that wait for windows", windows::queue::WAITING),
];

/// What must go by the index that holds nothing but what is wanted: these are asked for again and again by a server that is
/// at work, and what is open is little, however much there has been.
const BY_INDEX: [(&str, &str); 26] = [
    ("open actions", "actions_open"),
    ("overdue actions", "actions_overdue"),
    ("finished actions", "actions_finished"),
    ("failed actions", "actions_failed"),
    ("archived actions", "actions_archived"),
    ("due runs", "runs_queued"),
    ("runs in progress", "runs_open"),
    ("open runs of a minion", "runs_open"),
    ("audit of a user", "audit_by_who"),
    ("audit of a thing", "audit_by_subject"),
    ("open calls", "calls_open"),
    ("a token", "tokens_by_hash"),
    ("old tokens", "tokens_by_expiry"),
    ("old requests", "requests_by_age"),
    ("steps of a launch", "actions_by_launch"),
    ("open launches", "launches_open"),
    ("old launches", "launches_finished"),
    ("open launches of a minion", "launch_minions_open"),
    ("minions that are taken", "launch_minions_held"),
    ("recurring actions that are due", "recurring_next"),
    ("the next instant", "recurring_next"),
    ("open runs of a recurring action", "actions_recurring"),
    ("open minions of a recurring action", "launches_recurring"),
    ("instants to be told of", "fires_undigested"),
    ("old instants", "fires_by_age"),
    ("runs that wait for windows", "runs_open"),
];

/// 20,000 actions of two runs each with a job, a return and an event or two: the newest ten are open, one in a hundred has
/// failed, and one in twenty is archived.
const FIXTURE: [&str; 20] = [
    "INSERT INTO actions SELECT n, 'function', 'ping', '{}', 'test.ping', '[]', '*', 'glob', 'u' || (n % 7), 'cli', '', n, n, \
     n, '{}', '{}', NULL, '', CASE WHEN n % 3 = 0 THEN 1 ELSE 0 END, 0, 0, CAST(20260000000000000000 + n AS TEXT), NULL, NULL, \
     NULL, CASE WHEN n % 20 = 0 THEN n END, CASE WHEN n <= 19990 THEN n END, 0, 2, 0, CASE WHEN n > 19990 THEN 2 ELSE 0 END, \
     CASE WHEN n > 19990 THEN 0 ELSE 2 END, CASE WHEN n % 100 = 0 THEN 1 ELSE 0 END, 0, 0, \
     CASE WHEN n % 10 = 0 THEN n / 100 END, CASE WHEN n % 20 = 0 THEN n % 100 END, \
     CASE WHEN n % 4 = 1 THEN n % 500 END FROM numbers",
    "INSERT INTO jobs SELECT CAST(20260000000000000000 + n AS TEXT), n, n, 'test.ping', '[]', '*', 'glob', 'root', 'a', '', 0 \
     FROM numbers",
    "INSERT INTO runs SELECT n, m || (n % 100), CASE WHEN n > 19995 THEN 'queued' WHEN n > 19990 THEN 'sent' ELSE 'completed' \
     END, NULL, NULL, CASE WHEN n > 19995 THEN n END, 1, 1, CAST(20260000000000000000 + n AS TEXT), n, NULL, \
     CASE WHEN n > 19990 THEN NULL ELSE n END, 0, NULL, NULL, 0 \
     FROM numbers CROSS JOIN (SELECT 'a' AS m UNION ALL SELECT 'b') AS two",
    "INSERT INTO attempts SELECT n, 'a', 1, CAST(20260000000000000000 + n AS TEXT), n, n, n, 'lost', NULL, NULL FROM numbers",
    "INSERT INTO returns SELECT CAST(20260000000000000000 + n AS TEXT), 'a', n, 'test.ping', 0, 1, 1, CAST('r' AS BLOB) \
     FROM numbers",
    "INSERT INTO events SELECT 2 * n + k, n, 'tag', 'a', CAST(20260000000000000000 + n AS TEXT), k - 1, CAST('e' AS BLOB) \
     FROM numbers CROSS JOIN (SELECT 0 AS k UNION ALL SELECT 1) AS two",
    "INSERT INTO dead_letters SELECT n, n, 'a', 'return', 'no such job', 1, CAST('d' AS BLOB) FROM numbers",
    "INSERT INTO audit SELECT n, n, 'u' || (n % 500), 'socket', 'job.create', 'a' || (n % 500), '{}', CAST('h' AS BLOB) \
     FROM numbers",
    "INSERT INTO calls SELECT CAST(20260000000000000000 + n AS TEXT), 'runner.jobs.active', 'root', n, \
     CASE WHEN n <= 19990 THEN n END, 1, 1, CAST('c' AS BLOB) FROM numbers",
    "INSERT INTO functions SELECT 'f' || (n % 2000), 'k' || (n % 3), 'doc', '{}', n, 'doc' FROM numbers WHERE n < 2000",
    "INSERT INTO tokens SELECT 't' || n, CAST('h' || n AS BLOB), 'session', 'u' || (n % 500), 'local', '[]', '', 'all', n, n, \
     NULL, '' FROM numbers",
    "INSERT INTO requests SELECT 'u' || (n % 500), 'k' || n, CAST('f' AS BLOB), n, 200, '[]', 1, CAST('b' AS BLOB) \
     FROM numbers",
    "INSERT INTO webhook_dead SELECT n % 10, n, n, 3, 'refused' FROM numbers",
    "INSERT INTO grains SELECT 'm' || n, n, 1, CAST('g' AS BLOB) FROM numbers",
    "INSERT INTO launches SELECT n, CAST(20260000000000000000 + n AS TEXT), n % 50, 'l', 'u' || (n % 7), 'cli', '', n, n, n, \
     '[]', '[]', NULL, NULL, 0, CASE WHEN n <= 19990 THEN n END, 2, 0, 2, 0, 0, \
     CASE WHEN n % 4 = 1 THEN n % 500 END FROM numbers",
    "INSERT INTO plans SELECT 'p' || n, '{}' FROM numbers",
    "INSERT INTO launch_minions SELECT n, m || (n % 100), 'p' || n, 0, CASE WHEN n > 19990 THEN 'sent' ELSE 'ended' END, \
     CASE WHEN n > 19990 THEN 1 ELSE 0 END, 0, NULL, n, NULL, 0, NULL, NULL \
     FROM numbers CROSS JOIN (SELECT 'a' AS m UNION ALL SELECT 'b') AS two",
    "INSERT INTO mine SELECT 'm' || (n / 10), 'fun' || (n % 10), n, 1, CAST('v' AS BLOB) FROM numbers",
    "INSERT INTO recurring SELECT n, 'r' || n, 'main', 'minion', 'm' || (n % 100), 'u' || (n % 7), '{}', 'u', '{}', '@daily', \
     'UTC', '', CASE WHEN n % 3 = 0 THEN 0 ELSE 1 END, 0, 0, 'skip', 'none', 0, 0, NULL, '{}', n, n, 1, \
     CASE WHEN n % 3 = 0 THEN NULL ELSE n END FROM numbers WHERE n < 2000",
    "INSERT INTO fires SELECT n % 500, n, 'fired', '', n, n, NULL, 2, 0, '{}', 0, CASE WHEN n > 19990 THEN 0 ELSE 1 END \
     FROM numbers",
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
        if let Some((_, index)) = BY_INDEX.into_iter().find(|(list, _)| *list == name) {
            assert!(plan.iter().any(|step| step.contains(index)), "{name}: {plan:#?}");
        }
        if name == "open jobs" {
            assert!(SMALL.contains(&plan[0].as_str()), "from what is open to its jobs: {plan:#?}");
        }
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
        let bytes = numbers.replace("CAST('h' || n AS BLOB)", "convert_to('h' || n, 'UTF8')");
        client.batch_execute(&bytes.replace("AS BLOB", "AS BYTEA")).await.unwrap();
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
