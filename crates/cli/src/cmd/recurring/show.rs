//! What recurs for people: a list, one with its expression in words, its times to come, and those that have come.

use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{when, zones};
use crate::rules;
use saltern_api::shape::{
    CatchUp, EntityKind, Fire, LeftOut, Overlap, PlannedFire, Recurring, RecurringEntity, RecurringWhat,
};
use saltern_calendar::zone::Zone;
use saltern_core::action::types;
use saltern_core::time::Timestamp;
use saltern_core::value::Map;
use std::collections::BTreeMap;
use std::time::Duration;

/// Times to come that are shown with one.
pub(super) const FEW: usize = 3;

/// Minions that are named; programs get all.
const NAMED: usize = 3;

pub(super) fn table(all: &[Recurring], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["ID", "NAME", "ON", "WHAT", "CRON", "ZONE", "ACTIVE", "NEXT", "LAST"]);
    for one in all {
        table.row([
            one.id.to_string(),
            one.name.clone(),
            entity(&one.entity),
            what(&one.what),
            one.cron.clone(),
            one.zone.clone(),
            if one.active { "yes" } else { "no" }.to_owned(),
            next(one, now),
            one.last.as_ref().map_or_else(String::new, |fire| fire.outcome.clone()),
        ]);
    }
    table.show("Nothing recurs; `saltern recurring create` makes something do so.", style)
}

fn next(one: &Recurring, now: Timestamp) -> String {
    let at = one.next.map_or_else(|| "never".to_owned(), |next| when::ago(next.0, now));
    if one.skip_next { format!("{at} (left out)") } else { at }
}

pub(super) fn detail(one: &Recurring, now: Timestamp, own: Zone, style: Style) -> String {
    let zone = zones::named(&one.zone);
    let when = if one.words == one.cron { one.cron.clone() } else { format!("{} ({})", one.words, one.cron) };
    let at = |at: Timestamp| {
        let here = zones::here(at, zone, own).map_or_else(String::new, |here| format!("; here {here}"));
        format!("{}{here} ({})", zones::local(at, zone), when::ago(at, now))
    };
    let mut known = vec![
        ("Number", one.id.to_string()),
        ("What", what(&one.what)),
        ("On", entity(&one.entity)),
        ("When", when),
        ("Zone", one.zone.clone()),
        ("Active", if one.active { "yes" } else { "no" }.to_owned()),
        ("Next", one.next.map_or_else(|| "never".to_owned(), |next| at(next.0))),
    ];
    if one.skip_next {
        known.push(("Left out", "the next time".to_owned()));
    }
    known.push(("Overlap", overlap(one.overlap).to_owned()));
    known.push(("Catch-up", catch_up(one)));
    if one.spread > 0 {
        known.push(("Spread", format!("the minions begin within {}", span(one.spread))));
    }
    let outside = if one.in_window { "minions do it in their next window" } else { "minions are left out" };
    known.push(("Outside of windows", outside.to_owned()));
    if let Some(deadline) = one.deadline {
        known.push(("Deadline", format!("{} after it is due", span(deadline))));
    }
    let rules = rules::told(&one.policy);
    if !rules.is_empty() {
        known.push(("Rules", rules));
    }
    known.extend([("Owner", one.owner.clone()), ("Organisation", one.org.clone())]);
    if let Some(last) = &one.last {
        known.push(("Last", format!("{}: {}", at(last.planned.0), outcome(last))));
    }
    known.extend([("Changed", when::when(one.changed.0, now)), ("Version", one.version.to_string())]);
    fields(&one.name, &known, style)
}

/// The times to come, in the zone of what recurs and in the reader's.
pub(super) fn planned(fires: &[PlannedFire], zone: Zone, own: Zone, style: Style) -> String {
    let mut table = Table::new(&["WHEN", "HERE", "MINIONS", "LEFT OUT"]);
    for fire in fires {
        table.row([
            zones::local(fire.at.0, zone),
            zones::local(fire.at.0, own),
            fire.minions.len().to_string(),
            left_out(&fire.left_out),
        ]);
    }
    table.show("There is no next time.", style)
}

