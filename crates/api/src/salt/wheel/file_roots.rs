//! `file_roots.*`: the files that are served to minions, to look at. Writing them is left to whoever may log in to the machine.

use crate::salt::function::{Call, Function, Outcome, Trouble};
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::{FileRoots, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "file_roots.list_roots",
        params: "",
        doc: "Lists the files of all environments, root by root.",
        secret: false,
        run: |call| Box::pin(list_roots(call)),
    },
    Function {
        name: "file_roots.list_env",
        params: "saltenv=base",
        doc: "Lists the files of one environment, root by root.",
        secret: false,
        run: |call| Box::pin(list_env(call)),
    },
    Function {
        name: "file_roots.find",
        params: "path, saltenv=base",
        doc: "Tells where a file is found.",
        secret: false,
        run: |call| Box::pin(find(call)),
    },
    Function {
        name: "file_roots.read",
        params: "path, saltenv=base",
        doc: "Shows a file, up to a megabyte of text.",
        secret: false,
        run: |call| Box::pin(read(call)),
    },
];

/// The largest file that is shown.
const LARGEST: usize = 1 << 20;

/// The roots of an environment, each to be looked at by itself.
struct Roots {
    settings: Settings,
    envs: Vec<(String, Vec<PathBuf>)>,
}

impl Roots {
    fn of(call: &Call, wanted: Option<&str>) -> Self {
        let config = call.salt.app.config();
        let envs = config.file_roots.iter().filter(|(env, _)| wanted.is_none_or(|wanted| wanted == env)).cloned();
        Self { settings: config.files.clone(), envs: envs.collect() }
    }

    /// What `look` makes of each root, by environment; what it makes nothing of is left out.
    fn each(&self, look: impl Fn(&str, &Path, &FileRoots) -> Result<Option<Value>, String>) -> Result<Map, String> {
        let mut all = Map::new();
        for (env, dirs) in &self.envs {
            let mut found = Vec::new();
            for dir in dirs {
                let roots = FileRoots::new([(env.clone(), vec![dir.clone()])], self.settings.clone());
                found.extend(look(env, dir, &roots.map_err(|error| error.to_string())?)?);
            }
            all.push(env.as_str(), Value::List(found));
        }
        Ok(all)
    }
}

/// Runs what waits for the disk where waiting hurts nobody.
async fn on_disk(work: impl FnOnce() -> Result<Value, String> + Send + 'static) -> Outcome {
    match tokio::task::spawn_blocking(work).await {
        Ok(found) => found.map_err(Trouble::Raised),
        Err(error) => Err(Trouble::Raised(format!("looking at the files was not finished: {error}"))),
    }
}

async fn list_roots(call: Call) -> Outcome {
    let roots = Roots::of(&call, None);
    on_disk(move || Ok(roots.each(list_root)?.into())).await
}

async fn list_env(call: Call) -> Outcome {
    let env = call.given.text("saltenv")?.unwrap_or_else(|| "base".into());
    let roots = Roots::of(&call, Some(&env));
    on_disk(move || Ok(roots.each(list_root)?.into())).await
}

fn list_root(env: &str, dir: &Path, roots: &FileRoots) -> Result<Option<Value>, String> {
    let files = roots.file_list(env, "").map_err(|error| error.to_string())?;
    let mut tree = Tree::default();
    for file in &files {
        tree.add(file.split('/'));
    }
    Ok(Some(Value::map([(dir.display().to_string(), tree.shown())])))
}

async fn find(call: Call) -> Outcome {
    look_for(call, false).await
}

async fn read(call: Call) -> Outcome {
    look_for(call, true).await
}

/// The roots that have a file, with what it is or what is in it.
async fn look_for(call: Call, with_content: bool) -> Outcome {
    let (path, env) = (call.given.required("path")?, call.given.text("saltenv")?.unwrap_or_else(|| "base".into()));
    let roots = Roots::of(&call, Some(&env));
    on_disk(move || {
        let look = |env: &str, dir: &Path, roots: &FileRoots| {
            let content = roots.read(env, &path, LARGEST).map_err(|error| error.to_string())?;
            let Some((content, _)) = content else { return Ok(None) };
            let is_text = std::str::from_utf8(&content).is_ok();
            let told = match (with_content, is_text) {
                (true, true) => Value::from(content),
                (false, true) => "txt".into(),
                (_, false) => "bin".into(),
            };
            Ok(Some(Value::map([(dir.join(path.trim_start_matches('/')).display().to_string(), told)])))
        };
        let by_env = roots.each(look)?;
        Ok(by_env.values().next().cloned().unwrap_or_else(|| Value::List(Vec::new())))
    })
    .await
}

/// Files in their folders.
#[derive(Default)]
struct Tree(BTreeMap<String, Tree>);

impl Tree {
    fn add<'a>(&mut self, mut path: impl Iterator<Item = &'a str>) {
        if let Some(name) = path.next() {
            self.0.entry(name.to_owned()).or_default().add(path);
        }
    }

    fn shown(&self) -> Value {
        let shown = |tree: &Self| if tree.0.is_empty() { Value::from("f") } else { tree.shown() };
        Value::Map(self.0.iter().map(|(name, tree)| (Value::from(name.as_str()), shown(tree))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_shown_as_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("orch")).unwrap();
        std::fs::write(dir.path().join("orch/ping.sls"), "").unwrap();
        std::fs::write(dir.path().join("top.sls"), "").unwrap();
        let roots = Roots { settings: Settings::default(), envs: vec![("base".into(), vec![dir.path().into()])] };
        let shown = serde_json::to_string(&Value::Map(roots.each(list_root).unwrap())).unwrap();
        let expected =
            format!(r#"{{"base":[{{"{}":{{"orch":{{"ping.sls":"f"}},"top.sls":"f"}}}}]}}"#, dir.path().display());
        assert_eq!(shown, expected);
    }
}
