//! Finding files by name, kind, size, age, owner and content.

use super::super::call::Answer;
use super::super::{Call, Digest, Failure, Function, Param, accounts};
use super::inspect::{group_value, user_value};
use super::{content, path};
use crate::clock;
use regex::{Regex, RegexBuilder};
use saltern_core::target::{Glob, python_text};
use saltern_core::value::Value;
use std::cmp::Ordering;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most paths one call finds: more cannot be looked through by anybody, and must be kept in memory.
const MOST_FOUND: usize = 200_000;

/// Letters for kinds of files, and the bits of the mode that mean them.
const KINDS: [(char, u32); 7] = [
    ('b', 0o060_000),
    ('c', 0o020_000),
    ('d', 0o040_000),
    ('f', 0o100_000),
    ('l', 0o120_000),
    ('p', 0o010_000),
    ('s', 0o140_000),
];

const KIND_BITS: u32 = 0o170_000;

pub(in super::super) const FUNCTIONS: &[Function] = &[Function {
    name: "file.find",
    params: &[Param::Required("path"), Param::Rest("args"), Param::Keywords("kwargs")],
    doc: "Find files below a folder, or below all that fit a pattern.

name, iname
    a pattern for the name; with i, capitals do not matter
regex, iregex
    a regular expression for the name
type
    letters: b block device, c character device, d folder, f file, l link, p pipe, s socket
owner, group
    names or numbers
size
    [+-]number[b|k|m|g|t]: at least, at most, or exactly
mtime
    [+-]interval such as 1w2d3h4m5s: changed since (-), or not since
grep
    a regular expression for the content
mindepth, maxdepth
    how far down
print
    what is given: path (alone, if nothing is said), name, size, type, mode, mtime, user, group, md5
delete
    remove what is found: letters as for type

CLI Example:

    saltern run '*' file.find /var/log name='*.log' mtime=+30d size=+10m print=path,size
",
    run: |call| call.blocking(find),
}];

/// Paths that fit a pattern, in order; the path itself if it has no pattern and is there.
pub(super) fn fitting(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = vec![PathBuf::from(if pattern.starts_with('/') { "/" } else { "." })];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let is_plain = !part.contains(['*', '?', '[']);
        let mut next = Vec::new();
        for folder in paths {
            if is_plain {
                next.extend(Some(folder.join(part)).filter(|path| path.symlink_metadata().is_ok()));
                continue;
            }
            let glob = Glob::new(part);
            // Hidden files only fit patterns that say so.
            let fits = |name: &str| glob.matches(name) && (part.starts_with('.') || !name.starts_with('.'));
            let entries = folder.read_dir().into_iter().flatten().flatten();
            next.extend(entries.filter(|entry| entry.file_name().to_str().is_some_and(fits)).map(|entry| entry.path()));
            bounded(next.len())?;
        }
        paths = next;
    }
    paths.sort();
    Ok(paths)
}

fn bounded(found: usize) -> Result<(), Failure> {
    if found <= MOST_FOUND {
        return Ok(());
    }
    Err(Failure::Command(format!("more than {MOST_FOUND} paths fit: ask for less")))
}

fn find(call: &Call) -> Answer {
    let wanted = match Wanted::read(call) {
        Ok(wanted) => wanted,
        // Stock Salt gives mistakes back as if they were found.
        Err(mistake) => return Ok(format!("error: {mistake}").into()),
    };
    let mut found = Vec::new();
    for root in fitting(&path(call, "path")?.to_string_lossy())? {
        wanted.walk(&root, &mut found)?;
    }
    found.sort_by(compare);
    Ok(found.into())
}

/// Python's order of texts, numbers and lists of these.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::List(one), Value::List(other)) => {
            let first = one.iter().zip(other).map(|(one, other)| compare(one, other)).find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => one.as_i64().cmp(&other.as_i64()),
    }
}

/// What has to be true of a path. `true` is a yes.
enum Test {
    Name(Regex),
    Kinds(Vec<u32>),
    Owner(Vec<u32>),
    Group(Vec<u32>),
    Size(u64, u64),
    ChangedSince(i64),
    NotChangedSince(i64),
    Content(regex::bytes::Regex),
}

struct Wanted {
    tests: Vec<Test>,
    shown: Vec<String>,
    deleted: bool,
    depth: (usize, usize),
}

