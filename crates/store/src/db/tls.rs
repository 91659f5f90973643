//! Encryption on the way to PostgreSQL, as `sslmode` and `sslrootcert` in its address ask for it.
//!
//! The words mean what they mean to PostgreSQL's own programs: `disable`, `prefer` (the default: encrypt if the server
//! can), `require` (encrypt, whoever it is), `verify-ca` and `verify-full` (and know who it is). The certificates that are
//! believed are those in `sslrootcert`, or the system's.

use crate::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};

/// Makes encrypted connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

/// How sure we have to be of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Anybody,
    KnownAuthority,
    KnownName,
}

/// Reads what the address says about encryption; returns the address without what `tokio_postgres` does not know.
pub(super) fn from_url(url: &str) -> Result<(String, Tls)> {
    let (plain, trust, roots) = read(url)?;
    Ok((plain, Tls(Arc::new(config(trust, roots.as_deref())?))))
}

fn read(url: &str) -> Result<(String, Trust, Option<String>)> {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut trust, mut roots, mut kept) = (Trust::Anybody, None, Vec::new());
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslmode", "verify-ca")) => {
                trust = Trust::KnownAuthority;
                kept.push("sslmode=require");
            }
            Some(("sslmode", "verify-full")) => {
                trust = Trust::KnownName;
                kept.push("sslmode=require");
            }
            Some(("sslrootcert", file)) => {
                let decoded = percent_encoding::percent_decode_str(file).decode_utf8();
                roots = Some(decoded.map_err(|_| Error::Database("sslrootcert is not text".into()))?.into_owned());
            }
            _ => kept.push(parameter),
        }
    }
    // As with PostgreSQL's own programs: who names an authority wants it to be asked.
    if roots.is_some() && trust == Trust::Anybody {
        trust = Trust::KnownAuthority;
    }
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Ok((format!("{place}{query}"), trust, roots))
}

fn config(trust: Trust, roots: Option<&str>) -> Result<ClientConfig> {
    let failed = |error: &dyn std::fmt::Display| Error::Database(format!("cannot set up TLS: {error}"));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let authority = match trust {
        Trust::Anybody => None,
        Trust::KnownAuthority | Trust::KnownName => {
            let store = Arc::new(authorities(roots)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(store, Arc::clone(&provider)).build();
            Some(verifier.map_err(|error| failed(&error))?)
        }
    };
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let verifier = Verifier { authority, name_matters: trust == Trust::KnownName, schemes };
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

fn authorities(file: Option<&str>) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    match file.filter(|file| *file != "system") {
        Some(file) => {
            let unreadable = |error: &dyn std::fmt::Display| {
                Error::Database(format!("cannot read the certificates in sslrootcert {file}: {error}"))
            };
            let found = CertificateDer::pem_file_iter(Path::new(file)).map_err(|error| unreadable(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                store.add(certificate).map_err(|error| unreadable(&error))?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if store.is_empty() {
        let place = file.unwrap_or("the system's store");
        return Err(Error::Database(format!("there is no certificate to verify the server with in {place}")));
    }
    Ok(store)
}

/// Judges the server's certificate by as much as the address asks for.
#[derive(Debug)]
struct Verifier {
    authority: Option<Arc<WebPkiServerVerifier>>,
    name_matters: bool,
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name_matters => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.authority {
            Some(authority) => authority.verify_tls12_signature(message, certificate, signature),
            // Nobody in particular has signed it, so there is nothing that the signature could prove.
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.authority {
            Some(authority) => authority.verify_tls13_signature(message, certificate, signature),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, Self::Error> {
        // A Unix socket has no name and is never encrypted; it is asked for a connector all the same.
        let name = if host.is_empty() { "localhost" } else { host };
        Ok(Connect { config: Arc::clone(&self.0), name: ServerName::try_from(name.to_owned())? })
    }
}

/// One encrypted connection to be made.
pub(super) struct Connect {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connect {
    type Stream = Stream<S>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connecting = tokio_rustls::TlsConnector::from(self.config).connect(self.name, stream);
        Box::pin(async move { Ok(Stream(Box::new(connecting.await?))) })
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
