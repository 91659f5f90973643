//! Acting on files and folders as wholes: make, move, copy, remove, give away.

use super::super::call::Answer;
use super::super::{Call, Failure, Function, Outcome, Param};
use super::owner::{Named, mode_of};
use super::{absolute, normal, path, python_error, unexpected};
use crate::clock;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
use saltern_core::value::{Map, Value};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

const PATH: Param = Param::Required("path");
const USER: Param = Param::Optional("user", "None");
const GROUP: Param = Param::Optional("group", "None");
const MODE: Param = Param::Optional("mode", "None");
const SRC: Param = Param::Required("src");
const DST: Param = Param::Required("dst");

pub(in super::super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "file.copy",
        params: &[SRC, DST, Param::Optional("recurse", "False"), Param::Optional("remove_existing", "False")],
        doc: "Copy a file, or with recurse a folder, with owner and mode.\n\n\
              remove_existing\n    whether what is at the destination is removed first\n\n\
              CLI Example:\n\n    saltern run '*' file.copy /path/to/src /path/to/dst recurse=True\n",
        run: |call| call.blocking(copy),
    },
    Function {
        name: "file.link",
        params: &[SRC, PATH],
        doc: "Give a file a second name.\n\n\
              CLI Example:\n\n    saltern run '*' file.link /path/to/file /path/to/link\n",
        run: |call| call.blocking(hard_link),
    },
    Function {
        name: "file.makedirs",
        params: &[PATH, USER, GROUP, MODE],
        doc: "Make the folders that a path is in. A path that ends in a slash is itself a folder.\n\n\
              CLI Example:\n\n    saltern run '*' file.makedirs /opt/code/\n",
        run: |call| call.blocking(makedirs),
    },
    Function {
        name: "file.makedirs_perms",
        params: &[Param::Required("name"), USER, GROUP, Param::Optional("mode", "'0755'")],
        doc: "Make a folder, and those it is in, with owner and mode.\n\n\
              CLI Example:\n\n    saltern run '*' file.makedirs_perms /opt/code mode=0750\n",
        run: |call| {
            call.blocking(|call| {
                let mode = mode_of(call)?.unwrap_or(0o755);
                make_folders(call, &normal(&path(call, "name")?), Some(mode))?;
                Ok(Value::Nil.into())
            })
        },
    },
    Function {
        name: "file.mkdir",
        params: &[Param::Required("dir_path"), USER, GROUP, MODE],
        doc: "Make a folder, and those it is in.\n\nCLI Example:\n\n    saltern run '*' file.mkdir /opt/code\n",
        run: |call| {
            call.blocking(|call| {
                make_folders(call, &normal(&path(call, "dir_path")?), mode_of(call)?)?;
                Ok(true.into())
            })
        },
    },
    Function {
        name: "file.move",
        params: &[SRC, DST, Param::Optional("disallow_copy_and_unlink", "False")],
        doc: "Move a file or a folder, also to another filesystem.\n\n\
              disallow_copy_and_unlink\n    whether it must be a mere change of names\n\n\
              CLI Example:\n\n    saltern run '*' file.move /path/to/src /path/to/dst\n",
        run: |call| call.blocking(move_),
    },
    Function {
        name: "file.remove",
        params: &[PATH, Param::Keywords("kwargs")],
        doc: "Remove a file, or a folder with all that is in it.\n\n\
              CLI Example:\n\n    saltern run '*' file.remove /tmp/foo\n",
        run: |call| call.blocking(remove),
    },
    Function {
        name: "file.rename",
        params: &[SRC, DST],
        doc: "Give a file or a folder another name.\n\n\
              CLI Example:\n\n    saltern run '*' file.rename /path/to/src /path/to/dst\n",
        run: |call| call.blocking(rename),
    },
    Function {
        name: "file.rmdir",
        params: &[
            PATH,
            Param::Optional("recurse", "False"),
            Param::Optional("verbose", "False"),
            Param::Optional("older_than", "None"),
        ],
        doc: "Remove an empty folder.\n\n\
              recurse\n    also the empty folders in it\nverbose\n    tell what was removed\n\
              older_than\n    only what was not changed for this many days\n\n\
              CLI Example:\n\n    saltern run '*' file.rmdir /tmp/foo recurse=True\n",
        run: |call| call.blocking(rmdir),
    },
    Function {
        name: "file.symlink",
        params: &[
            SRC,
            PATH,
            Param::Optional("force", "False"),
            Param::Optional("atomic", "False"),
            Param::Optional("follow_symlinks", "True"),
        ],
        doc: "Make a symbolic link.\n\nforce\n    whether what is there is replaced\n\
              atomic\n    the same, at one stroke\n\n\
              \
              CLI Example:\n\n    saltern run '*' file.symlink /path/to/file /path/to/link\n",
        run: |call| call.blocking(make_symlink),
    },
    Function {
        name: "file.touch",
        params: &[Param::Required("name"), Param::Optional("atime", "None"), Param::Optional("mtime", "None")],
        doc: "Make an empty file if there is none, and set its times, in seconds.\n\n\
              CLI Example:\n\n    saltern run '*' file.touch /var/log/emptyfile\n",
        run: |call| call.blocking(touch),
    },
    Function {
        name: "file.truncate",
        params: &[PATH, Param::Required("length")],
        doc: "Cut a file to a length in bytes.\n\n\
              CLI Example:\n\n    saltern run '*' file.truncate /path/to/file 512\n",
        run: |call| {
            call.blocking(|call| {
                let (path, length) = (path(call, "path")?, call.int("length", 0)?);
                let length =
                    u64::try_from(length).map_err(|_| Failure::Arguments("'length' must not be negative".into()))?;
                let file = std::fs::OpenOptions::new().write(true).open(&path);
                file.and_then(|file| file.set_len(length)).map_err(unexpected(&path))?;
                Ok(Value::Nil.into())
            })
        },
    },
];

