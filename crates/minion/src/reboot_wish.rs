//! Whether this machine wants a reboot: package tools leave a file behind when it does.
//!
//! Looked at every few seconds and told only when it has changed, under the tag that Uyuni's beacon uses.

use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// Time between two looks.
pub(crate) const LOOK: Duration = Duration::from_secs(5);

/// Where package tools of the common distributions say it.
pub(crate) const FILES: [&str; 2] = ["/run/reboot-needed", "/run/reboot-required"];

/// What was last told.
#[derive(Debug)]
pub(crate) struct RebootWish {
    files: Vec<PathBuf>,
    told: Option<bool>,
}

impl RebootWish {
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        Self { files, told: None }
    }

    /// What is to be told now: at the first look, and when it has changed.
    pub(crate) fn news(&mut self) -> Option<bool> {
        let needed = self.files.iter().any(|file| file.exists());
        (self.told.replace(needed) != Some(needed)).then_some(needed)
    }

    /// It could not be told.
    pub(crate) fn untold(&mut self) {
        self.told = None;
    }
}

/// The event that tells it.
pub(crate) fn event(id: &MinionId, needed: bool) -> Map {
    crate::jobs::event_load(id, &format!("salt/beacon/{id}/reboot_info/"), Value::map([("reboot_needed", needed)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_told_once_and_so_is_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("reboot-needed");
        let mut wish = RebootWish::new(vec![file.clone()]);
        assert_eq!((wish.news(), wish.news()), (Some(false), None));
        std::fs::write(&file, "").unwrap();
        assert_eq!((wish.news(), wish.news()), (Some(true), None));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(wish.news(), Some(false));
    }
}
