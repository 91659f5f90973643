//! Looking at files: what is there, of what kind, whose.

use super::super::call::Answer;
use super::super::digest::KINDS;
use super::super::{Call, Digest, Failure, Function, Param, accounts};
use super::{absolute, content, expanded, normal, path, search, unexpected};
use rustix::fs::{Access, access};
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

const PATH: Param = Param::Required("path");
const FOLLOW: Param = Param::Optional("follow_symlinks", "True");

pub(in super::super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "file.access",
        params: &[PATH, Param::Required("mode")],
        doc: "Tell whether the minion may use a path: 'f' it is there, 'r' read, 'w' write, 'x' execute.\n\n\
              CLI Example:\n\n    saltern run '*' file.access /etc/hosts r\n",
        run: |call| call.blocking(may_access),
    },
    Function {
        name: "file.basename",
        params: &[PATH],
        doc: "Give the last part of a path.\n\nCLI Example:\n\n    saltern run '*' file.basename /etc/hosts\n",
        run: |call| call.at_once(|call| Ok(call.text("path")?.rsplit('/').next().unwrap_or_default().into())),
    },
    Function {
        name: "file.check_hash",
        params: &[PATH, Param::Required("file_hash")],
        doc: "Tell whether a file has this hash, written as 'kind:digits', 'kind=digits' or the digits alone.\n\n\
              CLI Example:\n\n    saltern run '*' file.check_hash /etc/hosts md5:e138491e9d5b97023cea823fe17bac22\n",
        run: |call| call.blocking(check_hash),
    },
    Function {
        name: "file.directory_exists",
        params: &[PATH],
        doc: "Tell whether there is a folder.\n\nCLI Example:\n\n    saltern run '*' file.directory_exists /etc\n",
        run: |call| call.blocking(|call| Ok(path(call, "path")?.is_dir().into())),
    },
    Function {
        name: "file.dirname",
        params: &[PATH],
        doc: "Give a path without its last part.\n\nCLI Example:\n\n    saltern run '*' file.dirname /etc/hosts\n",
        run: |call| call.at_once(|call| Ok(folder_of(&call.text("path")?).into())),
    },
    Function {
        name: "file.diskusage",
        params: &[PATH],
        doc: "Give the size of a file, or of all files in a folder, in bytes.\n\n\
              CLI Example:\n\n    saltern run '*' file.diskusage /var/log\n",
        run: |call| call.blocking(|call| Ok(size_below(&path(call, "path")?).into())),
    },
    Function {
        name: "file.file_exists",
        params: &[PATH],
        doc: "Tell whether there is a file, not a folder.\n\n\
              CLI Example:\n\n    saltern run '*' file.file_exists /etc/hosts\n",
        run: |call| call.blocking(|call| Ok(path(call, "path")?.is_file().into())),
    },
    Function {
        name: "file.get_gid",
        params: &[PATH, FOLLOW],
        doc: "Give the number of a file's group.\n\nCLI Example:\n\n    saltern run '*' file.get_gid /etc/hosts\n",
        run: |call| call.blocking(|call| Ok(looked_at(call)?.1.gid().into())),
    },
    Function {
        name: "file.get_group",
        params: &[PATH, FOLLOW],
        doc: "Give the name of a file's group.\n\nCLI Example:\n\n    saltern run '*' file.get_group /etc/hosts\n",
        run: |call| call.blocking(|call| Ok(group_value(looked_at(call)?.1.gid()).into())),
    },
    Function {
        name: "file.get_hash",
        params: &[PATH, Param::Optional("form", "'sha256'"), Param::Optional("chunk_size", "65536")],
        doc: "Give the hash of a file: md5, sha1, sha224, sha256, sha384 or sha512.\n\n\
              CLI Example:\n\n    saltern run '*' file.get_hash /etc/hosts\n",
        run: |call| call.blocking(|call| Ok(hash(&path(call, "path")?, &form(call)?)?.into())),
    },
    Function {
        name: "file.get_mode",
        params: &[PATH, FOLLOW],
        doc: "Give the mode of a file, as four octal digits.\n\n\
              CLI Example:\n\n    saltern run '*' file.get_mode /etc/hosts\n",
        run: |call| call.blocking(|call| Ok(mode_text(&looked_at(call)?.1).into())),
    },
    Function {
        name: "file.get_sum",
        params: &[PATH, Param::Optional("form", "'sha256'")],
        doc: "Give the hash of a file, or say that there is none.\n\n\
              CLI Example:\n\n    saltern run '*' file.get_sum /etc/hosts\n",
        run: |call| {
            call.blocking(|call| {
                let path = path(call, "path")?;
                if path.is_file() { Ok(hash(&path, &form(call)?)?.into()) } else { Ok("File not found".into()) }
            })
        },
    },
    Function {
        name: "file.get_uid",
        params: &[PATH, FOLLOW],
        doc: "Give the number of a file's owner.\n\nCLI Example:\n\n    saltern run '*' file.get_uid /etc/hosts\n",
        run: |call| call.blocking(|call| Ok(looked_at(call)?.1.uid().into())),
    },
    Function {
        name: "file.get_user",
        params: &[PATH, FOLLOW],
        doc: "Give the name of a file's owner.\n\nCLI Example:\n\n    saltern run '*' file.get_user /etc/hosts\n",
        run: |call| call.blocking(|call| Ok(user_value(looked_at(call)?.1.uid()).into())),
    },
    Function {
        name: "file.gid_to_group",
        params: &[Param::Required("gid")],
        doc: "Give the name of a group by its number.\n\nCLI Example:\n\n    saltern run '*' file.gid_to_group 0\n",
        run: |call| {
            call.blocking(|call| {
                let number = group_number(call, "gid")?;
                Ok(number.map_or_else(|| "".into(), group_value).into())
            })
        },
    },
    Function {
        name: "file.group_to_gid",
        params: &[Param::Required("group")],
        doc: "Give the number of a group, or nothing.\n\nCLI Example:\n\n    saltern run '*' file.group_to_gid root\n",
        run: |call| call.blocking(|call| Ok(number_or_nothing(group_number(call, "group")?).into())),
    },
    Function {
        name: "file.is_link",
        params: &[PATH, Param::Optional("nostat", "False")],
        doc: "Tell whether a path is a symbolic link.\n\nCLI Example:\n\n    saltern run '*' file.is_link /etc/mtab\n",
        run: |call| call.blocking(|call| Ok(path(call, "path")?.is_symlink().into())),
    },
    Function {
        name: "file.join",
        params: &[Param::Rest("args")],
        doc: "Put the parts of a path together.\n\nCLI Example:\n\n    saltern run '*' file.join / usr local bin\n",
        run: |call| {
            call.at_once(|call| {
                let joined: PathBuf = call.rest().iter().map(|part| python_text(part).into_owned()).collect();
                Ok(joined.to_string_lossy().into_owned().into())
            })
        },
    },
    Function {
        name: "file.lstat",
        params: &[PATH],
        doc: "Give what the system knows of a path, a link not followed; nothing if it is not there.\n\n\
              CLI Example:\n\n    saltern run '*' file.lstat /etc/hosts\n",
        run: |call| call.blocking(lstat),
    },
    Function {
        name: "file.normpath",
        params: &[PATH],
        doc: "Give a path without '.', '..' and doubled slashes.\n\n\
              CLI Example:\n\n    saltern run '*' file.normpath /a/../b//c\n",
        run: |call| {
            call.at_once(|call| Ok(normal(Path::new(&call.text("path")?)).to_string_lossy().into_owned().into()))
        },
    },
    Function {
        name: "file.path_exists_glob",
        params: &[PATH],
        doc: "Tell whether there is anything that fits a pattern.\n\n\
              CLI Example:\n\n    saltern run '*' file.path_exists_glob '/etc/host*'\n",
        run: |call| {
            call.blocking(|call| Ok((!search::fitting(&path(call, "path")?.to_string_lossy())?.is_empty()).into()))
        },
    },
    Function {
        name: "file.read",
        params: &[PATH, Param::Optional("binary", "False")],
        doc: "Give the content of a file.\n\nCLI Example:\n\n    saltern run '*' file.read /etc/hostname\n",
        run: |call| call.blocking(|call| Ok(content(Path::new(&call.text("path")?))?.into())),
    },
    Function {
        name: "file.readdir",
        params: &[PATH],
        doc: "List what is in a folder.\n\nCLI Example:\n\n    saltern run '*' file.readdir /etc\n",
        run: |call| call.blocking(readdir),
    },
    Function {
        name: "file.readlink",
        params: &[PATH, Param::Optional("canonicalize", "False")],
        doc: "Tell where a link leads; with canonicalize, through all links on the way.\n\n\
              CLI Example:\n\n    saltern run '*' file.readlink /etc/mtab\n",
        run: |call| call.blocking(readlink),
    },
    Function {
        name: "file.seek_read",
        params: &[PATH, Param::Required("size"), Param::Required("offset")],
        doc: "Give a number of bytes of a file, from a place on.\n\n\
              CLI Example:\n\n    saltern run '*' file.seek_read /etc/hosts 16 0\n",
        run: |call| call.blocking(seek_read),
    },
    Function {
        name: "file.stats",
        params: &[PATH, Param::Optional("hash_type", "None"), FOLLOW],
        doc: "Give owner, size, times, mode and kind of a path.\n\nhash_type\n    a kind of hash to give as well\n\n\
              CLI Example:\n\n    saltern run '*' file.stats /etc/hosts\n",
        run: |call| call.blocking(stats),
    },
    Function {
        name: "file.statvfs",
        params: &[PATH],
        doc: "Give what the system knows of the filesystem a path is on.\n\n\
              CLI Example:\n\n    saltern run '*' file.statvfs /\n",
        run: |call| call.blocking(statvfs),
    },
    Function {
        name: "file.uid_to_user",
        params: &[Param::Required("uid")],
        doc: "Give the name of a user by number, or the number.\n\n\
              CLI Example:\n\n    saltern run '*' file.uid_to_user 0\n",
        run: |call| {
            call.blocking(|call| {
                let number = u32::try_from(call.int("uid", -1)?);
                Ok(number.map_or_else(|_| call.get("uid").cloned().unwrap_or_default(), user_value).into())
            })
        },
    },
    Function {
        name: "file.user_to_uid",
        params: &[Param::Required("user")],
        doc: "Give the number of a user, or nothing.\n\nCLI Example:\n\n    saltern run '*' file.user_to_uid root\n",
        run: |call| call.blocking(|call| Ok(number_or_nothing(user_number(call, "user")?).into())),
    },
];

