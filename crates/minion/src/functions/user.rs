//! `user.*`: the users of this machine.

use super::accounts::{self, User};
use super::call::Answer;
use super::command::{Command, blocking, operand};
use super::{Call, Failure, Function, Param};
use futures_util::FutureExt;
use saltern_core::value::{Map, Value};

const NAME: Param = Param::Required("name");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "user.add",
        params: &[
            NAME,
            Param::Optional("uid", "None"),
            Param::Optional("gid", "None"),
            Param::Optional("groups", "None"),
            Param::Optional("home", "None"),
            Param::Optional("shell", "None"),
            Param::Optional("unique", "True"),
            Param::Optional("system", "False"),
            Param::Optional("fullname", "''"),
            Param::Optional("roomnumber", "''"),
            Param::Optional("workphone", "''"),
            Param::Optional("homephone", "''"),
            Param::Optional("other", "''"),
            Param::Optional("createhome", "True"),
            Param::Optional("nologinit", "False"),
            Param::Optional("usergroup", "None"),
        ],
        doc: "Add a user. True if it worked.\n\n\
              CLI Example:\n\n    saltern run '*' user.add name uid=1500 groups='[\"adm\"]' home=/srv/name shell=/bin/sh\n",
        run: |call| async move { add(&call).await }.boxed(),
    },
    Function {
        name: "user.chfullname",
        params: &[NAME, Param::Required("fullname")],
        doc: "Change a user's full name.\n\nCLI Example:\n\n    saltern run '*' user.chfullname foo 'Foo Bar'\n",
        run: |call| async move { change_gecos(&call, 0, "fullname").await }.boxed(),
    },
    Function {
        name: "user.chgid",
        params: &[NAME, Param::Required("gid")],
        doc: "Change a user's primary group, given by name or number.\n\n\
              CLI Example:\n\n    saltern run '*' user.chgid foo 4376\n",
        run: |call| async move { change_gid(&call).await }.boxed(),
    },
    Function {
        name: "user.chgroups",
        params: &[NAME, Param::Required("groups"), Param::Optional("append", "False")],
        doc: "Change the groups a user is in beside the primary one: to these, or to these as well with append=True.\n\n\
              CLI Example:\n\n    saltern run '*' user.chgroups foo wheel,root\n    saltern run '*' user.chgroups foo docker append=True\n",
        run: |call| async move { change_groups(&call).await }.boxed(),
    },
    Function {
        name: "user.chhome",
        params: &[NAME, Param::Required("home"), Param::Optional("persist", "False")],
        doc: "Change a user's home; with persist=True its content moves along.\n\n\
              CLI Example:\n\n    saltern run '*' user.chhome foo /srv/foo True\n",
        run: |call| {
            async move {
                let option: &[&str] = if call.flag("persist", false) { &["-m", "-d"] } else { &["-d"] };
                change(&call, option, call.text("home")?, |user| user.home.clone()).await
            }
            .boxed()
        },
    },
    Function {
        name: "user.chshell",
        params: &[NAME, Param::Required("shell")],
        doc: "Change a user's login shell.\n\nCLI Example:\n\n    saltern run '*' user.chshell foo /bin/zsh\n",
        run: |call| async move { change(&call, &["-s"], call.text("shell")?, |user| user.shell.clone()).await }.boxed(),
    },
    Function {
        name: "user.chuid",
        params: &[NAME, Param::Required("uid")],
        doc: "Change a user's number.\n\nCLI Example:\n\n    saltern run '*' user.chuid foo 4376\n",
        run: |call| async move { change(&call, &["-u"], call.text("uid")?, |user| user.uid.to_string()).await }.boxed(),
    },
    Function {
        name: "user.delete",
        params: &[NAME, Param::Optional("remove", "False"), Param::Optional("force", "False")],
        doc: "Delete a user; with remove=True also the home, with force=True also while logged in. True if it worked.\n\n\
              CLI Example:\n\n    saltern run '*' user.delete name remove=True force=True\n",
        run: |call| async move { delete(&call).await }.boxed(),
    },
    Function {
        name: "user.getent",
        params: &[Param::Optional("refresh", "False")],
        doc: "Tell about all users.\n\nCLI Example:\n\n    saltern run '*' user.getent\n",
        run: |call| {
            call.blocking(|_| {
                let groups = accounts::groups();
                Ok(Value::list(accounts::users().iter().map(|user| told(user, &groups_of(user, &groups)))).into())
            })
        },
    },
    Function {
        name: "user.info",
        params: &[NAME],
        doc: "Tell about a user; an empty map if there is none of this name.\n\n\
              CLI Example:\n\n    saltern run '*' user.info root\n",
        run: |call| {
            call.blocking(|call| {
                Ok(accounts::user(&call.text("name")?)
                    .map_or_else(Map::new, |user| told(&user, &all_groups(&user)))
                    .into())
            })
        },
    },
    Function {
        name: "user.list_groups",
        params: &[NAME],
        doc: "List the groups a user is in.\n\nCLI Example:\n\n    saltern run '*' user.list_groups foo\n",
        run: |call| {
            call.blocking(|call| {
                Ok(Value::list(accounts::user(&call.text("name")?).map(|user| all_groups(&user)).unwrap_or_default())
                    .into())
            })
        },
    },
    Function {
        name: "user.list_users",
        params: &[],
        doc: "List all users.\n\nCLI Example:\n\n    saltern run '*' user.list_users\n",
        run: |call| {
            call.blocking(|_| {
                let mut names: Vec<String> = accounts::users().into_iter().map(|user| user.name).collect();
                names.sort();
                Ok(Value::list(names).into())
            })
        },
    },
    Function {
        name: "user.primary_group",
        params: &[NAME],
        doc: "Tell a user's primary group.\n\nCLI Example:\n\n    saltern run '*' user.primary_group saltadmin\n",
        run: |call| {
            call.blocking(|call| {
                let user = accounts::user(&call.text("name")?);
                Ok(user.and_then(|user| accounts::group_name(user.gid)).unwrap_or_default().into())
            })
        },
    },
    Function {
        name: "user.rename",
        params: &[NAME, Param::Required("new_name")],
        doc: "Give a user another name.\n\nCLI Example:\n\n    saltern run '*' user.rename name new_name\n",
        run: |call| async move { rename(&call).await }.boxed(),
    },
];

