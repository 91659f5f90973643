//! Which server a command speaks to, and as whom.
//!
//! A URL wins over a data directory, a flag over a variable. Without either it is the server of this machine if there is one,
//! else the one that was last logged in to. On the control socket nobody shows anything: whoever may open it is the
//! administrator.

use crate::failure::Failure;
use crate::logins::{Login, Logins};
use crate::output;
use clap::ArgMatches;
use clap::parser::ValueSource;
use saltern_api::client::{Client, Endpoint, ServerUrl};
use saltern_api::control;
use saltern_api::login::Secret;
use std::path::{Path, PathBuf};

/// Where a server keeps its data unless told.
pub(crate) const DEFAULT_DATA_DIR: &str = "/var/lib/saltern";

/// The variable with a token for the server that `--url` or its variable names.
const TOKEN_VARIABLE: &str = "SALTERN_TOKEN";

/// How the server is to be found.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Whereabouts {
    /// The server's data directory, on its own machine; /var/lib/saltern unless told
    #[arg(long, global = true, value_name = "DIR", env = "SALTERN_DATA_DIR", help_heading = HEADING)]
    pub(crate) data_dir: Option<PathBuf>,

    /// The server's URL, from any machine; `saltern login URL` first, or a token in SALTERN_TOKEN
    #[arg(long, global = true, value_name = "URL", env = "SALTERN_URL", help_heading = HEADING)]
    url: Option<String>,

    /// Certificates of the authority that has issued the server's, if the system does not trust it
    #[arg(long, global = true, value_name = "FILE", env = "SALTERN_CA_FILE", help_heading = HEADING)]
    ca_file: Option<PathBuf>,
}

const HEADING: &str = "Global options";

impl Whereabouts {
    /// A flag wins over the variable of the other way: who types a data directory means it.
    pub(crate) fn prefer_flags(mut self, matches: &ArgMatches) -> Self {
        let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        if typed("data_dir") && !typed("url") {
            self.url = None;
        }
        self
    }

    /// The client of the server that is meant.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let default = Path::new(DEFAULT_DATA_DIR);
        let endpoint = self.endpoint(token.map(Secret::from), default, Logins::of_user)?;
        if let Some(url) = endpoint.url() {
            warn_of_listeners(url)?;
        }
        Ok(Client::new(endpoint))
    }

    fn endpoint(
        &self,
        token: Option<Secret>,
        default: &Path,
        logins: impl FnOnce() -> Result<Logins, Failure>,
    ) -> Result<Endpoint, Failure> {
        if let Some(url) = self.url()? {
            return match token {
                Some(token) => Ok(Endpoint::Remote { url, token: Some(token), ca_file: self.ca_file() }),
                None => match logins()?.find(&url)? {
                    Some(login) => Ok(self.logged_in(login)),
                    None => Ok(Endpoint::Remote { url, token: None, ca_file: self.ca_file() }),
                },
            };
        }
        let socket = |dir: &Path| dir.join(control::FILE_NAME);
        if let Some(dir) = self.data_dir.as_deref().filter(|dir| !dir.as_os_str().is_empty()) {
            return Ok(Endpoint::Control(socket(dir)));
        }
        let default = socket(default);
        if default.exists() {
            return Ok(Endpoint::Control(default));
        }
        // Nobody need have a home to be told that there is no server.
        match logins().ok().map(|logins| logins.last()).transpose()?.flatten() {
            Some(login) => Ok(self.logged_in(login)),
            None => Ok(Endpoint::Control(default)),
        }
    }

    /// The URL that was given.
    pub(crate) fn url(&self) -> Result<Option<ServerUrl>, Failure> {
        let given = self.url.as_deref().filter(|url| !url.is_empty());
        let wrong = |error: saltern_api::client::UrlError| Failure::usage(format!("--url or SALTERN_URL: {error}"));
        given.map(|url| ServerUrl::parse(url).map_err(wrong)).transpose()
    }

    /// The certificates that were named.
    pub(crate) fn ca_file(&self) -> Option<PathBuf> {
        self.ca_file.clone().filter(|file| !file.as_os_str().is_empty())
    }

    fn logged_in(&self, login: Login) -> Endpoint {
        let ca_file = self.ca_file().or(login.ca_file);
        Endpoint::Remote { url: login.url, token: Some(login.token), ca_file }
    }
}

