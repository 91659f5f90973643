//! Grains: what a machine says of itself, named and shaped as Salt's.

use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};

/// The grains of this machine, with the operator's own over them.
pub fn collect(id: &MinionId, own: &Map) -> Map {
    let mut grains = Map::new();
    grains.insert("id", id);
    grains.insert("kernel", "Linux");
    grains.insert("saltern_version", env!("CARGO_PKG_VERSION"));
    for (name, value) in own {
        grains.insert(name.clone(), Value::clone(value));
    }
    grains
}
