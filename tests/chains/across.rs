//! Scenarios about steps in which others have a say: barriers, budgets, approvals, steps for failures, and rack after rack.
//!
//! Which machine did what before which other is read from one ledger, to which the steps of all machines append themselves.

use crate::machine::Machine;
use crate::town::{NATIVE, PATIENCE, Town, on, reboot, script, shared, with};
use saltern_testkit::http::Request;
use saltern_testkit::scratch::Scratch;
use saltern_testkit::wait;
use serde_json::{Value, json};

const ALL: [&str; 4] = ["m3006", "m3007", "m3008", NATIVE];

/// What the machines have done, in the order in which they did it. Whether a machine is held in a step or fails there is said
/// by files beside it.
struct Ledger(Scratch);

impl Ledger {
    fn new() -> Self {
        Self(Scratch::new("ledger"))
    }

    /// A step that notes its begin and how it ends.
    fn step(&self, name: &str) -> Value {
        let folder = self.0.path().display();
        script(&format!(
            r#"cd {folder} && me=$(basename "$FOLDER") && echo "{name} begins $me" >> ledger
while [ -e "hold-{name}-$me" ]; do sleep 0.05; done
if [ -e "fail-{name}-$me" ]; then echo "{name} fails $me" >> ledger; exit 3; fi
echo "{name} ends $me" >> ledger"#
        ))
    }

    /// Keeps a machine in a step until it is let go.
    fn hold(&self, town: &Town, step: &str, id: &str) {
        self.0.write(&format!("hold-{step}-{}", name_of(town.machine(id))), "");
    }

    fn let_go(&self, town: &Town, step: &str, id: &str) {
        let file = self.0.path().join(format!("hold-{step}-{}", name_of(town.machine(id))));
        std::fs::remove_file(file).unwrap();
    }

    /// Lets a step fail on a machine.
    fn fail(&self, town: &Town, step: &str, id: &str) {
        self.0.write(&format!("fail-{step}-{}", name_of(town.machine(id))), "");
    }

    /// Everything that was done so far, each as `1 begins m3006`.
    fn lines(&self, town: &Town) -> Vec<String> {
        let mut text = std::fs::read_to_string(self.0.path().join("ledger")).unwrap_or_default();
        for machine in &town.machines {
            text = text.replace(&name_of(machine), machine.id());
        }
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until something was done.
    async fn tells(&self, town: &Town, line: &str) {
        wait::until_ok(&format!("the ledger to tell {line:?}"), PATIENCE, async || {
            let lines = self.lines(town);
            if lines.iter().any(|told| told == line) { Ok(()) } else { Err(format!("{lines:?}")) }
        })
        .await;
    }

    /// Asserts that a step was begun and ended once on each of these machines and begun nowhere else.
    fn assert_done_once(&self, town: &Town, step: &str, ids: &[&str]) {
        let lines = self.lines(town);
        for what in ["begins", "ends"] {
            let start = format!("{step} {what} ");
            let mut there: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(&start)).collect();
            let mut wanted = ids.to_vec();
            there.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(there, wanted, "where step {step} {what}: {lines:?}");
        }
    }

    /// Asserts that a step had ended wherever it was begun before the next one was begun anywhere.
    fn assert_all_before(&self, town: &Town, step: &str, next: &str) {
        let lines = self.lines(town);
        let last = lines.iter().rposition(|line| line.starts_with(&format!("{step} ")));
        let first = lines.iter().position(|line| line.starts_with(&format!("{next} ")));
        assert!(last.is_some() && first.is_some() && last < first, "step {step} before step {next}: {lines:?}");
    }
}

/// What a machine's scripts call it.
fn name_of(machine: &Machine) -> String {
    machine.file("").file_name().unwrap().to_string_lossy().into_owned()
}

/// A step for which the one before must have ended everywhere, and with no more failures than that.
fn careful(step: Value, budget: impl Into<Value>) -> Value {
    with(with(step, "barrier", "all"), "budget", budget)
}

