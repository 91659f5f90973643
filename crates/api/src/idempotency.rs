//! `Idempotency-Key`: a request that is sent again is answered again, and carried out once.
//!
//! A layer around every `POST`. The key belongs to the user, and to the request: method, path, query, body, and what the
//! token in use is good for. The request is carried out to its end even if the client hangs up meanwhile, so that its answer is
//! there when it asks again. An answer that is an error is not kept: the same key may be used for another try. What holds
//! when the server dies is told in `server::app::requests`.

use crate::error::ApiError;
use crate::openapi::WITHOUT_KEY;
use crate::v1::Shared;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, MatchedPath, Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use saltern_server::Error;
use saltern_server::app::{App, Caller, KeptAnswer, Repeated};
use sha2::{Digest, Sha256};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The longest key.
const LONGEST: usize = 255;

/// Headers of an answer that are kept with it.
const KEPT: [HeaderName; 3] = [header::CONTENT_TYPE, header::ETAG, header::LOCATION];

/// Carries a request out, or answers what was answered before.
pub(crate) async fn keep(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    if *request.method() != Method::POST || !request.headers().contains_key(KEY) {
        return next.run(request).await;
    }
    // Nobody's request is refused where it is handled.
    let Some(caller) = request.extensions().get::<Caller>().cloned() else { return next.run(request).await };
    match once(shared.app, caller, request, next).await {
        Ok(answer) => answer,
        Err(error) => error.into_response(),
    }
}

async fn once(app: App, caller: Caller, request: Request, next: Next) -> Result<Response, ApiError> {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    if WITHOUT_KEY.contains(&path) {
        let message = "this takes no Idempotency-Key: its answer tells a secret, and answers with a key are kept";
        return Err(ApiError::invalid(message));
    }
    let key = read_key(&request)?;
    let (parts, body) = request.into_parts();
    let body =
        Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await.map_err(
            |rejection| match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    let text = rejection.body_text();
                    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text, "send less in one request")
                }
                _ => ApiError::invalid(rejection.body_text()),
            },
        )?;
    match app.begin_request(&caller, &key, fingerprint(&parts, &caller, &body)).await? {
        Repeated::Answered(answer) => Ok(replay(answer)),
        Repeated::Other => {
            let message = "this Idempotency-Key was used for another request";
            Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", message, "choose a new key"))
        }
        Repeated::Running => {
            let message = "a request with this Idempotency-Key was begun, and how it ended is not known yet";
            let hint = "ask again in a moment; if that does not help, look whether it was done";
            Err(ApiError::new(StatusCode::CONFLICT, "in_progress", message, hint))
        }
        Repeated::No => {
            let request = Request::from_parts(parts, Body::from(body));
            let answered = tokio::spawn(async move { carry_out(&app, &caller, &key, next.run(request).await).await });
            answered.await.map_err(|error| Error::Internal(format!("the request was not finished: {error}")))?
        }
    }
}

/// Keeps a good answer, and forgets that there was a request if it came to nothing.
async fn carry_out(app: &App, caller: &Caller, key: &str, answer: Response) -> Result<Response, ApiError> {
    let (parts, body) = answer.into_parts();
    let unread = |_| Error::Internal("an answer could not be read".into());
    let body = body.collect().await.map_err(unread)?.to_bytes();
    if parts.status.is_success() {
        let header = |name: &HeaderName| {
            let value = parts.headers.get(name)?.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        };
        let headers = KEPT.iter().filter_map(header).collect();
        app.end_request(caller, key, KeptAnswer { status: parts.status.as_u16(), headers, body: body.to_vec() })
            .await?;
    } else {
        app.drop_request(caller, key).await?;
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn replay(answer: KeptAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn read_key(request: &Request) -> Result<String, ApiError> {
    let mut given = request.headers().get_all(KEY).iter();
    let key = given.next().and_then(|key| key.to_str().ok()).unwrap_or_default();
    let is_key = (1..=LONGEST).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_key || given.next().is_some() {
        return Err(ApiError::invalid(format!("Idempotency-Key is given once, as 1 to {LONGEST} visible characters")));
    }
    Ok(key.to_owned())
}

/// All that makes it this request.
fn fingerprint(parts: &Parts, caller: &Caller, body: &[u8]) -> [u8; 32] {
    let target = parts.uri.path_and_query().map(|target| target.as_str()).unwrap_or_default();
    let mut hash = Sha256::new();
    for field in [parts.method.as_str(), target, caller.rights.scope.as_str()] {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    hash.update(body);
    hash.finalize().into()
}
