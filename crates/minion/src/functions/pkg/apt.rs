//! apt and dpkg: Debian, Ubuntu and their kin.

use super::super::Failure;
use super::super::command::Finished;
use super::manager::{Answer, HoldWords, How, Manager, Packages, Programs, Target, words};
use super::versions::compare_deb;
use futures_util::FutureExt;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// apt on a machine of this architecture.
pub(super) struct Apt {
    /// The grain `osarch`
    pub(super) arch: String,
}

/// Apt waits this long for another one to finish.
const WAIT_FOR_LOCK: &str = "DPkg::Lock::Timeout=300";

impl Manager for Apt {
    fn installed<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Packages> {
        async move {
            Ok(self.read_packages(&self.list(programs).await?, |wanted, now| {
                matches!(wanted, "install" | "hold" | "purge") && now == "installed"
            }))
        }
        .boxed()
    }

    fn removed<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Packages> {
        async move { Ok(self.read_packages(&self.list(programs).await?, |wanted, _| wanted == "deinstall")) }.boxed()
    }

    fn refresh<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Value> {
        async move {
            let done = programs.look("apt-get", &words(["-q", "-o", WAIT_FOR_LOCK, "update"])).await?;
            if !done.is_ok() {
                return Err(Failure::Command(done.complaint()));
            }
            Ok(read_refresh(&done.text()))
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
            let mut args = words(["-q", "policy"]);
            args.extend(repo.map(|repo| format!("-oAPT::Default-Release={repo}")));
            args.extend_from_slice(names);
            Ok(read_policy(&programs.look("apt-cache", &args).await?.text()))
        }
        .boxed()
    }

