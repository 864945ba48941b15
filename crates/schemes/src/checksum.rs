//! The 16-bit checksum at the end of every packet, over all of it, payload included: the ones' complement sum of RFC 1071.
//!
//! Called by the packets of SSTP (EC 4.1 asks for 16 bits and leaves the sum open) and by [`crate::envelope`].
//!
//! Invariant: every piece but the last has an even length, so the pieces sum to what the whole does.

/// A checksum in the making.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// The sum with `bytes` added; an odd last byte counts as the high half of a word.
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        Self(self.0 + bytes.chunks(2).map(|pair| u64::from(word(pair))).sum::<u64>())
    }

    /// The value of the field.
    pub(crate) const fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// Bytes of the checksum, the last of a packet.
pub(crate) const CHECKSUM_BYTES: usize = 2;

/// Puts the checksum of all that stands in front of it into the last two bytes of `packet`.
pub(crate) fn seal(packet: &mut [u8]) {
    if let Some((covered, field)) = packet.split_last_chunk_mut::<CHECKSUM_BYTES>() {
        *field = Checksum::default().with(covered).finish().to_be_bytes();
    }
}

const fn word(pair: &[u8]) -> u16 {
    match pair {
        [high, low] => u16::from_be_bytes([*high, *low]),
        [high] => u16::from_be_bytes([*high, 0]),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_the_example_in_rfc_1071() {
        let whole = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Checksum::default().with(&whole).finish(), !0xddf2);
        assert_eq!(Checksum::default().with(&whole[..6]).with(&whole[6..]).finish(), !0xddf2);
        assert_eq!(Checksum::default().finish(), 0xffff);
    }

    #[test]
    fn a_changed_byte_changes_the_sum() {
        let packet = [0x01, 0x02, 0x00, 0x04, 0x7f, 0x80, 0x00];
        for at in 0..packet.len() {
            for flip in [0x01, 0x40, 0xff] {
                let mut damaged = packet;
                damaged[at] ^= flip;
                let sums = (Checksum::default().with(&damaged).finish(), Checksum::default().with(&packet).finish());
                assert_ne!(sums.0, sums.1, "byte {at} flipped by {flip:#x}");
            }
        }
    }
}
