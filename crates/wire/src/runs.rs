//! Runs of units or positions as they travel: holes, and what is requested (spec 5).
//!
//! Each run is its distance from the end of the one before, and its length, both varints.
//!
//! Called by the report's frames. Invariant: decoded runs ascend, are not empty and do not touch.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer, varint_len};
use segstream_base::{Ordinal, Run};
use smallvec::SmallVec;

/// Runs of units or of positions, ascending, disjoint and not touching.
pub type Runs<N> = SmallVec<[Run<N>; 4]>;

/// How many bytes `runs` take on the wire.
pub fn runs_len<N: Ordinal>(runs: &[Run<N>]) -> usize {
    let mut last = 0;
    let mut sum = varint_len(runs.len() as u64);
    for run in runs {
        sum += varint_len(u64::from(run.start().index().wrapping_sub(last))) + varint_len(u64::from(run.len()));
        last = run.end().index();
    }
    sum
}

pub(crate) fn encode_runs<N: Ordinal>(runs: &[Run<N>], out: &mut Writer<'_>) {
    out.varint(runs.len() as u64);
    let mut last = 0;
    for run in runs {
        out.varint(u64::from(run.start().index().wrapping_sub(last)));
        out.varint(u64::from(run.len()));
        last = run.end().index();
    }
}

/// The most runs that a frame has (spec 5.9).
pub const RUNS_MAX: usize = 400;

/// A run takes two bytes at least, so no more runs are allocated than the input could hold.
pub(crate) fn decode_runs<N: Ordinal>(input: &mut Reader<'_>) -> Result<Runs<N>, DecodeError> {
    let count = input.varint_up_to((input.remaining() as u64 / 2).min(RUNS_MAX as u64), "run count")?;
    let mut runs = Runs::with_capacity(count as usize);
    let mut last = 0u32;
    for index in 0..count {
        let at = input.position();
        let gap = input.varint_up_to(u64::from(u32::MAX - last), "run gap")? as u32;
        let start = last + gap;
        let length = input.varint_up_to(u64::from(u32::MAX - start), "run length")? as u32;
        last = start + length;
        let touches = gap == 0 && index > 0;
        let run = Run::new(N::of(start), N::of(last)).filter(|_| !touches);
        runs.push(run.ok_or(DecodeError { at, field: "run", kind: DecodeErrorKind::OutOfRange(0) })?);
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use segstream_base::Position;

    fn run(start: u32, end: u32) -> Run<Position> {
        Run::new(Position(start), Position(end)).unwrap()
    }

    fn decoded_runs(numbers: &[u64]) -> Result<Runs<Position>, DecodeError> {
        let mut buffer = [0; 60];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(numbers.len() as u64 / 2);
        numbers.iter().for_each(|number| writer.varint(*number));
        let count = writer.finish().unwrap();
        decode_runs(&mut Reader::new(&buffer[..count]))
    }

    #[test]
    fn every_set_of_twelve_numbers_travels_as_runs_and_back() {
        for set in 0..1_u32 << 12 {
            let mut runs: Runs<Position> = Runs::new();
            for number in (0..12).filter(|number| set >> number & 1 == 1) {
                match runs.last_mut() {
                    Some(last) if last.end() == Position(number) => *last = run(last.start().0, number + 1),
                    _ => runs.push(run(number, number + 1)),
                }
            }
            let mut buffer = [0; 60];
            let mut writer = Writer::new(&mut buffer);
            encode_runs(&runs, &mut writer);
            let count = writer.finish().unwrap();
            assert_eq!(count, runs_len(&runs));
            assert_eq!(decode_runs(&mut Reader::new(&buffer[..count])), Ok(runs), "{set:b}");
        }
    }

    #[test]
    fn runs_that_touch_or_are_empty_are_refused() {
        assert_eq!(decoded_runs(&[0, 2, 1, 4]).unwrap()[..], [run(0, 2), run(3, 7)], "the first may begin at 0");
        assert!(decoded_runs(&[0, 2, 0, 4]).is_err(), "the second touches the first");
        assert!(decoded_runs(&[0, 2, 3, 0]).is_err(), "the second is empty");
    }

    #[test]
    fn runs_end_at_the_largest_position_and_never_beyond() {
        let most = u64::from(u32::MAX);
        assert_eq!(decoded_runs(&[5, most - 5]).unwrap()[..], [run(5, u32::MAX)]);
        assert!(decoded_runs(&[5, most - 4]).is_err(), "the length goes beyond");
        assert!(decoded_runs(&[5, 1, most - 5, 1]).is_err(), "the gap goes beyond");
    }

    proptest! {
        #[test]
        fn runs_come_back_as_they_were(steps in proptest::collection::vec((1u32..1000, 1u32..1000), 0..50)) {
            let mut at = 0;
            let runs: Runs<Position> = steps.iter().map(|&(gap, length)| { let start = at + gap; at = start + length; run(start, at) }).collect();
            let mut buffer = vec![0; 1000];
            let mut writer = Writer::new(&mut buffer);
            encode_runs(&runs, &mut writer);
            let count = writer.finish().unwrap();
            prop_assert_eq!(count, runs_len(&runs));
            prop_assert_eq!(decode_runs(&mut Reader::new(&buffer[..count])), Ok(runs));
        }
    }
}