/// Says so where others may read the token on its way.
pub(crate) fn warn_of_listeners(url: &ServerUrl) -> Result<(), Failure> {
    if url.is_secure() || url.is_loopback() {
        return Ok(());
    }
    output::note(&format!(
        "saltern: {url} is not encrypted: whoever is on the way can read the token and everything else"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{CommandFactory, FromArgMatches};
    use saltern_api::shape::Time;
    use saltern_core::time::Timestamp;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn log_in(self, url: &str, token: &str) -> Self {
            let url = ServerUrl::parse(url).unwrap();
            let expires = Time(Timestamp::from_secs(1));
            let login = Login { url, user: "ann".into(), token: token.into(), expires, ca_file: None };
            Logins::in_dir(self.0.path()).keep(login).unwrap();
            self
        }

        fn local_server(self) -> Self {
            std::fs::write(self.0.path().join(control::FILE_NAME), "").unwrap();
            self
        }

        /// What is chosen, as text: the socket's directory or the URL with the token.
        fn choose(&self, wanted: &Whereabouts, token: Option<&str>) -> String {
            let logins = || Ok(Logins::in_dir(self.0.path()));
            match wanted.endpoint(token.map(Secret::from), self.0.path(), logins).unwrap() {
                Endpoint::Control(path) if path.starts_with(self.0.path()) => "default".into(),
                Endpoint::Control(path) => path.parent().unwrap().display().to_string(),
                Endpoint::Remote { url, token, .. } => {
                    format!("{url} {}", token.as_ref().map_or("nobody", |token| token.reveal()))
                }
            }
        }
    }

    fn wanted(url: Option<&str>, data_dir: Option<&str>) -> Whereabouts {
        Whereabouts { url: url.map(Into::into), data_dir: data_dir.map(Into::into), ca_file: None }
    }

    #[test]
    fn a_url_wins_and_its_kept_log_in_is_used() {
        let home = Home::new().log_in("https://one", "t1").log_in("https://two", "t2").local_server();
        assert_eq!(home.choose(&wanted(Some("https://one/"), Some("/data")), None), "https://one t1");
        assert_eq!(home.choose(&wanted(Some("https://one"), None), Some("t9")), "https://one t9");
        assert_eq!(home.choose(&wanted(Some("https://three"), None), None), "https://three nobody");
    }

    #[test]
    fn then_the_data_directory_that_is_named() {
        let home = Home::new().log_in("https://one", "t1").local_server();
        assert_eq!(home.choose(&wanted(None, Some("/data")), Some("t9")), "/data");
    }

    #[test]
    fn then_the_server_of_this_machine_and_else_the_last_log_in() {
        let home = Home::new().log_in("https://one", "t1").log_in("https://two", "t2");
        assert_eq!(home.choose(&wanted(None, None), None), "https://two t2");
        assert_eq!(home.local_server().choose(&wanted(None, None), None), "default");
        assert_eq!(Home::new().choose(&wanted(None, None), None), "default");
    }

    #[test]
    fn empty_variables_are_none() {
        let home = Home::new().log_in("https://one", "t1");
        assert_eq!(home.choose(&wanted(Some(""), Some("")), None), "https://one t1");
    }

    #[test]
    fn a_flag_wins_over_a_variable() {
        let given = |words: &[&str]| {
            let matches = Cli::command().try_get_matches_from(words).unwrap();
            let mut cli = Cli::from_arg_matches(&matches).unwrap();
            // As if it came from a variable, which would be the whole process's.
            cli.server.url.get_or_insert("https://variable".into());
            cli.server.prefer_flags(&matches).url
        };
        assert_eq!(given(&["saltern", "job", "list", "--data-dir", "/data"]), None);
        assert_eq!(given(&["saltern", "job", "list"]).as_deref(), Some("https://variable"));
        let both = ["saltern", "--data-dir", "/data", "job", "list", "--url", "https://typed"];
        assert_eq!(given(&both).as_deref(), Some("https://typed"));
    }

    #[test]
    fn what_is_no_url_is_told() {
        let failure = wanted(Some("salt.example.org"), None).url().unwrap_err().to_string();
        assert!(failure.contains("begins with https://"), "{failure}");
    }
}
