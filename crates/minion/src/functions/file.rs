//! `file.*`: files and folders of this machine.
//!
//! `inspect` looks, `change` acts on whole files, `owner` says whose they are, `text` acts on what is in them, `search`
//! finds them.

mod change;
mod diff;
mod inspect;
mod owner;
mod search;
#[cfg(test)]
mod tests;
mod text;

pub(super) use change::FUNCTIONS as CHANGE;
pub(super) use inspect::FUNCTIONS as INSPECT;
pub(super) use owner::FUNCTIONS as OWNER;
pub(super) use search::FUNCTIONS as SEARCH;
pub(super) use text::FUNCTIONS as TEXT;

use super::{Call, Failure, accounts};
use std::path::{Component, Path, PathBuf};

/// The largest file whose content is read at once.
const LARGEST: u64 = 64 << 20;

/// A parameter as a path; `~` and `~user` are homes.
fn path(call: &Call, name: &str) -> Result<PathBuf, Failure> {
    Ok(expanded(&call.text(name)?))
}

fn expanded(text: &str) -> PathBuf {
    let Some(rest) = text.strip_prefix('~') else { return text.into() };
    let (user, below) = rest.split_once('/').unwrap_or((rest, ""));
    let home = match user {
        "" => std::env::var("HOME").ok().or_else(|| Some(accounts::user_of(rustix::process::getuid().as_raw())?.home)),
        user => accounts::user(user).map(|user| user.home),
    };
    match home {
        Some(home) if below.is_empty() => home.into(),
        Some(home) => Path::new(&home).join(below),
        None => text.into(),
    }
}

/// A parameter as a path that must not depend on where the agent was started; `refusal` is what is said otherwise.
fn absolute(call: &Call, name: &str, refusal: &str) -> Result<PathBuf, Failure> {
    let path = path(call, name)?;
    if path.is_absolute() { Ok(path) } else { Err(Failure::Invocation(refusal.replace("{}", &path.to_string_lossy()))) }
}

/// A path without `.`, `..` and doubled slashes, by its letters alone.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(parts.pop()),
            (part, _) => parts.push(part),
        }
    }
    if parts.is_empty() { ".".into() } else { parts.iter().collect() }
}

/// What Python says of an error of the system.
fn python_error(error: &std::io::Error, path: &Path) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = text.split(" (os error").next().unwrap_or(&text);
            format!("[Errno {number}] {text}: '{}'", path.display())
        }
        None => text,
    }
}

/// An error of the system that stock Salt does not expect.
fn unexpected<'p>(path: &'p Path) -> impl Fn(std::io::Error) -> Failure + 'p {
    move |error| {
        let class = match error.kind() {
            std::io::ErrorKind::NotFound => "FileNotFoundError",
            std::io::ErrorKind::PermissionDenied => "PermissionError",
            std::io::ErrorKind::IsADirectory => "IsADirectoryError",
            std::io::ErrorKind::NotADirectory => "NotADirectoryError",
            _ => "OSError",
        };
        Failure::Exception(format!("{class}: {}", python_error(&error, path)))
    }
}

/// The content of a file that is not too large to be looked at.
fn content(path: &Path) -> Result<Vec<u8>, Failure> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(unexpected(path))?;
    let mut bytes = Vec::new();
    // Files of /proc have no size, so only reading tells.
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unexpected(path))?;
    if bytes.len() as u64 > LARGEST {
        let text = format!("{} is larger than the {} MiB that are read at once", path.display(), LARGEST >> 20);
        return Err(Failure::Command(text));
    }
    Ok(bytes)
}