    fn upgrades<'a>(
        &'a self,
        programs: &'a dyn Programs,
        whole_distribution: bool,
    ) -> Answer<'a, BTreeMap<String, String>> {
        async move {
            let verb = if whole_distribution { "dist-upgrade" } else { "upgrade" };
            let done = programs.look("apt-get", &words(["--just-print", verb])).await?;
            if !done.is_ok() {
                return Err(Failure::Command(format!("Failed to get upgrades: {}", done.complaint())));
            }
            Ok(read_upgrades(&done.text()))
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
                let is_older = |wanted: &str| versions.iter().any(|has| compare_deb(wanted, has) == Ordering::Less);
                let is_same = target
                    .version
                    .as_deref()
                    .is_none_or(|wanted| versions.iter().any(|has| compare_deb(wanted, has) == Ordering::Equal));
                let word = match (&target.file, &target.version) {
                    (Some(file), _) => file.clone(),
                    (None, Some(version)) => format!("{}={version}", target.name),
                    (None, None) => target.name.clone(),
                };
                match () {
                    () if how.reinstall && is_same && !versions.is_empty() => again.push(word),
                    () if target.version.as_deref().is_some_and(is_older) => older.push(word),
                    () => plain.push(word),
                }
            }
            let mut last = Finished::default();
            for (option, names) in [(None, plain), (Some("--allow-downgrades"), older), (Some("--reinstall"), again)] {
                if names.is_empty() {
                    continue;
                }
                let mut args = change_args(how);
                args.extend(option.map(str::to_owned));
                args.push("install".into());
                args.extend(names);
                last = programs.change("apt-get", &args).await?;
                if !last.is_ok() {
                    break;
                }
            }
            Ok(last)
        }
        .boxed()
    }

    fn remove<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], purge: bool) -> Answer<'a, Finished> {
        async move {
            let mut args = words(["-q", "-y", "-o", WAIT_FOR_LOCK, if purge { "purge" } else { "remove" }]);
            args.extend_from_slice(names);
            programs.change("apt-get", &args).await
        }
        .boxed()
    }

    fn upgrade<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], how: &'a How) -> Answer<'a, Finished> {
        async move {
            let mut args = change_args(how);
            match names {
                [] => args.push(if how.whole_distribution { "dist-upgrade" } else { "upgrade" }.into()),
                names => {
                    args.extend(words(["--only-upgrade", "install"]));
                    args.extend_from_slice(names);
                }
            }
            programs.change("apt-get", &args).await
        }
        .boxed()
    }

    fn held<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Vec<String>> {
        async move {
            let done = programs.look("dpkg", &words(["--get-selections"])).await?;
            Ok(read_selections(&done.text()).remove("hold").unwrap_or_default())
        }
        .boxed()
    }

    fn hold<'a>(&'a self, programs: &'a dyn Programs, name: &'a str, held: bool) -> Answer<'a, Finished> {
        async move { programs.change("apt-mark", &words([if held { "hold" } else { "unhold" }, name])).await }.boxed()
    }

    fn files<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String]) -> Answer<'a, Vec<String>> {
        async move {
            let mut args = words(["-f=${db:Status-Status}\\t${binary:Package}\\n", "-W"]);
            args.extend_from_slice(names);
            let done = programs.look("dpkg-query", &args).await?;
            if !done.is_ok() {
                return Err(Failure::Command(done.complaint()));
            }
            let text = done.text();
            let known = text.lines().filter_map(|line| line.strip_prefix("installed\t")).map(str::to_owned);
            let mut files = BTreeSet::new();
            for name in known {
                let listed = programs.look("dpkg", &words(["-L", &name])).await?;
                files.extend(listed.text().lines().filter(|line| line.starts_with('/')).map(str::to_owned));
            }
            Ok(files.into_iter().collect())
        }
        .boxed()
    }

    fn owner<'a>(&'a self, programs: &'a dyn Programs, path: &'a str) -> Answer<'a, String> {
        async move {
            let done = programs.look("dpkg", &words(["-S", path])).await?;
            let text = done.text();
            let first = text.lines().find(|line| !line.starts_with("diversion by")).unwrap_or_default();
            Ok(if done.is_ok() { first.split([':', ',']).next().unwrap_or_default().to_owned() } else { String::new() })
        }
        .boxed()
    }

    fn info<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String]) -> Answer<'a, BTreeMap<String, Map>> {
        async move {
            let mut args = vec!["-W".to_owned(), format!("-f={INFO_FORMAT}")];
            args.extend_from_slice(names);
            let done = programs.look("dpkg-query", &args).await?;
            if !done.is_ok() {
                return Err(Failure::Command(format!("Error getting packages information: {}", done.complaint())));
            }
            let mut found = read_info(&done.text());
            for (name, info) in &mut found {
                let licences = programs.read(&format!("/usr/share/doc/{name}/copyright")).map(|text| licences(&text));
                if let Some(licences) = licences.filter(|text| !text.is_empty()) {
                    info.insert("license", licences);
                }
            }
            Ok(found)
        }
        .boxed()
    }

    fn keeps_configuration(&self) -> bool {
        true
    }

    fn compare(&self, a: &str, b: &str) -> Ordering {
        compare_deb(a, b)
    }

    fn hold_words(&self) -> &'static HoldWords {
        &HoldWords {
            let_go: "Package {} is no longer being held.",
            was_free: "Package {} is already set not to be held.",
            free: "install",
        }
    }
}

impl Apt {
    async fn list(&self, programs: &dyn Programs) -> Result<String, Failure> {
        let format = "--showformat=${Status} ${Package} ${Version} ${Architecture}\\n";
        Ok(programs.look("dpkg-query", &words([format, "-W"])).await?.text())
    }

    /// Lines such as `install ok installed zsh 5.9-4+b2 amd64`; packages of another architecture carry its name.
    fn read_packages(&self, text: &str, keep: impl Fn(&str, &str) -> bool) -> Packages {
        let mut packages = Packages::new();
        for line in text.lines() {
            let [wanted, _, now, name, version, arch] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                continue;
            };
            if keep(wanted, now) {
                let is_foreign = arch != "all" && arch != self.arch && !self.arch.is_empty();
                let name = if is_foreign { format!("{name}:{arch}") } else { name.to_owned() };
                packages.entry(name).or_default().push(version.to_owned());
            }
        }
        packages
    }
}

