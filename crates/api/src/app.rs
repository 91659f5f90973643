//! The words of the facade in one place: what [`saltern_server::app`] takes and gives.
//!
//! It hands out some of the store's plain records as they are. Only their names come from there; nothing here may open a
//! [`saltern_store::Store`] or ask one.

pub(crate) use saltern_server::app::{
    Accepted, ActionQuery, ActionRequest, Done, Explanation, JobDetail, JobSummary, Progress, ReturnEntry, RunRequest,
    Unanswered, Verb, What, Why,
};
pub(crate) use saltern_store::{Action, ActionFilter, Attempt, Counts, DeadLetter, Run};
