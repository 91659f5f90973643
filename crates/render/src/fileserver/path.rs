//! Which paths and environment names may be asked for at all.

use crate::error::Error;

/// The longest path that is looked at.
const MAX_PATH: usize = 4096;

/// A path relative to a root, without empty and `.` parts. Refuses absolute paths, `..`, NUL, backslashes and the empty
/// path.
pub fn clean_path(path: &str) -> Result<String, Error> {
    let refuse = |reason| Err(Error::Path { path: shortened(path), reason });
    if path.len() > MAX_PATH {
        return refuse("it is too long");
    }
    if path.starts_with('/') {
        return refuse("it is absolute");
    }
    if path.contains('\0') {
        return refuse("it contains NUL");
    }
    if path.contains('\\') {
        return refuse("it contains a backslash");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return refuse("it contains '..'");
    }
    if parts.is_empty() {
        return refuse("it is empty");
    }
    Ok(parts.join("/"))
}

/// An environment name that may stand in a directory name: one visible path part of letters, digits, `.`, `_`, `-`.
pub fn clean_env(env: &str) -> Result<&str, Error> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if env.is_empty() || env.len() > 255 || env.starts_with('.') || !env.chars().all(is_word) {
        return Err(Error::Path { path: shortened(env), reason: "it is not an environment name" });
    }
    Ok(env)
}

/// The start of a text a peer chose, for a message.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
