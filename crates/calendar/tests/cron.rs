//! Cron expressions as people write them: what is understood, when it fires, what it says, and how it is refused.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proptest::prelude::*;
use saltern_calendar::cron::{BadCron, Cron, Field};
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;

fn cron(text: &str) -> Cron {
    Cron::parse(text, "nightly").unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

fn bad(text: &str) -> BadCron {
    Cron::parse(text, "nightly").expect_err(text)
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The next fires as UTC, without seconds where there are none.
fn fires(text: &str, zone: &str, after: &str, n: usize) -> Vec<String> {
    let fires = cron(text).preview(at(after), &Zone::parse(zone).unwrap(), n);
    fires.iter().map(|fire| fire.rfc3339().trim_end_matches(":00Z").to_owned()).collect()
}

fn days(text: &str, n: usize) -> Vec<String> {
    let fires = fires(text, "UTC", "2026-01-01T00:00:00Z", n);
    fires.iter().map(|fire| fire[..10].to_owned()).collect()
}

#[test]
fn five_fields_fire_on_the_minute_and_six_on_the_second() {
    assert_eq!(fires("35 1 * * *", "UTC", "2026-05-05T01:35:00Z", 2), ["2026-05-06T01:35", "2026-05-07T01:35"]);
    assert_eq!(fires("30 35 1 * * *", "UTC", "2026-05-05T01:35:00Z", 1), ["2026-05-05T01:35:30Z"]);
    assert_eq!(cron("35 1 * * *").next(at("2026-05-05T01:34:59.999Z"), &Zone::UTC), Some(at("2026-05-05T01:35:00Z")));
}

#[test]
fn names_ranges_steps_and_lists_are_understood() {
    assert_eq!(days("0 0 1 feb,Nov *", 3), ["2026-02-01", "2026-11-01", "2027-02-01"]);
    assert_eq!(days("0 0 * * fri-mon", 4), ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]);
    assert_eq!(days("0 0 5-9/2 1 *", 3), ["2026-01-05", "2026-01-07", "2026-01-09"]);
    let quarter = ["2026-05-05T00:20", "2026-05-05T00:35", "2026-05-05T00:50", "2026-05-05T01:05"];
    assert_eq!(fires("5/15 * * * *", "UTC", "2026-05-05T00:05:00Z", 4), quarter);
    assert_eq!(fires("0 22-1 * * *", "UTC", "2026-05-05T22:00:00Z", 3)[..2], ["2026-05-05T23:00", "2026-05-06T00:00"]);
}

#[test]
fn the_names_of_schedules_are_those_of_cron() {
    for (name, same) in [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        (" @Weekly ", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ] {
        assert_eq!(days(name, 5), days(same, 5), "{name}");
    }
}

#[test]
fn weekdays_have_unix_numbers_unless_the_expression_is_one_of_quartz() {
    // 2026-01-01 is a Thursday.
    assert_eq!(days("0 0 * * 4", 1), ["2026-01-08"]);
    assert_eq!(days("35 1 * * 4", 1), ["2026-01-01"]);
    assert_eq!(days("35 1 ? * 4", 1), ["2026-01-01"]);
    assert_eq!(days("0 35 1 * * 4", 1), ["2026-01-01"]);
    assert_eq!(days("0 35 1 ? * 4", 1), ["2026-01-07"], "a Wednesday");
    assert_eq!(days("0 0 * * 0", 1), days("0 0 * * 7", 1));
    assert_eq!(days("0 0 * * 5-7", 3), ["2026-01-02", "2026-01-03", "2026-01-04"]);
    assert_eq!(days("0 0 0 ? * 1", 1), ["2026-01-04"], "a Sunday");
    assert_eq!(days("0 0 0 ? * L", 1), ["2026-01-03"], "a Saturday");
    assert_eq!(bad("0 0 0 ? * 0").hint, "write a number from 1 to 7 or a name from SUN to SAT");
}

#[test]
fn last_days_numbered_weekdays_and_working_days_are_found() {
    assert_eq!(days("0 12 L * *", 3), ["2026-01-31", "2026-02-28", "2026-03-31"]);
    assert_eq!(days("0 12 L-2 * *", 2), ["2026-01-29", "2026-02-26"]);
    assert_eq!(days("0 12 * * FRIL", 2), ["2026-01-30", "2026-02-27"]);
    assert_eq!(days("0 12 * * 5L", 1), ["2026-01-30"]);
    assert_eq!(days("0 0 12 ? * 6L", 1), ["2026-01-30"]);
    assert_eq!(days("0 12 * * MON#2", 2), ["2026-01-12", "2026-02-09"]);
    assert_eq!(days("0 12 ? * 4#5", 2), ["2026-01-29", "2026-04-30"]);
    assert_eq!(days("0 12 15W * *", 3), ["2026-01-15", "2026-02-16", "2026-03-16"], "the 15th of both is a Sunday");
    assert_eq!(days("0 12 1W 8 *", 1), ["2026-08-03"], "not in July");
    assert_eq!(days("0 12 31W 5 *", 1), ["2026-05-29"], "not in June");
    assert_eq!(days("0 12 LW * *", 2), ["2026-01-30", "2026-02-27"]);
}

#[test]
fn two_restricted_day_fields_mean_either_and_a_star_leaves_it_to_the_other() {
    assert_eq!(days("0 12 13 * FRI", 4), ["2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"]);
    assert_eq!(days("0 0 12 13 * FRI", 4), days("0 12 13 * FRI", 4));
    assert_eq!(days("0 12 */2 * MON", 3), ["2026-01-05", "2026-01-19", "2026-02-09"]);
}

#[test]
fn a_leap_day_is_waited_for() {
    assert_eq!(days("0 0 29 2 *", 2), ["2028-02-29", "2032-02-29"]);
    let sunday = fires("0 0 29 2 */7", "UTC", "2096-03-01T00:00:00Z", 1);
    assert_eq!(sunday, ["2128-02-29T00:00"], "the next that is a Sunday");
}

#[test]
fn what_never_fires_is_refused() {
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30W FEB *", "0 0 0 31 2 ?", "0 0 L-29 2 */2"] {
        assert_eq!(bad(text).problem, "the expression never fires", "{text}");
    }
    assert!(Cron::parse("0 0 30 2 MON", "x").is_ok(), "either field is enough");
}

#[test]
fn a_local_time_that_is_skipped_fires_at_the_jump() {
    let prague = |text| fires(text, "Europe/Prague", "2026-03-28T02:00:00Z", 3);
    assert_eq!(prague("30 2 * * *"), ["2026-03-29T01:00", "2026-03-30T00:30", "2026-03-31T00:30"]);
    let fires = fires("*/20 * * * *", "Europe/Prague", "2026-03-29T00:30:00Z", 3);
    assert_eq!(fires, ["2026-03-29T00:40", "2026-03-29T01:00", "2026-03-29T01:20"]);
}

#[test]
fn a_local_time_that_comes_twice_fires_at_the_first() {
    let prague = |text, after| fires(text, "Europe/Prague", after, 2);
    assert_eq!(prague("30 2 * * *", "2026-10-24T22:00:00Z"), ["2026-10-25T00:30", "2026-10-26T01:30"]);
    assert_eq!(prague("*/30 * * * *", "2026-10-25T00:00:00Z"), ["2026-10-25T00:30", "2026-10-25T02:00"]);
    assert_eq!(prague("* * * * * *", "2026-10-25T01:00:00Z")[0], "2026-10-25T02:00");
}

#[test]
fn a_weekly_time_is_that_of_its_zone() {
    let tokyo = fires("0 8 * * MON", "Asia/Tokyo", "2026-01-01T00:00:00Z", 1);
    assert_eq!(tokyo, ["2026-01-04T23:00"], "a Sunday in UTC");
}

#[test]
fn a_hashed_number_is_stable_and_its_own_for_each_definition() {
    // Written down once: if this changes, the schedules of every installation move.
    let nightly = Cron::parse("H H(0-5) * * *", "nightly").unwrap();
    assert_eq!(nightly.describe(), "every day at 04:28");
    let described = |seed: u32| Cron::parse("H H(0-5) * * *", &seed.to_string()).unwrap().describe();
    let different: std::collections::BTreeSet<String> = (0..100).map(described).collect();
    assert!(different.len() > 60, "{different:?}");
    assert!(different.iter().all(|text| text < &"every day at 06".to_owned()));
}

#[test]
fn a_hashed_step_keeps_its_distance_and_its_range() {
    for seed in 0..50 {
        let minutes = |text: &str| -> Vec<i64> {
            let cron = Cron::parse(text, &seed.to_string()).unwrap();
            let hour = cron.fires(at("2026-01-01T00:59:59Z"), &Zone::UTC);
            hour.map(|fire| (fire.secs() - at("2026-01-01T01:00:00Z").secs()) / 60).take_while(|m| *m < 60).collect()
        };
        let quarters = minutes("H/15 * * * *");
        assert!(quarters.len() == 4 && quarters.windows(2).all(|two| two[1] - two[0] == 15), "{quarters:?}");
        let early = minutes("H(0-29)/10 * * * *");
        assert!(early.len() == 3 && early[2] < 30 && early[1] - early[0] == 10, "{early:?}");
        assert!(days("0 0 H * *", 12).iter().all(|day| day[8..] <= *"28"));
    }
}

#[test]
fn an_error_tells_the_field_the_place_and_what_to_write() {
    for (text, field, column, message) in [
        (
            "61 * * * *",
            Some(Field::Minute),
            1,
            "`61` cannot stand here (minute, column 1); write a number from 0 to 59",
        ),
        ("0  25 * * *", Some(Field::Hour), 4, "`25` cannot stand here (hour, column 4); write a number from 0 to 23"),
        (
            "0 0 * MAI *",
            Some(Field::Month),
            7,
            "`MAI` cannot stand here (month, column 7); write a number from 1 to 12 or a name from JAN to DEC",
        ),
        (
            "0,5,,7 * * * *",
            Some(Field::Minute),
            5,
            "something is missing (minute, column 5); write a number from 0 to 59",
        ),
        (
            "*/90 * * * *",
            Some(Field::Minute),
            3,
            "`90` is no step (minute, column 3); a step in this field is 1 to 60, and counts anew in each round of it",
        ),
        (
            "0 H(3) * * *",
            Some(Field::Hour),
            3,
            "`H(3)` is no form of H (hour, column 3); write H, H/15, H(0-29) or H(0-29)/10",
        ),
        (
            "0 0 * * MON#6",
            Some(Field::Weekday),
            13,
            "`6` cannot stand here (day of week, column 13); write a number from 1 to 5",
        ),
        (
            "0 0 * * L",
            Some(Field::Weekday),
            9,
            "`L` alone is no day of the week (day of week, column 9); name the day: FRIL is the last Friday",
        ),
        ("? 0 * * *", Some(Field::Minute), 1, "`?` belongs into a day field (minute, column 1); write * here"),
        (
            "0 0 0 ? * ?",
            Some(Field::Weekday),
            11,
            "both day fields are `?` (day of week, column 11); write * for one of them",
        ),
        (
            "0 0 0 ? * 4 2027",
            None,
            13,
            "there is a seventh field (column 13); leave the year out: it cannot be restricted",
        ),
        (
            "0 0 * *",
            None,
            7,
            "the expression has 4 fields, not 5 or 6 (column 7); write `minute hour day month weekday`, with seconds before \
             them if need be",
        ),
        (
            "CRON_TZ=UTC 0 0 * * *  x",
            None,
            1,
            "`CRON_TZ=UTC` is no field (column 1); the time zone is a setting of its own",
        ),
        (
            " @reboot",
            None,
            2,
            "no schedule is called `@reboot` (column 2); there are @yearly, @annually, @monthly, @weekly, @daily, @midnight \
             and @hourly",
        ),
    ] {
        let bad = bad(text);
        assert_eq!((bad.field, bad.column, bad.to_string().as_str()), (field, column, message), "{text}");
    }
    assert!(bad("").to_string().starts_with("the expression is empty"));
    assert_eq!(bad(&"1,".repeat(300)).column, 513);
    assert!(bad(&format!("{} * * * *", "x".repeat(400))).to_string().len() < 200);
}

#[test]
fn common_expressions_are_told_in_plain_words() {
    for (text, words) in [
        ("0 35 1 ? * 4", "every Wednesday at 01:35"),
        ("0 35 * ? * *", "every hour at minute 35"),
        ("0 17 5 7 * ?", "every 7th of the month at 05:17"),
        ("0 0 15 3 * ?", "every 3rd of the month at 15:00"),
        ("35 1 * * *", "every day at 01:35"),
        ("@daily", "every day at 00:00"),
        ("@yearly", "every 1st of January at 00:00"),
        ("@hourly", "every hour"),
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:45 on every Monday to Friday"),
        ("0 */4 * * *", "every 4 hours"),
        ("30 8,20 * * MON,THU", "every Monday and Thursday at 08:30 and 20:30"),
        ("7,37 * * * *", "every hour at minutes 7 and 37"),
        ("0 2 L * *", "every last day of the month at 02:00"),
        ("0 2 * * FRIL", "every last Friday of the month at 02:00"),
        ("0 2 * JAN,JUL MON#2", "every second Monday of January and July at 02:00"),
        ("0 2 1 * MON", "every 1st of the month and every Monday at 02:00"),
        ("0 2 * 12 *", "every day in December at 02:00"),
        ("5 0 2 * * *", "every day at 02:00:05"),
        ("0 2 15W,LW * *", "every working day nearest to the 15th and last working day of the month at 02:00"),
    ] {
        assert_eq!(cron(text).describe(), words, "{text}");
    }
    for text in ["*/15 */2 * * *", "0 0 */2 * MON", "1,2,3,5,8,13,21 * * * *"] {
        assert_eq!(cron(text).describe(), text, "a long story");
    }
}

#[test]
fn the_end_of_the_calendar_is_the_end_of_the_fires() {
    assert_eq!(cron("0 0 1 1 *").next(at("9999-06-01T00:00:00Z"), &Zone::UTC), None);
    assert_eq!(cron("0 0 1 1 *").next(Timestamp(i64::MAX), &Zone::UTC), None);
    assert!(cron("0 0 1 1 *").next(Timestamp(i64::MIN), &Zone::UTC).is_some());
}

/// Text that looks like an expression more often than noise does.
fn nearly_cron() -> impl Strategy<Value = String> {
    let item = "(\\*|\\?|[0-9]{1,3}|L|LW|H|W|JAN|mon|FRIL|MON#2|15W|L-3|é|@daily|)";
    let field = format!("{item}(-{item})?(/{item})?(,{item})?(\\({item}-{item}\\))?");
    proptest::collection::vec(field.prop_regex(), 0..8).prop_map(|fields| fields.join(" "))
}

trait Regex {
    fn prop_regex(&self) -> proptest::string::RegexGeneratorStrategy<String>;
}

impl Regex for String {
    fn prop_regex(&self) -> proptest::string::RegexGeneratorStrategy<String> {
        proptest::string::string_regex(self).unwrap()
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = Cron::parse(&text, "x");
    }

    #[test]
    fn what_looks_like_an_expression_fires_or_is_refused_with_its_place(text in nearly_cron(), after in any::<i64>()) {
        match Cron::parse(&text, "x") {
            Ok(cron) => {
                cron.describe();
                cron.next(Timestamp(after), &Zone::UTC);
                prop_assert!(cron.next(Timestamp::from_secs(1_800_000_000), &Zone::UTC).is_some());
            }
            Err(bad) => prop_assert!(bad.column >= 1 && bad.column <= text.chars().count() + 1, "{bad:?}"),
        }
    }

    #[test]
    fn fires_rise_whatever_the_zone(zone in 0_usize..597, after in 0_i64..4_000_000_000, minute in 0..60, step in 1..20) {
        let zone = Zone::all().nth(zone).unwrap();
        let cron = Cron::parse(&format!("{minute}/{step} * * * *"), "x").unwrap();
        let fires = cron.preview(Timestamp::from_secs(after), &zone, 20);
        prop_assert_eq!(fires.len(), 20);
        prop_assert!(fires[0] > Timestamp::from_secs(after));
        prop_assert!(fires.windows(2).all(|two| two[0] < two[1]));
        prop_assert!(fires.windows(2).all(|two| cron.next(two[0], &zone) == Some(two[1])));
    }
}
