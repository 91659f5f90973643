//! The two masters behind one face: start, publish, kill, start again.

use anyhow::{Context as _, Result, bail};
use saltern_api::client::{Client, Endpoint};
use saltern_api::shape::{Accepted, Functions, RunRequest};
use saltern_core::action::Policy;
use saltern_core::value::Value;
use saltern_testkit::daemon::Daemon;
use saltern_testkit::installed::{Line, Salt};
use saltern_testkit::process::Saltern;
use saltern_testkit::salt::StockMaster;
use saltern_testkit::wait;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex;

/// Which master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Stock,
    Saltern,
}

/// A running master.
pub(crate) enum Contender {
    Stock(Box<Stock>),
    Saltern(Box<Saltern>),
}

/// A stock master, and the process that publishes through Salt's own client: starting one per job would measure Python.
pub(crate) struct Stock {
    publisher: Mutex<Publisher>,
    /// The second start, after the first was killed
    again: Option<Daemon>,
    master: StockMaster,
    salt: Salt,
}

struct Publisher {
    _child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

const PUBLISH: &str = "\
import sys, salt.client
client = salt.client.LocalClient(c_path=sys.argv[1])
print('ready', flush=True)
for line in sys.stdin:
    try:
        print(client.cmd_async(line.strip(), 'test.ping') or 0, flush=True)
    except Exception as error:
        print(0, flush=True)
";

impl Contender {
    /// Starts a master with default settings that accepts every key.
    pub(crate) async fn start(which: Which) -> Result<Self> {
        match which {
            Which::Saltern => Ok(Self::Saltern(Box::new(Saltern::start("", &["--auto-accept"]).await))),
            Which::Stock => {
                let salt = Salt::installed(Line::L3008).context("Salt 3008 is not installed: `make setup` does it")?;
                let master = StockMaster::start(&salt, "").await;
                let publisher = Mutex::new(Publisher::start(&salt, &master).await?);
                Ok(Self::Stock(Box::new(Stock { publisher, again: None, master, salt })))
            }
        }
    }

    pub(crate) fn ret_port(&self) -> u16 {
        match self {
            Self::Stock(stock) => stock.master.ports().return_port,
            Self::Saltern(server) => server.ports().return_port,
        }
    }

    /// The process group that is the master.
    pub(crate) fn group(&self) -> u32 {
        match self {
            Self::Stock(stock) => stock.again.as_ref().map_or(stock.master.pid(), Daemon::pid),
            Self::Saltern(server) => server.pid().unwrap_or(0),
        }
    }

    /// Publishes `test.ping` and gives the job's id, once the master has accepted it.
    pub(crate) async fn publish(&self, target: &str) -> Result<String> {
        match self {
            Self::Stock(stock) => stock.publisher.lock().await.publish(target).await,
            Self::Saltern(server) => ping(server, target).await?.jid.context("a job that is due has an id"),
        }
    }

    /// Kills every process of the master at once, and starts it again on the same data and ports.
    pub(crate) async fn kill_and_restart(&mut self) -> Result<()> {
        match self {
            Self::Saltern(server) => {
                server.kill9();
                server.launch().await;
            }
            Self::Stock(stock) => {
                let group = i32::try_from(stock.master.pid()).ok().and_then(rustix::process::Pid::from_raw);
                let group = group.context("the stock master has no process id")?;
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL)?;
                let gone = || !saltern_testkit::daemon::is_group_alive(stock.master.pid());
                wait::until("the stock master to be gone", Duration::from_secs(20), || std::future::ready(gone()))
                    .await;
                let root = stock.master.root();
                let mut command = Command::new(stock.salt.program("salt-master"));
                command.arg("--config-dir").arg(root.join("etc")).current_dir(root);
                let (output, log) = (root.join("console.log"), root.join("master.log"));
                stock.again = Some(Daemon::spawn("the stock master, again", &mut command, &output, &[&log]));
                let port = stock.master.ports().return_port;
                wait::until("the stock master to listen again", Duration::from_secs(90), || {
                    std::future::ready(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
                })
                .await;
            }
        }
        Ok(())
    }
}

/// Asks this server for `test.ping`, as everybody does: through its API.
pub(crate) async fn ping(server: &Saltern, target: &str) -> Result<Accepted> {
    let client = Client::new(Endpoint::Control(server.data_dir().join(saltern_api::control::FILE_NAME)));
    let request = RunRequest {
        target: target.into(),
        tgt_type: "glob".into(),
        delimiter: None,
        fun: Functions::One("test.ping".into()),
        arg: Vec::new(),
        kwarg: Value::Nil,
        ack: None,
        policy: Policy::default(),
        due: None,
        deadline: None,
        metadata: Value::Nil,
        ret: String::new(),
        in_window: false,
    };
    Ok(client.run(&request).await?)
}

impl Publisher {
    async fn start(salt: &Salt, master: &StockMaster) -> Result<Self> {
        let mut command = tokio::process::Command::new(salt.program("python"));
        command.args(["-W", "ignore", "-c", PUBLISH]).arg(master.root().join("etc/master"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start Salt's client")?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else { bail!("Salt's client has no pipes") };
        let mut publisher = Self { _child: child, stdin, stdout: BufReader::new(stdout).lines() };
        publisher.stdout.next_line().await?.context("Salt's client has ended")?;
        Ok(publisher)
    }

    async fn publish(&mut self, target: &str) -> Result<String> {
        self.stdin.write_all(format!("{target}\n").as_bytes()).await?;
        let jid = self.stdout.next_line().await?.context("Salt's client has ended")?;
        if jid == "0" {
            bail!("the stock master did not take the job");
        }
        Ok(jid)
    }
}
