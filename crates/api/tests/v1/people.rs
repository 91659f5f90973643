//! Users, groups, organisations, tokens: made, looked at, changed, removed.

use super::House;
use serde_json::json;

#[tokio::test]
async fn a_user_is_made_and_never_shows_the_password() {
    let house = House::open().await;
    let body = json!({ "name": "ann", "password": "correct horse battery", "roles": ["reader"] });
    let made = house.ask("POST /api/v1/users").json(&body).answer().await;
    assert_eq!(made.status, 201, "{made:?}");
    assert!(!made.text.contains("horse") && !made.text.contains("password"), "{made:?}");
    let shown = house.ask("GET /api/v1/users/ann").answer().await.ok();
    assert_eq!(
        (&shown["roles"], &shown["org"], &shown["auth"]),
        (&json!(["reader"]), &json!("default"), &json!("local"))
    );
    let again = house.ask("POST /api/v1/users").json(&body).answer().await;
    assert_eq!(again.problem(), (409, "conflict".into()));
    house.close().await;
}

#[tokio::test]
async fn a_token_is_told_once() {
    let house = House::open().await;
    let user = json!({ "name": "ann", "password": "correct horse battery", "roles": ["server-admin"] });
    house.ask("POST /api/v1/users").json(&user).answer().await.ok();
    let wanted = json!({ "user": "ann", "name": "ci", "scope": "read", "lifetime": 3600 });
    let made = house.ask("POST /api/v1/tokens").json(&wanted).answer().await;
    assert_eq!((made.status, made.header("cache-control")), (201, Some("no-store")), "{made:?}");
    let made = made.json();
    let secret = made["token"].as_str().unwrap();
    assert_eq!(secret.len(), 64);
    let listed = house.ask("GET /api/v1/tokens?user=ann").answer().await;
    assert!(!listed.text.contains(secret), "{listed:?}");
    assert_eq!(listed.ok()["tokens"][0]["id"], made["id"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!(house.ask(&format!("DELETE /api/v1/tokens/{id}")).answer().await.status, 204);
    assert_eq!(house.ask(&format!("DELETE /api/v1/tokens/{id}")).answer().await.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn scopes_and_lifetimes_are_what_they_can_be() {
    let house = House::open().await;
    for bad in [json!({ "scope": "most" }), json!({ "lifetime": -1 }), json!({ "lifetime": 1e300 }), json!({ "x": 1 })]
    {
        let answer = house.ask("POST /api/v1/tokens").json(&bad).answer().await;
        assert_eq!(answer.problem().0, 400, "{bad}");
    }
    house.close().await;
}

#[tokio::test]
async fn a_group_has_a_target_or_members() {
    let house = House::open().await;
    let body = json!({ "name": "web", "target": "G@role:web", "description": "Web servers" });
    let made = house.ask("POST /api/v1/groups").json(&body).answer().await.ok();
    assert_eq!((&made["tgt_type"], &made["minions"]), (&json!("compound"), &json!([])));
    let wrong = json!({ "name": "bad", "target": "web and and", "tgt_type": "compound" });
    assert_eq!(house.ask("POST /api/v1/groups").json(&wrong).answer().await.problem().0, 400);
    let wrong = json!({ "name": "bad", "tgt_type": "glob" });
    assert_eq!(house.ask("POST /api/v1/groups").json(&wrong).answer().await.problem().0, 400);
    house.close().await;
}

#[tokio::test]
async fn everybody_can_ask_who_he_is() {
    let house = House::open().await;
    let me = house.ask("GET /api/v1/users/me").answer().await.ok();
    assert_eq!((&me["name"], &me["server_admin"], &me["user"]), (&json!("root"), &json!(true), &json!(null)));
    house.close().await;
}

#[tokio::test]
async fn on_the_control_socket_there_is_no_log_in() {
    let house = House::open().await;
    let body = json!({ "user": "ann", "password": "x" });
    assert_eq!(house.ask("POST /api/v1/sessions").json(&body).answer().await.problem().0, 404);
    assert_eq!(house.ask("DELETE /api/v1/sessions/current").answer().await.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn what_is_done_is_in_the_audit_log() {
    let house = House::open().await;
    house.ask("POST /api/v1/organisations").json(&json!({ "name": "acme" })).answer().await.ok();
    let listed = house.ask("GET /api/v1/audit?what=organisation&subject=acme").answer().await.ok();
    assert_eq!(listed["entries"][0]["what"], "organisation.create");
    let check = house.ask("GET /api/v1/audit/verify").answer().await.ok();
    assert_eq!(check["intact"], true);
    let (number, head) = (&check["entries"], check["head"].as_str().unwrap());
    let noted = house.ask(&format!("GET /api/v1/audit/verify?expect={number}:{head}")).answer().await.ok();
    assert_eq!(noted["intact"], true);
    let forged = house.ask(&format!("GET /api/v1/audit/verify?expect={number}:{}", "0".repeat(64))).answer().await.ok();
    assert_eq!(forged["intact"], false);
    house.close().await;
}