/// The number of a user given by name or number; nothing if there is no such user.
pub(super) fn user_number(call: &Call, param: &str) -> Result<Option<u32>, Failure> {
    match call.get(param) {
        Some(Value::Int(number)) => Ok(u32::try_from(*number).ok()),
        None => Ok(None),
        Some(_) => Ok(accounts::user(&call.text(param)?).map(|user| user.uid)),
    }
}

/// The number of a group given by name or number; nothing if there is no such group.
pub(super) fn group_number(call: &Call, param: &str) -> Result<Option<u32>, Failure> {
    match call.get(param) {
        Some(Value::Int(number)) => Ok(u32::try_from(*number).ok()),
        None => Ok(None),
        Some(_) => Ok(accounts::group_id(&call.text(param)?)),
    }
}

/// The mode of a file, as Salt writes it.
pub(super) fn mode_text(meta: &Metadata) -> String {
    format!("{:04o}", meta.mode() & 0o7777)
}

/// What `os.stat` says, or `os.lstat` of a link that leads nowhere.
pub(super) fn metadata(path: &Path, is_followed: bool) -> Result<Metadata, Failure> {
    let followed = if is_followed { path.metadata() } else { path.symlink_metadata() };
    let found = followed.or_else(|_| path.symlink_metadata());
    found.map_err(|_| Failure::Command(format!("Path not found: {}", path.display())))
}

