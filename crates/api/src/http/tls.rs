//! The certificate: read at the start, and again whenever its files change.
//!
//! Renewal tools replace two files, one after the other, at any moment. So a pair that does not fit is not an error to die
//! of: the old one is kept, said so once, and looked at again when a file changes. Connections that exist keep what they have.

use super::{HttpError, TlsFiles};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at: two `stat` calls each.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The certificate in use and the files it comes from. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Certificates(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: TlsFiles,
    seen: Mutex<Stamp>,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

impl Certificates {
    /// Reads the files.
    pub(super) fn load(files: TlsFiles) -> Result<Self, HttpError> {
        // Taken before reading: a change while we read is then seen at the next look.
        let seen = Mutex::new(Stamp::of(&files));
        let current = Arc::new(Current(RwLock::new(Arc::new(read(&files)?))));
        let config = configure(Arc::clone(&current)).map_err(|error| unusable(&files.cert, &error))?;
        Ok(Self(Arc::new(Inner { files, seen, current, config: Arc::new(config) })))
    }

    /// What makes the handshakes.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.config))
    }

    /// Looks at the files from time to time; never returns.
    pub(super) async fn watch(&self) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let certificates = self.clone();
            // Files may be on a network, and reading them may block.
            if let Err(error) = tokio::task::spawn_blocking(move || certificates.look()).await {
                tracing::error!(%error, "the certificate could not be looked at");
            }
        }
    }

    /// Reads the files again if they changed since the last look.
    fn look(&self) {
        let Inner { files, seen, current, .. } = &*self.0;
        let stamp = Stamp::of(files);
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == stamp {
                return;
            }
            *seen = stamp;
        }
        match read(files) {
            Ok(key) => {
                *current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
                tracing::info!(path = %files.cert.display(), "the certificate was read again");
            }
            Err(error) => {
                tracing::warn!(%error, "the certificate has changed but cannot be used; the old one stays in use");
            }
        }
    }
}

/// What the next handshake shows.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn configure(current: Arc<Current>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(current);
    // HTTP/2 has no reason phrases, and salt-api's clients show them to people.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, HttpError> {
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(&files.cert, &error))?;
    if chain.is_empty() {
        return Err(unusable(&files.cert, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| match error {
        pem::Error::Io(error) => unusable(&files.key, &error),
        // What else the error has to say may quote the file.
        _ => unusable(&files.key, &"there is no private key in PEM form in it"),
    })?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => HttpError::Mismatch(files.clone()),
        error => unusable(&files.key, &error),
    })
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> HttpError {
    HttpError::Tls { path: path.into(), reason: reason.to_string() }
}

/// What tells one state of the files from another; links are followed, for renewal often means another link.
#[derive(Debug, PartialEq, Eq)]
struct Stamp([Option<[i64; 5]>; 2]);

impl Stamp {
    fn of(files: &TlsFiles) -> Self {
        Self([&files.cert, &files.key].map(|path| {
            let file = std::fs::metadata(path).ok()?;
            Some([
                file.dev().cast_signed(),
                file.ino().cast_signed(),
                file.mtime(),
                file.mtime_nsec(),
                file.size().cast_signed(),
            ])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn files(dir: &TempDir) -> TlsFiles {
        TlsFiles { cert: dir.path().join("cert.pem"), key: dir.path().join("key.pem") }
    }

    /// A certificate and its key, as renewal tools put them in place.
    fn renew(files: &TlsFiles) -> Vec<u8> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        replace(&files.cert, &made.cert.pem());
        replace(&files.key, &made.signing_key.serialize_pem());
        made.cert.der().to_vec()
    }

    fn replace(path: &Path, text: &str) {
        let draft = path.with_extension("new");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, path).unwrap();
    }

    fn shown(certificates: &Certificates) -> Vec<u8> {
        certificates.0.current.0.read().unwrap().cert[0].to_vec()
    }

    #[test]
    fn a_renewed_certificate_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let first = renew(&files(&dir));
        let certificates = Certificates::load(files(&dir)).unwrap();
        certificates.look();
        assert_eq!(shown(&certificates), first);
        let second = renew(&files(&dir));
        certificates.look();
        assert_eq!(shown(&certificates), second);
    }

    #[test]
    fn a_broken_certificate_leaves_the_old_one_until_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        let first = renew(&files);
        let certificates = Certificates::load(files.clone()).unwrap();
        replace(&files.cert, "-----BEGIN CERTIFICATE-----\nMIIB");
        certificates.look();
        assert_eq!(shown(&certificates), first);
        let third = renew(&files);
        certificates.look();
        assert_eq!(shown(&certificates), third);
    }

    #[test]
    fn a_certificate_with_anothers_key_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        let first = renew(&files);
        let certificates = Certificates::load(files.clone()).unwrap();
        let key = std::fs::read_to_string(&files.key).unwrap();
        renew(&files);
        replace(&files.key, &key);
        certificates.look();
        assert_eq!(shown(&certificates), first);
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_looked_at_by_themselves() {
        let dir = tempfile::tempdir().unwrap();
        renew(&files(&dir));
        let certificates = Certificates::load(files(&dir)).unwrap();
        let second = renew(&files(&dir));
        let changed = async {
            while shown(&certificates) != second {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = certificates.watch() => {}
            changed = tokio::time::timeout(LOOK_EVERY * 10, changed) => changed.unwrap(),
        }
    }

    #[test]
    fn what_is_wrong_with_the_files_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        let told = || Certificates::load(files.clone()).unwrap_err().to_string();
        assert!(told().contains("cert.pem for HTTPS: "), "{}", told());
        renew(&files);
        replace(&files.key, "hunter2");
        assert!(told().ends_with("key.pem for HTTPS: there is no private key in PEM form in it"), "{}", told());
        replace(&files.cert, "");
        assert!(told().ends_with("there is no certificate in it"), "{}", told());
        renew(&files);
        let key = std::fs::read_to_string(&files.key).unwrap();
        renew(&files);
        replace(&files.key, &key);
        assert!(told().contains("does not belong to the certificate"), "{}", told());
    }
}
