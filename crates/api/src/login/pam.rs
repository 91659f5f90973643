//! The system's own users, checked by PAM.
//!
//! The library is loaded when it is wanted, so that the server is built without its headers and runs where there is none.
//! A check blocks for as long as the modules of the service please: it runs on a thread of its own, few at once, and whoever
//! waits for it stops waiting after a while. A thread that never comes back keeps its place, so stuck modules cost a bounded
//! number of threads.
//!
//! This module and what is below it are the only place in this crate with `unsafe`.

mod groups;
mod library;

use super::Error;
use super::error::Trouble;
use library::Library;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// How many checks may run at once.
const THREADS: usize = 8;

/// How PAM is asked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The service whose rules decide: `auth.pam.service`.
    pub service: String,
    /// The folder with the services' rules, where it is not the system's own.
    pub confdir: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { service: "login".to_owned(), confdir: None }
    }
}

/// PAM, ready to be asked.
pub(super) struct Pam {
    library: &'static Library,
    service: Arc<Service>,
    threads: Arc<Semaphore>,
}

/// Whose rules are followed.
struct Service {
    name: CString,
    confdir: Option<CString>,
}

impl Pam {
    pub(super) fn new(settings: Settings) -> Result<Self, Error> {
        let library = Library::load()?;
        let no_nul = |key: &str| Error::setting(key, "must not contain a NUL");
        let name = CString::new(settings.service).map_err(|_| no_nul("auth.pam.service"))?;
        if name.is_empty() {
            return Err(Error::setting("auth.pam.service", "must name a service, as `login`"));
        }
        let confdir = settings.confdir.map(|folder| CString::new(folder.as_os_str().as_bytes())).transpose();
        let confdir = confdir.map_err(|_| no_nul("auth.pam.confdir"))?;
        if confdir.is_some() && !library.knows_confdir() {
            return Err(Error::setting("auth.pam.confdir", "needs Linux-PAM 1.4 or newer"));
        }
        Ok(Self { library, service: Arc::new(Service { name, confdir }), threads: Arc::new(Semaphore::new(THREADS)) })
    }

    /// The user's groups if the password is his and his account is valid.
    pub(super) async fn check(&self, user: &str, password: &str) -> Result<Option<Vec<String>>, Trouble> {
        let (Ok(user), Ok(password)) = (CString::new(user), CString::new(password)) else { return Ok(None) };
        let password = Zeroizing::new(password);
        let Ok(place) = Arc::clone(&self.threads).acquire_owned().await else { return Ok(None) };
        let (library, service) = (self.library, Arc::clone(&self.service));
        let checked = tokio::task::spawn_blocking(move || {
            let _place = place;
            let is_his = library.authenticate(&service.name, service.confdir.as_deref(), &user, &password)?;
            Ok(is_his.then(|| groups::of(&user)))
        });
        checked.await.map_err(|error| Trouble::new(format!("the check ended early: {error}")))?
    }
}
