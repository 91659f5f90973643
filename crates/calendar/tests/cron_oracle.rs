//! Cron expressions against Python: croniter for which local times are meant, zoneinfo for which instants those are.
//!
//! Every zone of the database over ten years. The lists are compared by their digests, millions of fires are too many to
//! print; where two differ, the oracle is asked again for the list itself, and the first difference is told.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use saltern_calendar::cron::Cron;
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;
use saltern_testkit::oracle;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::path::Path;

/// Compared over all of the ten years.
const SPARSE: [&str; 2] = ["30 2 * * *", "0 0,1,3 * * SUN"];
/// Again and again, compared for a day to either side of every change: the distance in seconds, and the expression.
const DENSE: [(i64, &str); 2] = [(900, "*/15 * * * *"), (3600, "0 0 * * * *")];

fn ask(question: &Value) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cron_oracle.py");
    let answer = oracle::ask(&script, &question.to_string())?;
    Some(serde_json::from_str(&answer).unwrap())
}

fn at(text: &str) -> i64 {
    Timestamp::parse(text).unwrap().secs()
}

fn cron(text: &str) -> Cron {
    Cron::parse(text, "x").unwrap()
}

/// The ten years to come: what the rules of today say.
#[test]
fn each_local_time_fires_once_in_every_zone_over_the_next_ten_years() {
    compare(at("2026-01-01T00:00:00Z"), at("2036-01-01T00:00:00Z"));
}

/// Ten years in which an island skipped a day, clocks moved by half an hour, and countries left their zones.
#[test]
fn each_local_time_fires_once_in_every_zone_over_ten_years_of_the_past() {
    compare(at("2006-01-01T00:00:00Z"), at("2016-01-01T00:00:00Z"));
}

fn compare(first: i64, last: i64) {
    let zones: Vec<Zone> = Zone::all().collect();
    let names: Vec<&str> = zones.iter().map(Zone::name).collect();
    let distances: Vec<i64> = DENSE.iter().map(|(distance, _)| *distance).collect();
    let question = json!({ "first": first, "last": last, "sparse": SPARSE, "dense": distances, "zones": names });
    let Some(answer) = ask(&question) else { return };
    let half = zones.len() / 2;
    std::thread::scope(|scope| {
        for zones in [&zones[..half], &zones[half..]] {
            let (answer, question) = (&answer, &question);
            scope.spawn(move || {
                for zone in zones {
                    compare_zone(*zone, &answer["zones"][zone.name()], question);
                }
            });
        }
    });
}

fn compare_zone(zone: Zone, told: &Value, question: &Value) {
    let span = [(question["first"].as_i64().unwrap(), question["last"].as_i64().unwrap())];
    let windows: Vec<(i64, i64)> = serde_json::from_value(told["windows"].clone()).unwrap();
    let sparse = SPARSE.iter().map(|text| (*text, &span[..]));
    let dense = DENSE.iter().map(|(_, text)| (*text, &windows[..]));
    for (n, (text, spans)) in sparse.chain(dense).enumerate() {
        let fires = fires_within(&cron(text), zone, spans);
        assert!(!fires.is_empty());
        if json!([fires.len(), digest(&fires)]) != told["fires"][n] {
            tell_difference(zone, text, n, &fires, question);
        }
    }
}

fn fires_within(cron: &Cron, zone: Zone, spans: &[(i64, i64)]) -> Vec<i64> {
    let mut all = Vec::new();
    for (first, last) in spans {
        let fires = cron.fires(Timestamp::from_secs(*first), &zone).map(Timestamp::secs);
        all.extend(fires.take_while(|fire| fire <= last));
    }
    all
}

