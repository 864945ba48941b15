//! The extensions that an end supports, told in proposal and agreement (spec 12).
//!
//! Called by set-up. Invariant: an extension is in force only where both ends have named what it takes; an unknown one is passed over, so
//! that an end without it never gets a frame that it does not know.

use segstream_base::codec::{DecodeError, Reader, Writer};

/// A set of extensions, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions(u64);

impl Extensions {
    /// None.
    pub const NONE: Self = Self(0);
    /// The end sends and takes repair units, and what is said about them (12.2).
    pub const REPAIR: Self = Self(1);
    /// The end takes DURABLE frames about the streams that it sends (5.13).
    pub const DURABLE: Self = Self(2);
    /// The end sends DURABLE frames: its application confirms what it has received.
    pub const CONFIRMS: Self = Self(4);

    /// Those of either set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are in it.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Writes the set.
    pub fn encode(self, out: &mut Writer<'_>) {
        out.varint(self.0);
    }

    /// Reads a set, with what is unknown here.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(input.varint("extensions")?))
    }
}

impl core::fmt::Display for Extensions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::tests::written;

    #[test]
    fn an_unknown_extension_is_kept_and_changes_nothing() {
        let known = Extensions::DURABLE.with(Extensions::CONFIRMS);
        let told = known.with(Extensions(1 << 40));
        let read = Extensions::decode(&mut Reader::new(&written(|out| told.encode(out)))).unwrap();
        assert!(read.contains(known) && !Extensions::DURABLE.contains(known) && Extensions::NONE.is_empty());
        assert_eq!(read, told);
    }
}
