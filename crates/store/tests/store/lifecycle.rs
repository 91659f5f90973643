//! Opening and closing: nothing is lost by either.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, all_audit, all_events, all_tags, at, audit, body, event, every_job, jid, minion, returned, work,
};
use saltern_store::{AckMethod, Counter, Error, GrainsRow, Key, KeySlot, Location, Minion, Options, Store};

on_both_databases! {
    a_reopened_store_has_everything,
    closing_commits_what_was_handed_over,
    writes_after_closing_fail_as_closed,
    a_sender_that_waits_for_room_is_told_that_the_store_closed,
    closing_twice_is_harmless,
    a_store_can_be_read_after_closing,
    a_store_that_is_only_dropped_commits_what_was_handed_over,
}

async fn a_reopened_store_has_everything(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    store.record_minions(vec![web1()]).await.unwrap();
    store.record_grains(GrainsRow { minion: minion("web1"), at: at(1), body: body("{}") }, vec![]).await.unwrap();
    store.put_mine(minion("web1"), at(1), vec![("ip".into(), body("1"))], false).await.unwrap();
    store.change_keys(vec![key()], vec![], vec![], vec![audit("key.accept")]).await.unwrap();
    let before = everything(&store).await;
    store.close().await;
    drop(store);

    let store = database.open().await;
    assert_eq!(everything(&store).await, before);
    assert_eq!(store.reserve(Counter::Event, 1).await.unwrap(), 3, "numbers go on where they were");
}

async fn closing_commits_what_was_handed_over(database: Database) {
    let store = database.open().await;
    let tags: Vec<String> = (0..500).map(|n| format!("{n:03}")).collect();
    let mut writes: Vec<_> = tags.iter().map(|tag| Box::pin(store.log_events(vec![event(tag)]))).collect();
    // One poll hands a write over, if the runtime does not cut it short; its answer is not waited for.
    for write in &mut writes {
        let _ = futures_util::poll!(tokio::task::unconstrained(write));
    }
    store.close().await;
    for write in writes {
        write.await.unwrap();
    }
    assert_eq!(all_tags(&database.open().await).await, tags);
}

async fn writes_after_closing_fail_as_closed(database: Database) {
    let store = database.open().await;
    let clone = store.clone();
    store.close().await;
    assert!(matches!(store.log_events(vec![event("late")]).await, Err(Error::Closed)));
    assert!(matches!(clone.create(work(1, &["web1"])).await, Err(Error::Closed)));
    assert_eq!(all_tags(&database.open().await).await, [""; 0]);
}

async fn a_sender_that_waits_for_room_is_told_that_the_store_closed(database: Database) {
    let store = database.open_with(&Options { write_queue: 1, group: 1, ..Options::default() }).await;
    let writes = (0..50).map(|n| store.log_events(vec![event(&n.to_string())]));
    let mut writes = Box::pin(futures_util::future::join_all(writes));
    assert!(futures_util::poll!(&mut writes).is_pending());
    assert!(store.backlog() <= 1, "the queue holds no more than it may");
    let (outcomes, ()) = tokio::join!(writes, store.close());
    let kept = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(()) | Err(Error::Closed))));
    assert!(kept < 50, "those that waited outside were turned away");
    assert_eq!(all_tags(&store).await.len(), kept, "and only the others are there");
}

async fn closing_twice_is_harmless(database: Database) {
    let store = database.open().await;
    tokio::join!(store.close(), store.close());
    store.close().await;
}

async fn a_store_can_be_read_after_closing(database: Database) {
    let store = database.open().await;
    store.log_events(vec![event("kept")]).await.unwrap();
    store.close().await;
    assert_eq!(all_tags(&store).await, ["kept"]);
}

async fn a_store_that_is_only_dropped_commits_what_was_handed_over(database: Database) {
    let store = database.open().await;
    let mut feed = store.feed();
    let mut write = Box::pin(store.log_events(vec![event("dropped")]));
    let _ = futures_util::poll!(&mut write);
    drop(write);
    drop(store);
    let committed = feed.recv().await.unwrap();
    assert_eq!(committed[0].event.tag, "dropped");
    assert!(feed.recv().await.is_err(), "the writer has ended");
    assert_eq!(all_tags(&database.open().await).await, ["dropped"]);
}

#[tokio::test]
async fn after_closing_the_sqlite_file_alone_is_the_whole_database() {
    let database = Database::sqlite();
    let Location::Sqlite(path) = &database.location else { panic!("a SQLite database has a file") };
    let store = database.open().await;
    store.create(work(1, &["web1"])).await.unwrap();
    assert_eq!(all_tags(&store).await.len(), 1, "a reader is open while the store closes");
    store.close().await;

    let copy = path.with_file_name("copy.db");
    std::fs::copy(path, &copy).unwrap();
    let copied = Store::open(&Location::Sqlite(copy), &Options::default()).await.unwrap();
    assert!(copied.job(jid(1)).await.unwrap().is_some());
}

/// All that can be read, as text.
async fn everything(store: &Store) -> String {
    let jobs = store.jobs(&every_job()).await.unwrap();
    let mut text = format!("{jobs:#?}");
    for job in jobs {
        text += &format!("{:#?}", store.runs(job.action, "", ALL).await.unwrap());
        text += &format!("{:#?}", store.returns(job.jid, "", ALL).await.unwrap());
    }
    text += &format!("{:#?}", all_events(store).await);
    text += &format!("{:#?}", store.minions().await.unwrap());
    text += &format!("{:#?}", store.grains_after("", ALL).await.unwrap());
    text += &format!("{:#?}", store.mine_of("ip").await.unwrap());
    text += &format!("{:#?}", store.keys().await.unwrap());
    text += &format!("{:#?}", all_audit(store).await);
    text
}

fn web1() -> Minion {
    Minion {
        id: minion("web1"),
        first_seen: at(1),
        last_seen: at(2),
        started: None,
        address: None,
        version: None,
        ack_method: AckMethod::Native,
        ack_setting: Some(false),
        boot_id: None,
        reboot_needed: None,
    }
}

fn key() -> Key {
    Key {
        minion: minion("web1"),
        slot: KeySlot::Current,
        state: "accepted".into(),
        pem: "pem".into(),
        fingerprint: "aa".into(),
        since: at(1),
    }
}
