//! One connection to a directory: plain, TLS, or made TLS by StartTLS; one request at a time.

use super::super::error::Trouble;
use super::ber;
use super::protocol::{self, Answer, Entry, Outcome, Search};
use super::tls;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The largest message that is read: an entry, with all members of a group if the server cannot leave them out.
const LARGEST_MESSAGE: usize = 4 << 20;
/// The most answers to one search, entries and references together, whatever limit the server kept to.
const MOST_ANSWERS: usize = 4096;

/// Where the directory is.
pub(super) struct Endpoint {
    host: String,
    port: u16,
    security: Security,
}

/// What is between us and it.
pub(super) enum Security {
    Plain,
    Tls(tls::Client),
    StartTls(tls::Client),
}

impl Endpoint {
    pub(super) fn new(host: String, port: u16, security: Security) -> Self {
        Self { host, port, security }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Whether nobody between us and it can read passwords.
    pub(super) fn is_secret(&self) -> bool {
        let is_here = self.host == "localhost" || self.host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        is_here || !matches!(self.security, Security::Plain)
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection; whoever drops it without [`Connection::close`] hangs up.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    last_id: u32,
}

impl Connection {
    pub(super) async fn open(endpoint: &Endpoint) -> Result<Self, Trouble> {
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
        let stream = stream.map_err(|error| Trouble::new(format!("cannot reach the LDAP server: {error}")))?;
        let _ = stream.set_nodelay(true);
        match &endpoint.security {
            Security::Plain => Ok(Self::over(stream)),
            Security::Tls(client) => Ok(Self::over(client.connect(stream).await?)),
            Security::StartTls(client) => {
                let mut plain = Self::over(stream);
                plain.start_tls().await?;
                // Messages are read without a buffer, so nothing that came before TLS can be taken for what came inside.
                Ok(Self::over(client.connect(plain.stream).await?))
            }
        }
    }

    fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), last_id: 0 }
    }

    /// Whether the server takes this password for that entry's.
    pub(super) async fn bind(&mut self, dn: &str, password: &str) -> Result<bool, Trouble> {
        // Either empty would make it an anonymous bind, to which a server says yes.
        if dn.is_empty() || password.is_empty() {
            return Ok(false);
        }
        let id = self.next_id();
        self.send(&protocol::bind(id, dn, password)).await?;
        match self.receive(id).await? {
            Answer::Bound(Outcome { code: protocol::SUCCESS, .. }) => Ok(true),
            Answer::Bound(Outcome {
                code:
                    protocol::INVALID_CREDENTIALS
                    | protocol::INAPPROPRIATE_AUTHENTICATION
                    | protocol::INVALID_DN
                    | protocol::NO_SUCH_OBJECT,
                ..
            }) => Ok(false),
            Answer::Bound(other) => Err(refused("a bind", &other)),
            _ => Err(unexpected()),
        }
    }

    /// The entries that are found, up to the limit; none where the base does not exist.
    pub(super) async fn search(&mut self, search: &Search<'_>) -> Result<Vec<Entry>, Trouble> {
        let id = self.next_id();
        self.send(&protocol::search(id, search)).await?;
        let mut entries = Vec::new();
        for _ in 0..MOST_ANSWERS {
            match self.receive(id).await? {
                Answer::Entry(entry) if entries.len() < usize::from(search.most) => entries.push(entry),
                Answer::Entry(_) | Answer::Reference => {}
                Answer::Searched(Outcome {
                    code: protocol::SUCCESS | protocol::NO_SUCH_OBJECT | protocol::SIZE_LIMIT_EXCEEDED,
                    ..
                }) => return Ok(entries),
                Answer::Searched(other) => return Err(refused("a search", &other)),
                Answer::Bound(_) | Answer::Extended(_) => return Err(unexpected()),
            }
        }
        Err(Trouble::new("the LDAP server's answer to a search does not end"))
    }

    /// Says good-bye, as a server's log likes it.
    pub(super) async fn close(mut self) {
        let id = self.next_id();
        let _ = self.send(&protocol::unbind(id)).await;
        let _ = self.stream.shutdown().await;
    }

    async fn start_tls(&mut self) -> Result<(), Trouble> {
        let id = self.next_id();
        self.send(&protocol::start_tls(id)).await?;
        match self.receive(id).await? {
            Answer::Extended(Outcome { code: protocol::SUCCESS, .. }) => Ok(()),
            Answer::Extended(other) => Err(refused("StartTLS", &other)),
            _ => Err(unexpected()),
        }
    }

    fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), Trouble> {
        self.stream.write_all(message).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)
    }

    async fn receive(&mut self, id: u32) -> Result<Answer, Trouble> {
        let message = self.message().await?;
        match protocol::read(&message) {
            Ok((its_id, answer)) if its_id == id => Ok(answer),
            // Zero is what a server says unasked: that it is about to hang up.
            Ok((0, Answer::Extended(outcome))) => Err(refused("the connection", &outcome)),
            Ok(_) | Err(ber::Malformed) => Err(unexpected()),
        }
    }

    /// Reads exactly one message, and allocates what has come and not what was announced.
    async fn message(&mut self) -> Result<Vec<u8>, Trouble> {
        let mut message = vec![0; 2];
        self.stream.read_exact(&mut message).await.map_err(broken)?;
        let length = loop {
            match ber::length(&message[1..]) {
                Ok(Some((length, _))) => break length,
                Ok(None) => message.push(self.stream.read_u8().await.map_err(broken)?),
                Err(ber::Malformed) => return Err(unexpected()),
            }
        };
        if length > LARGEST_MESSAGE {
            return Err(Trouble::new("the LDAP server sends a message that is too large"));
        }
        let read = (&mut self.stream).take(length as u64).read_to_end(&mut message).await.map_err(broken)?;
        if read < length { Err(broken(std::io::ErrorKind::UnexpectedEof.into())) } else { Ok(message) }
    }
}