/// What became of times.
pub(super) fn fires(fires: &[Fire], zone: Zone, style: Style) -> String {
    let mut table = Table::new(&["PLANNED", "OUTCOME", "AS", "MINIONS", "LEFT OUT", "WHY"]);
    for fire in fires {
        let made = match (fire.action, fire.launch) {
            (Some(action), _) => format!("action {action}"),
            (_, Some(launch)) => format!("launch {launch}"),
            (None, None) => String::new(),
        };
        let outcome = if fire.late { format!("{} late", fire.outcome) } else { fire.outcome.clone() };
        let left_out = match fire.left_out.is_empty() {
            false => left_out(&fire.left_out),
            true if fire.skipped > 0 => fire.skipped.to_string(),
            true => String::new(),
        };
        table.row([
            zones::local(fire.planned.0, zone),
            outcome,
            made,
            fire.minions.to_string(),
            left_out,
            fire.why.clone(),
        ]);
    }
    table.show("No time has come yet.", style)
}

/// What it is done on, as it is typed.
pub(super) fn entity(entity: &RecurringEntity) -> String {
    let kind = match entity.kind {
        EntityKind::Minion => "minion",
        EntityKind::Group => "group",
        EntityKind::Org => "org",
        EntityKind::Target => "target",
    };
    format!("{kind} {}", entity.subject)
}

/// What is done, in words.
pub(super) fn what(what: &RecurringWhat) -> String {
    let none = Map::new();
    let params = what.params.as_map().unwrap_or(&none);
    match (&what.kind, what.chain) {
        (Some(kind), _) => match types::find(kind) {
            Some(known) if known.call(params).is_ok() => known.describe(params),
            _ => kind.clone(),
        },
        (None, Some(chain)) => format!("launch chain {chain}"),
        (None, None) => String::new(),
    }
}

fn outcome(fire: &Fire) -> String {
    let why = if fire.why.is_empty() { String::new() } else { format!(", {}", fire.why) };
    match fire.action.map(|id| ("action", id)).or(fire.launch.map(|id| ("launch", id))) {
        Some((noun, id)) => format!("{} as {noun} {id}{why}", fire.outcome),
        None => format!("{}{why}", fire.outcome),
    }
}

fn overlap(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Skip => "minions that have not ended an earlier time are left out",
        Overlap::Queue => "one more waits where an earlier time has not ended",
        Overlap::Allow => "nobody looks whether an earlier time has ended",
    }
}

fn catch_up(one: &Recurring) -> String {
    match one.catch_up {
        CatchUp::None => "times that the server was not there for are missed".to_owned(),
        CatchUp::Once => "of times that the server was not there for, the newest is done late".to_owned(),
        CatchUp::All => {
            format!("times that the server was not there for are done late, up to {}", span(one.catch_up_limit))
        }
    }
}

/// Those that are left out, by why.
fn left_out(all: &[LeftOut]) -> String {
    let mut by_why: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in all {
        by_why.entry(one.why.as_str()).or_default().push(&one.minion);
    }
    let told = by_why.into_iter().map(|(why, minions)| {
        let more = minions.len().saturating_sub(NAMED);
        let named = minions.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{named}{more}: {why}")
    });
    told.collect::<Vec<_>>().join("; ")
}