impl Wanted {
    fn read(call: &Call) -> Result<Self, String> {
        let mut wanted = Self { tests: Vec::new(), shown: Vec::new(), deleted: false, depth: (0, usize::MAX) };
        for word in call.rest() {
            match &*python_text(word) {
                "delete" => wanted.take("delete", "f")?,
                "print" => wanted.take("print", "path")?,
                _ => {}
            }
        }
        for (key, value) in call.keywords() {
            if !value.is_truthy() && !key.ends_with("depth") {
                return Err(format!("missing value for \"{key}\" option"));
            }
            wanted.take(key, &python_text(value))?;
        }
        // The cheap questions first.
        wanted.tests.sort_by_key(|test| match test {
            Test::Name(_) => 0,
            Test::Content(_) => 2,
            _ => 1,
        });
        Ok(wanted)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        let depth = |value: &str| value.parse().map_err(|_| format!("invalid depth: \"{value}\""));
        let test = match key {
            "mindepth" => {
                self.depth.0 = depth(value)?;
                return Ok(());
            }
            "maxdepth" => {
                self.depth.1 = depth(value)?;
                return Ok(());
            }
            "print" => {
                self.shown = value.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
                return Ok(());
            }
            "delete" => {
                self.deleted = true;
                Test::Kinds(kinds(value)?)
            }
            "name" => Test::Name(name(value, false)?),
            "iname" => Test::Name(name(value, true)?),
            "regex" => Test::Name(expression(value, false)?),
            "iregex" => Test::Name(expression(value, true)?),
            "type" => Test::Kinds(kinds(value)?),
            "owner" => Test::Owner(numbers(value, "user", |name| accounts::user(name).map(|user| user.uid))?),
            "group" => Test::Group(numbers(value, "group", accounts::group_id)?),
            "size" => size(value)?,
            "mtime" => age(value)?,
            "grep" => {
                let built = regex::bytes::Regex::new(value);
                Test::Content(built.map_err(|_| format!("invalid regular expression: \"{value}\""))?)
            }
            _ => return Err(format!("invalid option \"{key}\"")),
        };
        self.tests.push(test);
        Ok(())
    }

    /// Looks at a path and all below it; links are not followed downwards.
    fn walk(&self, root: &Path, found: &mut Vec<Value>) -> Result<(), Failure> {
        let mut pending = vec![(root.to_owned(), 0_usize)];
        while let Some((path, depth)) = pending.pop() {
            if depth < self.depth.1 && path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                let entries = path.read_dir().into_iter().flatten().flatten();
                pending.extend(entries.map(|entry| (entry.path(), depth + 1)));
                bounded(pending.len())?;
            }
            if depth >= self.depth.0 && depth <= self.depth.1 {
                // What is gone by now was not found.
                let Some(meta) = path.metadata().or_else(|_| path.symlink_metadata()).ok() else { continue };
                if self.tests.iter().all(|test| test.holds(&path, &meta)) {
                    found.push(self.told(&path, &meta)?);
                    bounded(found.len())?;
                }
            }
        }
        Ok(())
    }

    fn told(&self, path: &Path, meta: &Metadata) -> Result<Value, Failure> {
        let whole = || Value::from(path.to_string_lossy().into_owned());
        if self.deleted {
            let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            if is_folder { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
        let mut parts: Vec<Value> = Vec::with_capacity(self.shown.len());
        for part in &self.shown {
            parts.push(match part.as_str() {
                "path" => whole(),
                "name" => path.file_name().unwrap_or_default().to_string_lossy().into_owned().into(),
                "size" => meta.size().into(),
                "type" => KINDS
                    .iter()
                    .find(|(_, bits)| meta.mode() & KIND_BITS == *bits)
                    .map_or('?', |(letter, _)| *letter)
                    .to_string()
                    .into(),
                "mode" => (meta.mode() & 0o777).into(),
                "mtime" => meta.mtime().into(),
                "user" => user_value(meta.uid()),
                "group" => group_value(meta.gid()),
                "md5" if meta.is_file() => {
                    Digest::new("md5").and_then(|digest| digest.of_file(path).ok()).unwrap_or_default().into()
                }
                "md5" => "".into(),
                _ => continue,
            });
        }
        Ok(match parts.len() {
            0 => whole(),
            1 => parts.swap_remove(0),
            _ => parts.into(),
        })
    }
}

impl Test {
    fn holds(&self, path: &Path, meta: &Metadata) -> bool {
        match self {
            Self::Name(regex) => regex.is_match(&path.file_name().unwrap_or_default().to_string_lossy()),
            Self::Kinds(kinds) => kinds.contains(&(meta.mode() & KIND_BITS)),
            Self::Owner(users) => users.contains(&meta.uid()),
            Self::Group(groups) => groups.contains(&meta.gid()),
            Self::Size(least, most) => (*least..=*most).contains(&meta.size()),
            Self::ChangedSince(instant) => meta.mtime() >= *instant,
            Self::NotChangedSince(instant) => meta.mtime() <= *instant,
            Self::Content(regex) => meta.is_file() && content(path).is_ok_and(|bytes| regex.is_match(&bytes)),
        }
    }
}

/// A name's pattern: `*` is anything, `?` is one character or none, sets are sets.
fn name(pattern: &str, is_loose: bool) -> Result<Regex, String> {
    let pattern = pattern.replace('.', r"\.").replace('?', ".?").replace('*', ".*");
    expression(&format!("(?:{pattern})$"), is_loose)
}

/// An expression that has to fit from the beginning.
fn expression(pattern: &str, is_loose: bool) -> Result<Regex, String> {
    let built = RegexBuilder::new(&format!("^(?:{pattern})")).case_insensitive(is_loose).build();
    built.map_err(|_| format!("invalid regular expression: \"{pattern}\""))
}

fn kinds(letters: &str) -> Result<Vec<u32>, String> {
    let letters = letters.chars().filter(|letter| !letter.is_whitespace() && *letter != ',');
    let bits = |letter: char| KINDS.iter().find(|(known, _)| *known == letter).map(|(_, bits)| *bits);
    letters.map(|letter| bits(letter).ok_or_else(|| format!("invalid file type \"{letter}\""))).collect()
}

fn numbers(names: &str, word: &str, look_up: impl Fn(&str) -> Option<u32>) -> Result<Vec<u32>, String> {
    let names = names.split([',', ' ']).filter(|name| !name.is_empty());
    let number =
        |name: &str| name.parse().ok().or_else(|| look_up(name)).ok_or_else(|| format!("no such {word} \"{name}\""));
    names.map(number).collect()
}

fn size(text: &str) -> Result<Test, String> {
    let invalid = || format!("invalid size: \"{text}\"");
    let text = text.trim();
    let (style, number) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (&text[..1], rest),
        None => ("=", text),
    };
    let unit = number.chars().last().and_then(|letter| "bkmgt".find(letter.to_ascii_lowercase()));
    let (number, factor) = match unit {
        Some(power) => (&number[..number.len() - 1], 1_u64 << (10 * power)),
        None => (number, 1),
    };
    let bytes = number.trim().parse::<f64>().ok().filter(|number| *number >= 0.0).ok_or_else(invalid)?;
    let bytes = (bytes * factor as f64) as u64;
    Ok(match style {
        "-" => Test::Size(0, bytes),
        "+" => Test::Size(bytes, u64::MAX),
        _ => Test::Size(bytes, bytes.saturating_add(factor - 1)),
    })
}

