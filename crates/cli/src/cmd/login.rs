//! `saltern login`, `saltern logout`, `saltern whoami`: who one is at a server.

use crate::args::Out;
use crate::failure::Failure;
use crate::logins::{Login, Logins};
use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::{self, when};
use crate::password;
use crate::server::{Whereabouts, warn_of_listeners};
use saltern_api::client::{Client, ClientError, Endpoint, ServerUrl};
use saltern_api::login::Secret;
use saltern_api::shape::{LogIn, Me};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::process::ExitCode;

/// Log in to a server, from any machine
///
/// Asks for the password without showing it and keeps what the server gives for it in ~/.config/saltern/logins.json, which
/// only you can read. From then on commands speak to that server, unless --url, --data-dir or a server on this machine says
/// otherwise. On the server's own machine no log-in is needed: whoever may open its control socket is the administrator.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoginArgs {
    /// The server's URL
    #[arg(value_name = "URL")]
    server: String,

    /// The name to log in with; that of the last time, or of your account here, unless told
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// What checks the password: local, pam, ldap, file, sharedsecret; whatever knows the name unless told
    #[arg(long, value_name = "AUTH", default_value = "auto", hide_default_value = true)]
    auth: String,

    /// Read the password from the first line of standard input
    #[arg(long)]
    password_stdin: bool,

    #[command(flatten)]
    out: Out,
}

const EXAMPLES: &str = "\
Examples:
  saltern login https://salt.example.org:8000 --user ann
  saltern login https://salt.example.org --ca-file our-ca.pem --auth ldap
  pass show salt | saltern login https://salt.example.org --user ann --password-stdin

A password in the variable SALTERN_PASSWORD is taken instead of asking. Programs do better with a token of their own:
`saltern token create`, then SALTERN_URL and SALTERN_TOKEN.";

/// End a log-in
#[derive(Debug, clap::Args)]
pub(crate) struct LogoutArgs {
    /// The server's URL; the one that was last logged in to unless told
    #[arg(value_name = "URL")]
    server: Option<String>,
}

/// Show who you are at the server, and what you may
#[derive(Debug, clap::Args)]
pub(crate) struct WhoamiArgs {
    #[command(flatten)]
    out: Out,
}

/// The variable that a password may be in.
const PASSWORD_VARIABLE: &str = "SALTERN_PASSWORD";

