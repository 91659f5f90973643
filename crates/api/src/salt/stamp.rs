//! Times as salt-api's clients know them (the forms of Salt 3006 and 3007).

use saltern_core::ids::Jid;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;

/// `2026-11-15T19:13:46.415374`: UTC without saying so. SaltGUI appends a `Z` itself.
pub(super) fn stamp(at: Timestamp) -> String {
    plain(&at.stamp()).to_owned()
}

/// A stamp of any version in the form without an offset.
fn plain(stamp: &str) -> &str {
    stamp.strip_suffix("+00:00").unwrap_or(stamp)
}

/// Puts the `_stamp` of an event's data into the form without an offset.
pub(super) fn restamp(data: &mut Value) {
    let Value::Map(map) = data else { return };
    if let Some(Value::Text(text)) = map.get("_stamp")
        && plain(text).len() < text.len()
    {
        let plain = Value::from(plain(text));
        map.insert("_stamp", plain);
    }
}

/// Seconds since the epoch with a fraction, as log-ins tell them.
pub(super) fn seconds(at: Timestamp) -> f64 {
    at.micros() as f64 / 1e6
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `2026, Nov 15 18:54:13.231715`, from a job's id; nothing for what does not begin with a date.
pub(super) fn start_time(jid: &str) -> String {
    let Some(jid) = Jid::parse(jid).filter(|jid| jid.instant().is_some()) else { return String::new() };
    let jid = jid.as_str();
    let month = jid[4..6].parse().ok().and_then(|month: usize| MONTHS.get(month.checked_sub(1)?)).unwrap_or(&"");
    let (year, day, hour, minute) = (&jid[..4], &jid[6..8], &jid[8..10], &jid[10..12]);
    format!("{year}, {month} {day} {hour}:{minute}:{}.{}", &jid[12..14], &jid[14..])
}

/// A time that somebody wrote, as the id a job of that moment would have: the form above with any of its end left out,
/// `2026-11-15[ T]18:54[:13]`, or the beginning of a job's id.
pub(super) fn read_time(text: &str) -> Option<Jid> {
    let text = text.trim();
    let mut digits = String::with_capacity(20);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 20 {
        digits.push_str(text);
    } else {
        let words: Vec<&str> =
            text.split([',', ' ', '-', ':', 'T', '.', 'Z', '/']).filter(|word| !word.is_empty()).collect();
        for (n, word) in words.iter().enumerate() {
            match n {
                0 if word.len() == 4 => digits.push_str(word),
                1 => match MONTHS.iter().position(|month| word.get(..3).is_some_and(|w| w.eq_ignore_ascii_case(month)))
                {
                    Some(month) => digits.push_str(&format!("{:02}", month + 1)),
                    None => digits.push_str(&format!("{:0>2}", word)),
                },
                2..=5 => digits.push_str(&format!("{:0>2}", word)),
                6 => digits.push_str(&format!("{:0<6}", word)),
                _ => return None,
            }
        }
    }
    // What is left out is the beginning of it: the first day, midnight.
    const FIRST: &str = "00000101000000000000";
    if digits.len() < 4 || digits.len() > 20 {
        return None;
    }
    digits.push_str(FIRST.get(digits.len()..).unwrap_or(""));
    Jid::parse(&digits).filter(|jid| jid.instant().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stamps_have_no_offset() {
        assert_eq!(stamp(Timestamp(1_794_772_591_000_001)), "2026-11-15T19:56:31.000001");
        let mut data = Value::map([("_stamp", "2026-11-15T19:03:01.104433+00:00")]);
        restamp(&mut data);
        assert_eq!(data, Value::map([("_stamp", "2026-11-15T19:03:01.104433")]));
    }

    #[test]
    fn a_jobs_start_is_read_from_its_id() {
        assert_eq!(start_time("20261115185413231715"), "2026, Nov 15 18:54:13.231715");
        assert_eq!(start_time("20200101000000000000"), "2020, Jan 01 00:00:00.000000");
        for odd in ["foo", "1", "", "99999999999999999999"] {
            assert_eq!(start_time(odd), "", "{odd}");
        }
    }

    #[test]
    fn times_are_read_in_the_forms_people_write() {
        let check = |text: &str, jid: Option<&str>| {
            assert_eq!(read_time(text).map(|jid| jid.to_string()).as_deref(), jid, "{text:?}");
        };
        check("2026, Nov 15 18:54", Some("20261115185400000000"));
        check("2026, Nov 15 18:54:13.231715", Some("20261115185413231715"));
        check("2026-11-15", Some("20261115000000000000"));
        check("2026-11-15T18:54:13Z", Some("20261115185413000000"));
        check("2026 November 5", Some("20261105000000000000"));
        check("2026", Some("20260101000000000000"));
        check("20261115185413231715", Some("20261115185413231715"));
        check("yesterday", None);
        check("2026-13-40", None);
        check("", None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in "\\PC{0,30}") {
            read_time(&text);
            start_time(&text);
        }

        #[test]
        fn a_start_time_reads_back(micros in 0i64..4_000_000_000_000_000) {
            let jid = Jid::at(Timestamp(micros));
            prop_assert_eq!(read_time(&start_time(jid.as_str())), Some(jid));
        }
    }
}