/// What a command of `chain` says to somebody who looks.
async fn said(town: &Town, words: &[&str]) -> String {
    let mut all = vec!["chain"];
    all.extend(words);
    let output = town.server.cli(&all).await;
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn explained(town: &Town, launch: i64, id: &str) -> String {
    said(town, &["explain", &launch.to_string(), id]).await
}

/// Waits until a machine was told to reboot, by its own account and by the server's.
async fn told_to_reboot(town: &Town, launch: i64, id: &str) {
    let machine = town.machine(id);
    wait::until(&format!("{id} to be told to go down"), PATIENCE, async || machine.shutdowns() > 0).await;
    town.part_is(launch, id, "restarting").await;
}

#[tokio::test]
async fn a_barrier_for_all_begins_nowhere_before_the_step_before_has_ended_everywhere() {
    let Some((_turn, town)) = shared().await else { return };
    let ledger = Ledger::new();
    let barrier = |step| with(step, "barrier", "all");
    let steps = json!([ledger.step("1"), barrier(ledger.step("2")), barrier(ledger.step("3"))]);
    let holders = [("m3006", 1), (NATIVE, 2)];
    for (id, step) in holders {
        ledger.hold(&town, &step.to_string(), id);
    }
    let launch = town.launched("barrier", &ALL, steps).await;
    for (holder, step) in holders {
        let others = || ALL.into_iter().filter(|id| *id != holder);
        for id in others() {
            town.step_waits(launch, step + 1, id, "barrier").await;
        }
        for id in others() {
            let why = explained(&town, launch, id).await;
            assert!(why.contains("has not ended on 1 of 4 minions"), "{id}: {why}");
        }
        ledger.tells(&town, &format!("{step} begins {holder}")).await;
        let lines = ledger.lines(&town);
        assert!(!lines.iter().any(|line| line.starts_with(&format!("{} ", step + 1))), "{lines:?}");
        ledger.let_go(&town, &step.to_string(), holder);
    }
    town.completes(launch).await;
    ["1", "2", "3"].iter().for_each(|step| ledger.assert_done_once(&town, step, &ALL));
    ledger.assert_all_before(&town, "1", "2");
    ledger.assert_all_before(&town, "2", "3");
}

#[tokio::test]
async fn a_barrier_for_a_share_begins_when_so_many_have_ended_though_one_is_held() {
    let Some((_turn, town)) = shared().await else { return };
    let ledger = Ledger::new();
    let steps = json!([ledger.step("1"), with(ledger.step("2"), "barrier", "75%")]);
    let (late, last) = (NATIVE, "m3007");
    for id in [late, last] {
        ledger.hold(&town, "1", id);
    }
    let launch = town.launched("share", &ALL, steps).await;
    // Half of them is not enough.
    for id in ["m3006", "m3008"] {
        town.step_waits(launch, 2, id, "barrier").await;
    }
    for id in ["m3006", "m3008"] {
        let why = explained(&town, launch, id).await;
        assert!(why.contains("has not ended on 2 of 4 minions"), "{id}: {why}");
    }
    ledger.let_go(&town, "1", late);
    for id in ["m3006", "m3008", late] {
        town.part_is(launch, id, "ended").await;
    }
    ledger.tells(&town, &format!("1 begins {last}")).await;
    let lines = ledger.lines(&town);
    assert!(!lines.contains(&format!("1 ends {last}")), "{lines:?}");
    ledger.assert_done_once(&town, "2", &["m3006", "m3008", late]);
    let third = lines.iter().position(|line| *line == format!("1 ends {late}"));
    assert!(third.is_some() && third < lines.iter().position(|line| line.starts_with("2 begins")), "{lines:?}");
    // Who comes late does what the others have done.
    ledger.let_go(&town, "1", last);
    town.completes(launch).await;
    ledger.assert_done_once(&town, "2", &ALL);
}

#[tokio::test]
async fn over_its_budget_a_step_begins_nowhere_and_within_it_where_all_went_well() {
    let Some((_turn, town)) = shared().await else { return };
    for budget in [json!(1), json!("25%")] {
        let ledger = Ledger::new();
        let steps = json!([ledger.step("1"), careful(ledger.step("2"), budget.clone()), ledger.step("3")]);
        let chain = town.chain(&format!("budget {budget}"), steps).await;
        let target = json!({ "target": ALL, "tgt_type": "list" });

        // One may fail.
        ledger.fail(&town, "1", NATIVE);
        let launch = town.launch(chain, target.clone()).await;
        let detail = town.ended(launch).await;
        assert_eq!((&detail["counts"]["completed"], &detail["counts"]["failed"]), (&json!(3), &json!(1)), "{detail}");
        for step in ["2", "3"] {
            ledger.assert_done_once(&town, step, &town.stock());
        }
        let there = town.steps_on(launch, NATIVE).await;
        assert_eq!(there, "1 failed(returned_error), 2 failed(prerequisite), 3 failed(prerequisite)");

        // Two are too many.
        ledger.fail(&town, "1", "m3006");
        let before = ledger.lines(&town).len();
        let launch = town.launch(chain, target).await;
        let detail = town.ended(launch).await;
        assert_eq!((&detail["counts"]["completed"], &detail["counts"]["failed"]), (&json!(0), &json!(4)), "{detail}");
        let lines = ledger.lines(&town).split_off(before);
        assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:?}");
        for id in ["m3006", NATIVE] {
            let there = town.steps_on(launch, id).await;
            assert_eq!(there, "1 failed(returned_error), 2 failed(prerequisite), 3 failed(prerequisite)", "{id}");
        }
        for id in ["m3007", "m3008"] {
            let there = town.steps_on(launch, id).await;
            assert_eq!(there, "1 completed, 2 cancelled(budget), 3 cancelled(budget)", "{id}");
            for told in [&town.part(launch, id).await, &town.run(launch, 2, id).await] {
                let why = told["message"].as_str().unwrap_or_default();
                assert!(why.contains("too many runs of the step before have failed"), "{id}: {told}");
            }
        }
        let waited = town.server.cli(&["chain", "wait", &launch.to_string()]).await;
        assert!(!waited.status.success(), "{waited:?}");
    }
    town.nothing_is_left().await;
}

