//! What a client can ask about system groups.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{Group, GroupContent, GroupDetail, GroupList, NewGroup};
use hyper::Method;

impl Client {
    /// The groups.
    pub async fn groups(&self) -> Result<Vec<Group>, ClientError> {
        self.pages::<GroupList>("/api/v1/groups", Query::new()).await
    }

    /// One group, with its minions.
    pub async fn group(&self, name: &str) -> Result<GroupDetail, ClientError> {
        self.get(&path(name)).await
    }

    /// Makes a group.
    pub async fn create_group(&self, group: &NewGroup) -> Result<GroupDetail, ClientError> {
        self.create("/api/v1/groups", group).await
    }

    /// Says what a group is that is still at that version.
    pub async fn put_group(&self, name: &str, version: i64, group: &GroupContent) -> Result<GroupDetail, ClientError> {
        self.change(Method::PUT, &path(name), version, group).await
    }

    /// Removes a group that is still at that version.
    pub async fn delete_group(&self, name: &str, version: i64) -> Result<(), ClientError> {
        self.remove(&path(name), Some(version)).await
    }
}

impl Page for GroupList {
    type Item = Group;

    fn split(self) -> (Vec<Group>, Option<String>) {
        (self.groups, self.next)
    }
}

fn path(name: &str) -> String {
    format!("/api/v1/groups/{}", escape(name))
}