/// What Salt tells of a user.
fn told(user: &User, groups: &[String]) -> Map {
    let mut gecos = user.gecos.splitn(5, ',');
    let mut next = || gecos.next().unwrap_or_default();
    let (fullname, roomnumber, workphone, homephone, other) = (next(), next(), next(), next(), next());
    let mut info = Map::with_capacity(12);
    info.push("gid", user.gid);
    info.push("groups", Value::list(groups));
    info.push("home", &user.home);
    info.push("name", &user.name);
    info.push("passwd", &user.password);
    info.push("shell", &user.shell);
    info.push("uid", user.uid);
    info.push("fullname", fullname);
    info.push("roomnumber", roomnumber);
    info.push("workphone", workphone);
    info.push("homephone", homephone);
    info.push("other", other);
    info
}

/// The names of all groups a user is in, as the system tells them.
fn all_groups(user: &User) -> Vec<String> {
    let mut names: Vec<String> =
        accounts::further_groups(user).into_iter().chain([user.gid]).filter_map(accounts::group_name).collect();
    names.sort();
    names.dedup();
    names
}

/// The same from a list that is already there.
fn groups_of(user: &User, groups: &[accounts::Group]) -> Vec<String> {
    let is_in = |group: &&accounts::Group| group.gid == user.gid || group.members.contains(&user.name);
    let mut names: Vec<String> = groups.iter().filter(is_in).map(|group| group.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

async fn add(call: &Call) -> Answer {
    let name = operand(call, "name")?;
    let mut args: Vec<String> = Vec::new();
    for (param, option) in [("shell", "-s"), ("uid", "-u"), ("gid", "-g"), ("home", "-d")] {
        if let Some(value) = call.opt_text(param)?.filter(|value| !value.is_empty()) {
            args.extend([option.to_owned(), value]);
        }
    }
    let groups = group_names(call.get("groups"))?;
    match call.get("usergroup") {
        Some(_) if !call.flag("usergroup", true) => args.push("-N".into()),
        Some(_) if call.get("gid").is_none() => args.push("-U".into()),
        None if call.get("gid").is_none() && groups.contains(&name) => args.extend(["-g".to_owned(), name.clone()]),
        _ => {}
    }
    args.push(if call.flag("createhome", true) { "-m" } else { "-M" }.into());
    let flags =
        [(call.flag("nologinit", false), "-l"), (!call.flag("unique", true), "-o"), (call.flag("system", false), "-r")];
    args.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag.to_owned()));
    let mut gecos = Vec::new();
    for param in ["fullname", "roomnumber", "workphone", "homephone", "other"] {
        gecos.push(call.opt_text(param)?.unwrap_or_default());
    }
    let gecos = gecos.join(",");
    let gecos = gecos.trim_end_matches(',');
    if !gecos.is_empty() {
        args.extend(["-c".to_owned(), gecos.to_owned()]);
    }
    args.push(name.clone());
    if !Command::tool("useradd").args(&args).run(&call.context).await?.is_ok() {
        return Ok(false.into());
    }
    if !groups.is_empty() {
        // The user is there; groups that are not can be mended later.
        Command::tool("usermod").args(["-G", &groups.join(","), &name]).run(&call.context).await?;
    }
    Ok(true.into())
}

