//! The digest of a state: a hash of the text of everything that decides the future.
//!
//! Called by the exploration for every state.
//!
//! Invariant: two worlds of one instance with the same text behave alike from there on. The text is the derived `Debug`
//! of both endpoints, which prints every field they have, with absolute times; nothing is left out or normalised. That
//! costs states (two histories that differ in a counter do not meet again) and nothing else. A test of the exploration
//! compares the futures of histories that do meet.
//!
//! Limit: rates and byte counts are printed rounded. Two automatic rates that differ are told apart by the controller's own
//! numbers, which are printed in full; a fixed rate is the instance's.
//!
//! Limit: two texts may have the same 64 bits. With a million states that happens once in 37 million explorations, and
//! hides one state. The checker keeps 64 bits of each state too.

use core::fmt;
use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

/// Hashes what is written to it.
#[derive(Debug, Default)]
pub struct Digest(DefaultHasher);

impl Digest {
    /// Adds the text of `value`.
    pub fn text(&mut self, value: &impl fmt::Debug) {
        // Why ignored: this writer takes everything, and derived text gives no error of its own.
        let _ = fmt::write(self, format_args!("{value:?}\n"));
    }

    /// Adds a value that can be hashed as it is.
    pub fn value(&mut self, value: &impl Hash) {
        value.hash(&mut self.0);
    }

    /// The digest.
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_every_field_and_on_the_order() {
        let of = |values: &[(u8, &str)]| {
            let mut digest = Digest::default();
            for value in values {
                digest.text(value);
            }
            digest.finish()
        };
        assert_eq!(of(&[(1, "a"), (2, "b")]), of(&[(1, "a"), (2, "b")]));
        assert_ne!(of(&[(1, "a"), (2, "b")]), of(&[(2, "b"), (1, "a")]));
        assert_ne!(of(&[(1, "a")]), of(&[(1, "b")]));
    }
}
