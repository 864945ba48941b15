//! Sequence numbers: serial numbers that wrap, and 64-bit numbers that travel truncated.
//!
//! Called by the wire formats. Inside a state machine numbers are 64 bits wide and never wrap; on the
//! wire they are cut to 16, 24 or 32 bits and rebuilt from what is expected.
//!
//! Invariant: a number rebuilt with [`expand`] is the one sent as long as sender and receiver are less
//! than half the truncated space apart.

use core::cmp::Ordering;

/// The 64-bit number whose low `bits` bits are `truncated` and that lies nearest to `expected`.
///
/// `bits` is 1 to 63. Ties go upward. Near zero and near `u64::MAX` the nearest number that exists is
/// returned.
pub const fn expand(truncated: u64, bits: u32, expected: u64) -> u64 {
    let space = 1u64 << bits;
    let half = space >> 1;
    let candidate = (expected & !(space - 1)) | (truncated & (space - 1));
    if candidate.wrapping_add(half) <= expected && candidate < u64::MAX - space + 1 {
        candidate + space
    } else if candidate > expected.saturating_add(half) && candidate >= space {
        candidate - space
    } else {
        candidate
    }
}

/// RFC 1982: compares two serial numbers of `bits` bits (1 to 32). `None` when they are exactly half
/// the space apart, where the order is undefined.
pub const fn serial_cmp(a: u32, b: u32, bits: u32) -> Option<Ordering> {
    let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
    let distance = a.wrapping_sub(b) & mask;
    let half = 1u32 << (bits - 1);
    if distance == 0 {
        Some(Ordering::Equal)
    } else if distance == half {
        None
    } else if distance < half {
        Some(Ordering::Greater)
    } else {
        Some(Ordering::Less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_truncated_number_is_rebuilt_across_the_wrap() {
        assert_eq!(expand(0x02, 8, 0xff), 0x102);
        assert_eq!(expand(0xfe, 8, 0x101), 0xfe);
        assert_eq!(expand(0xfe, 8, 1), 0xfe);
        assert_eq!(expand(0, 32, 0xffff_ffff), 0x1_0000_0000);
        assert_eq!(expand(0xffff_ffff, 32, u64::MAX), u64::MAX);
    }

    #[test]
    fn of_two_numbers_equally_near_the_higher_is_meant() {
        assert_eq!(expand(0x00, 8, 0x80), 0x100);
        assert_eq!(expand(0x00, 8, 0x7f), 0x00);
        assert_eq!(expand(0x80, 8, 0x100), 0x180);
        assert_eq!(expand(0x81, 8, 0x100), 0x81);
    }

    #[test]
    fn serial_numbers_compare_across_the_wrap() {
        assert_eq!(serial_cmp(1, 0xffff, 16), Some(Ordering::Greater));
        assert_eq!(serial_cmp(0xff_ffff, 1, 24), Some(Ordering::Less));
        assert_eq!(serial_cmp(0, 0x8000_0000, 32), None);
    }

    proptest! {
        #[test]
        fn any_number_within_half_the_space_survives_truncation(expected in 0u64..1 << 62, offset in -0x7fff_ffffi64..0x7fff_ffff) {
            let sent = expected.saturating_add_signed(offset);
            prop_assert_eq!(expand(sent & 0xffff_ffff, 32, expected), sent);
        }
    }
}
