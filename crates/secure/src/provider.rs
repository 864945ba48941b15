//! The cryptographic provider; no other file names it.
//!
//! Called by every file of this crate that computes with keys.
//!
//! Invariant: every key, seal and digest of this crate comes from the same provider.

use ring::{digest, hkdf, hmac};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::cipher_suite;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::SigningKey;
use segstream_proto::session::Fingerprint;
use std::sync::{Arc, LazyLock};

/// A key for [`mac`].
pub(crate) type MacKey = hmac::Key;

/// The system could not give random bytes.
#[derive(Debug)]
pub(crate) struct NoEntropy;

/// The provider, with AES-128 preferred: RFC 9001 allows every suite of TLS 1.3, and 128 bits are sufficient.
// Limit: a processor without AES instructions would seal faster with ChaCha20-Poly1305, which is only the last choice.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        let cipher_suites = vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ];
        Arc::new(CryptoProvider { cipher_suites, ..rustls::crypto::ring::default_provider() })
    });
    Arc::clone(&PROVIDER)
}

/// Random bytes of the system.
pub(crate) fn entropy<const N: usize>() -> Result<[u8; N], NoEntropy> {
    let mut bytes = [0; N];
    provider().secure_random.fill(&mut bytes).map_err(|_| NoEntropy)?;
    Ok(bytes)
}

/// The signing key of a private key in PKCS#8.
pub(crate) fn signing_key(pkcs8: &[u8]) -> Result<Arc<dyn SigningKey>, rustls::Error> {
    let key = PrivatePkcs8KeyDer::from(pkcs8.to_vec());
    provider().key_provider.load_private_key(key.into())
}

/// The fingerprint of a SubjectPublicKeyInfo in DER.
pub(crate) fn fingerprint(subject_public_key_info: &[u8]) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, subject_public_key_info).as_ref());
    Fingerprint(bytes)
}

/// The fingerprint of the key in a certificate.
pub(crate) fn certificate_fingerprint(certificate: &CertificateDer<'_>) -> Result<Fingerprint, rustls::Error> {
    Ok(fingerprint(&ParsedCertificate::try_from(certificate)?.subject_public_key_info()))
}

/// Derives 32 bytes from `secret` by HKDF-SHA256 (RFC 5869).
pub(crate) fn derive(secret: &[u8], purpose: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    hkdf::Salt::new(hkdf::HKDF_SHA256, b"segstream")
        .extract(secret)
        .expand(&[purpose], hkdf::HKDF_SHA256)
        .and_then(|made| made.fill(&mut bytes))
        .expect("the output of HKDF-SHA256 is one digest long here, and 255 of them are allowed");
    bytes
}

/// HMAC-SHA256, truncated to 16 bytes.
pub(crate) fn mac(key: &MacKey, message: &[u8]) -> [u8; 16] {
    let tag = hmac::sign(key, message);
    let mut short = [0; 16];
    short.copy_from_slice(&tag.as_ref()[..16]);
    short
}

/// A key for [`mac`].
pub(crate) fn mac_key(bytes: &[u8; 32]) -> MacKey {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}