fn makedirs(call: &Call) -> Answer {
    let given = path(call, "path")?;
    let text = given.to_string_lossy();
    let folder =
        normal(Path::new(text.rsplit_once('/').map_or("", |(folder, _)| if folder.is_empty() { "/" } else { folder })));
    if folder.is_dir() {
        return Ok(format!("Directory '{}' already exists", folder.display()).into());
    }
    if folder.exists() {
        return Ok(format!("The path '{}' already exists and is not a directory", folder.display()).into());
    }
    if !folder.is_absolute() {
        let text = format!(
            "Recursive creation for path '{}' would result in an infinite loop. Please use an absolute path.",
            folder.display()
        );
        return Err(Failure::Invocation(text));
    }
    make_folders(call, &folder, mode_of(call)?)?;
    Ok(Value::Nil.into())
}

/// Makes a folder and those it is in; all that are made get owner and mode.
fn make_folders(call: &Call, folder: &Path, mode: Option<u32>) -> Result<(), Failure> {
    let (user, group) = (Named::user(call)?, Named::group(call)?);
    for (named, word) in [(&user, "User"), (&group, "Group")] {
        if matches!(named, Named::Unknown) {
            return Err(Failure::Command(format!("{word} does not exist")));
        }
    }
    let (uid, gid) = (user.number(), group.number());
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.is_dir()).collect();
    for path in missing.into_iter().rev() {
        let made = (|| {
            std::fs::create_dir(path)?;
            if uid.is_some() || gid.is_some() {
                chown(path, uid, gid)?;
            }
            mode.map_or(Ok(()), |mode| std::fs::set_permissions(path, Permissions::from_mode(mode)))
        })();
        made.map_err(unexpected(path))?;
    }
    Ok(())
}

fn remove(call: &Call) -> Answer {
    let path = absolute(call, "path", "File path must be absolute: {}")?;
    if normal(&path) == Path::new("/") {
        return Err(Failure::Invocation("the root of the system is not removed".into()));
    }
    let removed = match path.symlink_metadata() {
        Err(_) => return Ok(false.into()),
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(&path),
        Ok(_) => std::fs::remove_file(&path),
    };
    let failed =
        |error| Failure::Command(format!("Could not remove '{}': {}", path.display(), python_error(&error, &path)));
    removed.map_err(failed)?;
    Ok(true.into())
}

