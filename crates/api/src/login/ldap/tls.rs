//! TLS to a directory: its certificate is checked against the system's, or against a file of one's own.

use super::super::Error;
use super::super::error::Trouble;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How TLS to one server is begun.
pub(super) struct Client {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Client {
    /// For the server of that name; without `verify` any certificate is taken.
    pub(super) fn new(host: &str, verify: bool, cafile: Option<&Path>) -> Result<Self, Error> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| super::settings::wrong("server", "is neither a host's name nor an address"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Certificates(error.to_string()))?;
        let config = if verify {
            builder.with_root_certificates(roots(cafile)?).with_no_client_auth()
        } else {
            tracing::warn!(server = host, "auth.ldap.no_verify: anybody can pretend to be the LDAP server");
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
                .with_no_client_auth()
        };
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    pub(super) async fn connect<S>(&self, stream: S) -> Result<TlsStream<S>, Trouble>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connected = self.connector.connect(self.name.clone(), stream).await;
        connected.map_err(|error| Trouble::new(format!("no TLS with the LDAP server: {error}")))
    }
}

fn roots(cafile: Option<&Path>) -> Result<RootCertStore, Error> {
    let certificates = match cafile {
        Some(path) => {
            let cannot = |error| Error::Certificates(format!("{}: {error}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path).map_err(cannot)?;
            certificates.collect::<Result<Vec<_>, _>>().map_err(cannot)?
        }
        // Single files that cannot be read are no reason to do without the others.
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(Error::Certificates("there are none: name a file in auth.ldap.cafile".to_owned()));
    }
    Ok(roots)
}

/// Takes every certificate, as long as the other side has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
