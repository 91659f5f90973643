//! What one person may do now, and the one function that decides: [`Rights::may`].
//!
//! Made by the server for each caller, from his roles and from Salt's rules, with the minions that groups and targets mean
//! at that moment.

use super::class::{Class, runners, wheels};
use super::{Entity, Entry, Grant, Invocation, Refusal, Role, Rule, Scope, Sight, Thing, Wish};
use crate::ids::MinionId;
use crate::value::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What somebody may do.
#[derive(Clone, Debug)]
pub struct Rights {
    /// His name
    pub user: String,
    /// His organisation
    pub org: String,
    /// Whether he may do everything
    pub server_admin: bool,
    /// Whether he may do everything in his organisation
    pub org_admin: bool,
    /// Whether he has any role; without one, only Salt's rules speak for him
    pub has_role: bool,
    /// The minions he sees, by roles and by rules
    pub sees: Sight,
    /// The minions his roles let him call functions on
    pub operates: Sight,
    /// The minions his roles let him manage
    pub administers: Sight,
    /// The groups he is admin of
    pub groups: BTreeSet<String>,
    /// Whether he is admin of every group of his organisation
    pub every_group: bool,
    /// Salt's rules that apply to him
    pub rules: Arc<[Rule]>,
    /// What he may at most, by the token he shows
    pub scope: Scope,
}

