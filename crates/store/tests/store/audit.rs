//! The audit log: what is read back, in pages and by filter. Whether it is still what was written: `audit_chain`.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{all_audit, at, audit, audited, work};
use saltern_store::{AuditEntry, AuditFilter, NewWork, Store};

on_both_databases! {
    an_entry_reads_back_as_it_was_recorded,
    entries_come_newest_first_in_pages,
    entries_are_found_by_who_what_and_subject,
    a_noun_finds_whatever_was_done_to_such_things,
    what_is_looked_up_by_is_kept_short,
    entries_are_numbered_without_gaps_by_many_writers,
    a_write_that_is_refused_leaves_no_entry,
}

async fn an_entry_reads_back_as_it_was_recorded(database: Database) {
    let store = database.open().await;
    assert_eq!(all_audit(&store).await, []);
    let entry = AuditEntry {
        at: at(8),
        who: "alice".into(),
        origin: "192.0.2.7:5555".into(),
        what: "key.delete".into(),
        subject: "web1".into(),
        detail: r#"{"why":"it's gone"}"#.into(),
    };
    store.record_audit(entry.clone()).await.unwrap();
    assert_eq!(all_audit(&store).await, [(1, entry)]);
}

async fn entries_come_newest_first_in_pages(database: Database) {
    let store = database.open().await;
    for what in ["a", "b", "c"] {
        store.record_audit(audit(what)).await.unwrap();
    }
    let page = async |before| store.audit_page(before, 2, &AuditFilter::default()).await.unwrap();
    assert_eq!(page(i64::MAX).await, [(3, audit("c")), (2, audit("b"))]);
    assert_eq!(page(2).await, [(1, audit("a"))]);
    assert_eq!(page(1).await, []);
}

async fn entries_are_found_by_who_what_and_subject(database: Database) {
    let store = database.open().await;
    for (who, what, subject) in [
        ("alice", "key.accept", "web1"),
        ("alice", "key.accept", "web2"),
        ("bob", "key.accept", "web1"),
        ("bob", "key.delete", "web1"),
    ] {
        let entry = AuditEntry { who: who.into(), subject: subject.into(), ..audit(what) };
        store.record_audit(entry).await.unwrap();
    }
    assert_eq!(numbers(&store, [None, None, None]).await, [4, 3, 2, 1]);
    assert_eq!(numbers(&store, [Some("alice"), None, None]).await, [2, 1]);
    assert_eq!(numbers(&store, [None, Some("key.accept"), None]).await, [3, 2, 1]);
    assert_eq!(numbers(&store, [None, None, Some("web1")]).await, [4, 3, 1]);
    assert_eq!(numbers(&store, [Some("bob"), Some("key.accept"), Some("web1")]).await, [3]);
    assert_eq!(numbers(&store, [Some("nobody"), None, Some("web1")]).await, [0; 0]);
    let bob = AuditFilter { who: Some("bob".into()), ..AuditFilter::default() };
    let page = store.audit_page(4, 1, &bob).await.unwrap();
    assert_eq!(page.into_iter().map(|(number, _)| number).collect::<Vec<_>>(), [3], "pages of what is found");
}

async fn a_noun_finds_whatever_was_done_to_such_things(database: Database) {
    let store = database.open().await;
    for what in ["key.accept", "keyring.open", "key.delete", "key"] {
        store.record_audit(audit(what)).await.unwrap();
    }
    assert_eq!(numbers(&store, [None, Some("key"), None]).await, [4, 3, 1]);
    assert_eq!(numbers(&store, [None, Some("key.acc"), None]).await, [0; 0]);
}

async fn what_is_looked_up_by_is_kept_short(database: Database) {
    let store = database.open().await;
    let long = "ü".repeat(5000);
    let entry = AuditEntry { who: long.clone(), subject: long.clone(), detail: long.clone(), ..audit("job.create") };
    store.record_audit(entry).await.unwrap();
    let (_, kept) = all_audit(&store).await.remove(0);
    assert_eq!((kept.who.chars().count(), kept.subject.chars().count()), (250, 250));
    assert_eq!(kept.detail, long);
    assert_eq!(store.verify_audit().await.unwrap().broken, None, "what is hashed is what is kept");
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
    let numbers: Vec<i64> = all_audit(&store).await.into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, (1..=80).rev().collect::<Vec<_>>());
}

async fn a_write_that_is_refused_leaves_no_entry(database: Database) {
    let store = database.open().await;
    let job = |what| NewWork { audit: Some(audit(what)), ..work(1, &["web1"]) };
    store.create(job("first")).await.unwrap();
    store.create(job("second")).await.unwrap_err();
    store.record_audit(audit("third")).await.unwrap();
    assert_eq!(audited(&store).await, ["first", "third"]);
    assert_eq!(store.verify_audit().await.unwrap().entries, 2);
}

async fn numbers(store: &Store, [who, what, subject]: [Option<&str>; 3]) -> Vec<i64> {
    let text = |wanted: Option<&str>| wanted.map(str::to_owned);
    let filter = AuditFilter { who: text(who), what: text(what), subject: text(subject) };
    store.audit_page(i64::MAX, 9, &filter).await.unwrap().into_iter().map(|(number, _)| number).collect()
}
