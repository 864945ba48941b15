//! Small mechanisms compared with their definitions on all inputs of a domain. docs/PROOF.md says what follows from that for larger ones.

use segstream_base::codec::{Reader, Writer, varint_len};
use segstream_base::sequence::expand;
use segstream_base::{Tolerance, UnitIndex};

/// What a varint says by RFC 9000 16, and in how many bytes.
fn by_definition(bytes: &[u8]) -> (u64, usize) {
    let length = 1 << (bytes[0] >> 6);
    let value = bytes[..length].iter().enumerate().fold(0, |sum, (at, &byte)| {
        let byte = if at == 0 { byte & 0x3f } else { byte };
        sum << 8 | u64::from(byte)
    });
    (value, length)
}

fn check_varint(bytes: &[u8]) {
    let (value, length) = by_definition(bytes);
    let mut reader = Reader::new(bytes);
    assert_eq!((reader.varint("value").unwrap(), reader.position()), (value, length), "{bytes:x?}");
    assert!((1..length).all(|cut| Reader::new(&bytes[..cut]).varint("value").is_err()), "{bytes:x?} cut");
    let mut out = [0; 8];
    let mut writer = Writer::new(&mut out);
    writer.varint(value);
    let written = writer.finish().unwrap();
    assert!(written == varint_len(value) && written <= length, "{value} takes {written} bytes of {length}");
    assert_eq!(by_definition(&out), (value, written));
}

#[test]
fn varints_of_one_and_two_bytes_and_every_pair_of_bits_of_longer_ones_mean_what_they_should() {
    for first in 0..=u16::MAX {
        let [high, low] = first.to_be_bytes();
        // Of four and eight bytes these are the beginnings.
        check_varint(&[high, low, 0, 0, 0, 0, 0, 0]);
        check_varint(&[high, low, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }
    for prefix in [0x80_u8, 0xc0] {
        for (one, other) in (0..64).flat_map(|one| (0..64).map(move |other| (one, other))) {
            let bits = (1_u64 << one | 1 << other) & !(3 << 62);
            check_varint(&(bits | u64::from(prefix) << 56).to_be_bytes());
            check_varint(&(!bits & !(3 << 62) | u64::from(prefix) << 56).to_be_bytes());
        }
    }
}

/// The number with these low bits that is nearest to `expected`, the higher one of two.
fn nearest(truncated: u64, bits: u32, expected: u64) -> u64 {
    let (space, low) = (1_i128 << bits, i128::from(truncated) & ((1 << bits) - 1));
    let base = i128::from(expected) / space * space + low;
    let candidates = [base - space, base, base + space].into_iter().filter(|number| (0..=i128::from(u64::MAX)).contains(number));
    let best = candidates.min_by_key(|number| ((number - i128::from(expected)).abs(), -number)).unwrap();
    u64::try_from(best).unwrap()
}

#[test]
fn a_number_is_expanded_to_the_nearest_whatever_it_is_of_up_to_eight_bits_and_at_all_borders_of_more() {
    for bits in 1..=8_u32 {
        let space = 1_u64 << bits;
        for truncated in 0..space {
            let low = (0..4 * space).chain(u64::MAX - 4 * space..=u64::MAX);
            low.for_each(|expected| assert_eq!(expand(truncated, bits, expected), nearest(truncated, bits, expected), "{bits} bits"));
        }
    }
    for bits in [16, 24, 32, 62, 63] {
        let space = 1_u64 << bits;
        let borders = |middle: u64| (0..=6).map(move |step| middle.wrapping_add(step).wrapping_sub(3));
        let starts = [0, space / 2, space - 1, space, space.wrapping_mul(5), u64::MAX - space, u64::MAX - space / 2, u64::MAX];
        for (truncated, expected) in [0, space / 4, space / 2, space - 1]
            .into_iter()
            .flat_map(borders)
            .flat_map(|truncated| starts.into_iter().flat_map(borders).map(move |expected| (truncated, expected)))
        {
            assert_eq!(expand(truncated, bits, expected), nearest(truncated, bits, expected), "{truncated} of {bits} near {expected}");
        }
    }
}

/// Strict accounting by its definition: E in each window that begins at a multiple of W, B in a row, none that is important.
fn by_windows_and_runs(tolerance: Tolerance, holes: u32, units: u32, important: u32) -> bool {
    let is_hole = |unit: &u32| holes >> unit & 1 == 1;
    if (0..important.min(units)).any(|unit| is_hole(&unit)) {
        return false;
    }
    let windows = (0..units).step_by(tolerance.window() as usize).all(|start| {
        let window = start..(start + tolerance.window()).min(units);
        window.filter(is_hole).count() as u32 <= tolerance.errors()
    });
    let runs = (0..units).all(|start| (start..units).take_while(is_hole).count() as u32 <= tolerance.burst());
    tolerance.is_any() || windows && runs
}

#[test]
fn a_tolerance_allows_what_its_definition_allows_of_every_set_of_holes_of_up_to_ten_units() {
    let promises = (1..=6).flat_map(|window| (0..=window).flat_map(move |errors| (0..=window).map(move |burst| (window, errors, burst))));
    for (window, errors, burst) in promises {
        let promise = Tolerance::new(window, errors, burst).unwrap();
        for units in 1..=10_u32 {
            // As a receiver holds it: W no longer than the segment.
            let tolerance = promise.clipped_to(units);
            let mut most = 0;
            for holes in 0..1 << units {
                let units_missing = || (0..units).filter(|unit| holes >> unit & 1 == 1).map(UnitIndex);
                for important in [0, 1, 3] {
                    let expected = by_windows_and_runs(tolerance, holes, units, important);
                    assert_eq!(tolerance.allows(units_missing(), important), expected, "{tolerance} {holes:b} of {units}, {important}");
                }
                if tolerance.allows(units_missing(), 0) {
                    most = most.max(u32::count_ones(holes));
                }
            }
            assert!(most <= tolerance.most_holes(units), "{tolerance} allows {most} of {units}");
        }
    }
}