impl Rights {
    /// Somebody who may do nothing yet.
    pub fn nobody(user: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            org: String::new(),
            server_admin: false,
            org_admin: false,
            has_role: false,
            sees: Sight::none(),
            operates: Sight::none(),
            administers: Sight::none(),
            groups: BTreeSet::new(),
            every_group: false,
            rules: Arc::from([]),
            scope: Scope::All,
        }
    }

    /// Somebody who may do everything.
    pub fn administrator(user: impl Into<String>) -> Self {
        let mut rights = Self::nobody(user);
        rights.take_grant(&Grant { role: Role::ServerAdmin, group: None }, Sight::All);
        rights
    }

    /// Gives him a role on these minions: those of the group, or of his organisation.
    pub fn take_grant(&mut self, grant: &Grant, minions: Sight) {
        let minions = if grant.role == Role::ServerAdmin { Sight::All } else { minions };
        self.has_role = true;
        self.sees = self.sees.union(&minions);
        if grant.role <= Role::Operator {
            self.operates = self.operates.union(&minions);
        }
        if grant.role <= Role::OrgAdmin {
            self.administers = self.administers.union(&minions);
        }
        match (grant.role, &grant.group) {
            (Role::ServerAdmin, _) => self.server_admin = true,
            (Role::OrgAdmin, _) => self.org_admin = true,
            (Role::GroupAdmin, Some(group)) => drop(self.groups.insert(group.clone())),
            (Role::GroupAdmin, None) => self.every_group = true,
            (Role::Operator | Role::Reader, _) => {}
        }
    }

    /// Gives him Salt's rules, in place of those he had.
    pub fn take_rules(&mut self, rules: Vec<Rule>) {
        self.sees = rules.iter().fold(self.sees.clone(), |sees, rule| sees.union(&rule.sight()));
        self.rules = rules.into();
    }

    /// Whether he may do this; if not, what is missing.
    pub fn may(&self, wish: &Wish<'_>) -> Result<(), Refusal> {
        if !self.scope.covers(wish.class()) {
            return Err(Refusal::new(format!("this token is for `{}` only; use one with a wider scope", self.scope)));
        }
        if self.server_admin {
            return Ok(());
        }
        match *wish {
            Wish::See(minion) => allow(self.sees.sees(minion), || "you see no minion of this name".into()),
            Wish::Call { calls, minions } => self.may_call(calls, minions),
            Wish::Operate(minions) => self.may_operate(minions),
            Wish::Approve(minions) => self.may_approve(minions),
            Wish::Runner(call) => {
                self.may_serve(wish, call, self.rules.iter().any(|rule| rule.entry.allows_runner(&call)))
            }
            Wish::Wheel(call) => {
                self.may_serve(wish, call, self.rules.iter().any(|rule| rule.entry.allows_wheel(&call)))
            }
            Wish::DecideKey(minion) => allow(self.decides_key(minion), || {
                "keys are decided by server admins, and by admins of the minion's organisation".into()
            }),
            Wish::SeePillar(minion) => allow(self.sees_pillar(minion), || {
                "a minion's pillar is for its operators, or a rule in external_auth that allows `pillar.items` there"
                    .into()
            }),
            Wish::Fire => allow(self.rules_allow_runner("event.send"), || {
                "events are sent by server admins, or a rule in external_auth that allows the runner `event.send`"
                    .into()
            }),
            // salt-api asks no more than a log-in for it.
            Wish::Hook => Ok(()),
            Wish::Inspect => allow(false, || "the server is looked at by server admins".into()),
            Wish::UseChain { org, owner, shared } => {
                allow(self.owns_chain(org, owner) || (shared && self.has_role && self.org == org), || {
                    "there is no such chain, or its owner has not shared it".into()
                })
            }
            Wish::Manage(thing) => self.may_manage(thing),
        }
    }

    /// The minions that the answer to a runner or wheel call may speak of. Salt checks functions, not answers: who may call
    /// `manage.up` by one of its rules learns of everybody.
    pub fn sight_for(&self, wish: &Wish<'_>) -> Sight {
        let by_rule = |allows: &dyn Fn(&Entry) -> bool| self.rules.iter().any(|rule| allows(&rule.entry));
        let is_by_rule = match wish {
            Wish::Runner(call) => by_rule(&|entry| entry.allows_runner(call)),
            Wish::Wheel(call) => by_rule(&|entry| entry.allows_wheel(call)),
            _ => false,
        };
        if is_by_rule { Sight::All } else { self.sees.clone() }
    }

    /// Whether a target is cut down to the minions that are his. Not where Salt's rules say what he may call where: there,
    /// a target with one minion too many is refused, and clients count on it.
    pub fn narrows(&self) -> bool {
        !self.rules.iter().any(|rule| rule.entry.is_for_minions())
    }

    /// What salt-api's log-in shows as permissions of somebody who has roles: the entries of `external_auth` that come
    /// closest to them.
    pub fn perms(&self) -> Value {
        if self.server_admin {
            return Value::list([".*", "@jobs", "@runner", "@wheel"]);
        }
        if !self.has_role {
            return Value::Map(Map::new());
        }
        let is_operator = !self.operates.is_empty();
        let functions = is_operator.then(|| Value::from(".*"));
        let operators = runners(Class::Operate).filter(|_| is_operator);
        let runners = Value::map([("@runner", Value::list(runners(Class::Read).chain(operators)))]);
        let wheels = Value::map([("@wheel", Value::list(wheels(Class::Read)))]);
        Value::List(functions.into_iter().chain([runners, wheels]).collect())
    }

    fn may_call(&self, calls: &[Invocation<'_>], minions: &[MinionId]) -> Result<(), Refusal> {
        if calls.is_empty() {
            return Err(Refusal::new("there is no function to call"));
        }
        for call in calls {
            self.covers(&self.reach(call), minions, || format!("`{}`", shown(call.fun)))?;
        }
        Ok(())
    }

    fn may_operate(&self, minions: &[MinionId]) -> Result<(), Refusal> {
        let stop = Invocation::bare("saltutil.kill_job");
        self.covers(&self.reach(&stop), minions, || "to intervene in what runs".into())
    }

    fn may_approve(&self, minions: &[MinionId]) -> Result<(), Refusal> {
        // What the step will call is not known here. Whoever may call this could do anything there himself.
        let anything = Invocation::bare("cmd.run");
        self.covers(&self.reach(&anything), minions, || "to approve".into())
    }

    /// Where he may make this call: sets that add up.
    fn reach(&self, call: &Invocation<'_>) -> Vec<&Sight> {
        let by_rules = self.rules.iter().filter(|rule| rule.entry.allows_call(call)).map(|rule| &rule.minions);
        // Clients look after their jobs with it; it tells whether a job runs and does nothing.
        let always = (call.fun == "saltutil.find_job").then_some(&self.sees);
        std::iter::once(&self.operates).chain(by_rules).chain(always).filter(|sight| !sight.is_empty()).collect()
    }

    /// Whether the sets have every one of these minions, or anybody at all if none is named.
    fn covers(&self, sets: &[&Sight], minions: &[MinionId], what: impl Fn() -> String) -> Result<(), Refusal> {
        let missing = minions.iter().find(|minion| !sets.iter().any(|set| set.sees(minion)));
        let place = match missing {
            None if minions.is_empty() && sets.is_empty() => "anywhere".to_owned(),
            None => return Ok(()),
            Some(minion) if self.sees.sees(minion) => format!("on `{minion}`"),
            Some(_) => "on every minion you ask for".to_owned(),
        };
        let needs = "it needs the role operator there, or a rule in external_auth";
        Err(Refusal::new(format!("you are not allowed {} {place}: {needs}", what())))
    }

    fn may_serve(&self, wish: &Wish<'_>, call: Invocation<'_>, is_by_rule: bool) -> Result<(), Refusal> {
        let (by_role, needs) = match wish.class() {
            Class::Read => (self.has_role, "any role"),
            Class::Operate => (!self.operates.is_empty(), "the role operator"),
            Class::Admin => (false, "the role server-admin"),
        };
        allow(by_role || is_by_rule, || {
            format!("you are not allowed `{}`: it needs {needs}, or a rule in external_auth", shown(call.fun))
        })
    }

    fn decides_key(&self, minion: Option<&MinionId>) -> bool {
        let by_role =
            self.org_admin && minion.map_or(self.administers.is_all(), |minion| self.administers.sees(minion));
        // Which decision is not said, so a rule has to allow each.
        let kwarg: Map = minion.map(|minion| (Value::from("match"), Value::from(minion))).into_iter().collect();
        let allows =
            |fun| self.rules.iter().any(|rule| rule.entry.allows_wheel(&Invocation { fun, arg: &[], kwarg: &kwarg }));
        by_role || ["key.accept", "key.reject", "key.delete"].into_iter().all(allows)
    }

    fn sees_pillar(&self, minion: &MinionId) -> bool {
        let items = Invocation::bare("pillar.items");
        self.operates.sees(minion) || self.rules.iter().any(|rule| rule.allows_call(&items, minion))
    }

    fn rules_allow_runner(&self, fun: &str) -> bool {
        self.rules.iter().any(|rule| rule.entry.allows_runner(&Invocation::bare(fun)))
    }

    fn owns_chain(&self, org: &str, owner: &str) -> bool {
        self.user == owner || (self.org_admin && self.org == org)
    }

    fn may_recur(&self, org: &str, entity: Entity<'_>) -> Result<(), Refusal> {
        match entity {
            Entity::Minion(minion) => allow(self.may_operate(std::slice::from_ref(minion)).is_ok(), || {
                "what recurs on a minion is for its operators, or a rule in external_auth".into()
            }),
            Entity::Group(name) => self.may_manage(Thing::Group { org, name }).map_err(|_| {
                Refusal::new(
                    "what recurs on a group is for its admins, for admins of its organisation and for server admins",
                )
            }),
            Entity::Organisation(org) => allow(self.org_admin && self.org == org, || {
                "what recurs on an organisation is for its admins and for server admins".into()
            }),
            Entity::Target => allow(self.org_admin && self.org == org, || {
                "what recurs on a target is for admins of the organisation and for server admins".into()
            }),
        }
    }

    fn may_manage(&self, thing: Thing<'_>) -> Result<(), Refusal> {
        let is_his = |org: &str| self.org_admin && self.org == org;
        let is_his_group = |org: &str, name: &str| self.org == org && (self.every_group || self.groups.contains(name));
        match thing {
            Thing::Server => allow(false, || "the server is managed by server admins".into()),
            Thing::Organisations => allow(false, || "organisations are made and deleted by server admins".into()),
            Thing::Organisation(org) => {
                allow(is_his(org), || "an organisation is managed by its admins and by server admins".into())
            }
            Thing::Users { org } => {
                allow(is_his(org), || "users are managed by admins of their organisation and by server admins".into())
            }
            Thing::Group { org, name } => allow(is_his(org) || is_his_group(org, name), || {
                "a group is managed by its admins, by admins of its organisation and by server admins".into()
            }),
            Thing::Minion(minion) => allow(self.administers.sees(minion), || {
                "a minion is managed by admins of its organisation and by server admins".into()
            }),
            Thing::Chain { org, owner } => allow(self.owns_chain(org, owner), || {
                "a chain is changed by its owner, by admins of its organisation and by server admins".into()
            }),
            Thing::States { org } => {
                allow(is_his(org), || "states are kept by admins of their organisation and by server admins".into())
            }
            Thing::Recurring { org, entity } => self.may_recur(org, entity),
            Thing::Windows { org } => allow(is_his(org), || {
                "maintenance windows are set up by admins of their organisation and by server admins".into()
            }),
            // Only the token in use stands between somebody and what is his.
            Thing::Own => Ok(()),
        }
    }
}

fn allow(is_allowed: bool, message: impl FnOnce() -> String) -> Result<(), Refusal> {
    if is_allowed { Ok(()) } else { Err(Refusal::new(message())) }
}

/// A name out of a request, fit to be repeated.
fn shown(fun: &str) -> String {
    fun.chars().filter(|c| !c.is_control()).take(100).collect()
}
