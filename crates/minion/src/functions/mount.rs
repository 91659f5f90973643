//! `mount.*`: what is mounted where.

use super::call::Answer;
use super::{Call, Failure, Function, Param};
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "mount.active",
        params: &[Param::Optional("extended", "False")],
        doc: "Tell what is mounted, by mount point. extended=True tells more of each.\n\n\
              CLI Example:\n\n    saltern run '*' mount.active\n",
        run: |call| call.blocking(active),
    },
    Function {
        name: "mount.is_mounted",
        params: &[Param::Required("name")],
        doc: "Tell whether something is mounted at a path.\n\n\
              CLI Example:\n\n    saltern run '*' mount.is_mounted /mnt/share\n",
        run: |call| {
            call.blocking(|call| {
                let name = call.text("name")?;
                Ok(read_mounts(&read("mounts")?).get(&name).is_some().into())
            })
        },
    },
];

fn active(call: &Call) -> Answer {
    if call.flag("extended", false) {
        return Ok(read_mount_info(&read("mountinfo")?).into());
    }
    Ok(read_mounts(&read("mounts")?).into())
}

fn read(file: &str) -> Result<String, Failure> {
    let path = format!("/proc/self/{file}");
    std::fs::read_to_string(&path).map_err(|_| Failure::Command(format!("File not readable {path}")))
}

/// Device, path, kind, options.
fn read_mounts(text: &str) -> Map {
    let mut told = Map::new();
    for line in text.lines() {
        if let [device, path, kind, options, ..] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let entry = [
                ("device", Value::from(device)),
                ("alt_device", device.into()),
                ("fstype", kind.into()),
                ("opts", option_list(options)),
            ];
            told.insert(path, Value::map(entry));
        }
    }
    told
}

/// The fixed columns, any number of further ones, a dash, then kind, device and options of the file system itself.
fn read_mount_info(text: &str) -> Map {
    let mut told = Map::new();
    for line in text.lines() {
        let Some((head, tail)) = line.split_once(" - ") else { continue };
        let (head, tail): (Vec<&str>, Vec<&str>) =
            (head.split_whitespace().collect(), tail.split_whitespace().collect());
        if let ([id, parent, device, root, path, options, ..], [kind, name, inner, ..]) = (&head[..], &tail[..]) {
            let (major, minor) = device.split_once(':').unwrap_or((device, ""));
            let entry = [
                ("mountid", Value::from(*id)),
                ("parentid", (*parent).into()),
                ("major", major.into()),
                ("minor", minor.into()),
                ("root", (*root).into()),
                ("opts", option_list(options)),
                ("fstype", (*kind).into()),
                ("device", (*name).into()),
                ("alt_device", (*name).into()),
                ("superopts", option_list(inner)),
                ("device_uuid", Value::Nil),
                ("device_label", Value::Nil),
            ];
            told.insert(*path, Value::map(entry));
        }
    }
    told
}

fn option_list(options: &str) -> Value {
    Value::list(options.split(',').map(|option| option.replace("\\040", "\\ ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn mounts_are_told_by_path() {
        let told =
            Value::Map(read_mounts("/dev/vda / ext4 rw,relatime 0 0\ntmpfs /tmp/a\\040b tmpfs rw,size=4k 0 0\n"));
        let root = Value::map([
            ("device", Value::from("/dev/vda")),
            ("alt_device", "/dev/vda".into()),
            ("fstype", "ext4".into()),
            ("opts", Value::list(["rw", "relatime"])),
        ]);
        assert_eq!(told.get("/"), Some(&root));
        assert!(told.get("/tmp/a\\040b").is_some());
    }

    #[test]
    fn more_is_told_of_each() {
        let told = Value::Map(read_mount_info(
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\nbroken\n",
        ));
        let entry = told.get("/mnt2").unwrap();
        assert_eq!(
            (entry.get("major"), entry.get("root"), entry.get("device")),
            (Some(&"98".into()), Some(&"/mnt1".into()), Some(&"/dev/root".into()))
        );
        assert_eq!(entry.get("superopts"), Some(&Value::list(["rw", "errors=continue"])));
    }

    #[tokio::test]
    async fn something_is_mounted_at_proc() {
        let bench = Bench::new();
        let told = bench.call("mount.active", &[], &[]).await;
        assert_eq!(told.get("/proc").and_then(|proc| proc.get("fstype")), Some(&"proc".into()));
        assert_eq!(bench.call("mount.is_mounted", &["/proc".into()], &[]).await, true.into());
        assert_eq!(bench.call("mount.is_mounted", &["/no/such/place".into()], &[]).await, false.into());
    }
}
