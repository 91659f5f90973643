//! What a client can ask about the functions that minions know.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{Function, FunctionDetail, FunctionList, FunctionRefresh, FunctionsRefreshed};
use hyper::Method;

impl Client {
    /// The functions in whose name or documentation these words are.
    pub async fn functions(&self, search: Option<&str>) -> Result<Vec<Function>, ClientError> {
        self.pages::<FunctionList>("/api/v1/functions", Query::new().add("search", search)).await
    }

    /// One function, as each kind of minion describes it.
    pub async fn function(&self, name: &str) -> Result<FunctionDetail, ClientError> {
        self.get(&format!("/api/v1/functions/{}", escape(name))).await
    }

    /// Asks one minion of each kind what it knows.
    pub async fn refresh_functions(&self, wanted: &FunctionRefresh) -> Result<FunctionsRefreshed, ClientError> {
        self.send(Method::POST, "/api/v1/functions/refresh", wanted).await
    }
}

impl Page for FunctionList {
    type Item = Function;

    fn split(self) -> (Vec<Function>, Option<String>) {
        (self.functions, self.next)
    }
}
