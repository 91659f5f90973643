//! Packages of the distribution: PostgreSQL's server, what Python needs to make environments, and OpenLDAP's server.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use saltern_testkit::installed::{self, Slapd};

/// Installs the packages that are missing; Python's only where something is still to be installed with it.
pub(crate) fn install_missing(python_is_needed: bool) -> Result<()> {
    let mut packages = Vec::new();
    if installed::postgres_programs().is_none() {
        packages.push("postgresql");
    }
    if python_is_needed {
        packages.extend(missing_python_packages());
    }
    if !packages.is_empty() {
        apt_install(&packages)?;
        let found = installed::postgres_programs().is_some();
        ensure!(found, "PostgreSQL was installed, but no `initdb` was found afterwards");
    }
    if Slapd::installed().is_none() {
        unpack_slapd(&installed::cache_dir())?;
        ensure!(Slapd::installed().is_some(), "OpenLDAP's server was unpacked, but no `slapd` was found afterwards");
    }
    Ok(())
}

/// Unpacks OpenLDAP's server into the cache. Installed, it would be started as a service of this machine and make itself
/// a directory there; the tests want the program and nothing else. It needs no root, either.
fn unpack_slapd(cache: &Path) -> Result<()> {
    let by_hand = "on Debian this command installs it: sudo apt-get install slapd";
    let wanted = match packages_for_slapd()? {
        Some(wanted) => wanted,
        None => {
            update_lists(by_hand)?;
            packages_for_slapd()?.with_context(|| format!("no package `slapd` is known; {by_hand}"))?
        }
    };
    let (parts, place) = (cache.join("slapd.part"), installed::slapd_dir(cache));
    for left_over in [&parts, &place].into_iter().filter(|folder| folder.exists()) {
        std::fs::remove_dir_all(left_over).with_context(|| format!("cannot remove {}", left_over.display()))?;
    }
    let root = parts.join("root");
    std::fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let run = |command: &mut Command| -> Result<()> {
        println!("{command:?}");
        let status = command.current_dir(&parts).stdin(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot run {command:?}"))?;
        ensure!(status.success(), "{command:?} failed; {by_hand}");
        Ok(())
    };
    let download = |wanted: &[String]| run(Command::new("apt-get").args(["-q", "download"]).args(wanted));
    if download(&wanted).is_err() {
        update_lists(by_hand)?;
        download(&wanted)?;
    }
    for entry in std::fs::read_dir(&parts)?.flatten().filter(|entry| entry.path() != root) {
        run(Command::new("dpkg").arg("-x").arg(entry.path()).arg(&root))?;
    }
    std::fs::rename(&root, &place).context("cannot move the unpacked slapd into place")?;
    std::fs::remove_dir_all(&parts).context("cannot remove the downloaded packages")
}

/// `slapd` and what it depends on that this machine lacks; nothing where the package lists do not know it.
fn packages_for_slapd() -> Result<Option<Vec<String>>> {
    let mut simulation = Command::new("apt-get");
    simulation.args(["-q", "install", "--simulate", "--no-install-recommends", "slapd"]).env("LC_ALL", "C");
    let output = simulation.stdin(Stdio::null()).output().context("cannot run apt-get")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success().then(|| to_be_installed(&text)))
}

/// The packages that a simulated installation names in its lines `Inst NAME (…`.
fn to_be_installed(simulation: &str) -> Vec<String> {
    let lines = simulation.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
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
    let mut install = vec!["install", "--no-install-recommends"];
    install.extend(packages);
    // The package lists of a fresh machine are empty, and stale ones name files that are gone; only then they are fetched.
    if !apt(&install, &by_hand)? {
        update_lists(&by_hand)?;
        ensure!(apt(&install, &by_hand)?, "packages could not be installed; {by_hand}");
    }
    Ok(())
}

fn update_lists(by_hand: &str) -> Result<()> {
    ensure!(apt(&["update"], by_hand)?, "the package lists could not be fetched; {by_hand}");
    Ok(())
}

/// Runs apt-get as root, and says whether it succeeded.
fn apt(arguments: &[&str], by_hand: &str) -> Result<bool> {
    let Some(mut words) = become_root() else {
        bail!("packages are missing, and this user may not install any; {by_hand}")
    };
    words.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]);
    words.extend(arguments);
    println!("{}", words.join(" "));
    let status = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).status();
    Ok(status.with_context(|| format!("cannot run {}", words[0]))?.success())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_installation_names_what_is_missing() {
        let text = "Reading package lists...\nInst libltdl7 (2.4.7 Debian:12 [amd64])\n\
                    Inst slapd (2.5.13 Debian:12 [amd64])\nConf slapd (2.5.13 Debian:12 [amd64])\n";
        assert_eq!(to_be_installed(text), ["libltdl7", "slapd"]);
    }
}
