//! The examples of RFC 5545 (3.8.5.3) and what keeps expansion bounded.

use super::super::lines;
use super::*;

fn time(text: &str) -> NaiveDateTime {
    match Written::parse(1, text).unwrap() {
        Written::Date(date) => date.and_time(NaiveTime::MIN),
        Written::Local(time) | Written::Utc(time) => time,
    }
}

fn bind(start: &str, rule: &str, work: &mut Work) -> Result<Recurrence, BadCalendar> {
    let rule = Rule::parse(&lines::parse(1, &format!("RRULE:{rule}")).unwrap()).unwrap();
    Recurrence::new(rule, time(start), false, &Place::UTC, 3600, work)
}

/// The first few instances from a time on, as `MMDD` or `MMDDTHHMM`.
fn from(start: &str, rule: &str, from: &str, count: usize, format: &str) -> Vec<String> {
    let mut work = Work::new(100_000);
    let recurrence = bind(start, rule, &mut work).unwrap();
    let mut found = Vec::new();
    let to = time("20991231T000000");
    recurrence
        .starts(&Place::UTC, time(from), to, &mut work, &mut |time| {
            found.push(time.format(format).to_string());
            found.len() < count
        })
        .unwrap();
    found
}

fn days(start: &str, rule: &str, count: usize) -> Vec<String> {
    from(start, rule, start, count, "%y%m%d")
}

const SEP_2: &str = "19970902T090000";

#[test]
fn examples_of_the_standard_by_day() {
    for (start, rule, expected) in [
        (SEP_2, "FREQ=DAILY;INTERVAL=10;COUNT=3", "970902 970912 970922"),
        (SEP_2, "FREQ=WEEKLY;INTERVAL=2;WKST=SU", "970902 970916 970930"),
        (SEP_2, "FREQ=WEEKLY;INTERVAL=2;COUNT=4;WKST=SU;BYDAY=TU,TH", "970902 970904 970916 970918"),
        ("19970905T090000", "FREQ=MONTHLY;COUNT=3;BYDAY=1FR", "970905 971003 971107"),
        ("19970907T090000", "FREQ=MONTHLY;INTERVAL=2;COUNT=4;BYDAY=1SU,-1SU", "970907 970928 971102 971130"),
        ("19970922T090000", "FREQ=MONTHLY;COUNT=3;BYDAY=-2MO", "970922 971020 971117"),
        ("19970928T090000", "FREQ=MONTHLY;BYMONTHDAY=-3", "970928 971029 971128"),
        (SEP_2, "FREQ=MONTHLY;COUNT=4;BYMONTHDAY=2,15", "970902 970915 971002 971015"),
        ("19970610T090000", "FREQ=YEARLY;COUNT=3;BYMONTH=6,7", "970610 970710 980610"),
        ("19970101T090000", "FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200", "970101 970410 970719 000101"),
        ("19970519T090000", "FREQ=YEARLY;BYDAY=20MO", "970519 980518 990517"),
        ("19970512T090000", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "970512 980511 990517"),
        ("19970512T090000", "FREQ=YEARLY;BYWEEKNO=20", "970512 980511 990517"),
        ("19970313T090000", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "970313 970320 970327 980305"),
        ("19980213T090000", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "980213 980313 981113"),
        ("19970913T090000", "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13", "970913 971011 971108"),
        (
            "19961105T090000",
            "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
            "961105 001107 041102",
        ),
        ("19970904T090000", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "970904 971007 971106"),
        ("19970929T090000", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", "970929 971030 971127"),
        ("19970805T090000", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "970805 970810 970819 970824"),
        ("19970805T090000", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "970805 970817 970819 970831"),
        ("20070115T090000", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "070115 070130 070215 070315 070330"),
        ("20240229T090000", "FREQ=YEARLY", "240229 280229"),
    ] {
        let expected: Vec<_> = expected.split(' ').collect();
        assert_eq!(days(start, rule, expected.len()), expected, "{rule}");
    }
}

#[test]
fn examples_of_the_standard_within_a_day() {
    for (rule, expected) in [
        ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", "020900 021200 021500"),
        ("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "020900 020915 020930 020945 021000 021015"),
        ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "020900 021030 021200 021330"),
        ("FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,40;COUNT=5", "020900 020940 021000 021040 030900"),
        ("FREQ=MINUTELY;INTERVAL=20;BYHOUR=15,16;COUNT=7", "021500 021520 021540 021600 021620 021640 031500"),
        ("FREQ=HOURLY;INTERVAL=25;COUNT=3", "020900 031000 041100"),
        ("FREQ=HOURLY;BYMINUTE=5,25,45;BYSETPOS=-1;COUNT=2", "020945 021045"),
        ("FREQ=SECONDLY;INTERVAL=3600;COUNT=3", "020900 021000 021100"),
        ("FREQ=SECONDLY;BYHOUR=3;BYMINUTE=30;BYSECOND=0;COUNT=2", "030330 040330"),
    ] {
        let expected: Vec<_> = expected.split(' ').collect();
        assert_eq!(from(SEP_2, rule, SEP_2, 10, "%d%H%M")[..expected.len()], expected, "{rule}");
    }
}

#[test]
fn jumping_ahead_gives_what_counting_from_the_start_gives() {
    for rule in [
        "FREQ=YEARLY;INTERVAL=3;BYMONTH=1,9;BYDAY=2TU",
        "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=-1",
        "FREQ=WEEKLY;INTERVAL=3;BYDAY=SU,TU;WKST=SU",
        "FREQ=DAILY;INTERVAL=7",
        "FREQ=HOURLY;INTERVAL=37",
        "FREQ=MINUTELY;INTERVAL=1001;BYDAY=MO,WE",
        "FREQ=SECONDLY;INTERVAL=70001",
    ] {
        let all = from(SEP_2, rule, SEP_2, 100_000, "%Y%m%dT%H%M%S");
        for ahead in ["19971231T235959", "20000229T120000", "20500101T000000"] {
            let expected: Vec<_> = all.iter().filter(|time| time.as_str() >= ahead).take(9).cloned().collect();
            assert_eq!(from(SEP_2, rule, ahead, 9, "%Y%m%dT%H%M%S"), expected, "{rule} {ahead}");
        }
    }
}

#[test]
fn rules_that_expand_without_end_are_refused() {
    for rule in [
        "FREQ=SECONDLY",
        "FREQ=MINUTELY",
        "FREQ=SECONDLY;COUNT=4000000000",
        "FREQ=DAILY;BYHOUR=1,2,3,4,5,6,7,8;BYMINUTE=0,10,20,30,40,50;BYSECOND=0,1,2,3,4,5,6,7,8,9",
    ] {
        let error = bind(SEP_2, rule, &mut Work::new(100_000)).unwrap_err();
        assert!(error.problem.contains("100000 instances"), "{error}");
    }
}

#[test]
fn rules_that_never_match_come_to_an_end() {
    for rule in [
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=3",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=3",
        "FREQ=MONTHLY;BYDAY=5MO;BYMONTHDAY=1",
    ] {
        assert_eq!(days(SEP_2, rule, 1), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn rules_that_take_too_long_to_say_nothing_are_refused() {
    let mut work = Work::new(100_000);
    let recurrence = bind(SEP_2, "FREQ=SECONDLY;INTERVAL=60;BYSECOND=1", &mut work).unwrap();
    let to = time("20991231T000000");
    let error = recurrence.starts(&Place::UTC, time(SEP_2), to, &mut work, &mut |_| true).unwrap_err();
    assert!(error.problem.contains("too long"), "{error}");
}
