//! What is to recur as it is typed: when, on what, what, and by which rules.

use crate::args::TargetKind;
use crate::failure::Failure;
use crate::params;
use crate::rules::{How, time_span};
use clap::ValueEnum;
use saltern_api::client::Client;
use saltern_api::shape::{CatchUp, EntityKind, Overlap, RecurringDraft, RecurringEntity, RecurringWhat};
use saltern_calendar::cron::Cron;
use saltern_calendar::zone::Zone;
use saltern_core::action::Policy;
use saltern_core::value::{Map, Value};
use std::time::Duration;

/// Let something recur
///
/// What is done is an action, TYPE with its parameters as for `saltern action create`, states, or a chain.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CreateArgs {
    /// What it is called; once on what it is done on
    pub(super) name: String,

    /// The type of the action that is done; `saltern action types` lists what there is
    #[arg(value_name = "TYPE")]
    kind: Option<String>,

    /// Its parameters as NAME=VALUE; a script's body may come from a file: body=@FILE
    #[arg(value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// When: minute hour day month weekday, with the second before them if there are six; @daily; H is a number of its own
    #[arg(long, value_name = "EXPRESSION", value_parser = cron)]
    cron: String,

    #[command(flatten)]
    on: On,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    times: Times,

    /// Make it, but do not let it recur yet
    #[arg(long)]
    inactive: bool,

    /// Make nothing: show the next times and whom they would hit
    #[arg(long)]
    pub(super) preview: bool,

    #[command(flatten)]
    how: How,
}

const EXAMPLES: &str = "\
Examples:
  saltern recurring create nightly --cron '30 2 * * *' --zone Europe/Prague --group web package_update
  saltern recurring create drift --cron '@hourly' --minion db1 --highstate --test
  saltern recurring create web --cron '0 6 * * MON-FRI' -G --target os:Debian --states nginx,certs
  saltern recurring create catalogue --cron 'H H(1-4) * * *' --org --assigned --spread 1h
  saltern recurring create patch --cron '0 3 * * SAT#2' --group web --chain patch-web --in-window
  saltern recurring create logs --cron '0 5 * * *' --target '*' script body=@rotate.sh --batch 10%

A weekday is 0 or 7 (Sunday) to 6, or a name. Six fields with a ? are read as Quartz does: there 1 is Sunday.";

/// Change what recurs
///
/// What is not given stays as it is. It is done as your work from then on.
#[derive(Debug, clap::Args)]
pub(super) struct EditArgs {
    /// Its number, or its name where only one is called so
    #[arg(value_name = "WHICH")]
    pub(super) which: String,

    /// Parameters that are to be different, as NAME=VALUE; the others stay
    #[arg(value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// Another name
    #[arg(long, value_name = "TEXT")]
    rename: Option<String>,

    /// When: minute hour day month weekday, with the second before them if there are six; @daily; H is a number of its own
    #[arg(long, value_name = "EXPRESSION", value_parser = cron)]
    cron: Option<String>,

    #[command(flatten)]
    on: On,

    /// The type of the action that is done from now on, with the parameters given here
    #[arg(long = "type", value_name = "TYPE", conflicts_with_all = ["chain", "highstate", "states", "assigned"])]
    kind: Option<String>,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    times: Times,

    /// Leave out minions that are outside of their maintenance window
    #[arg(long, conflicts_with = "in_window")]
    not_in_window: bool,

    /// Carry it out as usual: take off all rules below
    #[arg(long)]
    clear_rules: bool,

    #[command(flatten)]
    how: How,
}

/// What it is done on.
#[derive(Debug, Default, clap::Args)]
struct On {
    /// On this minion
    #[arg(long, value_name = "ID", conflicts_with_all = ["group", "org", "target"])]
    minion: Option<String>,

    /// On the minions that are in this group then
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["org", "target"])]
    group: Option<String>,

    /// On all minions of an organisation; your own unless told: --org=NAME
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "target")]
    org: Option<String>,

    /// On whom this means then: a shell pattern over ids, unless a target type is given
    #[arg(short, long, value_name = "TARGET")]
    target: Option<String>,

    #[command(flatten)]
    kind: TargetKind,
}

/// What is done, if that is no action of a type.
#[derive(Debug, Default, clap::Args)]
struct What {
    /// Launch this chain, by its number or name
    #[arg(long, value_name = "CHAIN", conflicts_with_all = ["highstate", "states", "assigned", "test"])]
    chain: Option<String>,

    /// Apply the highstate
    #[arg(long, conflicts_with_all = ["states", "assigned"])]
    highstate: bool,

