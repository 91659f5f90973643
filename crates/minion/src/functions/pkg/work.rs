//! What the calls of `pkg` do, with any manager.

use super::super::{Call, Failure, Outcome};
use super::manager::{How, Manager, Packages, Programs, Target};
use saltern_core::target::Glob;
use saltern_core::value::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A manager and the programs it runs.
pub(super) struct Work<P> {
    pub(super) manager: Box<dyn Manager>,
    pub(super) programs: P,
}

impl<P: Programs> Work<P> {
    pub(super) async fn list_pkgs(&self, call: &Call) -> Result<Outcome, Failure> {
        let packages = match (call.flag("removed", false), call.flag("purge_desired", false)) {
            (true, _) => self.manager.removed(&self.programs).await?,
            // What is to be purged and still installed: nobody has asked dpkg for that since dselect.
            (false, true) => Packages::new(),
            (false, false) => self.manager.installed(&self.programs).await?,
        };
        let as_list = call.flag("versions_as_list", false);
        Ok(Value::map(packages.into_iter().map(|(name, versions)| (name, told(versions, as_list)))).into())
    }

    pub(super) async fn version(&self, call: &Call) -> Result<Outcome, Failure> {
        let names = names(call)?;
        let as_list = keyword_flag(call, "versions_as_list", false);
        let installed = self.manager.installed(&self.programs).await?;
        let (mut found, mut has_wildcard) = (Map::new(), false);
        for name in &names {
            if name.contains('*') {
                has_wildcard = true;
                let glob = Glob::new(name);
                for (name, versions) in installed.iter().filter(|(name, _)| glob.matches(name)) {
                    found.insert(name, told(versions.clone(), as_list));
                }
            } else {
                found.insert(name, told(installed.get(name).cloned().unwrap_or_default(), as_list));
            }
        }
        Ok(if has_wildcard { Value::Map(found) } else { one_or_all(found) }.into())
    }

    pub(super) async fn latest_version(&self, call: &Call) -> Result<Outcome, Failure> {
        let names = names(call)?;
        if names.is_empty() {
            return Ok("".into());
        }
        let repo = keyword(call, "fromrepo").map(|value| value.key_text().into_owned());
        self.refresh_if(call, keyword_flag(call, "refresh", true)).await?;
        let shows_installed = keyword_flag(call, "show_installed", false);
        let latest = self.latest(&names, repo.as_deref(), shows_installed).await?;
        Ok(one_or_all(latest.into_iter().map(|(name, version)| (name.into(), version.into())).collect()).into())
    }

    pub(super) async fn upgrade_available(&self, call: &Call) -> Result<Outcome, Failure> {
        let name = call.text("name")?;
        check_name(&name)?;
        self.refresh_if(call, keyword_flag(call, "refresh", true)).await?;
        let latest = self.latest(&[name], None, false).await?;
        Ok(latest.values().any(|version| !version.is_empty()).into())
    }

    pub(super) async fn list_upgrades(&self, call: &Call) -> Result<Outcome, Failure> {
        self.refresh_if(call, call.flag("refresh", true)).await?;
        let upgrades = self.manager.upgrades(&self.programs, call.flag("dist_upgrade", true)).await?;
        Ok(Value::map(upgrades).into())
    }

    pub(super) async fn refresh_db(&self, call: &Call) -> Result<Outcome, Failure> {
        if is_fresh(call.int("cache_valid_time", 0)?) {
            return Ok(Map::new().into());
        }
        let found = self.manager.refresh(&self.programs).await?;
        let failed = |map: &Map| {
            map.iter()
                .filter(|(_, fetched)| fetched == &Value::Bool(false))
                .map(|(name, _)| name.key_text().into_owned())
                .collect::<Vec<_>>()
        };
        match found.as_map().map(failed) {
            Some(failed) if call.flag("failhard", false) && !failed.is_empty() => {
                Err(Failure::Command(format!("Error getting repos: {}", failed.join(", "))))
            }
            _ => Ok(found.into()),
        }
    }

