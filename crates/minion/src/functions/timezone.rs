//! `timezone.*`: where the machine's clock thinks it is.

use super::call::Answer;
use super::command::Command;
use super::{Call, Failure, Function};
use futures_util::FutureExt;
use std::path::Path;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "timezone.get_offset",
        params: &[],
        doc: "Tell how far the local time is from UTC: '+0200'.\n\n\
              CLI Example:\n\n    saltern run '*' timezone.get_offset\n",
        run: |call| async move { date(&call, "+%z").await }.boxed(),
    },
    Function {
        name: "timezone.get_zone",
        params: &[],
        doc: "Tell the name of the time zone: 'Europe/Berlin'.\n\n\
              CLI Example:\n\n    saltern run '*' timezone.get_zone\n",
        run: |call| {
            call.blocking(|_| {
                Ok(zone(Path::new("/etc"))
                    .ok_or_else(|| Failure::Command("Unable to determine timezone".into()))?
                    .into())
            })
        },
    },
    Function {
        name: "timezone.get_zonecode",
        params: &[],
        doc: "Tell the short name of the time zone: 'CEST'.\n\n\
              CLI Example:\n\n    saltern run '*' timezone.get_zonecode\n",
        run: |call| async move { date(&call, "+%Z").await }.boxed(),
    },
];

async fn date(call: &Call, format: &str) -> Answer {
    Ok(Command::tool("date").args([format]).succeed(&call.context).await?.text().trim().to_owned().into())
}

/// Where `/etc/localtime` points to; where it is a copy, what `/etc/timezone` says.
fn zone(etc: &Path) -> Option<String> {
    let link = std::fs::read_link(etc.join("localtime")).ok();
    let linked = link.as_ref().and_then(|link| Some(link.to_str()?.split_once("zoneinfo/")?.1.to_owned()));
    linked.or_else(|| {
        Some(std::fs::read_to_string(etc.join("timezone")).ok()?.trim().to_owned()).filter(|zone| !zone.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn the_zone_is_where_localtime_points_to() {
        let etc = tempfile::tempdir().unwrap();
        assert_eq!(zone(etc.path()), None);
        std::fs::write(etc.path().join("timezone"), "Etc/UTC\n").unwrap();
        assert_eq!(zone(etc.path()).as_deref(), Some("Etc/UTC"));
        std::os::unix::fs::symlink("/usr/share/zoneinfo/Europe/Berlin", etc.path().join("localtime")).unwrap();
        assert_eq!(zone(etc.path()).as_deref(), Some("Europe/Berlin"));
    }

    #[tokio::test]
    async fn the_offset_has_a_sign_and_four_digits() {
        let offset = Bench::new().call("timezone.get_offset", &[], &[]).await;
        let offset = offset.as_str().unwrap();
        assert!(offset.len() == 5 && offset.starts_with(['+', '-']), "{offset}");
    }
}
