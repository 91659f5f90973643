//! What somebody wishes to do, and how he is told no.

use super::Class;
use super::class::{runner_call_class, wheel_class};
use crate::ids::MinionId;
use crate::value::{Map, Value};

/// One call of a function.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The function, `module.name`
    pub fun: &'a str,
    /// Its arguments
    pub arg: &'a [Value],
    /// Its named arguments
    pub kwarg: &'a Map,
}

impl<'a> Invocation<'a> {
    /// A call without arguments.
    pub fn bare(fun: &'a str) -> Self {
        static NONE: Map = Map::new();
        Self { fun, arg: &[], kwarg: &NONE }
    }
}

/// What somebody wishes to do.
#[derive(Clone, Copy, Debug)]
pub enum Wish<'a> {
    /// Learn anything about a minion: that it exists, its grains, what happened on it
    See(&'a MinionId),
    /// Have minions call functions
    Call {
        /// The functions; each of them has to be allowed
        calls: &'a [Invocation<'a>],
        /// Where, and on each of them. Nobody: might he call them on anybody at all
        minions: &'a [MinionId],
    },
    /// Cancel, stop or hasten what runs on these. Nobody: on anybody at all. Whoever repeats a call also needs [`Wish::Call`]
    Operate(&'a [MinionId]),
    /// Say yes to what waits for a person's yes before it goes on there. Whoever may only kill jobs has no say in what begins
    Approve(&'a [MinionId]),
    /// Call a runner function
    Runner(Invocation<'a>),
    /// Call a wheel function
    Wheel(Invocation<'a>),
    /// Accept, reject or delete a key. None: some key, and nobody knows yet whose
    DecideKey(Option<&'a MinionId>),
    /// Read a minion's pillar, which is where its secrets are
    SeePillar(&'a MinionId),
    /// Send an event of one's own
    Fire,
    /// Send what becomes an event of a hook
    Hook,
    /// Look at the server itself: how it is doing, its numbers, its audit log
    Inspect,
    /// See a chain, and copy or launch it. What its steps do where is asked for with [`Wish::Call`]
    UseChain {
        /// Its organisation
        org: &'a str,
        /// Who made it
        owner: &'a str,
        /// Whether it is for others of the organisation as well
        shared: bool,
    },
    /// Change how things are set up
    Manage(Thing<'a>),
}

/// What is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing<'a> {
    /// The server itself
    Server,
    /// Which organisations there are
    Organisations,
    /// One organisation
    Organisation(&'a str),
    /// The users of an organisation
    Users {
        /// The organisation
        org: &'a str,
    },
    /// A group of minions. Whom it may take in is asked minion by minion
    Group {
        /// Its organisation
        org: &'a str,
        /// Its name
        name: &'a str,
    },
    /// What is kept about a minion
    Minion(&'a MinionId),
    /// A chain of actions
    Chain {
        /// Its organisation
        org: &'a str,
        /// Who made it
        owner: &'a str,
    },
    /// The states that an organisation keeps on the server, and whom they are assigned to
    States {
        /// The organisation
        org: &'a str,
    },
    /// What is done again and again
    Recurring {
        /// Its organisation
        org: &'a str,
        /// What it is done on
        entity: Entity<'a>,
    },
    /// The maintenance windows of an organisation: calendars, schedules, and whom they are assigned to
    Windows {
        /// The organisation
        org: &'a str,
    },
    /// What is one's own: password, tokens, webhooks
    Own,
}

/// What a recurring action is done on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity<'a> {
    /// One minion
    Minion(&'a MinionId),
    /// The minions of this group of the organisation, as they are each time
    Group(&'a str),
    /// The minions of this organisation, as they are each time
    Organisation(&'a str),
    /// The minions of a target, as they are each time
    Target,
}

/// A no: one sentence that says what is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The sentence
    pub message: String,
}

impl Wish<'_> {
    /// How much it needs, whoever wishes it: the scope of a token is asked for this.
    pub(super) fn class(&self) -> Class {
        match self {
            Self::See(_) | Self::Inspect | Self::UseChain { .. } => Class::Read,
            Self::Call { .. } | Self::Operate(_) | Self::Approve(_) | Self::SeePillar(_) | Self::Hook => Class::Operate,
            Self::Runner(call) => runner_call_class(call),
            Self::Wheel(call) => wheel_class(call.fun),
            // Tools of whoever operates minions.
            Self::Manage(Thing::Chain { .. } | Thing::Recurring { .. }) => Class::Operate,
            Self::DecideKey(_) | Self::Fire | Self::Manage(_) => Class::Admin,
        }
    }
}

impl Refusal {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}