    pub(super) async fn install(&self, call: &Call) -> Result<Outcome, Failure> {
        if call.get("debconf").is_some() {
            return Err(Failure::Command("debconf is not supported by this minion".into()));
        }
        let targets = targets(call)?;
        if targets.is_empty() {
            return Ok(Map::new().into());
        }
        let is_comparison =
            |target: &&Target| target.version.as_deref().is_some_and(|version| version.starts_with(['<', '>']));
        if let Some(target) = targets.iter().find(is_comparison).filter(|_| !self.manager.takes_comparisons()) {
            return Err(Failure::Arguments(format!(
                "the version of {} must be one version, not a comparison",
                target.name
            )));
        }
        let how = How {
            repo: call
                .opt_text("fromrepo")?
                .or_else(|| keyword(call, "repo").map(|value| value.key_text().into_owned())),
            skip_verify: call.flag("skip_verify", false),
            reinstall: call.flag("reinstall", false),
            download_only: call.flag("downloadonly", false),
            recommends: keyword(call, "install_recommends").map(|_| keyword_flag(call, "install_recommends", true)),
            new_config: keyword_flag(call, "force_conf_new", false),
            only_upgrade: keyword_flag(call, "only_upgrade", false),
            whole_distribution: false,
        };
        if how.repo.as_deref().is_some_and(|repo| repo.starts_with('-')) {
            return Err(Failure::Arguments("'fromrepo' is not the name of a repository".into()));
        }
        self.refresh_if(call, call.flag("refresh", false)).await?;
        let old = self.manager.installed(&self.programs).await?;
        let done = self.manager.install(&self.programs, &targets, &how, &old).await?;
        let mut changes = changes(&old, &self.manager.installed(&self.programs).await?);
        if how.reinstall {
            // Installed anew at the same version is a change, though the version is not.
            for target in &targets {
                if let Some(versions) = old.get(&target.name).filter(|_| changes.get(&target.name).is_none()) {
                    let version = versions.join(",");
                    changes.insert(&target.name, Value::map([("old", version.as_str()), ("new", &version)]));
                }
            }
        }
        if self.manager.is_success(done.code) {
            Ok(changes.into())
        } else {
            Err(problem("Problem encountered installing package(s)", &changes, &done.complaint()))
        }
    }

    pub(super) async fn remove(&self, call: &Call, purge: bool) -> Result<Outcome, Failure> {
        let wanted = targets_of(call)?;
        let old = self.manager.installed(&self.programs).await?;
        let left_behind = if purge { self.manager.removed(&self.programs).await? } else { Packages::new() };
        let mut names: Vec<String> = Vec::new();
        for target in &wanted {
            let glob = Glob::new(&target.name);
            let fits = |name: &&String| glob.matches(name);
            for name in old.keys().filter(fits).chain(left_behind.keys().filter(fits)) {
                let has_version = |version: &String| old.get(name).is_some_and(|versions| versions.contains(version));
                if !names.contains(name) && target.version.as_ref().is_none_or(has_version) {
                    names.push(name.clone());
                }
            }
        }
        if names.is_empty() {
            return Ok(Map::new().into());
        }
        let done = self.manager.remove(&self.programs, &names, purge).await?;
        let changed = changes(&old, &self.manager.installed(&self.programs).await?);
        if !self.manager.is_success(done.code) {
            return Err(problem("Problem encountered removing package(s)", &changed, &done.complaint()));
        }
        // Where configuration can stay behind, Salt tells the two apart.
        if purge && self.manager.keeps_configuration() {
            let removed = changes(&left_behind, &self.manager.removed(&self.programs).await?);
            return Ok(Value::map([("removed", removed), ("installed", changed)]).into());
        }
        Ok(changed.into())
    }

    pub(super) async fn upgrade(&self, call: &Call) -> Result<Outcome, Failure> {
        let names: Vec<String> = targets_of(call)?.into_iter().map(|target| target.name).collect();
        let how = How {
            repo: call.opt_text("fromrepo")?,
            skip_verify: call.flag("skip_verify", false),
            download_only: keyword_flag(call, "downloadonly", false) || keyword_flag(call, "download_only", false),
            new_config: keyword_flag(call, "force_conf_new", false),
            whole_distribution: call.flag("dist_upgrade", false),
            ..How::default()
        };
        self.refresh_if(call, call.flag("refresh", true)).await?;
        let old = self.manager.installed(&self.programs).await?;
        let done = self.manager.upgrade(&self.programs, &names, &how).await?;
        let changes = changes(&old, &self.manager.installed(&self.programs).await?);
        if self.manager.is_success(done.code) {
            Ok(changes.into())
        } else {
            Err(problem("Problem encountered upgrading packages", &changes, &done.complaint()))
        }
    }

