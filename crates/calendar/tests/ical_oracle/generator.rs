//! Calendars made by chance that can be repeated: one seed, one calendar, with all that an event can have.

use chrono::{Datelike as _, NaiveDate, NaiveDateTime, TimeDelta, Timelike as _};
use saltern_calendar::ical::{Calendar, Limits, Window};
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;

/// Zones that change their clocks by an hour, by half of one, at midnight, twice around Ramadan or never.
const ZONES: [&str; 10] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Pacific/Auckland",
    "Europe/London",
    "America/Los_Angeles",
    "Africa/Casablanca",
];
const WINDOWS_NAMES: [(&str, &str); 3] = [
    ("W. Europe Standard Time", "Europe/Berlin"),
    ("Eastern Standard Time", "America/New_York"),
    ("Tokyo Standard Time", "Asia/Tokyo"),
];
const DEFAULT_ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "America/New_York", "America/Santiago"];
const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
const SUMMARIES: [&str; 5] = [
    "SAP Maintenance Window",
    "Core Server Window",
    "Größe\\, Menge\\; Pfad C:\\\\x",
    "a\\nb",
    "Wartung — überall und immer wieder, wie es im Buche steht, mit Umbruch",
];

/// A calendar, and what is asked of it.
pub(crate) struct Generated {
    pub(crate) text: String,
    /// The zone of times that name none.
    pub(crate) zone: &'static str,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// How an event writes its times.
#[derive(Clone)]
enum Clock {
    Utc,
    Floating,
    Date,
    /// The TZID, and a zone with the same offsets.
    Zoned(String, Zone),
}

pub(crate) struct Generator {
    state: u64,
    seed: u64,
    default_zone: &'static str,
    lines: Vec<String>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let mut new = Generator { state: seed ^ 0x5a17_e24d, seed, default_zone: "UTC", lines: Vec::new() };
        new.default_zone = new.pick(&DEFAULT_ZONES);
        new
    }

    pub(crate) fn calendar(mut self) -> Generated {
        let events = 1 + self.below(3);
        for number in 0..events {
            self.event(number);
        }
        let year = 2022 + i32::try_from(self.below(4)).unwrap();
        let from = NaiveDate::from_ymd_opt(year, 1, 1).unwrap().and_hms_opt(7, 30, 0).unwrap();
        let from = from + TimeDelta::days(self.below(200).cast_signed());
        let to = from + TimeDelta::days(200 + self.below(900).cast_signed());
        let text = self.fold();
        let (from, to) = (from.and_utc().timestamp(), to.and_utc().timestamp());
        Generated { text, zone: self.default_zone, from, to }
    }

    /// An event, perhaps with older versions, changed and cancelled instances.
    fn event(&mut self, number: u64) {
        let uid = format!("event-{number}@{}", self.seed);
        let clock = self.clock();
        let start = self.start(&clock);
        let (length, hours) = self.length(&clock, start);
        let (rule, is_daily) = self.rule(&clock, start);
        let summary = self.pick(&SUMMARIES);
        let mut body = vec![format!("UID:{uid}"), format!("SUMMARY:{summary}"), self.time("DTSTART", &clock, start)];
        body.extend(length.clone());
        body.extend(rule.map(|rule| format!("RRULE:{rule}")));
        let instances = self.instances(&body);
        let sequence = self.below(4);
        if sequence > 0 {
            body.push(format!("SEQUENCE:{sequence}"));
        }
        self.further(&clock, start, &mut body);
        let mut excluded = Vec::new();
        // The library takes a RECURRENCE-ID or EXDATE also for another instance whose UTC time looks like its local one;
        // with one instance a day, and odd minutes for the further ones, there is none.
        if is_daily && self.one_in(2) {
            for _ in 0..1 + self.below(3) {
                if let Some(instance) = self.choose(&instances) {
                    excluded.push(instance);
                    let property = self.exception(&clock, instance);
                    body.push(property);
                }
            }
        }
        if sequence > 0 && self.one_in(3) {
            let other = self.time("DTSTART", &clock, start - TimeDelta::days(1));
            let old = vec![
                format!("UID:{uid}"),
                "SUMMARY:an older version".into(),
                other,
                format!("SEQUENCE:{}", sequence - 1),
            ];
            self.component([old, length.clone()].concat());
        }
        self.component(body);
        if is_daily && self.one_in(2) {
            let mut changed: Vec<i64> = excluded;
            for _ in 0..1 + self.below(3) {
                let Some(instance) = self.choose(&instances).filter(|instance| !changed.contains(instance)) else {
                    continue;
                };
                changed.push(instance);
                self.changed(&uid, &clock, instance, hours);
            }
        }
    }