async fn delete(call: &Call) -> Answer {
    let name = operand(call, "name")?;
    let flags = [(call.flag("remove", false), "-r"), (call.flag("force", false), "-f")];
    let flags = flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag);
    let done = Command::tool("userdel").args(flags.chain([name.as_str()])).run(&call.context).await?;
    // Debian's userdel ends with 12 where there was no mailbox to remove.
    let no_mailbox = done.code == 12 && String::from_utf8_lossy(&done.stderr).contains("mail");
    Ok((done.is_ok() || no_mailbox).into())
}

/// Changes one thing of a user with `usermod`, and looks whether it is so afterwards.
async fn change(call: &Call, option: &[&str], wanted: String, current: fn(&User) -> String) -> Answer {
    let name = operand(call, "name")?;
    if current(&known_user(&name).await?) == wanted {
        return Ok(true.into());
    }
    let args = option.iter().copied().chain([wanted.as_str(), name.as_str()]);
    Command::tool("usermod").args(args).run(&call.context).await?;
    Ok(known_user(&name).await.is_ok_and(|user| current(&user) == wanted).into())
}

async fn change_gid(call: &Call) -> Answer {
    let group = call.text("gid")?;
    let found = blocking({
        let group = group.clone();
        move || accounts::group_id(&group)
    })
    .await?;
    let gid = found.map_or(group, |gid| gid.to_string());
    change(call, &["-g"], gid, |user| user.gid.to_string()).await
}

async fn change_groups(call: &Call) -> Answer {
    let name = operand(call, "name")?;
    let wanted = group_names(call.get("groups"))?;
    let mut now = all_groups_of(known_user(&name).await?).await?;
    let mut sorted = wanted.clone();
    sorted.sort();
    now.sort();
    if now == sorted {
        return Ok(true.into());
    }
    let append = call.flag("append", false).then_some("-a");
    let args = append.into_iter().chain(["-G"]).map(str::to_owned).chain([wanted.join(","), name]);
    Ok(Command::tool("usermod").args(args).run(&call.context).await?.is_ok().into())
}

