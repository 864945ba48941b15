//! Root certificates: the trusted certificate authorities.
//!
//! Loaded by the command or the library's user; used by an initiator for [`crate::Trust::Certified`], and by a responder for
//! [`crate::Admission::allow_certified`].
//!
//! Invariant: webpki verifies a chain (RFC 5280 6) at the time of the system's clock. Revocation is not checked.

use crate::provider::provider;
use core::fmt;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Root certificates. Cheap to clone.
#[derive(Clone)]
pub struct Authorities {
    responders: Arc<WebPkiServerVerifier>,
    initiators: Arc<dyn ClientCertVerifier>,
}

/// Why authorities cannot be loaded from a file.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// The file could not be read.
    #[error("{} cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The file holds no certificate, or a damaged one.
    #[error("{} contains no usable root certificates in PEM: {cause}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
}

impl Authorities {
    /// Reads all root certificates of a PEM file.
    ///
    /// # Errors
    /// If the file cannot be read, contains none, or a damaged one.
    pub fn load(path: &Path) -> Result<Self, AuthoritiesError> {
        let text = fs::read(path).map_err(|cause| AuthoritiesError::Read { path: path.to_owned(), cause })?;
        Self::of_pem(&text).map_err(|cause| AuthoritiesError::Unusable { path: path.to_owned(), cause })
    }

    fn of_pem(text: &[u8]) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        if roots.is_empty() {
            return Err("it has no certificate".to_owned());
        }
        let roots = Arc::new(roots);
        let responders = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider()).build();
        let initiators = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        Ok(Self { responders: responders.map_err(|error| error.to_string())?, initiators: initiators.map_err(|error| error.to_string())? })
    }

    /// Verifies a responder's chain for this name.
    pub(crate) fn check_responder(
        &self,
        first: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        self.responders.verify_server_cert(first, others, name, &[], now).map(drop)
    }

    /// Verifies an initiator's chain.
    pub(crate) fn check_initiator(
        &self,
        first: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        self.initiators.verify_client_cert(first, others, now).map(drop)
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorities").finish_non_exhaustive()
    }
}
