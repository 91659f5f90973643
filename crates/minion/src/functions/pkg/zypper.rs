//! zypper: SUSE and its kin.

use super::super::Failure;
use super::super::command::Finished;
use super::manager::{Answer, HoldWords, How, Manager, Packages, Programs, Target, words};
use super::rpm;
use super::versions::compare_rpm;
use futures_util::FutureExt;
use saltern_core::value::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// zypper on a machine of this architecture.
pub(super) struct Zypper {
    /// The grain `osarch`
    pub(super) arch: String,
}

/// Done, and beyond that: patches are waiting (100, 101), a reboot (102) or another run (103) is asked for.
const SUCCESS: [i32; 5] = [0, 100, 101, 102, 103];
/// There are no repositories.
const NO_REPOSITORIES: i32 = 6;

impl Manager for Zypper {
    fn installed<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Packages> {
        rpm::installed(programs, &self.arch).boxed()
    }

    /// Repositories that were fetched are true, those that were up to date false.
    fn refresh<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Value> {
        async move {
            let done = programs.look("zypper", &words(["--non-interactive", "refresh", "--force"])).await?;
            if !self.is_success(done.code) && done.code != NO_REPOSITORIES {
                return Err(Failure::Command(format!("Zypper command failure: {}", done.complaint())));
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
            let mut args = words(["--non-interactive", "--no-refresh", "info", "-t", "package"]);
            args.extend(repo.iter().flat_map(|repo| words(["--repo", repo])));
            args.extend_from_slice(names);
            Ok(read_information(&programs.look("zypper", &args).await?.text()))
        }
        .boxed()
    }

    fn upgrades<'a>(
        &'a self,
        programs: &'a dyn Programs,
        _whole_distribution: bool,
    ) -> Answer<'a, BTreeMap<String, String>> {
        async move {
            let done = programs
                .look("zypper", &words(["--non-interactive", "--no-refresh", "--xmlout", "list-updates"]))
                .await?;
            Ok(read_updates(&done.text()))
        }
        .boxed()
    }

    fn install<'a>(
        &'a self,
        programs: &'a dyn Programs,
        targets: &'a [Target],
        how: &'a How,
        _installed: &'a Packages,
    ) -> Answer<'a, Finished> {
        async move {
            let mut args = words(["--non-interactive", "--no-refresh"]);
            args.extend(how.skip_verify.then(|| "--no-gpg-checks".to_owned()));
            args.extend(words(["install", "--auto-agree-with-licenses"]));
            if targets.iter().all(|target| target.file.is_none()) {
                args.push("--name".into());
            }
            let wants_versions = targets.iter().any(|target| target.version.is_some());
            let flags =
                [(how.download_only, "--download-only"), (how.reinstall, "--force"), (wants_versions, "--oldpackage")];
            args.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag.to_owned()));
            args.extend(how.recommends.map(|yes| if yes { "--recommends" } else { "--no-recommends" }.to_owned()));
            args.extend(how.repo.iter().flat_map(|repo| words(["--force", "--force-resolution", "--from", repo])));
            args.extend(targets.iter().map(|target| match (&target.file, &target.version) {
                (Some(file), _) => file.clone(),
                (None, Some(version)) if version.starts_with(['<', '>', '=']) => format!("{}{version}", target.name),
                (None, Some(version)) => format!("{}={version}", target.name),
                (None, None) => target.name.clone(),
            }));
            programs.change("zypper", &args).await
        }
        .boxed()
    }

    fn remove<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], _purge: bool) -> Answer<'a, Finished> {
        async move {
            let mut args = words(["--non-interactive", "remove"]);
            args.extend_from_slice(names);
            programs.change("zypper", &args).await
        }
        .boxed()
    }

    fn upgrade<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], how: &'a How) -> Answer<'a, Finished> {
        async move {
            let mut args = words(["--non-interactive"]);
            args.extend(how.skip_verify.then(|| "--no-gpg-checks".to_owned()));
            args.extend(words([
                if how.whole_distribution { "dist-upgrade" } else { "update" },
                "--auto-agree-with-licenses",
            ]));
            let option = if how.whole_distribution { "--from" } else { "--repo" };
            args.extend(how.repo.iter().flat_map(|repo| words([option, repo])));
            args.extend_from_slice(names);
            programs.change("zypper", &args).await
        }
        .boxed()
    }

    fn held<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Vec<String>> {
        async move { Ok(read_locks(&programs.read("/etc/zypp/locks").unwrap_or_default())) }.boxed()
    }

    fn hold<'a>(&'a self, programs: &'a dyn Programs, name: &'a str, held: bool) -> Answer<'a, Finished> {
        async move {
            let verb = if held { "addlock" } else { "removelock" };
            programs.change("zypper", &words(["--non-interactive", verb, name])).await
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
        &HoldWords { let_go: "Package {} is no longer held.", was_free: "Package {} was already unheld.", free: "" }
    }

    fn takes_comparisons(&self) -> bool {
        true
    }

    fn is_success(&self, code: i32) -> bool {
        SUCCESS.contains(&code)
    }
}