fn broken(error: std::io::Error) -> Trouble {
    Trouble::new(format!("the connection to the LDAP server broke: {error}"))
}

fn unexpected() -> Trouble {
    Trouble::new("the LDAP server sent something that is no answer")
}

fn refused(what: &str, outcome: &Outcome) -> Trouble {
    Trouble::new(format!("the LDAP server refuses {what}: result {} {:?}", outcome.code, outcome.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered_with(bytes: &'static [u8]) -> Result<bool, String> {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        theirs.write_all(bytes).await.unwrap();
        let server = tokio::spawn(async move {
            let _ = theirs.shutdown().await;
            let _ = theirs.read_to_end(&mut Vec::new()).await;
        });
        let answer = Connection::over(ours).bind("cn=a", "pw").await.map_err(|trouble| trouble.to_string());
        server.abort();
        answer
    }

    #[tokio::test]
    async fn a_bind_succeeds_only_by_its_own_good_answer() {
        assert_eq!(answered_with(b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00").await, Ok(true));
        assert_eq!(answered_with(b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x31\x04\x00\x04\x00").await, Ok(false));
        let no_answers: [&[u8]; 5] = [
            b"",
            b"\x30\x0c\x02\x01\x02\x61\x07\x0a\x01\x00\x04\x00\x04\x00",
            b"\x30\x0c\x02\x01\x01\x65\x07\x0a\x01\x00\x04\x00\x04\x00",
            b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01",
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
        ];
        for bytes in no_answers {
            assert!(answered_with(bytes).await.is_err(), "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn a_message_that_is_too_large_is_refused_by_its_length() {
        let error = answered_with(b"\x30\x84\x7f\xff\xff\xff").await.unwrap_err();
        assert_eq!(error, "the LDAP server sends a message that is too large");
    }

    #[tokio::test]
    async fn nothing_is_bound_without_a_name_and_a_password() {
        for (dn, password) in [("", "pw"), ("cn=a", "")] {
            let (ours, mut theirs) = tokio::io::duplex(1024);
            assert!(!Connection::over(ours).bind(dn, password).await.unwrap());
            let mut sent = Vec::new();
            theirs.read_to_end(&mut sent).await.unwrap();
            assert!(sent.is_empty());
        }
    }
}
