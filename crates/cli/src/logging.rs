//! The server's log: on stderr, as text for people or as JSON for collectors.

use crate::failure::Failure;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// How to log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text each
    #[default]
    Text,
    /// A JSON object each
    Json,
}

/// Starts logging.
pub(crate) fn start(level: &str, format: LogFormat) -> Result<(), Failure> {
    let filter = EnvFilter::builder().parse(level);
    let filter = filter.map_err(|error| Failure::usage(format!("--log-level {level:?}: {error}")))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::new(format!("cannot start logging: {error}")))
}