pub(crate) async fn log_in(args: LoginArgs, given: &Whereabouts) -> Result<ExitCode, Failure> {
    let (url, logins) = (read_url(&args.server)?, Logins::of_user()?);
    let known = logins.find(&url)?;
    let user = args.user.clone().or_else(|| known.as_ref().map(|login| login.user.clone())).or_else(account);
    let user = user.ok_or_else(|| Failure::usage("say who you are with --user"))?;
    // A relative path would mean another file in another directory.
    let ca_file = given.ca_file().or_else(|| known.and_then(|login| login.ca_file));
    let ca_file = ca_file.map(std::path::absolute).transpose();
    let ca_file = ca_file.map_err(|error| Failure::usage(format!("--ca-file: {error}")))?;
    warn_of_listeners(&url)?;
    let password = read_password(&args, &url, &user)?;
    let client = Client::new(Endpoint::Remote { url: url.clone(), token: None, ca_file: ca_file.clone() });
    let wanted = LogIn { user, password: password.reveal().to_owned(), auth: args.auth };
    let logged_in = client.log_in(&wanted).await.map_err(refused)?;
    let told = serde_json::json!({ "url": url.to_string(), "user": logged_in.user, "expires": logged_in.expires });
    let (user, expires) = (logged_in.user, logged_in.expires);
    let token = Secret::from(logged_in.token);
    logins.keep(Login { url: url.clone(), user: user.clone(), token, expires, ca_file })?;
    output::show(args.out.format, &told, || {
        format!("You are {user} at {url}, until {}.", when::when(expires.0, clock::now()))
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn log_out(args: LogoutArgs, given: &Whereabouts) -> Result<ExitCode, Failure> {
    let logins = Logins::of_user()?;
    let url = args.server.as_deref().map(read_url).transpose()?;
    let login = match url.map_or_else(|| given.url(), |url| Ok(Some(url)))? {
        Some(url) => logins.find(&url)?.ok_or_else(|| Failure::new(format!("there is no log-in at {url}")))?,
        None => logins.last()?.ok_or_else(|| Failure::new("there is no log-in"))?,
    };
    let ca_file = given.ca_file().or(login.ca_file);
    let client = Client::new(Endpoint::Remote { url: login.url.clone(), token: Some(login.token), ca_file });
    match client.log_out().await {
        // It has ended by itself.
        Ok(()) | Err(ClientError::NotLoggedIn { .. }) => {}
        Err(error) => {
            let failure = Failure::from(error);
            output::note(&format!("saltern: {failure}; the log-in is forgotten here, and ends there by itself"))?;
        }
    }
    logins.forget(&login.url)?;
    output::line(&format!("Logged out of {}.", login.url))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn who_am_i(args: WhoamiArgs, client: Client) -> Result<ExitCode, Failure> {
    let me = client.me().await?;
    let place = match client.endpoint() {
        Endpoint::Control(path) => path.display().to_string(),
        Endpoint::Remote { url, .. } => url.to_string(),
    };
    output::show(args.out.format, &me, || me_text(&me, &place, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn me_text(me: &Me, place: &str, now: Timestamp, style: Style) -> String {
    let mut known = vec![("Server", place.to_owned())];
    if !me.org.is_empty() {
        known.push(("Organisation", me.org.clone()));
    }
    let roles = match &me.user {
        Some(user) => user.roles.join(", "),
        None if me.server_admin => "server-admin".into(),
        None => "those of external_auth".into(),
    };
    known.push(("Roles", roles));
    known.push(("Scope", me.scope.clone()));
    known.push(("Logged in by", me.auth.clone().unwrap_or_else(|| "the control socket".into())));
    if let Some(expires) = me.expires {
        known.push(("Until", when::when(expires.0, now)));
    }
    fields(&me.name, &known, style)
}

/// Not read by clap, which would repeat what is wrong, and a password in it.
fn read_url(text: &str) -> Result<ServerUrl, Failure> {
    ServerUrl::parse(text).map_err(|error| Failure::usage(error.to_string()))
}

fn read_password(args: &LoginArgs, url: &ServerUrl, user: &str) -> Result<Secret, Failure> {
    if args.password_stdin {
        return password::from_stdin();
    }
    if let Some(password) = std::env::var(PASSWORD_VARIABLE).ok().filter(|password| !password.is_empty()) {
        return Ok(password.into());
    }
    let prompt = format!("Password of {user} at {url}: ");
    password::ask(&prompt, "give it with --password-stdin or SALTERN_PASSWORD")
}

/// The name of the account that runs this.
fn account() -> Option<String> {
    ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()))
}

/// A refused log-in needs no advice to log in.
fn refused(error: ClientError) -> Failure {
    match error {
        ClientError::NotLoggedIn { url, .. } => {
            Failure::new(format!("{url} does not take this name and password")).hint("see --user and --auth")
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;
    use saltern_api::shape::{Time, User};

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn me() -> Me {
        Me {
            name: "ann".into(),
            org: "default".into(),
            server_admin: false,
            org_admin: false,
            scope: "read".into(),
            user: None,
            auth: Some("pam".into()),
            expires: Some(Time(Timestamp::from_secs(1_794_772_591 + 7_200))),
        }
    }

    #[test]
    fn one_sees_who_one_is() {
        let user = User {
            name: "ann".into(),
            org: "default".into(),
            auth: "pam".into(),
            full_name: String::new(),
            disabled: false,
            roles: vec!["operator:web".into(), "reader".into()],
            created: Time(NOW),
            version: 1,
        };
        let me = Me { user: Some(user), ..me() };
        assert_eq!(
            me_text(&me, "https://salt.example.org", NOW, Style::PLAIN),
            "\
ann:
    Server        https://salt.example.org
    Organisation  default
    Roles         operator:web, reader
    Scope         read
    Logged in by  pam
    Until         2026-11-15 21:56:31 UTC (in 2 h)"
        );
    }

    #[test]
    fn on_the_control_socket_one_is_the_administrator() {
        let me = Me { server_admin: true, org: String::new(), auth: None, expires: None, scope: "all".into(), ..me() };
        let text = me_text(&me, "/var/lib/saltern/control.sock", NOW, Style::PLAIN);
        assert!(text.contains("Roles         server-admin\n") && text.ends_with("the control socket"), "{text}");
    }

    #[test]
    fn a_log_in_needs_a_url() {
        let parses = |words: &[&str]| Cli::try_parse_from(words).is_ok();
        assert!(parses(&["saltern", "login", "https://salt.example.org", "--user", "ann", "--auth", "ldap"]));
        assert!(!parses(&["saltern", "login"]) && parses(&["saltern", "logout"]));
        assert!(read_url("salt.example.org").is_err());
    }

    #[test]
    fn a_password_in_the_url_is_not_repeated() {
        let failure = read_url("https://ann:hunter2@salt.example.org").unwrap_err().to_string();
        assert!(failure.contains("saltern login") && !failure.contains("hunter2"), "{failure}");
    }
}
