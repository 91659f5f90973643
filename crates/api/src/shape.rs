//! The JSON of the API: what clients send and get, as types that both ends use.
//!
//! Hand-written beside the domain types, on purpose: a field here is a promise to programs, and changing one in `core` must
//! not change it here. Times are RFC 3339 in UTC with microseconds. What JSON cannot carry (bytes that are not UTF-8, keys
//! that are not text) is written as Python's `json` would, see `core::value`.

mod actions;
mod audit;
mod calendars;
mod chains;
mod dead_letters;
mod events;
mod fires;
mod functions;
mod groups;
mod jobs;
mod keys;
mod launches;
mod minions;
mod organisations;
mod plans;
pub(crate) mod policy;
mod problem;
mod recurring;
mod runs;
mod schedules;
mod states;
mod status;
mod steps;
mod time;
mod tokens;
mod users;
mod verbs;
mod webhooks;
mod windows;

pub use actions::{
    Action, ActionDetail, ActionList, ActionParam, ActionRequest, ActionType, ActionTypeList, Counts, Created, Pause,
};
pub(crate) use actions::{read_action_id, read_minion};
pub use audit::{AuditBreak, AuditCheck, AuditEntry, AuditList};
pub use calendars::{Calendar, CalendarContent, CalendarDetail, CalendarList, NewCalendar};
pub use chains::{
    Chain, ChainClear, ChainCopy, ChainDetail, ChainDraft, ChainList, ChainState, ChainVerb, ChainsCleared, NewStep,
};
pub use dead_letters::{DeadLetter, DeadLetterList};
pub use events::Event;
pub use fires::{Fire, FireList, LeftOut, PlannedFire, PlannedFireList};
pub(crate) use functions::read_function;
pub use functions::{
    Function, FunctionDetail, FunctionList, FunctionRefresh, FunctionVerb, FunctionsRefreshed, RefreshedKind,
};
pub use groups::{Group, GroupContent, GroupDetail, GroupList, NewGroup};
pub(crate) use jobs::read_jid;
pub use jobs::{Accepted, Functions, Job, JobDetail, JobList, JobStep, Return, RunRequest, Unanswered, Why};
pub use keys::{Key, KeyDecision, KeyList, KeyResult};
pub(crate) use launches::read_launch_id;
pub use launches::{
    Approve, Cancelled, Launch, LaunchCounts, LaunchDetail, LaunchDone, LaunchList, LaunchMinion, LaunchMinionList,
    LaunchPreview, LaunchRequest, LaunchStep, StepApproval, StepPreview, StepRefusal,
};
pub use minions::{Grains, Minion, MinionChange, MinionDetail, MinionList};
pub use organisations::{NewOrganisation, Organisation, OrganisationContent, OrganisationList};
pub use plans::{Plan, PlanChunk, PlanStep};
pub use problem::{ErrorLine, LineError, Problem};
pub(crate) use recurring::read_recurring_id;
pub use recurring::{
    CatchUp, EntityKind, Overlap, Recurring, RecurringDone, RecurringDraft, RecurringEntity, RecurringList,
    RecurringVerb, RecurringWhat,
};
pub use runs::{Attempt, Explanation, Fact, Run, RunDetail, RunList, RunStatus};
pub use schedules::{Away, NewSchedule, Schedule, ScheduleContent, ScheduleKind, ScheduleList, Subjects};
pub use states::{
    AssignedState, AssignedStateList, Assignee, AssigneeKind, AssigneeList, CatalogueState, NewState, StateContent,
    StateDetail, StateList, StateVersion, StateVersionDetail, StateVersionList,
};
pub use status::{Port, Status};
pub use time::Time;
pub(crate) use tokens::read_token_id;
pub use tokens::{CreatedToken, LogIn, LoggedIn, NewToken, Token, TokenList};
pub use users::{Me, NewUser, PasswordChange, User, UserChange, UserList};
pub(crate) use verbs::Order;
pub use verbs::{ActionVerb, Done, Outcome, VerbRequest, VerbResult};
pub use webhooks::{
    CreatedWebhook, DeadDelivery, DeadDeliveryList, NewWebhook, Redelivery, Replay, Webhook, WebhookChange,
    WebhookFilter, WebhookList, WebhookTest,
};
pub use windows::{
    Assigned, Maintenance, MaintenanceList, MaintenanceMode, MinionWindows, Named, Strategy, TouchedList, TouchedRun,
    Window, WindowChange, WindowsChanged,
};
