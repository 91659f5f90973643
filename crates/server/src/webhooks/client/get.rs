//! Gets a text from an address: what that may cost in bytes, time and redirects is bounded.

use super::{Address, Client, Failure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, Response, StatusCode, header};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often an answer may lead to another address.
const REDIRECTS: usize = 3;

impl Client {
    /// The text at an address of this kind, of at most so many bytes, all within `limit`. Nothing of the address is in a
    /// failure.
    pub(crate) async fn get(&self, what: &str, url: &str, most: usize, limit: Duration) -> Result<String, Failure> {
        let deadline = Instant::now() + limit;
        timeout_at(deadline, self.follow(what, url, most)).await.map_err(|_| Failure::TimedOut(limit))?
    }

    async fn follow(&self, what: &str, url: &str, most: usize) -> Result<String, Failure> {
        let unsendable = |error: crate::Error| Failure::Unsendable(error.to_string());
        let mut address = Address::parse_of(what, url).map_err(unsendable)?;
        for _ in 0..=REDIRECTS {
            let mut connection = self.connect(&address).await?;
            let answer = connection.ask(request(&address)?).await?;
            if let Some(next) = redirect(&address, &answer) {
                address = Address::parse_of(what, &next).map_err(unsendable)?;
            } else if answer.status() == StatusCode::OK {
                let body = Limited::new(answer.into_body(), most).collect().await;
                let too_much = |_| Failure::Unsendable(format!("the answer broke off, or has more than {most} bytes"));
                let bytes = body.map_err(too_much)?.to_bytes();
                let no_text = |_| Failure::Unsendable("the answer is not text in UTF-8".into());
                return String::from_utf8(bytes.to_vec()).map_err(no_text);
            } else {
                return Err(Failure::Unsendable(format!("the server there answered {}", answer.status())));
            }
        }
        Err(Failure::Unsendable(format!("more than {REDIRECTS} redirects")))
    }
}

fn request(address: &Address) -> Result<Request<Full<Bytes>>, Failure> {
    Request::get(address.path.as_str())
        .header(header::HOST, address.authority.as_str())
        .header(header::USER_AGENT, concat!("saltern/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "text/calendar, text/plain;q=0.5, */*;q=0.1")
        .header(header::CONNECTION, "close")
        .body(Full::default())
        .map_err(|_| Failure::Unsendable("the URL cannot be asked for".into()))
}

/// Where an answer leads to, if it does.
fn redirect<B>(from: &Address, answer: &Response<B>) -> Option<String> {
    if !answer.status().is_redirection() {
        return None;
    }
    let to = answer.headers().get(header::LOCATION)?.to_str().ok()?;
    // What is encrypted does not become open on the way.
    let scheme = if from.is_encrypted { "https" } else { "http" };
    let is_path = to.starts_with('/') && !to.starts_with("//");
    let to = if is_path { format!("{scheme}://{}{to}", from.authority) } else { to.to_owned() };
    let is_weaker = from.is_encrypted && !to.to_ascii_lowercase().starts_with("https://");
    (!is_weaker).then_some(to)
}
