//! What a client can ask about the state catalogue. `org` is the organisation; nothing: one's own.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{
    AssignedStateList, Assignee, AssigneeList, CatalogueState, NewState, StateContent, StateDetail, StateList,
    StateVersion, StateVersionDetail, StateVersionList,
};
use hyper::Method;

impl Client {
    /// The states.
    pub async fn states(&self, org: Option<&str>) -> Result<Vec<CatalogueState>, ClientError> {
        self.pages::<StateList>("/api/v1/states", Query::new().add("org", org)).await
    }

    /// One state, with its text.
    pub async fn state(&self, org: Option<&str>, name: &str) -> Result<StateDetail, ClientError> {
        self.get(&path(org, name, "")).await
    }

    /// Makes a state.
    pub async fn create_state(&self, state: &NewState) -> Result<StateDetail, ClientError> {
        self.create("/api/v1/states", state).await
    }

    /// Says what a state is that is still at that version.
    pub async fn put_state(
        &self,
        org: Option<&str>,
        name: &str,
        version: i64,
        content: &StateContent,
    ) -> Result<StateDetail, ClientError> {
        self.change(Method::PUT, &path(org, name, ""), version, content).await
    }

    /// Removes a state that is still at that version.
    pub async fn delete_state(&self, org: Option<&str>, name: &str, version: i64) -> Result<(), ClientError> {
        self.remove(&path(org, name, ""), Some(version)).await
    }

    /// The versions of a state, newest first.
    pub async fn state_versions(&self, org: Option<&str>, name: &str) -> Result<Vec<StateVersion>, ClientError> {
        let (mut versions, mut before) = (Vec::new(), None);
        loop {
            let query = Query::new().add("org", org).add("before", before).add("limit", Some(super::request::PAGE));
            let page: StateVersionList = self.get(&query.onto(&path(None, name, "/versions"))).await?;
            versions.extend(page.versions);
            match page.next {
                // A page that does not go on would be read for ever.
                Some(next) if before.is_none_or(|before| next < before) => before = Some(next),
                Some(_) => return Err(ClientError::Protocol("the pages of a list do not end".into())),
                None => return Ok(versions),
            }
        }
    }

    /// One version of a state, with its text.
    pub async fn state_version(
        &self,
        org: Option<&str>,
        name: &str,
        version: i64,
    ) -> Result<StateVersionDetail, ClientError> {
        self.get(&path(org, name, &format!("/versions/{version}"))).await
    }

    /// Whom a state is assigned to.
    pub async fn state_assignees(&self, org: Option<&str>, name: &str) -> Result<AssigneeList, ClientError> {
        self.get(&path(org, name, "/assignments")).await
    }

    /// Assigns a state.
    pub async fn assign_state(&self, org: Option<&str>, name: &str, to: &Assignee) -> Result<(), ClientError> {
        self.tell(Method::PUT, &assignment(org, name, to), &serde_json::Map::new()).await
    }

    /// Takes an assignment back.
    pub async fn unassign_state(&self, org: Option<&str>, name: &str, from: &Assignee) -> Result<(), ClientError> {
        self.remove(&assignment(org, name, from), None).await
    }

    /// What is assigned to a minion.
    pub async fn assigned_states(&self, minion: &str) -> Result<AssignedStateList, ClientError> {
        self.get(&format!("/api/v1/minions/{}/states", escape(minion))).await
    }
}

impl Page for StateList {
    type Item = CatalogueState;

    fn split(self) -> (Vec<CatalogueState>, Option<String>) {
        (self.states, self.next)
    }
}

fn assignment(org: Option<&str>, name: &str, Assignee { kind, subject }: &Assignee) -> String {
    path(org, name, &format!("/assignments/{}/{}", kind.as_str(), escape(subject)))
}

fn path(org: Option<&str>, name: &str, rest: &str) -> String {
    Query::new().add("org", org).onto(&format!("/api/v1/states/{}{rest}", escape(name)))
}
