//! Carries out a list of commands: all of them are read, identified and permitted before the first one runs.

use super::Salt;
use super::call::{self, Asker, Permitted};
use super::error::Failure;
use super::local::{self, Ready};
use super::lowdata::{self, Low};
use saltern_core::value::{Map, Value};

/// A command that may run.
enum Prepared {
    Local(Box<Ready>),
    Master(Box<Permitted>),
}

/// Reads commands; `enabled` as the configuration has it.
pub(super) fn read(salt: &Salt, elements: &[Map]) -> Result<Vec<Low>, Failure> {
    let enabled = salt.app.config().http.netapi_enable_clients.as_deref();
    elements.iter().map(|element| lowdata::read(element, enabled)).collect()
}

/// Reads commands and runs them, all on behalf of one asker.
pub(super) async fn all_for(salt: &Salt, asker: &Asker, elements: &[Map]) -> Result<Vec<Value>, Failure> {
    let commands = read(salt, elements)?.into_iter().map(|low| (asker.clone(), low)).collect();
    carry_out(salt, commands).await
}

/// Runs commands one after the other, each on behalf of its asker; what goes into `return`.
pub(super) async fn carry_out(salt: &Salt, commands: Vec<(Asker, Low)>) -> Result<Vec<Value>, Failure> {
    let mut prepared = Vec::with_capacity(commands.len());
    for (asker, low) in commands {
        prepared.push(match low {
            Low::Local(command) => Prepared::Local(Box::new(local::prepare(salt, asker, command).await?)),
            Low::Master(command) => Prepared::Master(Box::new(call::permit(salt, asker, command)?)),
        });
    }
    let mut elements = Vec::with_capacity(prepared.len());
    for command in prepared {
        match command {
            Prepared::Local(ready) => elements.extend(local::run(salt, *ready).await?),
            Prepared::Master(permitted) => elements.push(call::make(salt, *permitted).await?),
        }
    }
    Ok(elements)
}

/// The usual answer.
pub(super) fn answer(elements: Vec<Value>) -> Value {
    Value::map([("return", Value::List(elements))])
}
