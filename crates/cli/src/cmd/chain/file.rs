//! Chains in YAML files: what `apply -f` reads and `export` writes.
//!
//! A file holds one chain, several documents of one chain each, or a list of chains under `chains`. Everything is read and
//! checked before anything is sent, and what is wrong is told with the file, the line where one is known, the chain and the step.

use crate::documents::{self, only, shown};
use crate::failure::Failure;
use saltern_api::shape::ChainDraft;
use saltern_core::chain::{Step, check_all, check_name};
use saltern_core::value::{Map, Value};
use saltern_render::yaml;

/// What a chain may say of itself.
const KEYS: [&str; 4] = ["name", "description", "shared", "steps"];
/// What a document is.
const FORM: &str = "a chain is a map with `name` and `steps`, or there is a list under `chains`";

/// Reads all chains of these files; `-` is standard input.
pub(super) fn read_all(files: &[String]) -> Result<Vec<ChainDraft>, Failure> {
    let mut chains: Vec<ChainDraft> = Vec::new();
    for file in files {
        for chain in read(file, &documents::content(file)?)? {
            if chains.iter().any(|other| other.name == chain.name) {
                return Err(Failure::usage(format!("{}: the chain {:?} is there twice", shown(file), chain.name)));
            }
            chains.push(chain);
        }
    }
    Ok(chains)
}

/// Chains as a file has them: one document each.
pub(super) fn write(chains: &[ChainDraft]) -> Result<String, Failure> {
    let documents: Result<Vec<String>, Failure> = chains.iter().map(document).collect();
    Ok(documents?.join("---\n"))
}

/// Reads the chains of one file.
fn read(file: &str, text: &str) -> Result<Vec<ChainDraft>, Failure> {
    let mut chains = Vec::new();
    for document in documents::read(file, text, FORM)? {
        let at_line = |error: String| document.wrong(error);
        match document.map.get("chains") {
            Some(_) => chains.extend(list(&document.map).map_err(at_line)?),
            None => chains.push(chain(&document.map).map_err(at_line)?),
        }
    }
    if chains.is_empty() {
        return Err(
            Failure::usage(format!("{} has no chain", shown(file))).hint("`saltern chain export` shows the form")
        );
    }
    Ok(chains)
}

fn list(map: &Map) -> Result<Vec<ChainDraft>, String> {
    only(map, &["chains"])?;
    let list = map.get("chains").and_then(Value::as_list).ok_or("`chains` is a list of chains")?;
    let read = |(at, value): (usize, &Value)| match value {
        Value::Map(map) => chain(map),
        _ => Err(format!("chain {}: it is a map with `name` and `steps`", at + 1)),
    };
    list.iter().enumerate().map(read).collect()
}

