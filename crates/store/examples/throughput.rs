//! scratch
#![allow(clippy::unwrap_used)]
use saltern_core::ids::{Jid, MinionId};
use saltern_core::run::Verdict;
use saltern_core::time::Timestamp;
use saltern_store::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let location = Location::parse(&std::env::args().nth(1).unwrap()).unwrap();
    let store = Store::open(&location, &Options::default()).await.unwrap();
    let body = Arc::new(Body { encoding: 1, bytes: vec![b'x'; 300] });
    let base = 1_790_000_000_000_000i64;
    let mut start = 0i64;
    for writers in [1usize, 64, 512] {
        // one job per 1000 minions, prepared beforehand
        let total: i64 = if writers == 1 { 20_000 } else { 200_000 };
        let mut actions = Vec::new();
        for j in 0..total / 1000 {
            let minions = (0..1000).map(|m| MinionId::new(&format!("minion-{m:05}.example.org")).unwrap()).collect();
            let at = Timestamp(base + start + j);
            let action = NewAction {
                kind: "function".into(),
                fun: "test.ping".into(),
                arg: "[]".into(),
                target: "\"*\"".into(),
                target_type: "glob".into(),
                initiator: "root".into(),
                created: at,
                due: at,
                deadline: at,
                internal: false,
            };
            let job = NewJob {
                jid: Jid::at(at),
                action,
                minions,
                missing: vec![],
                load: vec![0; 200],
                events: vec![],
                audit: None,
            };
            actions.push((Jid::at(at), store.create_job(job).await.unwrap()));
        }
        start += total / 1000;
        let (actions, next) = (Arc::new(actions), Arc::new(AtomicI64::new(0)));
        let before = store.commits();
        let began = Instant::now();
        let deadline = began + Duration::from_secs(10);
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..writers {
            let (store, actions, next, body) = (store.clone(), actions.clone(), next.clone(), body.clone());
            set.spawn(async move {
                let mut done = 0u64;
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= total || Instant::now() > deadline {
                        return done;
                    }
                    let (jid, action) = actions[usize::try_from(n / 1000).unwrap()];
                    let minion = MinionId::new(&format!("minion-{:05}.example.org", n % 1000)).unwrap();
                    let tag = format!("salt/job/{jid}/ret/{minion}");
                    let new = NewReturn {
                        jid,
                        action: Some(action),
                        standalone: None,
                        minion,
                        at: Timestamp(base),
                        fun: "test.ping".into(),
                        verdict: Verdict { success: true, retcode: 0 },
                        body: body.clone(),
                        tag,
                        events: vec![],
                    };
                    assert!(store.record_return(new).await.unwrap());
                    done += 1;
                }
            });
        }
        let done: u64 = set.join_all().await.into_iter().sum();
        let secs = began.elapsed().as_secs_f64();
        println!(
            "{writers} writers: {:.0} returns/s ({done} in {secs:.1} s, {:.0} per commit)",
            done as f64 / secs,
            done as f64 / (store.commits() - before) as f64
        );
    }
    store.close().await;
}
