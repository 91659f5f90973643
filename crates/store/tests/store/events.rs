//! The event log: numbered without gaps, complete, and the same as the feed.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, ack, all_events, all_tags, assert_numbered, at, body, event, jid, minion, returned, work};
use saltern_store::{Body, Event, EventFilter, GrainsRow, NewEvent, NewReturn, Options, Store};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

on_both_databases! {
    an_event_reads_back_as_it_was_logged,
    events_of_one_write_stay_together_in_order,
    events_come_in_pages_by_number,
    events_can_be_asked_for_by_job,
    a_returns_event_has_the_body_of_the_return,
    an_event_outlives_the_return_it_tells_of,
    a_write_without_events_takes_no_number,
    many_writers_leave_no_gap_in_the_numbers,
    the_feed_tells_in_order_and_once_what_the_log_has,
    a_listener_that_is_too_slow_is_told_so,
    writes_handed_over_in_order_are_logged_in_order,
    text_that_one_database_cannot_hold_is_kept_alike_by_both,
}

async fn an_event_reads_back_as_it_was_logged(database: Database) {
    let store = database.open().await;
    assert_eq!(store.last_event().await.unwrap(), 0);
    let bare = event("saltern/start");
    let full = NewEvent {
        at: at(77),
        tag: "salt/minion/web1/start’s".into(),
        minion: Some(minion("web1")),
        jid: Some(jid(5)),
        body: Arc::new(Body { encoding: 3, bytes: vec![0, 1, 255] }),
        is_return: false,
    };
    store.log_events(vec![bare.clone(), full.clone()]).await.unwrap();
    assert_eq!(all_events(&store).await, [Event { number: 1, event: bare }, Event { number: 2, event: full }]);
    assert_eq!(store.last_event().await.unwrap(), 2);
}

async fn events_of_one_write_stay_together_in_order(database: Database) {
    let store = database.open().await;
    let writes = (0..30).map(|w| {
        let three = (0..3).map(|e| event(&format!("{w}/{e}"))).collect();
        store.log_events(three)
    });
    futures_util::future::try_join_all(writes).await.unwrap();
    let tags = all_tags(&store).await;
    for three in tags.chunks(3) {
        let write = three[0].strip_suffix("/0").unwrap();
        assert_eq!(three, [format!("{write}/0"), format!("{write}/1"), format!("{write}/2")]);
    }
}

async fn events_come_in_pages_by_number(database: Database) {
    let store = database.open().await;
    store.log_events((1..=5).map(|n| event(&n.to_string())).collect()).await.unwrap();
    let page = async |after, limit| {
        let events = store.events_after(after, &EventFilter::default(), limit).await.unwrap();
        events.into_iter().map(|event| event.number).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 2).await, [1, 2]);
    assert_eq!(page(2, 2).await, [3, 4]);
    assert_eq!(page(4, 2).await, [5]);
    assert_eq!(page(5, 2).await, [0; 0]);
    assert_eq!(page(i64::MAX, 2).await, [0; 0]);
}

async fn events_can_be_asked_for_by_job(database: Database) {
    let store = database.open().await;
    let one = store.create(work(1, &["web1"])).await.unwrap();
    store.log_events(vec![event("in between")]).await.unwrap();
    store.create(work(2, &["web1"])).await.unwrap();
    store.record_ack(ack(1, one, "web1")).await.unwrap();
    store.record_return(returned(1, Some(one), "web1")).await.unwrap();
    let of_one = EventFilter { jid: Some(jid(1)) };
    let tags = async |after, limit| {
        let events = store.events_after(after, &of_one, limit).await.unwrap();
        events.into_iter().map(|event| event.event.tag).collect::<Vec<_>>()
    };
    assert_eq!(tags(0, ALL).await, ["job/1/new", "job/1/ack/web1", "job/1/ret/web1"]);
    assert_eq!(tags(0, 2).await, ["job/1/new", "job/1/ack/web1"]);
    assert_eq!(tags(1, ALL).await, ["job/1/ack/web1", "job/1/ret/web1"]);
    assert_eq!(store.events_after(0, &EventFilter { jid: Some(jid(3)) }, ALL).await.unwrap(), []);
}

async fn a_returns_event_has_the_body_of_the_return(database: Database) {
    let store = database.open().await;
    let mut feed = store.feed();
    let action = store.create(work(1, &["web1", "web2"])).await.unwrap();
    for id in ["web1", "web2"] {
        store.record_return(returned(1, Some(action), id)).await.unwrap();
    }
    let logged = all_events(&store).await;
    let returns = store.returns(jid(1), "", ALL).await.unwrap();
    for (event, stored) in logged[1..].iter().zip(&returns) {
        assert_eq!(*event.event.body, stored.body);
        assert_eq!((event.event.minion.as_ref(), event.event.jid), (Some(&stored.minion), Some(jid(1))));
        assert!(event.event.is_return);
    }
    assert_eq!(told(&mut feed), logged, "the feed has it too, without reading it back");
}

