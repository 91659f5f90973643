//! What a swarm is to play, and what of it makes no sense.

use crate::Error;
use saltern_core::ids::MinionId;
use std::path::PathBuf;
use std::time::Duration;

/// The largest return a light minion makes: what a stock minion sends at most.
const MOST_RETURN: usize = 1 << 20;

/// What the swarm plays. The defaults are those of a stock 3008 minion on a quiet machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The master's host name or address.
    pub master: String,
    /// Its request port.
    pub ret_port: u16,
    /// How many minions.
    pub count: usize,
    /// What their ids begin with; a number follows.
    pub prefix: String,
    /// How many RSA keys they share.
    pub keys: usize,
    /// Where the keys are kept from one time to the next; nothing: they are made anew.
    pub key_dir: Option<PathBuf>,
    /// The Salt version they claim in their grains.
    pub salt_version: String,
    /// Whether each sends its grains and fetches its pillar when it comes up.
    pub pillar: bool,
    /// Whether each says that it has started.
    pub start_event: bool,
    /// Which jobs are acknowledged.
    pub acks: Acks,
    /// The part of acknowledgements that is not sent, 0 to 1.
    pub lose_acks: f64,
    /// How long a job takes.
    pub work: Duration,
    /// Bytes of text in a return; 0: what the function would return.
    pub return_size: usize,
    /// The part of jobs that fails, 0 to 1.
    pub fail_rate: f64,
    /// The part of returns that is not sent, 0 to 1: the minion forgets the job.
    pub lose_returns: f64,
    /// The part of deliveries that the minion does not see, 0 to 1. Drawn for each: a job published again has another chance.
    pub drop_publications: f64,
    /// How many of the minions, the last ones that answer, never finish a job. They still answer what is asked about it.
    pub hang: usize,
    /// How long each step of an action chain takes.
    pub step_work: Duration,
    /// How long a minion is away that a step starts again.
    pub restart: Duration,
    /// Whether a step that updates the agent kills it, and it starts again; else the step is done like any other.
    pub update_restarts: bool,
    /// How many minions per second lose their connections and come back.
    pub churn: f64,
    /// How many of the minions read one publication per second and answer none.
    pub slow_readers: usize,
    /// How many minions per second begin to sign in; 0: all at once.
    pub sign_in_rate: f64,
    /// How long a sign-in is tried.
    pub patience: Patience,
    /// Stay connected, and answer nothing.
    pub idle: bool,
    /// What chance is drawn from.
    pub seed: u64,
    /// How many jobs are told apart, the newest; a job that comes again after so many others counts as new.
    pub keep_jobs: usize,
}

/// Which jobs are acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// Those that ask for it, as 3008 does.
    #[default]
    Asked,
    /// Every job, as the native minion does.
    Always,
    /// None.
    Never,
}

/// The patience of a minion that signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long it waits for an answer (`auth_timeout`).
    pub per_try: Duration,
    /// How often it tries (`auth_tries`).
    pub tries: u32,
    /// How long it pauses before it begins again, also while its key is pending (`acceptance_wait_time`).
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { per_try: Duration::from_secs(5), tries: 7, pause: Duration::from_secs(10) }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            master: "127.0.0.1".into(),
            ret_port: 4506,
            count: 100,
            prefix: "swarm-".into(),
            keys: 1,
            key_dir: None,
            salt_version: "3008.3".into(),
            pillar: true,
            start_event: true,
            acks: Acks::default(),
            lose_acks: 0.0,
            work: Duration::ZERO,
            return_size: 0,
            fail_rate: 0.0,
            lose_returns: 0.0,
            drop_publications: 0.0,
            hang: 0,
            step_work: Duration::ZERO,
            restart: Duration::ZERO,
            update_restarts: false,
            churn: 0.0,
            slow_readers: 0,
            sign_in_rate: 0.0,
            patience: Patience::default(),
            idle: false,
            seed: 1,
            keep_jobs: 10_000,
        }
    }
}

impl Options {
    /// The ids of the minions, in order; or what is wrong with the options.
    pub(crate) fn check(&self) -> Result<Vec<MinionId>, Error> {
        let wrong = |text: &str| Err(Error::Option(text.to_owned()));
        let is_part = |rate: f64| (0.0..=1.0).contains(&rate);
        let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
        if self.count == 0 || self.keys == 0 {
            return wrong("a swarm has at least one minion and one key");
        }
        if self.keep_jobs == 0 {
            return wrong("at least one job is kept");
        }
        if self.slow_readers.checked_add(self.hang).is_none_or(|special| special > self.count) {
            return wrong("there are more slow readers and minions that hang than minions");
        }
        let parts = [self.fail_rate, self.lose_acks, self.lose_returns, self.drop_publications];
        if !parts.into_iter().all(is_part) {
            return wrong("a part of jobs, acknowledgements, returns or publications is a number from 0 to 1");
        }
        if !is_rate(self.churn) || !is_rate(self.sign_in_rate) {
            return wrong("a number per second is not negative");
        }
        if self.return_size > MOST_RETURN {
            return wrong("a return has at most 1048576 bytes: a stock minion sends no more");
        }
        if self.patience.tries == 0 {
            return wrong("a sign-in takes at least one try");
        }
        let width = self.count.to_string().len();
        let id = |number: usize| MinionId::new(&format!("{}{number:0width$}", self.prefix));
        let ids: Result<Vec<MinionId>, _> = (1..=self.count).map(id).collect();
        ids.map_err(|error| Error::Option(error.to_string()))
    }

    /// How many minions answer jobs: all but the slow readers, which come last.
    pub(crate) fn answering(&self) -> usize {
        if self.idle { 0 } else { self.count - self.slow_readers }
    }

    /// Whether this minion never finishes a job: the last of those that answer.
    pub(crate) fn hangs(&self, index: usize) -> bool {
        let answering = self.answering();
        (answering.saturating_sub(self.hang)..answering).contains(&index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_with_equal_width() {
        let options = Options { count: 10, prefix: "web-".into(), ..Options::default() };
        let ids = options.check().unwrap();
        assert_eq!((ids[0].as_str(), ids[9].as_str(), ids.len()), ("web-01", "web-10", 10));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let base = Options::default;
        for bad in [
            Options { count: 0, ..base() },
            Options { keys: 0, ..base() },
            Options { slow_readers: 101, ..base() },
            Options { slow_readers: 60, hang: 41, ..base() },
            Options { slow_readers: 1, hang: usize::MAX, ..base() },
            Options { keep_jobs: 0, ..base() },
            Options { lose_returns: -0.1, ..base() },
            Options { drop_publications: 1.1, ..base() },
            Options { fail_rate: 1.5, ..base() },
            Options { lose_acks: f64::NAN, ..base() },
            Options { churn: -1.0, ..base() },
            Options { sign_in_rate: f64::INFINITY, ..base() },
            Options { return_size: MOST_RETURN + 1, ..base() },
            Options { prefix: "../".into(), ..base() },
        ] {
            assert!(matches!(bad.check(), Err(Error::Option(_))), "{bad:?}");
        }
        assert!(base().check().is_ok());
    }

    #[test]
    fn those_that_hang_come_last_but_for_slow_readers() {
        let options = Options { count: 10, slow_readers: 2, hang: 3, ..Options::default() };
        let hanging: Vec<usize> = (0..10).filter(|index| options.hangs(*index)).collect();
        assert_eq!(hanging, [5, 6, 7]);
        assert!((0..10).all(|index| !Options::default().hangs(index)));
    }
}
