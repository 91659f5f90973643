//! One compilation of pillar, step by step as Salt does it.

use std::collections::{HashMap, HashSet};

use saltern_core::target::Glob;
use saltern_core::value::{Map, Value};

use super::{Compiler, Pillar, Request};
use crate::error::Error;
use crate::jinja::{Scope, Template};
use crate::merge::{Strategy, merge};
use crate::top::{Top, TopFile};

/// How deep includes may nest.
const MAX_INCLUDES: usize = 64;

const TOP_FAILED: &str = "Error encountered while rendering pillar top file.";

pub(super) fn compile(compiler: &Compiler, request: &Request<'_>) -> Pillar {
    let settings = &compiler.settings;
    let own = |name: Option<&str>| name.map(str::to_owned);
    let saltenv = own(request.saltenv).or_else(|| settings.saltenv.clone());
    let pillarenv = match request.pillarenv {
        Some(env) => own(Some(env)),
        None if settings.pillarenv_from_saltenv => own(request.saltenv),
        None => settings.pillarenv.clone(),
    }
    .filter(|env| !env.is_empty());

    let nothing = Map::new();
    let pillar_override = request.pillar_override.unwrap_or(&nothing);
    let mut opts = request.opts.clone();
    opts.insert("id", request.id);
    opts.insert("minion_id", request.id);
    opts.insert("grains", request.grains.clone());
    opts.insert("saltenv", saltenv.clone());
    opts.insert("pillarenv", pillarenv.clone());
    // As on a stock master, an SLS file does not see the pillar that is being made of it.
    let scope = Scope::new(request.grains, &nothing, &opts, request.matches.clone());

    let mut run = Run {
        compiler,
        scope,
        envs: environments(compiler, pillarenv.as_deref().or(saltenv.as_deref())),
        states: HashMap::new(),
        ignored: HashSet::new(),
        errors: Vec::new(),
        details: Vec::new(),
    };
    let (top, top_errors) = run.top(pillarenv.as_deref(), request.saltenv);
    let selected = run.select(&top, pillarenv.as_deref(), request);
    run.note_ignored(&top);
    let mut value = run.render(selected, pillar_override.clone());

    let Run { mut errors, mut details, .. } = run;
    for (error, detail) in top_errors {
        errors.push(error);
        details.push(detail);
    }
    if !errors.is_empty() {
        value.insert("_errors", errors.iter().map(Value::from).collect::<Vec<_>>());
    }
    if !pillar_override.is_empty() {
        value = merge(value, pillar_override.clone(), settings.merging, settings.merge_lists);
    }
    Pillar { value, errors, details }
}

/// The environments that have pillar: base, the configured ones, and the one a wildcard root stands for.
fn environments(compiler: &Compiler, asked: Option<&str>) -> Vec<String> {
    let mut envs = vec!["base".to_owned()];
    let asked = Some(asked.unwrap_or("base")).filter(|env| compiler.roots.has_env(env));
    for env in compiler.roots.env_order().chain(asked) {
        if !envs.iter().any(|known| known == env) {
            envs.push(env.to_owned());
        }
    }
    envs
}

struct Run<'a> {
    compiler: &'a Compiler,
    scope: Scope,
    envs: Vec<String>,
    /// The SLS names in an environment, listed when the first pattern asks for them.
    states: HashMap<String, Vec<String>>,
    /// (environment, SLS) that may be missing.
    ignored: HashSet<(String, String)>,
    errors: Vec<String>,
    details: Vec<String>,
}

/// What SLS files of one environment said, before their includes were merged in.
type Mods = HashMap<String, Option<Map>>;

