//! `kill -9` of the server in the middle of everything: what was accepted is there, what was answered is there, and the
//! minions come back by themselves.

use saltern_e2e::Fleet;
use saltern_testkit::wait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

const JOBS: usize = 200;
/// Long enough that all of them are under way at once.
const SECONDS: &str = "45";
const PATIENCE: Duration = Duration::from_secs(240);

#[tokio::test]
async fn nothing_is_lost_when_the_server_is_killed_with_200_jobs_in_flight() {
    let Some(mut fleet) = Fleet::start("", &[]).await else { return };
    wait::until_ok("every minion to be able to acknowledge", Duration::from_secs(60), async || {
        let minions = fleet.server.cli_json(&["minion", "list"]).await;
        let ready = minions.as_array().is_some_and(|list| list.iter().all(|minion| minion["ack_method"] != "none"));
        if ready { Ok(()) } else { Err(minions.to_string()) }
    })
    .await;
    let mut accepted: BTreeMap<String, String> = BTreeMap::new();
    for number in 0..JOBS {
        let ids = fleet.ids();
        let id = ids[number % ids.len()];
        let job = fleet.server.cli_json(&["run", "--async", id, "test.sleep", SECONDS]).await;
        accepted.insert(job["jid"].as_str().expect("an accepted job has an id").to_owned(), id.to_owned());
    }
    assert_eq!(accepted.len(), JOBS);
    wait::until_ok("every job to be under way", PATIENCE, async || {
        let under_way = acknowledged(&fleet, &accepted).await;
        if under_way == JOBS { Ok(()) } else { Err(format!("{under_way} are under way")) }
    })
    .await;
    let answered = returned(&fleet, &accepted).await;

    fleet.server.kill9();
    fleet.server.launch().await;

    let kept = returned(&fleet, &accepted).await;
    for (jid, value) in &answered {
        assert_eq!(kept.get(jid), Some(value), "the return of {jid} was answered before the kill");
    }
    wait::until_ok("the return of every job", PATIENCE, async || {
        let returned = returned(&fleet, &accepted).await;
        let missing: Vec<String> = accepted
            .iter()
            .filter(|(jid, _)| !returned.contains_key(*jid))
            .map(|(jid, id)| format!("{jid} on {id}"))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{} are missing: {}", missing.len(), missing.join(", "))) }
    })
    .await;
    // The minions are back without anybody's help, and nothing ran twice.
    fleet.wait_for_all().await;
    for (jid, id) in &accepted {
        let returns = fleet.events_with_tag(&format!("salt/job/{jid}/ret/*")).await;
        assert_eq!(returns.len(), 1, "{jid} on {id}");
    }
}

/// How many of these jobs have been begun.
async fn acknowledged(fleet: &Fleet, jobs: &BTreeMap<String, String>) -> usize {
    let events = fleet.events_with_tag("salt/job/*/ack/*").await;
    events.iter().filter(|event| jobs.contains_key(event["jid"].as_str().unwrap_or_default())).count()
}

/// The returns of these jobs that the server has, by job.
async fn returned(fleet: &Fleet, jobs: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let events = fleet.events_with_tag("salt/job/*/ret/*").await;
    let jid =
        |event: &Value| event["tag"].as_str().and_then(|tag| tag.split('/').nth(2)).unwrap_or_default().to_owned();
    let mine = events.iter().filter(|event| jobs.contains_key(&jid(event)));
    mine.map(|event| (jid(event), event["data"]["return"].clone())).collect()
}
