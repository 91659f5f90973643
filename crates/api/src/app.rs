//! The words of the facade in one place: what [`saltern_server::app`] takes and gives.

pub(crate) use saltern_server::app::{
    Accepted, Action, ActionFilter, ActionQuery, ActionRequest, Attempt, Counts, DeadLetter, Done, Explanation,
    JobDetail, JobSummary, Progress, ReturnEntry, Run, RunRequest, Unanswered, Verb, What, Why,
};
