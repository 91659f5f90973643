//! dnf and yum: Red Hat and its kin.

use super::super::command::Finished;
use super::manager::{Answer, HoldWords, How, Manager, Packages, Programs, Target, words};
use super::rpm;
use super::versions::compare_rpm;
use futures_util::FutureExt;
use saltern_core::value::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// dnf or yum on a machine of this architecture.
pub(super) struct Dnf {
    /// `dnf`, `dnf5`, `tdnf` or `yum`
    pub(super) program: String,
    /// The grain `osarch`
    pub(super) arch: String,
}

impl Manager for Dnf {
    fn installed<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Packages> {
        rpm::installed(programs, &self.arch).boxed()
    }

    /// Updates are waiting: true; none are: none; it did not work: false.
    fn refresh<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Value> {
        async move {
            programs.look(&self.program, &words(["--quiet", "--assumeyes", "clean", "expire-cache"])).await?;
            let done = programs.look(&self.program, &words(["--quiet", "--assumeyes", "check-update"])).await?;
            Ok(match done.code {
                100 => Value::Bool(true),
                0 => Value::Nil,
                _ => Value::Bool(false),
            })
        }
        .boxed()
    }

    fn candidates<'a>(
        &'a self,
        programs: &'a dyn Programs,
        names: &'a [String],
        repo: Option<&'a str>,
    ) -> Answer<'a, BTreeMap<String, String>> {
        async move {
            let mut args = words(["--quiet"]);
            args.extend(from_repository(repo));
            args.extend(words(if self.is_dnf() { ["list", "--available"] } else { ["list", "available"] }));
            args.extend_from_slice(names);
            let done = programs.look(&self.program, &args).await?;
            // Nothing available is exit code 1.
            Ok(if done.is_ok() { self.read_list(&done.text()) } else { BTreeMap::new() })
        }
        .boxed()
    }

    fn upgrades<'a>(
        &'a self,
        programs: &'a dyn Programs,
        _whole_distribution: bool,
    ) -> Answer<'a, BTreeMap<String, String>> {
        async move {
            let what = if self.is_dnf() { "--upgrades" } else { "updates" };
            let done = programs.look(&self.program, &words(["--quiet", "list", what])).await?;
            Ok(if done.is_ok() { self.read_list(&done.text()) } else { BTreeMap::new() })
        }
        .boxed()
    }

    fn install<'a>(
        &'a self,
        programs: &'a dyn Programs,
        targets: &'a [Target],
        how: &'a How,
        installed: &'a Packages,
    ) -> Answer<'a, Finished> {
        async move {
            let (mut plain, mut again, mut older) = (Vec::new(), Vec::new(), Vec::new());
            for target in targets {
                let versions = installed.get(&target.name).map(Vec::as_slice).unwrap_or_default();
                let newest = versions.last();
                let against =
                    |has: &String| target.version.as_deref().map_or(Ordering::Equal, |wanted| compare_rpm(wanted, has));
                let word = match (&target.file, &target.version) {
                    (Some(file), _) => file.clone(),
                    (None, Some(version)) => versioned(&target.name, version),
                    (None, None) => target.name.clone(),
                };
                match newest.map(against) {
                    Some(Ordering::Equal) if how.reinstall => again.push(word),
                    Some(Ordering::Less) if target.version.is_some() => older.push(word),
                    _ => plain.push(word),
                }
            }
            let mut last = Finished::default();
            for (verb, names) in [("install", plain), ("downgrade", older), ("reinstall", again)] {
                if names.is_empty() {
                    continue;
                }
                let mut args = self.change_args(how);
                args.push(verb.into());
                args.extend(names);
                last = programs.change(&self.program, &args).await?;
                if !last.is_ok() {
                    break;
                }
            }
            Ok(last)
        }
        .boxed()
    }

    fn remove<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], _purge: bool) -> Answer<'a, Finished> {
        async move {
            let mut args = words(["-y", "remove"]);
            args.extend_from_slice(names);
            programs.change(&self.program, &args).await
        }
        .boxed()
    }

    fn upgrade<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], how: &'a How) -> Answer<'a, Finished> {
        async move {
            let mut args = words(["--quiet", "-y"]);
            args.extend(from_repository(how.repo.as_deref()));
            args.extend(how.skip_verify.then(|| "--nogpgcheck".to_owned()));
            args.push("upgrade".into());
            args.extend_from_slice(names);
            programs.change(&self.program, &args).await
        }
        .boxed()
    }

    fn held<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Vec<String>> {
        async move { Ok(read_locks(&programs.look(&self.program, &words(["versionlock", "list"])).await?.text())) }
            .boxed()
    }

    fn hold<'a>(&'a self, programs: &'a dyn Programs, name: &'a str, held: bool) -> Answer<'a, Finished> {
        async move {
            // yum knows locks by their full expression only.
            let pattern = if held || self.is_dnf() { name.to_owned() } else { format!("*:{name}-*") };
            programs.change(&self.program, &words(["versionlock", if held { "add" } else { "delete" }, &pattern])).await
        }
        .boxed()
    }

    fn files<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String]) -> Answer<'a, Vec<String>> {
        rpm::files(programs, names).boxed()
    }

    fn owner<'a>(&'a self, programs: &'a dyn Programs, path: &'a str) -> Answer<'a, String> {
        rpm::owner(programs, path).boxed()
    }

    fn info<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String]) -> Answer<'a, BTreeMap<String, Map>> {
        rpm::info(programs, names).boxed()
    }

    fn compare(&self, a: &str, b: &str) -> Ordering {
        compare_rpm(a, b)
    }

    fn hold_words(&self) -> &'static HoldWords {
        &HoldWords { let_go: "Package {} is no longer held.", was_free: "Package {} is not being held.", free: "" }
    }
}

