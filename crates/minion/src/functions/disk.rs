//! `disk.*`: room on file systems, as `df` tells it.

use super::call::Answer;
use super::command::Command;
use super::{Call, Failure, Function, Param};
use futures_util::FutureExt;
use saltern_core::value::{Map, Value};

const ARGS: &[Param] = &[Param::Optional("args", "None")];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "disk.inodeusage",
        params: ARGS,
        doc: "Tell how many inodes file systems have left.\n\nCLI Example:\n\n    saltern run '*' disk.inodeusage\n",
        run: |call| async move { Ok(read_inodes(&df(&call, "-iP").await?).into()) }.boxed(),
    },
    Function {
        name: "disk.percent",
        params: ARGS,
        doc: "Tell how full file systems are, in percent: of all, or of one mount point.\n\n\
              CLI Example:\n\n    saltern run '*' disk.percent /var\n",
        run: |call| async move { percent(&call).await }.boxed(),
    },
    Function {
        name: "disk.usage",
        params: ARGS,
        doc: "Tell how much room file systems have. args are letters of df's options, such as h or H.\n\n\
              CLI Example:\n\n    saltern run '*' disk.usage\n",
        run: |call| async move { Ok(read_usage(&df(&call, "-P").await?).into()) }.boxed(),
    },
];

async fn percent(call: &Call) -> Answer {
    let done = Command::tool("df").args(["-P"]).run(&call.context).await?;
    let used = |(path, entry): &(Value, Value)| (path.clone(), entry.get("capacity").cloned().unwrap_or_default());
    let all: Map = read_usage(&done.text()).iter().map(used).collect();
    match call.opt_text("args")? {
        None => Ok(all.into()),
        Some(path) => match all.get(&path) {
            Some(percent) => Ok(percent.clone().into()),
            None => Err(Failure::Command(format!("Problem running disk.percent on {path}: it is not a mount point"))),
        },
    }
}

async fn df(call: &Call, option: &str) -> Result<String, Failure> {
    const KNOWN: &str = "aBhHiklPtTxv";
    let flags = call.opt_text("args")?.unwrap_or_default();
    if !flags.chars().all(|flag| KNOWN.contains(flag)) {
        return Err(Failure::Command("Invalid flag passed to disk.usage".into()));
    }
    // A mount that cannot be looked at makes df end with 1, after it has told the others.
    Ok(Command::tool("df").args([format!("{option}{flags}")]).run(&call.context).await?.text())
}

/// Six columns; the size's heading depends on the options, and names of devices may have spaces.
fn read_usage(text: &str) -> Map {
    let size =
        if text.lines().next().is_some_and(|heading| heading.contains("1024-blocks")) { "1K-blocks" } else { "size" };
    let mut told = Map::new();
    for line in text.lines().skip(1) {
        let Some((head, path)) = split_path(line) else { continue };
        let columns: Vec<&str> = head.split_whitespace().collect();
        let [device @ .., total, used, available, capacity] = &columns[..] else { continue };
        let entry = [
            ("filesystem", device.join(" ").as_str()),
            (size, *total),
            ("used", *used),
            ("available", *available),
            ("capacity", *capacity),
        ]
        .map(|(key, value)| (key, value.to_owned()));
        told.insert(path, Value::map(entry));
    }
    told
}

fn read_inodes(text: &str) -> Map {
    let mut told = Map::new();
    for line in text.lines().skip(1) {
        let Some((head, path)) = split_path(line) else { continue };
        let columns: Vec<&str> = head.split_whitespace().collect();
        let [device @ .., inodes, used, free, share] = &columns[..] else { continue };
        let entry = [
            ("inodes", *inodes),
            ("used", *used),
            ("free", *free),
            ("use", *share),
            ("filesystem", device.join(" ").as_str()),
        ]
        .map(|(key, value)| (key, value.to_owned()));
        told.insert(path, Value::map(entry));
    }
    told
}

/// The mount point is what comes after the percentage.
fn split_path(line: &str) -> Option<(&str, &str)> {
    let at = line.find("% /").map(|at| at + 1).or_else(|| line.find(" - /").map(|at| at + 2))?;
    Some((&line[..at], line[at..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn usage_is_told_by_mount_point() {
        let text = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
            /dev/vda         264212084 27287024  67998864      29% /\n\
            share with space      4        0         4       0% /mnt/a b\n\
            none                     0        0         0       - /proc/x\n";
        let told = Value::Map(read_usage(text));
        let root = Value::map([
            ("filesystem", "/dev/vda"),
            ("1K-blocks", "264212084"),
            ("used", "27287024"),
            ("available", "67998864"),
            ("capacity", "29%"),
        ]);
        assert_eq!(told.get("/"), Some(&root));
        assert_eq!(told.get("/mnt/a b").and_then(|entry| entry.get("filesystem")), Some(&"share with space".into()));
        assert_eq!(told.get("/proc/x").and_then(|entry| entry.get("capacity")), Some(&"-".into()));
    }

    #[test]
    fn inodes_are_told_by_mount_point() {
        let told = Value::Map(read_inodes(
            "Filesystem       Inodes  IUsed    IFree IUse% Mounted on\n\
                /dev/vda       16777216 505969 16271247    4% /\n",
        ));
        let root = Value::map([
            ("inodes", "16777216"),
            ("used", "505969"),
            ("free", "16271247"),
            ("use", "4%"),
            ("filesystem", "/dev/vda"),
        ]);
        assert_eq!(told.get("/"), Some(&root));
    }

    #[tokio::test]
    async fn the_root_of_this_machine_is_told() {
        let bench = Bench::new();
        let told = bench.call("disk.usage", &[], &[]).await;
        let capacity = told.get("/").and_then(|root| root.get("capacity")).cloned().unwrap();
        assert!(capacity.as_str().unwrap().ends_with('%'));
        assert_eq!(bench.call("disk.percent", &["/".into()], &[]).await, capacity);
        assert!(bench.call("disk.inodeusage", &[], &[]).await.get("/").is_some());
        assert!(bench.fail("disk.usage", &["z".into()], &[]).await.contains("Invalid flag"));
    }
}