    pub(super) async fn hold(&self, call: &Call, held: bool) -> Result<Outcome, Failure> {
        let targets = targets(call)?;
        if targets.is_empty() {
            return Err(Failure::Arguments("One of name, pkgs, or sources must be specified.".into()));
        }
        let known = self.manager.held(&self.programs).await?;
        let words = self.manager.hold_words();
        let mut told = Map::new();
        for target in targets {
            let name = target.name;
            let is_held = known.contains(&name);
            let (mut result, mut changes) = (true, Map::new());
            let comment = if is_held == held {
                if held { "Package {} is already set to be held." } else { words.was_free }
            } else {
                let done = self.manager.hold(&self.programs, &name, held).await?;
                result = self.manager.is_success(done.code);
                if result {
                    let (old, new) = if held { (words.free, "hold") } else { ("hold", words.free) };
                    changes = [("old", old), ("new", new)]
                        .into_iter()
                        .map(|(key, value)| (key.into(), value.into()))
                        .collect();
                }
                match (result, held) {
                    (true, true) => "Package {} is now being held.",
                    (true, false) => words.let_go,
                    (false, true) => "Package {} was unable to be held.",
                    (false, false) => "Package {} was unable to be unheld.",
                }
            };
            let entry = [
                ("name", Value::from(&name)),
                ("changes", changes.into()),
                ("result", result.into()),
                ("comment", comment.replace("{}", &name).into()),
            ];
            told.insert(name, Value::map(entry));
        }
        Ok(told.into())
    }

    pub(super) async fn info_installed(&self, call: &Call) -> Result<Outcome, Failure> {
        Ok(Value::map(self.manager.info(&self.programs, &names(call)?).await?).into())
    }

    pub(super) async fn file_list(&self, call: &Call) -> Result<Outcome, Failure> {
        let files = self.manager.files(&self.programs, &names(call)?).await?;
        Ok(Value::map([("errors", Value::List(Vec::new())), ("files", Value::list(files))]).into())
    }

    pub(super) async fn owner(&self, call: &Call) -> Result<Outcome, Failure> {
        let mut owners = Map::new();
        for path in names(call)? {
            let owner = self.manager.owner(&self.programs, &path).await?;
            owners.insert(path, owner);
        }
        Ok(if owners.is_empty() { "".into() } else { one_or_all(owners) }.into())
    }

    pub(super) fn version_cmp(&self, call: &Call) -> Result<Outcome, Failure> {
        let without_epoch = |version: String| match version.split_once(':') {
            Some((_, rest)) if call.flag("ignore_epoch", false) => rest.to_owned(),
            _ => version,
        };
        let (a, b) = (without_epoch(call.text("pkg1")?), without_epoch(call.text("pkg2")?));
        Ok((self.manager.compare(&a, &b) as i64).into())
    }

    /// Per name the version that would be new here; empty where there is none.
    async fn latest(
        &self,
        names: &[String],
        repo: Option<&str>,
        shows_installed: bool,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let installed = self.manager.installed(&self.programs).await?;
        let mut candidates = self.manager.candidates(&self.programs, names, repo).await?;
        let mut latest = BTreeMap::new();
        for name in names {
            let candidate = candidates.remove(name).unwrap_or_default();
            let has = installed.get(name).map(Vec::as_slice).unwrap_or_default();
            let is_new = shows_installed
                || !has.iter().any(|version| self.manager.compare(version, &candidate) != Ordering::Less);
            latest.insert(name.clone(), if is_new { candidate } else { String::new() });
        }
        Ok(latest)
    }

    async fn refresh_if(&self, call: &Call, wanted: bool) -> Result<(), Failure> {
        let valid = keyword(call, "cache_valid_time").and_then(Value::as_i64).unwrap_or_default();
        if wanted && !is_fresh(valid) {
            self.manager.refresh(&self.programs).await?;
        }
        Ok(())
    }
}

/// A name that looks like an option would be taken for one.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    if name.is_empty() || name.starts_with('-') {
        return Err(Failure::Arguments(format!("'{name}' is not the name of a package")));
    }
    Ok(())
}

/// What changed from one list of packages to another.
pub(super) fn changes(old: &Packages, new: &Packages) -> Map {
    let mut changed = Map::new();
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    for name in new.keys().chain(gone).filter(|name| old.get(*name) != new.get(*name)) {
        let version = |packages: &Packages| packages.get(name).map(|versions| versions.join(",")).unwrap_or_default();
        changed.push(name, Value::map([("new", version(new)), ("old", version(old))]));
    }
    changed
}

/// Salt's words for "it failed, and this is how far it got".
pub(super) fn problem(message: &str, changes: &Map, error: &str) -> Failure {
    let mut text = format!("{message}. Additional info follows:\n\nchanges:\n    ----------\n");
    for (name, change) in changes {
        let side = |key: &str| change.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        text += &format!(
            "    {}:\n        ----------\n        new:\n            {}\n        old:\n            {}\n",
            name.key_text(),
            side("new"),
            side("old")
        );
    }
    text += &format!("errors:\n    - {}", error.trim().replace('\n', "\n      "));
    Failure::Command(text)
}

