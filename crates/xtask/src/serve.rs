//! `make run`: the server on a data folder inside the checkout.

use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, Result, ensure};
use saltern_testkit::installed::{Line, Salt};

use crate::plan::cargo;

/// Builds the server, says how to use it, and becomes it: Ctrl-C goes to the server itself.
pub(crate) fn run() -> Result<()> {
    let built = cargo(&["build", "--package", "saltern"]).status().context("cannot run cargo")?;
    ensure!(built.success(), "the build failed");
    println!("{}", note());
    let serve = ["serve", "--data-dir", ".data", "--listen", "127.0.0.1", "--auto-accept"];
    let mut command = cargo(&["run", "--quiet", "--package", "saltern", "--"]);
    Err(command.args(serve).exec()).context("cannot start the server")
}

fn note() -> String {
    let minion = Salt::installed(Line::L3008).map_or("salt-minion".to_owned(), |salt| {
        // `make setup` has installed one.
        salt.program("salt-minion").display().to_string()
    });
    format!(
        "
The server listens on 127.0.0.1 only (ports 4505 and 4506), accepts every key, and keeps its data in .data/.
Ctrl-C stops it. From another terminal in this folder, a minion:

    mkdir -p /tmp/try && printf 'master: 127.0.0.1\\nid: try\\nroot_dir: /tmp/try\\n' > /tmp/try/minion
    {minion} --config-dir /tmp/try

and a job for it:

    SALTERN_DATA_DIR=.data target/debug/saltern run '*' test.ping
"
    )
}
