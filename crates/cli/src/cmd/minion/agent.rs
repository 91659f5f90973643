//! `saltern minion` without a verb: the agent itself.

use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::signals::Signals;
use saltern_core::value::{Map, Value};
use saltern_minion::{Config, Minion};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// The configuration file that is read if it is there and no other is given.
const DEFAULT_CONFIG: &str = "/etc/saltern/minion";

/// The agent's options.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Agent {
    /// The master, as HOST or HOST:PORT of its request port; several are tried in order
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Agent options")]
    master: Vec<String>,

    /// This minion's id; the host's name unless told
    #[arg(long, value_name = "ID", help_heading = "Agent options")]
    id: Option<String>,

    /// A configuration file with Salt's own key names; /etc/saltern/minion if it is there
    #[arg(short, long, value_name = "FILE", help_heading = "Agent options")]
    config: Option<PathBuf>,

    /// Port of publications, if not the one the master tells
    #[arg(long, value_name = "PORT", help_heading = "Agent options")]
    publish_port: Option<u16>,

    /// What to log
    #[arg(long, value_name = "LEVEL", default_value = "info", help_heading = "Agent options")]
    log_level: String,
}

impl Agent {
    /// The configuration: the file, with the flags over it.
    pub(crate) fn config(&self, data_dir: Option<&Path>) -> Result<Config, Failure> {
        let mut flags = Map::new();
        match self.master.as_slice() {
            [] => {}
            [one] => drop(flags.insert("master", one)),
            many => drop(flags.insert("master", Value::list(many))),
        }
        if let Some(id) = &self.id {
            flags.insert("id", id);
        }
        if let Some(port) = self.publish_port {
            flags.insert("publish_port", port);
        }
        if let Some(dir) = data_dir {
            let dir = std::path::absolute(dir).map_err(|error| Failure::usage(format!("--data-dir: {error}")))?;
            flags.insert("data_dir", dir.to_str().ok_or_else(|| Failure::usage("--data-dir: the path is not UTF-8"))?);
        }
        let file = self.config.clone().or_else(|| Some(PathBuf::from(DEFAULT_CONFIG)).filter(|path| path.exists()));
        Config::load(file.as_deref(), flags).map_err(|error| Failure::new(error.to_string()))
    }
}

/// Runs the agent until a signal.
pub(crate) async fn run(agent: Agent, data_dir: Option<PathBuf>) -> Result<ExitCode, Failure> {
    let config = agent.config(data_dir.as_deref())?;
    logging::start(&agent.log_level, LogFormat::Text)?;
    let mut signals = Signals::listen()?;
    let minion = Minion::new(config).map_err(|error| Failure::new(error.to_string()))?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        signals.first().await;
        signals.exit_on_next();
        stopping.cancel();
    });
    minion.run(stop).await.map_err(|error| Failure::new(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
