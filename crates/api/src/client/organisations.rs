//! What a client can ask about organisations.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{NewOrganisation, Organisation, OrganisationContent, OrganisationList};
use hyper::Method;

impl Client {
    /// The organisations.
    pub async fn organisations(&self) -> Result<Vec<Organisation>, ClientError> {
        self.pages::<OrganisationList>("/api/v1/organisations", Query::new()).await
    }

    /// One organisation.
    pub async fn organisation(&self, name: &str) -> Result<Organisation, ClientError> {
        self.get(&path(name)).await
    }

    /// Makes an organisation.
    pub async fn create_organisation(&self, organisation: &NewOrganisation) -> Result<Organisation, ClientError> {
        self.create("/api/v1/organisations", organisation).await
    }

    /// Says what an organisation is that is still at that version.
    pub async fn put_organisation(
        &self,
        name: &str,
        version: i64,
        content: &OrganisationContent,
    ) -> Result<Organisation, ClientError> {
        self.change(Method::PUT, &path(name), version, content).await
    }

    /// Removes an organisation that is still at that version.
    pub async fn delete_organisation(&self, name: &str, version: i64) -> Result<(), ClientError> {
        self.remove(&path(name), Some(version)).await
    }
}

impl Page for OrganisationList {
    type Item = Organisation;

    fn split(self) -> (Vec<Organisation>, Option<String>) {
        (self.organisations, self.next)
    }
}

fn path(name: &str) -> String {
    format!("/api/v1/organisations/{}", escape(name))
}
