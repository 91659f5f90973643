//! `saltern swarm`: thousands of light minions against any Salt master, and what came of it as JSON.

use super::serve;
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::signals::Signals;
use saltern_swarm::{Acks, Flood, Options, Report, Swarm};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Play thousands of minions against a Salt master, this one or a stock one
///
/// Each signs in, subscribes, and answers every job that means it, with the time-outs of a stock minion and no work of its
/// own. Prints how it goes on stderr, and at the end a JSON object: sign-ins, returns per second, latencies, errors, jobs,
/// runs and steps of action chains that ran twice, and what the swarm itself has cost. Ends by itself only if told to;
/// Ctrl-C ends it with the same report. A return is sent until the master has confirmed it.
///
/// The master must accept the keys. All minions share one key unless told otherwise: never use it against a master whose
/// minions matter.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The master's name or address
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    master: String,

    /// Its request port
    #[arg(long, value_name = "PORT", default_value_t = 4506)]
    ret_port: u16,

    /// How many minions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    count: usize,

    /// What their ids begin with
    #[arg(long, value_name = "TEXT", default_value = "swarm-")]
    prefix: String,

    /// How many RSA keys they share; more than one needs --key-dir to be kept
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Signing in")]
    keys: usize,

    /// Where the keys are kept for the next time
    #[arg(long, value_name = "DIR", help_heading = "Signing in")]
    key_dir: Option<PathBuf>,

    /// How many minions per second begin to sign in; all at once unless told
    #[arg(long, value_name = "PER_SEC", default_value_t = 0.0, hide_default_value = true, help_heading = "Signing in")]
    sign_in_rate: f64,

    /// The Salt version they claim to be
    #[arg(long, value_name = "VERSION", default_value = "3008.3", help_heading = "Signing in")]
    salt_version: String,

    /// Do not send grains and fetch pillar
    #[arg(long, help_heading = "Signing in")]
    no_pillar: bool,

    /// Do not say that they have started
    #[arg(long, help_heading = "Signing in")]
    no_start_event: bool,

    /// Acknowledge every job, also those that do not ask for it
    #[arg(long, conflicts_with = "no_ack", help_heading = "Jobs")]
    ack: bool,

    /// Acknowledge no job
    #[arg(long, help_heading = "Jobs")]
    no_ack: bool,

    /// The part of acknowledgements that gets lost, 0 to 1
    #[arg(long, value_name = "RATE", default_value_t = 0.0, hide_default_value = true, help_heading = "Jobs")]
    lose_acks: f64,

    /// Milliseconds that a job takes
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true, help_heading = "Jobs")]
    work: u64,

    /// Bytes of text in every return; what the function would return unless told
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true, help_heading = "Jobs")]
    return_size: usize,

    /// The part of jobs that fails, 0 to 1
    #[arg(long, value_name = "RATE", default_value_t = 0.0, hide_default_value = true, help_heading = "Jobs")]
    fail_rate: f64,

    /// The part of returns that is never sent, 0 to 1: the minion forgets the job
    #[arg(long, value_name = "RATE", default_value_t = 0.0, hide_default_value = true, help_heading = "Jobs")]
    lose_returns: f64,

    /// Milliseconds that each step of an action chain takes
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true, help_heading = "Action chains")]
    step_work: u64,

    /// Milliseconds that a minion is away when a step reboots its machine or updates its agent
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true, help_heading = "Action chains")]
    restart: u64,

    /// Let steps that update the agent kill it, so that it starts again
    #[arg(long, help_heading = "Action chains")]
    update_restarts: bool,

    /// The part of publications that a minion loses before it sees them, 0 to 1; drawn for each delivery
    #[arg(long, value_name = "RATE", default_value_t = 0.0, hide_default_value = true, help_heading = "Trouble")]
    drop_publications: f64,

    /// How many of the minions, the last ones, never finish a job; they acknowledge it and say that it is running
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Trouble")]
    hang: usize,

    /// How many minions per second lose their connections and come back
    #[arg(long, value_name = "PER_SEC", default_value_t = 0.0, hide_default_value = true, help_heading = "Trouble")]
    churn: f64,

    /// How many of the minions read one publication per second and answer none
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Trouble")]
    slow_readers: usize,

    /// Stay connected and answer nothing
    #[arg(long, help_heading = "Trouble")]
    idle: bool,

    /// What chance is drawn from: the same seed, the same failures
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Trouble")]
    seed: u64,

    /// How many jobs are remembered one by one, the newest; one that comes again after so many others counts as new
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Records")]
    keep_jobs: usize,

    /// Write what became of each remembered job on each minion to this file, as lines of JSON: at the end, and on SIGUSR1
    #[arg(long, value_name = "FILE", help_heading = "Records")]
    ledger: Option<PathBuf>,

    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "How long")]
    duration: Option<Duration>,

    /// End when so many jobs have been returned by every minion they were for
    #[arg(long, value_name = "N", help_heading = "How long")]
    until_jobs: Option<u64>,

    /// When all are up, publish jobs for so many seconds with --publish-cmd, and end
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "publish_cmd", help_heading = "How long")]
    flood: Option<Duration>,

    /// Jobs that are under way at once
    #[arg(long, value_name = "N", default_value_t = 4, requires = "flood", help_heading = "How long")]
    concurrency: usize,

    /// The shell command that publishes one job and does not wait for it
    #[arg(long, value_name = "COMMAND", requires = "flood", help_heading = "How long")]
    publish_cmd: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  saltern swarm -n 2000                                  2,000 minions, until Ctrl-C
  saltern swarm -n 500 --until-jobs 1                    … until they have all returned one job
  saltern swarm -n 1000 --churn 20 --lose-acks 0.1 --fail-rate 0.05 --work 2000
  saltern swarm -n 500 --drop-publications 0.05 --lose-returns 0.01 --hang 5 --ledger swarm.jsonl
  saltern swarm -n 100 --flood 30 --publish-cmd \"saltern run --async '*' test.ping\"
  saltern swarm -n 100 --flood 30 --publish-cmd \"salt --async '*' test.ping\" --no-ack

