//! No door leads around a window: whatever comes in, by whichever way, is refused, moved or held, and never sent.

use super::{TOMORROW, id, minions, patch, times};
use crate::chains::{call, chain, steps};
use crate::house::{House, caller};
use crate::ward::{Hands, LONG, minion, ping};
use saltern_core::action::Policy;
use saltern_core::value::{Map, Value};
use saltern_server::app::{
    CatchUp, Door, EntityKind, EntityRef, LaunchRequest, Overlap, RecurringDraft, RecurringVerb, RecurringWhat,
    RunRequest,
};
use saltern_testkit::fake_minion::FakeMinion;
use saltern_testkit::wait;
use std::time::Duration;

/// Asks for something that changes `a`, which is outside of its window, through a door.
async fn knock(house: &House, door: Door, peer: &FakeMinion) {
    let app = house.app();
    match door {
        Door::Run => {
            let request = RunRequest {
                target: saltern_core::target::Target::list(["a"]),
                funs: vec!["cmd.run".into()],
                args: vec!["true".into()],
                kwargs: Map::new(),
                policy: Policy::default(),
                due: None,
                deadline: None,
                metadata: None,
                ret: String::new(),
                in_window: false,
            };
            super::refused(app.run(&caller(), request).await);
        }
        Door::Action | Door::SaltApi => {
            super::refused(app.submit(&caller(), patch(&["a"], Policy::default()), door).await);
        }
        Door::Peer => {
            let mut fields = Map::new();
            fields.push("fun", "cmd.run");
            fields.push("arg", Value::list(["true"]));
            fields.push("tgt", "a");
            peer.request("minion_pub", fields).await;
        }
        Door::Chain => {
            let chain = chain(house, "patches", steps([call("cmd.run", &["a"])])).await;
            super::refused(app.launch(&caller(), chain.id, LaunchRequest::default()).await);
        }
        Door::Recurring => recur(house).await,
        // It changes nothing: what is asked for by the house itself is not for people to choose.
        Door::House => {}
    }
}

/// Something that recurs every second: its instants are skipped, and to do it at once is refused.
async fn recur(house: &House) {
    let params = Value::map([("fun", Value::from("cmd.run")), ("arg", Value::list(["true"]))]);
    let draft = RecurringDraft {
        name: "patch".into(),
        entity: EntityRef { kind: EntityKind::Minion, subject: "a".into() },
        what: RecurringWhat::Action { kind: "function".into(), params: params.as_map().cloned().unwrap() },
        cron: "* * * * * *".into(),
        zone: "UTC".into(),
        active: true,
        spread: Duration::ZERO,
        overlap: Overlap::Allow,
        catch_up: CatchUp::None,
        catch_up_limit: Duration::ZERO,
        in_window: false,
        deadline: None,
        policy: Policy::default(),
    };
    let app = house.app();
    let definition = app.create_recurring(&caller(), draft).await.unwrap().recurring.id;
    super::refused(app.act_on_recurring(&caller(), definition, RecurringVerb::RunNow).await);
    let fires = wait::until_ok("an instant to be accounted for", LONG, async || {
        let fires = app.fires(&caller(), definition, None, 10).await.unwrap();
        if fires.is_empty() { Err("none") } else { Ok(fires) }
    });
    for entry in fires.await {
        assert_eq!((entry.fire.outcome.as_str(), entry.fire.action), ("skipped", None), "{entry:?}");
    }
    app.act_on_recurring(&caller(), definition, RecurringVerb::Activate(false)).await.unwrap();
}

#[tokio::test]
async fn no_door_starts_a_restricted_action_outside_of_its_window() {
    let peer = Value::map([(".*", Value::list([".*"]))]);
    let house = House::with([("auto_accept", true.into()), ("job_ack", true.into()), ("peer", peer)]).await;
    let mut a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    for door in Door::ALL {
        let before = house.rows()["actions"];
        knock(&house, door, &a).await;
        assert_eq!(house.rows()["actions"], before, "{door:?}");
        // Messages arrive in order: whatever had been sent would be here before this.
        house.submit(ping(&["a"], Policy::default())).await;
        let job = a.job("test.ping").await;
        a.return_for(&job, true).await;
    }
    assert!(!house.is_open(id("a").as_str()).await);
}
