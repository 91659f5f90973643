//! `_master_opts`: what minions want to know of the server's settings.

use super::Master;
use saltern_core::value::{Map, Value};

/// Settings that only matter to who asks for the environments.
const ENV_ONLY: [&str; 4] = ["file_roots", "top_file_merging_strategy", "env_order", "default_top"];

impl Master {
    pub(super) fn master_opts(&self, load: &Map) -> Value {
        let mut opts = Map::new();
        opts.push("renderer", "jinja|yaml");
        opts.push("file_roots", Value::map(self.files.envs().into_iter().map(|env| (env, Value::List(Vec::new())))));
        for (key, value) in &self.config.state_opts {
            opts.push(key.clone(), value.clone());
        }
        // Minions resolve `N@` in their own top files, so they need the groups.
        opts.push("nodegroups", self.config.nodegroups_value.clone());
        opts.push("state_events", self.config.state_events);
        if load.get("env_only").is_some_and(Value::is_truthy) {
            let wanted = |key: &Value| key.as_str().is_some_and(|key| ENV_ONLY.contains(&key));
            opts = opts.into_iter().filter(|(key, _)| wanted(key)).collect();
        }
        Value::Map(opts)
    }
}
