//! Who an endpoint is: a key pair, and the certificates that carry its public key.
//!
//! Made by the command or the library's user, given to [`crate::Tls`]; the files of keys are in `identity/file.rs`.
//!
//! Invariant: the first certificate is for the key, and [`Identity::fingerprint`] is of that key.

use crate::{Fingerprint, OneTimeCode, provider};
use core::fmt;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

mod file;

#[cfg(test)]
mod tests;

/// A key pair and its certificates. Cheap to clone; `Debug` shows nothing secret.
#[derive(Clone)]
pub struct Identity {
    key: Arc<dyn SigningKey>,
    chain: Vec<CertificateDer<'static>>,
    fingerprint: Fingerprint,
    lasting: Arc<Zeroizing<[u8; 32]>>,
}

/// Why an identity cannot be loaded or made.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The system gives no random bytes.
    #[error("the operating system provides no random numbers, so no key can be generated")]
    Entropy,
    /// A file could not be read.
    #[error("{} cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// A file or its folder could not be created.
    #[error("{} cannot be written: {cause}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// Other users may read a file with a private key.
    #[error("others may read {} (its mode is {mode:04o}), so the private key in it may be known to them; run chmod 600 on it, or remove it and let a new key be generated", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file with a private key belongs to another user.
    #[error("{} belongs to another user (number {owner}), who may know or replace the private key in it; use a key of your own, or run chown on it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
    },
    /// A file contains no private key in a supported format.
    #[error("{} contains no private key in PKCS#8 PEM (BEGIN PRIVATE KEY); convert other forms with openssl pkcs8 -topk8 -nocrypt", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A private key is damaged, or of an unsupported kind.
    #[error("{key} cannot be used ({cause}): it must be Ed25519, ECDSA on P-256 or P-384, or RSA of 2048 to 4096 bits")]
    UnusableKey {
        /// Which key, and where it is.
        key: String,
        /// What is wrong.
        cause: String,
    },
    /// A file of certificates is empty or damaged.
    #[error("{} contains no usable certificate chain in PEM: {cause}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// A certificate is for another key.
    #[error(
        "the first certificate in {} is for the key {found}, but the key of this identity is {ours}; put the certificate of this key first",
        path.display()
    )]
    OtherKey {
        /// The file.
        path: PathBuf,
        /// The key of the certificate.
        found: Fingerprint,
        /// The key of the identity.
        ours: Fingerprint,
    },
}

impl From<provider::NoEntropy> for IdentityError {
    fn from(_: provider::NoEntropy) -> Self {
        Self::Entropy
    }
}

impl Identity {
    /// A fresh Ed25519 key from the system's entropy, for as long as the process lives.
    ///
    /// # Errors
    /// [`IdentityError::Entropy`].
    pub fn generate() -> Result<Self, IdentityError> {
        Self::of_pkcs8(&fresh_key()?, || "the fresh key".to_owned())
    }

    /// Reads a private key: PKCS#8 in PEM; Ed25519, ECDSA (P-256, P-384) or RSA.
    ///
    /// # Errors
    /// When the file cannot be read, others may read it, or it holds no usable key.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        Self::of_pkcs8(&file::read_key(path)?, || format!("the private key in {}", path.display()))
    }

    /// Reads a private key. If the file does not exist, it is created with a fresh Ed25519 key, and missing folders are created for the owner
    /// only. Two processes that do this at the same time get the same key.
    ///
    /// # Errors
    /// As [`Identity::load`], and if the file cannot be created.
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        if !path.exists() {
            file::create_key(path, &fresh_key()?)?;
        }
        Self::load(path)
    }

    /// The identity that is derived from a one-time code; everyone who knows the code has it.
    ///
    /// # Errors
    /// None is known; the cryptographic provider may refuse to sign.
    pub fn of_code(code: &OneTimeCode) -> Result<Self, IdentityError> {
        let seed = Zeroizing::new(provider::derive(code.secret(), b"one-time code, Ed25519"));
        Self::of_pkcs8(&ed25519_pkcs8(&seed), || "the key of the one-time code".to_owned())
    }

    /// The same key with the certificates of a PEM file, the key's own first, in place of the self-signed one. For
    /// peers that trust an authority.
    ///
    /// # Errors
    /// When the file cannot be read, or its first certificate is not for this key.
    pub fn with_certificates(self, path: &Path) -> Result<Self, IdentityError> {
        let chain = file::read_certificates(path)?;
        let unusable = |cause: String| IdentityError::Certificates { path: path.to_owned(), cause };
        let first = chain.first().ok_or_else(|| unusable("it is empty".to_owned()))?;
        let found = provider::certificate_fingerprint(first).map_err(|error| unusable(error.to_string()))?;
        if found != self.fingerprint {
            return Err(IdentityError::OtherKey { path: path.to_owned(), found, ours: self.fingerprint });
        }
        Ok(Self { chain, ..self })
    }

    /// The fingerprint of the public key: what a peer trusts or allows.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The key and its certificates as rustls presents them.
    pub(crate) fn into_certified_key(self) -> CertifiedKey {
        CertifiedKey::new(self.chain, self.key)
    }

    /// A secret that only processes with this identity have.
    pub(crate) fn lasting_secret(&self) -> &[u8; 32] {
        &self.lasting
    }

    fn of_pkcs8(pkcs8: &[u8], which: impl Fn() -> String) -> Result<Self, IdentityError> {
        let unusable = |cause: String| IdentityError::UnusableKey { key: which(), cause };
        let key = provider::signing_key(pkcs8).map_err(|error| unusable(error.to_string()))?;
        let fingerprint = provider::fingerprint(&key.public_key().ok_or_else(|| unusable("its public key is unknown".to_owned()))?);
        let certificate = self_signed(pkcs8).map_err(|error| unusable(error.to_string()))?;
        let lasting = Arc::new(Zeroizing::new(provider::derive(pkcs8, b"lasting authentication")));
        Ok(Self { key, chain: vec![certificate], fingerprint, lasting })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

fn fresh_key() -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    Ok(ed25519_pkcs8(&Zeroizing::new(provider::entropy()?)))
}

/// An Ed25519 private key in PKCS#8 (RFC 8410 7): everything but the key itself is constant.
fn ed25519_pkcs8(seed: &[u8; 32]) -> Zeroizing<Vec<u8>> {
    const HEAD: [u8; 16] = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    Zeroizing::new([&HEAD[..], seed].concat())
}

/// A self-signed certificate that contains only the key. It is always valid, so that a wrong clock does not matter (RFC 5280 4.1.2.5: the
/// last second of 9999 means no expiration).
fn self_signed(pkcs8: &[u8]) -> Result<CertificateDer<'static>, rcgen::Error> {
    let pair = rcgen::KeyPair::try_from(&PrivatePkcs8KeyDer::from(pkcs8))?;
    let mut certificate = rcgen::CertificateParams::default();
    certificate.not_before = rcgen::date_time_ymd(1970, 1, 1);
    certificate.not_after = rcgen::date_time_ymd(9999, 12, 31);
    certificate.distinguished_name = rcgen::DistinguishedName::new();
    certificate.distinguished_name.push(rcgen::DnType::CommonName, "segstream");
    // Why a constant name: no other issuer uses it, and all certificates then have one length.
    certificate.serial_number = Some(rcgen::SerialNumber::from(1));
    Ok(certificate.self_signed(&pair)?.der().clone())
}
