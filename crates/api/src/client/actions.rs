//! What a client can ask about actions.

use super::{Client, ClientError, Query, escape};
use crate::shape::{
    ActionDetail, ActionList, ActionRequest, ActionTypeList, ActionVerb, Created, DeadLetterList, Explanation,
    RunDetail, RunList, VerbRequest, VerbResult,
};
use hyper::Method;

/// Which actions are wanted.
#[derive(Clone, Debug, Default)]
pub struct ActionQuery {
    /// Only older than this one
    pub before: Option<i64>,
    /// At most so many
    pub limit: Option<usize>,
    /// Only these: `open`, `failed` or `completed`
    pub state: Option<String>,
    /// The archived ones instead of the others
    pub archived: bool,
    /// With the server's own housekeeping
    pub internal: bool,
    /// Only asked for by this user
    pub user: Option<String>,
    /// Only with a run on this minion
    pub minion: Option<String>,
}

/// Which runs of an action are wanted.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    /// Only in this state
    pub state: Option<String>,
    /// Only minions after this one
    pub after: Option<String>,
    /// At most so many
    pub limit: Option<usize>,
}

impl Client {
    /// Asks for an action. It is done once, even if the connection breaks on the way.
    pub async fn create_action(&self, request: &ActionRequest) -> Result<Created, ClientError> {
        self.create("/api/v1/actions", request).await
    }

    /// A page of actions, newest first.
    pub async fn actions(&self, query: &ActionQuery) -> Result<ActionList, ClientError> {
        let flag = |set: bool| set.then_some(true);
        let query = Query::new()
            .add("before", query.before)
            .add("limit", query.limit)
            .add("state", query.state.as_ref())
            .add("archived", flag(query.archived))
            .add("internal", flag(query.internal))
            .add("user", query.user.as_ref())
            .add("minion", query.minion.as_ref());
        self.get(&query.onto("/api/v1/actions")).await
    }

    /// One action.
    pub async fn action(&self, id: i64) -> Result<ActionDetail, ClientError> {
        self.get(&format!("/api/v1/actions/{id}")).await
    }

    /// A page of an action's runs, in the order of minions.
    pub async fn runs(&self, id: i64, query: &RunQuery) -> Result<RunList, ClientError> {
        let query = Query::new()
            .add("state", query.state.as_ref())
            .add("after", query.after.as_ref())
            .add("limit", query.limit);
        self.get(&query.onto(&format!("/api/v1/actions/{id}/runs"))).await
    }

    /// One run, with what was tried before.
    pub async fn run_of(&self, id: i64, minion: &str) -> Result<RunDetail, ClientError> {
        self.get(&format!("/api/v1/actions/{id}/runs/{}", escape(minion))).await
    }

    /// Why one run stands where it stands.
    pub async fn explain(&self, id: i64, minion: &str) -> Result<Explanation, ClientError> {
        self.get(&format!("/api/v1/actions/{id}/runs/{}/explain", escape(minion))).await
    }

    /// Does something with the actions that the request names.
    pub async fn act(&self, verb: ActionVerb, request: &VerbRequest) -> Result<VerbResult, ClientError> {
        self.send(Method::POST, &format!("/api/v1/actions/{}", verb.as_str()), request).await
    }

    /// The action types there are.
    pub async fn action_types(&self) -> Result<ActionTypeList, ClientError> {
        self.get("/api/v1/action-types").await
    }

    /// What could not be processed and was set aside, newest first, before this number.
    pub async fn dead_letters(&self, before: Option<i64>, limit: Option<usize>) -> Result<DeadLetterList, ClientError> {
        let query = Query::new().add("before", before).add("limit", limit);
        self.get(&query.onto("/api/v1/dead-letters")).await
    }

    /// Everything that is counted, as Prometheus reads it.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        self.text("/metrics").await
    }
}
