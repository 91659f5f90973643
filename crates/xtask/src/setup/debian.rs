//! Packages of the distribution: PostgreSQL's server, and what Python needs to make environments.

use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use saltern_testkit::installed;

/// Installs the packages that are missing; Python's only where Salt is still to be installed.
pub(crate) fn install_missing(salt_is_missing: bool) -> Result<()> {
    let mut packages = Vec::new();
    if installed::postgres_programs().is_none() {
        packages.push("postgresql");
    }
    if salt_is_missing {
        packages.extend(missing_python_packages());
    }
    if packages.is_empty() {
        return Ok(());
    }
    apt_install(&packages)?;
    ensure!(installed::postgres_programs().is_some(), "PostgreSQL was installed, but no `initdb` was found afterwards");
    Ok(())
}

fn missing_python_packages() -> Vec<&'static str> {
    let python_says_yes = |question: &str| {
        let mut python = Command::new("python3");
        python.args(["-c", question]).stdout(Stdio::null()).stderr(Stdio::null());
        python.status().is_ok_and(|status| status.success())
    };
    let mut packages = Vec::new();
    if !python_says_yes("") {
        packages.push("python3");
    }
    // Debian splits `ensurepip` off: without it an environment has no pip.
    if !python_says_yes("import venv, ensurepip") {
        packages.push("python3-venv");
    }
    // One of Salt 3008's requirements (timelib) is published as C source only.
    let header = "import os, sysconfig as s; assert os.path.exists(os.path.join(s.get_path('include'), 'Python.h'))";
    if !python_says_yes(header) {
        packages.push("python3-dev");
    }
    packages
}

fn apt_install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let by_hand = format!("on Debian this command installs them: sudo apt-get install {list}");
    let Some(prefix) = become_root() else {
        bail!("packages are missing, and this user may not install any; {by_hand}")
    };
    let apt = |arguments: &[&str]| -> Result<bool> {
        let mut words = prefix.clone();
        words.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]);
        words.extend(arguments);
        println!("{}", words.join(" "));
        let status = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).status();
        Ok(status.with_context(|| format!("cannot run {}", words[0]))?.success())
    };
    let mut install = vec!["install", "--no-install-recommends"];
    install.extend(packages);
    // The package lists of a fresh machine are empty, and stale ones name files that are gone; only then they are fetched.
    if !apt(&install)? {
        ensure!(apt(&["update"])?, "the package lists could not be fetched; {by_hand}");
        ensure!(apt(&install)?, "packages could not be installed; {by_hand}");
    }
    Ok(())
}

/// The words before a command that needs root: none for root, `sudo` where it does not have to ask.
fn become_root() -> Option<Vec<&'static str>> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if is_root {
        return Some(Vec::new());
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    sudo.status().is_ok_and(|status| status.success()).then(|| vec!["sudo", "-n"])
}
