//! Both databases give the same answers about users, groups, organisations and what is theirs, whatever is done to both.

use crate::database::Database;
use crate::fixtures::{
    ALL, all_audit, api_token, at, audit, group, hash, minion, organisation, session, user, webhook,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use saltern_store::{ANY_VERSION, Group, Organisation, Reply, Store, Token, TokenKind, User, Webhook};

/// Few names, so that the steps get in each other's way; in an order that a locale would not give them.
const NAMES: [&str; 4] = ["a", "B", "a-1", "ä"];
const GRANTS: [&str; 5] = ["reader", "server-admin", "operator:a", "group-admin:B", "operator:ä"];
const DEFAULT: &str = "default";

#[derive(Clone, Debug)]
enum Step {
    PutOrganisation(&'static str, String, Option<i64>),
    DeleteOrganisation(&'static str, Option<i64>),
    MoveMinion(&'static str, &'static str),
    ForgetMinion(&'static str),
    PutUser(&'static str, &'static str, Vec<&'static str>, Option<String>, bool, Option<i64>),
    DeleteUser(&'static str, Option<i64>),
    PutGroup(&'static str, &'static str, Vec<&'static str>, Option<String>, Option<i64>),
    DeleteGroup(&'static str, Option<i64>),
    PutToken(u8, &'static str, bool, i64),
    DeleteTokens(&'static str, Option<bool>),
    PurgeTokens(i64, usize),
    PutWebhook(i64, &'static str, Option<String>, Option<i64>),
    Begin(&'static str, &'static str, u8),
    End(&'static str, &'static str, String),
}

#[test]
fn both_databases_answer_alike_about_access() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = Config { cases: 16, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(step(), 1..60), |steps| {
        let Some(postgres) = Database::postgres() else { return Ok(()) };
        let sqlite = Database::sqlite();
        let (one, other) = runtime.block_on(async { tokio::join!(told(&sqlite, &steps), told(&postgres, &steps)) });
        prop_assert_eq!(one, other);
        Ok(())
    });
    if let Err(difference) = outcome {
        panic!("{difference}");
    }
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(&NAMES[..]);
    let org = || prop_oneof![3 => Just(DEFAULT), 1 => prop::sample::select(&NAMES[..])];
    let version = || prop_oneof![3 => Just(None), 2 => Just(Some(ANY_VERSION)), 1 => (1..4_i64).prop_map(Some)];
    let text = || any::<String>();
    let ids = || prop::collection::vec(prop::sample::select(&["m1", "M2", "m-1"][..]), 0..4);
    let grants = prop::collection::vec(prop::sample::select(&GRANTS[..]), 0..3);
    prop_oneof![
        (name(), text(), version()).prop_map(|(name, text, version)| Step::PutOrganisation(name, text, version)),
        (org(), version()).prop_map(|(name, version)| Step::DeleteOrganisation(name, version)),
        (prop::sample::select(&["m1", "M2"][..]), org()).prop_map(|(id, org)| Step::MoveMinion(id, org)),
        prop::sample::select(&["m1", "M2"][..]).prop_map(Step::ForgetMinion),
        (name(), org(), grants, prop::option::of(text()), any::<bool>(), version())
            .prop_map(|(name, org, grants, text, is, version)| Step::PutUser(name, org, grants, text, is, version)),
        (name(), version()).prop_map(|(name, version)| Step::DeleteUser(name, version)),
        (name(), org(), ids(), prop::option::of(text()), version())
            .prop_map(|(name, org, ids, text, version)| Step::PutGroup(name, org, ids, text, version)),
        (name(), version()).prop_map(|(name, version)| Step::DeleteGroup(name, version)),
        (0..6_u8, name(), any::<bool>(), 0..50_i64).prop_map(|(id, name, is, n)| Step::PutToken(id, name, is, n)),
        (name(), prop::option::of(any::<bool>())).prop_map(|(name, kind)| Step::DeleteTokens(name, kind)),
        (0..50_i64, 1..3_usize).prop_map(|(n, step)| Step::PurgeTokens(n, step)),
        (0..4_i64, name(), prop::option::of(text()), version())
            .prop_map(|(id, name, text, version)| Step::PutWebhook(id, name, text, version)),
        (name(), name(), 0..2_u8).prop_map(|(name, key, print)| Step::Begin(name, key, print)),
        (name(), name(), text()).prop_map(|(name, key, text)| Step::End(name, key, text)),
    ]
}

async fn told(database: &Database, steps: &[Step]) -> Vec<String> {
    let store = database.open().await;
    let mut told = Vec::new();
    for step in steps {
        // What a database itself has to say is in its own words.
        let outcome = take(&store, step.clone()).await;
        told.push(outcome.unwrap_or_else(|error| match error {
            saltern_store::Error::Database(_) => "refused".into(),
            other => other.to_string(),
        }));
    }
    told.extend(found(&store).await);
    store.close().await;
    told
}

async fn take(store: &Store, step: Step) -> saltern_store::Result<String> {
    let entry = audit(&format!("{step:?}"));
    let told = match step {
        Step::PutOrganisation(name, description, expected) => {
            let put = Organisation { description, ..organisation(name) };
            format!("{:?}", store.put_organisation(put, expected, entry).await?)
        }
        Step::DeleteOrganisation(name, expected) => {
            format!("{:?}", store.delete_organisation(name.into(), expected, entry).await?)
        }
        Step::MoveMinion(id, org) => format!("{:?}", store.set_minion_org(minion(id), org.into(), entry).await?),
        Step::ForgetMinion(id) => format!("{:?}", store.forget_minion(minion(id)).await?),
        Step::PutUser(name, org, grants, password, disabled, expected) => {
            let put = User { org: org.into(), password, disabled, ..user(name, &grants) };
            format!("{:?}", store.put_user(put, expected, entry).await?)
        }
        Step::DeleteUser(name, expected) => {
            format!("{:?}", store.delete_user(name.into(), expected, None, entry).await?)
        }
        Step::PutGroup(name, org, ids, target, expected) => {
            let target = target.map(|target| ("glob".to_owned(), target));
            let put = Group { org: org.into(), target, ..group(name, &ids) };
            format!("{:?}", store.put_group(put, expected, entry).await?)
        }
        Step::DeleteGroup(name, expected) => format!("{:?}", store.delete_group(name.into(), expected, entry).await?),
        Step::PutToken(id, name, is_session, n) => {
            let id = format!("t{id}");
            let new = if is_session { session(&id, name) } else { api_token(&id, name) };
            format!("{:?}", store.put_token(Token { expires: at(n), ..new }, entry).await?)
        }
        Step::DeleteTokens(name, is_session) => {
            let kind = is_session.map(|is| if is { TokenKind::Session } else { TokenKind::Api });
            format!("{:?}", store.delete_tokens_of(name.into(), kind, entry).await?)
        }
        Step::PurgeTokens(n, step) => format!("{:?}", store.purge_tokens(at(n), step).await?),
        Step::PutWebhook(0, owner, minion, _) => {
            format!("{:?}", store.create_webhook(Webhook { minion, ..webhook("w", owner) }, entry).await?)
        }
        Step::PutWebhook(id, owner, minion, expected) => {
            let put = Webhook { id, minion, ..webhook("w", owner) };
            format!("{:?}", store.put_webhook(put, expected, entry).await?)
        }
        Step::Begin(name, key, print) => {
            format!("{:?}", store.begin_request(name.into(), key.into(), hash(&print.to_string()), at(1)).await?)
        }
        Step::End(name, key, text) => {
            let body = crate::fixtures::body(&text);
            let reply = Reply { status: 200, headers: vec![("x".into(), text)], body };
            format!("{:?}", store.end_request(name.into(), key.into(), reply).await?)
        }
    };
    Ok(told)
}

async fn found(store: &Store) -> Vec<String> {
    // When the default organisation was made is the databases' own affair.
    let mut organisations = store.organisations().await.unwrap();
    organisations.retain(|organisation| organisation.name != DEFAULT);
    let users = store.users().await.unwrap();
    let mut found = vec![
        format!("{organisations:#?}"),
        format!("{:#?}", store.minion_orgs().await.unwrap()),
        format!("{users:#?}"),
        format!("{:#?}", users.iter().map(|user| &user.password).collect::<Vec<_>>()),
        format!("{:#?}", store.groups().await.unwrap()),
        format!("{:#?}", store.tokens(None, "", ALL).await.unwrap()),
        format!("{:#?}", store.tokens(Some("B"), "t1", 2).await.unwrap()),
        format!("{:#?}", all_audit(store).await),
        format!("{:#?}", store.verify_audit().await.unwrap()),
    ];
    for webhook in store.webhooks().await.unwrap() {
        found.push(format!("{webhook:#?} {:?}", webhook.minion));
    }
    for name in NAMES {
        found.push(format!("{:#?} {:#?}", store.user(name).await.unwrap(), store.group(name).await.unwrap()));
    }
    found
}
