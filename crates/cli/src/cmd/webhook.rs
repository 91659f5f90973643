//! `saltern webhook`: events sent elsewhere, and what did not arrive.

mod show;

use crate::args::{Format, Out};
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::output::style::Style;
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::shape::{NewWebhook, Redelivery, Webhook, WebhookChange, WebhookFilter};
use saltern_server::clock;
use std::process::ExitCode;

/// Send events to other programs
///
/// A webhook gets each event that its owner may see and that its filter lets through, as JSON in a signed POST request, in
/// order, again and again until it arrives. What does not arrive in the end is kept and can be sent again.
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
  saltern webhook create chat https://chat.example.org/hooks/7 --tag 'salt/job/*/ret/*'
  saltern webhook test chat
  saltern webhook list
  saltern webhook dead chat
  saltern webhook redeliver chat --all
  saltern webhook replay chat --from 1200
  saltern webhook change chat --inactive

A webhook is named by its number or its name. Its secret goes alone to standard output when it is made, once.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List webhooks
    List,
    /// Show a webhook, and how far it has got
    Show(Which),
    /// Make a webhook, which begins with the next event
    Create {
        /// What it is called
        name: String,
        /// Where events are sent to: http or https
        #[arg(value_name = "RECEIVER")]
        receiver: String,
        #[command(flatten)]
        filter: Filter,
        /// Read what events are signed with from the first line of standard input, instead of making it
        #[arg(long)]
        secret_stdin: bool,
        /// Whose it is: it gets what this user may see; your own unless told
        #[arg(long, value_name = "USER")]
        owner: Option<String>,
        /// Begin only when it is activated
        #[arg(long)]
        inactive: bool,
    },
    /// Change a webhook
    Change {
        #[command(flatten)]
        which: Which,
        /// What it is called
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Where events are sent to
        #[arg(long, value_name = "RECEIVER")]
        receiver: Option<String>,
        #[command(flatten)]
        filter: Filter,
        /// Every event that the owner may see
        #[arg(long, conflicts_with_all = ["tag", "jid", "action", "minion"])]
        no_filter: bool,
        /// Read what events are signed with from the first line of standard input
        #[arg(long)]
        secret_stdin: bool,
        /// Whose it is
        #[arg(long, value_name = "USER")]
        owner: Option<String>,
        /// Let it go on where it stopped
        #[arg(long, conflicts_with = "inactive")]
        active: bool,
        /// Send nothing
        #[arg(long)]
        inactive: bool,
    },
    /// Remove a webhook, with what did not arrive
    Delete(Which),
    /// List the events that did not arrive
    Dead(Which),
    /// Send again what did not arrive
    Redeliver {
        #[command(flatten)]
        which: Which,
        /// The numbers of the events
        #[arg(value_name = "EVENT", required_unless_present = "all", conflicts_with = "all")]
        events: Vec<i64>,
        /// Every one there is
        #[arg(long)]
        all: bool,
    },
    /// Go on from an event, whether it was sent or not
    Replay {
        #[command(flatten)]
        which: Which,
        /// The number of the first event
        #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(i64).range(1..))]
        from: i64,
    },
    /// Send an event that never happened, and show what the receiver answers
    Test(Which),
}

/// One webhook.
#[derive(Debug, clap::Args)]
struct Which {
    /// The webhook's number or name
    #[arg(value_name = "WEBHOOK")]
    which: String,
}

/// Which events are sent.
#[derive(Debug, Default, clap::Args)]
struct Filter {
    /// Only events whose tag matches this shell pattern
    #[arg(long, value_name = "PATTERN")]
    tag: Option<String>,
    /// Only events of this job
    #[arg(long, value_name = "JID")]
    jid: Option<String>,
    /// Only events of this action
    #[arg(long, value_name = "ID")]
    action: Option<i64>,
    /// Only events of minions whose id matches this shell pattern
    #[arg(long, value_name = "PATTERN")]
    minion: Option<String>,
}

impl Filter {
    fn get(self) -> WebhookFilter {
        WebhookFilter { tag: self.tag, jid: self.jid, action: self.action, minion: self.minion }
    }
}

impl Which {
    async fn find(&self, client: &Client) -> Result<Webhook, Failure> {
        if let Ok(id) = self.which.parse() {
            return Ok(client.webhook(id).await?);
        }
        named(client.webhooks().await?, &self.which)
    }
}

