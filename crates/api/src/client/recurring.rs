//! What a client can ask about what recurs.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{
    FireList, PlannedFire, PlannedFireList, Recurring, RecurringDone, RecurringDraft, RecurringEntity, RecurringList,
    RecurringVerb, Time,
};
use hyper::Method;

impl Client {
    /// What recurs, oldest first; of one thing, if it is given.
    pub async fn recurrings(&self, on: Option<&RecurringEntity>) -> Result<Vec<Recurring>, ClientError> {
        let kind = on.and_then(|on| serde_json::to_value(on.kind).ok());
        let kind = kind.as_ref().and_then(|kind| kind.as_str());
        let query = Query::new().add("kind", kind).add("subject", on.map(|on| &on.subject));
        self.pages::<RecurringList>("/api/v1/recurring", query).await
    }

    /// What recurs on a minion, whatever it was made for.
    pub async fn recurrings_of_minion(&self, minion: &str) -> Result<Vec<Recurring>, ClientError> {
        let list: RecurringList = self.get(&format!("/api/v1/minions/{}/recurring", escape(minion))).await?;
        Ok(list.recurring)
    }

    /// One of them.
    pub async fn recurring(&self, id: i64) -> Result<Recurring, ClientError> {
        self.get(&path(id, "")).await
    }

    /// Lets something recur, once, even if the connection breaks on the way.
    pub async fn create_recurring(&self, draft: &RecurringDraft) -> Result<Recurring, ClientError> {
        self.create("/api/v1/recurring", draft).await
    }

    /// Changes one that is still at that version.
    pub async fn put_recurring(&self, id: i64, version: i64, draft: &RecurringDraft) -> Result<Recurring, ClientError> {
        self.change(Method::PUT, &path(id, ""), version, draft).await
    }

    /// Removes one that is still at that version.
    pub async fn delete_recurring(&self, id: i64, version: i64) -> Result<(), ClientError> {
        self.remove(&path(id, ""), Some(version)).await
    }

    /// Does something with one, once, even if the connection breaks on the way.
    pub async fn act_on_recurring(&self, id: i64, verb: RecurringVerb) -> Result<RecurringDone, ClientError> {
        self.create(&path(id, &format!("/{}", verb.as_str())), &()).await
    }

    /// Its next times, and whom each would hit.
    pub async fn preview_recurring(&self, id: i64, count: usize) -> Result<Vec<PlannedFire>, ClientError> {
        let query = Query::new().add("count", Some(count));
        let list: PlannedFireList = self.get(&query.onto(&path(id, "/preview"))).await?;
        Ok(list.fires)
    }

    /// The same for one that there is not yet.
    pub async fn preview_draft(&self, draft: &RecurringDraft, count: usize) -> Result<Vec<PlannedFire>, ClientError> {
        let path = Query::new().add("count", Some(count)).onto("/api/v1/recurring/preview");
        let list: PlannedFireList = self.send(Method::POST, &path, draft).await?;
        Ok(list.fires)
    }

    /// A page of its times that have come, newest first.
    pub async fn fires(&self, id: i64, before: Option<Time>, limit: usize) -> Result<FireList, ClientError> {
        let query = Query::new().add("before", before.map(|before| before.0.stamp())).add("limit", Some(limit));
        self.get(&query.onto(&path(id, "/fires"))).await
    }
}

impl Page for RecurringList {
    type Item = Recurring;

    fn split(self) -> (Vec<Recurring>, Option<String>) {
        (self.recurring, self.next.map(|number| number.to_string()))
    }
}

fn path(id: i64, more: &str) -> String {
    format!("/api/v1/recurring/{id}{more}")
}
