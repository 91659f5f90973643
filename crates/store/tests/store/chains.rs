//! Chains: one name for each owner, and a version that every change is checked by.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, at, audit, audited};
use saltern_core::ids::ChainId;
use saltern_store::{ANY_VERSION, Chain, Written};

on_both_databases! {
    a_chain_reads_back_as_it_was_stored,
    an_owner_has_one_chain_of_a_name,
    chains_of_a_name_are_found_whoever_they_belong_to,
    chains_come_in_pages,
    a_change_needs_the_version_that_is_there,
    a_chain_cannot_take_the_name_of_another,
    a_removed_chain_is_gone_and_its_id_is_not_given_again,
    two_servers_cannot_give_two_chains_one_name,
}

fn chain(name: &str, owner: &str) -> Chain {
    Chain {
        id: ChainId(0),
        name: name.into(),
        owner: owner.into(),
        org: "main".into(),
        description: format!("what {name} is for"),
        shared: true,
        steps: r#"[{"type":"function"}]"#.into(),
        created: at(1),
        changed: at(2),
        changed_by: owner.into(),
        version: 0,
    }
}

async fn a_chain_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    let id = store.create_chain(chain("patch", "ann"), audit("chain.create")).await.unwrap().unwrap();
    let wanted = Chain { id, version: 1, ..chain("patch", "ann") };
    assert_eq!(store.chain(id).await.unwrap(), Some(wanted));
    assert_eq!(store.chain(ChainId(404)).await.unwrap(), None);
    assert_eq!(audited(&store).await, ["chain.create"]);
}

async fn an_owner_has_one_chain_of_a_name(database: Database) {
    let store = database.open().await;
    assert!(store.create_chain(chain("patch", "ann"), audit("1")).await.unwrap().is_some());
    assert_eq!(store.create_chain(chain("patch", "ann"), audit("2")).await.unwrap(), None);
    assert!(store.create_chain(chain("patch", "bob"), audit("3")).await.unwrap().is_some());
    assert_eq!(audited(&store).await, ["1", "3"]);
}

async fn chains_of_a_name_are_found_whoever_they_belong_to(database: Database) {
    let store = database.open().await;
    for (name, owner) in [("patch", "ann"), ("other", "ann"), ("patch", "bob")] {
        store.create_chain(chain(name, owner), audit("x")).await.unwrap();
    }
    let owners = store.chains_named("patch").await.unwrap().into_iter().map(|chain| chain.owner).collect::<Vec<_>>();
    assert_eq!(owners, ["ann", "bob"]);
}

async fn chains_come_in_pages(database: Database) {
    let store = database.open().await;
    for name in ["c", "a", "b"] {
        store.create_chain(chain(name, "ann"), audit("x")).await.unwrap();
    }
    let page = async |after, limit| {
        let chains = store.chains(after, limit).await.unwrap();
        chains.into_iter().map(|chain| chain.name).collect::<Vec<_>>()
    };
    assert_eq!(page(ChainId(0), 2).await, ["c", "a"]);
    let second = store.chains_named("a").await.unwrap()[0].id;
    assert_eq!(page(second, ALL).await, ["b"]);
}

async fn a_change_needs_the_version_that_is_there(database: Database) {
    let store = database.open().await;
    let id = store.create_chain(chain("patch", "ann"), audit("1")).await.unwrap().unwrap();
    let changed =
        Chain { id, steps: "[]".into(), shared: false, created: at(9), changed: at(9), ..chain("new", "ann") };
    assert_eq!(store.put_chain(changed.clone(), 1, audit("2")).await.unwrap(), Written::Done(2));
    assert_eq!(store.put_chain(changed.clone(), 1, audit("3")).await.unwrap(), Written::Stale(2));
    let missing = Chain { id: ChainId(404), ..changed.clone() };
    assert_eq!(store.put_chain(missing, ANY_VERSION, audit("4")).await.unwrap(), Written::Missing);
    let wanted = Chain { version: 2, created: at(1), ..changed };
    assert_eq!(store.chain(id).await.unwrap(), Some(wanted));
    assert_eq!(audited(&store).await, ["1", "2"]);
}

async fn a_chain_cannot_take_the_name_of_another(database: Database) {
    let store = database.open().await;
    store.create_chain(chain("patch", "ann"), audit("1")).await.unwrap();
    let id = store.create_chain(chain("other", "ann"), audit("2")).await.unwrap().unwrap();
    let renamed = Chain { id, ..chain("patch", "ann") };
    assert_eq!(store.put_chain(renamed, 1, audit("3")).await.unwrap(), Written::Exists);
    assert_eq!(store.chain(id).await.unwrap().unwrap().name, "other");
    assert_eq!(audited(&store).await, ["1", "2"]);
}

async fn a_removed_chain_is_gone_and_its_id_is_not_given_again(database: Database) {
    let store = database.open().await;
    let id = store.create_chain(chain("patch", "ann"), audit("1")).await.unwrap().unwrap();
    assert_eq!(store.delete_chain(id, 7, audit("2")).await.unwrap(), Written::Stale(1));
    assert_eq!(store.delete_chain(id, 1, audit("3")).await.unwrap(), Written::Done(1));
    assert_eq!(store.delete_chain(id, ANY_VERSION, audit("4")).await.unwrap(), Written::Missing);
    assert_eq!(store.chain(id).await.unwrap(), None);
    let again = store.create_chain(chain("patch", "ann"), audit("5")).await.unwrap().unwrap();
    assert_ne!(again, id);
    assert_eq!(audited(&store).await, ["1", "3", "5"]);
}

async fn two_servers_cannot_give_two_chains_one_name(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let wanted = format!("wanted{round}");
        let mut ids = Vec::new();
        for n in 0..2 {
            let made = stores[0].create_chain(chain(&format!("r{round}n{n}"), "ann"), audit("x")).await.unwrap();
            ids.push(made.unwrap());
        }
        let rename = |n: usize| stores[n].put_chain(Chain { id: ids[n], ..chain(&wanted, "ann") }, 1, audit("x"));
        let (one, other) = tokio::join!(rename(0), rename(1));
        let mut written = [one.unwrap(), other.unwrap()];
        written.sort_by_key(|written| *written == Written::Exists);
        assert_eq!(written, [Written::Done(2), Written::Exists]);
    }
}
