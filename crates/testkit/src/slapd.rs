//! A throw-away directory for tests: OpenLDAP's server on loopback, with the entries a test gives it.

use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::daemon::Daemon;
use crate::installed::Slapd;
use crate::scratch::Scratch;
use crate::{ports, tier, wait};

/// The suffix under which all entries of a test's directory are.
pub const SUFFIX: &str = "dc=example,dc=org";
/// The name of the directory's administrator, who may read and write everything.
pub const ADMIN: &str = "cn=admin,dc=example,dc=org";
/// Its password.
pub const ADMIN_PASSWORD: &str = "the admin's password";

/// A running directory server; killed and removed on drop.
#[derive(Debug)]
pub struct Directory {
    // Declared before the folder: the server is stopped before its files are removed.
    _daemon: Daemon,
    port: u16,
    tls_port: u16,
    _scratch: Scratch,
}

/// A certificate for `localhost` and its key, as PEM.
#[derive(Debug, Clone, Copy)]
pub struct Certificate<'a> {
    /// The certificate.
    pub cert: &'a str,
    /// Its private key.
    pub key: &'a str,
}

impl Directory {
    /// Starts a server with these entries (LDIF) below [`SUFFIX`], whose own entry is there already.
    ///
    /// Passwords can be used to bind and are never shown; everything else can be read by whoever has bound. Nothing where
    /// OpenLDAP is not installed or not wanted; see [`tier`].
    pub fn start(entries: &str, certificate: Option<Certificate<'_>>) -> Option<Directory> {
        if tier::is_fast() {
            return None;
        }
        let Some(slapd) = Slapd::installed() else {
            tier::skip("OpenLDAP", "no `slapd` was found; `make setup` unpacks it");
            return None;
        };
        let scratch = Scratch::new("ldap");
        let (port, tls_port) = (ports::free(), ports::free());
        let config = scratch.write("slapd.conf", configuration(&slapd, &scratch, certificate));
        let suffix =
            format!("dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: tests\ndc: example\n\n");
        let ldif = scratch.write("entries.ldif", format!("{suffix}{entries}"));
        scratch.write("db/.keep", "");

        let mut add = command(&slapd);
        add.args(["-T", "add", "-f"]).arg(&config).arg("-l").arg(&ldif).stdin(Stdio::null());
        match add.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => panic!("the entries were refused: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("cannot run slapd: {error}"),
        }

        let mut urls = format!("ldap://127.0.0.1:{port}/");
        if certificate.is_some() {
            urls += &format!(" ldaps://127.0.0.1:{tls_port}/");
        }
        let mut server = command(&slapd);
        // With a debug level, even this one, it stays in the foreground.
        server.arg("-f").arg(&config).args(["-h", &urls, "-d", "0"]);
        let daemon = Daemon::spawn("slapd", &mut server, &scratch.path().join("slapd.log"), &[]);
        wait::until_blocking("slapd to accept connections", Duration::from_secs(30), || {
            assert!(daemon.is_running(), "slapd ended while starting: {}", daemon.log_tail());
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        Some(Directory { _daemon: daemon, port, tls_port, _scratch: scratch })
    }

    /// The port for plain connections and StartTLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for TLS from the first byte; nobody listens there without a certificate.
    pub fn tls_port(&self) -> u16 {
        self.tls_port
    }
}

fn command(slapd: &Slapd) -> Command {
    let mut command = Command::new(&slapd.program);
    if let Ok(libraries) = std::env::join_paths(&slapd.libraries)
        && !libraries.is_empty()
    {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    command
}

fn configuration(slapd: &Slapd, scratch: &Scratch, certificate: Option<Certificate<'_>>) -> String {
    let include = |name: &str| format!("include {}\n", slapd.schema.join(format!("{name}.schema")).display());
    let schemas: String = ["core", "cosine", "inetorgperson", "nis"].into_iter().map(include).collect();
    let tls = certificate.map_or_else(String::new, |certificate| {
        let cert: PathBuf = scratch.write("cert.pem", certificate.cert);
        let key = scratch.write("key.pem", certificate.key);
        format!("TLSCertificateFile {}\nTLSCertificateKeyFile {}\n", cert.display(), key.display())
    });
    format!(
        "{schemas}{tls}pidfile {root}/slapd.pid\n\
         modulepath {modules}\n\
         moduleload back_mdb\n\
         database mdb\n\
         suffix \"{SUFFIX}\"\n\
         rootdn \"{ADMIN}\"\n\
         rootpw \"{ADMIN_PASSWORD}\"\n\
         directory {root}/db\n\
         maxsize 16777216\n\
         access to attrs=userPassword by anonymous auth by * none\n\
         access to * by users read by anonymous auth\n",
        root = scratch.path().display(),
        modules = slapd.modules.display(),
    )
}