    /// A changed, moved or cancelled instance, at times together with all that follow.
    fn changed(&mut self, uid: &str, clock: &Clock, instance: i64, hours: i64) {
        let old = self.local(clock, instance);
        let range = if self.one_in(5) { ";RANGE=THISANDFUTURE" } else { "" };
        let id = self.time("RECURRENCE-ID", clock, old);
        let (name, value) = id.split_at("RECURRENCE-ID".len());
        let moved = match clock {
            Clock::Date => old + TimeDelta::days(self.below(7).cast_signed() - 3),
            _ => old + TimeDelta::minutes(30 * (self.below(200).cast_signed() - 100)),
        };
        let mut body = vec![format!("UID:{uid}"), format!("{name}{range}{value}"), self.time("DTSTART", clock, moved)];
        // As a DURATION: the end of an instance that lies across a change of the clocks is told in one way only.
        body.push(if matches!(clock, Clock::Date) {
            "DURATION:P2D".into()
        } else {
            format!("DURATION:PT{}H", hours + 1)
        });
        body.push(if self.one_in(2) { "SUMMARY:moved".into() } else { "SUMMARY:SAP Maintenance Window".into() });
        if self.one_in(4) {
            body.push("STATUS:CANCELLED".into());
        }
        self.component(body);
    }

    /// RDATEs: single ones, in UTC, or periods.
    fn further(&mut self, clock: &Clock, start: NaiveDateTime, body: &mut Vec<String>) {
        if !self.one_in(3) {
            return;
        }
        let day = start + TimeDelta::days(3 + self.below(300).cast_signed());
        let odd = day.date().and_hms_opt(10, 7, 0).unwrap();
        // In UTC only where no days are to be added: the library would add them by a clock that is never changed.
        let has_days = body.iter().any(|line| line.starts_with("X-DAYS"));
        match (clock, self.below(3)) {
            (Clock::Date, _) => body.push(self.time("RDATE", clock, day)),
            (Clock::Zoned(..), 0) if !has_days => body.push(format!("RDATE:{}Z", odd.format("%Y%m%dT%H%M%S"))),
            (Clock::Zoned(..) | Clock::Utc, 1) => {
                let period = self.time("RDATE", clock, odd);
                let (name, value) = period.split_at("RDATE".len());
                let until = if self.one_in(2) {
                    "PT5H".to_owned()
                } else {
                    let suffix = if matches!(clock, Clock::Utc) { "Z" } else { "" };
                    format!("{}{suffix}", (odd + TimeDelta::hours(3)).format("%Y%m%dT%H%M%S"))
                };
                body.push(format!("{name};VALUE=PERIOD{value}/{until}"));
            }
            _ => body.push(self.time("RDATE", clock, odd)),
        }
    }

    /// An EXDATE in the event's clock, in UTC or for the whole day.
    fn exception(&mut self, clock: &Clock, instance: i64) -> String {
        let local = self.local(clock, instance);
        match (clock, self.below(4)) {
            (Clock::Zoned(..), 0) => self.time("EXDATE", &Clock::Utc, self.local(&Clock::Utc, instance)),
            (Clock::Zoned(..), 1) => self.time("EXDATE", &Clock::Date, local),
            _ => self.time("EXDATE", clock, local),
        }
    }

    fn clock(&mut self) -> Clock {
        let zone = |name: &str| Zone::parse(name).unwrap();
        match self.below(12) {
            0 => Clock::Utc,
            1 => Clock::Floating,
            2 | 3 => Clock::Date,
            4 => {
                let (name, iana) = self.pick(&WINDOWS_NAMES);
                Clock::Zoned(name.to_owned(), zone(iana))
            }
            5 => self.described_zone(),
            _ => {
                let name = self.pick(&ZONES);
                Clock::Zoned(name.to_owned(), zone(name))
            }
        }
    }