/// The one webhook of that name: names need not differ.
fn named(webhooks: Vec<Webhook>, name: &str) -> Result<Webhook, Failure> {
    let mut found = webhooks.into_iter().filter(|webhook| webhook.name == name);
    match (found.next(), found.next()) {
        (Some(webhook), None) => Ok(webhook),
        (None, _) => {
            Err(Failure::new(format!("there is no webhook {name:?}")).hint("`saltern webhook list` shows them"))
        }
        (Some(_), Some(_)) => {
            Err(Failure::new(format!("several webhooks are called {name:?}")).hint("give the number"))
        }
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    let style = Style::of_stdout();
    match args.verb {
        Verb::List => {
            let webhooks = client.webhooks().await?;
            output::show(format, &webhooks, || show::table(&webhooks, style))?;
        }
        Verb::Show(which) => {
            let webhook = which.find(&client).await?;
            output::show(format, &webhook, || show::detail(&webhook, clock::now(), style))?;
        }
        Verb::Create { name, receiver, filter, secret_stdin, owner, inactive } => {
            let (secret, filter) = (secret(secret_stdin)?, filter.get());
            let wanted = NewWebhook { name, url: receiver, secret, filter, active: !inactive, owner };
            let made = client.create_webhook(&wanted).await?;
            if format == Format::Text {
                let (id, name) = (made.webhook.id, &made.webhook.name);
                output::note(&format!("Webhook {id} ({name}) was made. Its secret is shown only now:"))?;
            }
            output::show(format, &made, || made.secret.clone())?;
        }
        Verb::Change { which, name, receiver, filter, no_filter, secret_stdin, owner, active, inactive } => {
            let filter = filter.get();
            let filter = (no_filter || filter != WebhookFilter::default()).then_some(filter);
            let active = (active || inactive).then_some(active);
            let change = WebhookChange { name, url: receiver, secret: secret(secret_stdin)?, filter, active, owner };
            if serde_json::to_value(&change).is_ok_and(|change| change == serde_json::json!({})) {
                return Err(Failure::usage("say what is to be changed").hint("`saltern webhook change --help`"));
            }
            let known = which.find(&client).await?;
            let webhook = client.change_webhook(known.id, known.version, &change).await?;
            output::show(format, &webhook, || show::detail(&webhook, clock::now(), style))?;
        }
        Verb::Delete(which) => {
            let Webhook { id, name, version, .. } = which.find(&client).await?;
            client.delete_webhook(id, version).await?;
            output::line(&format!("Webhook {id} ({name}) was deleted."))?;
        }
        Verb::Dead(which) => {
            let dead = client.dead_deliveries(which.find(&client).await?.id).await?;
            output::show(format, &dead, || show::dead(&dead, clock::now(), style))?;
        }
        Verb::Redeliver { which, events, all } => {
            let Webhook { id, name, .. } = which.find(&client).await?;
            let events = (!all).then_some(events);
            client.redeliver(id, &Redelivery { events, all }).await?;
            output::line(&format!("They are being sent again; `saltern webhook dead {name}` shows what is left."))?;
        }
        Verb::Replay { which, from } => {
            let webhook = client.replay(which.find(&client).await?.id, from).await?;
            output::show(format, &webhook, || format!("Webhook {} goes on from event {from}.", webhook.name))?;
        }
        Verb::Test(which) => {
            let test = client.test_webhook(which.find(&client).await?.id).await?;
            output::show(format, &test, || show::test(&test))?;
            return Ok(ExitCode::from(if test.error.is_none() { 0 } else { FAILED }));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn secret(from_stdin: bool) -> Result<Option<String>, Failure> {
    from_stdin.then(|| crate::password::from_stdin().map(|secret| secret.reveal().to_owned())).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    fn parses(words: &[&str]) -> bool {
        Cli::try_parse_from(["saltern", "webhook"].iter().chain(words)).is_ok()
    }

    #[test]
    fn a_webhook_has_a_receiver_and_a_filter() {
        assert!(parses(&["create", "chat", "https://x", "--tag", "salt/*", "--minion", "web*", "--inactive"]));
        assert!(!parses(&["create", "chat"]));
        assert!(!parses(&["change", "chat", "--tag", "x", "--no-filter"]));
        assert!(!parses(&["change", "chat", "--active", "--inactive"]));
    }

    #[test]
    fn what_is_sent_again_is_named() {
        assert!(parses(&["redeliver", "7", "12", "13"]) && parses(&["redeliver", "chat", "--all"]));
        assert!(!parses(&["redeliver", "7"]) && !parses(&["redeliver", "7", "12", "--all"]));
        assert!(parses(&["replay", "7", "--from", "12"]) && !parses(&["replay", "7"]));
    }

    #[test]
    fn a_name_means_one_webhook() {
        let webhooks =
            || vec![show::tests::webhook(1, "chat"), show::tests::webhook(2, "log"), show::tests::webhook(3, "log")];
        assert_eq!(named(webhooks(), "chat").unwrap().id, 1);
        assert!(named(webhooks(), "log").unwrap_err().to_string().contains("give the number"));
        assert!(named(webhooks(), "x").is_err());
    }
}
