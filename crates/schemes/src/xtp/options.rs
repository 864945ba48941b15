//! The option bits of a packet: what it asks for and what it says beside its fields.
//!
//! Called by `packet`, which knows which of them a packet of each kind may have. The places of the bits are those of
//! XTP 4.0: the upper 24 bits of CMD, of which those below BTAG are unused.
//!
//! Invariant: no two options share a bit.

/// A set of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options(u32);

impl Options {
    /// None.
    pub const NONE: Self = Self(0);
    /// The checksum covers the header alone.
    pub const NOCHECK: Self = Self(0x40_0000);
    /// An unsolicited CNTL of the receiver, or one that is more than an answer: it reports a gap that has just opened.
    pub const FASTNAK: Self = Self(0x00_8000);
    /// The receiver answers at once with its state (XT 2).
    pub const SREQ: Self = Self(0x00_4000);
    /// The receiver delivers what has come, then answers with its state (XT 2).
    pub const DREQ: Self = Self(0x00_2000);
    /// The receiver has all of the stream and its end.
    pub const RCLOSE: Self = Self(0x00_1000);
    /// The stream ends behind this packet.
    pub const WCLOSE: Self = Self(0x00_0800);
    /// The message ends with this packet.
    pub const EOM: Self = Self(0x00_0400);
    /// The data begins with a tag of eight bytes.
    pub const BTAG: Self = Self(0x00_0100);

    /// Whether all of `options` are set.
    #[inline]
    pub const fn has(self, options: Self) -> bool {
        self.0 & options.0 == options.0
    }

    /// Whether one of `options` is set.
    #[inline]
    pub const fn has_any(self, options: Self) -> bool {
        self.0 & options.0 != 0
    }

    /// These and `options`.
    #[inline]
    #[must_use]
    pub const fn and(self, options: Self) -> Self {
        Self(self.0 | options.0)
    }

    /// These without `options`.
    #[inline]
    #[must_use]
    pub const fn without(self, options: Self) -> Self {
        Self(self.0 & !options.0)
    }

    /// These with `options` if `set`.
    #[inline]
    #[must_use]
    pub const fn with_if(self, options: Self, set: bool) -> Self {
        if set { Self(self.0 | options.0) } else { self }
    }

    /// The bits as CMD has them, without the packet type below them.
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    /// The options whose bits are `bits`, if they are all among `known`.
    pub(super) const fn known(bits: u32, known: Self) -> Option<Self> {
        if bits & !known.0 == 0 { Some(Self(bits)) } else { None }
    }
}
