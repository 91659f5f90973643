//! Whose files are, and who may do what with them.

use super::super::call::Answer;
use super::super::{Call, Failure, Function, Param};
use super::inspect::{group_number, metadata, mode_text, user_number};
use super::{path, unexpected};
use saltern_core::target::python_text;
use saltern_core::value::Value;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::path::PathBuf;

const PATH: Param = Param::Required("path");

pub(in super::super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "file.chgrp",
        params: &[PATH, Param::Required("group")],
        doc: "Give a file to a group.\n\nCLI Example:\n\n    saltern run '*' file.chgrp /srv/www www-data\n",
        run: |call| call.blocking(|call| give(call, Named::Nobody, chown)),
    },
    Function {
        name: "file.chown",
        params: &[PATH, Param::Required("user"), Param::Required("group")],
        doc: "Give a file to a user and a group.\n\n\
              CLI Example:\n\n    saltern run '*' file.chown /srv/www root www-data\n",
        run: |call| call.blocking(|call| give(call, Named::user(call)?, chown)),
    },
    Function {
        name: "file.lchown",
        params: &[PATH, Param::Required("user"), Param::Required("group")],
        doc: "Give a path to a user and a group; a link is not followed.\n\n\
              CLI Example:\n\n    saltern run '*' file.lchown /srv/link root root\n",
        run: |call| call.blocking(|call| give(call, Named::user(call)?, lchown)),
    },
    Function {
        name: "file.set_mode",
        params: &[PATH, Param::Required("mode")],
        doc: "Set the mode of a file, in octal digits.\n\n\
              CLI Example:\n\n    saltern run '*' file.set_mode /etc/passwd 0644\n",
        run: |call| call.blocking(set_mode),
    },
];

/// Somebody a parameter may name.
pub(super) enum Named {
    Nobody,
    Known(u32),
    Unknown,
}

impl Named {
    pub(super) fn user(call: &Call) -> Result<Self, Failure> {
        Ok(Self::new(user_number(call, "user")?, call.get("user")))
    }

    pub(super) fn group(call: &Call) -> Result<Self, Failure> {
        Ok(Self::new(group_number(call, "group")?, call.get("group")))
    }

    fn new(number: Option<u32>, given: Option<&Value>) -> Self {
        match (number, given) {
            (Some(number), _) => Self::Known(number),
            (None, Some(given)) if given.is_truthy() => Self::Unknown,
            (None, _) => Self::Nobody,
        }
    }

    pub(super) fn number(&self) -> Option<u32> {
        if let Self::Known(number) = self { Some(*number) } else { None }
    }
}

fn give(call: &Call, user: Named, give_away: fn(PathBuf, Option<u32>, Option<u32>) -> io::Result<()>) -> Answer {
    let (path, group) = (path(call, "path")?, Named::group(call)?);
    let mut trouble = String::new();
    if matches!(user, Named::Unknown) {
        trouble.push_str("User does not exist\n");
    }
    if matches!(group, Named::Unknown) {
        trouble.push_str("Group does not exist\n");
    }
    if path.symlink_metadata().is_err() {
        trouble.push_str("File not found");
    }
    if !trouble.is_empty() {
        return Ok(trouble.into());
    }
    // A link that leads nowhere can still be given away.
    let give_away = if path.exists() { give_away } else { lchown };
    give_away(path.clone(), user.number(), group.number()).map_err(unexpected(&path))?;
    Ok(Value::Nil.into())
}

/// The parameter `mode`, read as octal digits whether it came as text or as a number.
pub(super) fn mode_of(call: &Call) -> Result<Option<u32>, Failure> {
    let Some(given) = call.get("mode") else { return Ok(None) };
    let text = python_text(given);
    let invalid = || Failure::Invocation(format!("Invalid Mode {text}"));
    octal(&text).map(Some).ok_or_else(invalid)
}

fn octal(text: &str) -> Option<u32> {
    let digits = text.trim_matches(['"', '\'']).trim_start_matches(['0', 'o', 'O']);
    let digits = if digits.is_empty() { "0" } else { digits };
    u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777)
}

fn set_mode(call: &Call) -> Answer {
    let (path, text) = (path(call, "path")?, python_text(call.get("mode").unwrap_or(&Value::Nil)).into_owned());
    if !path.exists() {
        return Err(Failure::Command(format!("{}: File not found", path.display())));
    }
    let set = octal(&text).map(|mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)));
    match set {
        Some(Ok(())) => Ok(mode_text(&metadata(&path, true)?).into()),
        _ => Ok(format!("Invalid Mode {}", text.trim_start_matches(['0', 'o', 'O'])).into()),
    }
}
