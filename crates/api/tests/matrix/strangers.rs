//! Who has not logged in: how much is read of what he sends, and what a page of another site gets out of him.

use crate::town::Town;
use saltern_testkit::http::Request;

#[tokio::test]
async fn nobody_reads_much_of_what_a_stranger_sends() {
    let town = Town::open().await;
    let padding = " ".repeat(300 << 10);
    for path in ["/login", "/token", "/run", "/keys", "/api/v1/sessions"] {
        let ask = |body: String| Request::new("POST", path).header("Content-Type", "application/json").body(body);
        let long = town.send(&ask(format!("{padding}{{}}"))).await;
        assert_eq!(long.status, 413, "{path}: {}", long.text());
        let short = town.send(&ask("{}".into())).await;
        assert!(matches!(short.status, 400 | 401), "{path}: {}", short.text());
    }
}

#[tokio::test]
async fn a_form_on_another_site_logs_no_browser_in() {
    let town = Town::open().await;
    let form = format!("username=reader&password={}&eauth=auto", crate::town::PASSWORD.replace(' ', "+"));
    let ask = || {
        let kind = "application/x-www-form-urlencoded";
        Request::new("POST", "/login").header("Content-Type", kind).body(form.clone())
    };
    let own = town.send(&ask()).await;
    assert!(own.status == 200 && own.header("set-cookie").is_some(), "{}", own.text());
    let foreign = town.send(&ask().header("Origin", "https://evil.example.org")).await;
    assert!(foreign.status == 200 && foreign.header("set-cookie").is_none(), "{}", foreign.text());
}
