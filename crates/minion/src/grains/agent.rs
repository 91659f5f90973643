//! The agent as a process, and the kernel under it.

use super::source::{ask, read, read_trimmed, split_words};
use crate::functions::{accounts, find_program};
use saltern_core::value::{Map, Value};
use std::path::Path;

/// Adds the grains of the kernel: its name and release, its parameters, its boot.
pub(super) fn add_kernel(grains: &mut Map) {
    let uname = rustix::system::uname();
    grains.insert("kernel", &*uname.sysname().to_string_lossy());
    grains.insert("nodename", &*uname.nodename().to_string_lossy());
    grains.insert("kernelrelease", &*uname.release().to_string_lossy());
    grains.insert("kernelversion", &*uname.version().to_string_lossy());
    grains.insert("cpuarch", &*uname.machine().to_string_lossy());
    if let Some(text) = read("/proc/cmdline") {
        grains.insert("kernelparams", parameters(&text));
    }
    if let Some(boot) = read_trimmed("/proc/sys/kernel/random/boot_id") {
        grains.insert("boot_id", boot);
    }
    if let Some(id) = ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().find_map(read_trimmed) {
        grains.insert("machine_id", id);
    }
    if find_program("selinuxenabled").is_some() {
        grains.insert("selinux", selinux());
    }
}

/// Adds the grains of the service manager.
pub(super) fn add_init(grains: &mut Map) {
    if find_program("localectl").is_some()
        && let Some((_, text)) = ask("systemctl", &["--version"])
    {
        grains.insert("systemd", systemd(&text));
    }
    grains.insert("init", init());
}

/// Adds the grains of the agent's own process.
pub(super) fn add_process(grains: &mut Map) {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let user = accounts::user_of(uid);
    let group = accounts::group_name(user.as_ref().map_or(gid, |user| user.gid));
    grains.insert("pid", std::process::id());
    grains.insert("uid", uid);
    grains.insert("gid", gid);
    grains.insert("username", user.map(|user| user.name));
    grains.insert("groupname", group.unwrap_or_default());
    if let Ok(cwd) = std::env::current_dir() {
        grains.insert("cwd", &*cwd.to_string_lossy());
    }
    let path = std::env::var("PATH").unwrap_or_default();
    grains.insert("systempath", Value::list(path.split(':')));
    grains.insert("path", path);
    grains.insert("shell", std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".into()));
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default();
    grains.insert("locale_info", locale_info(&locale, ask("date", &["+%Z"]).map(|(_, zone)| zone)));
}

/// `name=value` pairs; Salt gives no value where there is more than one equals sign, so neither do we.
fn parameters(text: &str) -> Value {
    let pair = |word: String| {
        let parts: Vec<&str> = word.split('=').collect();
        let value = match parts[..] {
            [_, value] => Value::from(value.trim_matches('"')),
            _ => Value::Nil,
        };
        Value::List(vec![parts.first().copied().unwrap_or_default().into(), value])
    };
    Value::list(split_words(text).into_iter().map(pair))
}

fn selinux() -> Value {
    let enforce = read_trimmed("/sys/fs/selinux/enforce");
    let mut grain = Map::new();
    grain.push("enabled", enforce.is_some());
    if find_program("getenforce").is_some() {
        grain.push(
            "enforced",
            match enforce.as_deref() {
                Some("1") => "Enforcing",
                Some(_) => "Permissive",
                None => "Disabled",
            },
        );
    }
    Value::Map(grain)
}

/// Version and features, from the two lines of `systemctl --version`.
fn systemd(text: &str) -> Value {
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("systemd ")?.split_whitespace().next());
    let features = version.and_then(|_| lines.next()).unwrap_or_default();
    Value::map([("version", version.unwrap_or("UNDEFINED")), ("features", features)])
}

/// The first process, by its name or by what its program contains.
fn init() -> &'static str {
    if Path::new("/run/systemd/system").exists() {
        return "systemd";
    }
    let line = read("/proc/1/cmdline").unwrap_or_default();
    let words: Vec<&str> = line.split(['\0', ' ']).filter(|word| !word.is_empty()).collect();
    let Some(program) = words.first().and_then(|first| find_program(first)) else { return "unknown" };
    if program.ends_with("bin/init") {
        // Which init it is stands somewhere inside the program, as in its messages.
        let content = std::fs::read(&program).unwrap_or_default().to_ascii_lowercase();
        let has = |name: &&str| content.windows(name.len()).any(|part| part == name.as_bytes());
        return ["upstart", "sysvinit", "systemd"].into_iter().find(has).unwrap_or("unknown");
    }
    let stands = |name: &str| find_program(name).is_some_and(|path| words.iter().any(|word| Path::new(word) == path));
    match () {
        () if stands("supervisord") => "supervisord",
        () if stands("dumb-init") => "dumb-init",
        () if stands("tini") => "tini",
        () if words == ["runit"] || words.contains(&"/sbin/my_init") => "runit",
        () => "unknown",
    }
}

/// `C` and `POSIX` are the plain locale, which Python takes for American English in UTF-8.
fn locale_info(locale: &str, zone: Option<String>) -> Value {
    let (language, encoding) = locale.split_once('.').unwrap_or((locale, "UTF-8"));
    let language = if matches!(language, "" | "C" | "POSIX") { "en_US" } else { language };
    let encoding = encoding.split('@').next().unwrap_or(encoding);
    let encoding = if encoding.eq_ignore_ascii_case("utf8") { "UTF-8".into() } else { encoding.to_uppercase() };
    Value::map([
        ("defaultlanguage", language.into()),
        ("detectedencoding", encoding.to_lowercase().into()),
        ("defaultencoding", encoding.into()),
        ("timezone", Value::from(zone.filter(|zone| !zone.is_empty()).unwrap_or_else(|| "unknown".into()))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_parameters_are_pairs() {
        let pair = |name: &str, value: Value| Value::List(vec![name.into(), value]);
        let found = parameters("quiet console=ttyS0 root=UUID=1 x=\"a b\"\n");
        assert_eq!(
            found,
            Value::List(vec![
                pair("quiet", Value::Nil),
                pair("console", "ttyS0".into()),
                pair("root", Value::Nil),
                pair("x", "a b".into())
            ])
        );
    }

    #[test]
    fn systemd_tells_version_and_features() {
        assert_eq!(
            systemd("systemd 252 (252.38-1)\n+PAM -IDN"),
            Value::map([("version", "252"), ("features", "+PAM -IDN")])
        );
        assert_eq!(systemd("nonsense"), Value::map([("version", "UNDEFINED"), ("features", "")]));
    }

    #[test]
    fn locales_are_split() {
        let told = |locale| {
            let info = locale_info(locale, None);
            ["defaultlanguage", "defaultencoding"].map(|key| info.get(key).and_then(Value::as_str).unwrap().to_owned())
        };
        assert_eq!(told("de_DE.utf8"), ["de_DE", "UTF-8"]);
        assert_eq!(told("C"), ["en_US", "UTF-8"]);
        assert_eq!(told("C.UTF-8"), ["en_US", "UTF-8"]);
    }
}
