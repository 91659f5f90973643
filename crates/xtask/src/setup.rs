//! Installs what the slow tests need, once: PostgreSQL's server, stock Salt of every supported line, clients of the HTTP
//! API, and libraries to compare with.
//!
//! What is there is recognised, wherever it came from, and left alone. A second call reads a few stamp files and ends.

mod clients;
mod debian;
mod python;
mod salt;

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use saltern_testkit::installed::{self, Client, ClientProgram, Line, Oracles, Salt};

/// Installs what is missing.
pub(crate) fn setup() -> Result<()> {
    let cache = installed::cache_dir();
    std::fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    // Two runs at once would install into the same folders.
    let lock = File::create(cache.join("setup.lock"))?;
    lock.lock().context("cannot wait for another setup")?;

    let start = Instant::now();
    let missing: Vec<Line> = Line::ALL.into_iter().filter(|&line| Salt::read_stamp(&cache, line).is_none()).collect();
    let missing_clients =
        ClientProgram::ALL.into_iter().filter(|&program| Client::read_stamp(&cache, program).is_none());
    let missing_clients: Vec<ClientProgram> = missing_clients.collect();
    let oracles_are_missing = Oracles::read_stamp(&cache).is_none();
    debian::install_missing(!missing.is_empty() || !missing_clients.is_empty() || oracles_are_missing)?;
    salt::install(&cache, &missing)?;
    clients::install(&cache, &missing_clients)?;
    if oracles_are_missing {
        install_oracles(&cache)?;
    }

    if let Some(programs) = installed::postgres_programs() {
        println!("PostgreSQL in {}", programs.display());
    }
    for salt in Line::ALL.into_iter().filter_map(|line| Salt::read_stamp(&cache, line)) {
        println!("Salt {} in {}", salt.version, salt.root.display());
    }
    for client in ClientProgram::ALL.into_iter().filter_map(|program| Client::read_stamp(&cache, program)) {
        println!("{} {} in {}", client.program.package(), client.version, client.root.display());
    }
    if let Some(oracles) = Oracles::read_stamp(&cache) {
        println!("{} in {}", Oracles::REQUIREMENTS.join(", "), oracles.root.display());
    }
    println!("everything is installed ({:.1} s)", start.elapsed().as_secs_f64());
    Ok(())
}

fn install_oracles(cache: &Path) -> Result<()> {
    let oracles = Oracles::of(cache);
    python::create(&oracles.root, &Oracles::REQUIREMENTS)?;
    oracles.write_stamp(cache).context("cannot note that the oracles are installed")
}

/// Removes what [`setup`] keeps in the cache, and nothing else that may be there.
pub(crate) fn clean_cache() -> Result<()> {
    let cache = installed::cache_dir();
    let removed = remove_ours(&cache)?;
    println!("removed {removed} entries from {}", cache.display());
    Ok(())
}

fn remove_ours(cache: &Path) -> Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        let ours = installed::PREFIXES.iter().any(|prefix| bytes.starts_with(prefix.as_bytes()));
        if !(ours || bytes == b"setup.lock") {
            continue;
        }
        let path = entry.path();
        let gone = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        gone.with_context(|| format!("cannot remove {}", path.display()))?;
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_the_cache_leaves_other_files_alone() {
        let cache = std::env::temp_dir().join(format!("saltern-clean-{}", std::process::id()));
        std::fs::create_dir_all(cache.join("salt-3006.28/bin")).unwrap();
        std::fs::write(cache.join("salt-3006.stamp"), "").unwrap();
        std::fs::write(cache.join("salt-pepper.stamp"), "").unwrap();
        std::fs::write(cache.join("thesis.txt"), "years of work").unwrap();
        assert_eq!(remove_ours(&cache).unwrap(), 3);
        assert!(cache.join("thesis.txt").exists());
        std::fs::remove_dir_all(cache).unwrap();
    }
}
