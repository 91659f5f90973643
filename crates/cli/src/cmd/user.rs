//! `saltern user`: people, their organisations and roles.

use crate::args::Out;
use crate::failure::Failure;
use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{self, when};
use crate::password;
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::login::Secret;
use saltern_api::shape::{NewUser, PasswordChange, User, UserChange};
use saltern_core::access::Grant;
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::process::ExitCode;

/// Manage people and what they may
///
/// Roles: reader (sees minions, jobs and events), operator (runs functions and actions), group-admin (also chooses the group's
/// minions), org-admin (everything in the organisation), server-admin (everything). `operator:web` is an operator of group
/// web; without a group it is all of the organisation.
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
  saltern user create ann --role server-admin
  saltern user create bob --role operator:web --role reader
  saltern user create carol --auth ldap --role reader        LDAP knows her password
  saltern user change bob --add-role operator:db
  saltern user change bob --disable                          his log-ins and tokens end at once
  saltern user password                                      your own
  saltern user delete bob";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List users
    List,
    /// Show a user
    Show {
        /// The user's name
        name: String,
    },
    /// Make a user; a local one's password is asked for unless it is given
    Create {
        /// The name to log in with
        name: String,
        #[command(flatten)]
        password: PasswordFrom,
        /// What the user may; may be given several times
        #[arg(long = "role", value_name = "ROLE[:GROUP]", value_parser = role)]
        roles: Vec<String>,
        #[command(flatten)]
        about: About,
    },
    /// Change a user
    Change {
        /// The user's name
        name: String,
        /// What the user may from now on, instead of everything so far; may be given several times
        #[arg(long = "role", value_name = "ROLE[:GROUP]", value_parser = role, conflicts_with_all = ["add_roles", "remove_roles"])]
        roles: Vec<String>,
        /// Give one more role
        #[arg(long = "add-role", value_name = "ROLE[:GROUP]", value_parser = role)]
        add_roles: Vec<String>,
        /// Take a role back
        #[arg(long = "remove-role", value_name = "ROLE[:GROUP]", value_parser = role)]
        remove_roles: Vec<String>,
        #[command(flatten)]
        about: About,
        /// Keep the user out
        #[arg(long, conflicts_with = "enable")]
        disable: bool,
        /// Let the user in again
        #[arg(long)]
        enable: bool,
    },
    /// Set a password: your own, or that of a user you look after
    Password {
        /// The user's name; your own password unless told
        name: Option<String>,
        #[command(flatten)]
        password: PasswordFrom,
    },
    /// Remove a user, with all log-ins and tokens
    Delete {
        /// The user's name
        name: String,
    },
}

/// What is known of a user besides roles.
#[derive(Debug, Default, clap::Args)]
struct About {
    /// The organisation; your own unless told
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
    /// What checks the password: local (unless told), pam, ldap, file, sharedsecret
    #[arg(long, value_name = "AUTH")]
    auth: Option<String>,
    /// What people call the user
    #[arg(long, value_name = "TEXT")]
    full_name: Option<String>,
}

/// Where a password comes from.
#[derive(Debug, clap::Args)]
struct PasswordFrom {
    /// The password; others on this machine may see it while the command runs
    #[arg(long, value_name = "PASSWORD", value_parser = secret, conflicts_with = "password_stdin")]
    password: Option<Secret>,
    /// Read the password from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
}

impl PasswordFrom {
    /// The password that was given; else it is asked for, twice.
    fn get(self, whose: &str) -> Result<String, Failure> {
        let read = match self.password {
            Some(password) => password,
            None if self.password_stdin => password::from_stdin()?,
            None => password::ask_new(whose, "give it with --password-stdin or --password")?,
        };
        Ok(read.reveal().to_owned())
    }

