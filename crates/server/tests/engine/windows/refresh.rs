//! Calendars from elsewhere: what was known holds until something better has come.

use super::{NOW, TOMORROW, assign, minions, put_schedule, refused, times};
use crate::house::{House, caller};
use crate::ward::minion;
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use saltern_server::Error;
use saltern_server::app::{CalendarDraft, Strategy, WindowEdit};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

type Page = Arc<Mutex<(u16, String)>>;

/// A server of one page.
async fn page(status: u16, text: String) -> (SocketAddr, Page) {
    let page: Page = Arc::new(Mutex::new((status, text)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shown = page.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let shown = shown.clone();
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let (status, text) = shown.lock().unwrap().clone();
                let mut answer = Response::new(Full::new(Bytes::from(text)));
                *answer.status_mut() = StatusCode::from_u16(status).unwrap();
                if request.uri().path() == "/moved.ics" {
                    *answer.status_mut() = StatusCode::FOUND;
                    answer.headers_mut().insert("location", "/cal.ics".parse().unwrap());
                } else if request.uri().path() == "/loop.ics" {
                    *answer.status_mut() = StatusCode::FOUND;
                    answer.headers_mut().insert("location", "/loop.ics".parse().unwrap());
                }
                async { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, page)
}

/// A server that reads calendars from its own machine, where the pages of these tests are.
async fn house() -> House {
    House::with([("auto_accept", true.into()), ("job_ack", true.into()), ("calendar_near_urls", true.into())]).await
}

fn from(address: SocketAddr, path: &str) -> CalendarDraft {
    CalendarDraft { name: "w".into(), url: Some(format!("http://{address}/{path}")), ..CalendarDraft::default() }
}

async fn put(house: &House, draft: CalendarDraft) -> Result<(), Error> {
    house.edit(WindowEdit::PutCalendar(draft), None, Strategy::Refuse).await.map(drop)
}

#[tokio::test]
async fn a_url_that_fails_leaves_what_was_known_and_tells() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    let (address, shown) = page(200, times(&[NOW])).await;
    put(&house, from(address, "moved.ics")).await.unwrap();
    house.edit(put_schedule("w", "single", Some("w")), None, Strategy::Refuse).await.unwrap();
    house.edit(assign("w", minions(&["a"])), None, Strategy::Refuse).await.unwrap();
    assert!(house.is_open("a").await);
    let before = house.last_event().await;
    for (status, text, why) in [(503, String::new(), "answered 503"), (200, "nonsense".into(), "line 1")] {
        *shown.lock().unwrap() = (status, text);
        let told = refused(house.app().refresh_calendar(&caller(), None, "w", Strategy::Refuse).await);
        assert!(told.contains(why), "{told}");
        assert!(house.is_open("a").await, "what was known holds");
        let calendar = house.app().calendar(&caller(), None, "w").unwrap();
        assert!(calendar.error.is_some_and(|error| error.contains(why)));
    }
    let tags = house.tags_after(before).await;
    assert_eq!(tags.iter().filter(|tag| *tag == "saltern/notification/calendar").count(), 2, "{tags:?}");
    *shown.lock().unwrap() = (200, times(&[TOMORROW]));
    house.app().refresh_calendar(&caller(), None, "w", Strategy::Refuse).await.unwrap();
    assert!(!house.is_open("a").await);
    assert_eq!(house.app().calendar(&caller(), None, "w").unwrap().error, None);
}

#[tokio::test]
async fn what_cannot_be_read_at_first_is_refused() {
    let house = house().await;
    let (address, _shown) = page(200, times(&[NOW])).await;
    for (draft, why) in [
        (from(address, "loop.ics"), "redirects"),
        (CalendarDraft { url: Some("file:///etc/passwd".into()), ..from(address, "") }, "URL of a calendar"),
        (
            CalendarDraft { url: Some("ftp://example.org/x".into()), ..from(address, "") },
            "begins with https:// or http://",
        ),
        (CalendarDraft { refresh: Some(10), ..from(address, "cal.ics") }, "300 seconds"),
        (CalendarDraft { zone: "Europe/Pragu".into(), ..from(address, "cal.ics") }, "Europe/Prague"),
        (CalendarDraft { url: None, ..from(address, "cal.ics") }, "give its text or a URL"),
    ] {
        let Err(Error::Invalid(text)) = put(&house, draft.clone()).await else { panic!("{draft:?}") };
        assert!(text.contains(why), "{text}");
    }
    assert!(house.app().calendars(&caller(), None).unwrap().is_empty());
}

#[tokio::test]
async fn a_calendar_is_read_anew_when_it_is_time() {
    let mut house = house().await;
    let a = minion(&house, "a").await;
    let (address, shown) = page(200, times(&[NOW])).await;
    put(&house, CalendarDraft { refresh: Some(300), ..from(address, "cal.ics") }).await.unwrap();
    house.edit(put_schedule("w", "single", Some("w")), None, Strategy::Refuse).await.unwrap();
    house.edit(assign("w", minions(&["a"])), None, Strategy::Refuse).await.unwrap();
    *shown.lock().unwrap() = (200, times(&[TOMORROW]));
    drop(a);
    // As if it had been down for longer than that.
    house
        .restart_after(|house| {
            let database = rusqlite::Connection::open(house.dir.path().join("data/saltern.db")).unwrap();
            database
                .execute("UPDATE calendars SET tried = tried - 600000000, refreshed = refreshed - 600000000", [])
                .unwrap();
        })
        .await;
    let is_new = || async { !house.is_open("a").await };
    saltern_testkit::wait::until("the calendar to be read anew", crate::ward::LONG, is_new).await;
}

#[tokio::test]
async fn nobody_has_the_server_ask_its_own_machine() {
    let house = crate::ward::house().await;
    let (address, _) = page(200, times(&[NOW])).await;
    for url in [
        format!("http://{address}/cal.ics"),
        format!("http://localhost:{}/cal.ics", address.port()),
        format!("http://[::ffff:127.0.0.1]:{}/cal.ics", address.port()),
        "http://169.254.169.254/latest/meta-data/".into(),
    ] {
        let draft = CalendarDraft { url: Some(url.clone()), ..from(address, "") };
        let told = put(&house, draft).await.unwrap_err().to_string();
        assert!(told.contains("calendar_near_urls"), "{url}: {told}");
    }
}

#[tokio::test]
async fn the_calendars_of_an_organisation_have_a_size_together() {
    let house = crate::ward::house().await;
    let padding = format!("X-PADDING:{}\r\nBEGIN:VEVENT", "x".repeat(4_900_000));
    let large = times(&[NOW]).replacen("BEGIN:VEVENT", &padding, 1);
    let draft = |number: usize| {
        let (name, ical) = (format!("c{number}"), Some(large.clone()));
        CalendarDraft { name, ical, ..CalendarDraft::default() }
    };
    for number in 0..10 {
        put(&house, draft(number)).await.unwrap();
    }
    let told = put(&house, draft(10)).await.unwrap_err().to_string();
    assert!(told.contains("50 MB together"), "{told}");
}
