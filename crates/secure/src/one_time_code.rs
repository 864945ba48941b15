//! A pairing code that two people exchange by voice or chat, valid for one connection.
//!
//! The command that listens makes it, and the user types it at the one that connects. Both derive the same key pair from it
//! ([`crate::Identity::of_code`]). A peer with that key is admitted once ([`crate::Admission::allow_once`]).
//!
//! Invariant: what [`core::fmt::Display`] writes, [`core::str::FromStr`] reads back. It has 80 bits, too many to guess, online or from a
//! recorded handshake.
//!
//! Source: the alphabet is Crockford's base 32, which has no letters that look like digits.

use crate::{IdentityError, provider};
use core::fmt;
use core::str::FromStr;
use zeroize::Zeroizing;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 16 characters of five bits.
const CHARACTERS: usize = 16;
const BYTES: usize = 10;

/// A one-time code, written `k7qm-2xnp-9wdt-4rfh`. A secret: `Debug` does not show it, `Display` does.
#[derive(Clone, PartialEq, Eq)]
pub struct OneTimeCode(Zeroizing<[u8; BYTES]>);

/// Why a text is not a one-time code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OneTimeCodeError {
    /// A character is not of the alphabet.
    #[error("'{found}' does not occur in a one-time code; compare it with the code that was given, such as k7qm-2xnp-9wdt-4rfh")]
    Character {
        /// The character.
        found: char,
    },
    /// It has too few or too many characters.
    #[error("a one-time code has 16 letters and digits, such as k7qm-2xnp-9wdt-4rfh; this one has {found}")]
    Length {
        /// How many there are, without dashes and spaces.
        found: usize,
    },
}

impl OneTimeCode {
    /// A fresh code from the system's entropy.
    ///
    /// # Errors
    /// [`IdentityError::Entropy`].
    pub fn generate() -> Result<Self, IdentityError> {
        Ok(Self(Zeroizing::new(provider::entropy()?)))
    }

    /// The 80 bits.
    pub(crate) fn secret(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl fmt::Display for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.iter().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        for at in 0..CHARACTERS {
            if at > 0 && at % 4 == 0 {
                f.write_str("-")?;
            }
            let index = (bits >> (5 * (CHARACTERS - 1 - at))) as usize & 31;
            write!(f, "{}", char::from(ALPHABET[index]))?;
        }
        Ok(())
    }
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode")
    }
}

impl FromStr for OneTimeCode {
    type Err = OneTimeCodeError;

    /// Accepts common variations: capitals, missing dashes, spaces, `o` for `0`, `i` and `l` for `1`.
    fn from_str(text: &str) -> Result<Self, OneTimeCodeError> {
        let mut bits = 0u128;
        let mut found = 0;
        for character in text.chars().filter(|character| !character.is_whitespace() && *character != '-') {
            let plain = match character.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            };
            let digit = ALPHABET.iter().position(|letter| char::from(*letter) == plain);
            bits = bits << 5 | digit.ok_or(OneTimeCodeError::Character { found: character })? as u128;
            found += 1;
        }
        if found != CHARACTERS {
            return Err(OneTimeCodeError::Length { found });
        }
        let mut bytes = Zeroizing::new([0; BYTES]);
        bytes.copy_from_slice(&bits.to_be_bytes()[16 - BYTES..]);
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_is_written() {
        for _ in 0..100 {
            let code = OneTimeCode::generate().unwrap();
            let text = code.to_string();
            assert_eq!(text.len(), 19);
            assert_eq!(text.parse(), Ok(code));
        }
        assert_ne!(OneTimeCode::generate().unwrap(), OneTimeCode::generate().unwrap());
    }

    #[test]
    fn what_people_do_to_codes_is_forgiven() {
        let code: OneTimeCode = "k7qm-2xnp-01dt-41f0".parse().unwrap();
        for text in ["K7QM-2XNP-01DT-41F0", "k7qm2xnp01dt41f0", " k7qm 2xnp oidt 4lfO\n", "K7QM-2XNP-OLDT-4IFO"] {
            assert_eq!(text.parse().as_ref(), Ok(&code), "{text}");
        }
    }

    #[test]
    fn what_is_no_code_is_refused_with_a_sentence() {
        assert_eq!("k7qm-2xnp-9wdt-4rfu".parse::<OneTimeCode>(), Err(OneTimeCodeError::Character { found: 'u' }));
        assert_eq!("k7qm-2xnp".parse::<OneTimeCode>(), Err(OneTimeCodeError::Length { found: 8 }));
        assert_eq!("k".repeat(40).parse::<OneTimeCode>(), Err(OneTimeCodeError::Length { found: 40 }));
        assert!("".parse::<OneTimeCode>().unwrap_err().to_string().contains("16 letters"));
    }

    #[test]
    fn a_code_does_not_show_in_debug() {
        let code: OneTimeCode = "k7qm-2xnp-9wdt-4rfh".parse().unwrap();
        assert_eq!(format!("{code:?}"), "OneTimeCode");
    }
}
