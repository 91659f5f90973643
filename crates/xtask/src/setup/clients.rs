//! Programs that talk to the HTTP API, in Python environments of their own: what the field uses, and a fuzzer.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use saltern_testkit::installed::{Client, ClientProgram};

use crate::setup::python;

/// Installs the given clients and stamps them.
pub(crate) fn install(cache: &Path, missing: &[ClientProgram]) -> Result<()> {
    for &program in missing {
        let client = install_one(cache, program)?;
        client.write_stamp(cache)?;
    }
    Ok(())
}

fn install_one(cache: &Path, program: ClientProgram) -> Result<Client> {
    let (package, preferred) = (program.package(), program.preferred_version());
    let root = program.folder(cache, preferred);
    if let Some(version) = version_of(&root, package) {
        println!("{package} {version} was there already");
        return Ok(Client { program, version, root });
    }
    let root = match python::create(&root, &[&format!("{package}=={preferred}")]) {
        Ok(()) => root,
        Err(error) => {
            println!("{package} {preferred} does not install ({error:#}); trying the newest");
            let root = program.folder(cache, "newest");
            python::create(&root, &[package])?;
            root
        }
    };
    let version = version_of(&root, package);
    let version = version.with_context(|| format!("{package} was installed, but its environment does not know it"))?;
    Ok(Client { program, version, root })
}

/// The version of a package in an environment, if it is there.
fn version_of(root: &Path, package: &str) -> Option<String> {
    let question = format!("import importlib.metadata as m; print(m.version({package:?}))");
    let mut python = Command::new(root.join("bin/python"));
    let output = python.args(["-c", &question]).stdin(Stdio::null()).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_is_not_there_has_no_version() {
        assert_eq!(version_of(Path::new("/nonexistent"), "salt-pepper"), None);
    }
}