Exit code 0 if every minion was let in and no job, no attempt of a run and no step of a launch ran twice on one.";

/// What is printed at the end.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    flood: Option<Flood>,
}

impl Args {
    fn options(&self) -> Options {
        Options {
            master: self.master.clone(),
            ret_port: self.ret_port,
            count: self.count,
            prefix: self.prefix.clone(),
            keys: self.keys,
            key_dir: self.key_dir.clone(),
            salt_version: self.salt_version.clone(),
            pillar: !self.no_pillar,
            start_event: !self.no_start_event,
            acks: match (self.ack, self.no_ack) {
                (true, _) => Acks::Always,
                (_, true) => Acks::Never,
                _ => Acks::Asked,
            },
            lose_acks: self.lose_acks,
            work: Duration::from_millis(self.work),
            return_size: self.return_size,
            fail_rate: self.fail_rate,
            lose_returns: self.lose_returns,
            drop_publications: self.drop_publications,
            hang: self.hang,
            step_work: Duration::from_millis(self.step_work),
            restart: Duration::from_millis(self.restart),
            update_restarts: self.update_restarts,
            churn: self.churn,
            slow_readers: self.slow_readers,
            sign_in_rate: self.sign_in_rate,
            idle: self.idle,
            seed: self.seed,
            keep_jobs: self.keep_jobs,
            ..Options::default()
        }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode, Failure> {
    serve::raise_open_files_limit();
    serve::runtime()?.block_on(play(args))
}

async fn play(args: Args) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let asked = signal(SignalKind::user_defined1())
        .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let swarm = Swarm::start(args.options()).await.map_err(|error| Failure::usage(error.to_string()))?;
    let flood = tokio::select! {
        flood = until_done(&swarm, &args) => flood,
        () = tell(&swarm) => None,
        () = write_when_asked(&swarm, args.ledger.as_deref(), asked) => None,
        () = signals.first() => None,
    };
    signals.exit_on_next();
    // Nothing changes any more: report and ledger agree.
    swarm.halt().await;
    let written = match &args.ledger {
        Some(path) => swarm.write_ledger(path).await.map(drop),
        None => Ok(()),
    };
    let outcome = Outcome { report: swarm.report(), flood };
    // First what is known, then what could not be written.
    output::line(&output::json(&outcome)?)?;
    written.map_err(|error| Failure::new(error.to_string()))?;
    Ok(if is_well(&outcome.report) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn is_well(report: &Report) -> bool {
    let jobs = &report.jobs;
    let doubles = [jobs.double_executions, jobs.run_double_executions, report.steps.double_executions];
    report.sign_in.minions == report.minions && doubles == [0; 3]
}

/// Writes the ledger whenever SIGUSR1 comes. Never ends: without a file the signal has nothing to do.
async fn write_when_asked(swarm: &Swarm, path: Option<&Path>, mut asked: Signal) {
    while asked.recv().await.is_some() {
        let Some(path) = path else { continue };
        let _ = match swarm.write_ledger(path).await {
            Ok(lines) => output::note(&format!("{lines} lines written to {}", path.display())),
            Err(error) => output::note(&error.to_string()),
        };
    }
    std::future::pending().await
}

/// Ends when what was asked for is over; never if nothing was.
async fn until_done(swarm: &Swarm, args: &Args) -> Option<Flood> {
    const EVER: Duration = Duration::from_secs(10 * 365 * 86_400);
    let within = args.duration.unwrap_or(EVER);
    if let (Some(time), Some(command)) = (args.flood, &args.publish_cmd) {
        if !swarm.all_ready(within).await {
            return None;
        }
        return Some(swarm.flood(time, args.concurrency, || publish(command)).await);
    }
    match args.until_jobs {
        Some(jobs) => drop(swarm.jobs_finished(jobs, within).await),
        None => tokio::time::sleep(within).await,
    }
    None
}

async fn publish(command: &str) -> bool {
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    shell.status().await.is_ok_and(|status| status.success())
}

/// Says how it goes, a line per second in which something has changed.
async fn tell(swarm: &Swarm) {
    let (begin, mut told) = (Instant::now(), None);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = swarm.progress();
        if told.replace(now) != Some(now) {
            let _ = output::note(&format!(
                "{:>5} s: {} of {} in, {} up; {} jobs, {} returns, {} errors",
                begin.elapsed().as_secs(),
                now.signed_in,
                now.minions,
                now.ready,
                now.jobs,
                now.returns,
                now.errors,
            ));
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or("not a number above 0".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        let cli = Cli::try_parse_from(["saltern", "swarm"].iter().chain(words))?;
        let Command::Swarm(args) = cli.command else { panic!("not a swarm") };
        Ok(args)
    }

    #[test]
    fn flags_become_options() {
        let words = ["-n", "7", "--no-ack", "--work", "250", "--no-pillar", "--churn", "2.5", "--slow-readers", "1"];
        let options = parse(&words).unwrap().options();
        assert_eq!((options.count, options.acks, options.slow_readers), (7, Acks::Never, 1));
        assert_eq!((options.work, options.churn), (Duration::from_millis(250), 2.5));
        assert!(!options.pillar && options.start_event && !options.idle);
        assert_eq!(parse(&["--ack"]).unwrap().options().acks, Acks::Always);
        assert_eq!(parse(&[]).unwrap().options().acks, Acks::Asked);
    }

    #[test]
    fn trouble_and_records_become_options() {
        let words = ["--drop-publications", "0.1", "--lose-returns", "0.2", "--hang", "3", "--keep-jobs", "50000"];
        let options = parse(&words).unwrap().options();
        assert_eq!((options.drop_publications, options.lose_returns), (0.1, 0.2));
        assert_eq!((options.hang, options.keep_jobs), (3, 50_000));
        let usual = parse(&[]).unwrap();
        assert_eq!((usual.options().keep_jobs, usual.ledger), (Options::default().keep_jobs, None));
        assert_eq!(parse(&["--ledger", "a.jsonl"]).unwrap().ledger, Some("a.jsonl".into()));
    }

    #[test]
    fn how_chains_go_becomes_options() {
        let options = parse(&["--step-work", "20", "--restart", "1500", "--update-restarts"]).unwrap().options();
        assert_eq!((options.step_work, options.restart), (Duration::from_millis(20), Duration::from_millis(1_500)));
        assert!(options.update_restarts && !parse(&[]).unwrap().options().update_restarts);
    }

    #[test]
    fn a_flood_needs_to_know_how_to_publish() {
        assert!(parse(&["--flood", "10"]).is_err());
        let args = parse(&["--flood", "10", "--publish-cmd", "true"]).unwrap();
        assert_eq!((args.flood, args.concurrency), (Some(Duration::from_secs(10)), 4));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for words in [&["--ack", "--no-ack"][..], &["--duration", "0"], &["--duration", "nan"], &["--count", "-1"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