fn read_refresh(text: &str) -> Value {
    let mut repositories = Map::new();
    for line in text.lines().map(str::trim) {
        let Some(name) = line.split('\'').nth(1).map(str::trim) else { continue };
        if line.starts_with("Repository") && line.contains("is up to date") {
            repositories.insert(name, false);
        } else if line.starts_with("Building") && line.contains("done") {
            repositories.insert(name, true);
        }
    }
    Value::Map(repositories)
}

/// Name and version of each package that `zypper info` describes.
fn read_information(text: &str) -> BTreeMap<String, String> {
    let (mut found, mut name) = (BTreeMap::new(), None);
    for (key, value) in
        text.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim(), value.trim()))
    {
        match key {
            "Name" => name = Some(value.to_owned()),
            "Version" => found.extend(name.take().map(|name| (name, value.to_owned()))),
            _ => {}
        }
    }
    found
}

/// The `<update kind="package" …>` elements of `list-updates`.
fn read_updates(xml: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for element in xml.split("<update ").skip(1) {
        let head = element.split('>').next().unwrap_or_default();
        if attribute(head, "kind") == Some("package")
            && let (Some(name), Some(edition)) = (attribute(head, "name"), attribute(head, "edition"))
        {
            found.insert(name.to_owned(), edition.to_owned());
        }
    }
    found
}

fn attribute<'x>(head: &'x str, name: &str) -> Option<&'x str> {
    let key = format!("{name}=\"");
    let at = head
        .match_indices(&key)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || head.as_bytes()[at - 1].is_ascii_whitespace())?;
    head[at + key.len()..].split('"').next()
}

/// The names in `/etc/zypp/locks`.
fn read_locks(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("solvable_name:")).map(|name| name.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_fetched_or_up_to_date() {
        let text = "Retrieving repository 'Main' metadata ....[done]\n\
            Building repository 'Main' cache ....[done]\n\
            Repository 'Updates' is up to date.\n\
            All repositories have been refreshed.\n";
        assert_eq!(read_refresh(text), Value::map([("Main", true), ("Updates", false)]));
    }

    #[test]
    fn information_gives_the_version_of_each_name() {
        let text = "Loading repository data...\n\
            \n\
            Information for package zsh:\n\
            ----------------------------\n\
            Repository     : Main\n\
            Name           : zsh\n\
            Version        : 5.6-7.5.1\n\
            Arch           : x86_64\n\
            Installed      : No\n\
            Status         : not installed\n\
            \n\
            Information for package vim:\n\
            ---\n\
            Name : vim\n\
            Version : 9.0-1\n";
        assert_eq!(
            read_information(text),
            BTreeMap::from([("vim".to_owned(), "9.0-1".to_owned()), ("zsh".to_owned(), "5.6-7.5.1".to_owned())])
        );
    }

    #[test]
    fn updates_are_read_from_xml() {
        let xml = "<?xml version='1.0'?>\n<stream>\n<update-status version=\"0.6\">\n<update-list>\n\
            <update kind=\"package\" name=\"bash\" edition=\"4.4-19.6.1\" arch=\"x86_64\" edition-old=\"4.4-19.3.1\"><summary>The shell</summary></update>\n\
            <update kind=\"patch\" name=\"SUSE-1\" edition=\"1\"/>\n</update-list>\n</update-status>\n</stream>\n";
        assert_eq!(read_updates(xml), BTreeMap::from([("bash".to_owned(), "4.4-19.6.1".to_owned())]));
    }

    #[test]
    fn locks_are_read_by_name() {
        let text = "\n\
            type: package\n\
            match_type: glob\n\
            case_sensitive: on\n\
            solvable_name: bash\n\
            \n\
            type: package\n\
            solvable_name: vim\n";
        assert_eq!(read_locks(text), ["bash", "vim"]);
    }
}