fn change_args(how: &How) -> Vec<String> {
    let mut args = words(["-q", "-y", "-o", WAIT_FOR_LOCK]);
    let keep: &[&str] = if how.new_config { &["--force-confnew"] } else { &["--force-confold", "--force-confdef"] };
    for option in keep {
        args.extend(["-o".to_owned(), format!("DPkg::Options::={option}")]);
    }
    args.extend(
        how.recommends.map(|yes| if yes { "--install-recommends" } else { "--no-install-recommends" }.to_owned()),
    );
    let flags = [
        (how.only_upgrade, "--only-upgrade"),
        (how.skip_verify, "--allow-unauthenticated"),
        (how.download_only, "--download-only"),
    ];
    args.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag.to_owned()));
    if let Some(repo) = &how.repo {
        args.extend(["-t".to_owned(), repo.clone()]);
    }
    args
}

/// Fetched is true, unchanged is none, failed is false.
fn read_refresh(text: &str) -> Value {
    let mut repositories = Map::new();
    for line in text.lines() {
        let Some((verb, rest)) = line.split_once(char::is_whitespace) else { continue };
        let name = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        let fetched = match verb {
            verb if verb.starts_with("Get") => {
                let without_size = name
                    .rsplit_once(" [")
                    .filter(|(_, size)| size.ends_with("B]"))
                    .map_or(name.as_str(), |(name, _)| name);
                repositories.insert(without_size, true);
                continue;
            }
            verb if verb.starts_with("Hit") => Value::Nil,
            verb if verb.starts_with("Ign") || verb.starts_with("Err") => Value::Bool(false),
            _ => continue,
        };
        repositories.insert(name, fetched);
    }
    Value::Map(repositories)
}

/// The candidates of `apt-cache policy`.
fn read_policy(text: &str) -> BTreeMap<String, String> {
    let (mut found, mut name) = (BTreeMap::new(), "");
    for line in text.lines() {
        if let Some(package) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            name = package;
        } else if let Some(candidate) = line.trim().strip_prefix("Candidate:").map(str::trim)
            && candidate != "(none)"
            && !candidate.is_empty()
        {
            found.insert(name.to_owned(), candidate.to_owned());
        }
    }
    found
}

/// `Conf name (version …` lines of a simulated upgrade.
fn read_upgrades(text: &str) -> BTreeMap<String, String> {
    let one = |line: &str| {
        let (name, rest) = line.strip_prefix("Conf ")?.split_once(" (")?;
        Some((name.to_owned(), rest.split([' ', ')']).next()?.to_owned()))
    };
    text.lines().filter_map(one).collect()
}

/// `dpkg --get-selections`, by state.
pub(super) fn read_selections(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        if let [name, state] = line.split_whitespace().collect::<Vec<_>>()[..] {
            states.entry(state.to_owned()).or_default().push(name.to_owned());
        }
    }
    states
}

/// Between packages; no description contains it.
const RECORD_END: &str = "\u{1e}";
const INFO_FORMAT: &str = concat!(
    "name:${Package}\\narchitecture:${Architecture}\\npackager:${Maintainer}\\nsummary:${Summary}\\n",
    "source:${source:Package}\\nversion:${Version}\\ngroup:${Section}\\nvendor:${Origin}\\nurl:${Homepage}\\n",
    "status:${db:Status-Abbrev}\\ninstall_date:${db-fsys:Last-Modified}\\ndescription:${Description}\\n\u{1e}"
);

fn read_info(text: &str) -> BTreeMap<String, Map> {
    let mut found = BTreeMap::new();
    for record in text.split(RECORD_END) {
        let Some((fields, description)) = record.split_once("\ndescription:") else { continue };
        let mut info = Map::new();
        let mut is_installed = true;
        for (key, value) in
            fields.lines().filter_map(|line| line.split_once(':')).filter(|(_, value)| !value.is_empty())
        {
            match key {
                "status" => is_installed = value.as_bytes().get(1) == Some(&b'i'),
                "install_date" => {
                    drop(value.trim().parse().ok().map(|seconds: i64| info.insert(key, iso_date(seconds))))
                }
                _ => drop(info.insert(key, value)),
            }
        }
        info.insert("description", description);
        if let Some(name) = info.get("name").and_then(Value::as_str).filter(|_| is_installed).map(str::to_owned) {
            found.insert(name, info);
        }
    }
    found
}

