//! `saltern call`: one function on this machine, without a master.

use super::minion::agent::Agent;
use crate::args::{Format, Out};
use crate::failure::Failure;
use crate::output::style::Style;
use crate::{arguments, output};
use saltern_core::value::Value;
use saltern_wire::load::kwargs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Call a function on this machine, without a master
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The function, as MODULE.FUNCTION
    function: String,

    /// Its arguments, as VALUE or NAME=VALUE
    #[arg(allow_hyphen_values = true)]
    words: Vec<String>,

    #[command(flatten)]
    out: Out,

    #[command(flatten)]
    agent: Agent,
}

const EXAMPLES: &str = "\
Examples:
  saltern call test.ping
  saltern call grains.item os osrelease
  saltern call sys.doc cmd.run
  saltern call cmd.run 'uname -a' --out json";

pub(crate) async fn run(args: Args, data_dir: Option<PathBuf>) -> Result<ExitCode, Failure> {
    let config = args.agent.config(data_dir.as_deref())?;
    let arguments::Arguments { args: mut values, kwargs: named } = arguments::read(&args.words);
    if !named.is_empty() {
        values.push(kwargs(named));
    }
    let outcome = saltern_minion::call(&config, &args.function, &values).await;
    let failed = outcome.retcode != 0;
    let local = Value::map([("local", outcome.value.clone())]);
    match args.out.format {
        Format::Text => output::line(&output::nested::answer("local", &outcome.value, failed, Style::of_stdout()))?,
        Format::Json => output::line(&output::json(&local)?)?,
        Format::Yaml => output::line(&output::yaml(&local)?)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
