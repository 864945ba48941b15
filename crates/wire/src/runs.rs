//! Runs of units as they travel: holes, and what is wanted again (spec 5).
//!
//! Each run is its distance from the end of the one before, and its length, both varints.
//!
//! Called by the report's frames. Invariant: decoded runs ascend, are not empty and do not touch.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer, varint_len};
use smallvec::SmallVec;

/// Half-open runs `(start, end)`, ascending, disjoint and not touching.
pub type Runs = SmallVec<[(u32, u32); 4]>;

/// How many bytes `runs` take on the wire.
pub fn runs_len(runs: &[(u32, u32)]) -> usize {
    let mut last = 0;
    let mut sum = varint_len(runs.len() as u64);
    for &(start, end) in runs {
        sum += varint_len(u64::from(start.wrapping_sub(last))) + varint_len(u64::from(end.wrapping_sub(start)));
        last = end;
    }
    sum
}

pub(crate) fn encode_runs(runs: &[(u32, u32)], out: &mut Writer<'_>) {
    out.varint(runs.len() as u64);
    let mut last = 0;
    for &(start, end) in runs {
        out.varint(u64::from(start.wrapping_sub(last)));
        out.varint(u64::from(end.wrapping_sub(start)));
        last = end;
    }
}

/// A run takes two bytes at least, so no more runs are allocated than the input could hold.
pub(crate) fn decode_runs(input: &mut Reader<'_>) -> Result<Runs, DecodeError> {
    let count = input.varint_up_to(input.remaining() as u64 / 2, "run count")?;
    let mut runs = Runs::with_capacity(count as usize);
    let mut last = 0u32;
    for index in 0..count {
        let at = input.position();
        let gap = input.varint_up_to(u64::from(u32::MAX - last), "run gap")? as u32;
        let start = last + gap;
        let length = input.varint_up_to(u64::from(u32::MAX - start), "run length")? as u32;
        if length == 0 || (gap == 0 && index > 0) {
            return Err(DecodeError { at, field: "run", kind: DecodeErrorKind::OutOfRange(0) });
        }
        last = start + length;
        runs.push((start, last));
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded_runs(numbers: &[u64]) -> Result<Runs, DecodeError> {
        let mut buffer = [0; 60];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(numbers.len() as u64 / 2);
        numbers.iter().for_each(|number| writer.varint(*number));
        let count = writer.finish().unwrap();
        decode_runs(&mut Reader::new(&buffer[..count]))
    }

    #[test]
    fn runs_that_touch_or_are_empty_are_refused() {
        assert_eq!(decoded_runs(&[0, 2, 1, 4]).unwrap()[..], [(0, 2), (3, 7)], "the first may begin at 0");
        assert!(decoded_runs(&[0, 2, 0, 4]).is_err(), "the second touches the first");
        assert!(decoded_runs(&[0, 2, 3, 0]).is_err(), "the second is empty");
    }

    #[test]
    fn runs_end_at_the_largest_position_and_never_beyond() {
        let most = u64::from(u32::MAX);
        assert_eq!(decoded_runs(&[5, most - 5]).unwrap()[..], [(5, u32::MAX)]);
        assert!(decoded_runs(&[5, most - 4]).is_err(), "the length goes beyond");
        assert!(decoded_runs(&[5, 1, most - 5, 1]).is_err(), "the gap goes beyond");
    }

    proptest! {
        #[test]
        fn runs_come_back_as_they_were(steps in proptest::collection::vec((1u32..1000, 1u32..1000), 0..50)) {
            let mut at = 0;
            let runs: Runs = steps.iter().map(|&(gap, length)| { let run = (at + gap, at + gap + length); at = run.1; run }).collect();
            let mut buffer = vec![0; 1000];
            let mut writer = Writer::new(&mut buffer);
            encode_runs(&runs, &mut writer);
            let count = writer.finish().unwrap();
            prop_assert_eq!(count, runs_len(&runs));
            prop_assert_eq!(decode_runs(&mut Reader::new(&buffer[..count])), Ok(runs));
        }
    }
}