/// `2024-01-02T03:04:05Z`
pub(super) fn iso_date(seconds: i64) -> String {
    Timestamp(seconds.saturating_mul(1_000_000)).rfc3339()
}

fn licences(text: &str) -> String {
    let all: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("License:")).map(str::trim).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_fetched_unchanged_or_failed() {
        let text = "Hit:1 http://deb.example.org bookworm InRelease\n\
            Get:2 http://deb.example.org bookworm-updates InRelease [55.4 kB]\n\
            Err:3 http://x.example bookworm Release\n\
            Reading package lists...\n";
        let expected = Value::map([
            ("http://deb.example.org bookworm InRelease", Value::Nil),
            ("http://deb.example.org bookworm-updates InRelease", true.into()),
            ("http://x.example bookworm Release", false.into()),
        ]);
        assert_eq!(read_refresh(text), expected);
    }

    #[test]
    fn candidates_are_read_from_policy() {
        let text = "zsh:\n  Installed: (none)\n  Candidate: 5.9-4+b2\n  Version table:\n     5.9-4+b2 500\n        500 http://deb bookworm/main amd64 Packages\ngone:\n  Installed: 1.0\n  Candidate: (none)\n  Version table:\n";
        assert_eq!(read_policy(text), BTreeMap::from([("zsh".to_owned(), "5.9-4+b2".to_owned())]));
    }

    #[test]
    fn upgrades_are_read_from_a_simulation() {
        let text = "Inst libc6 [2.36-9] (2.36-9+deb12u1 Debian:12 [amd64])\n\
            Conf libc6 (2.36-9+deb12u1 Debian:12 [amd64])\n\
            Conf tzdata (2024a-1 Debian:12 [all])\n";
        assert_eq!(
            read_upgrades(text),
            BTreeMap::from([
                ("libc6".to_owned(), "2.36-9+deb12u1".to_owned()),
                ("tzdata".to_owned(), "2024a-1".to_owned())
            ])
        );
    }

    #[test]
    fn packages_are_told_apart_by_state_and_architecture() {
        let text = "install ok installed zsh 5.9-4+b2 amd64\n\
            deinstall ok config-files mc 3:4.8.1-2 amd64\n\
            install ok installed libc6 2.36-9 i386\n\
            hold ok installed vim 2:9.0 amd64\n\
            install ok half-configured x 1 amd64\n\
            broken\n";
        let apt = Apt { arch: "amd64".into() };
        let installed =
            apt.read_packages(text, |wanted, now| matches!(wanted, "install" | "hold") && now == "installed");
        assert_eq!(installed.keys().collect::<Vec<_>>(), ["libc6:i386", "vim", "zsh"]);
        let removed = apt.read_packages(text, |wanted, _| wanted == "deinstall");
        assert_eq!(removed.keys().collect::<Vec<_>>(), ["mc"]);
    }

    #[test]
    fn information_is_read_record_by_record() {
        let text = "name:zsh\narchitecture:amd64\npackager:A <a@b>\nsummary:shell: with lots\nversion:5.9\nvendor:\nstatus:ii \ninstall_date:1700000000\ndescription:shell\n Zsh is\n\u{1e}name:gone\nstatus:rc \ndescription:x\n\u{1e}";
        let found = read_info(text);
        assert_eq!(found.len(), 1);
        let zsh = Value::Map(found["zsh"].clone());
        assert_eq!(zsh.get("summary"), Some(&"shell: with lots".into()));
        assert_eq!(zsh.get("install_date"), Some(&"2023-11-14T22:13:20Z".into()));
        assert_eq!(zsh.get("description"), Some(&"shell\n Zsh is\n".into()));
        assert_eq!(zsh.get("vendor"), None);
    }
}