impl Run<'_> {
    fn fail(&mut self, error: String, detail: String) {
        self.errors.push(error);
        self.details.push(detail);
    }

    fn fail_plainly(&mut self, error: String) {
        self.fail(error.clone(), error);
    }

    /// All top files together, and what was wrong with them.
    fn top(&mut self, pillarenv: Option<&str>, saltenv: Option<&str>) -> (Top, Vec<(String, String)>) {
        let mut envs = match pillarenv {
            Some(env) if self.compiler.roots.has_env(env) => vec![env.to_owned()],
            Some(_) => Vec::new(),
            None => self.envs.clone(),
        };
        if pillarenv.is_none() && self.compiler.settings.merging == Strategy::None {
            let only = saltenv.unwrap_or("base");
            envs.retain(|env| env == only);
        }
        let mut errors = Vec::new();
        let mut files = Vec::new();
        for env in envs {
            let path = self.compiler.settings.top.trim_start_matches("salt://").trim_start_matches('/');
            match self.compiler.renderer.render(Template { env: &env, path, sls: "" }, &self.scope, &Map::new()) {
                Ok(Some(data)) => files.push((env, data)),
                Ok(None) => {}
                Err(err) => {
                    let error = format!("Rendering Primary Top file failed, render error:\n{err}");
                    errors.push((error.clone(), error));
                    break;
                }
            }
        }
        let mut parsed = Vec::new();
        for (env, data) in files {
            if let Err(err) = self.top_with_includes(&env, &data, &mut parsed, &mut errors) {
                errors.push((TOP_FAILED.to_owned(), err.to_string()));
                return (Top::default(), errors);
            }
        }
        (Top::merge_pillar(&parsed), errors)
    }

    /// Reads one top file and those it includes; those of the included ones are ignored, as Salt does.
    fn top_with_includes(
        &self,
        env: &str,
        data: &Value,
        parsed: &mut Vec<TopFile>,
        errors: &mut Vec<(String, String)>,
    ) -> Result<(), Error> {
        let file = TopFile::parse(data)?;
        let includes = file.include.clone();
        parsed.push(file);
        let mut done = HashSet::new();
        for sls in includes.iter().filter(|sls| done.insert(*sls)) {
            let data = match self.find(sls, env) {
                Ok(Some(path)) => {
                    let template = Template { env, path: &path, sls: "" };
                    self.compiler.renderer.render(template, &self.scope, &Map::new())
                }
                other => other.map(|_| None),
            };
            match data {
                Ok(Some(data)) => parsed.push(TopFile::parse(&data)?),
                Ok(None) => {}
                Err(err) => {
                    let error = format!("Rendering Top file {sls} failed, render error:\n{err}");
                    errors.push((error.clone(), error));
                }
            }
        }
        Ok(())
    }

    /// The SLS names for the minion. A target that cannot be read matches nobody, which Salt tells its log only.
    fn select(&mut self, top: &Top, pillarenv: Option<&str>, request: &Request<'_>) -> Vec<(String, Vec<String>)> {
        let mut bad_targets = Vec::new();
        let is_match = |target: &str, kind: &str| {
            (request.matches)(target, kind).unwrap_or_else(|err| {
                bad_targets.push(format!("target '{target}' ({kind}) in pillar top file: {err}"));
                false
            })
        };
        let selected = top.matching(pillarenv, is_match);
        self.details.extend(bad_targets);
        selected.unwrap_or_else(|err| {
            self.fail(TOP_FAILED.to_owned(), err.to_string());
            Vec::new()
        })
    }

    fn note_ignored(&mut self, top: &Top) {
        for (env, entries) in &top.envs {
            for entry in entries.iter().filter(|entry| entry.ignore_missing) {
                self.ignored.extend(entry.sls.iter().map(|sls| (env.clone(), sls.clone())));
            }
        }
    }

    /// Renders the selected SLS files over `pillar`.
    fn render(&mut self, mut selected: Vec<(String, Vec<String>)>, mut pillar: Map) -> Map {
        let settings = &self.compiler.settings;
        // The last environment of `env_order` wins; those it does not name come after, in their own order.
        let place = |env: &str| settings.env_order.iter().position(|known| known == env).unwrap_or(usize::MAX);
        selected.sort_by_key(|(env, _)| place(env));
        for (env, patterns) in selected {
            let mut mods = Mods::new();
            for sls in self.expand(&env, &patterns) {
                if let Some(state) = self.state(&sls, &env, &mut mods, &Map::new(), 0) {
                    pillar = merge(pillar, state, settings.merging, settings.merge_lists);
                }
            }
        }
        pillar
    }

    fn expand(&mut self, env: &str, patterns: &[String]) -> Vec<String> {
        let mut names = Vec::new();
        for pattern in patterns {
            if !self.envs.iter().any(|known| known == env) {
                self.fail_plainly(format!("No matching pillar environment for environment '{env}' found"));
            }
            let matched = self.matching_states(env, pattern);
            if matched.is_empty() { names.push(pattern.clone()) } else { names.extend(matched) }
        }
        names
    }

    /// The SLS names that match a pattern; none for a name without a pattern, which needs no listing.
    fn matching_states(&mut self, env: &str, pattern: &str) -> Vec<String> {
        let glob = Glob::new(pattern);
        if glob.is_literal() {
            return Vec::new();
        }
        if !self.states.contains_key(env) {
            let states = match self.compiler.roots.listing(env) {
                Ok(listing) => listing.files.iter().filter_map(|path| state_name(path)).collect(),
                Err(err) => {
                    self.fail_plainly(err.to_string());
                    Vec::new()
                }
            };
            self.states.insert(env.to_owned(), states);
        }
        self.states[env].iter().filter(|state| glob.matches(state)).cloned().collect()
    }

    /// The path of an SLS: `a.b` is `a/b.sls` or `a/b/init.sls`.
    fn find(&self, sls: &str, env: &str) -> Result<Option<String>, Error> {
        let base = sls.replace('.', "/");
        for path in [format!("{base}.sls"), format!("{base}/init.sls")] {
            match self.compiler.roots.stamp(env, path.trim_start_matches('/')) {
                Ok(Some(_)) => return Ok(Some(path.trim_start_matches('/').to_owned())),
                // A name that is no path is a name of nothing.
                Ok(None) | Err(Error::Path { .. }) => {}
                Err(err) => return Err(err),
            }
        }
        Ok(None)
    }

    /// What an SLS and its includes say.
    fn state(&mut self, sls: &str, env: &str, mods: &mut Mods, defaults: &Map, depth: usize) -> Option<Map> {
        let path = match self.find(sls, env) {
            Ok(Some(path)) => path,
            Ok(None) => {
                self.missing(sls, env);
                return None;
            }
            Err(err) => {
                self.render_failed(sls, &err);
                return None;
            }
        };
        mods.insert(sls.to_owned(), None);
        let template = Template { env, path: &path, sls };
        let state = match self.compiler.renderer.render(template, &self.scope, defaults) {
            Ok(Some(Value::Map(state))) => state,
            Ok(Some(_)) => {
                self.fail_plainly(format!("SLS '{sls}' does not render to a dictionary"));
                return None;
            }
            Ok(None) => {
                self.missing(sls, env);
                return None;
            }
            Err(err) => {
                self.render_failed(sls, &err);
                return None;
            }
        };
        self.with_includes(state, Place { sls, env, path: &path, depth }, mods, defaults)
    }

    fn missing(&mut self, sls: &str, env: &str) {
        if self.ignored.contains(&(env.to_owned(), sls.to_owned())) {
            return;
        }
        if self.compiler.roots.has_env(env) {
            self.fail_plainly(format!(
                "Specified SLS '{sls}' in environment '{env}' is not available on the salt master"
            ));
        } else {
            // Salt tells only its log about this one.
            self.details.push(format!("Specified SLS '{sls}' in environment '{env}' was not found"));
        }
    }

    fn render_failed(&mut self, sls: &str, err: &Error) {
        let detail = format!("Rendering SLS '{sls}' failed, render error:\n{err}");
        let error = if self.compiler.settings.safe_render_error {
            format!("Rendering SLS '{sls}' failed. Please see master log for details.")
        } else {
            detail.clone()
        };
        self.fail(error, detail);
    }

    fn with_includes(&mut self, mut state: Map, place: Place<'_>, mods: &mut Mods, defaults: &Map) -> Option<Map> {
        let settings = &self.compiler.settings;
        let includes = match state.get("include") {
            None => {
                mods.insert(place.sls.to_owned(), Some(state.clone()));
                return Some(state);
            }
            Some(Value::List(includes)) => includes.clone(),
            Some(_) => {
                self.fail_plainly(format!("Include Declaration in SLS '{}' is not formed as a list", place.sls));
                mods.insert(place.sls.to_owned(), Some(state.clone()));
                return Some(state);
            }
        };
        state.remove("include");
        mods.insert(place.sls.to_owned(), Some(state.clone()));
        if place.depth >= MAX_INCLUDES {
            self.fail_plainly(format!("SLS '{}' is included too deeply", place.sls));
            return Some(state);
        }
        // Defaults stay in force for the includes after the one that brought them; Salt does that.
        let mut defaults = defaults.clone();
        let mut included = Vec::new();
        for include in &includes {
            let Some((name, options)) = include_parts(include) else {
                self.fail_plainly(format!("Include Declaration in SLS '{}' is malformed", place.sls));
                continue;
            };
            let mut key = None;
            if let Some(options) = options {
                defaults = options.get("defaults").and_then(Value::as_map).cloned().unwrap_or_default();
                key = options.get("key").and_then(Value::as_str);
            }
            for sls in self.included_states(name, place) {
                let said = match mods.get(&sls) {
                    Some(known) => known.clone(),
                    None => self.state(&sls, place.env, mods, &defaults, place.depth + 1),
                };
                included.extend(said.filter(|said| !said.is_empty()).map(|said| under_key(said, key)));
            }
        }
        let merged = |base: Map, over: Map| merge(base, over, settings.merging, settings.merge_lists);
        Some(if settings.includes_override_sls {
            included.into_iter().fold(state, merged)
        } else {
            // The SLS itself has the last word.
            included.push(state);
            included.into_iter().reduce(merged).unwrap_or_default()
        })
    }

    /// The SLS names an include stands for. A relative one (`.name`) means its neighbour, but Salt also takes the SLS of
    /// that name at the root.
    fn included_states(&mut self, name: &str, place: Place<'_>) -> Vec<String> {
        let absolute = name.trim_start_matches('.').replace('/', ".");
        let full = match name.strip_prefix('.') {
            Some(rest) if place.path.ends_with("/init.sls") => format!("{}.{rest}", place.sls),
            Some(rest) => match place.sls.rsplit_once('.') {
                Some((parent, _)) => format!("{parent}.{rest}"),
                None => rest.to_owned(),
            },
            None => name.to_owned(),
        };
        let mut states: Vec<String> = Vec::new();
        for candidate in [absolute, full.clone()] {
            states.extend(self.matching_states(place.env, &candidate));
            if matches!(self.find(&candidate, place.env), Ok(Some(_))) {
                states.push(candidate);
            }
        }
        let mut seen = HashSet::new();
        states.retain(|state| seen.insert(state.clone()));
        if states.is_empty() {
            states.push(full);
        }
        states
    }
}

/// Where an include stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    sls: &'a str,
    env: &'a str,
    path: &'a str,
    depth: usize,
}

/// An include as a name, or a name with `defaults` and `key`.
fn include_parts(include: &Value) -> Option<(&str, Option<&Map>)> {
    match include {
        Value::Text(name) => Some((name, None)),
        Value::Map(map) => {
            let (name, options) = map.iter().next()?;
            Some((name.as_str()?, Some(options.as_map()?)))
        }
        _ => None,
    }
}

/// `x:y` puts what was said under `{x: {y: …}}`.
fn under_key(said: Map, key: Option<&str>) -> Map {
    let Some(key) = key.filter(|key| !key.is_empty()) else { return said };
    key.rsplit(':').fold(said, |said, part| [(Value::from(part), Value::Map(said))].into_iter().collect())
}

/// The SLS name of a file, if it is one.
fn state_name(path: &str) -> Option<String> {
    let name = path.strip_suffix("/init.sls").or_else(|| path.strip_suffix(".sls"))?;
    Some(name.replace('/', "."))
}
