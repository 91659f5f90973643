//! `/keys`: the keys there are, and new ones for minions that are being installed.
//!
//! A new pair is answered as a tar archive and is nowhere else: neither the database nor any event has the private key.

use super::Salt;
use super::accept::Format;
use super::body::Body;
use super::call::{Asker, value_of};
use super::commands::{check_enabled, refuse_query};
use super::error::{Failure, Proof, Voice};
use super::lowdata::{House, flag, given, text};
use super::session::{self, Signed, Source};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};

/// `GET /keys`
pub(super) async fn list(
    salt: State<Salt>,
    query: RawQuery,
    format: Format,
    signed: Option<Signed>,
) -> Result<Response, Failure> {
    look(salt, query, format, signed, "key.list_all", Map::new()).await
}

/// `GET /keys/<mid>`
pub(super) async fn show(
    salt: State<Salt>,
    Path(mid): Path<String>,
    query: RawQuery,
    format: Format,
    signed: Option<Signed>,
) -> Result<Response, Failure> {
    look(salt, query, format, signed, "key.finger", Map::from_iter([("match".into(), mid.into())])).await
}

async fn look(
    State(salt): State<Salt>,
    RawQuery(query): RawQuery,
    format: Format,
    signed: Option<Signed>,
    fun: &str,
    kwargs: Map,
) -> Result<Response, Failure> {
    refuse_query(query.as_deref(), &["mid"])?;
    check_enabled(&salt, "wheel")?;
    let asker = signed.map(Signed::asker).ok_or_else(Failure::no_credentials)?;
    let found = value_of(&salt, asker, House::Wheel, fun, kwargs).await?;
    Ok(format.reply(&Value::map([("return", found)])))
}

/// `POST /keys`: makes a pair of keys, accepts the public one, answers both.
pub(super) async fn make(
    State(salt): State<Salt>,
    source: Source,
    signed: Option<Signed>,
    body: Body,
) -> Result<Response, Failure> {
    check_enabled(&salt, "wheel")?;
    let asked = match body.value {
        Value::Map(map) => map,
        Value::List(mut items) if items.len() == 1 => match items.pop() {
            Some(Value::Map(map)) => map,
            _ => return Err(missing_id()),
        },
        _ => return Err(missing_id()),
    };
    let id = text(&asked, "mid").or_else(|| text(&asked, "id_")).ok_or_else(missing_id)?;
    let id = MinionId::new(id).map_err(|error| Failure::invalid(error.to_string()))?;
    let asker = identify(&salt, source, signed, &asked).await?;
    let mut kwargs = Map::from_iter([("id_".into(), Value::from(&id)), ("force".into(), flag(&asked, "force").into())]);
    if let Some(bits) = given(&asked, "keysize") {
        kwargs.insert("keysize", bits.clone());
    }
    let made = value_of(&salt, asker, House::Wheel, "key.gen_accept", kwargs).await?;
    let part = |name: &str| made.get(name).and_then(Value::as_str).map(str::as_bytes);
    match (part("pub"), part("priv")) {
        (Some(public), Some(private)) => Ok(archive_of(&id, public, private)),
        // It failed, and says why.
        _ if made.as_str().is_some() => Err(Failure::invalid(made.key_text())),
        _ => Err(Failure::new(StatusCode::CONFLICT, format!("{id} has a key already; send force=true to replace it"))),
    }
}

fn missing_id() -> Failure {
    Failure::invalid("Require \"mid\" param: the id of the minion that the keys are for")
}

/// By the credentials in the body, or by a session.
async fn identify(salt: &Salt, source: Source, signed: Option<Signed>, asked: &Map) -> Result<Asker, Failure> {
    let Some(credentials) = session::credentials(asked) else {
        return signed.map(Signed::asker).ok_or_else(Failure::no_credentials);
    };
    let wrong = || Failure::wrong_credentials(Voice::Master, Proof::Password, &credentials.user);
    let identity = session::vouch(salt, source, &credentials).await?.ok_or_else(wrong)?;
    Ok(Asker { caller: session::caller_of(salt, identity, source).await?, proof: Proof::Password })
}

fn archive_of(id: &MinionId, public: &[u8], private: &[u8]) -> Response {
    let disposition = format!("attachment; filename=\"saltkeys-{id}.tar\"");
    let mut archive = Vec::with_capacity(10_240);
    // The private key is for its minion alone; rest_cherrypy lets everybody read it.
    member(&mut archive, "minion.pub", 0o644, public);
    member(&mut archive, "minion.pem", 0o600, private);
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive.resize(archive.len().next_multiple_of(20 * BLOCK), 0);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache")),
    ];
    let mut response = (headers, archive).into_response();
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// The unit of tar archives.
const BLOCK: usize = 512;

/// Appends a file to a tar archive (ustar).
fn member(archive: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) {
    let mut head = [0_u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| head[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    // The checksum is made with blanks in its place.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend_from_slice(&head);
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::io::Write;
    use std::process::{Command, Stdio};

    async fn archive() -> Vec<u8> {
        let response = archive_of(&MinionId::new("kick1").unwrap(), b"public\n", &[b'x'; 600]);
        assert_eq!(response.headers()["content-disposition"], "attachment; filename=\"saltkeys-kick1.tar\"");
        assert_eq!(response.headers()["content-type"], "application/x-tar");
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn the_archive_is_whole_records() {
        assert_eq!(archive().await.len() % 10_240, 0);
    }

    #[tokio::test]
    async fn tar_reads_the_archive() {
        let archive = archive().await;
        let mut tar = Command::new("tar")
            .args(["-xOf", "-", "minion.pub"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let out = tar.wait_with_output().unwrap();
        assert!(out.status.success());
        assert_eq!(out.stdout, b"public\n");
    }
}
