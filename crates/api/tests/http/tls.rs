//! HTTPS: the handshake, and certificates that are replaced while the server runs.

use crate::house::{Client, House, get, in_time, read_to_end};
use axum::routing::get as on_get;
use axum::{Extension, Router};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use saltern_api::http::{Peer, TlsFiles};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

fn files(dir: &Path) -> TlsFiles {
    TlsFiles { cert: dir.join("cert.pem"), key: dir.join("key.pem") }
}

/// Puts a new certificate into the files, as renewal tools do; gives what clients have to believe.
fn renew(files: &TlsFiles) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["salt.example.org".into()]).unwrap();
    for (path, text) in [(&files.cert, made.cert.pem()), (&files.key, made.signing_key.serialize_pem())] {
        let draft = path.with_extension("new");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, path).unwrap();
    }
    made.cert.der().clone()
}

async fn house(files: TlsFiles) -> House {
    let router = Router::new().route(
        "/",
        on_get(|Extension(peer): Extension<Peer>| async move { if peer.secure { "secure" } else { "plain" } }),
    );
    House::open_with(router, |settings| {
        settings.tls = Some(files);
        settings.header_timeout = Duration::from_millis(500);
    })
    .await
}

async fn connect(house: &House, believed: &CertificateDer<'static>) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(believed.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("salt.example.org").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, house.connect().await).await
}

#[tokio::test]
async fn requests_come_by_tls_and_speak_http_1() {
    let dir = tempfile::tempdir().unwrap();
    let believed = renew(&files(dir.path()));
    let house = house(files(dir.path())).await;
    let stream = connect(&house, &believed).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    let answer = Client::over(stream).await.ask(get("/")).await;
    assert_eq!(answer.text(), "secure");
    assert!(answer.header("strict-transport-security").starts_with("max-age="));
    house.close().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let first = renew(&files);
    let house = house(files.clone()).await;
    let mut old = Client::over(connect(&house, &first).await.unwrap()).await;
    let second = renew(&files);
    let is_shown = || async { connect(&house, &second).await.is_ok() };
    saltern_testkit::wait::until("the new certificate", Duration::from_secs(20), is_shown).await;
    assert!(connect(&house, &first).await.is_err());
    let _ = old.ask(get("/")).await;
    house.close().await;
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    renew(&files(dir.path()));
    let house = house(files(dir.path())).await;
    assert_eq!(read_to_end(&mut house.connect().await).await, "");
    house.close().await;
}

#[tokio::test]
async fn plain_http_on_the_port_is_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    renew(&files(dir.path()));
    let house = house(files(dir.path())).await;
    let answer = house.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(!answer.contains("HTTP/1.1"), "{answer:?}");
    house.close().await;
}

#[tokio::test]
async fn a_handshake_in_hand_does_not_keep_the_server_from_stopping() {
    let dir = tempfile::tempdir().unwrap();
    renew(&files(dir.path()));
    let house = house(files(dir.path())).await;
    let mut stream = house.connect().await;
    stream.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
    in_time("the stop", house.close()).await;
}