async fn an_event_outlives_the_return_it_tells_of(database: Database) {
    let store = database.open().await;
    let orphan = NewEvent { minion: Some(minion("web1")), jid: Some(jid(1)), is_return: true, ..event("gone") };
    store.log_events(vec![orphan, event("next")]).await.unwrap();
    let log = all_events(&store).await;
    assert_eq!(log.len(), 2);
    assert_eq!(log[0].event.body.bytes, [0; 0]);
}

async fn a_write_without_events_takes_no_number(database: Database) {
    let store = database.open().await;
    store.log_events(vec![]).await.unwrap();
    store.record_grains(GrainsRow { minion: minion("web1"), at: at(1), body: body("{}") }, vec![]).await.unwrap();
    store.log_events(vec![event("first")]).await.unwrap();
    assert_eq!(store.last_event().await.unwrap(), 1);
}

async fn many_writers_leave_no_gap_in_the_numbers(database: Database) {
    let store = database.open().await;
    let expected = write_a_lot(&store).await;
    let log = all_events(&store).await;
    assert_numbered(&log);
    let tags: BTreeSet<String> = log.iter().map(|event| event.event.tag.clone()).collect();
    assert_eq!(tags.len(), log.len(), "nothing was logged twice");
    assert_eq!(tags, expected);
}

async fn the_feed_tells_in_order_and_once_what_the_log_has(database: Database) {
    let store = database.open().await;
    let (mut early, mut second) = (store.feed(), store.feed());
    write_a_lot(&store).await;
    let log = all_events(&store).await;
    assert_eq!(told(&mut early), log);
    assert_eq!(told(&mut second), log, "every listener gets everything");

    let mut late = store.feed();
    store.log_events(vec![event("after")]).await.unwrap();
    assert_eq!(told(&mut late), all_events(&store).await[log.len()..], "and only from the moment it listens");
}

async fn a_listener_that_is_too_slow_is_told_so(database: Database) {
    let store = database.open_with(&Options { feed: 2, ..Options::default() }).await;
    let mut feed = store.feed();
    for n in 0..5 {
        store.log_events(vec![event(&n.to_string())]).await.unwrap();
    }
    assert!(matches!(feed.recv().await, Err(RecvError::Lagged(3))));
    let kept: Vec<i64> = told(&mut feed).iter().map(|event| event.number).collect();
    assert_eq!(kept, [4, 5], "the log has the rest");
}

async fn writes_handed_over_in_order_are_logged_in_order(database: Database) {
    let store = database.open().await;
    let tags: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
    let writes = tags.iter().map(|tag| store.log_events(vec![event(tag)]));
    // Unconstrained: the runtime would otherwise let some of them wait for their first turn, and others overtake.
    tokio::task::unconstrained(futures_util::future::try_join_all(writes)).await.unwrap();
    assert_eq!(all_tags(&store).await, tags);
}

/// PostgreSQL has no NUL in text, and a minion may send one.
async fn text_that_one_database_cannot_hold_is_kept_alike_by_both(database: Database) {
    let store = database.open().await;
    store.log_events(vec![event("a\0b")]).await.unwrap();
    let fun = NewReturn { fun: "cmd\0run".into(), ..returned(1, None, "web1") };
    assert!(store.record_return(fun).await.unwrap().news);
    assert_eq!(all_tags(&store).await[0], "a\u{fffd}b");
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap()[0].fun, "cmd\u{fffd}run");
}

/// What a feed has to tell right now.
fn told(feed: &mut tokio::sync::broadcast::Receiver<Arc<[Event]>>) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match feed.try_recv() {
            Ok(batch) => events.extend_from_slice(&batch),
            Err(TryRecvError::Empty) => return events,
            Err(trouble) => panic!("{trouble}"),
        }
    }
}

/// Every kind of write that logs something, from many tasks at once; the tags that must be in the log afterwards.
async fn write_a_lot(store: &Store) -> BTreeSet<String> {
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..60 {
        let store = store.clone();
        writers.spawn(async move {
            let action = store.create(work(n, &["web1", "web2"])).await.unwrap();
            let mut tags = vec![format!("job/{n}/new")];
            for id in ["web1", "web2"] {
                let (acked, done) = (ack(n, action, id), returned(n, Some(action), id));
                // Both at once: a minion that is quick sends its return before its acknowledgement is answered.
                let (acked, done) = tokio::join!(store.record_ack(acked), store.record_return(done));
                assert!(acked.unwrap() | done.unwrap().news);
                tags.extend([format!("job/{n}/ack/{id}"), format!("job/{n}/ret/{id}")]);
            }
            let free = [format!("free/{n}/a"), format!("free/{n}/b")];
            store.log_events(free.iter().map(|tag| event(tag)).collect()).await.unwrap();
            tags.extend(free);
            tags
        });
    }
    writers.join_all().await.into_iter().flatten().collect()
}