async fn change_gecos(call: &Call, field: usize, param: &str) -> Answer {
    let name = operand(call, "name")?;
    let user = known_user(&name).await?;
    let mut fields: Vec<String> = user.gecos.splitn(5, ',').map(str::to_owned).collect();
    fields.resize(5.max(fields.len()), String::new());
    fields[field] = call.text(param)?;
    let gecos = fields.join(",").trim_end_matches(',').to_owned();
    change(call, &["-c"], gecos, |user| user.gecos.trim_end_matches(',').to_owned()).await
}

async fn rename(call: &Call) -> Answer {
    let (name, new_name) = (operand(call, "name")?, operand(call, "new_name")?);
    if known_user(&new_name).await.is_ok() {
        return Err(Failure::Command(format!("User '{new_name}' already exists")));
    }
    known_user(&name).await?;
    Command::tool("usermod").args(["-l", &new_name, &name]).run(&call.context).await?;
    Ok(known_user(&new_name).await.is_ok().into())
}

async fn known_user(name: &str) -> Result<User, Failure> {
    let wanted = name.to_owned();
    let found = blocking(move || accounts::user(&wanted)).await?;
    found.ok_or_else(|| Failure::Command(format!("User '{name}' does not exist")))
}

async fn all_groups_of(user: User) -> Result<Vec<String>, Failure> {
    blocking(move || all_groups(&user)).await
}

/// Groups as a list, or with commas between them.
pub(super) fn group_names(value: Option<&Value>) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = match value {
        None => Vec::new(),
        Some(Value::List(items)) => items.iter().map(|item| item.key_text().into_owned()).collect(),
        Some(value) => value.key_text().split(',').map(|name| name.trim().to_owned()).collect(),
    };
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn a_user_is_told_in_salts_shape() {
        let user = User {
            name: "ann".into(),
            password: "x".into(),
            uid: 1000,
            gid: 1000,
            gecos: "Ann Bee,12,,+49".into(),
            home: "/home/ann".into(),
            shell: "/bin/sh".into(),
        };
        let info = Value::Map(told(&user, &["adm".into(), "ann".into()]));
        for (key, value) in [
            ("fullname", "Ann Bee"),
            ("roomnumber", "12"),
            ("workphone", ""),
            ("homephone", "+49"),
            ("other", ""),
            ("passwd", "x"),
        ] {
            assert_eq!(info.get(key), Some(&value.into()), "{key}");
        }
        assert_eq!(info.get("groups"), Some(&Value::list(["adm", "ann"])));
    }

    #[test]
    fn groups_are_lists_or_have_commas() {
        assert_eq!(group_names(Some(&"a, b,".into())).unwrap(), ["a", "b"]);
        assert_eq!(group_names(Some(&Value::list(["a", "b"]))).unwrap(), ["a", "b"]);
        assert_eq!(group_names(None).unwrap(), [""; 0]);
    }

    #[tokio::test]
    async fn root_is_known() {
        let bench = Bench::new();
        let info = bench.call("user.info", &["root".into()], &[]).await;
        assert_eq!((info.get("uid"), info.get("gid")), (Some(&0.into()), Some(&0.into())));
        assert_eq!(bench.call("user.primary_group", &["root".into()], &[]).await, "root".into());
        assert!(bench.call("user.list_users", &[], &[]).await.as_list().unwrap().contains(&"root".into()));
        assert!(
            bench.call("user.list_groups", &["root".into()], &[]).await.as_list().unwrap().contains(&"root".into())
        );
        let all = bench.call("user.getent", &[], &[]).await;
        assert!(all.as_list().unwrap().contains(&info));
    }

    #[tokio::test]
    async fn who_is_not_there_is_told_so() {
        let bench = Bench::new();
        assert_eq!(bench.call("user.info", &["no-such-user".into()], &[]).await, Value::Map(Map::new()));
        assert_eq!(
            bench.fail("user.chshell", &["no-such-user".into(), "/bin/sh".into()], &[]).await,
            "ERROR: User 'no-such-user' does not exist"
        );
        assert!(bench.fail("user.delete", &["-r".into()], &[]).await.contains("must be a name"));
    }
}