    /// Apply these states
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', conflicts_with = "assigned")]
    states: Vec<String>,

    /// Apply the states that are assigned to each minion then
    #[arg(long)]
    assigned: bool,

    /// Only tell what states would change
    #[arg(long)]
    test: bool,
}

/// When, in more detail.
#[derive(Debug, Default, clap::Args)]
struct Times {
    /// The time zone of the expression, by its IANA name: UTC (unless told), Europe/Prague
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    zone: Option<String>,

    /// Spread the minions over this time, each always at the same place in it
    #[arg(long, value_name = "DURATION", value_parser = saltern_core::action::schedule::duration)]
    spread: Option<Duration>,

    /// Where an earlier time has not ended: leave the minion out (skip, unless told), let one more wait (queue), or do not look (allow)
    #[arg(long, value_name = "RULE", value_enum)]
    overlap: Option<OverlapRule>,

    /// Times that the server was not there for: none is done, the newest once (unless told), or all
    #[arg(long, value_name = "RULE", value_enum)]
    catch_up: Option<CatchUpRule>,

    /// With --catch-up all: only what is not older than this; 1d unless told
    #[arg(long, value_name = "DURATION", value_parser = time_span)]
    catch_up_limit: Option<Duration>,

    /// End everything so long after it was due, whatever happens: 5m, 2h30m, 1d
    #[arg(long, value_name = "DURATION", value_parser = time_span)]
    deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OverlapRule {
    Skip,
    Queue,
    Allow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CatchUpRule {
    None,
    Once,
    All,
}

impl CreateArgs {
    /// What it comes to. Chains and one's own organisation are looked up.
    pub(super) async fn draft(self, client: &Client) -> Result<RecurringDraft, Failure> {
        let Some(entity) = self.on.read(client).await? else {
            return Err(Failure::usage("say what it is done on: --minion, --group, --org or --target"));
        };
        let what = match (self.kind, self.what.read(client).await?) {
            (Some(kind), None) => {
                RecurringWhat { params: written(params::read(&kind, &self.params)?), kind: Some(kind), chain: None }
            }
            (None, Some(what)) => what,
            (Some(kind), Some(_)) => {
                return Err(Failure::usage(format!("do {kind:?}, or states, or a chain: not more than one of them")));
            }
            (None, None) => {
                return Err(Failure::usage("say what is done: TYPE, --highstate, --states, --assigned or --chain"));
            }
        };
        let mut draft = RecurringDraft {
            name: self.name,
            entity,
            what,
            cron: self.cron,
            zone: Zone::UTC.name().to_owned(),
            active: !self.inactive,
            spread: 0,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            catch_up_limit: 86_400,
            in_window: self.how.in_window(),
            deadline: None,
            policy: self.how.policy(),
        };
        self.times.apply(&mut draft);
        Ok(draft)
    }
}

impl EditArgs {
    /// Changes what was given.
    pub(super) async fn change(self, client: &Client, mut draft: RecurringDraft) -> Result<RecurringDraft, Failure> {
        let before = draft.clone();
        if let Some(name) = self.rename {
            draft.name = name;
        }
        if let Some(cron) = self.cron {
            draft.cron = cron;
        }
        if let Some(entity) = self.on.read(client).await? {
            draft.entity = entity;
        }
        match (self.kind, self.what.read(client).await?) {
            (Some(kind), _) => {
                let params = written(params::read(&kind, &self.params)?);
                draft.what = RecurringWhat { kind: Some(kind), chain: None, params };
            }
            (None, Some(what)) if self.params.is_empty() => draft.what = what,
            (None, Some(_)) => return Err(Failure::usage("parameters go with --type, or with what is done already")),
            (None, None) if !self.params.is_empty() => draft.what = merged(&draft.what, &self.params)?,
            (None, None) => {}
        }
        self.times.apply(&mut draft);
        draft.in_window = (draft.in_window || self.how.in_window()) && !self.not_in_window;
        let policy = self.how.policy();
        if self.clear_rules || policy != Policy::default() {
            draft.policy = policy;
        }
        if draft == before {
            return Err(Failure::usage("say what is to be changed").hint("`saltern recurring edit --help`"));
        }
        Ok(draft)
    }
}

impl On {
    async fn read(&self, client: &Client) -> Result<Option<RecurringEntity>, Failure> {
        let of = |kind, subject: &str| Some(RecurringEntity { kind, subject: subject.to_owned() });
        if self.target.is_none() && self.kind.is_given() {
            return Err(Failure::usage("a target type says how to read --target: give that, too"));
        }
        if let Some(target) = &self.target {
            return Ok(of(EntityKind::Target, &self.kind.compound(target)));
        }
        if let Some(minion) = &self.minion {
            return Ok(of(EntityKind::Minion, minion));
        }
        if let Some(group) = &self.group {
            return Ok(of(EntityKind::Group, group));
        }
        Ok(match self.org.as_deref() {
            Some("") => of(EntityKind::Org, &own_org(client.me().await?.org)),
            Some(org) => of(EntityKind::Org, org),
            None => None,
        })
    }
}

impl What {
    async fn read(&self, client: &Client) -> Result<Option<RecurringWhat>, Failure> {
        if let Some(chain) = &self.chain {
            let chain = client.chain(chain).await?.chain.id;
            return Ok(Some(RecurringWhat { chain: Some(chain), ..RecurringWhat::default() }));
        }
        self.states()
    }

    fn states(&self) -> Result<Option<RecurringWhat>, Failure> {
        let mut params = Map::new();
        if !self.states.is_empty() {
            let states: Vec<&str> = self.states.iter().map(|state| state.trim()).collect();
            if states.iter().any(|state| state.is_empty()) {
                return Err(Failure::usage("--states takes names with commas between them"));
            }
            params.push("mods", Value::list(states));
        } else if self.assigned {
            params.push("assigned", true);
        } else if !self.highstate {
            return match self.test {
                true => Err(Failure::usage("--test goes with --highstate, --states or --assigned")),
                false => Ok(None),
            };
        }
        if self.test {
            params.push("test", true);
        }
        Ok(Some(RecurringWhat { kind: Some("states".into()), chain: None, params: written(params) }))
    }
}

impl Times {
    fn apply(self, draft: &mut RecurringDraft) {
        if let Some(zone) = self.zone {
            draft.zone = zone;
        }
        if let Some(spread) = self.spread {
            draft.spread = spread.as_secs();
        }
        if let Some(overlap) = self.overlap {
            draft.overlap = match overlap {
                OverlapRule::Skip => Overlap::Skip,
                OverlapRule::Queue => Overlap::Queue,
                OverlapRule::Allow => Overlap::Allow,
            };
        }
        if let Some(catch_up) = self.catch_up {
            draft.catch_up = match catch_up {
                CatchUpRule::None => CatchUp::None,
                CatchUpRule::Once => CatchUp::Once,
                CatchUpRule::All => CatchUp::All,
            };
        }
        if let Some(limit) = self.catch_up_limit {
            draft.catch_up_limit = limit.as_secs();
        }
        if let Some(deadline) = self.deadline {
            draft.deadline = Some(deadline.as_secs());
        }
    }
}

/// One's own organisation. Whoever comes through the control socket is nobody's in particular, and means the first there was.
fn own_org(org: String) -> String {
    if org.is_empty() { "default".to_owned() } else { org }
}

/// An expression that fires at some time; its place in the text is in the error.
fn cron(text: &str) -> Result<String, String> {
    // What `H` stands for does not matter here.
    Cron::parse(text, "").map(|cron| cron.text().to_owned()).map_err(|error| error.to_string())
}

fn zone(text: &str) -> Result<String, String> {
    Zone::parse(text).map(|zone| zone.name().to_owned()).map_err(|error| error.to_string())
}

/// Parameters as they go into a request: none are nothing.
fn written(params: Map) -> Value {
    if params.is_empty() { Value::Nil } else { params.into() }
}

fn merged(what: &RecurringWhat, words: &[String]) -> Result<RecurringWhat, Failure> {
    let Some(kind) = &what.kind else {
        return Err(Failure::usage("a chain is launched, and its parameters are its own")
            .hint("`saltern recurring apply` can give others, by step"));
    };
    let mut params = what.params.as_map().cloned().unwrap_or_default();
    for (name, value) in params::read(kind, words)? {
        params.insert(name, value);
    }
    Ok(RecurringWhat { params: written(params), ..what.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::cmd::recurring::Verb;
    use clap::Parser;

    fn verb(words: &[&str]) -> Result<Verb, String> {
        let cli =
            Cli::try_parse_from(["saltern", "recurring"].iter().chain(words)).map_err(|error| error.to_string())?;
        match cli.command {
            Command::Recurring(args) => Ok(args.verb),
            _ => panic!("not recurring"),
        }
    }

    /// A client that there is nothing behind: what is read without it asks nobody.
    fn client() -> Client {
        Client::new(saltern_api::client::Endpoint::Control("/does/not/exist".into()))
    }

    async fn create(words: &[&str]) -> Result<RecurringDraft, String> {
        match verb(&[&["create", "n", "--cron", "30 2 * * *"], words].concat())? {
            Verb::Create(args) => args.draft(&client()).await.map_err(|failure| failure.to_string()),
            _ => panic!("not a create"),
        }
    }

    #[tokio::test]
    async fn an_action_of_a_type_recurs_on_a_group() {
        let words = ["--group", "web", "package_install", "packages=vim", "--zone", "europe/prague", "--spread", "30m"];
        let more = ["--overlap", "queue", "--catch-up", "all", "--catch-up-limit", "6h", "--in-window", "-b", "10%"];
        let draft = create(&[&words[..], &more].concat()).await.unwrap();
        assert_eq!(draft.entity, RecurringEntity { kind: EntityKind::Group, subject: "web".into() });
        assert_eq!(draft.what.kind.as_deref(), Some("package_install"));
        assert_eq!(draft.what.params, Value::map([("packages", "vim")]));
        assert_eq!((draft.zone.as_str(), draft.spread), ("Europe/Prague", 1_800));
        assert_eq!((draft.overlap, draft.catch_up, draft.catch_up_limit), (Overlap::Queue, CatchUp::All, 21_600));
        assert!(draft.in_window && draft.active && draft.policy.batch.is_some());
    }

    #[tokio::test]
    async fn states_are_the_highstate_or_named_or_assigned() {
        for (words, params) in [
            (&["--highstate"][..], Value::Nil),
            (&["--states", "a,b"], Value::map([("mods", Value::list(["a", "b"]))])),
            (&["--assigned", "--test"], Value::map([("assigned", true), ("test", true)])),
        ] {
            let draft = create(&[&["--org=north"], words].concat()).await.unwrap();
            assert_eq!(draft.entity, RecurringEntity { kind: EntityKind::Org, subject: "north".into() });
            assert_eq!((draft.what.kind.as_deref(), draft.what.params), (Some("states"), params));
        }
    }

    #[tokio::test]
    async fn a_target_is_a_compound_one() {
        let draft = create(&["-G", "-t", "os:Debian", "--highstate", "--inactive"]).await.unwrap();
        assert_eq!(draft.entity, RecurringEntity { kind: EntityKind::Target, subject: "G@os:Debian".into() });
        assert!(!draft.active);
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_refused() {
        for words in [
            &["--highstate"][..],
            &["--minion", "a"],
            &["--minion", "a", "--group", "b", "--highstate"],
            &["--minion", "a", "reboot", "--highstate"],
            &["--minion", "a", "--highstate", "--assigned"],
            &["--minion", "a", "reboot", "--test"],
            &["--minion", "a", "--chain", "x", "--test"],
            &["--minion", "a", "--states", "a,,b"],
            &["--minion", "a", "-G", "--highstate"],
            &["--minion", "a", "reboot", "--zone", "Europe/Pragu"],
            &["--minion", "a", "reboot", "--overlap", "pile"],
        ] {
            assert!(create(words).await.is_err(), "{words:?}");
        }
        let bad = verb(&["create", "n", "--cron", "61 * * * *", "--minion", "a", "reboot"]).unwrap_err();
        assert!(bad.contains("minute") && bad.contains("column 1"), "{bad}");
    }

    #[tokio::test]
    async fn an_edit_keeps_what_it_does_not_name() {
        let known = crate::cmd::recurring::show::tests::recurring();
        let edit = async |words: &[&str]| {
            let Verb::Edit(args) = verb(&[&["edit", "7"], words].concat())? else { panic!("not an edit") };
            let draft = RecurringDraft::of(&known);
            args.change(&client(), draft).await.map_err(|failure| failure.to_string())
        };
        let draft = edit(&["--cron", "0 3 * * *", "test=true", "--in-window"]).await.unwrap();
        assert_eq!((draft.cron.as_str(), draft.zone.as_str(), draft.in_window), ("0 3 * * *", "Europe/Prague", true));
        let params = Value::map([("mods", Value::list(["nginx"])), ("test", true.into())]);
        assert_eq!(draft.what.params, params);
        let draft = edit(&["--type", "reboot", "--batch", "1"]).await.unwrap();
        assert_eq!((draft.what.kind.as_deref(), draft.what.params.is_nil()), (Some("reboot"), true));
        assert!(draft.policy.batch.is_some());
        assert!(edit(&[]).await.is_err());
        assert!(edit(&["--highstate", "test=true"]).await.is_err());
    }
}
