//! Certificates: what the server shows, and whose it takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay::{Error, Result};
use forebay_env::sync::RwLock;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

/// A connection has this, in bytes, of what is encrypted and not sent yet.
pub(crate) const UNSENT_BYTES_MAX: usize = 32 << 10;

/// Where certificates are, in files of PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's own, with those that vouch for it behind it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who vouches for clients; none are asked for certificates without.
    pub client_ca: Option<PathBuf>,
    /// Clients may come without a certificate; one that is shown has to be good all the same.
    pub are_clients_optional: bool,
}

impl TlsFiles {
    /// Whether nobody comes in without a certificate.
    pub(crate) fn knows_clients(&self) -> bool {
        self.client_ca.is_some() && !self.are_clients_optional
    }

    fn read(&self) -> Result<Arc<ServerConfig>> {
        let provider = provider();
        let told = |error: rustls::Error| {
            Error::invalid(format!("{} and {}: {error}", self.certificate.display(), self.key.display()))
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(told)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let told = |reason: String| Error::invalid(format!("{}: {reason}", path.display()));
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider);
                let verifier = match self.are_clients_optional {
                    true => verifier.allow_unauthenticated(),
                    false => verifier,
                };
                builder.with_client_cert_verifier(verifier.build().map_err(|error| told(error.to_string()))?)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| {
            Error::invalid(format!("{}: no private key in PEM: {error}", self.key.display()))
        })?;
        Ok(Arc::new(builder.with_single_cert(certificates(&self.certificate)?, key).map_err(told)?))
    }
}

/// What encrypts.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Those who vouch for others, of a file.
pub(crate) fn roots(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for root in certificates(path)? {
        roots.add(root).map_err(|error| Error::invalid(format!("{}: {error}", path.display())))?;
    }
    Ok(roots)
}

/// The certificates of a file, of which there is at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let told = |reason: String| Error::invalid(format!("{}: {reason}", path.display()));
    let all =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    match all {
        Ok(all) if all.is_empty() => Err(told("no certificate in PEM is in it".into())),
        Ok(all) => Ok(all),
        Err(error) => Err(told(error.to_string())),
    }
}

/// What new connections are told; those that there are keep what they were told.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    pub(crate) fn new(files: &TlsFiles) -> Result<Self> {
        Ok(Self { config: RwLock::new(files.read()?), files: files.clone() })
    }

    /// A connection that has heard nothing yet.
    pub(crate) fn connection(&self) -> std::result::Result<ServerConnection, rustls::Error> {
        let mut connection = ServerConnection::new(Arc::clone(&self.config.read()))?;
        connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(connection)
    }
}

/// The certificates of a running server. It holds nothing of the database.
#[derive(Clone, Debug)]
pub struct Certificates(pub(crate) Arc<Tls>);

impl Certificates {
    /// Reads the files again, for connections to come. Where they are no good all stays as it is.
    pub fn reload(&self) -> Result<()> {
        let config = self.0.files.read()?;
        *self.0.config.write() = config;
        Ok(())
    }
}