/// `name`, `pkgs` or `sources` of an installation.
fn targets(call: &Call) -> Result<Vec<Target>, Failure> {
    if call.get("pkgs").is_none()
        && let Some(sources) = call.get("sources")
    {
        return pairs(sources, "sources")?
            .into_iter()
            .map(|(name, path)| {
                let file = path.filter(|path| path.starts_with('/'));
                let file = file.ok_or_else(|| {
                    Failure::Command(format!("the source of {name} must be an absolute path on the minion"))
                })?;
                check_name(&name)?;
                Ok(Target { name, version: None, file: Some(file) })
            })
            .collect();
    }
    targets_of(call)
}

/// `name` or `pkgs`, with versions.
fn targets_of(call: &Call) -> Result<Vec<Target>, Failure> {
    let listed = match (call.get("pkgs"), call.opt_text("name")?) {
        (Some(pkgs), _) => pairs(pkgs, "pkgs")?,
        (None, Some(name)) => {
            let names: Vec<String> = name.split(',').map(|name| name.trim().to_owned()).collect();
            let version = keyword(call, "version")
                .filter(|value| !value.is_nil() && names.len() == 1)
                .map(|value| value.key_text().into_owned());
            names.into_iter().map(|name| (name, version.clone())).collect()
        }
        (None, None) => Vec::new(),
    };
    let target = |(name, version): (String, Option<String>)| {
        check_name(&name)?;
        let version = version
            .map(|version| version.trim_start_matches('=').trim().to_owned())
            .filter(|version| !version.is_empty());
        Ok(Target { name, version, file: None })
    };
    listed.into_iter().map(target).collect()
}

/// A list of names and of maps from names to something, or the text of such a list.
fn pairs(value: &Value, what: &str) -> Result<Vec<(String, Option<String>)>, Failure> {
    let wrong = || Failure::Arguments(format!("'{what}' must be a list of names or of maps with one name each"));
    let read;
    let value = match value {
        Value::Text(text) => {
            read = saltern_render::yaml::load(text).map_err(|_| wrong())?;
            &read
        }
        value => value,
    };
    let entry = |(name, to): &(Value, Value)| {
        (name.key_text().into_owned(), (!to.is_nil()).then(|| to.key_text().into_owned()))
    };
    match value {
        Value::Map(map) => Ok(map.iter().map(entry).collect()),
        Value::Text(text) => Ok(text.split(',').map(|name| (name.trim().to_owned(), None)).collect()),
        Value::List(items) => {
            let mut all = Vec::new();
            for item in items {
                match item {
                    Value::Map(map) => all.extend(map.iter().map(entry)),
                    Value::List(_) | Value::Nil | Value::Bytes(_) | Value::Ext(..) => return Err(wrong()),
                    name => all.push((name.key_text().into_owned(), None)),
                }
            }
            Ok(all)
        }
        _ => Err(wrong()),
    }
}

fn names(call: &Call) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = call.rest().iter().map(|name| name.key_text().into_owned()).collect();
    names.iter().try_for_each(|name| check_name(name))?;
    Ok(names)
}

fn keyword<'c>(call: &'c Call, name: &str) -> Option<&'c Value> {
    call.keywords().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn keyword_flag(call: &Call, name: &str, default: bool) -> bool {
    match keyword(call, name) {
        None | Some(Value::Nil) => default,
        Some(Value::Text(text)) => matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1"),
        Some(value) => value.is_truthy(),
    }
}

fn told(versions: Vec<String>, as_list: bool) -> Value {
    if as_list { Value::list(versions) } else { versions.join(",").into() }
}

/// One answer stands for itself.
fn one_or_all(map: Map) -> Value {
    match map.len() {
        1 => map.into_iter().next().map(|(_, value)| value).unwrap_or_default(),
        _ => Value::Map(map),
    }
}

/// Whether apt's lists are younger than this many seconds; other managers look after that themselves.
fn is_fresh(valid_seconds: i64) -> bool {
    use std::os::unix::fs::MetadataExt;
    let now = crate::clock::now().0 / 1_000_000;
    valid_seconds > 0
        && std::fs::metadata("/var/lib/apt/lists").is_ok_and(|meta| meta.mtime().saturating_add(valid_seconds) > now)
}
