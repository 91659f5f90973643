//! The chain of the audit log: what is done to it behind the store's back is found, and nothing else is.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{all_audit, audit, event, work};
use saltern_store::{AuditBreak, AuditCheck, NewWork, Store, link};

on_both_databases! {
    an_empty_log_is_whole,
    every_entry_covers_the_one_before_it,
    the_head_is_the_last_entry,
    a_long_log_is_checked_page_by_page,
    a_changed_entry_is_found,
    a_changed_hash_is_found,
    a_removed_entry_is_found,
    two_entries_that_changed_places_are_found,
    a_removed_beginning_is_found,
    a_removed_end_is_found,
    an_end_that_was_removed_with_its_head_put_back_is_found,
    an_entry_that_was_slipped_in_at_the_end_is_found,
    a_removed_head_is_found_and_stays_visible,
    several_servers_add_to_one_chain,
    entries_of_several_servers_come_with_their_changes,
    a_group_that_is_repeated_leaves_no_gap,
    a_log_that_grows_meanwhile_is_whole,
}

async fn an_empty_log_is_whole(database: Database) {
    let store = database.open().await;
    assert_eq!(check(&store).await, AuditCheck { entries: 0, head: [0; 32], broken: None });
    assert_eq!(store.audit_head().await.unwrap(), Some((0, [0; 32])));
}

async fn every_entry_covers_the_one_before_it(database: Database) {
    let store = filled(&database, 3).await;
    let links = store.audit_links(0, 10).await.unwrap();
    let mut previous = [0; 32];
    for (number, found) in (1..).zip(&links) {
        assert_eq!((found.number, &found.entry), (number, &audit(&format!("entry {number}"))));
        previous = link(&previous, number, &found.entry);
        assert_eq!(found.hash, previous);
    }
    assert_eq!(store.audit_links(1, 1).await.unwrap(), links[1..2]);
}

async fn the_head_is_the_last_entry(database: Database) {
    let store = filled(&database, 3).await;
    let last = store.audit_links(2, 1).await.unwrap().remove(0);
    assert_eq!(store.audit_head().await.unwrap(), Some((3, last.hash)));
    assert_eq!(check(&store).await, AuditCheck { entries: 3, head: last.hash, broken: None });
}

async fn a_long_log_is_checked_page_by_page(database: Database) {
    let store = database.open().await;
    let entries = (0..2500).map(|n| store.record_audit(audit(&n.to_string())));
    futures_util::future::try_join_all(entries).await.unwrap();
    let found = check(&store).await;
    assert_eq!((found.entries, found.broken), (2500, None));
    database.tamper("UPDATE audit SET who = 'mallory' WHERE number = 2345").await;
    assert_eq!(broken(&store).await.number, 2345);
}

async fn a_changed_entry_is_found(database: Database) {
    for column in ["who", "origin", "what", "subject", "detail"] {
        let store = filled(&database, 5).await;
        let next = check(&store).await.entries - 2;
        database.tamper(&format!("UPDATE audit SET {column} = 'x' || {column} WHERE number = {next}")).await;
        assert_eq!(broken(&store).await.number, next, "{column}");
        database.tamper(&format!("UPDATE audit SET {column} = substr({column}, 2) WHERE number = {next}")).await;
        assert_eq!(check(&store).await.broken, None, "{column}, and put right");
    }
    let store = filled(&database, 1).await;
    database.tamper("UPDATE audit SET at = at + 1 WHERE number = 2").await;
    let found = check(&store).await;
    assert_eq!((found.entries, found.broken.unwrap().number), (1, 2), "what is before the break is whole");
}

async fn a_changed_hash_is_found(database: Database) {
    let store = filled(&database, 4).await;
    database.tamper("UPDATE audit SET hash = (SELECT hash FROM audit WHERE number = 1) WHERE number = 3").await;
    assert_eq!(broken(&store).await.number, 3);
}

async fn a_removed_entry_is_found(database: Database) {
    let store = filled(&database, 5).await;
    database.tamper("DELETE FROM audit WHERE number = 3").await;
    assert_eq!(broken(&store).await, AuditBreak { number: 3, what: "entry 3 is missing: the next one is 4".into() });
    // Closing the gap does not help.
    database.tamper("UPDATE audit SET number = 3 WHERE number = 4; UPDATE audit SET number = 4 WHERE number = 5").await;
    assert_eq!(broken(&store).await.number, 3);
}

async fn two_entries_that_changed_places_are_found(database: Database) {
    let store = filled(&database, 5).await;
    let swap = "UPDATE audit SET number = 99 WHERE number = 2; UPDATE audit SET number = 2 WHERE number = 4; \
                UPDATE audit SET number = 4 WHERE number = 99";
    database.tamper(swap).await;
    assert_eq!(broken(&store).await.number, 2);
}

async fn a_removed_beginning_is_found(database: Database) {
    let store = filled(&database, 5).await;
    database.tamper("DELETE FROM audit WHERE number < 3").await;
    assert_eq!(broken(&store).await.number, 1);
}

