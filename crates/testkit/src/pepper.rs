//! The real `pepper`, the command line that people use with salt-api.

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::http::Http;
use crate::installed::{Client, ClientProgram};
use crate::process::run_to_end;
use crate::scratch::Scratch;
use crate::tier;

/// How long a use may take: Python starts, logs in and waits for minions.
const PATIENCE: Duration = Duration::from_secs(120);

/// A pepper that knows its server and who uses it, in a home of its own.
#[derive(Debug)]
pub struct Pepper {
    client: Client,
    http: Http,
    user: String,
    password: String,
    home: Scratch,
}

impl Pepper {
    /// The installed pepper for this user of this server, if any; see [`tier`].
    pub fn find(http: Http, user: &str, password: &str) -> Option<Self> {
        let client = installed(ClientProgram::Pepper)?;
        let (user, password) = (user.to_owned(), password.to_owned());
        Some(Self { client, http, user, password, home: Scratch::new("pep") })
    }

    /// The same pepper in the hands of somebody else.
    #[must_use]
    pub fn used_by(&self, user: &str, password: &str) -> Self {
        let (client, http) = (self.client.clone(), self.http);
        Self { client, http, user: user.to_owned(), password: password.to_owned(), home: Scratch::new("pep") }
    }

    /// A file in its home, such as a cache of tokens.
    pub fn file(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    /// Uses it and waits for its end.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.client.path());
        command
            .args(["--non-interactive", "-u", &self.http.url(), "-a", "file"])
            .args(["--username", &self.user, "--password", &self.password])
            .args(arguments)
            .env("HOME", self.home.path())
            .current_dir(self.home.path());
        // What a developer has set for a server of his own is not part of the test.
        for name in ["SALTAPI_URL", "SALTAPI_USER", "SALTAPI_PASS", "SALTAPI_EAUTH", "PEPPERRC", "PEPPERCACHE"] {
            command.env_remove(name);
        }
        run_to_end(command, PATIENCE).await
    }

    /// Uses it and gives its exit code and the JSON documents it printed.
    pub async fn printed(&self, arguments: &[&str]) -> (i32, Vec<Value>) {
        let output = self.run(arguments).await;
        let text = String::from_utf8_lossy(&output.stdout);
        let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&text).into_iter().collect();
        let complaint = String::from_utf8_lossy(&output.stderr);
        match documents {
            Ok(documents) => (output.status.code().unwrap_or(-1), documents),
            Err(error) => panic!("`pepper {}` printed no JSON ({error}): {text}{complaint}", arguments.join(" ")),
        }
    }
}

/// An installed client of the HTTP API; says aloud where there is none.
pub fn installed(program: ClientProgram) -> Option<Client> {
    if tier::is_fast() {
        return None;
    }
    let client = Client::installed(program);
    if client.is_none() {
        tier::skip(program.program(), "`make setup` installs it");
    }
    client
}