pub(super) fn user_value(uid: u32) -> Value {
    accounts::user_of(uid).map_or_else(|| uid.into(), |user| user.name.into())
}

pub(super) fn group_value(gid: u32) -> Value {
    accounts::group_name(gid).map_or_else(|| gid.into(), Value::from)
}

fn number_or_nothing(number: Option<u32>) -> Value {
    number.map_or_else(|| "".into(), Value::from)
}

fn folder_of(path: &str) -> &str {
    match path.rfind('/') {
        None => "",
        Some(at) => {
            let folder = path[..at].trim_end_matches('/');
            if folder.is_empty() { &path[..=at] } else { folder }
        }
    }
}

fn looked_at(call: &Call) -> Result<(PathBuf, Metadata), Failure> {
    let path = path(call, "path")?;
    let meta = metadata(&path, call.flag("follow_symlinks", true))?;
    Ok((path, meta))
}

fn form(call: &Call) -> Result<String, Failure> {
    Ok(call.opt_text("form")?.unwrap_or_else(|| "sha256".into()))
}

fn hash(path: &Path, kind: &str) -> Result<String, Failure> {
    let unknown = || Failure::Exception(format!("ValueError: Invalid hash type: {kind}"));
    Digest::new(kind).ok_or_else(unknown)?.of_file(path).map_err(unexpected(path))
}