fn age(text: &str) -> Result<Test, String> {
    let invalid = || format!("invalid time interval: '{text}'");
    let interval = text.trim();
    let (is_recent, mut rest) = match interval.strip_prefix(['-', '+']) {
        Some(rest) => (interval.starts_with('-'), rest),
        None => (false, interval),
    };
    // Units come in this order, each at most once; the smallest one named is how exact it is meant.
    let mut units = [('w', 604_800.0), ('d', 86_400.0), ('h', 3_600.0), ('m', 60.0), ('s', 1.0)].into_iter();
    let (mut seconds, mut exact) = (0.0, None);
    while !rest.trim().is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(invalid)?;
        let (number, letter) = (rest[..end].trim(), rest[end..].chars().next().unwrap_or(' ').to_ascii_lowercase());
        let (_, unit) = units.find(|(known, _)| *known == letter).ok_or_else(invalid)?;
        seconds += number.parse::<f64>().ok().filter(|number| *number >= 0.0).ok_or_else(invalid)? * unit;
        exact = Some(unit);
        rest = &rest[end + 1..];
    }
    let exact: f64 = exact.ok_or_else(invalid)?;
    let instant = clock::now().0 / 1_000_000 - ((seconds / exact).trunc() * exact) as i64;
    Ok(if is_recent { Test::ChangedSince(instant) } else { Test::NotChangedSince(instant) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_have_units_and_directions() {
        let check = |text: &str, least: u64, most: u64| match size(text) {
            Ok(Test::Size(a, b)) => assert_eq!((a, b), (least, most), "{text}"),
            _ => panic!("{text}"),
        };
        check("5", 5, 5);
        check("2k", 2048, 3071);
        check("+1.5m", 1_572_864, u64::MAX);
        check("-10 b", 0, 10);
        for bad in ["", "k", "x", "--1"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn intervals_are_read_in_order() {
        for good in ["1d", "-1w2d", "+3h 5m", "1.5d"] {
            assert!(age(good).is_ok(), "{good:?}");
        }
        for bad in ["", "1", "d", "1m1h", "1x", "1d1d"] {
            assert!(age(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in any::<String>()) {
            let _ = (size(&text), age(&text), kinds(&text), name(&text, true));
        }
    }
}
