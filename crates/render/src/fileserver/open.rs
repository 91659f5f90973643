//! Opening a file below a root so that nothing can lead outside, not even a link that changes meanwhile.
//!
//! The kernel does it (`openat2` with `RESOLVE_BENEATH`) where it can. That call refuses every absolute link, even one
//! that points back into the root, so those are resolved first and the result is opened without following any link.
//! Where the kernel lacks the call, the path of what was opened is checked afterwards.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::error::Error;

/// The regular file at `rel` below `root`, or nothing if there is none that may be served. `rel` is clean.
pub(super) fn open_beneath(root: &Path, rel: &str) -> Result<Option<File>, Error> {
    let Ok(dir) = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return Ok(None);
    };
    let opened = match open_resolved(&dir, Path::new(rel), ResolveFlags::BENEATH) {
        Err(Errno::XDEV) => open_canonical(root, rel, &dir),
        Err(Errno::NOSYS | Errno::PERM) => open_checked(root, rel),
        other => other,
    };
    match opened {
        Ok(fd) => {
            let file = File::from(fd);
            let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
            Ok(is_file.then_some(file))
        }
        Err(
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::ISDIR | Errno::NXIO | Errno::NAMETOOLONG,
        ) => Ok(None),
        Err(err) => Err(Error::Io { path: rel.to_owned(), problem: err.to_string() }),
    }
}

/// `NONBLOCK` so that a named pipe in a root cannot hold us; it means nothing for regular files.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn open_resolved(dir: &OwnedFd, rel: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    loop {
        match openat2(dir, rel, READ, Mode::empty(), resolve | ResolveFlags::NO_MAGICLINKS) {
            // The kernel saw the tree change under it and asks to try again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

fn open_canonical(root: &Path, rel: &str, dir: &OwnedFd) -> Result<OwnedFd, Errno> {
    let (Ok(root), Ok(target)) = (fs::canonicalize(root), fs::canonicalize(root.join(rel))) else {
        return Err(Errno::NOENT);
    };
    let inside = target.strip_prefix(&root).map_err(|_| Errno::XDEV)?;
    open_resolved(dir, inside, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

fn open_checked(root: &Path, rel: &str) -> Result<OwnedFd, Errno> {
    let fd = openat(CWD, root.join(rel), READ, Mode::empty())?;
    let real = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(|_| Errno::XDEV)?;
    let root = fs::canonicalize(root).map_err(|_| Errno::NOENT)?;
    if real.starts_with(root) { Ok(fd) } else { Err(Errno::XDEV) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn without_the_kernels_help_links_out_are_refused_too() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "x").unwrap();
        fs::write(root.path().join("plain"), "y").unwrap();
        symlink(outside.path().join("secret"), root.path().join("leak")).unwrap();
        symlink("plain", root.path().join("inside")).unwrap();
        assert_eq!(open_checked(root.path(), "leak").unwrap_err(), Errno::XDEV);
        assert!(open_checked(root.path(), "inside").is_ok());
    }
}
