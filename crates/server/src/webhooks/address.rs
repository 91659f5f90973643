//! Where a webhook sends to. Its path and query may hold what a receiver knows its senders by, so it is never printed.

use crate::Error;
use hyper::Uri;

/// The longest address.
const LONGEST: usize = 2_000;

/// An address that requests can be sent to.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(super) is_encrypted: bool,
    /// A name, or an IP address without brackets
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port as the address has them, for the receiver
    pub(super) authority: String,
    /// Path and query
    pub(super) path: String,
}

impl Address {
    /// Reads an address; the error says what is wrong with it, without repeating it.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        Self::parse_of("webhook", url)
    }

    /// The same, of what is reached by it.
    pub(crate) fn parse_of(what: &str, url: &str) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Invalid(format!("the URL of a {what} {problem}"));
        if url.len() > LONGEST {
            return Err(wrong("has at most 2000 bytes"));
        }
        if url.contains('#') {
            return Err(wrong("has no fragment (what follows a #): it would not be sent"));
        }
        let uri: Uri = url.parse().map_err(|_| wrong("cannot be read: it is like https://example.org/path"))?;
        let is_encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("begins with https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("names a host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has no user or password in it"));
        }
        let host = authority.host();
        let port = match authority.as_str().strip_prefix(host).and_then(|rest| rest.strip_prefix(':')) {
            None => {
                if is_encrypted {
                    443
                } else {
                    80
                }
            }
            Some(text) => {
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                let port = text.parse().ok().filter(|port| is_number && *port > 0);
                port.ok_or_else(|| wrong("has a port from 1 to 65535"))?
            }
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if bare.is_empty() {
            return Err(wrong("names a host"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            is_encrypted,
            host: bare.to_owned(),
            port,
            authority: authority.as_str().to_owned(),
            path: path.to_owned(),
        })
    }

    /// What may be told of it to anybody: where it leads, and nothing that is secret.
    pub(crate) fn place(&self) -> &str {
        &self.authority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> (bool, String, u16, String) {
        let address = Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        (address.is_encrypted, address.host, address.port, address.path)
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(read("https://example.org"), (true, "example.org".into(), 443, "/".into()));
        assert_eq!(read("http://10.0.0.7:8080/a/b?c=d"), (false, "10.0.0.7".into(), 8080, "/a/b?c=d".into()));
        assert_eq!(read("HTTPS://[::1]:8443/x"), (true, "::1".into(), 8443, "/x".into()));
        assert_eq!(read("http://[fe80::1]/"), (false, "fe80::1".into(), 80, "/".into()));
    }

    #[test]
    fn what_cannot_be_sent_to_is_refused_with_a_reason() {
        for (url, reason) in [
            ("", "cannot be read"),
            ("example.org/hook", "cannot be read"),
            ("/hook", "begins with"),
            ("ftp://example.org/", "begins with"),
            ("file:///etc/passwd", "cannot be read"),
            ("gopher://127.0.0.1:11211/", "begins with"),
            ("http://", "cannot be read"),
            ("http://example.org:0/", "port"),
            ("http://example.org:/", "port"),
            ("http://example.org:99999/", "port"),
            ("http://example.org:+80/", "port"),
            ("http://example.org/ x", "cannot be read"),
            ("http://example.org/\r\nX: y", "cannot be read"),
            ("http://exämple.org/", "cannot be read"),
            ("https://ann:hunter2@example.org/", "no user or password"),
            ("https://ann@example.org/", "no user or password"),
            ("https://example.org/#part", "fragment"),
            (&format!("https://example.org/{}", "x".repeat(LONGEST)), "at most"),
        ] {
            let error = Address::parse(url).err().unwrap_or_else(|| panic!("{url} was taken")).to_string();
            assert!(error.contains(reason), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
