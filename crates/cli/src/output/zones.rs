//! Times in a zone: that of what is shown, and the reader's own.

use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;

/// `Sun 2026-11-22 02:30 CET`; with seconds where there are some.
pub(crate) fn local(at: Timestamp, zone: Zone) -> String {
    let form = if at.secs() % 60 == 0 { "%a %Y-%m-%d %H:%M" } else { "%a %Y-%m-%d %H:%M:%S" };
    format!("{} {}", zone.local(at).format(form), zone.abbreviation(at))
}

/// The same in the reader's zone, if his clocks show something else then.
pub(crate) fn here(at: Timestamp, zone: Zone, own: Zone) -> Option<String> {
    Some(local(at, own)).filter(|here| *here != local(at, zone))
}

/// The zone of a name; UTC where this program does not know it.
pub(crate) fn named(name: &str) -> Zone {
    Zone::parse(name).unwrap_or(Zone::UTC)
}

/// The zone of whoever reads: `TZ`, or what the machine is set to, or UTC.
pub(crate) fn own() -> Zone {
    let link = std::fs::read_link("/etc/localtime").ok();
    from(std::env::var("TZ").ok().as_deref(), link.as_deref().and_then(|link| link.to_str()))
}

fn from(variable: Option<&str>, link: Option<&str>) -> Zone {
    let variable = variable.map(|name| name.trim_start_matches(':')).filter(|name| !name.is_empty());
    let name = variable.or_else(|| link?.split_once("zoneinfo/").map(|(_, name)| name));
    name.map_or(Zone::UTC, named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_with_their_weekday_and_zone() {
        let at = Timestamp::parse("2026-11-22T01:30:00Z").unwrap();
        assert_eq!(local(at, named("Europe/Prague")), "Sun 2026-11-22 02:30 CET");
        assert_eq!(local(at, Zone::UTC), "Sun 2026-11-22 01:30 UTC");
        assert_eq!(local(Timestamp(at.0 + 5_000_000), Zone::UTC), "Sun 2026-11-22 01:30:05 UTC");
    }

    #[test]
    fn another_name_of_the_same_time_is_not_told_twice() {
        let at = Timestamp::parse("2026-11-22T01:30:00Z").unwrap();
        assert_eq!(here(at, Zone::UTC, named("Etc/UTC")), None);
        assert_eq!(here(at, Zone::UTC, named("Asia/Tokyo")).as_deref(), Some("Sun 2026-11-22 10:30 JST"));
    }

    #[test]
    fn the_readers_zone_is_that_of_his_session_or_of_the_machine() {
        assert_eq!(from(Some("Asia/Tokyo"), Some("/usr/share/zoneinfo/Europe/Prague")).name(), "Asia/Tokyo");
        assert_eq!(from(Some(":Asia/Tokyo"), None).name(), "Asia/Tokyo");
        assert_eq!(from(None, Some("../usr/share/zoneinfo/Europe/Prague")).name(), "Europe/Prague");
        assert_eq!(from(Some(""), None), Zone::UTC);
        assert_eq!(from(Some("Nowhere/Land"), None), Zone::UTC);
    }
}