fn chain(map: &Map) -> Result<ChainDraft, String> {
    let name = match map.get("name") {
        Some(Value::Text(name)) => name.to_string(),
        Some(_) => return Err("the `name` of a chain is a text: put it between quotes".into()),
        None => return Err("a chain has no `name`".into()),
    };
    let of_chain = |error: String| format!("chain {name:?}: {error}");
    check_name(&name).map_err(|error| of_chain(error.to_string()))?;
    if name.parse::<i64>().is_ok() {
        return Err(of_chain("a name that is a number would be read as the number of a chain".into()));
    }
    only(map, &KEYS).map_err(of_chain)?;
    let description = match map.get("description") {
        None | Some(Value::Nil) => String::new(),
        Some(Value::Text(text)) => text.to_string(),
        Some(_) => return Err(of_chain("`description` is a text: put it between quotes".into())),
    };
    let shared = match map.get("shared") {
        None | Some(Value::Nil) => false,
        Some(Value::Bool(shared)) => *shared,
        Some(_) => return Err(of_chain("`shared` is true or false".into())),
    };
    let steps = match map.get("steps") {
        None | Some(Value::Nil) => Vec::new(),
        Some(Value::List(steps)) => {
            let step = |(at, value)| step(value).map_err(|error| of_chain(format!("step {}: {error}", at + 1)));
            steps.iter().enumerate().map(step).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(of_chain("`steps` is a list".into())),
    };
    if !steps.is_empty() {
        check_all(&steps).map_err(|error| of_chain(error.to_string()))?;
    }
    Ok(ChainDraft { name, description, shared, steps })
}

fn step(value: &Value) -> Result<Step, String> {
    documents::typed(value)
}

fn document(chain: &ChainDraft) -> Result<String, Failure> {
    let json = serde_json::to_string(&chain.steps);
    let steps = json.and_then(|json| serde_json::from_str::<Value>(&json));
    let steps = steps.map_err(|error| Failure::new(format!("cannot write YAML: {error}")))?;
    let mut map = Map::new();
    map.push("name", chain.name.as_str());
    if !chain.description.is_empty() {
        map.push("description", chain.description.as_str());
    }
    if chain.shared {
        map.push("shared", true);
    }
    map.push("steps", steps);
    Ok(yaml::to_yaml(&Value::Map(map)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::chain::Barrier;
    use std::time::Duration;

    const RACKS: &str = "\
# Rack after rack
name: racks
shared: true
steps:
- type: package_update
  target: rack1-*
- type: reboot
  target: rack1-*
  limit: 30m
- type: package_update
  target: {group: rack2}
  barrier: all
  budget: 10%
";

    fn error(text: &str) -> String {
        read("racks.yml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_a_chain() {
        let chains = read("racks.yml", RACKS).unwrap();
        let [chain] = chains.as_slice() else { panic!("{chains:?}") };
        assert_eq!((chain.name.as_str(), chain.shared, chain.steps.len()), ("racks", true, 3));
        assert_eq!(chain.steps[1].limit, Some(Duration::from_secs(1_800)));
        assert_eq!(chain.steps[2].barrier, Barrier::All);
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let chains = read("racks.yml", &format!("{RACKS}---\nname: 'yes'\ndescription: 'a: b'\n")).unwrap();
        assert_eq!(read("-", &write(&chains).unwrap()).unwrap(), chains);
    }

    #[test]
    fn a_written_chain_begins_with_its_name() {
        let text = write(&read("racks.yml", RACKS).unwrap()).unwrap();
        assert!(
            text.starts_with("name: racks\nshared: true\nsteps:\n- type: package_update\n  target: rack1-*\n"),
            "{text}"
        );
    }

    #[test]
    fn several_chains_are_documents_or_a_list() {
        let names =
            |text: &str| -> Vec<String> { read("x.yml", text).unwrap().into_iter().map(|chain| chain.name).collect() };
        assert_eq!(names("---\nname: a\n---\n# nothing\n--- \nname: b\n"), ["a", "b"]);
        assert_eq!(names("chains:\n- name: a\n- name: b\n  steps: [{type: reboot}]\n"), ["a", "b"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        assert_eq!(
            error(&format!("{RACKS}---\nname: b\nsteps:\n- type: reboot\n- typ: reboot\n")),
            "racks.yml, line 14: chain \"b\": step 2: unknown field `typ`, expected one of `type`, `params`, `name`, \
             `target`, `barrier`, `budget`, `after`, `approval`, `limit`, `repeatable`"
        );
        let broken = error(&format!("{RACKS}---\nname: [b\nsteps: 5\n"));
        assert!(broken.starts_with("racks.yml: ") && broken.contains("line 16"), "{broken}");
        assert!(error("name: a\nsteps:\n- type: fly\n").contains("chain \"a\": step 1: there is no action type 'fly'"));
        assert!(error("name: a\nsteps:\n- type: reboot\n  barrier: some\n").ends_with("such as `80%`"));
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        for bad in [
            "",
            "# nothing\n",
            "- name: a\n",
            "chains: 5\n",
            "chains: [5]\n",
            "chains: []\n",
            "chains: []\nname: a\n",
            "steps: []\n",
            "name: 5\n",
            "name: '7'\n",
            "name: ' a'\n",
            "name: a\nowner: ann\n",
            "name: a\nshared: maybe\n",
            "name: a\nsteps: 5\n",
            "name: a\nsteps: [5]\n",
            "name: a\nsteps: [{type: reboot, params: {1: 2}}]\n",
            "name: a\nsteps: [{type: reboot, after: failed}]\n",
        ] {
            assert!(read("x.yml", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chain_is_in_the_files_once() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["a.yml", "b.yml"].map(|name| {
            let file = dir.path().join(name);
            std::fs::write(&file, RACKS).unwrap();
            file.display().to_string()
        });
        assert_eq!(read_all(&files[..1]).unwrap().len(), 1);
        assert!(read_all(&files).unwrap_err().to_string().ends_with("the chain \"racks\" is there twice"));
        assert!(read_all(&["/does/not/exist".into()]).unwrap_err().to_string().contains("/does/not/exist"));
    }
}