fn span(seconds: u64) -> String {
    when::span(Duration::from_secs(seconds))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::action::Policy;
    use saltern_core::value::Value;

    pub(in super::super) const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn at(text: &str) -> Time {
        Time(Timestamp::parse(text).unwrap())
    }

    pub(in super::super) fn recurring() -> Recurring {
        Recurring {
            id: 7,
            name: "nightly".into(),
            org: "default".into(),
            entity: RecurringEntity { kind: EntityKind::Group, subject: "web".into() },
            what: RecurringWhat {
                kind: Some("states".into()),
                chain: None,
                params: Value::map([("mods", Value::list(["nginx"]))]),
            },
            cron: "30 2 * * SUN".into(),
            words: "every Sunday at 02:30".into(),
            zone: "Europe/Prague".into(),
            active: true,
            skip_next: false,
            next: Some(at("2026-11-22T01:30:00Z")),
            last: Some(fire()),
            owner: "ann".into(),
            creator: "ann".into(),
            spread: 1_800,
            overlap: Overlap::Skip,
            catch_up: CatchUp::Once,
            catch_up_limit: 86_400,
            in_window: false,
            deadline: None,
            policy: Policy::default(),
            changeable: true,
            created: Time(NOW),
            changed: Time(NOW),
            version: 3,
        }
    }

    fn fire() -> Fire {
        let out = |minion: &str| LeftOut { minion: minion.into(), why: "an earlier time has not ended there".into() };
        Fire {
            planned: at("2026-11-15T01:30:00Z"),
            outcome: "fired".into(),
            why: String::new(),
            at: at("2026-11-15T01:30:00Z"),
            action: Some(9),
            launch: None,
            minions: 7,
            skipped: 4,
            late: true,
            left_out: ["a", "b", "c", "d"].map(out).to_vec(),
        }
    }

    #[test]
    fn scenario_72_the_list_has_the_expression_and_the_detail_says_it_in_words() {
        assert_eq!(
            table(&[recurring()], NOW, Style::PLAIN),
            "\
ID  NAME     ON         WHAT         CRON          ZONE           ACTIVE  NEXT       LAST
7   nightly  group web  apply nginx  30 2 * * SUN  Europe/Prague  yes     in 6 days  fired"
        );
        let shown = detail(&recurring(), NOW, Zone::UTC, Style::PLAIN);
        assert!(shown.contains("When                every Sunday at 02:30 (30 2 * * SUN)\n"), "{shown}");
    }

    #[test]
    fn the_next_time_is_told_in_its_zone_and_in_the_readers() {
        let shown = detail(&recurring(), NOW, zones::named("Asia/Tokyo"), Style::PLAIN);
        assert!(shown.contains("Sun 2026-11-22 02:30 CET; here Sun 2026-11-22 10:30 JST (in 6 days)"), "{shown}");
        let shown = detail(&recurring(), NOW, zones::named("Europe/Prague"), Style::PLAIN);
        assert!(!shown.contains("; here"), "{shown}");
        let planned_fire =
            PlannedFire { at: at("2026-11-22T01:30:00Z"), minions: vec!["web1".into()], left_out: vec![] };
        assert_eq!(
            planned(&[planned_fire], zones::named("Europe/Prague"), Zone::UTC, Style::PLAIN),
            "\
WHEN                      HERE                      MINIONS  LEFT OUT
Sun 2026-11-22 02:30 CET  Sun 2026-11-22 01:30 UTC  1"
        );
    }

    #[test]
    fn what_became_of_a_time_names_whom_it_left_out() {
        assert_eq!(
            fires(&[fire()], Zone::UTC, Style::PLAIN),
            "\
PLANNED                   OUTCOME     AS        MINIONS  LEFT OUT                                                 WHY
Sun 2026-11-15 01:30 UTC  fired late  action 9  7        a, b, c and 1 more: an earlier time has not ended there"
        );
    }

    #[test]
    fn what_is_done_is_told_even_if_its_parameters_are_not() {
        let hidden = RecurringWhat { kind: Some("package_install".into()), ..RecurringWhat::default() };
        assert_eq!(what(&hidden), "package_install");
        assert_eq!(what(&RecurringWhat { chain: Some(12), ..RecurringWhat::default() }), "launch chain 12");
    }
}
