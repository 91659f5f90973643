//! `group.*`: the groups of this machine.

use super::accounts::{self, Group};
use super::call::Answer;
use super::command::{Command, blocking, operand};
use super::user::group_names;
use super::{Call, Failure, Function, Param};
use futures_util::FutureExt;
use saltern_core::value::{Map, Value};

const NAME: Param = Param::Required("name");
const USERNAME: Param = Param::Required("username");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "group.add",
        params: &[
            NAME,
            Param::Optional("gid", "None"),
            Param::Optional("system", "False"),
            Param::Optional("non_unique", "False"),
        ],
        doc: "Add a group. True if it worked.\n\nCLI Example:\n\n    saltern run '*' group.add foo 3456\n",
        run: |call| async move { add(&call).await }.boxed(),
    },
    Function {
        name: "group.adduser",
        params: &[NAME, USERNAME],
        doc: "Add a user to a group. True if it worked.\n\nCLI Example:\n\n    saltern run '*' group.adduser foo bar\n",
        run: |call| {
            async move {
                succeeds(&call, "gpasswd", &["--add", &operand(&call, "username")?, &operand(&call, "name")?]).await
            }
            .boxed()
        },
    },
    Function {
        name: "group.chgid",
        params: &[NAME, Param::Required("gid"), Param::Optional("non_unique", "False")],
        doc: "Change a group's number.\n\nCLI Example:\n\n    saltern run '*' group.chgid foo 4376\n",
        run: |call| async move { change_gid(&call).await }.boxed(),
    },
    Function {
        name: "group.delete",
        params: &[NAME],
        doc: "Delete a group. True if it worked.\n\nCLI Example:\n\n    saltern run '*' group.delete foo\n",
        run: |call| async move { succeeds(&call, "groupdel", &[&operand(&call, "name")?]).await }.boxed(),
    },
    Function {
        name: "group.deluser",
        params: &[NAME, USERNAME],
        doc: "Take a user out of a group. True if the user is not in it afterwards.\n\n\
              CLI Example:\n\n    saltern run '*' group.deluser foo bar\n",
        run: |call| async move { remove_user(&call).await }.boxed(),
    },
    Function {
        name: "group.getent",
        params: &[Param::Optional("refresh", "False")],
        doc: "Tell about all groups.\n\nCLI Example:\n\n    saltern run '*' group.getent\n",
        run: |call| call.blocking(|_| Ok(Value::list(accounts::groups().iter().map(told)).into())),
    },
    Function {
        name: "group.info",
        params: &[NAME],
        doc: "Tell about a group; an empty map if there is none of this name.\n\n\
              CLI Example:\n\n    saltern run '*' group.info foo\n",
        run: |call| {
            call.blocking(|call| {
                Ok(accounts::group(&call.text("name")?).map_or_else(Map::new, |group| told(&group)).into())
            })
        },
    },
    Function {
        name: "group.members",
        params: &[NAME, Param::Required("members_list")],
        doc: "Make these the members of a group, and no others. True if it worked.\n\n\
              CLI Example:\n\n    saltern run '*' group.members foo 'user1,user2,user3'\n",
        run: |call| {
            async move {
                let members = group_names(call.get("members_list"))?.join(",");
                succeeds(&call, "gpasswd", &["--members", &members, &operand(&call, "name")?]).await
            }
            .boxed()
        },
    },
];

fn told(group: &Group) -> Map {
    let mut info = Map::with_capacity(4);
    info.push("name", &group.name);
    info.push("passwd", &group.password);
    info.push("gid", group.gid);
    info.push("members", Value::list(&group.members));
    info
}

async fn add(call: &Call) -> Answer {
    let name = operand(call, "name")?;
    let mut args = Vec::new();
    if let Some(gid) = call.opt_text("gid")? {
        args.extend(["-g".to_owned(), gid]);
        args.extend(call.flag("non_unique", false).then(|| "-o".to_owned()));
    }
    args.extend(call.flag("system", false).then(|| "-r".to_owned()));
    args.push(name);
    Ok(Command::tool("groupadd").args(&args).run(&call.context).await?.is_ok().into())
}

async fn change_gid(call: &Call) -> Answer {
    let name = operand(call, "name")?;
    let gid = call.text("gid")?;
    let known = find(&name).await?.ok_or_else(|| Failure::Command(format!("Group '{name}' does not exist")))?;
    if known.gid.to_string() == gid {
        return Ok(true.into());
    }
    let unique = call.flag("non_unique", false).then_some("-o");
    Command::tool("groupmod").args(unique.into_iter().chain(["-g", &gid, &name])).run(&call.context).await?;
    Ok(find(&name).await?.is_some_and(|group| group.gid.to_string() == gid).into())
}

async fn remove_user(call: &Call) -> Answer {
    let (name, username) = (operand(call, "name")?, operand(call, "username")?);
    match find(&name).await? {
        Some(group) if group.members.contains(&username) => {
            succeeds(call, "gpasswd", &["--del", &username, &name]).await
        }
        _ => Ok(true.into()),
    }
}

async fn succeeds(call: &Call, program: &str, args: &[&str]) -> Answer {
    Ok(Command::tool(program).args(args).run(&call.context).await?.is_ok().into())
}

async fn find(name: &str) -> Result<Option<Group>, Failure> {
    let name = name.to_owned();
    blocking(move || accounts::group(&name)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[tokio::test]
    async fn the_group_of_root_is_known() {
        let bench = Bench::new();
        let info = bench.call("group.info", &["root".into()], &[]).await;
        assert_eq!((info.get("name"), info.get("gid")), (Some(&"root".into()), Some(&0.into())));
        assert!(bench.call("group.getent", &[], &[]).await.as_list().unwrap().contains(&info));
    }

    #[tokio::test]
    async fn a_group_that_is_not_there_is_empty() {
        let bench = Bench::new();
        assert_eq!(bench.call("group.info", &["no-such-group".into()], &[]).await, Value::Map(Map::new()));
        assert_eq!(bench.call("group.deluser", &["no-such-group".into(), "root".into()], &[]).await, true.into());
        assert!(bench.fail("group.chgid", &["no-such-group".into(), 5.into()], &[]).await.contains("does not exist"));
    }
}
