//! Stock Salt in Python environments, one per release line.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use saltern_testkit::installed::{self, Line, Salt};

use crate::setup::python;

/// Installs the given lines, all at once, and stamps them.
pub(crate) fn install(cache: &Path, lines: &[Line]) -> Result<()> {
    let results: Vec<Result<Salt>> = std::thread::scope(|scope| {
        let threads: Vec<_> = lines.iter().map(|&line| scope.spawn(move || install_line(cache, line))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("an installation panicked"))))
            .collect()
    });
    for result in results {
        result?.write_stamp(cache)?;
    }
    Ok(())
}

fn install_line(cache: &Path, line: Line) -> Result<Salt> {
    let preferred = line.preferred_version();
    let root = installed::salt_dir(cache, preferred);
    if let Some(version) = version_of(&root) {
        println!("Salt {version} was there already");
        return Ok(Salt { line, version, root });
    }
    match create(&root, &format!("salt=={preferred}")) {
        Ok(version) => Ok(Salt { line, version, root }),
        Err(error) => {
            println!("Salt {preferred} does not install ({error:#}); trying the newest {line}");
            let root = cache.join(format!("salt-{line}-newest"));
            let version = create(&root, &format!("salt>={line},<{}", line.number() + 1))?;
            Ok(Salt { line, version, root })
        }
    }
}

/// Makes a new environment, installs the requirement into it, and gives the version that came of it.
fn create(root: &Path, requirement: &str) -> Result<String> {
    python::create(root, &[requirement])?;
    version_of(root).with_context(|| format!("{requirement} was installed, but its salt-minion does not start"))
}

/// The version an environment's minion reports, if it starts at all.
fn version_of(root: &Path) -> Option<String> {
    let output = Command::new(root.join("bin/salt-minion")).arg("--version").stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| parse_version(&String::from_utf8_lossy(&output.stdout)))?
}

/// The version in `salt-minion 3006.28 (Sulfur)`.
fn parse_version(line: &str) -> Option<String> {
    let version = line.trim().strip_prefix("salt-minion ")?.split_whitespace().next()?;
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_the_minion_prints() {
        assert_eq!(parse_version("salt-minion 3006.28 (Sulfur)\n").as_deref(), Some("3006.28"));
        assert_eq!(parse_version("Traceback (most recent call last):"), None);
        assert_eq!(parse_version("salt-minion"), None);
    }

    #[test]
    fn an_environment_that_is_not_there_has_no_version() {
        assert_eq!(version_of(Path::new("/nonexistent")), None);
    }
}
