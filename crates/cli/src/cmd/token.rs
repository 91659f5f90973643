//! `saltern token`: what programs show instead of a password, and which log-ins are open.

use crate::args::{Format, Out};
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{self, when};
use crate::rules;
use clap::{Subcommand, ValueEnum};
use saltern_api::client::Client;
use saltern_api::shape::{NewToken, Token};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::process::ExitCode;
use std::time::Duration;

/// Manage tokens for programs, and open log-ins
///
/// A token may what its user may, and no more than its scope: read (see), operate (see and run), all.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    out: Out,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  saltern token create --name grafana --scope read --expires 365d
  SALTERN_TOKEN=$(saltern token create --user ci --name deploy --scope operate)
  curl -H \"X-Auth-Token: $SALTERN_TOKEN\" https://salt.example.org/api/v1/minions
  saltern token list
  saltern token delete 0123456789abcdef

The token alone goes to standard output, once; nobody can show it again.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List tokens and open log-ins: your own, or of everybody you look after
    List {
        /// Only of this user
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Make a token
    Create {
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        name: String,
        /// What it may at most
        #[arg(long, value_enum, default_value_t)]
        scope: Scope,
        /// How long it lasts
        #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = rules::time_span)]
        expires: Duration,
        /// Whose it is; your own unless told
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Take tokens back, or end log-ins, at once
    Delete {
        /// Ids, as `list` shows them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

/// What a token may at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// See
    Read,
    /// See and run
    Operate,
    /// Whatever its user may
    #[default]
    All,
}

impl Scope {
    const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::All => "all",
        }
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    match args.verb {
        Verb::List { user } => {
            let tokens = client.tokens(user.as_deref()).await?;
            output::show(format, &tokens, || table(&tokens, clock::now(), Style::of_stdout()))?;
        }
        Verb::Create { name, scope, expires, user } => {
            let wanted = NewToken { user, name, scope: scope.word().into(), lifetime: Some(expires.as_secs_f64()) };
            let made = client.create_token(&wanted).await?;
            if format == Format::Text {
                output::note(&told(&made.entry, clock::now()))?;
            }
            output::show(format, &made, || made.secret.clone())?;
        }
        Verb::Delete { ids } => {
            for id in ids {
                client.delete_token(&id).await?;
                output::line(&format!("Token {id} was deleted."))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// About a new token, beside the token.
fn told(token: &Token, now: Timestamp) -> String {
    let Token { id, user, scope, expires, .. } = token;
    format!("Token {id} of {user}, scope {scope}, until {}. It is shown only now:", when::when(expires.0, now))
}

fn table(tokens: &[Token], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["ID", "USER", "KIND", "SCOPE", "ENDS", "LAST USED", "FROM", "NAME"]);
    for token in tokens {
        table.row([
            token.id.clone(),
            token.user.clone(),
            token.kind.clone(),
            token.scope.clone(),
            when::ago(token.expires.0, now),
            token.last_used.map_or("never".into(), |used| when::ago(used.0, now)),
            token.origin.clone(),
            token.name.clone(),
        ]);
    }
    table.show("There is no token.", style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use saltern_api::shape::Time;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn token() -> Token {
        Token {
            id: "0123456789abcdef".into(),
            kind: "api".into(),
            user: "ci".into(),
            name: "deploy".into(),
            scope: "operate".into(),
            created: Time(NOW),
            expires: Time(Timestamp::from_secs(1_794_772_591 + 90 * 86_400)),
            last_used: None,
            origin: "control socket".into(),
        }
    }

    #[test]
    fn a_token_lasts_ninety_days_and_may_everything_unless_told() {
        let parse = |words: &[&str]| match Cli::try_parse_from(words).unwrap().command {
            Command::Token(Args { verb: Verb::Create { scope, expires, .. }, .. }) => (scope, expires.as_secs()),
            _ => panic!("not a token"),
        };
        assert_eq!(parse(&["saltern", "token", "create"]), (Scope::All, 90 * 86_400));
        assert_eq!(parse(&["saltern", "token", "create", "--scope", "read", "--expires", "1h"]), (Scope::Read, 3_600));
        assert!(Cli::try_parse_from(["saltern", "token", "create", "--scope", "some"]).is_err());
    }

    #[test]
    fn the_list_tells_what_each_is_good_for() {
        assert_eq!(
            table(&[token()], NOW, Style::PLAIN),
            "\
ID                USER  KIND  SCOPE    ENDS        LAST USED  FROM            NAME
0123456789abcdef  ci    api   operate  in 90 days  never      control socket  deploy"
        );
    }

    #[test]
    fn a_new_token_is_told_without_itself() {
        assert_eq!(
            told(&token(), NOW),
            "Token 0123456789abcdef of ci, scope operate, until 2027-02-13 19:56:31 UTC (in 90 days). It is shown only now:"
        );
    }
}