#[tokio::test]
async fn an_approval_waits_visibly_for_a_yes_of_somebody_with_the_right() {
    let Some((_turn, town)) = shared().await else { return };
    let grouped = town.server.cli(&["group", "create", "approval", "--target", "m*"]).await;
    assert!(grouped.status.success(), "{grouped:?}");
    let rita = town.person("rita", "reader").await;
    // He operates all machines but one.
    let sid = town.person("sid", "operator:approval").await;
    let olga = town.person("olga", "operator").await;
    let ledger = Ledger::new();
    let question = "Does the first half look well?";
    let steps = json!([ledger.step("1"), with(ledger.step("2"), "approval", question), ledger.step("3")]);
    let launch = town.launched("approval", &ALL, steps).await;
    for id in ALL {
        town.step_waits(launch, 2, id, "approval").await;
        let why = explained(&town, launch, id).await;
        assert!(why.contains(question) && why.contains(&format!("chain approve {launch} 2")), "{id}: {why}");
    }
    let status = said(&town, &["status", &launch.to_string()]).await;
    assert!(status.contains(question), "{status}");

    let path = format!("/api/v1/launches/{launch}/approve");
    let yes = || Request::post(&path, &json!({ "step": 2 }));
    for token in [&rita, &sid] {
        let refused = town.ask_as(token, yes()).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    let (status, told) = town.refused(&format!("/launches/{launch}/approve"), json!({ "step": 1 })).await;
    assert!((400..500).contains(&status) && told.contains("nobody's yes"), "{status} {told}");
    for id in ALL {
        assert_eq!(town.steps_on(launch, id).await, "1 completed, 2 queued, 3 queued", "{id}");
    }
    let lines = ledger.lines(&town);
    assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:?}");

    let granted = town.ask_as(&olga, yes()).await;
    assert_eq!(granted.status, 200, "{}", granted.text());
    let detail = town.completes(launch).await;
    assert_eq!(detail["steps"][1]["approved"]["by"], "olga", "{detail}");
    ["1", "2", "3"].iter().for_each(|step| ledger.assert_done_once(&town, step, &ALL));
    ledger.assert_all_before(&town, "1", "2");
}

#[tokio::test]
async fn who_answers_an_approval_with_no_cancels_and_what_was_done_is_told() {
    let Some((_turn, town)) = shared().await else { return };
    let ledger = Ledger::new();
    let steps = json!([ledger.step("1"), with(ledger.step("2"), "approval", "Go on?"), ledger.step("3")]);
    let launch = town.launched("approval, no", &ALL, steps).await;
    for id in ALL {
        town.step_waits(launch, 2, id, "approval").await;
    }
    town.post(&format!("/launches/{launch}/cancel"), json!(null)).await;
    let detail = town.ended(launch).await;
    assert_eq!((&detail["counts"]["cancelled"], &detail["cancelled"]["by"]), (&json!(4), &json!("ann")), "{detail}");
    for id in ALL {
        let there = town.steps_on(launch, id).await;
        assert_eq!(there, "1 completed, 2 cancelled(cancelled), 3 cancelled(cancelled)", "{id}");
        let why = town.run(launch, 2, id).await["message"].clone();
        assert_eq!(why, "cancelled by ann", "{id}");
    }
    // A yes comes too late.
    let (status, told) = town.refused(&format!("/launches/{launch}/approve"), json!({ "step": 2 })).await;
    assert!(status == 409 && told.contains("has ended"), "{status} {told}");
    town.nothing_is_left().await;
    let lines = ledger.lines(&town);
    assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:?}");
}