fn rename(call: &Call) -> Answer {
    let (src, dst) = (absolute(call, "src", "File path must be absolute.")?, path(call, "dst")?);
    let failed = |_| Failure::Command(format!("Could not rename '{}' to '{}'", src.display(), dst.display()));
    std::fs::rename(&src, &dst).map_err(failed)?;
    Ok(true.into())
}

fn hard_link(call: &Call) -> Answer {
    let (src, path) = (absolute(call, "src", "File path must be absolute.")?, path(call, "path")?);
    let failed =
        |error| Failure::Command(format!("Could not create '{}': {}", path.display(), python_error(&error, &src)));
    std::fs::hard_link(&src, &path).map_err(failed)?;
    Ok(true.into())
}

fn copy(call: &Call) -> Answer {
    let (src, dst) = (absolute(call, "src", "File path must be absolute.")?, path(call, "dst")?);
    let Ok(meta) = src.metadata() else {
        return Err(Failure::Command(format!("No such file or directory '{}'", src.display())));
    };
    let failed = |_| Failure::Command(format!("Could not copy '{}' to '{}'", src.display(), dst.display()));
    if meta.is_dir() || dst.is_dir() {
        if !call.flag("recurse", false) {
            let text = "Cannot copy overwriting a directory without recurse flag set to true!";
            return Err(Failure::Invocation(text.into()));
        }
        if call.flag("remove_existing", false) && dst.exists() {
            std::fs::remove_dir_all(&dst).map_err(failed)?;
        }
        if normal(&dst).starts_with(normal(&src)) {
            return Err(Failure::Invocation("a folder is not copied into itself".into()));
        }
        copy_tree(&src, &dst).map_err(failed)?;
    } else {
        std::fs::copy(&src, &dst).map_err(failed)?;
    }
    // Only root may give files away; for others the copy is simply theirs.
    let _ = chown(&dst, Some(meta.uid()), Some(meta.gid()));
    std::fs::set_permissions(&dst, Permissions::from_mode(meta.mode() & 0o7777)).map_err(failed)?;
    Ok(true.into())
}

/// Copies a folder over another; links stay links.
fn copy_tree(src: &Path, dst: &Path) -> io::Result<()> {
    if !src.symlink_metadata()?.is_dir() {
        return std::fs::copy(src, dst).map(|_| ());
    }
    std::fs::create_dir_all(dst)?;
    for entry in src.read_dir()? {
        let entry = entry?;
        let (kind, place) = (entry.file_type()?, dst.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&entry.path(), &place)?;
            std::fs::set_permissions(&place, entry.metadata()?.permissions())?;
        } else if kind.is_symlink() {
            if place.is_symlink() || place.is_file() {
                std::fs::remove_file(&place)?;
            }
            symlink(entry.path().read_link()?, &place)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}

fn move_(call: &Call) -> Answer {
    if call.flag("disallow_copy_and_unlink", false) {
        return rename(call);
    }
    let src = absolute(call, "src", "Source path must be absolute.")?;
    let dst = absolute(call, "dst", "Destination path must be absolute.")?;
    let failed =
        |text: String| Failure::Command(format!("Unable to move '{}' to '{}': {text}", src.display(), dst.display()));
    let place = match src.file_name() {
        Some(name) if dst.is_dir() => dst.join(name),
        _ => dst.clone(),
    };
    if place != dst && place.symlink_metadata().is_ok() {
        return Err(failed(format!("Destination path '{}' already exists", place.display())));
    }
    let moved = match std::fs::rename(&src, &place) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_over(&src, &place),
        done => done,
    };
    moved.map_err(|error| failed(python_error(&error, &src)))?;
    let comment = format!("'{}' moved to '{}'", src.display(), dst.display());
    Ok(Value::map([("result", Value::from(true)), ("comment", comment.into())]).into())
}

/// Moves what a change of names cannot.
fn copy_over(src: &Path, dst: &Path) -> io::Result<()> {
    let meta = src.symlink_metadata()?;
    if meta.is_symlink() {
        symlink(src.read_link()?, dst)?;
        return std::fs::remove_file(src);
    }
    copy_tree(src, dst)?;
    chown(dst, Some(meta.uid()), Some(meta.gid()))?;
    if meta.is_dir() { std::fs::remove_dir_all(src) } else { std::fs::remove_file(src) }
}

