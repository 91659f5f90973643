//! Encrypted connections to a server: who it is is proved by a certificate that the system trusts, or one that was named.

use super::{ClientError, ServerUrl};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, InvalidMessage, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Makes a connection an encrypted one.
pub(super) async fn encrypt(
    stream: TcpStream,
    url: &ServerUrl,
    ca_file: Option<&Path>,
) -> Result<TlsStream<TcpStream>, ClientError> {
    let config = config(ca_file)?;
    let name = ServerName::try_from(url.host().to_owned())
        .map_err(|_| ClientError::Setup(format!("{:?} is no name that a certificate could have", url.host())))?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connected.map_err(|error| refusal(url, error))
}

fn config(ca_file: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let failed = |error: rustls::Error| ClientError::Setup(format!("cannot set up TLS: {error}"));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    let mut config = builder.with_root_certificates(authorities(ca_file)?).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Who is believed: the authorities in the file, if one is named, else the system's.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, ClientError> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    };
    let unusable = |error: &dyn std::fmt::Display| {
        ClientError::Setup(format!("cannot use the certificates in {}: {error}", file.display()))
    };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))? {
        store.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
    }
    if store.is_empty() {
        return Err(unusable(&"there is none in it"));
    }
    Ok(store)
}

fn refusal(url: &ServerUrl, error: io::Error) -> ClientError {
    let url = url.clone();
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            ClientError::Untrusted { reason: certificate_text(&url, reason), url }
        }
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => ClientError::NoTls { url },
        _ => ClientError::NoAnswer { url, error },
    }
}

fn certificate_text(url: &ServerUrl, reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => "nobody this machine trusts has issued it".into(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet".into(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is not for {}", url.host())
        }
        CertificateError::Revoked => "it was revoked".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        std::fs::write(&file, "nothing").unwrap();
        let error = authorities(Some(&file)).unwrap_err().to_string();
        assert!(error.contains("ca.pem") && error.contains("there is none in it"), "{error}");
        let error = authorities(Some(&dir.path().join("missing.pem"))).unwrap_err().to_string();
        assert!(error.contains("missing.pem"), "{error}");
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_told_with_the_reason() {
        let url = ServerUrl::parse("https://salt.example.org").unwrap();
        let wrong = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = refusal(&url, io::Error::new(io::ErrorKind::InvalidData, wrong));
        assert_eq!(
            error.to_string(),
            "the certificate of https://salt.example.org is not trusted: nobody this machine trusts has issued it"
        );
        assert!(error.hint().contains("--ca-file"));
    }
}
