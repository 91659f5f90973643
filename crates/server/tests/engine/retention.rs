//! What is old is forgotten, by action, and nothing that is open.

use crate::house::{House, caller};
use crate::ward::{Hands, minion, ping};
use saltern_core::action::Policy;
use saltern_core::run::RunState;

#[tokio::test]
async fn scenario_23_more_finished_actions_than_are_kept_are_removed_with_all_that_came_of_them() {
    let house =
        House::with([("auto_accept", true.into()), ("keep_actions", 1.into()), ("keep_events", 5.into())]).await;
    let mut a = minion(&house, "a").await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let action = house.submit(ping(&["a"], Policy::default())).await.action;
        let job = a.job("test.ping").await;
        a.return_for(&job, true).await;
        house.becomes(action, "a", RunState::Completed, None).await;
        jobs.push((action, job.jid));
    }
    let open = house.submit(ping(&["a"], Policy::default())).await.action;
    house.app().forget_old().await.unwrap();
    for (action, jid) in &jobs[..2] {
        assert!(house.app().action(&caller(), *action).await.is_err());
        assert!(house.app().job(&crate::house::caller(), *jid).await.is_err());
    }
    assert_eq!(house.app().job(&crate::house::caller(), jobs[2].1).await.unwrap().returns.len(), 1);
    assert_eq!(house.state(open, "a").await.state, RunState::Sent);
    assert!(house.rows()["events"] <= 5);
    // What is left is as good as before.
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    house.becomes(open, "a", RunState::Completed, None).await;
}
