//! The words of the facade in one place: what [`saltern_server::app`] takes and gives.

pub(crate) use saltern_server::app::{
    ANY_VERSION, Accepted, Action, ActionFilter, ActionQuery, ActionRequest, Approval, Attempt, Calendar,
    CalendarDraft, CatchUp, Chain, ChainDraft, Counts, DeadLetter, Done, EntityKind, EntityRef, Explanation,
    FeedFilter, FireEntry, JobDetail, JobSummary, Launch, LaunchCounts, LaunchDone, LaunchMinion, LaunchQuery,
    LaunchRequest, LaunchVerb, LaunchView, MinionWindow, MinionWindows, Mode, Overlap, PlannedFire, Preview, Progress,
    RecurringDone, RecurringDraft, RecurringFilter, RecurringVerb, RecurringView, RecurringWhat, ReturnEntry, Run,
    RunRequest, ScheduleDraft, ScheduleEntry, Strategy, Subject, Touched, Unanswered, Verb, What, Why, WindowEdit,
    WindowsChanged, draft_of, steps_of,
};
