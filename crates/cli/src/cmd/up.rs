//! `saltern up`: everything in one process, to see it at work. Server, native minions, a sample tree, on loopback.

use super::serve;
use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::output;
use saltern_core::value::{Map, Value};
use saltern_minion::Minion;
use saltern_server::Presence;
use saltern_server::app::{App, Caller, UserChange};
use saltern_server::config::{Config, Sources};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Try it: a server and minions in one process, on loopback
///
/// Everything it makes lies in one directory; running it again goes on with the same data. Ctrl-C stops it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many minions
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    minions: u16,

    /// What to log, on stderr
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: String,
}

/// The user that is made at the first start.
const ADMIN: &str = "admin";

/// How long the minions may take before it is said that they are not there yet.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: Args, data_dir: Option<PathBuf>) -> Result<ExitCode, Failure> {
    logging::start(&args.log_level, LogFormat::Text)?;
    serve::raise_open_files_limit();
    let data_dir = match data_dir {
        Some(dir) => std::path::absolute(dir).map_err(|error| Failure::usage(format!("--data-dir: {error}")))?,
        None => default_data_dir()?,
    };
    let config = config(&data_dir)?;
    sample_tree(&data_dir)?;
    serve::runtime()?.block_on(up(args, config, data_dir))
}

async fn up(args: Args, config: Config, data_dir: PathBuf) -> Result<ExitCode, Failure> {
    let serving = serve::Serving::start(config).await?;
    let password = admin_password(&serving.app(), &data_dir).await?;
    let (stop, minions) = (CancellationToken::new(), TaskTracker::new());
    for number in 1..=args.minions {
        let config = minion_config(&data_dir, number, &serving)?;
        let stop = stop.clone();
        minions.spawn(async move {
            // Making a key takes a moment of a whole core.
            let minion = tokio::task::spawn_blocking(move || Minion::new(config)).await;
            let outcome = match minion {
                Ok(Ok(minion)) => minion.run(stop).await,
                Ok(Err(error)) => Err(error),
                Err(_) => return,
            };
            if let Err(error) = outcome {
                tracing::error!(number, %error, "a minion has ended");
            }
        });
    }
    let there = tokio::time::timeout(PATIENCE, all_present(&serving.app(), args.minions.into())).await;
    if there.is_err() {
        output::note("not every minion is there yet; `saltern minion list` shows who is")?;
    }
    let _ = output::line(&welcome(&args, &serving, &data_dir, &password));
    let outcome = serving.until_signal().await;
    stop.cancel();
    minions.close();
    minions.wait().await;
    outcome
}

async fn all_present(app: &App, wanted: usize) {
    let operator = Caller::administrator("up", "server");
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    loop {
        pause.tick().await;
        let present = app.minions(&operator, None).await.map_or(0, |minions| {
            minions
                .iter()
                .filter(|minion| matches!(minion.presence, Presence::Present(_)) && minion.started.is_some())
                .count()
        });
        if present >= wanted {
            return;
        }
    }
}

fn welcome(args: &Args, serving: &serve::Serving, data_dir: &Path, password: &str) -> String {
    let url = serving.url.as_deref().unwrap_or("off");
    let dir = data_dir.display();
    format!(
        "\
saltern is up with {} minions
  minions connect to   {} and {}
  data                 {dir}
  HTTP                 {url}  (user {ADMIN}, password {password})
  you are              the administrator: whoever may read the data directory is

Try in another terminal:
  export SALTERN_DATA_DIR={dir}
  saltern run '*' test.ping
  saltern run 'minion-1' cmd.run 'uname -a'
  saltern event --tag 'salt/job/*'

Files for minions are in {dir}/srv. Ctrl-C stops it; running it again goes on with the same data.",
        args.minions, serving.publish_address, serving.return_address
    )
}

fn default_data_dir() -> Result<PathBuf, Failure> {
    let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".local/share")));
    base.map(|base| base.join("saltern")).ok_or_else(|| Failure::usage("there is no home directory; give --data-dir"))
}

fn config(data_dir: &Path) -> Result<Config, Failure> {
    let text =
        |path: &Path| path.to_str().map(Value::from).ok_or_else(|| Failure::usage("--data-dir: the path is not UTF-8"));
    let roots = |name: &str| {
        Ok::<_, Failure>(Value::map([("base", Value::List(vec![text(&data_dir.join("srv").join(name))?]))]))
    };
    let (publish_port, ret_port) = ports();
    let http = if is_free(8000) { "127.0.0.1:8000" } else { "127.0.0.1:0" };
    let overrides = vec![
        ("data_dir".into(), text(data_dir)?),
        ("interface".into(), "127.0.0.1".into()),
        ("publish_port".into(), publish_port.into()),
        ("ret_port".into(), ret_port.into()),
        ("http".into(), http.into()),
        ("auto_accept".into(), true.into()),
        ("file_roots".into(), roots("salt")?),
        ("pillar_roots".into(), roots("pillar")?),
    ];
    Config::load(Sources { overrides, ..Sources::default() }).map_err(|error| Failure::new(error.to_string()))
}

/// The usual ports, or any that are free.
fn ports() -> (u16, u16) {
    if is_free(4505) && is_free(4506) { (4505, 4506) } else { (0, 0) }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok()
}

/// The password of the user `admin`, made at the first start and kept beside the data.
async fn admin_password(app: &App, data_dir: &Path) -> Result<String, Failure> {
    let path = data_dir.join("admin-password");
    if let Ok(known) = std::fs::read_to_string(&path) {
        return Ok(known.trim().to_owned());
    }
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(|error| Failure::new(format!("no randomness: {error}")))?;
    let password: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let cannot = |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
    let file = std::fs::File::options().create_new(true).write(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(password.as_bytes())).map_err(cannot)?;
    let operator = Caller::administrator("up", "server");
    let roles = Some(vec!["server-admin".into()]);
    let change = UserChange { password: Some(password.clone()), roles, ..UserChange::default() };
    let made = app.create_user(&operator, ADMIN, change).await;
    made.map_err(|error| Failure::new(error.to_string()))?;
    Ok(password)
}

fn minion_config(data_dir: &Path, number: u16, serving: &serve::Serving) -> Result<saltern_minion::Config, Failure> {
    let id = format!("minion-{number}");
    let dir = data_dir.join("minions").join(&id);
    let mut settings = Map::new();
    settings.insert("id", id);
    settings.insert("master", serving.return_address.to_string());
    settings.insert("data_dir", dir.to_str().unwrap_or_default());
    saltern_minion::Config::load(None, settings).map_err(|error| Failure::new(error.to_string()))
}

/// A small tree to begin with; what is there already is left alone.
fn sample_tree(data_dir: &Path) -> Result<(), Failure> {
    const FILES: [(&str, &str); 4] = [
        ("srv/salt/top.sls", "base:\n  '*':\n    - hello\n"),
        (
            "srv/salt/hello.sls",
            "/tmp/hello-from-saltern:\n  file.managed:\n    - contents: {{ pillar.get('greeting', 'hello') }}\n",
        ),
        ("srv/pillar/top.sls", "base:\n  '*':\n    - greeting\n"),
        ("srv/pillar/greeting.sls", "greeting: hello, {{ grains['id'] }}\n"),
    ];
    for (name, content) in FILES {
        let path = data_dir.join(name);
        let made = (|| {
            std::fs::create_dir_all(path.parent().unwrap_or(data_dir))?;
            if !path.exists() {
                std::fs::write(&path, content)?;
            }
            Ok::<_, std::io::Error>(())
        })();
        made.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}
