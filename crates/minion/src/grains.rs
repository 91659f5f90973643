//! Grains: what a machine says of itself, named and shaped as Salt's.
//!
//! Read from the kernel and from files, with a handful of tiny programs asked for what stands in no file. A source that is
//! missing leaves its grains out; nothing here fails, and nothing leaves the machine. The operator's own grains come last:
//! first those of the file `grains` in the data directory, then those of the configuration.
//!
//! `interfaces` and `routes` ask the kernel, and are used by `network.*` as well.

mod agent;
mod hardware;
pub(crate) mod interfaces;
mod network;
mod os;
pub(crate) mod routes;
mod source;
mod virt;

use crate::Config;
use saltern_core::value::{Map, Value};
use sha2::{Digest, Sha256};
use std::path::Path;

/// The release of Salt whose protocol and functions this minion follows: what targets and states that ask for a version see.
/// Our own version is the grain `saltern_version`.
pub const SALT_RELEASE: (i64, i64) = (3008, 3);

/// The grains of this machine, with the operator's own over them.
pub fn collect(config: &Config) -> Map {
    let mut grains = Map::with_capacity(96);
    grains.insert("id", &config.id);
    grains.insert("master", config.masters.first().map_or("", |(host, _)| host.trim_matches(['[', ']'])));
    grains.insert("server_id", server_id(config.id.as_str()));
    let (major, minor) = SALT_RELEASE;
    grains.insert("saltversion", format!("{major}.{minor}"));
    grains.insert("saltversioninfo", Value::list([major, minor]));
    grains.insert("saltern_version", env!("CARGO_PKG_VERSION"));
    agent::add_kernel(&mut grains);
    agent::add_init(&mut grains);
    let cpuarch = grains.get("cpuarch").and_then(Value::as_str).unwrap_or_default().to_owned();
    os::add(&mut grains, &cpuarch);
    hardware::add(&mut grains);
    virt::add(&mut grains);
    network::add(&mut grains);
    agent::add_process(&mut grains);
    grains.insert("zfs_support", false);
    grains.insert("zfs_feature_flags", false);
    for (name, value) in static_grains(&config.data_dir.join("grains")).iter().chain(&config.grains) {
        grains.insert(name.clone(), value.clone());
    }
    grains
}

/// The operator's file; one that cannot be read is told about and otherwise ignored, so that a slip does not cost the minion.
fn static_grains(path: &Path) -> Map {
    let Some(text) = source::read(path) else { return Map::new() };
    match saltern_render::yaml::load(&text) {
        Ok(Value::Map(map)) => map,
        Ok(Value::Nil) => Map::new(),
        Ok(_) => {
            tracing::warn!(path = %path.display(), "the grains file must be a map; it is ignored");
            Map::new()
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the grains file is not YAML; it is ignored");
            Map::new()
        }
    }
}

/// A number of 31 bits made of the minion's id: the lowest of its SHA-256.
fn server_id(id: &str) -> u32 {
    let digest = Sha256::digest(id);
    digest.last_chunk::<4>().map_or(0, |last| u32::from_be_bytes(*last)) & 0x7fff_ffff
}

#[cfg(test)]
mod tests;
