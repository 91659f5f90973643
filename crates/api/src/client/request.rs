//! One request and its answer, over whatever connection the endpoint gives.

use super::{Client, ClientError, Lines, Page, Query};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::time::Duration;

/// The largest answer that is read as a whole.
const ANSWER_LIMIT: usize = 1 << 30;

/// How many entries of a list are asked for at once: as many as the server gives.
pub(super) const PAGE: usize = 1_000;

/// How often a request is asked about that the server is still at, and how long after each other.
const AGAIN: usize = 10;
const MOMENT: Duration = Duration::from_millis(500);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

/// What makes a request that is sent twice be done once.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Client {
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let answer = self.request(Method::GET, path, HeaderMap::new(), Bytes::new(), JSON).await?;
        self.read(answer).await
    }

    /// Everything on a list, page by page.
    pub(super) async fn pages<L: Page + DeserializeOwned>(
        &self,
        path: &str,
        query: Query,
    ) -> Result<Vec<L::Item>, ClientError> {
        self.pages_after::<L>(path, query, None).await
    }

    /// What follows on a list after an entry.
    pub(super) async fn pages_after<L: Page + DeserializeOwned>(
        &self,
        path: &str,
        query: Query,
        mut after: Option<String>,
    ) -> Result<Vec<L::Item>, ClientError> {
        let query = query.add("limit", Some(PAGE));
        let mut items = Vec::new();
        loop {
            let page: L = self.get(&query.clone().add("after", after.as_ref()).onto(path)).await?;
            let (more, next) = page.split();
            items.extend(more);
            if next.is_none() {
                return Ok(items);
            }
            // A page that does not go on from where it was asked to would be read for ever.
            if next == after {
                return Err(ClientError::Protocol("the pages of a list do not end".into()));
            }
            after = next;
        }
    }

    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let answer = self.request(method, path, HeaderMap::new(), written(body)?, JSON).await?;
        self.read(answer).await
    }

    /// Sends something that nothing is answered to.
    pub(super) async fn tell(&self, method: Method, path: &str, body: &impl Serialize) -> Result<(), ClientError> {
        let answer = self.request(method, path, HeaderMap::new(), written(body)?, JSON).await?;
        self.whole(self.succeeded(answer).await?).await.map(drop)
    }

    /// Makes something new. A request whose answer got lost is sent once more under the same key, and is done once.
    pub(super) async fn create<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let (body, headers) = (written(body)?, HeaderMap::from_iter([(IDEMPOTENCY_KEY, key()?)]));
        let attempt = async || {
            let answer = self.request(Method::POST, path, headers.clone(), body.clone(), JSON).await?;
            self.read(answer).await
        };
        let lost = match attempt().await {
            Err(lost @ ClientError::Lost(_)) => lost,
            first => return first,
        };
        for _ in 0..AGAIN {
            match attempt().await {
                // The first failure says more: something was there to take the request.
                Err(ClientError::Unreachable { .. } | ClientError::NoAnswer { .. }) => return Err(lost),
                Err(ClientError::Refused { problem, .. }) if problem.code == "in_progress" => {
                    tokio::time::sleep(MOMENT).await;
                }
                second => return second,
            }
        }
        Err(lost)
    }

    /// Changes something that is still at the version that was seen.
    pub(super) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        version: i64,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let answer = self.request(method, path, if_match(version), written(body)?, JSON).await?;
        self.read(answer).await
    }

    /// Removes something; if a version is given, only at that one.
    pub(super) async fn remove(&self, path: &str, version: Option<i64>) -> Result<(), ClientError> {
        let headers = version.map(if_match).unwrap_or_default();
        let answer = self.request(Method::DELETE, path, headers, Bytes::new(), JSON).await?;
        self.whole(self.succeeded(answer).await?).await.map(drop)
    }

    pub(super) async fn text(&self, path: &str) -> Result<String, ClientError> {
        let answer = self.request(Method::GET, path, HeaderMap::new(), Bytes::new(), TEXT).await?;
        let body = self.whole(self.succeeded(answer).await?).await?;
        String::from_utf8(body.into()).map_err(|error| ClientError::Protocol(error.to_string()))
    }

    pub(super) async fn follow<T: DeserializeOwned>(&self, path: &str) -> Result<Lines<T>, ClientError> {
        let answer = self.request(Method::GET, path, HeaderMap::new(), Bytes::new(), LINES).await?;
        Ok(Lines::new(self.succeeded(answer).await?.into_body()))
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        accept: HeaderValue,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut connection = self.endpoint.connect().await?;
        let mut request = Request::builder()
            .method(method)
            .uri(self.endpoint.path(path))
            .body(Full::new(body))
            .map_err(|error| ClientError::Protocol(error.to_string()))?;
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::CONTENT_TYPE, JSON);
        request.headers_mut().insert(header::ACCEPT, accept);
        self.endpoint.address(&mut request)?;
        self.in_time(connection.send_request(request)).await?.map_err(|error| ClientError::Lost(error.to_string()))
    }

    async fn read<T: DeserializeOwned>(&self, answer: Response<Incoming>) -> Result<T, ClientError> {
        let body = self.whole(self.succeeded(answer).await?).await?;
        serde_json::from_slice(&body).map_err(|error| ClientError::Protocol(error.to_string()))
    }

    /// The answer if it is a good one, else the error it carries.
    async fn succeeded(&self, answer: Response<Incoming>) -> Result<Response<Incoming>, ClientError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let error = ClientError::refused(status.as_u16(), &self.whole(answer).await?);
        Err(match (status, self.endpoint.url()) {
            (StatusCode::UNAUTHORIZED, Some(url)) => {
                ClientError::NotLoggedIn { url: url.clone(), detail: error.to_string() }
            }
            _ => error,
        })
    }

    async fn whole(&self, answer: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = self.in_time(Limited::new(answer.into_body(), ANSWER_LIMIT).collect()).await?;
        Ok(body.map_err(|error| ClientError::Lost(error.to_string()))?.to_bytes())
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, ClientError> {
        let Some(patience) = self.endpoint.patience() else { return Ok(work.await) };
        let ended = tokio::time::timeout(patience, work).await;
        ended.map_err(|_| ClientError::Lost("the server has fallen silent".into()))
    }
}

fn written(body: &impl Serialize) -> Result<Bytes, ClientError> {
    Ok(serde_json::to_vec(body).map_err(|error| ClientError::Protocol(error.to_string()))?.into())
}

/// The version as an entity tag.
fn if_match(version: i64) -> HeaderMap {
    let tag = HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("*"));
    HeaderMap::from_iter([(header::IF_MATCH, tag)])
}

/// A key that nobody has used.
fn key() -> Result<HeaderValue, ClientError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| ClientError::Setup(format!("no random numbers: {error}")))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&text).map_err(|error| ClientError::Setup(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_an_entity_tag() {
        assert_eq!(if_match(7)[header::IF_MATCH], "\"7\"");
    }

    #[test]
    fn keys_differ() {
        assert_ne!(key().unwrap(), key().unwrap());
    }
}
