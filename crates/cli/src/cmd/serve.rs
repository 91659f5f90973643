//! `saltern serve`: the server. Reads the configuration, brings it up, offers it on the control socket and over HTTP, takes
//! it down.

use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::output;
use crate::signals::Signals;
use saltern_api::Front;
use saltern_api::control::{self, ControlSocket};
use saltern_core::value::Value;
use saltern_server::Server;
use saltern_server::app::App;
use saltern_server::config::{Config, Sources};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The configuration file that is read if it is there and no other is given.
pub(crate) const DEFAULT_CONFIG: &str = "/etc/saltern/master";

/// How long answers in hand may take when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

/// Run the server
///
/// Salt minions connect to it as they are. Settings come from a YAML file with Salt's own key names, from variables
/// SALTERN_<KEY> over it, and from flags over both. SIGTERM or Ctrl-C stops it in order, a second one at once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigFile,

    /// Address that both ports listen on [env: SALTERN_INTERFACE]
    #[arg(long, value_name = "IP")]
    listen: Option<IpAddr>,

    /// Port that minions subscribe to; 4505 unless told [env: SALTERN_PUBLISH_PORT]
    #[arg(long, value_name = "PORT")]
    publish_port: Option<u16>,

    /// Port that minions send requests to; 4506 unless told [env: SALTERN_RET_PORT]
    #[arg(long, value_name = "PORT")]
    return_port: Option<u16>,

    /// Address and port of the HTTP API, or `off`; 127.0.0.1:8000 unless told [env: SALTERN_HTTP]
    #[arg(long, value_name = "IP:PORT")]
    http: Option<String>,

    /// A SQLite file or postgres://USER:PASSWORD@HOST/NAME; a file in the data directory unless told [env:
    /// SALTERN_DATABASE]
    #[arg(long, value_name = "URL")]
    database: Option<String>,

    /// Accept every new key at once; for trials [env: SALTERN_AUTO_ACCEPT]
    #[arg(long)]
    auto_accept: bool,

    /// Start, and stop again: to see whether it would run
    #[arg(long)]
    check: bool,

    /// What to log: error, warn, info, debug, trace, or a filter such as saltern_server=debug
    #[arg(long, value_name = "LEVEL", env = "SALTERN_LOG_LEVEL", default_value = "info")]
    log_level: String,

    /// How to log, on stderr
    #[arg(long, value_name = "FORMAT", env = "SALTERN_LOG_FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
}

const EXAMPLES: &str = "\
Examples:
  saltern serve                                   as /etc/saltern/master says, data in /var/lib/saltern
  saltern serve -c /etc/salt/master               with the configuration of a salt-master
  saltern serve --data-dir ./data --auto-accept   to try things
  SALTERN_DATABASE=postgres://saltern@db/saltern saltern serve";

/// The option for the configuration file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConfigFile {
    /// The configuration file; /etc/saltern/master if it is there
    #[arg(short, long, value_name = "FILE", env = "SALTERN_CONFIG")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// The file to read, if any.
    fn find(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| Some(PathBuf::from(DEFAULT_CONFIG)).filter(|path| path.exists()))
    }

    /// The configuration, with the data directory and other flags over it.
    pub(crate) fn load(&self, data_dir: Option<&Path>, mut flags: Vec<(String, Value)>) -> Result<Config, Failure> {
        if let Some(dir) = data_dir {
            let dir = std::path::absolute(dir).map_err(|error| Failure::usage(format!("--data-dir: {error}")))?;
            let dir = dir.to_str().ok_or_else(|| Failure::usage("--data-dir: the path is not UTF-8"))?;
            flags.push(("data_dir".into(), dir.into()));
        }
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let sources = Sources { file: self.find(), environment: environment.collect(), overrides: flags };
        Config::load(sources).map_err(|error| Failure::new(error.to_string()))
    }
}

