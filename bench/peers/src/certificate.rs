//! The certificate of a QUIC server: made when it starts, trusted by whoever was told it.
//!
//! Called by [`crate::quinn_end`] and [`crate::s2n_end`]. `trust` is the certificate (DER) in hexadecimal digits, so the
//! client verifies it in full, as it would any other.
//!
//! Invariant: the key never leaves the process that made it.

use anyhow::{Context as _, Result, ensure};
use rcgen::{CertifiedKey, KeyPair};

/// The name it is for, whatever the address.
pub(crate) const NAME: &str = "localhost";

/// A new one with its key.
pub(crate) fn make() -> Result<CertifiedKey<KeyPair>> {
    rcgen::generate_simple_self_signed([NAME.to_owned()]).context("a certificate cannot be made")
}

/// What the client has to be told.
pub(crate) fn trust(made: &CertifiedKey<KeyPair>) -> String {
    made.cert.der().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The certificate in what the client was told.
pub(crate) fn der(trust: &str) -> Result<Vec<u8>> {
    let wrong = "--trust is no certificate; give the text that the serving side printed as trust";
    ensure!(!trust.is_empty() && trust.len().is_multiple_of(2) && trust.is_ascii(), wrong);
    (0..trust.len()).step_by(2).map(|at| u8::from_str_radix(&trust[at..at + 2], 16).context(wrong)).collect()
}

/// The same as text between lines that say what it is, RFC 7468.
pub(crate) fn pem(der: &[u8]) -> String {
    let base64 = data_encoding::BASE64.encode(der);
    let lines: Vec<&str> = (0..base64.len()).step_by(64).map(|at| &base64[at..base64.len().min(at + 64)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_survives_being_told() {
        let made = make().unwrap();
        assert_eq!(der(&trust(&made)).unwrap(), made.cert.der().to_vec());
        assert_eq!(pem(made.cert.der()), made.cert.pem().replace("\r\n", "\n"));
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        for text in ["", "abc", "zz", "\u{e9}"] {
            assert!(der(text).unwrap_err().to_string().contains("--trust"), "{text}");
        }
    }
}
