//! The agent itself: up, signed in, listening; and again after whatever broke it.

use crate::files::replace_file;
use crate::functions::{Context, Outcome};
use crate::jobs::{JobHandle, Runner};
use crate::link::{Link, Serials, Session, is_elsewhere_better};
use crate::reboot_wish::{self, RebootWish};
use crate::{Config, Error, clock, grains};
use saltern_core::event::tag;
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::PrivateKey;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a master that has not decided yet is left alone.
const BETWEEN_SIGN_INS: Duration = Duration::from_secs(10);

/// Tries at one master before the next of the list gets its turn.
const TRIES_PER_MASTER: u32 = 3;

/// How long pillar may take.
const PILLAR_PATIENCE: Duration = Duration::from_secs(60);

/// A running agent.
pub struct Minion {
    runner: Arc<Runner>,
    link: Link,
    context: Context,
    has_other_masters: bool,
    /// Whether it was connected once: before that there is nobody to tell anything
    is_up: AtomicBool,
    reboot_needed_files: Vec<PathBuf>,
}

impl Minion {
    /// Prepares an agent: its key, its ledger, its grains. Nothing is sent yet.
    pub fn new(config: Config) -> Result<Self, Error> {
        let key = own_key(&config.data_dir)?;
        let link = Link::new(&config, key)?;
        let context = context(&config, Some(link.clone()));
        let has_other_masters = config.masters.len() > 1;
        let runner = Runner::open(&config, context.clone(), link.clone())?;
        Ok(Self {
            runner: Arc::new(runner),
            link,
            context,
            has_other_masters,
            is_up: AtomicBool::new(false),
            reboot_needed_files: config.reboot_needed_files,
        })
    }