    /// A zone that only this calendar knows, with the rules of Berlin. Its name is its own: the library keeps zones by name.
    fn described_zone(&mut self) -> Clock {
        let name = format!("Zone of {}-{}", self.seed, self.lines.len());
        let part = |kind: &str, month, time, from, to| {
            let rule = format!("RRULE:FREQ=YEARLY;BYMONTH={month};BYDAY=-1SU");
            let start = format!("DTSTART:19961027T{time}").replace("1027", if month == 3 { "0331" } else { "1027" });
            [
                format!("BEGIN:{kind}"),
                start,
                rule,
                format!("TZOFFSETFROM:{from}"),
                format!("TZOFFSETTO:{to}"),
                format!("END:{kind}"),
            ]
        };
        self.lines.extend(["BEGIN:VTIMEZONE".to_owned(), format!("TZID:{name}")]);
        self.lines.extend(part("DAYLIGHT", 3, "020000", "+0100", "+0200"));
        self.lines.extend(part("STANDARD", 10, "030000", "+0200", "+0100"));
        self.lines.push("END:VTIMEZONE".to_owned());
        Clock::Zoned(name, Zone::parse("Europe/Berlin").unwrap())
    }

    fn start(&mut self, clock: &Clock) -> NaiveDateTime {
        let year = 2022 + i32::try_from(self.below(4)).unwrap();
        // Months in which no clock is changed: by the standard the first instance tells how long all are, exactly, by the
        // library how long by the clock.
        let month = self.pick(&[1, 1, 7, 12]);
        let day = NaiveDate::from_ymd_opt(year, month, 1 + u32::try_from(self.below(27)).unwrap()).unwrap();
        let hour = match clock {
            Clock::Date => return day.and_hms_opt(0, 0, 0).unwrap(),
            // The library reads a time that the clocks skip in another way in a zone that a calendar describes.
            Clock::Zoned(name, _) if name.starts_with("Zone of") => 5 + self.below(17),
            // The hours in which clocks are changed.
            _ if self.one_in(2) => self.pick(&[0, 0, 1, 2, 2, 2, 3]),
            _ => self.below(24),
        };
        day.and_hms_opt(u32::try_from(hour).unwrap(), self.pick(&[0, 0, 30, 45]), 0).unwrap()
    }

    /// The property that says how long the event lasts, and about how many hours that is.
    fn length(&mut self, clock: &Clock, start: NaiveDateTime) -> (Vec<String>, i64) {
        let days = 1 + self.below(3).cast_signed();
        if matches!(clock, Clock::Date) {
            let property = match self.below(3) {
                0 => Vec::new(),
                1 => vec![self.time("DTEND", clock, start + TimeDelta::days(days))],
                _ => vec![format!("DURATION:P{days}D")],
            };
            return (property, days * 24);
        }
        let hours = self.pick(&[1, 2, 4, 8, 12, 26, 60]);
        match self.below(4) {
            0 => (vec![format!("DURATION:PT{hours}H")], hours),
            1 => (vec![format!("DURATION:P{days}DT{hours}H"), format!("X-DAYS:{days}")], hours + days * 24),
            2 => (vec![format!("DURATION:P{days}D"), format!("X-DAYS:{days}")], days * 24),
            _ => (vec![self.time("DTEND", clock, start + TimeDelta::hours(hours))], hours),
        }
    }

    /// A rule, and whether it has at most one instance a day.
    fn rule(&mut self, clock: &Clock, start: NaiveDateTime) -> (Option<String>, bool) {
        let is_date = matches!(clock, Clock::Date);
        let (mut parts, is_daily) = match self.below(if is_date { 9 } else { 13 }) {
            0 => return (None, false),
            1 | 2 => (self.weekly(start), true),
            3..=5 => (self.monthly(start), true),
            6 | 7 => (self.yearly(start), true),
            8 => (self.daily(), true),
            9 => (self.within_day(start), false),
            // On every night on which clocks are changed.
            _ => {
                return (
                    Some(self.pick(&["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU,FR", "FREQ=MONTHLY;BYDAY=SU"]).into()),
                    true,
                );
            }
        };
        let is_dense = !is_daily;
        match self.below(3) {
            0 => parts.push(format!("COUNT={}", 1 + self.below(if is_dense { 90 } else { 40 }))),
            // The end of a rule within a day, so that the library comes to one.
            1 | 2 if is_dense => parts.push(until(clock, start + TimeDelta::days(2 + self.below(60).cast_signed()))),
            1 => parts.push(until(clock, start + TimeDelta::days(self.below(1200).cast_signed()))),
            _ => {}
        }
        (Some(parts.join(";")), is_daily)
    }

    fn daily(&mut self) -> Vec<String> {
        let mut parts = vec![format!("FREQ=DAILY;INTERVAL={}", 1 + self.below(9))];
        match self.below(4) {
            0 => parts.push("BYMONTH=1,3,4,10,11".into()),
            1 => parts.push(self.weekdays()),
            2 => parts.push("BYMONTHDAY=1,2,8,9,15,-2,-1".into()),
            _ => {}
        }
        parts
    }