async fn a_removed_end_is_found(database: Database) {
    let store = filled(&database, 5).await;
    database.tamper("DELETE FROM audit WHERE number > 3").await;
    let found = AuditBreak { number: 4, what: "entries 4 to 5 are missing at the end".into() };
    assert_eq!(broken(&store).await, found);
    store.record_audit(audit("next")).await.unwrap();
    assert_eq!(broken(&store).await.number, 4, "and is not covered up by what comes after");
    database.tamper("DELETE FROM audit").await;
    assert_eq!(broken(&store).await.number, 1);
}

async fn an_end_that_was_removed_with_its_head_put_back_is_found(database: Database) {
    let store = filled(&database, 5).await;
    database.tamper("DELETE FROM audit WHERE number > 3; UPDATE audit_head SET number = 3").await;
    assert_eq!(broken(&store).await.number, 3);
}

async fn an_entry_that_was_slipped_in_at_the_end_is_found(database: Database) {
    let store = filled(&database, 2).await;
    let head = store.audit_head().await.unwrap().unwrap().1;
    let forged = audit("forged");
    let hash: String = link(&head, 3, &forged).iter().map(|byte| format!("{byte:02x}")).collect();
    let hash = match &database.location {
        saltern_store::Location::Sqlite(_) => format!("x'{hash}'"),
        saltern_store::Location::Postgres(_) => format!("decode('{hash}', 'hex')"),
    };
    let slip = format!(
        "INSERT INTO audit (number, at, who, origin, what, subject, detail, hash) \
         VALUES (3, {}, '{}', '{}', '{}', '{}', '{}', {hash})",
        forged.at.micros(),
        forged.who,
        forged.origin,
        forged.what,
        forged.subject,
        forged.detail
    );
    database.tamper(&slip).await;
    assert_eq!(broken(&store).await, AuditBreak { number: 3, what: "entry 3 is beyond the head of the log".into() });
}

async fn a_removed_head_is_found_and_stays_visible(database: Database) {
    let store = filled(&database, 3).await;
    database.tamper("DELETE FROM audit_head").await;
    assert_eq!(broken(&store).await.number, 3);
    store.record_audit(audit("work goes on")).await.unwrap();
    assert_eq!(all_audit(&store).await[0], (4, audit("work goes on")));
    assert_eq!(broken(&store).await.number, 4);
}

async fn several_servers_add_to_one_chain(database: Database) {
    let stores = [database.open().await, database.open().await, database.open().await];
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..12 {
        let store = stores[n % 3].clone();
        writers.spawn(async move {
            for n in 0..20 {
                store.record_audit(audit(&n.to_string())).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let found = check(&stores[0]).await;
    assert_eq!((found.entries, found.broken), (240, None));
}

async fn entries_of_several_servers_come_with_their_changes(database: Database) {
    let stores = [database.open().await, database.open().await, database.open().await];
    let mut writers = tokio::task::JoinSet::new();
    for (n, store) in (0..90).zip(stores.iter().cycle().cloned()) {
        writers.spawn(async move {
            let audited = NewWork { audit: Some(audit("job.create")), ..work(n, &["web1"]) };
            let alone = store.record_audit(audit("alone"));
            tokio::try_join!(alone, store.create(audited), store.log_events(vec![event("free")])).unwrap();
        });
    }
    writers.join_all().await;
    let found = check(&stores[0]).await;
    assert_eq!((found.entries, found.broken), (180, None));
}

async fn a_group_that_is_repeated_leaves_no_gap(database: Database) {
    let store = database.open().await;
    let job = |n| NewWork { audit: Some(audit("job.create")), ..work(n, &["web1"]) };
    // Every second job id is taken: those groups are rolled back and repeated one by one.
    let jobs = (0..60).map(|n| store.create(job(n / 2)));
    let outcomes = futures_util::future::join_all(jobs).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 30);
    let found = check(&store).await;
    assert_eq!((found.entries, found.broken), (30, None));
}

async fn a_log_that_grows_meanwhile_is_whole(database: Database) {
    let store = filled(&database, 10).await;
    let writing = async {
        for n in 0..200 {
            store.record_audit(audit(&n.to_string())).await.unwrap();
        }
    };
    let checking = async {
        for _ in 0..20 {
            assert_eq!(check(&store).await.broken, None);
        }
    };
    tokio::join!(writing, checking);
    assert_eq!(check(&store).await.entries, 210);
}

/// A store with so many more entries.
async fn filled(database: &Database, entries: i64) -> Store {
    let store = database.open().await;
    for n in 1..=entries {
        store.record_audit(audit(&format!("entry {n}"))).await.unwrap();
    }
    store
}

async fn check(store: &Store) -> AuditCheck {
    store.verify_audit().await.unwrap()
}

async fn broken(store: &Store) -> AuditBreak {
    check(store).await.broken.unwrap()
}
