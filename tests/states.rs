//! The state catalogue with stock minions of every line: what is kept on the server is applied on the machines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use saltern_e2e::Fleet;
use serde_json::{Value, json};

/// What the tests need of the fleet.
struct Site(Fleet);

impl Site {
    /// Applies what is assigned; tells which states that were.
    async fn apply_assigned(&self, minion: &str) -> Vec<String> {
        let answers = self.0.run(minion, "state.apply", &["saltern.assigned"]).await;
        let states = answers[minion].as_object().cloned().unwrap_or_default();
        assert!(!states.is_empty() && states.values().all(|state| state["result"] == json!(true)), "{answers}");
        let mut sls: Vec<(i64, String)> = states
            .values()
            .map(|state| (state["__run_num__"].as_i64().unwrap(), state["__sls__"].as_str().unwrap().to_owned()))
            .collect();
        sls.sort();
        sls.into_iter().map(|(_, sls)| sls).collect()
    }

    fn read(&self, minion: &str, name: &str) -> Option<String> {
        std::fs::read_to_string(self.0.written(minion, name)).ok().map(|text| text.trim_end().to_owned())
    }
}

#[tokio::test]
async fn what_is_assigned_is_applied_and_what_is_changed_is_applied_next_time() {
    let Some(fleet) = Fleet::start("", &[]).await else { return };
    let site = Site(fleet);
    let ids: Vec<String> = site.0.ids().into_iter().map(str::to_owned).collect();
    site.0.done(&["group", "create", "all", "--target", "m*"]).await;
    site.0.put_state("app.group", "first").await;
    site.0.put_state("app.own", "own").await;
    site.0.done(&["state", "assign", "app.group", "--group", "all"]).await;
    for id in &ids {
        site.0.done(&["state", "assign", "app.own", "--minion", id]).await;
        assert_eq!(site.apply_assigned(id).await, ["catalogue.app.group", "catalogue.app.own"], "{id}");
        assert_eq!(site.read(id, "app.group").as_deref(), Some("first"), "{id}");
        assert_eq!(site.read(id, "app.own").as_deref(), Some("own"), "{id}");
    }

    site.0.put_state("app.group", "second").await;
    let versions = site.0.server.cli_json(&["state", "history", "app.group"]).await;
    assert_eq!(versions.as_array().map(Vec::len), Some(2));
    let old = site.0.done(&["state", "show", "app.group", "--version", "1"]).await;
    assert!(old.contains("contents: first"), "{old}");
    let action = site.0.server.cli_json(&["action", "create", "states", "*", "assigned=true"]).await;
    let action = action["id"].to_string();
    site.0.done(&["action", "wait", &action]).await;
    for id in &ids {
        assert_eq!(site.read(id, "app.group").as_deref(), Some("second"), "{id}");
    }
}

#[tokio::test]
async fn a_minion_of_another_organisation_does_not_get_the_state() {
    let Some(fleet) = Fleet::start("", &[]).await else { return };
    let site = Site(fleet);
    site.0.put_state("secret", "ours").await;
    site.0.done(&["state", "assign", "secret", "--org", "default"]).await;
    site.0.done(&["org", "create", "north"]).await;
    for id in site.0.ids() {
        site.0.done(&["minion", "set", id, "--org", "north"]).await;
        assert_eq!(site.apply_assigned(id).await, ["saltern.assigned"], "{id}: a state that does nothing");
        let files = site.0.run(id, "cp.list_master", &[]).await;
        let files: Vec<&str> = files[id].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(files.contains(&"saltern/assigned.sls"), "{id}: {files:?}");
        assert!(!files.iter().any(|file| file.contains("secret")), "{id}: {files:?}");
        let applied = site.0.server.cli(&["run", id, "state.apply", "catalogue.secret"]).await;
        assert!(!applied.status.success(), "{id}");
        assert_eq!(site.read(id, "secret"), None, "{id}");

        site.0.done(&["minion", "set", id, "--org", "default"]).await;
        assert_eq!(site.apply_assigned(id).await, ["catalogue.secret"], "{id}");
    }
}

/// Scenario 67.
#[tokio::test]
async fn a_chain_saved_as_a_state_does_what_the_chain_does() {
    let Some(fleet) = Fleet::start("", &[]).await else { return };
    let site = Site(fleet);
    let ids: Vec<String> = site.0.ids().into_iter().map(str::to_owned).collect();
    // One line for each step, in a file that all of them share.
    let root = site.0.server.root().join("out");
    std::fs::create_dir_all(&root).unwrap();
    site.0.done(&["chain", "create", "notes"]).await;
    for number in ["1", "2", "3"] {
        let add = ["chain", "add", "notes", "function", "fun=cmd.run", "--target", "*"];
        let kwarg = format!(r#"kwarg={{"cmd": "echo {number} >> notes", "cwd": "{}"}}"#, root.display());
        site.0.done(&[&add[..], &[kwarg.as_str()]].concat()).await;
    }
    let launch = site.0.server.cli_json(&["chain", "launch", "notes"]).await;
    site.0.done(&["chain", "wait", &launch["id"].to_string()]).await;
    let by_chain = std::fs::read_to_string(root.join("notes")).unwrap();
    std::fs::remove_file(root.join("notes")).unwrap();
    site.0.done(&["chain", "save-as-state", "notes", "notes"]).await;
    let one = &ids[0];
    for id in &ids {
        let answers = site.0.run(id, "state.apply", &["catalogue.notes"]).await;
        let states = answers[id].as_object().cloned().unwrap_or_default();
        assert_eq!(states.len(), 3, "{answers}");
        assert!(states.values().all(|state| state["result"] == json!(true)), "{answers}");
    }
    let by_state = std::fs::read_to_string(root.join("notes")).unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&by_state), sorted(&by_chain));
    assert_eq!(&by_state.lines().take(3).collect::<Vec<_>>(), &["1", "2", "3"], "{one} went first, in order");

    site.0.done(&["chain", "add", "notes", "reboot", "--target", "*"]).await;
    let refused = site.0.server.cli(&["chain", "save-as-state", "notes", "other"]).await;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("step 4"), "{why}");
}