#[tokio::test]
async fn what_is_for_failures_runs_only_where_a_step_failed() {
    let Some((_turn, town)) = shared().await else { return };
    // Once as the minions decide it for themselves, once behind a barrier, where the server does.
    for barrier in ["each", "all"] {
        let ledger = Ledger::new();
        let repair = with(with(ledger.step("3"), "after", "failed"), "barrier", barrier);
        let always = with(ledger.step("4"), "after", "always");
        let steps = json!([ledger.step("1"), ledger.step("2"), repair, always, ledger.step("5")]);
        ledger.fail(&town, "1", "m3007");
        ledger.fail(&town, "2", NATIVE);
        let launch = town.launched(&format!("failures, {barrier}"), &ALL, steps).await;
        let detail = town.ended(launch).await;
        assert_eq!((&detail["counts"]["completed"], &detail["counts"]["failed"]), (&json!(2), &json!(2)), "{detail}");
        ledger.assert_done_once(&town, "3", &["m3007", NATIVE]);
        ledger.assert_done_once(&town, "4", &ALL);
        ledger.assert_done_once(&town, "5", &["m3006", "m3008"]);
        for (id, wanted) in [
            ("m3006", "1 completed, 2 completed, 3 cancelled(not_needed), 4 completed, 5 completed"),
            (
                "m3007",
                "1 failed(returned_error), 2 failed(prerequisite), 3 completed, 4 completed, 5 failed(prerequisite)",
            ),
            ("m3008", "1 completed, 2 completed, 3 cancelled(not_needed), 4 completed, 5 completed"),
            (NATIVE, "1 completed, 2 failed(returned_error), 3 completed, 4 completed, 5 failed(prerequisite)"),
        ] {
            assert_eq!(town.steps_on(launch, id).await, wanted, "barrier {barrier}, {id}");
        }
    }
    town.nothing_is_left().await;
}

#[tokio::test]
async fn where_a_gate_does_not_open_what_is_for_failures_runs_all_the_same() {
    let Some((_turn, town)) = shared().await else { return };
    let after = |step, word: &str| with(step, "after", word);
    let others = ["m3007", "m3008", NATIVE];

    // A budget holds the others back; here the step is skipped anyway.
    let ledger = Ledger::new();
    ledger.fail(&town, "1", "m3006");
    let (gated, repair, always) =
        (careful(ledger.step("2"), 0), after(ledger.step("3"), "failed"), after(ledger.step("4"), "always"));
    let steps = json!([ledger.step("1"), gated, repair.clone(), always.clone(), ledger.step("5")]);
    let launch = town.launched("budget and repair", &ALL, steps).await;
    town.ended(launch).await;
    let here = "1 failed(returned_error), 2 failed(prerequisite), 3 completed, 4 completed, 5 failed(prerequisite)";
    assert_eq!(town.steps_on(launch, "m3006").await, here);
    for id in others {
        let there = "1 completed, 2 cancelled(budget), 3 completed, 4 completed, 5 cancelled(budget)";
        assert_eq!(town.steps_on(launch, id).await, there, "{id}");
        assert_eq!(town.part(launch, id).await["outcome"], "failed", "{id}");
    }
    ["3", "4"].iter().for_each(|step| ledger.assert_done_once(&town, step, &ALL));

    // Nobody's yes is needed for what is skipped.
    let ledger = Ledger::new();
    ledger.fail(&town, "1", "m3006");
    let (gated, repair) = (with(ledger.step("2"), "approval", "Go on?"), after(ledger.step("3"), "failed"));
    let launch = town.launched("approval and repair", &ALL, json!([ledger.step("1"), gated, repair])).await;
    town.part_is(launch, "m3006", "ended").await;
    ledger.assert_done_once(&town, "3", &["m3006"]);
    for id in others {
        town.step_waits(launch, 2, id, "approval").await;
    }
    town.post(&format!("/launches/{launch}/approve"), json!({ "step": 2 })).await;
    town.ended(launch).await;
    ledger.assert_done_once(&town, "2", &others);
    ledger.assert_done_once(&town, "3", &["m3006"]);
    town.nothing_is_left().await;
}

