//! A line for each received segment: `--segments-json`.
//!
//! Called by the receiver for every segment it takes.
//!
//! Invariant: the tolerance printed is the one in force: W is never longer than the segment, and neither E nor B
//! exceeds it.

use crate::json;
use segstream::{Received, Tolerance, Verdict};
use segstream_base::Instant;
use serde::Serialize;

/// A segment as it was received.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct SegmentRecord {
    /// Which stream of data, counted from 0.
    stream: u32,
    segment: u64,
    tolerance: [u32; 3],
    units: u32,
    /// The numbers of the missing units.
    holes: Vec<u32>,
    verdict: &'static str,
    /// When it was taken, in milliseconds since 1970.
    unix_ms: f64,
    /// The source's time, in milliseconds of the sender's own clock, which begins with its endpoint.
    source_ms: f64,
    /// From the source's time to the verdict, less the smallest such time so far; null if expired.
    delay_over_least_ms: Option<f64>,
    /// From the arrival of the first unit or repair unit to the verdict: what repair costs; null if expired.
    assembly_ms: Option<f64>,
}

/// The smallest time from source to verdict so far. The clocks of the two ends differ, so only differences count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SmallestDelay {
    nanos: Option<i128>,
}

impl SmallestDelay {
    /// The delay of a segment, relative to the smallest one including itself.
    fn relative_ms(&mut self, source: Instant, judged: Instant) -> f64 {
        let nanos = i128::from(judged.as_nanos()) - i128::from(source.as_nanos());
        let smallest = self.nanos.map_or(nanos, |before| before.min(nanos));
        self.nanos = Some(smallest);
        (nanos - smallest) as f64 / 1e6
    }
}

impl SegmentRecord {
    /// The record of `received`, a segment of data stream `stream` under `tolerance`.
    pub(super) fn new(stream: u32, tolerance: Tolerance, received: &Received, smallest: &mut SmallestDelay) -> Self {
        let (window, errors, burst) = tolerance.triplet();
        let (units, in_time) = (received.units, received.verdict != Verdict::Expired);
        Self {
            stream,
            segment: received.segment.0,
            tolerance: [window.min(units), errors.min(units), burst.min(units)],
            units,
            holes: received.holes.iter().flatten().map(|unit| unit.0).collect(),
            verdict: received.verdict.name(),
            unix_ms: json::unix_ms(),
            source_ms: received.source_time.since(Instant::ZERO).as_millis_f64(),
            delay_over_least_ms: in_time.then(|| smallest.relative_ms(received.source_time, received.judged_at)),
            assembly_ms: received.first_arrival.filter(|_| in_time).map(|first| received.judged_at.since(first).as_millis_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream::{Run, SegmentNumber, StreamId, UnitIndex};
    use segstream_base::Duration;

    fn received(verdict: Verdict, judged_ms: u64, holes: Vec<Run<UnitIndex>>) -> Received {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        Received {
            stream: StreamId(1),
            segment: SegmentNumber(17),
            verdict,
            bytes: Vec::new().into(),
            units: 100,
            unit_bytes: 1024,
            holes,
            source_time: at(1000),
            first_arrival: Some(at(520)),
            judged_at: at(judged_ms),
        }
    }

    #[test]
    fn a_line_names_holes_by_unit_and_the_tolerance_in_force() {
        let mut smallest = SmallestDelay::default();
        SegmentRecord::new(0, Tolerance::reliable(8), &received(Verdict::Complete, 500, vec![]), &mut smallest);
        let record = SegmentRecord::new(
            0,
            Tolerance::new(1024, 5, 2).unwrap(),
            &received(
                Verdict::WithinTolerance,
                541,
                [(3, 5), (90, 91)].into_iter().filter_map(|(start, end)| Run::new(UnitIndex(start), UnitIndex(end))).collect(),
            ),
            &mut smallest,
        );
        let line = serde_json::to_string(&SegmentRecord { unix_ms: 7.5, ..record }).unwrap();
        let expected = concat!(
            r#"{"stream":0,"segment":17,"tolerance":[100,5,2],"units":100,"holes":[3,4,90],"verdict":"within_tolerance","#,
            r#""unix_ms":7.5,"source_ms":1000.0,"delay_over_least_ms":41.0,"assembly_ms":21.0}"#
        );
        assert_eq!(line, expected);
        let expired = SegmentRecord::new(0, Tolerance::reliable(8), &received(Verdict::Expired, 1, vec![]), &mut smallest);
        assert_eq!((expired.delay_over_least_ms, expired.assembly_ms), (None, None));
        assert!(expired.unix_ms > 1.7e12, "{expired:?}");
    }
}
