//! The rpm database, which dnf, yum and zypper share.

use super::super::Failure;
use super::apt::iso_date;
use super::manager::{Packages, Programs, words};
use super::versions::compare_rpm;
use saltern_core::value::{Map, Value};
use std::collections::BTreeMap;

const LIST_FORMAT: &str = "--queryformat=%{NAME}_|-%{EPOCH}_|-%{VERSION}_|-%{RELEASE}_|-%{ARCH}\\n";

const INFO_FORMAT: &str = concat!(
    "--queryformat=name: %{NAME}\\n\
        version: %{VERSION}\\n\
        vendor: %{VENDOR}\\n\
        release: %{RELEASE}\\n\
        %|EPOCH?{epoch: %{EPOCH}\\n\
        }|",
    "build_date_time_t: %{BUILDTIME}\\n\
        install_date_time_t: %{INSTALLTIME}\\n\
        build_host: %{BUILDHOST}\\n\
        group: %{GROUP}\\n",
    "source: %{SOURCERPM}\\nsize: %{SIZE}\\narch: %{ARCH}\\n%|LICENSE?{license: %{LICENSE}\\n}|",
    "%|PACKAGER?{packager: %{PACKAGER}\\n\
        }|%|URL?{url: %{URL}\\n\
        }|summary: %{SUMMARY}\\n\
        description:\\n\
        %{DESCRIPTION}\\n\
        \u{1e}"
);

/// What is installed; a package of another architecture carries its name.
pub(super) async fn installed(programs: &dyn Programs, osarch: &str) -> Result<Packages, Failure> {
    let done = programs.look("rpm", &words(["-qa", "--nodigest", "--nosignature", LIST_FORMAT])).await?;
    if !done.is_ok() {
        return Err(Failure::Command(done.complaint()));
    }
    Ok(read_list(&done.text(), osarch))
}

/// The files of these packages, of all without names.
pub(super) async fn files(programs: &dyn Programs, names: &[String]) -> Result<Vec<String>, Failure> {
    let mut args = words([if names.is_empty() { "-qla" } else { "-ql" }]);
    args.extend_from_slice(names);
    Ok(programs.look("rpm", &args).await?.text().lines().map(str::to_owned).collect())
}

/// The package a file belongs to.
pub(super) async fn owner(programs: &dyn Programs, path: &str) -> Result<String, Failure> {
    let done = programs.look("rpm", &words(["-qf", "--queryformat=%{NAME}\\n", path])).await?;
    Ok(if done.is_ok() { done.text().lines().next().unwrap_or_default().to_owned() } else { String::new() })
}

/// What is known of these packages, of all without names; the newest where several versions are installed.
pub(super) async fn info(programs: &dyn Programs, names: &[String]) -> Result<BTreeMap<String, Map>, Failure> {
    let mut args = words([if names.is_empty() { "-qa" } else { "-q" }, INFO_FORMAT]);
    args.extend_from_slice(names);
    Ok(read_info(&programs.look("rpm", &args).await?.text()))
}

/// `name` or `name.arch`, as Salt tells packages of several architectures apart.
pub(super) fn full_name(name: &str, arch: &str, osarch: &str) -> String {
    const I386: [&str; 4] = ["i386", "i486", "i586", "i686"];
    const X86_64: [&str; 2] = ["x86_64", "x86_64_v2"];
    let both_in = |family: &[&str]| family.contains(&arch) && family.contains(&osarch);
    let is_native = arch == osarch
        || arch == "noarch"
        || arch == "(none)"
        || osarch.is_empty()
        || both_in(&I386)
        || both_in(&X86_64);
    if is_native { name.to_owned() } else { format!("{name}.{arch}") }
}

fn read_list(text: &str, osarch: &str) -> Packages {
    let mut packages = Packages::new();
    for line in text.lines() {
        let [name, epoch, version, release, arch] = line.split("_|-").collect::<Vec<_>>()[..] else { continue };
        // Keys of repositories are in the database as well.
        if name.starts_with("gpg-pubkey") {
            continue;
        }
        let mut full = if release.is_empty() { version.to_owned() } else { format!("{version}-{release}") };
        if !matches!(epoch, "(none)" | "0") {
            full = format!("{epoch}:{full}");
        }
        packages.entry(full_name(name, arch, osarch)).or_default().push(full);
    }
    for versions in packages.values_mut() {
        versions.sort_by(|a, b| compare_rpm(a, b));
    }
    packages
}

fn read_info(text: &str) -> BTreeMap<String, Map> {
    let mut found: BTreeMap<String, Map> = BTreeMap::new();
    for record in text.split('\u{1e}') {
        let Some((fields, description)) = record.split_once("\ndescription:\n") else { continue };
        let (mut name, mut info) = (None, Map::new());
        for (key, value) in
            fields.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key, value.trim()))
        {
            match (key, value.parse::<i64>()) {
                ("name", _) => name = Some(value.to_owned()),
                ("build_date_time_t" | "install_date_time_t", Ok(seconds)) => {
                    info.insert(key.trim_end_matches("_time_t"), iso_date(seconds));
                    info.insert(key, seconds);
                }
                ("build_date_time_t" | "install_date_time_t", Err(_)) => {}
                _ if value.is_empty() => {}
                _ => drop(info.insert(key, value)),
            }
        }
        info.insert("description", description.trim_end_matches('\n'));
        let edition = |info: &Map| {
            let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or("0").to_owned();
            format!("{}:{}-{}", text("epoch"), text("version"), text("release"))
        };
        let Some(name) = name.filter(|name| !name.starts_with("gpg-pubkey")) else { continue };
        if found.get(&name).is_none_or(|known| compare_rpm(&edition(known), &edition(&info)).is_lt()) {
            found.insert(name, info);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_listed_with_epoch_and_architecture() {
        let text = "bash_|-(none)_|-5.1.8_|-6.el9_|-x86_64\n\
            vim-minimal_|-2_|-8.2.2637_|-20.el9_|-x86_64\n\
            glibc_|-(none)_|-2.34_|-83.el9_|-i686\n\
            kernel_|-(none)_|-5.14.0_|-362.el9_|-x86_64\n\
            kernel_|-(none)_|-5.14.0_|-70.el9_|-x86_64\n\
            gpg-pubkey_|-(none)_|-8483c65d_|-5ccc5b19_|-(none)\n";
        let found = read_list(text, "x86_64");
        assert_eq!(found["bash"], ["5.1.8-6.el9"]);
        assert_eq!(found["vim-minimal"], ["2:8.2.2637-20.el9"]);
        assert_eq!(found["glibc.i686"], ["2.34-83.el9"]);
        assert_eq!(found["kernel"], ["5.14.0-70.el9", "5.14.0-362.el9"]);
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn the_newest_of_several_versions_is_described() {
        let record = |release: &str| {
            format!(
                "name: kernel\n\
                    version: 5.14.0\n\
                    release: {release}\n\
                    build_date_time_t: 1700000000\n\
                    install_date_time_t: 1700000000\n\
                    url: http://k\n\
                    summary: the kernel\n\
                    description:\n\
                    The kernel\n"
            )
        };
        let found = read_info(&format!("{}\u{1e}{}\u{1e}package x is not installed\n", record("70"), record("362")));
        let kernel = Value::Map(found["kernel"].clone());
        assert_eq!(kernel.get("release"), Some(&"362".into()));
        assert_eq!(kernel.get("install_date"), Some(&"2023-11-14T22:13:20Z".into()));
        assert_eq!(kernel.get("build_date_time_t"), Some(&1_700_000_000.into()));
        assert_eq!(kernel.get("url"), Some(&"http://k".into()));
    }
}
