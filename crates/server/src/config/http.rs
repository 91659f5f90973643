//! The settings of the HTTP side: where it listens, who may log in and how, what clients may do.
//!
//! Salt keeps part of them in a map of its own (`rest_cherrypy`); what is there counts unless our own key says otherwise.

use super::Secret;
use super::reader::{ConfigError, Keys};
use saltern_core::access::RawRules;
use saltern_core::value::{Map, Value};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Where HTTP is offered, and its limits.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are named like the keys, and the table of keys explains each")]
pub struct Http {
    /// None: HTTP is off
    pub address: Option<SocketAddr>,
    /// Certificate and key
    pub tls: Option<(PathBuf, PathBuf)>,
    pub http_plain: bool,
    pub cors_origins: Vec<String>,
    pub http_max_body: usize,
    pub http_max_connections: usize,
    pub http_timeout: Duration,
    /// Names of salt-api's clients; none: all of them
    pub netapi_enable_clients: Option<Vec<String>>,
    /// The page that browsers get at the root, and the folder of what it needs
    pub app: Option<PathBuf>,
    pub static_dir: Option<PathBuf>,
    /// Whether hooks are for people who have logged in
    pub hooks_need_login: bool,
}

/// Who may log in, and how.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are named like the keys, and the table of keys explains each")]
pub struct Login {
    pub external_auth: RawRules,
    pub token_expire: Duration,
    pub token_expire_user_override: bool,
    pub sharedsecret: Option<Secret>,
    pub pam_service: String,
    pub pam_confdir: Option<PathBuf>,
    /// `auth.ldap.*`, by the last part of the key; values as they were written
    pub ldap: Vec<(String, Secret)>,
}

/// Keys that clients may read: what the pages of SaltGUI look at.
const SHOWN: [&str; 11] = [
    "nodegroups",
    "reactor",
    "syndic_master",
    "order_masters",
    "cluster_id",
    "cluster_peers",
    "state_verbose",
    "state_output",
    "state_output_pct",
    "state_compress_ids",
    "test_providers_target",
];

/// What the keys of LDAP begin with.
pub(super) const LDAP: &str = "auth.ldap.";

impl Keys {
    pub(super) fn http(&self) -> Result<Http, ConfigError> {
        let salts = self.map("rest_cherrypy")?;
        let theirs = |key: &str| salts.get(key).filter(|value| !value.is_nil());
        let their_path = |key: &str| theirs(key).and_then(Value::as_str).map(PathBuf::from);
        let their_flag = |key: &str| theirs(key).is_some_and(Value::is_truthy);
        let is_salts = theirs("port").is_some() || theirs("host").is_some();
        let address = match self.text("http")?.as_deref() {
            Some("off" | "false" | "none") => None,
            Some(text) => Some(text.parse().map_err(|_| self.wrong("http", "must be ADDRESS:PORT, or off"))?),
            None if is_salts => {
                let host = theirs("host").and_then(Value::as_str).unwrap_or("0.0.0.0");
                let port = theirs("port").map_or(Some(8000), Value::as_i64).and_then(|port| u16::try_from(port).ok());
                let host: Option<IpAddr> = host.parse().ok();
                let wrong = || self.wrong("rest_cherrypy", "port must be a port, and host an IP address");
                Some(SocketAddr::new(host.ok_or_else(wrong)?, port.ok_or_else(wrong)?))
            }
            None => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 8000)),
        };
        let cert = self.path("tls_cert")?.or_else(|| their_path("ssl_crt"));
        let key = self.path("tls_key")?.or_else(|| their_path("ssl_key"));
        let tls = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => return Err(self.wrong("tls_cert", "needs tls_key beside it")),
            (None, Some(_)) => return Err(self.wrong("tls_key", "needs tls_cert beside it")),
        };
        Ok(Http {
            address,
            tls: tls.filter(|_| !their_flag("disable_ssl")),
            // Who wrote `disable_ssl` for salt-api has said so otherwise.
            http_plain: self.flag("http_plain", their_flag("disable_ssl"))?,
            cors_origins: self.texts("cors_origins")?,
            http_max_body: self.size("http_max_body", 32 << 20)?.max(1024),
            http_max_connections: self.size("http_max_connections", 4096)?.max(1),
            http_timeout: self.seconds("http_timeout", 600)?.max(Duration::from_secs(1)),
            netapi_enable_clients: self
                .get("netapi_enable_clients")
                .map(|_| self.texts("netapi_enable_clients"))
                .transpose()?,
            app: their_path("app"),
            static_dir: their_path("static"),
            hooks_need_login: !their_flag("webhook_disable_auth"),
        })
    }

    pub(super) fn login(&self) -> Result<Login, ConfigError> {
        let rules = self.get("external_auth").cloned().unwrap_or_else(|| Value::Map(Map::new()));
        let external_auth = RawRules::read(&rules).map_err(|error| self.wrong("external_auth", &error.to_string()))?;
        let ldap =
            self.with_prefix(LDAP).map(|(name, value)| (name.to_owned(), Secret::from(value.key_text().into_owned())));
        Ok(Login {
            external_auth,
            token_expire: self.seconds("token_expire", 43_200)?.max(Duration::from_secs(60)),
            token_expire_user_override: self.flag("token_expire_user_override", false)?,
            sharedsecret: self.text("sharedsecret")?.map(Secret::from),
            pam_service: self.text("auth.pam.service")?.unwrap_or_else(|| "login".into()),
            pam_confdir: self.path("auth.pam.confdir")?,
            ldap: ldap.collect(),
        })
    }

    /// What clients are shown of the configuration (`config.values`): settings of their own pages, nothing else.
    pub(super) fn shown(&self) -> Map {
        let mut shown = Map::new();
        for (name, value) in self.with_prefix("saltgui_") {
            shown.insert(format!("saltgui_{name}"), value.clone());
        }
        for key in SHOWN {
            if let Some(value) = self.any(key) {
                shown.insert(key, value.clone());
            }
        }
        shown
    }
}
