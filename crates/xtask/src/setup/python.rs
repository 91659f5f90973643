//! Python environments: one folder per thing that is installed, made anew or not at all.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

/// Makes a new environment and installs the requirements into it; what pip says is in `<root>.log`.
pub(crate) fn create(root: &Path, requirements: &[&str]) -> Result<()> {
    let start = Instant::now();
    let shown = requirements.join(" ");
    println!("{shown}: installing into {}", root.display());
    let log_path = PathBuf::from(format!("{}.log", root.display()));
    let log = File::create(&log_path).with_context(|| format!("cannot write {}", log_path.display()))?;
    let run = |command: &mut Command| -> Result<()> {
        let status = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?).status();
        let status = status.with_context(|| format!("cannot run {command:?}"))?;
        if !status.success() {
            bail!("{} failed, {}", log_path.display(), last_line(&log_path));
        }
        Ok(())
    };
    // `--clear`: what an interrupted installation left behind is not built upon.
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(root))?;
    let mut pip = Command::new(root.join("bin/python"));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--retries", "5"]).args(requirements);
    run(&mut pip)?;
    println!("{shown}: installed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("and said nothing").to_owned()
}
