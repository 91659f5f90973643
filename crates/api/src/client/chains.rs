//! What a client can ask about chains and their launches. A chain is named by its number or its name.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{
    Approve, Chain, ChainClear, ChainCopy, ChainDetail, ChainDraft, ChainList, ChainState, ChainsCleared, Explanation,
    Launch, LaunchDetail, LaunchDone, LaunchList, LaunchMinion, LaunchMinionList, LaunchPreview, LaunchRequest,
    NewStep, Plan, StateDetail,
};
use hyper::Method;

/// Which launches are wanted.
#[derive(Clone, Debug, Default)]
pub struct LaunchQuery {
    /// Only older than this one
    pub before: Option<i64>,
    /// At most so many
    pub limit: Option<usize>,
    /// Only those that have not ended
    pub open: bool,
    /// Only of this chain, by its number or name
    pub chain: Option<String>,
}

impl Client {
    /// The chains, oldest first.
    pub async fn chains(&self) -> Result<Vec<Chain>, ClientError> {
        self.pages::<ChainList>("/api/v1/chains", Query::new()).await
    }

    /// One chain with its steps.
    pub async fn chain(&self, which: &str) -> Result<ChainDetail, ClientError> {
        self.get(&chain_path(which, "")).await
    }

    /// Makes a chain, once, even if the connection breaks on the way.
    pub async fn create_chain(&self, draft: &ChainDraft) -> Result<ChainDetail, ClientError> {
        self.create("/api/v1/chains", draft).await
    }

    /// Changes a chain that is still at that version.
    pub async fn put_chain(&self, id: i64, version: i64, draft: &ChainDraft) -> Result<ChainDetail, ClientError> {
        self.change(Method::PUT, &chain_path(&id.to_string(), ""), version, draft).await
    }

    /// Removes a chain that is still at that version.
    pub async fn delete_chain(&self, id: i64, version: i64) -> Result<(), ClientError> {
        self.remove(&chain_path(&id.to_string(), ""), Some(version)).await
    }

    /// Adds a step to a chain. Whoever adds at the same time is added, too.
    pub async fn add_step(&self, which: &str, step: &NewStep) -> Result<ChainDetail, ClientError> {
        self.create(&chain_path(which, "/steps"), step).await
    }

    /// Keeps what a chain does as a state of the catalogue.
    pub async fn save_chain_as_state(&self, which: &str, name: &str) -> Result<StateDetail, ClientError> {
        self.create(&chain_path(which, "/state"), &ChainState { name: name.to_owned() }).await
    }

    /// Copies a chain. The copy is one's own.
    pub async fn copy_chain(&self, which: &str, name: &str) -> Result<ChainDetail, ClientError> {
        self.create(&chain_path(which, "/copy"), &ChainCopy { name: name.to_owned() }).await
    }

    /// Launches a chain, once, even if the connection breaks on the way.
    pub async fn launch(&self, which: &str, request: &LaunchRequest) -> Result<Launch, ClientError> {
        self.create(&chain_path(which, "/launch"), request).await
    }

    /// Whom a launch would be for; nothing is launched.
    pub async fn preview_launch(&self, which: &str, request: &LaunchRequest) -> Result<LaunchPreview, ClientError> {
        self.send(Method::POST, &chain_path(which, "/preview"), request).await
    }

    /// Clears what minions keep of chains.
    pub async fn clear_chains(&self, which: &ChainClear) -> Result<ChainsCleared, ClientError> {
        self.send(Method::POST, "/api/v1/chains/clear", which).await
    }

    /// A page of launches, newest first.
    pub async fn launches(&self, query: &LaunchQuery) -> Result<LaunchList, ClientError> {
        let query = Query::new()
            .add("before", query.before)
            .add("limit", query.limit)
            .add("open", query.open.then_some(true))
            .add("chain", query.chain.as_ref());
        self.get(&query.onto("/api/v1/launches")).await
    }

    /// One launch with its steps.
    pub async fn launch_detail(&self, id: i64) -> Result<LaunchDetail, ClientError> {
        self.get(&launch_path(id, "")).await
    }

    /// Where a launch stands on each of its minions.
    pub async fn launch_minions(&self, id: i64) -> Result<Vec<LaunchMinion>, ClientError> {
        self.pages::<LaunchMinionList>(&launch_path(id, "/minions"), Query::new()).await
    }

    /// What a launch comes to on one minion.
    pub async fn launch_plan(&self, id: i64, minion: &str) -> Result<Plan, ClientError> {
        self.get(&launch_path(id, &format!("/minions/{}/plan", escape(minion)))).await
    }

    /// Why a launch stands where it stands on one minion.
    pub async fn explain_launch(&self, id: i64, minion: &str) -> Result<Explanation, ClientError> {
        self.get(&launch_path(id, &format!("/minions/{}/explain", escape(minion)))).await
    }

    /// Cancels what has not begun.
    pub async fn cancel_launch(&self, id: i64) -> Result<LaunchDone, ClientError> {
        self.send(Method::POST, &launch_path(id, "/cancel"), &()).await
    }

    /// Cancels what has not begun, and kills what runs.
    pub async fn stop_launch(&self, id: i64) -> Result<LaunchDone, ClientError> {
        self.send(Method::POST, &launch_path(id, "/stop"), &()).await
    }

    /// Says yes to a step.
    pub async fn approve_step(&self, id: i64, step: usize) -> Result<LaunchDone, ClientError> {
        self.send(Method::POST, &launch_path(id, "/approve"), &Approve { step }).await
    }
}

impl Page for ChainList {
    type Item = Chain;

    fn split(self) -> (Vec<Chain>, Option<String>) {
        (self.chains, self.next.map(|number| number.to_string()))
    }
}

impl Page for LaunchMinionList {
    type Item = LaunchMinion;

    fn split(self) -> (Vec<LaunchMinion>, Option<String>) {
        (self.minions, self.next)
    }
}

fn chain_path(which: &str, more: &str) -> String {
    format!("/api/v1/chains/{}{more}", escape(which))
}

fn launch_path(id: i64, more: &str) -> String {
    format!("/api/v1/launches/{id}{more}")
}
