//! A folder of a test's own, short enough for sockets and gone afterwards.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::watchdog;

/// The longest folder under which Salt's and PostgreSQL's socket names still fit into the kernel's 107 bytes.
const LONGEST_ROOT: usize = 40;

/// A temporary folder, removed on drop and also when the test process dies without dropping it.
#[derive(Debug)]
pub struct Scratch {
    folder: Option<tempfile::TempDir>,
    path: PathBuf,
}

impl Scratch {
    /// Makes a folder whose name starts with `label`.
    pub fn new(label: &str) -> Scratch {
        let configured = std::env::temp_dir();
        let parent = if configured.as_os_str().len() > LONGEST_ROOT { Path::new("/tmp") } else { &configured };
        // Readable for all: PostgreSQL runs as another user when the tests run as root.
        let folder = tempfile::Builder::new()
            .prefix(&format!("{label}-"))
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir_in(parent);
        match folder {
            Ok(folder) => {
                watchdog::watch_folder(folder.path());
                Scratch { path: folder.path().to_owned(), folder: Some(folder) }
            }
            Err(error) => panic!("cannot make a folder in {}: {error}", parent.display()),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file below the folder, with the folders on the way, and says where it is.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        let written =
            path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, content));
        match written {
            Ok(()) => path,
            Err(error) => panic!("cannot write {}: {error}", path.display()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Closing may fail while a killed process's last write lands; then the watchdog removes the rest.
        if self.folder.take().is_some_and(|folder| folder.close().is_ok()) {
            watchdog::forget_folder(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_lives_as_long_as_its_value() {
        let scratch = Scratch::new("scratch");
        let file = scratch.write("a/b", "content");
        assert_eq!(std::fs::read(&file).unwrap(), b"content");
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
