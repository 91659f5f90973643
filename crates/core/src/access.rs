//! Who may do what, on which minions, and who hears of what. Asked for every request, list, count and event, so that nobody
//! learns of a machine that is not his.
//!
//! One function decides: [`Rights::may`] takes what somebody wishes and answers yes, or what is missing. Rights come from
//! two sources that add up: roles of our own ([`Grant`]) and Salt's `external_auth` ([`RawRules`]).
//!
//! Invariants: a list of calls is allowed only if each of them is, on each minion; a narrower [`Scope`] never allows more;
//! no refusal names a minion that the person does not see.
//!
//! Not here: which minions a group or a target means now (`server` resolves them), passwords and tokens.

mod class;
mod entry;
mod events;
mod external;
mod hearing;
mod rights;
mod role;
mod sight;
mod wish;

pub use class::{Class, runner_class, wheel_class};
pub use entry::{Arguments, Condition, Entry, Pattern, Rule};
pub use events::{Audience, audience, narrow, narrow_target};
pub use external::{RawRules, RulesError};
pub use rights::Rights;
pub use role::{BadGrant, Grant, Role, Scope};
pub use sight::Sight;
pub use wish::{Entity, Invocation, Refusal, Thing, Wish};
