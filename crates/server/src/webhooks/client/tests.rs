//! The client against receivers of every kind: good ones, closing ones, endless ones, silent ones, unknown ones.

use super::*;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

const LONG: Duration = Duration::from_secs(30);
const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// A receiver that answers each request on each connection with these bytes, and tells the number of the connection.
async fn receiver(answer: &'static str) -> (Address, mpsc::UnboundedReceiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::parse(&format!("http://{}/in", listener.local_addr().unwrap())).unwrap();
    let (told, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for connection in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, answer, connection, told.clone()));
        }
    });
    (address, heard)
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &str,
    connection: usize,
    told: mpsc::UnboundedSender<usize>,
) {
    let mut seen = Vec::new();
    while stream.read_buf(&mut seen).await.is_ok_and(|read| read > 0) {
        if seen.ends_with(b"hello") {
            seen.clear();
            let _ = told.send(connection);
            let _ = stream.write_all(answer.as_bytes()).await;
            if answer.contains("close") {
                return;
            }
        }
    }
}

fn request() -> Request<Full<Bytes>> {
    Request::post("/in").header("host", "here").body(Full::new("hello".into())).unwrap()
}

async fn send(client: &Client, kept: &mut Option<Connection>, address: &Address) -> Result<u16, Failure> {
    client.send(kept, address, request(), LONG).await.map(|status| status.as_u16())
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (address, mut heard) = receiver(OK).await;
    let (client, mut kept) = (Client::default(), None);
    for _ in 0..3 {
        assert_eq!(send(&client, &mut kept, &address).await.unwrap(), 204);
        assert_eq!(heard.recv().await, Some(0));
    }
}

#[tokio::test]
async fn a_connection_that_the_receiver_closed_is_replaced() {
    let (address, mut heard) = receiver("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    let (client, mut kept) = (Client::default(), None);
    for connection in 0..3 {
        assert_eq!(send(&client, &mut kept, &address).await.unwrap(), 200);
        assert_eq!(heard.recv().await, Some(connection));
    }
}

#[tokio::test]
async fn a_connection_is_not_used_for_another_place() {
    let ((one, mut heard), (other, mut heard_too)) = (receiver(OK).await, receiver(OK).await);
    let (client, mut kept) = (Client::default(), None);
    send(&client, &mut kept, &one).await.unwrap();
    send(&client, &mut kept, &other).await.unwrap();
    assert_eq!((heard.recv().await, heard_too.recv().await), (Some(0), Some(0)));
}

#[tokio::test]
async fn a_redirect_is_an_answer_like_any_other() {
    let (address, mut heard) = receiver("HTTP/1.1 302 Found\r\nlocation: /in\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(send(&Client::default(), &mut None, &address).await.unwrap(), 302);
    assert_eq!(heard.recv().await, Some(0));
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn an_answer_that_is_too_long_counts_and_its_connection_is_not_kept() {
    let long: &'static str = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}", "x".repeat(100_000)).leak();
    let (address, _heard) = receiver(long).await;
    let mut kept = None;
    assert_eq!(send(&Client::default(), &mut kept, &address).await.unwrap(), 200);
    assert!(kept.is_none());
}

#[tokio::test]
async fn an_answer_that_never_ends_counts_by_its_status() {
    let (address, _heard) = receiver("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
    let mut kept = None;
    let status = Client::default().send(&mut kept, &address, request(), Duration::from_millis(300)).await;
    assert_eq!(status.unwrap(), StatusCode::OK);
    assert!(kept.is_none());
}

#[tokio::test]
async fn a_receiver_that_says_nothing_is_given_up() {
    let (address, _heard) = receiver("").await;
    let failure = Client::default().send(&mut None, &address, request(), Duration::from_millis(300)).await;
    assert!(matches!(failure, Err(Failure::TimedOut(_))), "{failure:?}");
}

#[tokio::test]
async fn a_receiver_that_speaks_something_else_is_a_failure() {
    for answer in ["SSH-2.0-OpenSSH close\r\n", "HTTP/1.1 close\r\n\r\n"] {
        let (address, _heard) = receiver(answer).await;
        let failure = send(&Client::default(), &mut None, &address).await;
        assert!(matches!(failure, Err(Failure::Broken(_))), "{failure:?}");
    }
}

#[tokio::test]
async fn headers_without_end_are_a_failure() {
    let endless: &'static str = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(1 << 20)).leak();
    let (address, _heard) = receiver(endless).await;
    let failure = send(&Client::default(), &mut None, &address).await;
    assert!(matches!(failure, Err(Failure::Broken(_))), "{failure:?}");
}

#[tokio::test]
async fn nobody_there_is_a_failure_that_does_not_tell_the_path() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::parse(&format!("http://{}/secret-path", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let failure = send(&Client::default(), &mut None, &address).await.unwrap_err();
    assert!(matches!(failure, Failure::Unreachable(_)), "{failure:?}");
    assert!(!format!("{failure} {failure:?}").contains("secret-path"));
}

/// A receiver with a certificate of its own, and that certificate.
async fn encrypted(names: &[&str]) -> (Address, CertificateDer<'static>) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::parse(&format!("https://{}/in", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(serve(stream, OK, 0, mpsc::unbounded_channel().0));
            }
        }
    });
    (address, certificate)
}

/// A client that believes in this certificate.
fn believing(certificate: CertificateDer<'static>) -> Client {
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate).unwrap();
    Client { reach: super::Reach::Anywhere, tls: OnceCell::new_with(Some(connector(authorities).unwrap())) }
}

#[tokio::test]
async fn a_receiver_with_a_known_certificate_is_sent_to() {
    let (address, certificate) = encrypted(&["127.0.0.1"]).await;
    assert_eq!(send(&believing(certificate), &mut None, &address).await.unwrap(), 204);
}

#[tokio::test]
async fn a_receiver_with_an_unknown_certificate_is_not() {
    let (address, _) = encrypted(&["127.0.0.1"]).await;
    let (_, other) = encrypted(&["127.0.0.1"]).await;
    let failure = send(&believing(other), &mut None, &address).await;
    assert!(matches!(failure, Err(Failure::Untrusted(_))), "{failure:?}");
}

#[tokio::test]
async fn a_receiver_with_the_certificate_of_another_name_is_not() {
    let (address, certificate) = encrypted(&["elsewhere.example"]).await;
    let failure = send(&believing(certificate), &mut None, &address).await;
    assert!(matches!(failure, Err(Failure::Untrusted(_))), "{failure:?}");
}
