//! Python as an oracle: a script of the test's own asks libraries that do what ours does.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::installed::Oracles;
use crate::process::run_to_end;
use crate::scratch::Scratch;
use crate::tier;

/// How long one script may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs a script with the oracles' Python on a question and gives what it printed, or nothing where the oracles are not
/// installed; see [`tier`]. The script finds the question in the file its first argument names.
pub fn ask(script: &Path, question: &str) -> Option<String> {
    if tier::is_fast() {
        return None;
    }
    let Some(oracles) = Oracles::installed() else {
        tier::skip("the oracles", "`make setup` installs them");
        return None;
    };
    let scratch = Scratch::new("orc");
    let question = scratch.write("question", question);
    let mut command = Command::new(oracles.python());
    // Without TZPATH zoneinfo reads the zones of this machine, which are of any age; the pinned package is wanted.
    command.arg("-B").arg(script).arg(question).env("PYTHONTZPATH", "").current_dir(scratch.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let output = match runtime {
        Ok(runtime) => runtime.block_on(run_to_end(command, PATIENCE)),
        Err(error) => panic!("cannot make a runtime: {error}"),
    };
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
    Some(answer)
}
