//! What can be checked while no server runs: the configuration, the data directory, the ports.

use super::{Finding, remote};
use crate::cmd::serve::ConfigFile;
use rustix::fs::{Access, access};
use saltern_server::config::Config;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

pub(super) fn check(file: &ConfigFile, data_dir: Option<&Path>) -> Vec<Finding> {
    let config = match file.load(data_dir, Vec::new()) {
        Ok(config) => config,
        Err(failure) => return vec![Finding::fail("configuration", failure.to_string(), "correct it and try again")],
    };
    let mut findings = vec![configuration(&config), data(&config.data_dir)];
    if let Some(dir) = config.data_dir.ancestors().find(|dir| dir.exists()) {
        findings.push(remote::disk(dir));
    }
    findings.push(port(&config, "publish port", config.publish_port));
    findings.push(port(&config, "return port", config.ret_port));
    findings
}

fn configuration(config: &Config) -> Finding {
    if config.ignored.is_empty() {
        return Finding::ok("configuration", "can be read");
    }
    let seen = format!("can be read; ignored: {}", config.ignored.join(", "));
    Finding::warn("configuration", seen, "these are Salt's and mean nothing here")
}

fn data(dir: &Path) -> Finding {
    let shown = dir.display();
    let (place, seen) = if dir.exists() {
        (Some(dir), format!("{shown} can be written to"))
    } else {
        (dir.ancestors().skip(1).find(|place| place.exists()), format!("{shown} will be made at the first start"))
    };
    match place.map(|place| (place, access(place, Access::WRITE_OK | Access::EXEC_OK))) {
        Some((place, Ok(()))) if place.is_dir() => Finding::ok("data", seen),
        Some((place, Ok(()))) => {
            Finding::fail("data", format!("{} is not a directory", place.display()), "set data_dir")
        }
        Some((place, Err(error))) => {
            let seen = format!("cannot write to {}: {error}", place.display());
            Finding::fail("data", seen, "use the account the server is to run as, or set data_dir")
        }
        None => Finding::fail("data", format!("{shown} cannot be made"), "set data_dir"),
    }
}

fn port(config: &Config, what: &'static str, port: u16) -> Finding {
    let address = SocketAddr::new(config.interface, port);
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(what, format!("{address} is free")),
        Err(error) => {
            Finding::fail(what, format!("cannot listen on {address}: {error}"), "stop what uses it, or take another")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_data_directory_that_is_not_there_yet_is_fine_where_it_can_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let finding = data(&dir.path().join("a/b"));
        assert_eq!(finding.level, Level::Ok, "{finding:?}");
        assert!(finding.seen.contains("will be made"), "{finding:?}");
    }

    #[test]
    fn a_file_is_no_data_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(data(&file.path().join("x")).level, Level::Fail);
    }
}