fn digest(fires: &[i64]) -> String {
    let bytes: Vec<u8> = fires.iter().flat_map(|fire| fire.to_le_bytes()).collect();
    Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tell_difference(zone: Zone, text: &str, n: usize, ours: &[i64], question: &Value) {
    let mut question = question.clone();
    question["zones"] = json!([zone.name()]);
    question["detail"] = json!(true);
    let answer = ask(&question).unwrap();
    let theirs: Vec<i64> = serde_json::from_value(answer["zones"][zone.name()]["fires"][n].clone()).unwrap();
    let show = |fires: &[i64], at: usize| fires.get(at).map(|fire| Timestamp::from_secs(*fire).rfc3339());
    let differs = (0..).find(|at| ours.get(*at) != theirs.get(*at)).unwrap();
    let (ours_at, theirs_at) = (show(ours, differs), show(&theirs, differs));
    panic!(
        "`{text}` in {zone}: {} fires, not {}; the first difference is {ours_at:?} instead of {theirs_at:?}",
        ours.len(),
        theirs.len()
    );
}

/// Lists, ranges and steps of a field, all of which croniter reads as we do.
fn field(first: u32, last: u32) -> impl Strategy<Value = String> {
    let value = first..=last;
    let range = (first..=last, first..=last, 1_u32..5).prop_map(|(a, b, step)| match step {
        // croniter refuses a step that is longer than its range, and reads `0-0` as the whole week.
        step if a.max(b) - a.min(b) <= step => a.to_string(),
        1 => format!("{}-{}", a.min(b), a.max(b)),
        step => format!("{}-{}/{step}", a.min(b), a.max(b)),
    });
    let item = proptest::prop_oneof![value.clone().prop_map(|n| n.to_string()), range];
    proptest::prop_oneof![
        4 => proptest::strategy::Just("*".to_owned()),
        1 => (2_u32..6).prop_map(|step| format!("*/{step}")),
        3 => value.prop_map(|n| n.to_string()),
        4 => proptest::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

#[test]
fn plain_expressions_mean_the_local_times_that_croniter_finds() {
    let (first, last) = (at("2027-12-20T00:00:00Z"), at("2028-04-10T00:00:00Z"));
    let daily = (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7));
    // A minute and an hour alone: each expression is to say something about days, at a few thousand fires at most.
    let daily = daily.prop_map(|(_, _, day, month, weekday)| format!("17 3 {day} {month} {weekday}"));
    let hourly = (field(0, 59), field(0, 23)).prop_map(|(minute, hour)| format!("{minute} {hour} 29 2 *"));
    let secondly = (field(0, 59), field(0, 59)).prop_map(|(second, minute)| format!("{second} {minute} 4 28 2 *"));
    // The same expressions in every run: what fails once fails again.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut draw = |count: usize, strategy: &dyn Fn(&mut TestRunner) -> String| -> Vec<String> {
        (0..count).map(|_| strategy(&mut runner)).collect()
    };
    let mut texts = draw(200, &|runner| daily.new_tree(runner).unwrap().current());
    texts.extend(draw(60, &|runner| hourly.new_tree(runner).unwrap().current()));
    texts.extend(draw(20, &|runner| secondly.new_tree(runner).unwrap().current()));
    texts.extend(["0 4 L * *", "0 4 * * fri#2,mon#4", "0 4 * feb-apr mon-fri", "@weekly"].map(str::to_owned));
    // Some never fire, and are refused.
    let crons: Vec<(String, Cron)> =
        texts.into_iter().filter_map(|text| Cron::parse(&text, "x").ok().map(|cron| (text, cron))).collect();
    assert!(crons.len() > 250, "{}", crons.len());

    let matching: Vec<Value> = crons.iter().map(|(text, _)| json!([text, first, last])).collect();
    let Some(answer) = ask(&json!({ "matching": matching })) else { return };
    for (n, (text, cron)) in crons.iter().enumerate() {
        let theirs: Vec<i64> = serde_json::from_value(answer["matching"][n].clone()).unwrap();
        let ours = fires_within(cron, Zone::UTC, &[(first - 1, last)]);
        assert_eq!(ours, theirs, "{text}");
    }
}
