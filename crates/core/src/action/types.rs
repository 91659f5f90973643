//! What can be asked for: one file per action type, and what each must be able to say about itself.
//!
//! A type turns the parameters a person gave into a Salt call that stock minions and the native one understand alike, and
//! says how the answer is to be read. A new type is one file here and one line in [`ALL`]; forms, documentation, admission and
//! dispatch learn of it from the trait.
//!
//! What people wrote goes into keyword arguments wherever Salt takes them: a positional text such as `name=x` would
//! be read as a keyword by the minion.
//!
//! Not here: when it runs (`policy`, `schedule`), who may (`server::engine::admission`).

mod agent_update;
mod function;
mod judging;
mod package_install;
mod package_remove;
mod package_update;
mod packages;
mod params;
mod reboot;
mod script;
mod service_restart;
mod states;

pub use params::{BadParams, Kind, Param};

use crate::run::Verdict;
use crate::value::{Map, Value};
use params::check;
use std::fmt::Debug;

/// Every action type, in the order they are offered.
pub const ALL: [&dyn ActionType; 9] = [
    &function::Function,
    &script::Script,
    &states::States,
    &package_install::PackageInstall,
    &package_update::PackageUpdate,
    &package_remove::PackageRemove,
    &service_restart::ServiceRestart,
    &reboot::Reboot,
    &agent_update::AgentUpdate,
];

/// The action type of this name.
pub fn find(name: &str) -> Option<&'static dyn ActionType> {
    ALL.into_iter().find(|kind| kind.name() == name)
}

/// What Salt is asked to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The function, or several
    pub funs: Vec<String>,
    /// Positional arguments; for several functions one list each
    pub arg: Vec<Value>,
    /// Keyword arguments; none for several functions
    pub kwarg: Map,
}

/// What shows that an action which restarts the agent took effect, asked of the agent that is back.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// What is asked
    pub call: Call,
    /// What must be answered
    pub expect: Value,
}

/// What is restarted by an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restarts {
    /// Nothing that a chain would notice
    Nothing,
    /// The machine
    Machine,
    /// The agent, or possibly the agent
    Agent,
}

/// What ends a run of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ends {
    /// What the minion returns
    ByReturn,
    /// What the minion returns, or the agent that is back where its restart has cost the return
    ByReturnOrAgentStart,
    /// Another boot id; a good return only says that it has begun
    ByBoot,
}

/// What an action type says about itself.
pub trait ActionType: Debug + Send + Sync {
    /// The word for it, in the database and everywhere else.
    fn name(&self) -> &'static str;

    /// What a person reads in a list of types.
    fn title(&self) -> &'static str;

    /// One line that explains it.
    fn help(&self) -> &'static str;

    /// What it can be told.
    fn params(&self) -> &'static [Param];

    /// What it asks of Salt; [`ActionType::compile`] has checked names and kinds of the parameters before.
    fn call(&self, params: &Map) -> Result<Call, BadParams>;

    /// One line that tells what these parameters ask for. Never fails: parameters are shown before they are checked, too.
    fn describe(&self, params: &Map) -> String;

    /// Whether it may begin only inside a maintenance window.
    fn is_restricted(&self, _params: &Map) -> bool {
        true
    }

    /// Whether doing it twice does no harm, so that it may be tried again though nobody knows whether it was done.
    fn is_repeatable(&self, _params: &Map) -> bool {
        false
    }

    /// What it restarts.
    fn restarts(&self, _params: &Map) -> Restarts {
        Restarts::Nothing
    }

    /// What ends a run of it.
    fn ends(&self, params: &Map) -> Ends {
        match self.restarts(params) {
            Restarts::Nothing => Ends::ByReturn,
            Restarts::Agent => Ends::ByReturnOrAgentStart,
            Restarts::Machine => Ends::ByBoot,
        }
    }

    /// Checks the parameters and says what it asks of Salt.
    fn compile(&self, params: &Map) -> Result<Call, BadParams> {
        check(self.params(), params)?;
        self.call(params)
    }

    /// What shows afterwards that it took effect, where its own return may be lost with the agent.
    fn check_after(&self, params: &Map) -> Option<Expected> {
        let ping = || Expected { call: Call::named("test.ping", []), expect: true.into() };
        (self.restarts(params) == Restarts::Agent).then(ping)
    }

    /// Judges what came back: the whole load, with `return`, `retcode` and `success`.
    fn judge(&self, _params: &Map, returned: &Value) -> Verdict {
        judging::job(returned)
    }
}

impl Call {
    /// One function with its arguments by name.
    fn named(fun: &str, kwarg: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let kwarg = kwarg.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
        Self { funs: vec![fun.to_owned()], arg: Vec::new(), kwarg }
    }
}

#[cfg(test)]
mod tests;
