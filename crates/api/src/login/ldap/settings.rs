//! The settings of a directory, under Salt's names, and what is made of them.

use super::super::{Error, Secret};
use super::connection::{Endpoint, Security};
use super::filter::Filter;
use super::protocol::Scope;
use super::template::Template;
use super::{Account, Way, tls};
use std::path::PathBuf;

/// `auth.ldap.*`. The fields are named like the keys and mean what they mean to Salt.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are Salt's keys, and Salt's documentation explains each")]
pub struct Settings {
    /// `ldap://HOST:PORT` or `ldaps://HOST:PORT`, instead of `server`, `port` and `tls`
    pub uri: String,
    pub server: String,
    /// 389, or 636 with `tls`
    pub port: Option<u16>,
    pub tls: bool,
    pub starttls: bool,
    pub no_verify: bool,
    /// Certificates to trust instead of the system's; Salt has no such key
    pub cafile: Option<PathBuf>,
    pub binddn: String,
    pub bindpw: Secret,
    pub anonymous: bool,
    pub basedn: String,
    pub scope: u8,
    pub filter: String,
    pub groupou: String,
    pub groupclass: String,
    pub groupattribute: String,
    pub accountattributename: String,
    pub persontype: String,
    pub activedirectory: bool,
    pub freeipa: bool,
    pub group_basedn: String,
    pub group_filter: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            uri: String::new(),
            server: "localhost".into(),
            port: None,
            tls: false,
            starttls: false,
            no_verify: false,
            cafile: None,
            binddn: String::new(),
            bindpw: Secret::default(),
            anonymous: false,
            basedn: String::new(),
            scope: 2,
            filter: String::new(),
            groupou: "Groups".into(),
            groupclass: "posixGroup".into(),
            groupattribute: "memberOf".into(),
            accountattributename: "memberUid".into(),
            persontype: "person".into(),
            activedirectory: false,
            freeipa: false,
            group_basedn: String::new(),
            group_filter: String::new(),
        }
    }
}

impl Settings {
    /// Reads the keys that begin with `auth.ldap.`, by what follows.
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Error> {
        let mut settings = Self::default();
        for (name, value) in keys {
            settings.set(name, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let text = || value.to_owned();
        match name {
            "uri" => self.uri = text(),
            "server" => self.server = text(),
            "port" => self.port = Some(value.parse().map_err(|_| wrong(name, "must be a port"))?),
            "tls" => self.tls = flag(name, value)?,
            "starttls" => self.starttls = flag(name, value)?,
            "no_verify" => self.no_verify = flag(name, value)?,
            "cafile" => self.cafile = Some(PathBuf::from(value)),
            "binddn" => self.binddn = text(),
            "bindpw" => self.bindpw = Secret::from(value),
            "anonymous" => self.anonymous = flag(name, value)?,
            "basedn" => self.basedn = text(),
            "scope" => self.scope = value.parse().map_err(|_| wrong(name, "must be 0, 1 or 2"))?,
            "filter" => self.filter = text(),
            "groupou" => self.groupou = text(),
            "groupclass" => self.groupclass = text(),
            "groupattribute" => self.groupattribute = text(),
            "accountattributename" => self.accountattributename = text(),
            "persontype" => self.persontype = text(),
            "activedirectory" => self.activedirectory = flag(name, value)?,
            "freeipa" => self.freeipa = flag(name, value)?,
            "group_basedn" => self.group_basedn = text(),
            "group_filter" => self.group_filter = text(),
            "auth_by_group_membership_only" if flag(name, value)? => {
                return Err(wrong(name, "is not supported: it lets people in without their password"));
            }
            "auth_by_group_membership_only" => {}
            _ => tracing::warn!(key = format!("auth.ldap.{name}"), "this key has no effect"),
        }
        Ok(())
    }

    pub(super) fn endpoint(&self) -> Result<Endpoint, Error> {
        let (host, port, tls) = if self.uri.is_empty() {
            let port = self.port.unwrap_or(if self.tls { 636 } else { 389 });
            (self.server.clone(), port, self.tls)
        } else {
            parse_uri(&self.uri)?
        };
        if host.is_empty() {
            return Err(wrong("server", "must name a server"));
        }
        let tls = match (tls, self.starttls) {
            (true, true) => return Err(wrong("starttls", "cannot be used together with tls: choose one")),
            (false, false) => None,
            (_, starttls) => Some((tls::Client::new(&host, !self.no_verify, self.cafile.as_deref())?, starttls)),
        };
        let security = match tls {
            None => Security::Plain,
            Some((client, false)) => Security::Tls(client),
            Some((client, true)) => Security::StartTls(client),
        };
        Ok(Endpoint::new(host, port, security))
    }

    pub(super) fn way(&self) -> Result<Way, Error> {
        let has_password = !self.bindpw.reveal().is_empty();
        let searches = has_password || (self.anonymous && self.binddn.is_empty());
        if !searches {
            let template = Template::parse(&self.binddn).map_err(|problem| wrong("binddn", &problem))?;
            // Without the name in it everybody who knows that one entry's password could be anybody.
            if !template.has_user() {
                return Err(wrong("binddn", "must contain {{ username }}, or have auth.ldap.bindpw beside it"));
            }
            return Ok(Way::Name(template));
        }
        let account = match (self.binddn.as_str(), has_password) {
            ("", true) => return Err(wrong("binddn", "must be set, since auth.ldap.bindpw is")),
            (dn, true) if dn.contains("{{") => {
                return Err(wrong("binddn", "is one account's name beside auth.ldap.bindpw: it has no {{ username }}"));
            }
            (dn, true) => Account::Named { dn: dn.to_owned(), password: self.bindpw.clone() },
            (_, false) => Account::Anonymous,
        };
        if self.basedn.is_empty() {
            return Err(wrong("basedn", "must be set: people are looked for below it"));
        }
        let filter = Filter::parse(&self.filter).map_err(|problem| wrong("filter", &problem))?;
        if !filter.has_user() {
            return Err(wrong("filter", "must contain {{ username }}, as in (uid={{ username }})"));
        }
        let scope = Scope::from_number(self.scope).ok_or_else(|| wrong("scope", "must be 0, 1 or 2"))?;
        Ok(Way::Search { account, base: self.basedn.clone(), scope, filter })
    }
}

/// Host, port and whether it is TLS from the first byte.
fn parse_uri(uri: &str) -> Result<(String, u16, bool), Error> {
    let malformed = || wrong("uri", "must be one ldap://HOST:PORT or ldaps://HOST:PORT");
    let (scheme, rest) = uri.trim().split_once("://").ok_or_else(malformed)?;
    let tls = match scheme {
        "ldap" => false,
        "ldaps" => true,
        _ => return Err(malformed()),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', ' ', ',', '?', '@']) {
        return Err(malformed());
    }
    // A colon inside brackets belongs to an IPv6 address.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().map_err(|_| malformed())?)),
        _ => (authority, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), port.unwrap_or(if tls { 636 } else { 389 }), tls))
}

