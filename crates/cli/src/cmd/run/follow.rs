//! Waits for a job's answers: shows them, counts, and says at the end what became of it.

use super::answers::{Answers, Style};
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::output::progress::{Going, Progress};
use crate::output::{self, style, summary};
use saltern_api::client::{Client, ClientError, Lines};
use saltern_api::shape::{Accepted, JobStep};
use saltern_server::clock;
use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, interval};

/// A job to be followed.
pub(crate) struct Follow<'a> {
    pub(crate) client: &'a Client,
    pub(crate) jid: String,
    pub(crate) accepted: Accepted,
    pub(crate) style: Style,
    pub(crate) timeout: Option<f64>,
    /// Whether to sum up even if all is well
    pub(crate) summary: bool,
}

/// How waiting ended.
enum End {
    Done,
    Interrupted,
    Lost(ClientError),
}

impl Follow<'_> {
    /// Waits until nothing more is to be waited for.
    pub(crate) async fn run(self, mut interrupt: Interrupt) -> Result<ExitCode, Failure> {
        let mut outcome = summary::Outcome {
            jid: self.jid.clone(),
            action: self.accepted.action,
            total: self.accepted.minions.len(),
            missing: self.accepted.missing.clone(),
            ..summary::Outcome::default()
        };
        let mut answers = Answers::new(self.style);
        let end = match self.client.watch(&self.jid, self.timeout).await {
            Ok(steps) => wait(steps, &mut outcome, &mut answers, &mut interrupt).await?,
            Err(error) => End::Lost(error),
        };
        let jid = &self.jid;
        match end {
            End::Done => {
                answers.finish()?;
                let wanted = self.summary || io::stderr().is_terminal() && outcome.total > 1;
                if !outcome.is_good() || wanted {
                    output::note(&outcome.show(clock::now(), style::Style::of_stderr()))?;
                }
                Ok(ExitCode::from(if outcome.is_good() { 0 } else { FAILED }))
            }
            End::Interrupted => {
                output::note(&format!("\nThe job goes on: {jid}\nLook at it with: saltern job show {jid}"))?;
                Ok(ExitCode::from(INTERRUPTED))
            }
            End::Lost(error) => {
                Err(Failure::from(error).hint(format!("the job goes on, see `saltern job show {jid}`")))
            }
        }
    }
}

async fn wait(
    mut steps: Lines<JobStep>,
    outcome: &mut summary::Outcome,
    answers: &mut Answers,
    interrupt: &mut Interrupt,
) -> Result<End, Failure> {
    let started = Instant::now();
    let mut progress = Progress::new();
    let mut running = HashSet::new();
    let mut second = interval(Duration::from_secs(1));
    loop {
        let going = Going { total: outcome.total, answered: outcome.answered, running: running.len() };
        let step = tokio::select! {
            step = steps.next() => step,
            () = interrupt.wait() => return Ok(End::Interrupted),
            _ = second.tick() => {
                progress.show(going, started.elapsed());
                continue;
            }
        };
        match step {
            Some(Ok(JobStep::Ack { minion })) => {
                running.insert(minion);
            }
            Some(Ok(JobStep::Return { minion, returned })) => {
                running.remove(&minion);
                outcome.answered += 1;
                if !returned.success {
                    outcome.failed.push((minion.clone(), returned.retcode));
                }
                progress.clear();
                answers.add(&minion, returned)?;
            }
            Some(Ok(JobStep::Done { unanswered })) => {
                outcome.unanswered = unanswered;
                return Ok(End::Done);
            }
            Some(Err(error)) => return Ok(End::Lost(error)),
            None => return Ok(End::Lost(ClientError::Lost("the server has stopped".into()))),
        }
    }
}
