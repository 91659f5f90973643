//! `sysctl.*`: settings of the kernel, read from `/proc/sys`.

use super::call::Answer;
use super::{Call, Failure, Function, Param};
use saltern_core::value::Map;
use std::path::{Path, PathBuf};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "sysctl.get",
        params: &[Param::Required("name")],
        doc: "Tell one setting of the kernel.\n\nCLI Example:\n\n    saltern run '*' sysctl.get net.ipv4.ip_forward\n",
        run: |call| call.blocking(get),
    },
    Function {
        name: "sysctl.show",
        params: &[Param::Optional("config_file", "False")],
        doc: "Tell all settings of the kernel, or those that a file sets.\n\n\
              CLI Example:\n\n    saltern run '*' sysctl.show\n    saltern run '*' sysctl.show config_file=/etc/sysctl.conf\n",
        run: |call| call.blocking(show),
    },
];

const ROOT: &str = "/proc/sys";

fn get(call: &Call) -> Answer {
    let name = call.text("name")?;
    let path = path(&name).ok_or_else(|| Failure::Arguments(format!("'{name}' is not the name of a setting")))?;
    match std::fs::read(&path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned().into()),
        Err(_) => Err(Failure::Command(format!("cannot stat {}: there is no setting of this name", path.display()))),
    }
}

fn show(call: &Call) -> Answer {
    match call.opt_text("config_file")?.filter(|file| file != "False") {
        Some(file) => match std::fs::read_to_string(&file) {
            Ok(text) => Ok(read_file(&text).into()),
            Err(_) => Ok(saltern_core::value::Value::List(Vec::new()).into()),
        },
        None => {
            let mut all = Vec::new();
            collect(Path::new(ROOT), "", &mut all);
            all.sort();
            Ok(all.into_iter().map(|(name, value)| (name.into(), value.into())).collect::<Map>().into())
        }
    }
}

/// Dots separate; a slash does too, so that an interface such as `eth0.5` can be named.
fn path(name: &str) -> Option<PathBuf> {
    let parts: Vec<&str> = if name.contains('/') { name.split('/').collect() } else { name.split('.').collect() };
    let is_safe = !parts.is_empty() && parts.iter().all(|part| !part.is_empty() && *part != ".." && *part != ".");
    is_safe.then(|| Path::new(ROOT).join(parts.join("/")))
}

/// Everything below a folder that can be read; there are settings that can only be written.
fn collect(dir: &Path, prefix: &str, into: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy().replace('.', "/"));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), &format!("{name}."), into),
            Ok(kind) if kind.is_file() => {
                if let Ok(bytes) = std::fs::read(entry.path()) {
                    into.push((name, String::from_utf8_lossy(&bytes).trim_end().to_owned()));
                }
            }
            _ => {}
        }
    }
}

fn read_file(text: &str) -> Map {
    let mut told = Map::new();
    for (name, value) in
        text.lines().map(str::trim).filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='))
    {
        told.insert(name.trim_end(), value.trim_start());
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;
    use saltern_core::value::Value;

    #[test]
    fn names_become_paths_and_cannot_leave_the_folder() {
        assert_eq!(path("kernel.ostype"), Some("/proc/sys/kernel/ostype".into()));
        assert_eq!(path("net/ipv4/conf/eth0.5/forwarding"), Some("/proc/sys/net/ipv4/conf/eth0.5/forwarding".into()));
        for bad in ["", "..", "a/../../etc", "/etc/passwd", "a..b"] {
            assert_eq!(path(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_of_settings_is_read() {
        assert_eq!(
            Value::Map(read_file("# x=1\nnet.ipv4.ip_forward = 1\n\nvm.swappiness=10\n")),
            Value::map([("net.ipv4.ip_forward", "1"), ("vm.swappiness", "10")])
        );
    }

    #[tokio::test]
    async fn the_kernel_tells_what_it_is() {
        let bench = Bench::new();
        assert_eq!(bench.call("sysctl.get", &["kernel.ostype".into()], &[]).await, "Linux".into());
        assert!(bench.fail("sysctl.get", &["kernel.nonsense".into()], &[]).await.starts_with("ERROR: cannot stat"));
        assert_eq!(bench.call("sysctl.show", &[], &[]).await.get("kernel.ostype"), Some(&"Linux".into()));
    }
}