impl Args {
    /// The flags, under the names of the keys they set.
    fn overrides(&self) -> Vec<(String, Value)> {
        let given = [
            ("interface", self.listen.map(|ip| Value::from(ip.to_string()))),
            ("publish_port", self.publish_port.map(Value::from)),
            ("ret_port", self.return_port.map(Value::from)),
            ("http", self.http.as_ref().map(Value::from)),
            ("database", self.database.as_ref().map(Value::from)),
            ("auto_accept", self.auto_accept.then_some(Value::Bool(true))),
        ];
        given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

pub(crate) fn run(args: Args, data_dir: Option<PathBuf>) -> Result<ExitCode, Failure> {
    let config = args.config.load(data_dir.as_deref(), args.overrides())?;
    logging::start(&args.log_level, args.log_format)?;
    raise_open_files_limit();
    runtime()?.block_on(serve(config, args.check))
}

/// The runtime of a server: all cores.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))
}

async fn serve(config: Config, check: bool) -> Result<ExitCode, Failure> {
    let (data_dir, ignored) = (config.data_dir.clone(), config.ignored.clone());
    let serving = Serving::start(config).await?;
    if check {
        serving.stop().await;
        output::line("saltern would run: configuration, data directory, database and ports are in order")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !ignored.is_empty() {
        tracing::warn!(settings = ignored.join(", "), "settings of Salt that mean nothing here are ignored");
    }
    // Nobody need be there to read it.
    let _ = output::line(&ready_line(&serving, &data_dir));
    serving.until_signal().await
}

/// A server that serves, with its control socket and HTTP.
pub(super) struct Serving {
    server: Server,
    signals: Signals,
    api: tokio::task::JoinHandle<Result<(), control::ControlError>>,
    http: tokio::task::JoinHandle<()>,
    /// Where HTTP is; nothing if it is off
    pub(super) url: Option<String>,
    stop: CancellationToken,
    pub(super) publish_address: SocketAddr,
    pub(super) return_address: SocketAddr,
}

impl Serving {
    /// Brings it up; when this returns it serves.
    pub(super) async fn start(config: Config) -> Result<Self, Failure> {
        // Before anything is up: a signal that comes while it starts must not leave things half done.
        let signals = Signals::listen()?;
        let socket = config.data_dir.join(control::FILE_NAME);
        let server = saltern_server::serve(config).await.map_err(|error| Failure::new(error.to_string()))?;
        let control = match ControlSocket::bind(&socket).await {
            Ok(control) => control,
            Err(error) => {
                server.stop().await;
                return Err(Failure::new(error.to_string()));
            }
        };
        let front = match Front::bind(&server.app()) {
            Ok(front) => front,
            Err(error) => {
                server.stop().await;
                return Err(Failure::new(error.to_string()));
            }
        };
        let stop = CancellationToken::new();
        let api = tokio::spawn(control.serve(server.app(), stop.clone()));
        let url = front.as_ref().map(Front::url);
        let http = tokio::spawn({
            let (app, stop) = (server.app(), stop.clone());
            async move {
                match front {
                    Some(front) => front.serve(app, stop).await,
                    None => stop.cancelled().await,
                }
            }
        });
        let (publish_address, return_address) = (server.publish_address, server.return_address);
        Ok(Self { server, signals, api, http, url, stop, publish_address, return_address })
    }

    pub(super) fn app(&self) -> App {
        self.server.app()
    }

    /// Serves until a signal, or until something it cannot do without is gone; then stops in order.
    pub(super) async fn until_signal(self) -> Result<ExitCode, Failure> {
        let Self { server, mut signals, mut api, mut http, stop, .. } = self;
        let mut api_failed = None;
        let stopped = async {
            tokio::select! {
                () = signals.first() => {
                    tracing::info!("stopping; a second signal stops at once");
                    signals.exit_on_next();
                    stop.cancel();
                    // Whoever does not read its answer does not keep the server from stopping.
                    let drained = async { tokio::join!(&mut api, &mut http) };
                    let _ = tokio::time::timeout(DRAIN, drained).await;
                }
                ended = &mut api => {
                    let why = match ended {
                        Ok(Ok(())) => "it ended".to_owned(),
                        Ok(Err(error)) => error.to_string(),
                        Err(error) => error.to_string(),
                    };
                    api_failed = Some(Failure::new(format!("the control socket is gone: {why}")));
                }
                ended = &mut http => {
                    let why = ended.map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
                    api_failed = Some(Failure::new(format!("HTTP is gone: {why}")));
                }
            }
        };
        let outcome = server.run_until(stopped).await;
        match (outcome, api_failed) {
            (Err(error), _) => Err(Failure::new(error.to_string())),
            (Ok(()), Some(failure)) => Err(failure),
            (Ok(()), None) => Ok(ExitCode::SUCCESS),
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        let drained = async { tokio::join!(self.api, self.http) };
        let _ = tokio::time::timeout(DRAIN, drained).await;
        self.server.stop().await;
    }
}

fn ready_line(serving: &Serving, data_dir: &Path) -> String {
    let (publish, requests) = (serving.publish_address, serving.return_address);
    let http = serving.url.as_ref().map_or("HTTP is off".into(), |url| format!("HTTP on {url}"));
    format!("saltern is ready: minions connect to {publish} and {requests}, {http}, data in {}", data_dir.display())
}

/// A connection is an open file, and the usual limit of 1,024 is a historical one.
pub(super) fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn flags_set_salts_keys() {
        let words =
            ["saltern", "serve", "--listen", "::1", "--publish-port", "0", "--return-port", "7", "--auto-accept"];
        let Command::Serve(args) = Cli::try_parse_from(words).unwrap().command else { panic!("not a serve") };
        let expected = [
            ("interface".to_owned(), Value::from("::1")),
            ("publish_port".to_owned(), Value::from(0)),
            ("ret_port".to_owned(), Value::from(7)),
            ("auto_accept".to_owned(), Value::from(true)),
        ];
        assert_eq!(args.overrides(), expected);
    }

    #[test]
    fn a_data_directory_is_absolute() {
        let config = ConfigFile { config: Some("/dev/null".into()) }.load(Some(Path::new("here")), Vec::new()).unwrap();
        assert!(config.data_dir.is_absolute() && config.data_dir.ends_with("here"), "{:?}", config.data_dir);
    }
}
