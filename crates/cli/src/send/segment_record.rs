//! A line for each segment of ours: `send --segments-json`.
//!
//! Called by the transfer for each verdict. The receiver's line of the same segment has the same stream, number, units, holes and verdict.

use super::file_queue::Submission;
use crate::json;
use segstream::{Run, SegmentNumber, StreamId, UnitIndex, Verdict};
use segstream_base::Instant;
use serde::Serialize;

/// A segment and its verdict.
#[derive(Debug, Serialize)]
pub(super) struct SegmentRecord {
    /// Which stream of data, counted from 0; the records about files are not counted.
    stream: u32,
    segment: u64,
    units: u64,
    /// The numbers of the missing units.
    holes: Vec<u32>,
    verdict: &'static str,
    /// When the verdict came, in milliseconds since 1970.
    unix_ms: f64,
    /// The source's time, in milliseconds of our own clock, which begins with the endpoint.
    source_ms: f64,
    /// From the source's time to when the verdict came back.
    verdict_ms: f64,
}

impl SegmentRecord {
    /// The record of a segment that was judged at `now`.
    pub(super) fn new(
        (stream, segment): (StreamId, SegmentNumber),
        submission: Submission,
        (verdict, holes): (Verdict, &[Run<UnitIndex>]),
        now: Instant,
    ) -> Self {
        Self {
            stream: stream.0.saturating_sub(1),
            segment: segment.0,
            units: submission.units,
            holes: holes.iter().flatten().map(|unit| unit.0).collect(),
            verdict: verdict.name(),
            unix_ms: json::unix_ms(),
            source_ms: submission.source_time.since(Instant::ZERO).as_millis_f64(),
            verdict_ms: now.since(submission.source_time).as_millis_f64(),
        }
    }
}
