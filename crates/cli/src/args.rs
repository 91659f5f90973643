//! The command line: the tree of commands and what several of them share.

use crate::failure::Failure;
use crate::server::Whereabouts;
use crate::{arguments, cmd};
use clap::{Args, Parser, Subcommand, ValueEnum};
use saltern_api::client::TargetQuery;
use saltern_core::target::TargetType;
use saltern_core::value::Value;

/// Runs jobs on fleets of machines and never loses track of one.
///
/// `saltern serve` is a server that salt-minions connect to as they are. All other commands speak to one: to that of this
/// machine through its data directory, where whoever may open the control socket is the administrator, or to any other by its
/// URL after `saltern login`.
#[derive(Debug, Parser)]
#[command(name = "saltern", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) server: Whereabouts,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  saltern up                                       a server and minions to try things with
  saltern serve                                    the server
  saltern key list                                 who has asked to be let in
  saltern key accept 'web*'                        let them in
  saltern run '*' test.ping                        ask everybody
  saltern job list                                 what was run lately
  saltern action create reboot web1 --at +1h       and much more: when, how many at once, what if it fails
  saltern chain launch patch-web --target 'web*'   many steps, across reboots, each minion at its own pace
  saltern recurring create nightly --cron '30 2 * * *' --group web package_update
  saltern window next web1                         when it may be changed
  saltern user create ann --role operator          who may what
  saltern login https://salt.example.org           from another machine

Exit codes: 0 all is well, 1 something failed, 2 wrong usage, 3 no server answers, 130 interrupted.";

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(cmd::up::Args),
    Serve(cmd::serve::Args),
    Run(cmd::run::Args),
    Key(cmd::key::Args),
    Minion(cmd::minion::Args),
    Call(cmd::call::Args),
    Action(cmd::action::Args),
    Chain(cmd::chain::Args),
    Recurring(cmd::recurring::Args),
    Window(cmd::window::Args),
    Job(cmd::job::Args),
    Event(cmd::event::Args),
    Function(cmd::function::Args),
    Login(cmd::login::LoginArgs),
    Logout(cmd::login::LogoutArgs),
    Whoami(cmd::login::WhoamiArgs),
    User(cmd::user::Args),
    Group(cmd::group::Args),
    Org(cmd::org::Args),
    State(cmd::state::Args),
    Token(cmd::token::Args),
    Audit(cmd::audit::Args),
    Webhook(cmd::webhook::Args),
    Doctor(cmd::doctor::Args),
    Swarm(cmd::swarm::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

/// How a command shows what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// For programs and people
    Yaml,
}

/// The option for it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Out {
    /// How to show it
    #[arg(long = "out", global = true, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// How a target is to be read: as a shell pattern over ids, unless one of these is given.
#[derive(Clone, Debug, Default, Args)]
#[group(multiple = false)]
pub(crate) struct TargetKind {
    /// TARGET is a regular expression over ids: 'web[0-9]+'
    #[arg(short = 'E', long, help_heading = "Target types")]
    pcre: bool,
    /// TARGET is a list of ids: web1,web2
    #[arg(short = 'L', long, help_heading = "Target types")]
    list: bool,
    /// TARGET is a grain and a pattern: 'os:Debian'
    #[arg(short = 'G', long, help_heading = "Target types")]
    grain: bool,
    /// TARGET is a grain and a regular expression: 'os:Deb.*'
    #[arg(short = 'P', long, help_heading = "Target types")]
    grain_pcre: bool,
    /// TARGET is a pillar key and a pattern: 'role:db'
    #[arg(short = 'I', long, help_heading = "Target types")]
    pillar: bool,
    /// TARGET is a pillar key and a regular expression: 'role:db|web'
    #[arg(short = 'J', long, help_heading = "Target types")]
    pillar_pcre: bool,
    /// TARGET is an address or a network: 10.0.0.0/8
    #[arg(short = 'S', long, help_heading = "Target types")]
    ipcidr: bool,
    /// TARGET joins words of the other types: 'G@os:Debian and not web*'
    #[arg(short = 'C', long, help_heading = "Target types")]
    compound: bool,
    /// TARGET is a group of the server's configuration
    #[arg(short = 'N', long, help_heading = "Target types")]
    nodegroup: bool,
}

/// How keys are separated in a target.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Delimiter {
    /// What separates keys in a grain or pillar target, if not ':'
    #[arg(long, value_name = "CHAR", help_heading = "Target types")]
    delimiter: Option<String>,
}