#[tokio::test]
async fn rack_after_rack_is_taken_out_patched_rebooted_and_put_back_and_a_killed_server_goes_on() {
    let Some((_turn, mut town)) = shared().await else { return };
    let ledger = Ledger::new();
    let (first, second) = (["m3006", NATIVE], ["m3007", "m3008"]);
    for id in ALL {
        // An update of some package leaves the agent as it is.
        for (file, text) in [("update", "nothing"), ("version", "1"), ("newest", "1")] {
            town.machine(id).write(file, text);
        }
    }
    let patch = json!({ "type": "package_update", "params": { "packages": "bash", "refresh": false } });
    let steps = json!([
        on(&first, ledger.step("1")),
        on(&first, patch.clone()),
        on(&first, careful(reboot(), 0)),
        on(&first, ledger.step("4")),
        on(&second, with(careful(ledger.step("5"), 0), "approval", "Go on with the second rack?")),
        on(&second, patch),
        on(&second, careful(reboot(), 0)),
        on(&second, ledger.step("8")),
    ]);
    let patched = |town: &Town, id: &str| (town.machine(id).lines("packages").len(), town.machine(id).shutdowns());
    ledger.hold(&town, "1", "m3006");
    ledger.hold(&town, "4", NATIVE);
    let chain = town.chain("racks", steps).await;
    let launch = town.launch(chain, json!({})).await;

    // Nobody goes down while another one of the rack is still taken out.
    town.step_waits(launch, 3, NATIVE, "barrier").await;
    ledger.tells(&town, "1 begins m3006").await;
    assert_eq!((patched(&town, NATIVE), patched(&town, "m3006")), ((1, 0), (0, 0)));
    ledger.let_go(&town, "1", "m3006");
    for id in first {
        told_to_reboot(&town, launch, id).await;
        assert_eq!(patched(&town, id), (1, 1), "{id}");
    }
    assert_eq!(ledger.lines(&town).iter().filter(|line| !line.starts_with("1 ")).count(), 0);
    for id in first {
        town.machine_mut(id).reboot();
    }

    // One is back where it belongs, the other is not: the second rack is not touched. Its yes is given already.
    ledger.tells(&town, &format!("4 begins {NATIVE}")).await;
    town.part_is(launch, "m3006", "ended").await;
    let approved = said(&town, &["approve", &launch.to_string(), "5"]).await;
    assert!(approved.contains("step 5 is approved"), "{approved}");
    for id in second {
        town.step_waits(launch, 5, id, "barrier").await;
        let why = explained(&town, launch, id).await;
        assert!(why.contains("has not ended on 1 of 2 minions"), "{id}: {why}");
    }
    // What is over there is forgotten there: a kill may cost the word for it.
    let over = town.machine("m3006");
    wait::until("the first machine to keep nothing", PATIENCE, async || over.is_clear()).await;
    town.server.kill9();
    ledger.let_go(&town, "4", NATIVE);
    ledger.tells(&town, &format!("4 ends {NATIVE}")).await;
    for id in second {
        assert_eq!(patched(&town, id), (0, 0), "{id}");
    }
    assert!(ledger.lines(&town).iter().all(|line| line.starts_with("1 ") || line.starts_with("4 ")));
    town.server.launch().await;

    for id in second {
        told_to_reboot(&town, launch, id).await;
        assert_eq!(patched(&town, id), (1, 1), "{id}");
    }
    assert!(!ledger.lines(&town).iter().any(|line| line.starts_with("8 ")));
    for id in second {
        town.machine_mut(id).reboot();
    }
    town.completes(launch).await;
    for (step, rack) in [("1", first), ("4", first), ("5", second), ("8", second)] {
        ledger.assert_done_once(&town, step, &rack);
    }
    for (step, next) in [("1", "4"), ("4", "5"), ("5", "8")] {
        ledger.assert_all_before(&town, step, next);
    }
    for id in ALL {
        assert_eq!(patched(&town, id), (1, 1), "{id} is patched once and goes down once");
    }
    town.nothing_is_left().await;
}
