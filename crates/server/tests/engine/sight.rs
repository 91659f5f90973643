//! Who sees what of an action.

use crate::ward::{house, minion, ping};
use saltern_core::access::{Grant, Rights, Role, Sight};
use saltern_core::action::Policy;
use saltern_core::ids::MinionId;
use saltern_server::app::{Caller, Door, Verb};
use std::sync::Arc;

/// Somebody who operates one minion and sees no other.
fn operator_of(minion: &str) -> Caller {
    let mut rights = Rights::nobody("ann");
    let minions = Sight::Some(Arc::new([MinionId::new(minion).unwrap()].into()));
    rights.take_grant(&Grant { role: Role::Operator, group: Some("g".into()) }, minions);
    Caller::with_rights("test", rights)
}

#[tokio::test]
async fn scenario_24_somebody_who_sees_one_minion_sees_the_action_with_that_one() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let action = house.submit(ping(&["a", "b"], Policy::default())).await.action;
    let b = MinionId::new("b").unwrap();
    let limited = operator_of("b");
    let app = house.app();
    assert_eq!(app.action(&limited, action).await.unwrap().counts.total, 1);
    let runs = app.runs(&limited, action, None, "", 10).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.minion.as_str()).collect::<Vec<_>>(), ["b"]);
    assert!(app.explain(&limited, action, &MinionId::new("a").unwrap()).await.is_err());
    // Verbs reach what he sees and nothing else.
    let done = app.act(&limited, &[action], None, &Verb::Fail { message: "mine".into() }).await.unwrap();
    assert_eq!(done[0].minions.keys().collect::<Vec<_>>(), [&b]);
    // Nor can he ask for anything on the others.
    let refused = app.submit(&limited, ping(&["a"], Policy::default()), Door::Action).await;
    assert!(refused.unwrap_err().to_string().contains("no accepted minion matches"));
}

#[tokio::test]
async fn scenario_24_another_organisation_has_no_such_action() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let stranger = operator_of("z");
    let refused = house.app().action(&stranger, action).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("there is no action {action}"));
}