    fn weekly(&mut self, start: NaiveDateTime) -> Vec<String> {
        let mut parts = vec![format!("FREQ=WEEKLY;INTERVAL={}", 1 + self.below(3))];
        let week_start = self.below(7);
        parts.push(format!("WKST={}", DAYS[usize::try_from(week_start).unwrap()]));
        if self.one_in(2) {
            parts.push(self.weekdays());
            // The library counts positions of the first week from DTSTART on instead of from the week's start.
            if u64::from(start.weekday().num_days_from_monday()) == week_start && self.one_in(2) {
                parts.push("BYSETPOS=1,-1".into());
            }
        }
        if self.one_in(6) {
            parts.push("BYMONTH=3,5,10".into());
        }
        parts
    }

    fn monthly(&mut self, start: NaiveDateTime) -> Vec<String> {
        let mut parts = vec![format!("FREQ=MONTHLY;INTERVAL={}", self.pick(&[1, 1, 2, 5]))];
        match self.below(6) {
            0 => parts.push(format!("BYMONTHDAY={}", self.pick(&["1,15", "-1", "31", "29,30,31", "2,-2"]))),
            1 | 2 => parts.push(self.numbered_weekdays(5)),
            3 => parts.push(format!("{};BYSETPOS={}", self.weekdays(), self.pick(&["1", "-1", "2,-2", "1,3"]))),
            4 => parts.push(format!("{};BYMONTHDAY=8,9,10,11,12,13,14", self.weekdays())),
            _ => parts.push(format!("BYMONTHDAY={}", start.day())),
        }
        if self.one_in(6) {
            parts.push("BYMONTH=3,10,11,12".into());
        }
        parts
    }

    /// BYWEEKNO only with BYDAY: without it the library takes all seven days instead of that of DTSTART. It does not find
    /// the first week counted from the end in the days that lie in the year before.
    fn yearly(&mut self, start: NaiveDateTime) -> Vec<String> {
        let mut parts = vec![format!("FREQ=YEARLY;INTERVAL={}", self.pick(&[1, 1, 1, 2]))];
        match self.below(8) {
            0 => {
                parts.push(format!("BYYEARDAY={}", self.pick(&["1,100,200", "-1,60", "366,-366", "88,89,90,299,300"])))
            }
            1 => {
                parts.push(format!("BYWEEKNO={};{}", self.pick(&["1,20", "13,43,44", "53", "-1,10"]), self.weekdays()))
            }
            2 => parts.push(format!("BYMONTH={};{}", self.pick(&["3,10", "11", "4,9"]), self.numbered_weekdays(4))),
            3 => parts.push(self.numbered_weekdays(50)),
            4 => parts.push(format!("BYMONTH=3,11;{};BYSETPOS=2,-1", self.weekdays())),
            5 => parts.push("BYMONTHDAY=13;BYDAY=FR".into()),
            6 => parts.push(format!("BYMONTH={},3,10", start.month())),
            _ => {}
        }
        if self.one_in(4) {
            parts.push("WKST=SU".into());
        }
        parts
    }

    /// The library refuses an INTERVAL that steps over what BYHOUR and the like ask for, hence 1 beside them.
    fn within_day(&mut self, start: NaiveDateTime) -> Vec<String> {
        let rule = match self.below(8) {
            0 => format!("FREQ=HOURLY;INTERVAL={}", 1 + self.below(50)),
            1 => "FREQ=HOURLY;BYHOUR=1,2,3,22;BYMINUTE=0,30".into(),
            2 => format!("FREQ=HOURLY;INTERVAL=5;{}", self.weekdays()),
            3 => format!("FREQ=MINUTELY;INTERVAL={}", 31 + self.below(2000)),
            4 => "FREQ=MINUTELY;BYHOUR=2,3;BYMINUTE=15,45".into(),
            5 => format!("FREQ=SECONDLY;INTERVAL={}", 1801 + self.below(90_000)),
            6 => format!("FREQ=DAILY;BYHOUR=1,2,3,{};BYMINUTE=0,20,40;BYSETPOS=2,-1,4", start.hour()),
            _ => "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=0,2,12".into(),
        };
        vec![rule]
    }

    fn weekdays(&mut self) -> String {
        let mut days: Vec<&str> = (0..1 + self.below(3)).map(|_| self.pick(&DAYS)).collect();
        days.sort_unstable();
        days.dedup();
        format!("BYDAY={}", days.join(","))
    }

