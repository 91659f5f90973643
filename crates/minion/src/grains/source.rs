//! Where grains come from: files that may not be there, programs that may not be installed.

use crate::functions::{find_program, words};
use std::path::Path;

/// A file as text; nothing if it cannot be read.
pub(super) fn read(path: impl AsRef<Path>) -> Option<String> {
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

/// A file as text without the space around it.
pub(super) fn read_trimmed(path: impl AsRef<Path>) -> Option<String> {
    read(path).map(|text| text.trim().to_owned())
}

/// What a program prints, without the space around it, and whether it ended well; nothing if it is not installed.
pub(super) fn ask(program: &str, args: &[&str]) -> Option<(bool, String)> {
    let output = std::process::Command::new(find_program(program)?)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Splits as a shell does; a line whose quotes do not close is split at its spaces.
pub(super) fn split_words(text: &str) -> Vec<String> {
    words::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_that_do_not_close_are_letters() {
        assert_eq!(split_words("a 'b c'=d"), ["a", "b c=d"]);
        assert_eq!(split_words("a 'b c"), ["a", "'b", "c"]);
    }

    #[test]
    fn what_is_not_there_gives_nothing() {
        assert_eq!(read("/no/such/file"), None);
        assert_eq!(ask("no-such-program-here", &[]), None);
        assert_eq!(ask("echo", &["hello"]), Some((true, "hello".into())));
    }
}
