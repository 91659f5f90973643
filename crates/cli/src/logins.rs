//! Log-ins that were kept: who one is at which server, in one file that only its owner may read.
//!
//! `$XDG_CONFIG_HOME/saltern/logins.json`, the last one used at the end. It is replaced as a whole and under a lock, so that
//! two commands at once lose nothing and nobody ever reads half of it.

use crate::failure::Failure;
use rustix::fs::{FlockOperation, flock};
use saltern_api::client::ServerUrl;
use saltern_api::login::Secret;
use saltern_api::shape::Time;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// One log-in.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    /// Where
    pub(crate) url: ServerUrl,
    /// As whom
    pub(crate) user: String,
    /// What is shown for it
    pub(crate) token: Secret,
    /// When it ends
    pub(crate) expires: Time,
    /// Whose certificates are believed, if not those that the system trusts
    pub(crate) ca_file: Option<PathBuf>,
}

/// The file that keeps them.
#[derive(Clone, Debug)]
pub(crate) struct Logins {
    path: PathBuf,
}

const FILE_NAME: &str = "logins.json";

/// The name that a new file has until it is whole.
const DRAFT_NAME: &str = "logins.new";

impl Logins {
    /// The file of whoever runs the command.
    pub(crate) fn of_user() -> Result<Self, Failure> {
        let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
        let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
        let base = base.ok_or_else(|| Failure::new("there is no home directory to keep log-ins in; set HOME"))?;
        Ok(Self::in_dir(&base.join("saltern")))
    }

    /// The file in that directory.
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self { path: dir.join(FILE_NAME) }
    }

    /// The log-in at a server.
    pub(crate) fn find(&self, url: &ServerUrl) -> Result<Option<Login>, Failure> {
        Ok(self.read()?.into_iter().find(|login| login.url == *url))
    }

    /// The log-in that was made last.
    pub(crate) fn last(&self) -> Result<Option<Login>, Failure> {
        Ok(self.read()?.pop())
    }

    /// Keeps a log-in, in place of the one at the same server.
    pub(crate) fn keep(&self, login: Login) -> Result<(), Failure> {
        self.rewrite(|logins| {
            logins.retain(|kept| kept.url != login.url);
            logins.push(login);
        })
    }

    /// Forgets the log-in at a server.
    pub(crate) fn forget(&self, url: &ServerUrl) -> Result<(), Failure> {
        if !self.path.exists() {
            return Ok(());
        }
        self.rewrite(|logins| logins.retain(|kept| kept.url != *url))
    }

    fn read(&self) -> Result<Vec<Login>, Failure> {
        let unreadable = |error: &dyn std::fmt::Display| self.failure("cannot read", error);
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&error)),
        };
        let mode = file.metadata().map_err(|error| unreadable(&error))?.mode();
        if mode & 0o077 != 0 {
            let failure = Failure::new(format!("others may read the log-ins in {}", self.path.display()));
            return Err(failure.hint(format!("`chmod 600 {}`, and log in again if somebody did", self.path.display())));
        }
        let text = io::read_to_string(&mut file).map_err(|error| unreadable(&error))?;
        let Kept { logins } = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        logins.into_iter().map(|row| row.read().map_err(|error| unreadable(&error))).collect()
    }

    fn rewrite(&self, change: impl FnOnce(&mut Vec<Login>)) -> Result<(), Failure> {
        let failed = |error: io::Error| self.failure("cannot write", &error);
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        // The directory stands for the file, which is replaced and so cannot be locked itself.
        let lock = File::open(dir).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut logins = self.read()?;
        change(&mut logins);
        let kept = Kept { logins: logins.iter().map(Row::of).collect() };
        let text = serde_json::to_string_pretty(&kept).map_err(|error| self.failure("cannot write", &error))?;
        replace(&self.path, text.as_bytes()).map_err(failed)
    }

    fn failure(&self, what: &str, error: &dyn std::fmt::Display) -> Failure {
        Failure::new(format!("{what} the log-ins in {}: {error}", self.path.display()))
    }
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Kept {
    logins: Vec<Row>,
}