impl TargetKind {
    /// The type that was asked for.
    pub(crate) fn kind(&self) -> TargetType {
        let given = [
            (self.pcre, TargetType::Pcre),
            (self.list, TargetType::List),
            (self.grain, TargetType::Grain),
            (self.grain_pcre, TargetType::GrainPcre),
            (self.pillar, TargetType::Pillar),
            (self.pillar_pcre, TargetType::PillarPcre),
            (self.ipcidr, TargetType::Ipcidr),
            (self.compound, TargetType::Compound),
            (self.nodegroup, TargetType::Nodegroup),
        ];
        given.into_iter().find(|(set, _)| *set).map_or(TargetType::Glob, |(_, kind)| kind)
    }

    /// Whether a type was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.kind() != TargetType::Glob
    }

    /// The expression, as it goes into a request: a list target is a list.
    pub(crate) fn expression(&self, target: &str) -> Value {
        if !self.list {
            return target.into();
        }
        let separator = if target.contains(',') { |c: char| c == ',' } else { char::is_whitespace };
        Value::list(target.split(separator).map(str::trim).filter(|id| !id.is_empty()))
    }

    /// The expression as a word of a compound target, for what takes nothing else.
    pub(crate) fn compound(&self, target: &str) -> String {
        let letter = match self.kind() {
            TargetType::Glob | TargetType::Compound | TargetType::CompoundPillarExact => return target.to_owned(),
            TargetType::Pcre => 'E',
            TargetType::List => {
                let expression = self.expression(target);
                let ids: Vec<&str> =
                    expression.as_list().unwrap_or_default().iter().filter_map(Value::as_str).collect();
                return format!("L@{}", ids.join(","));
            }
            TargetType::Grain => 'G',
            TargetType::GrainPcre => 'P',
            TargetType::Pillar | TargetType::PillarExact => 'I',
            TargetType::PillarPcre => 'J',
            TargetType::Ipcidr => 'S',
            TargetType::Nodegroup => 'N',
            TargetType::Range => 'R',
        };
        format!("{letter}@{target}")
    }

    /// The target of a list of minions.
    pub(crate) fn query(&self, target: &str, delimiter: &Delimiter) -> TargetQuery {
        TargetQuery {
            tgt: target.to_owned(),
            tgt_type: self.kind().as_str().to_owned(),
            delimiter: delimiter.get().map(str::to_owned),
        }
    }
}

impl Delimiter {
    pub(crate) fn get(&self) -> Option<&str> {
        self.delimiter.as_deref()
    }
}

/// Metadata as it is typed.
pub(crate) fn metadata(text: Option<&str>) -> Result<Value, Failure> {
    match text.map_or(Value::Nil, arguments::value) {
        map @ (Value::Nil | Value::Map(_)) => Ok(map),
        _ => Err(Failure::usage("--metadata must be a map: '{name: value}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_list_is_split_at_commas_and_else_at_blanks() {
        let list = TargetKind { list: true, ..TargetKind::default() };
        assert_eq!(list.expression("a, b,c"), Value::list(["a", "b", "c"]));
        assert_eq!(list.expression("a b"), Value::list(["a", "b"]));
        assert_eq!(TargetKind::default().expression("a,b"), Value::from("a,b"));
    }

    #[test]
    fn every_type_is_a_word_of_a_compound_target() {
        assert_eq!(TargetKind::default().compound("web*"), "web*");
        assert_eq!(TargetKind { list: true, ..TargetKind::default() }.compound("a, b"), "L@a,b");
        assert_eq!(TargetKind { grain: true, ..TargetKind::default() }.compound("os:Debian"), "G@os:Debian");
        let compound = TargetKind { compound: true, ..TargetKind::default() };
        assert_eq!(compound.compound("G@os:Debian and web*"), "G@os:Debian and web*");
    }

    #[test]
    fn options_may_stand_anywhere() {
        let cli =
            Cli::try_parse_from(["saltern", "run", "-t", "5", "*", "test.ping", "--out", "json", "-1", "a=b"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not a run") };
        assert_eq!(run.words(), ["-1", "a=b"]);
    }

    #[test]
    fn a_target_has_one_type() {
        assert!(Cli::try_parse_from(["saltern", "run", "-G", "-E", "x", "test.ping"]).is_err());
    }
}