impl Dnf {
    fn is_dnf(&self) -> bool {
        self.program.contains("dnf")
    }

    fn change_args(&self, how: &How) -> Vec<String> {
        let mut args = words(["-y"]);
        if self.is_dnf() && self.program != "tdnf" {
            args.extend(words(["--best", "--allowerasing"]));
        }
        args.extend(from_repository(how.repo.as_deref()));
        let flags = [(how.skip_verify, "--nogpgcheck"), (how.download_only, "--downloadonly")];
        args.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag.to_owned()));
        args.extend(
            how.recommends.map(|yes| format!("--setopt=install_weak_deps={}", if yes { "True" } else { "False" })),
        );
        args
    }

    /// `name.arch  version  repository`, where long names push the rest to the next line; the highest version of each name.
    fn read_list(&self, text: &str) -> BTreeMap<String, String> {
        const HEADINGS: [&str; 5] = ["Available ", "Installed ", "Upgraded ", "Updated ", "Obsoleting "];
        let is_entry = |line: &&str| {
            !HEADINGS.iter().any(|heading| line.starts_with(heading))
                && !line.starts_with("Last metadata")
                && !line.contains("upgrades")
        };
        let columns: Vec<&str> = text.lines().filter(is_entry).flat_map(str::split_whitespace).collect();
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for entry in columns.chunks_exact(3) {
            let (name, arch) = entry[0].rsplit_once('.').unwrap_or((entry[0], &self.arch));
            let (name, version) = (rpm::full_name(name, arch, &self.arch), entry[1].trim_end_matches('-'));
            if found.get(&name).is_none_or(|known| compare_rpm(known, version).is_lt()) {
                found.insert(name, version.to_owned());
            }
        }
        found
    }
}

/// `fromrepo`: that repository and no other.
fn from_repository(repo: Option<&str>) -> Vec<String> {
    repo.map(|repo| words(["--disablerepo=*", &format!("--enablerepo={repo}")])).unwrap_or_default()
}

/// `name-version`, the epoch left out as dnf wants it, the architecture behind the version.
fn versioned(name: &str, version: &str) -> String {
    let version = version.split_once(':').map_or(version, |(_, version)| version);
    match name.rsplit_once('.') {
        Some((name, arch @ ("i386" | "i586" | "i686" | "x86_64" | "noarch" | "aarch64" | "ppc64le" | "s390x"))) => {
            format!("{name}-{version}.{arch}")
        }
        _ => format!("{name}-{version}"),
    }
}

/// Names in `versionlock list`, as yum (`0:bash-5.1-6.*`), dnf (`bash-0:5.1-6.*`) and dnf5 (`Package name: bash`) write them.
fn read_locks(text: &str) -> Vec<String> {
    let one = |line: &str| {
        if let Some(name) = line.strip_prefix("Package name:") {
            return Some(name.trim().to_owned());
        }
        let lock = line.trim();
        if lock.contains(' ') || !lock.contains('-') {
            return None;
        }
        // The name ends before the last two dashes; in yum's form a number and a colon stand before it.
        let (rest, _release) = lock.rsplit_once('-')?;
        let (name, _version) = rest.rsplit_once('-')?;
        let name = name
            .split_once(':')
            .filter(|(epoch, _)| epoch.bytes().all(|b| b.is_ascii_digit()))
            .map_or(name, |(_, name)| name);
        Some(name.to_owned())
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dnf() -> Dnf {
        Dnf { program: "dnf".into(), arch: "x86_64".into() }
    }

    #[test]
    fn lists_are_read_with_long_names_and_headings() {
        let text = "Last metadata expiration check: 0:01:02 ago on Tue 01 Jan 2030.\nAvailable Packages\nbash.x86_64                5.1.8-9.el9           baseos\nbash.x86_64                5.1.8-10.el9          updates\nglibc.i686                 2.34-100.el9          baseos\na-very-long-package-name-that-wraps.noarch\n                           1:2.0-1.el9           appstream\n";
        let expected = [
            ("a-very-long-package-name-that-wraps", "1:2.0-1.el9"),
            ("bash", "5.1.8-10.el9"),
            ("glibc.i686", "2.34-100.el9"),
        ];
        assert_eq!(dnf().read_list(text), expected.map(|(name, version)| (name.to_owned(), version.to_owned())).into());
    }

    #[test]
    fn locks_of_every_tool_are_read() {
        assert_eq!(
            read_locks("Last metadata expiration check: 0:00:01 ago.\nvim-enhanced-2:7.4.827-1.fc22.*\n"),
            ["vim-enhanced"]
        );
        assert_eq!(
            read_locks("Loaded plugins: versionlock\n2:vim-enhanced-7.4.629-5.el6.*\nversionlock list done\n"),
            ["vim-enhanced"]
        );
        assert_eq!(read_locks("# Added by 'versionlock add'\nPackage name: bash\nevr = 5.2-1\n"), ["bash"]);
    }

    #[test]
    fn versions_stand_between_name_and_architecture() {
        assert_eq!(versioned("bash", "5.1-6"), "bash-5.1-6");
        assert_eq!(versioned("glibc.i686", "0:2.34-1"), "glibc-2.34-1.i686");
        assert_eq!(versioned("python3.11", "3.11-1"), "python3.11-3.11-1");
    }
}