/// A log-in in the file.
#[derive(Serialize, Deserialize)]
struct Row {
    url: String,
    user: String,
    token: String,
    expires: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ca_file: Option<PathBuf>,
}

impl Row {
    fn of(login: &Login) -> Self {
        Self {
            url: login.url.to_string(),
            user: login.user.clone(),
            token: login.token.reveal().to_owned(),
            expires: login.expires,
            ca_file: login.ca_file.clone(),
        }
    }

    fn read(self) -> Result<Login, saltern_api::client::UrlError> {
        let Self { url, user, token, expires, ca_file } = self;
        Ok(Login { url: ServerUrl::parse(&url)?, user, token: token.into(), expires, ca_file })
    }
}

/// Puts a private file in the place of another: whoever reads sees the old one or the new one.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_file_name(DRAFT_NAME);
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    // Whatever the umask says.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn login(url: &str, user: &str) -> Login {
        Login {
            url: ServerUrl::parse(url).unwrap(),
            user: user.into(),
            token: "0123abcd".into(),
            expires: Time(Timestamp::from_secs(1_794_772_591)),
            ca_file: None,
        }
    }

    #[test]
    fn a_log_in_is_kept_in_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::in_dir(&dir.path().join("saltern"));
        logins.keep(login("https://one.example.org", "ann")).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&logins.path), 0o600);
        assert_eq!(mode(logins.path.parent().unwrap()), 0o700);
        let kept = logins.find(&ServerUrl::parse("https://one.example.org/").unwrap()).unwrap().unwrap();
        assert_eq!((kept.user.as_str(), kept.token.reveal()), ("ann", "0123abcd"));
        assert!(!format!("{kept:?}").contains("0123abcd"));
    }

    #[test]
    fn a_second_log_in_at_a_server_replaces_the_first_and_is_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::in_dir(dir.path());
        for (url, user) in [("https://one", "ann"), ("https://two", "bob"), ("https://one", "eve")] {
            logins.keep(login(url, user)).unwrap();
        }
        let users: Vec<String> = logins.read().unwrap().into_iter().map(|login| login.user).collect();
        assert_eq!(users, ["bob", "eve"]);
        assert_eq!(logins.last().unwrap().unwrap().user, "eve");
    }

    #[test]
    fn a_log_in_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::in_dir(dir.path());
        let url = ServerUrl::parse("https://one").unwrap();
        logins.forget(&url).unwrap();
        logins.keep(login("https://one", "ann")).unwrap();
        logins.forget(&url).unwrap();
        assert!(logins.find(&url).unwrap().is_none() && logins.last().unwrap().is_none());
    }

    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::in_dir(dir.path());
        logins.keep(login("https://one", "ann")).unwrap();
        std::fs::set_permissions(&logins.path, Permissions::from_mode(0o640)).unwrap();
        let failure = logins.last().unwrap_err().to_string();
        assert!(failure.contains("chmod 600"), "{failure}");
    }

    #[test]
    fn what_a_killed_command_left_does_not_matter() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::in_dir(dir.path());
        logins.keep(login("https://one", "ann")).unwrap();
        std::fs::write(dir.path().join(DRAFT_NAME), "half of a f").unwrap();
        assert_eq!(logins.last().unwrap().unwrap().user, "ann");
        logins.keep(login("https://two", "bob")).unwrap();
        assert_eq!(logins.read().unwrap().len(), 2);
    }

    #[test]
    fn log_ins_at_once_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::in_dir(dir.path());
        std::thread::scope(|scope| {
            for number in 0..8 {
                let logins = &logins;
                scope.spawn(move || logins.keep(login(&format!("https://host{number}"), "ann")).unwrap());
            }
        });
        assert_eq!(logins.read().unwrap().len(), 8);
    }

    #[test]
    fn a_broken_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::in_dir(dir.path());
        replace(&logins.path, b"{").unwrap();
        let failure = logins.last().unwrap_err().to_string();
        assert!(failure.contains(FILE_NAME), "{failure}");
    }
}