fn flag(name: &str, value: &str) -> Result<bool, Error> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" | "" | "none" | "null" => Ok(false),
        _ => Err(wrong(name, "must be true or false")),
    }
}

pub(super) fn wrong(key: &str, problem: &str) -> Error {
    Error::setting(format!("auth.ldap.{key}"), problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &[(&str, &str)]) -> Result<super::super::Ldap, String> {
        Settings::from_keys(keys.iter().copied()).and_then(super::super::Ldap::new).map_err(|error| error.to_string())
    }

    #[test]
    fn uris_are_taken_apart() {
        let cases = [
            ("ldap://ldap.example.org", ("ldap.example.org", 389, false)),
            ("ldaps://ldap.example.org/", ("ldap.example.org", 636, true)),
            ("ldap://192.0.2.1:3389", ("192.0.2.1", 3389, false)),
            ("ldaps://[2001:db8::1]", ("2001:db8::1", 636, true)),
            ("ldap://[2001:db8::1]:3389/", ("2001:db8::1", 3389, false)),
        ];
        for (uri, (host, port, tls)) in cases {
            assert_eq!(parse_uri(uri).unwrap(), (host.to_owned(), port, tls), "{uri}");
        }
        for uri in
            ["ldap.example.org", "http://x", "ldap://a ldap://b", "ldap://a:b", "ldapi:///run/slapd", "ldap://a/b"]
        {
            assert!(parse_uri(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn settings_that_would_let_in_anybody_or_nobody_are_refused_at_start() {
        let base = ("basedn", "dc=example,dc=org");
        let (binddn, bindpw) = (("binddn", "cn=reader,dc=example,dc=org"), ("bindpw", "pw"));
        let cases: [(&[(&str, &str)], &str); 12] = [
            (&[], "auth.ldap.binddn: must contain {{ username }}"),
            (&[binddn], "auth.ldap.binddn: must contain {{ username }}"),
            (&[binddn, bindpw], "auth.ldap.basedn: must be set"),
            (&[binddn, bindpw, base], "auth.ldap.filter: must"),
            (&[binddn, bindpw, base, ("filter", "(uid=ann)")], "auth.ldap.filter: must contain {{ username }}"),
            (&[binddn, bindpw, base, ("filter", "(uid={{ username }}")], "auth.ldap.filter: "),
            (&[bindpw, base], "auth.ldap.binddn: must be set"),
            (&[("binddn", "uid={{ username }},o=x"), bindpw], "auth.ldap.binddn: is one account's name"),
            (&[("binddn", "uid={{ user }},o=x")], "auth.ldap.binddn: only {{ username }}"),
            (&[("auth_by_group_membership_only", "True")], "auth.ldap.auth_by_group_membership_only: is not supported"),
            (&[("tls", "yes"), ("starttls", "yes")], "auth.ldap.starttls: cannot be used together"),
            (&[("freeipa", "yes"), ("binddn", "uid={{ username }},o=x")], "auth.ldap.group_basedn: must be set"),
        ];
        for (keys, expected) in cases {
            let error = read(keys).err().unwrap_or_else(|| panic!("{keys:?} must be refused"));
            assert!(error.starts_with(expected), "{keys:?}: {error}");
        }
    }

    #[test]
    fn usual_settings_are_taken() {
        let base = ("basedn", "dc=example,dc=org");
        let search =
            [("binddn", "cn=reader,dc=example,dc=org"), ("bindpw", "pw"), ("filter", "uid={{username}}"), base];
        assert!(read(&search).is_ok());
        assert!(read(&[("binddn", "uid={{ username }},ou=people,dc=example,dc=org"), base]).is_ok());
        assert!(read(&[("anonymous", "true"), ("filter", "(uid={{ username }})"), base]).is_ok());
    }

    #[test]
    fn the_password_is_not_shown() {
        let settings = Settings::from_keys([("bindpw", "hunter2")]).unwrap();
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
