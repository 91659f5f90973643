//! The audit log.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{at, audit, work};
use saltern_store::{AuditEntry, NewWork};

on_both_databases! {
    an_entry_reads_back_as_it_was_recorded,
    entries_come_newest_first_in_pages,
    entries_are_numbered_without_gaps_by_many_writers,
}

async fn an_entry_reads_back_as_it_was_recorded(database: Database) {
    let store = database.open().await;
    assert_eq!(store.audit_before(i64::MAX, 10).await.unwrap(), []);
    let entry = AuditEntry {
        at: at(8),
        who: "alice".into(),
        origin: "192.0.2.7:5555".into(),
        what: "key.delete".into(),
        subject: "web1".into(),
        detail: r#"{"why":"it's gone"}"#.into(),
    };
    store.record_audit(entry.clone()).await.unwrap();
    assert_eq!(store.audit_before(i64::MAX, 10).await.unwrap(), [(1, entry)]);
}

async fn entries_come_newest_first_in_pages(database: Database) {
    let store = database.open().await;
    for what in ["a", "b", "c"] {
        store.record_audit(audit(what)).await.unwrap();
    }
    assert_eq!(store.audit_before(i64::MAX, 2).await.unwrap(), [(3, audit("c")), (2, audit("b"))]);
    assert_eq!(store.audit_before(2, 2).await.unwrap(), [(1, audit("a"))]);
    assert_eq!(store.audit_before(1, 2).await.unwrap(), []);
}

async fn entries_are_numbered_without_gaps_by_many_writers(database: Database) {
    let store = database.open().await;
    let jobs = (0..40).map(|n| {
        let audited = NewWork { audit: Some(audit("job.create")), ..work(n, &["web1"]) };
        async { store.create(audited).await.map(drop) }
    });
    let alone = (0..40).map(|_| store.record_audit(audit("alone")));
    let (jobs, alone) = (futures_util::future::try_join_all(jobs), futures_util::future::try_join_all(alone));
    tokio::try_join!(jobs, alone).unwrap();
    let numbers: Vec<i64> = store.audit_before(i64::MAX, 100).await.unwrap().into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, (1..=80).rev().collect::<Vec<_>>());
}
