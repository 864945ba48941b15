//! A line for each received segment: `--segments-json`.
//!
//! Called by the receiver for every segment it takes.
//!
//! Invariant: the tolerance printed is the one in force: W is never longer than the segment, and neither E nor B
//! exceeds it.

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
    /// From the source's time to the verdict, less the smallest such time so far; null if expired.
    delay_ms: Option<f64>,
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
        let units = received.units;
        Self {
            stream,
            segment: received.segment.0,
            tolerance: [window.min(units), errors.min(units), burst.min(units)],
            units,
            holes: received.holes.iter().flat_map(|&(start, end)| start..end).collect(),
            verdict: received.verdict.name(),
            delay_ms: (received.verdict != Verdict::Expired).then(|| smallest.relative_ms(received.source_time, received.judged_at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream::{SegmentNumber, StreamId};
    use segstream_base::Duration;

    fn received(verdict: Verdict, judged_ms: u64, holes: Vec<(u32, u32)>) -> Received {
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
            first_arrival: None,
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
            &received(Verdict::WithinTolerance, 541, vec![(3, 5), (90, 91)]),
            &mut smallest,
        );
        let line = serde_json::to_string(&record).unwrap();
        let expected =
            r#"{"stream":0,"segment":17,"tolerance":[100,5,2],"units":100,"holes":[3,4,90],"verdict":"within_tolerance","delay_ms":41.0}"#;
        assert_eq!(line, expected);
        assert_eq!(SegmentRecord::new(0, Tolerance::reliable(8), &received(Verdict::Expired, 1, vec![]), &mut smallest).delay_ms, None);
    }
}