    /// Runs until `stop`. Jobs under way are left to end with the process; the ledger knows of them.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let interrupted = self.runner.report_interrupted()?;
        for jid in &interrupted {
            tracing::warn!(%jid, "this job was under way when the agent stopped; it is reported and not run again");
        }
        let deliverer = tokio::spawn(self.runner.clone().deliver());
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.stay_connected() => {}
            () = self.tell_reboot_wishes() => {}
        }
        deliverer.abort();
        Ok(())
    }

    async fn stay_connected(&self) {
        let (mut pause, mut tries) = (crate::jobs::Backoff::default(), 0);
        let mut serials = Serials::default();
        loop {
            let error = match self.link.sign_in(None).await {
                Ok(session) => {
                    tries = 0;
                    match self.listen(&session, &mut serials, &mut pause).await {
                        Ok(never) => match never {},
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            tries += 1;
            if self.has_other_masters && is_elsewhere_better(&error) && tries >= TRIES_PER_MASTER {
                tracing::warn!(%error, master = self.link.master_address(), "turning to the next master");
                self.link.next_master();
                tries = 0;
            }
            match error {
                Error::Pending => {
                    tracing::info!("the master has not accepted the key yet");
                    tokio::time::sleep(BETWEEN_SIGN_INS).await;
                }
                error => {
                    tracing::warn!(%error, cause = cause(&error), master = self.link.master_address(), "not connected");
                    pause.wait().await;
                }
            }
        }
    }

    /// Subscribes, tells that it is up, and takes jobs until the connection breaks.
    async fn listen(
        &self,
        session: &Session,
        serials: &mut Serials,
        pause: &mut crate::jobs::Backoff,
    ) -> Result<std::convert::Infallible, Error> {
        let mut subscriber = self.link.subscribe(session).await?;
        // Subscribed first: whatever is published from now on waits in the socket.
        self.refresh_pillar().await?;
        self.tell_start().await?;
        *pause = crate::jobs::Backoff::default();
        tracing::info!(master = self.link.master_address(), "connected");
        self.is_up.store(true, std::sync::atomic::Ordering::Relaxed);
        loop {
            let frame = subscriber.recv().await.map_err(Error::Unreachable)?;
            match self.link.open(frame, serials).await {
                Ok(publication) => self.runner.take(publication.load),
                Err(Error::Refused(error)) => tracing::warn!(%error, "a publication was refused"),
                Err(error) => return Err(error),
            }
        }
    }

    async fn refresh_pillar(&self) -> Result<(), Error> {
        self.context.refresh_pillar().await
    }

    /// Tells whether the machine wants a reboot, whenever that changes, once the agent has been up.
    async fn tell_reboot_wishes(&self) {
        let mut wish = RebootWish::new(self.reboot_needed_files.clone());
        loop {
            tokio::time::sleep(reboot_wish::LOOK).await;
            if !self.is_up.load(std::sync::atomic::Ordering::Relaxed) {
                continue;
            }
            let Some(needed) = wish.news() else { continue };
            if let Err(error) = self.link.request(reboot_wish::event(&self.runner.id, needed), PILLAR_PATIENCE).await {
                tracing::debug!(%error, "it could not be told whether a reboot is needed; it is told later");
                wish.untold();
            }
        }
    }

    async fn tell_start(&self) -> Result<(), Error> {
        let id = &self.runner.id;
        let text = format!("Minion {id} started at {}", clock::now().rfc3339());
        for tag in [tag::MINION_START.to_owned(), tag::minion_start(id)] {
            let load = crate::jobs::event_load(id, &tag, text.as_str().into());
            self.link.request(load, PILLAR_PATIENCE).await?;
        }
        Ok(())
    }
}

impl Context {
    /// Asks the master for pillar again.
    pub async fn refresh_pillar(&self) -> Result<(), Error> {
        let Some(link) = &self.link else { return Ok(()) };
        if let Value::Map(pillar) = link.pillar(self.pillar_load(None, Map::new()), PILLAR_PATIENCE).await? {
            *self.pillar.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(pillar);
        }
        Ok(())
    }

    /// Pillar as the master compiles it now, for an environment and with some values over it. Ours stays as it is.
    pub(crate) async fn compile_pillar(&self, pillarenv: Option<&str>, over: Map) -> Result<Map, Error> {
        let Some(link) = &self.link else {
            let pillar = (*self.pillar()).clone();
            return Ok(saltern_render::merge::update(pillar, over, false));
        };
        match link.pillar(self.pillar_load(pillarenv, over), PILLAR_PATIENCE).await? {
            Value::Map(pillar) => Ok(pillar),
            _ => Ok(Map::new()),
        }
    }

    fn pillar_load(&self, pillarenv: Option<&str>, over: Map) -> Map {
        let mut load = Map::with_capacity(7);
        load.push("cmd", "_pillar");
        load.push("grains", (*self.grains()).clone());
        load.push("saltenv", Value::Nil);
        load.push("pillarenv", pillarenv);
        load.push("pillar_override", over);
        load.push("extra_minion_data", Map::new());
        load.push("ver", "2");
        load
    }
}

/// Runs one function here, without a master: `saltern call`.
pub async fn call(config: &Config, function: &str, arguments: &[Value]) -> Outcome {
    let context = context(config, None);
    crate::jobs::call_one(function, arguments, &context).await.0
}

fn context(config: &Config, link: Option<Link>) -> Context {
    let grains = grains::collect(config);
    Context {
        id: config.id.as_str().into(),
        opts: Arc::new(config.opts.clone()),
        data_dir: Arc::new(config.data_dir.clone()),
        grains: Arc::new(RwLock::new(Arc::new(grains))),
        pillar: Arc::default(),
        link,
        job: JobHandle::default(),
    }
}

/// The minion's key pair, made at the first start.
fn own_key(data_dir: &Path) -> Result<PrivateKey, Error> {
    let path = data_dir.join("pki/minion.pem");
    match std::fs::read_to_string(&path) {
        Ok(pem) => Ok(PrivateKey::from_pem(&pem)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = PrivateKey::generate(2048)?;
            replace_file(&path, key.to_pem()?.as_bytes(), 0o600)?;
            replace_file(&data_dir.join("pki/minion.pub"), key.public().to_pem().as_bytes(), 0o644)?;
            Ok(key)
        }
        Err(error) => Err(Error::file("read", &path, error)),
    }
}

/// What lies behind an error, for the log.
fn cause(error: &Error) -> String {
    let mut causes = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.join(": ")
}
