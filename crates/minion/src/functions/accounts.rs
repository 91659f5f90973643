//! Users and groups of this machine: `/etc/passwd` and `/etc/group` first, then whatever else `getent` knows.
//!
//! These wait for files and programs: not for tasks.

use std::process::{Command, Stdio};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) gecos: String,
    pub(crate) home: String,
    pub(crate) shell: String,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) password: String,
    pub(crate) gid: u32,
    pub(crate) members: Vec<String>,
}

/// Every user, in the order of the database.
pub(crate) fn users() -> Vec<User> {
    everything("passwd").lines().filter_map(read_user).collect()
}

/// Every group, in the order of the database.
pub(crate) fn groups() -> Vec<Group> {
    everything("group").lines().filter_map(read_group).collect()
}

/// The group of this name.
pub(crate) fn group(name: &str) -> Option<Group> {
    lookup("group", name, |line| read_group(line).filter(|group| group.name == name))
}

/// The user of this name.
pub(crate) fn user(name: &str) -> Option<User> {
    lookup("passwd", name, |line| read_user(line).filter(|user| user.name == name))
}

/// The user of this number.
pub(crate) fn user_of(uid: u32) -> Option<User> {
    lookup("passwd", &uid.to_string(), |line| read_user(line).filter(|user| user.uid == uid))
}

/// The number of a group.
pub(crate) fn group_id(name: &str) -> Option<u32> {
    group(name).map(|group| group.gid)
}

/// The name of a group.
pub(crate) fn group_name(gid: u32) -> Option<String> {
    lookup("group", &gid.to_string(), |line| read_group(line).filter(|group| group.gid == gid)).map(|group| group.name)
}

/// The groups a user is in beside the primary one.
pub(crate) fn further_groups(user: &User) -> Vec<u32> {
    let known = getent("initgroups", &user.name)
        .map(|text| text.split_whitespace().skip(1).filter_map(|gid| gid.parse().ok()).collect());
    let mut groups: Vec<u32> = known.unwrap_or_else(|| {
        let text = std::fs::read_to_string("/etc/group").unwrap_or_default();
        text.lines()
            .filter_map(read_group)
            .filter(|group| group.members.contains(&user.name))
            .map(|group| group.gid)
            .collect()
    });
    groups.retain(|gid| *gid != user.gid);
    groups
}

fn lookup<T>(database: &str, key: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = std::fs::read_to_string(format!("/etc/{database}")).unwrap_or_default();
    text.lines().find_map(&read).or_else(|| getent(database, key)?.lines().find_map(&read))
}

/// The whole of a database, also what is not in its file.
fn everything(database: &str) -> String {
    let output = Command::new("getent").arg(database).stdin(Stdio::null()).stderr(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => std::fs::read_to_string(format!("/etc/{database}")).unwrap_or_default(),
    }
}

fn getent(database: &str, key: &str) -> Option<String> {
    // A key that looks like an option would be one.
    if key.is_empty() || key.starts_with('-') {
        return None;
    }
    let output =
        Command::new("getent").args([database, key]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn read_user(line: &str) -> Option<User> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, password, uid, gid, gecos, home, shell @ ..] = &fields[..] else { return None };
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    let [name, password, gecos, home] = [name, password, gecos, home].map(|field| (*field).to_owned());
    Some(User { name, password, uid, gid, gecos, home, shell: shell.first().copied().unwrap_or_default().to_owned() })
}

fn read_group(line: &str) -> Option<Group> {
    let mut fields = line.split(':');
    let (name, password, gid) = (fields.next()?, fields.next()?, fields.next()?);
    let members =
        fields.next().unwrap_or_default().split(',').filter(|member| !member.is_empty()).map(str::to_owned).collect();
    Some(Group { name: name.to_owned(), password: password.to_owned(), gid: gid.parse().ok()?, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number() {
        let root = user("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(user_of(0).unwrap(), root);
        assert_eq!(group_id("root"), Some(0));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert!(!further_groups(&root).contains(&0));
    }

    #[test]
    fn who_is_not_there_is_not_found() {
        assert_eq!(user("no-such-user"), None);
        assert_eq!(user("--help"), None);
        assert_eq!(group_id("no-such-group"), None);
        assert_eq!(user_of(4_000_000_123), None);
    }

    #[test]
    fn broken_lines_are_passed_over() {
        for line in ["", "x", "x:y:z:0:a:b:c", "+::::::"] {
            assert_eq!(read_user(line), None, "{line:?}");
            assert_eq!(read_group(line), None, "{line:?}");
        }
    }
}