fn check_hash(call: &Call) -> Answer {
    let (path, given) = (path(call, "path")?, call.text("file_hash")?);
    if let Some((kind, digits)) = given.split_once(':').or_else(|| given.split_once('=')) {
        return Ok((hash(&path, kind)? == digits).into());
    }
    let length = given.len();
    let Some((kind, _)) = KINDS.iter().find(|(_, digits)| *digits == length) else {
        let known: Vec<String> = KINDS.iter().map(|(kind, digits)| format!("{kind} ({digits})")).collect();
        return Err(Failure::Invocation(format!(
            "Hash {given} (length: {length}) could not be matched to a supported hash type. The supported hash types \
             and lengths are: {}",
            known.join(", ")
        )));
    };
    Ok((hash(&path, kind)? == given).into())
}

fn may_access(call: &Call) -> Answer {
    let path = absolute(call, "path", "Path to link must be absolute.")?;
    let mode = match call.text("mode")?.as_str() {
        "f" | "0" => Access::EXISTS,
        "r" | "4" => Access::READ_OK,
        "w" | "2" => Access::WRITE_OK,
        "x" | "1" => Access::EXEC_OK,
        _ => return Err(Failure::Invocation("Invalid mode specified.".into())),
    };
    Ok(access(&path, mode).is_ok().into())
}

fn stats(call: &Call) -> Answer {
    let (path, meta) = looked_at(call)?;
    let mut stats = Map::with_capacity(13);
    stats.push("inode", meta.ino());
    stats.push("uid", meta.uid());
    stats.push("gid", meta.gid());
    stats.push("group", group_value(meta.gid()));
    stats.push("user", user_value(meta.uid()));
    stats.push("atime", seconds(meta.atime(), meta.atime_nsec()));
    stats.push("mtime", seconds(meta.mtime(), meta.mtime_nsec()));
    stats.push("ctime", seconds(meta.ctime(), meta.ctime_nsec()));
    stats.push("size", meta.size());
    stats.push("mode", mode_text(&meta));
    if let Some(kind) = call.opt_text("hash_type")? {
        stats.push("sum", hash(&path, &kind)?);
    }
    stats.push("type", kind(&meta));
    let target = if call.flag("follow_symlinks", true) { path.canonicalize().ok() } else { None };
    stats.push("target", target.unwrap_or_else(|| normal(&path)).to_string_lossy().into_owned());
    Ok(stats.into())
}

