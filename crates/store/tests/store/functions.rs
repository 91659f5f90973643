//! What minions say about their functions: kept for each kind, searched by words.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, at};
use saltern_store::{FunctionDoc, Store};

on_both_databases! {
    what_a_kind_of_minion_says_is_replaced_as_a_whole,
    each_function_is_listed_once,
    functions_come_by_name_in_pages,
    functions_are_found_by_all_words_of_a_search,
    what_is_special_in_a_pattern_is_searched_as_it_is,
    letters_are_found_whether_small_or_capital,
    an_endless_word_finds_nothing,
}

async fn what_a_kind_of_minion_says_is_replaced_as_a_whole(database: Database) {
    let store = database.open().await;
    let (old, new) = (doc("test.ping", "3006.9 Debian", "old"), doc("test.ping", "3008.3 Debian", "new"));
    put(&store, &[old.clone(), doc("test.gone", "3006.9 Debian", "x")]).await;
    put(&store, &[new.clone(), new.clone()]).await;
    assert_eq!(store.function("test.ping").await.unwrap(), [new.clone(), old.clone()]);
    let renewed = FunctionDoc { doc: "renewed".into(), argspec: "{}".into(), at: at(9), ..old };
    put(&store, std::slice::from_ref(&renewed)).await;
    assert_eq!(store.function("test.ping").await.unwrap(), [new, renewed]);
    assert_eq!(store.function("test.gone").await.unwrap(), []);
}

async fn each_function_is_listed_once(database: Database) {
    let store = database.open().await;
    put(&store, &[doc("test.ping", "3006.9 Debian", "old"), doc("a.b", "3006.9 Debian", "x")]).await;
    put(&store, &[doc("test.ping", "3008.3 Debian", "new")]).await;
    let all = store.functions("", "", ALL).await.unwrap();
    assert_eq!(all, [doc("a.b", "3006.9 Debian", "x"), doc("test.ping", "3008.3 Debian", "new")]);
}

async fn functions_come_by_name_in_pages(database: Database) {
    let store = database.open().await;
    put(&store, &["b.z", "a.y", "B.x", "a_b", "a.x"].map(|name| doc(name, "k", ""))).await;
    assert_eq!(found(&store, "", "", 2).await, ["B.x", "a.x"]);
    assert_eq!(found(&store, "", "a.x", 2).await, ["a.y", "a_b"]);
    assert_eq!(found(&store, "", "a_b", 2).await, ["b.z"]);
    assert_eq!(found(&store, "a", "a.x", 1).await, ["a.y"], "pages of what is found");
}

async fn functions_are_found_by_all_words_of_a_search(database: Database) {
    let store = database.open().await;
    put(
        &store,
        &[
            doc("pkg.install", "k", "Install the passed package(s)"),
            doc("pkg.remove", "k", "Remove packages and not fully purge config"),
            doc("user.add", "k", "Add a user to the minion"),
        ],
    )
    .await;
    assert_eq!(found(&store, "pkg", "", ALL).await, ["pkg.install", "pkg.remove"]);
    assert_eq!(found(&store, "  package   REMOVE ", "", ALL).await, ["pkg.remove"]);
    assert_eq!(found(&store, "package user", "", ALL).await, [""; 0]);
    assert_eq!(found(&store, "remove packages not fully nowhere", "", ALL).await, ["pkg.remove"], "four words count");
    assert_eq!(found(&store, "ser.a", "", ALL).await, ["user.add"], "parts of words do");
}

async fn what_is_special_in_a_pattern_is_searched_as_it_is(database: Database) {
    let store = database.open().await;
    let docs =
        [doc("a", "k", "100% sure!"), doc("b", "k", "100 sure"), doc("c", "k", "file_roots"), doc("d", "k", r"\")];
    put(&store, &docs).await;
    assert_eq!(found(&store, "100%", "", ALL).await, ["a"]);
    assert_eq!(found(&store, "sure!", "", ALL).await, ["a"]);
    assert_eq!(found(&store, "_", "", ALL).await, ["c"]);
    assert_eq!(found(&store, r"\", "", ALL).await, ["d"]);
}

async fn letters_are_found_whether_small_or_capital(database: Database) {
    let store = database.open().await;
    put(&store, &[doc("a", "k", "ÄHNLICH"), doc("b", "k", "Similar")]).await;
    assert_eq!(found(&store, "ähnLICH", "", ALL).await, ["a"]);
    assert_eq!(found(&store, "SIMILAR", "", ALL).await, ["b"]);
}

async fn an_endless_word_finds_nothing(database: Database) {
    let store = database.open().await;
    let endless = "a".repeat(100_000);
    put(&store, &[doc("a", "k", &endless)]).await;
    assert_eq!(found(&store, &endless, "", ALL).await, [""; 0]);
    assert_eq!(found(&store, &"a".repeat(200), "", ALL).await, ["a"]);
}

fn doc(name: &str, kind: &str, doc: &str) -> FunctionDoc {
    FunctionDoc { name: name.into(), kind: kind.into(), doc: doc.into(), argspec: r#"{"args":[]}"#.into(), at: at(1) }
}

/// All that the kind of the first of these says.
async fn put(store: &Store, docs: &[FunctionDoc]) {
    store.put_functions(docs[0].kind.clone(), docs.to_vec()).await.unwrap();
}

async fn found(store: &Store, search: &str, after: &str, limit: usize) -> Vec<String> {
    let functions = store.functions(search, after, limit).await.unwrap();
    functions.into_iter().map(|function| function.name).collect()
}
