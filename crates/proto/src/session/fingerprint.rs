//! The fingerprint of a key: what people compare, write down and give on a command line.
//!
//! Made by the secure layer, told by connections. Written as `SHA256:` and 43 characters of base64url, the SHA-256 of
//! the key's SubjectPublicKeyInfo (RFC 5280 4.1).
//!
//! Invariant: what [`core::fmt::Display`] writes, [`core::str::FromStr`] reads back.

use core::fmt;
use core::str::FromStr;
use data_encoding::BASE64URL_NOPAD;

/// What stands in front of every fingerprint.
const PREFIX: &str = "SHA256:";

/// The SHA-256 of a public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// Why a text is no fingerprint: the fault of whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a fingerprint: {what}; it looks like SHA256:{example}")]
pub struct FingerprintError {
    text: String,
    what: &'static str,
    example: &'static str,
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", BASE64URL_NOPAD.encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let wrong = |what| FingerprintError { text: text.to_owned(), what, example: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU" };
        let encoded = text.strip_prefix(PREFIX).ok_or_else(|| wrong("it does not begin with SHA256:"))?;
        let bytes = BASE64URL_NOPAD.decode(encoded.as_bytes()).map_err(|_| wrong("what follows SHA256: is not base64url"))?;
        Ok(Self(bytes.try_into().map_err(|_| wrong("it is not 43 characters long behind SHA256:"))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let fingerprint = Fingerprint(core::array::from_fn(|at| at as u8 * 7));
        let text = fingerprint.to_string();
        assert_eq!(text.len(), 50);
        assert_eq!(text.parse(), Ok(fingerprint));
    }

    #[test]
    fn what_is_no_fingerprint_is_refused_with_a_sentence() {
        for text in ["", "SHA256:", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "SHA256:47DEQpj8", "SHA256:ü"] {
            let error = text.parse::<Fingerprint>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("looks like SHA256:"), "{error}");
        }
    }
}