fn kind(meta: &Metadata) -> &'static str {
    match meta.file_type() {
        kind if kind.is_dir() => "dir",
        kind if kind.is_symlink() => "link",
        kind if kind.is_char_device() => "char",
        kind if kind.is_block_device() => "block",
        kind if kind.is_fifo() => "pipe",
        kind if kind.is_socket() => "socket",
        _ => "file",
    }
}

fn seconds(whole: i64, nanos: i64) -> f64 {
    whole as f64 + nanos as f64 / 1e9
}

fn lstat(call: &Call) -> Answer {
    let path = absolute(call, "path", "Path to file must be absolute.")?;
    let Ok(meta) = path.symlink_metadata() else { return Ok(Map::new().into()) };
    let mut stats = Map::with_capacity(8);
    stats.push("st_atime", seconds(meta.atime(), meta.atime_nsec()));
    stats.push("st_ctime", seconds(meta.ctime(), meta.ctime_nsec()));
    stats.push("st_gid", meta.gid());
    stats.push("st_mode", meta.mode());
    stats.push("st_mtime", seconds(meta.mtime(), meta.mtime_nsec()));
    stats.push("st_nlink", meta.nlink());
    stats.push("st_size", meta.size());
    stats.push("st_uid", meta.uid());
    Ok(stats.into())
}

fn readdir(call: &Call) -> Answer {
    let path = absolute(call, "path", "Dir path must be absolute.")?;
    if !path.is_dir() {
        return Err(Failure::Invocation(format!("A valid directory was not specified: {}", path.display())));
    }
    let entries = path.read_dir().map_err(unexpected(&path))?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(Value::list([".".to_owned(), "..".to_owned()].into_iter().chain(names)).into())
}

fn readlink(call: &Call) -> Answer {
    let path = absolute(call, "path", "Path to link must be absolute: {}")?;
    if !path.is_symlink() {
        return Err(Failure::Invocation(format!("A valid link was not specified: {}", path.display())));
    }
    let target = if call.flag("canonicalize", false) { path.canonicalize() } else { path.read_link() };
    Ok(target.map_err(|error| Failure::Command(error.to_string()))?.to_string_lossy().into_owned().into())
}

fn seek_read(call: &Call) -> Answer {
    use std::os::unix::fs::FileExt;
    let path = path(call, "path")?;
    let negative = |_| Failure::Arguments("'size' and 'offset' must not be negative".into());
    let size = u64::try_from(call.int("size", 0)?).map_err(negative)?.min(super::LARGEST);
    let offset = u64::try_from(call.int("offset", 0)?).map_err(negative)?;
    let file = std::fs::File::open(&path).map_err(unexpected(&path))?;
    let mut bytes = vec![0; size as usize];
    let read = file.read_at(&mut bytes, offset).map_err(unexpected(&path))?;
    bytes.truncate(read);
    Ok(bytes.into())
}

fn statvfs(call: &Call) -> Answer {
    let path = absolute(call, "path", "File path must be absolute.")?;
    let told = rustix::fs::statvfs(&path).map_err(|error| {
        let error = std::io::Error::from(error);
        Failure::Command(format!("Could not statvfs '{}': {}", path.display(), super::python_error(&error, &path)))
    })?;
    Ok(Value::map([
        ("f_bavail", told.f_bavail),
        ("f_bfree", told.f_bfree),
        ("f_blocks", told.f_blocks),
        ("f_bsize", told.f_bsize),
        ("f_favail", told.f_favail),
        ("f_ffree", told.f_ffree),
        ("f_files", told.f_files),
        ("f_flag", told.f_flag.bits()),
        ("f_frsize", told.f_frsize),
        ("f_namemax", told.f_namemax),
    ])
    .into())
}

fn size_below(path: &Path) -> u64 {
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    let (mut folders, mut size) = (vec![expanded(&path.to_string_lossy())], 0_u64);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) => size = size.saturating_add(meta.len()),
                Err(_) => {}
            }
        }
    }
    size
}
