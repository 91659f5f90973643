//! The words of the facade in one place: what [`saltern_server::app`] takes and gives.

pub(crate) use saltern_server::app::{
    Accepted, Action, ActionFilter, ActionQuery, ActionRequest, Approval, Attempt, Chain, ChainDraft, Counts,
    DeadLetter, Done, Explanation, JobDetail, JobSummary, Launch, LaunchCounts, LaunchDone, LaunchMinion, LaunchQuery,
    LaunchRequest, LaunchVerb, LaunchView, Preview, Progress, ReturnEntry, Run, RunRequest, Unanswered, Verb, What,
    Why, draft_of, steps_of,
};