fn make_symlink(call: &Call) -> Answer {
    let (src, path) = (call.text("src")?, absolute(call, "path", "Link path must be absolute: {}")?);
    let (is_forced, is_atomic) = (call.flag("force", false), call.flag("atomic", false));
    let failed = |_| Failure::Command(format!("Could not create '{}'", path.display()));
    let is_there = if call.flag("follow_symlinks", true) { path.exists() } else { path.symlink_metadata().is_ok() };
    if path.is_symlink() {
        if path.read_link().is_ok_and(|target| normal(&target) == normal(Path::new(&src))) {
            return Ok(true.into());
        }
        if !is_forced && !is_atomic {
            return Err(Failure::Command(format!("Found existing symlink: {}", path.display())));
        }
    }
    if is_there && !is_forced && !is_atomic {
        return Err(Failure::Command(format!("Existing path is not a symlink: {}", path.display())));
    }
    if is_atomic {
        let fresh = path.with_file_name(format!(".{}.{}", std::process::id(), clock::now().0));
        symlink(&src, &fresh).map_err(failed)?;
        return match std::fs::rename(&fresh, &path) {
            Ok(()) => Ok(true.into()),
            Err(error) => {
                let _ = std::fs::remove_file(&fresh);
                Err(failed(error))
            }
        };
    }
    if is_forced && path.symlink_metadata().is_ok() {
        std::fs::remove_file(&path).map_err(unexpected(&path))?;
    }
    symlink(&src, &path).map_err(failed)?;
    Ok(true.into())
}

fn touch(call: &Call) -> Answer {
    let name = path(call, "name")?;
    let time = |param: &str| match call.get(param) {
        None => Ok(None),
        Some(_) => {
            call.int(param, 0).map(Some).map_err(|_| Failure::Invocation("atime and mtime must be integers".into()))
        }
    };
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let given = |seconds: Option<i64>| seconds.map_or(now, |tv_sec| Timespec { tv_sec, tv_nsec: 0 });
    let times = Timestamps { last_access: given(time("atime")?), last_modification: given(time("mtime")?) };
    let made = if name.exists() {
        Ok(())
    } else {
        std::fs::OpenOptions::new().create(true).append(true).open(&name).map(drop)
    };
    let set = made.and_then(|()| Ok(utimensat(CWD, &name, &times, AtFlags::empty())?));
    let plain = |error: io::Error| error.to_string().split(" (os error").next().unwrap_or_default().to_owned();
    set.map_err(|error| Failure::Command(plain(error)))?;
    Ok(name.exists().into())
}

fn rmdir(call: &Call) -> Answer {
    let path = absolute(call, "path", "File path must be absolute.")?;
    if !path.is_dir() {
        return Err(Failure::Invocation(format!("A valid directory was not specified: {}", path.display())));
    }
    let days = call.int("older_than", 0)?;
    let oldest = clock::now().0 / 1_000_000 - days.saturating_mul(86_400);
    let is_due = |folder: &Path| days == 0 || folder.metadata().is_ok_and(|meta| meta.mtime() < oldest);
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    let mut folders = vec![path.clone()];
    if call.flag("recurse", false) {
        let mut next = 0;
        while let Some(folder) = folders.get(next).cloned() {
            next += 1;
            let entries = folder.read_dir().into_iter().flatten().flatten();
            folders.extend(
                entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
            );
        }
    }
    // The innermost first: what was found last.
    for folder in folders.iter().rev().filter(|folder| is_due(folder)) {
        match std::fs::remove_dir(folder) {
            Ok(()) => deleted.push(Value::from(folder.to_string_lossy().into_owned())),
            Err(error) => {
                let name = folder.to_string_lossy().into_owned();
                errors.push(Value::list([name, python_error(&error, folder)]));
            }
        }
    }
    let result = errors.is_empty() && !deleted.is_empty();
    if !call.flag("verbose", false) {
        return Ok(result.into());
    }
    let mut told = Map::with_capacity(3);
    told.push("deleted", deleted);
    told.push("errors", errors);
    told.push("result", result);
    Ok(Outcome::from(told))
}
