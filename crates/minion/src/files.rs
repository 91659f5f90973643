//! Small files that must be there whole or not at all.

use crate::Error;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file atomically and makes it last: after this returns, a power cut leaves the new content.
pub(crate) fn replace_file(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let fresh = path.with_extension("new");
    let written = (|| {
        let dir = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&fresh)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        sync_dir(dir)
    })();
    written.map_err(|error| {
        // A file that could not be finished is of no use, and may be what fills the disk.
        let _ = fs::remove_file(&fresh);
        Error::file("write", path, error)
    })
}

/// Makes a change of names in a directory last.
pub(crate) fn sync_dir(dir: &Path) -> std::io::Result<()> {
    fs::File::open(dir)?.sync_all()
}