    /// All numbered: plain ones beside them the library takes as a second condition.
    fn numbered_weekdays(&mut self, most: u64) -> String {
        let number = |this: &mut Self| {
            let number = 1 + this.below(most);
            format!("{}{number}{}", this.pick(&["", "+", "-"]), this.pick(&DAYS))
        };
        let days: Vec<String> = (0..1 + self.below(2)).map(|_| number(self)).collect();
        format!("BYDAY={}", days.join(","))
    }

    /// The starts of the instances that the event has without any exceptions.
    fn instances(&self, body: &[String]) -> Vec<i64> {
        let mut lines = vec!["BEGIN:VCALENDAR".to_owned()];
        lines.extend(self.zones());
        lines.push("BEGIN:VEVENT".to_owned());
        lines.extend(body.iter().cloned());
        lines.extend(["END:VEVENT".to_owned(), "END:VCALENDAR".to_owned()]);
        let text = lines.join("\n");
        let zone = Zone::parse(self.default_zone).unwrap();
        let calendar = Calendar::parse_in(&text, zone, &Limits::default());
        let calendar = calendar.map_err(|error| format!("{error}\n{text}")).unwrap();
        let end = NaiveDate::from_ymd_opt(2026, 6, 1).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp();
        let windows: Vec<Window> = calendar.windows(Timestamp(0), Timestamp::from_secs(end), None).unwrap();
        windows.iter().map(|window| window.start.secs()).collect()
    }

    /// The lines of the VTIMEZONEs so far.
    fn zones(&self) -> Vec<String> {
        let mut inside = false;
        let keep = |line: &&String| {
            let was_inside = inside;
            inside = (inside || *line == "BEGIN:VTIMEZONE") && *line != "END:VTIMEZONE";
            inside || was_inside
        };
        self.lines.iter().filter(keep).cloned().collect()
    }

    fn local(&self, clock: &Clock, instant: i64) -> NaiveDateTime {
        let zone = match clock {
            Clock::Utc => Zone::UTC,
            Clock::Floating | Clock::Date => Zone::parse(self.default_zone).unwrap(),
            Clock::Zoned(_, zone) => *zone,
        };
        zone.local(Timestamp::from_secs(instant))
    }

    fn time(&self, name: &str, clock: &Clock, time: NaiveDateTime) -> String {
        let text = time.format("%Y%m%dT%H%M%S");
        match clock {
            Clock::Utc => format!("{name}:{text}Z"),
            Clock::Floating => format!("{name}:{text}"),
            Clock::Date => format!("{name};VALUE=DATE:{}", time.format("%Y%m%d")),
            Clock::Zoned(zone, _) => format!("{name};TZID={zone}:{text}"),
        }
    }

    fn component(&mut self, body: Vec<String>) {
        self.lines.push("BEGIN:VEVENT".to_owned());
        self.lines.extend(body);
        // Of no concern to anybody here.
        self.lines.extend(
            ["BEGIN:VALARM", "TRIGGER:-PT15M", "ACTION:DISPLAY", "DURATION:PT5M", "END:VALARM"].map(str::to_owned),
        );
        self.lines.push("END:VEVENT".to_owned());
    }

    /// The calendar's text, some lines folded at any place.
    fn fold(&mut self) -> String {
        let mut text = String::from("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n");
        for line in std::mem::take(&mut self.lines) {
            let at = if self.one_in(6) { 1 + self.below(60) } else { 70 };
            for (n, c) in (0_u64..).zip(line.chars()) {
                if n > 0 && n % at == 0 {
                    text.push_str("\r\n ");
                }
                text.push(c);
            }
            text.push_str("\r\n");
        }
        text + "END:VCALENDAR\r\n"
    }

    fn choose(&mut self, from: &[i64]) -> Option<i64> {
        (!from.is_empty()).then(|| from[usize::try_from(self.below(from.len() as u64)).unwrap()])
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// SplitMix64.
    fn below(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// UNTIL in the form that DTSTART asks for; the library takes others for something else than they are.
fn until(clock: &Clock, time: NaiveDateTime) -> String {
    match clock {
        Clock::Date => time.format("UNTIL=%Y%m%d").to_string(),
        Clock::Floating => time.format("UNTIL=%Y%m%dT%H%M%S").to_string(),
        Clock::Utc | Clock::Zoned(..) => time.format("UNTIL=%Y%m%dT%H%M%SZ").to_string(),
    }
}
