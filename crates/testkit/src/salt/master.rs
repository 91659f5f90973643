//! A stock `salt-master` process: the oracle for tests and the other side of the benchmark.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use crate::daemon::Daemon;
use crate::installed::Salt;
use crate::ports::{self, MasterPorts};
use crate::process::run_to_end;
use crate::scratch::Scratch;
use crate::wait;

/// An unmodified `salt-master` on loopback that accepts every key; killed with all its workers on drop.
#[derive(Debug)]
pub struct StockMaster {
    daemon: Daemon,
    salt: Salt,
    ports: MasterPorts,
    scratch: Scratch,
}

impl StockMaster {
    /// Starts a master and waits until it takes connections on both ports.
    ///
    /// `more` is added to its configuration file as it is.
    pub async fn start(salt: &Salt, more: &str) -> StockMaster {
        let scratch = Scratch::new("mas");
        let root = scratch.path().display();
        let ports = ports::pair();
        let MasterPorts { publish_port, return_port } = ports;
        let config = format!(
            "interface: 127.0.0.1\n\
             publish_port: {publish_port}\n\
             ret_port: {return_port}\n\
             auto_accept: True\n\
             root_dir: {root}\n\
             conf_file: {root}/etc/master\n\
             pki_dir: {root}/pki\n\
             cachedir: {root}/cache\n\
             sock_dir: {root}/sock\n\
             pidfile: {root}/master.pid\n\
             log_file: {root}/master.log\n\
             token_dir: {root}/cache/tokens\n\
             file_roots:\n  base:\n    - {root}/srv/salt\n\
             pillar_roots:\n  base:\n    - {root}/srv/pillar\n\
             {more}\n"
        );
        scratch.write("etc/master", config);
        let mut command = Command::new(salt.program("salt-master"));
        command.arg("--config-dir").arg(scratch.path().join("etc")).current_dir(scratch.path());
        let (output, log) = (scratch.path().join("console.log"), scratch.path().join("master.log"));
        let daemon = Daemon::spawn(&format!("master ({})", salt.version), &mut command, &output, &[&log]);

        let master = StockMaster { daemon, salt: salt.clone(), ports, scratch };
        for port in [publish_port, return_port] {
            let what = format!("the stock master to listen on port {port}");
            wait::until(&what, Duration::from_secs(90), || {
                std::future::ready(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
            })
            .await;
        }
        master
    }

    /// The ports it listens on.
    pub fn ports(&self) -> MasterPorts {
        self.ports
    }

    /// The process id of its main process, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// The folder that holds everything it reads and writes: `srv/salt`, `srv/pillar`, `pki/`, `cache/`.
    pub fn root(&self) -> &Path {
        self.scratch.path()
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Runs one of its command line programs (`salt`, `salt-key`, `salt-run`) and waits for its end.
    pub async fn cli(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.salt.program(program));
        command.arg("--config-dir").arg(self.root().join("etc")).args(arguments);
        run_to_end(command, Duration::from_secs(120)).await
    }
}