    fn is_given(&self) -> bool {
        self.password.is_some() || self.password_stdin
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    match args.verb {
        Verb::List => {
            let users = client.users().await?;
            output::show(format, &users, || table(&users, Style::of_stdout()))?;
        }
        Verb::Show { name } => {
            let user = client.user(&name).await?;
            output::show(format, &user, || detail(&user, clock::now(), Style::of_stdout()))?;
        }
        Verb::Create { name, password, roles, about } => {
            // Somebody else keeps the passwords of all but local users.
            let is_local = about.auth.as_deref().is_none_or(|auth| auth == LOCAL);
            let password = (is_local || password.is_given()).then(|| password.get(&name)).transpose()?;
            let About { org, auth, full_name } = about;
            let wanted = NewUser { name, org, auth, password, full_name, disabled: None, roles: Some(roles) };
            let user = client.create_user(&wanted).await?;
            output::show(format, &user, || format!("User {} was made{}.", user.name, roles_text(&user)))?;
        }
        Verb::Change { name, roles, add_roles, remove_roles, about, disable, enable } => {
            let known = client.user(&name).await?;
            let roles = change_roles(&known, roles, add_roles, &remove_roles)?;
            let disabled = (disable || enable).then_some(disable);
            let change = UserChange { roles, disabled, ..about.change() };
            if serde_json::to_value(&change).is_ok_and(|change| change == serde_json::json!({})) {
                return Err(Failure::usage("say what is to be changed").hint("`saltern user change --help`"));
            }
            let user = client.change_user(&name, known.version, &change).await?;
            output::show(format, &user, || format!("User {} was changed{}.", user.name, roles_text(&user)))?;
        }
        Verb::Password { name, password } => {
            let me = client.me().await?;
            let is_known = me.user.is_some();
            let told = match name.filter(|name| *name != me.name) {
                Some(name) => {
                    let version = client.user(&name).await?.version;
                    let change = UserChange { password: Some(password.get(&name)?), ..UserChange::default() };
                    client.change_user(&name, version, &change).await?;
                    format!("The password of {name} was changed; open log-ins have ended.")
                }
                None if !is_known => return Err(Failure::usage("you have no password here; say whose is meant")),
                None => {
                    let instead = "only a terminal can ask for the old one";
                    let old = password::ask("Your password so far: ", instead)?.reveal().to_owned();
                    client.change_password(&PasswordChange { old, new: password.get(&me.name)? }).await?;
                    "Your password was changed; log in again.".to_owned()
                }
            };
            output::line(&told)?;
        }
        Verb::Delete { name } => {
            let version = client.user(&name).await?.version;
            client.delete_user(&name, version).await?;
            output::line(&format!("User {name} was deleted, with all tokens."))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What checks the passwords that the server keeps.
const LOCAL: &str = "local";

impl About {
    fn change(self) -> UserChange {
        UserChange { org: self.org, auth: self.auth, full_name: self.full_name, ..UserChange::default() }
    }
}

/// The roles a user is to have; nothing: those of now.
fn change_roles(
    known: &User,
    instead: Vec<String>,
    add: Vec<String>,
    remove: &[String],
) -> Result<Option<Vec<String>>, Failure> {
    if !instead.is_empty() {
        return Ok(Some(instead));
    }
    if add.is_empty() && remove.is_empty() {
        return Ok(None);
    }
    let mut roles = known.roles.clone();
    for role in remove {
        if !roles.contains(role) {
            let failure = Failure::new(format!("{} does not have the role {role}", known.name));
            return Err(failure.hint(format!("`saltern user show {}` tells which", known.name)));
        }
        roles.retain(|kept| kept != role);
    }
    roles.extend(add);
    Ok(Some(roles))
}

fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(text.into())
}

/// A role as it is typed, in its usual form.
fn role(text: &str) -> Result<String, String> {
    Grant::parse(text).map(|grant| grant.to_string()).map_err(|error| error.to_string())
}

fn roles_text(user: &User) -> String {
    if user.roles.is_empty() { ", without any role".into() } else { format!(": {}", user.roles.join(", ")) }
}

fn table(users: &[User], style: Style) -> String {
    let mut table = Table::new(&["NAME", "ORGANISATION", "AUTH", "ROLES", "FULL NAME"]);
    for user in users {
        let name = if user.disabled { format!("{} (disabled)", user.name) } else { user.name.clone() };
        table.row([name, user.org.clone(), user.auth.clone(), user.roles.join(", "), user.full_name.clone()]);
    }
    table.show("There is no user yet. `saltern user create NAME --role server-admin` makes one.", style)
}

fn detail(user: &User, now: Timestamp, style: Style) -> String {
    let known = [
        ("Full name", user.full_name.clone()),
        ("Organisation", user.org.clone()),
        ("Roles", user.roles.join(", ")),
        ("Password by", user.auth.clone()),
        ("Disabled", if user.disabled { "yes" } else { "no" }.into()),
        ("Made", when::when(user.created.0, now)),
        ("Version", user.version.to_string()),
    ];
    fields(&user.name, &known, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use saltern_api::shape::Time;

    fn user(name: &str, roles: &[&str]) -> User {
        User {
            name: name.into(),
            org: "default".into(),
            auth: "local".into(),
            full_name: String::new(),
            disabled: false,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            created: Time(Timestamp::from_secs(1_794_772_591)),
            version: 3,
        }
    }

    fn parse(words: &[&str]) -> Option<Verb> {
        let cli = Cli::try_parse_from(["saltern", "user"].iter().chain(words)).ok()?;
        let Command::User(args) = cli.command else { panic!("not a user") };
        Some(args.verb)
    }

    #[test]
    fn a_user_is_made_with_a_password_and_roles() {
        let words = ["create", "ann", "--password", "x", "--role", "server-admin", "--role", "operator:web"];
        let Some(Verb::Create { name, password, roles, .. }) = parse(&words) else { panic!("not a create") };
        assert_eq!((name.as_str(), password.get("ann").unwrap().as_str()), ("ann", "x"));
        assert_eq!(roles, ["server-admin", "operator:web"]);
    }

    #[test]
    fn a_role_that_does_not_exist_is_wrong_usage() {
        assert!(parse(&["create", "ann", "--role", "emperor"]).is_none());
        assert!(parse(&["create", "ann", "--role", "server-admin:web"]).is_none());
        assert!(parse(&["create", "ann", "--password", "x", "--password-stdin"]).is_none());
        assert!(parse(&["change", "ann", "--disable", "--enable"]).is_none());
        assert!(parse(&["change", "ann", "--role", "reader", "--add-role", "reader"]).is_none());
    }

    #[test]
    fn roles_are_given_and_taken_back() {
        let bob = user("bob", &["operator:web", "reader"]);
        let texts = |roles: &[&str]| roles.iter().map(|role| (*role).to_owned()).collect::<Vec<_>>();
        let changed = change_roles(&bob, vec![], texts(&["operator:db"]), &texts(&["reader"])).unwrap();
        assert_eq!(changed.unwrap(), ["operator:web", "operator:db"]);
        assert_eq!(change_roles(&bob, texts(&["reader"]), vec![], &[]).unwrap().unwrap(), ["reader"]);
        assert_eq!(change_roles(&bob, vec![], vec![], &[]).unwrap(), None);
        assert!(change_roles(&bob, vec![], vec![], &texts(&["org-admin"])).is_err());
    }

    #[test]
    fn the_list_tells_roles_and_who_is_kept_out() {
        let users =
            [user("ann", &["server-admin"]), User { disabled: true, ..user("bob", &["operator:web", "reader"]) }];
        assert_eq!(
            table(&users, Style::PLAIN),
            "\
NAME            ORGANISATION  AUTH   ROLES                 FULL NAME
ann             default       local  server-admin
bob (disabled)  default       local  operator:web, reader"
        );
    }

    #[test]
    fn a_password_is_not_shown_by_debugging() {
        let Some(verb) = parse(&["create", "ann", "--password", "hunter2"]) else { panic!("not a create") };
        assert!(!format!("{verb:?}").contains("hunter2"));
    }
}
