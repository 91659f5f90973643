//! The address of a server as people type it: `https://salt.example.org:8443/salt`.

use hyper::Uri;
use std::fmt;
use std::net::IpAddr;

/// Where a server is: scheme, host, port, and the path before its API if a proxy puts it below one.
///
/// Two spellings of one address are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    secure: bool,
    /// Without the brackets of an IPv6 address
    host: String,
    port: u16,
    /// Begins with `/` and does not end with one; empty if there is none
    prefix: String,
}

/// Why a text is no address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It has no scheme, or another one.
    #[error("a server's URL begins with https:// or http://")]
    Scheme,
    /// It names a user or a password.
    #[error("a server's URL has no user name or password in it; `saltern login` asks for them")]
    Credentials,
    /// It says more than where.
    #[error("a server's URL ends with its path: no ? and no #")]
    Query,
    /// It cannot be read.
    #[error("this is no URL: {0}")]
    Unreadable(String),
}

impl ServerUrl {
    /// Reads it.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        let secure = match text.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => true,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => false,
            _ => return Err(UrlError::Scheme),
        };
        if text.contains(['?', '#']) {
            return Err(UrlError::Query);
        }
        let uri: Uri = text.parse().map_err(|error: hyper::http::uri::InvalidUri| match text.contains('@') {
            // What it says may be a password: it is not repeated.
            true => UrlError::Credentials,
            false => UrlError::Unreadable(error.to_string()),
        })?;
        let authority = uri.authority().ok_or_else(|| UrlError::Unreadable("it has no host".into()))?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() || host.contains(['[', ']']) {
            return Err(UrlError::Unreadable("it has no host".into()));
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.as_str().ends_with(':') || has_port(authority.as_str()) => {
                return Err(UrlError::Unreadable("the port is no number up to 65535".into()));
            }
            None => default_port(secure),
        };
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { secure, host, port, prefix })
    }

    /// Whether what is said there is encrypted.
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether it is on this machine, so that nobody can listen in between.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    /// The name or the address of the machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What goes before the path of a request.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Host and port as the `Host` header has them.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.secure) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

impl std::str::FromStr for ServerUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

const fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

/// Whether something stands where a port stands.
fn has_port(authority: &str) -> bool {
    authority.rsplit_once(']').map_or(authority, |(_, rest)| rest).contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        ServerUrl::parse(text).unwrap().to_string()
    }

    #[test]
    fn spellings_of_one_address_are_equal() {
        assert_eq!(shown("HTTPS://Salt.Example.org:443/"), "https://salt.example.org");
        assert_eq!(shown(" http://127.0.0.1:8000 "), "http://127.0.0.1:8000");
        assert_eq!(shown("http://[::1]:8000/salt/"), "http://[::1]:8000/salt");
    }

    #[test]
    fn a_prefix_is_kept() {
        let url = ServerUrl::parse("https://example.org/tools/salt/").unwrap();
        assert_eq!((url.prefix(), url.authority().as_str(), url.port()), ("/tools/salt", "example.org", 443));
    }

    #[test]
    fn what_is_no_address_of_a_server_is_refused() {
        for text in
            ["", "salt.example.org", "ftp://x", "https://", "http://x:y", "http://x:99999", "http://x:/", "http://a[]"]
        {
            assert!(ServerUrl::parse(text).is_err(), "{text}");
        }
        assert_eq!(ServerUrl::parse("https://x/?a=b"), Err(UrlError::Query));
    }

    #[test]
    fn a_password_in_the_address_is_refused_and_not_repeated() {
        for text in ["https://ann:hunter2@example.org", "https://ann:hunter2 @example.org"] {
            let error = ServerUrl::parse(text).unwrap_err();
            assert_eq!(error, UrlError::Credentials);
            assert!(!error.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn loopback_is_known_by_name_and_by_address() {
        let is_loopback = |text: &str| ServerUrl::parse(text).unwrap().is_loopback();
        assert!(is_loopback("http://localhost:8000") && is_loopback("http://127.1.2.3") && is_loopback("http://[::1]"));
        assert!(!is_loopback("http://salt.example.org") && !is_loopback("http://10.0.0.1"));
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_what_is_read_reads_the_same(text in "(https?://)?[ -~]{0,40}") {
            if let Ok(url) = ServerUrl::parse(&text) {
                prop_assert_eq!(ServerUrl::parse(&url.to_string()), Ok(url));
            }
        }
    }
}
