//! The log of losses: when shipments of a peer were lost, in which pattern, and what became of the units: repaired, tolerated, or missing
//! in an expired segment.
//!
//! Called by the thread of the recorder. One line of JSON for each run of lost shipments and for each segment that lost units; when a
//! connection ends, one for each of its streams, with a histogram of run lengths for the connection.
//!
//! Limit: of a connection with more than [`STREAMS_MAX`] streams, those with the lowest numbers get their line before it ends.
//!
//! Invariant: of every segment with losses, the units lost are those repaired and those that stayed missing together.

use super::{Batch, Origin};
use segstream_base::StreamId;
use segstream_base::halves::Verdict;
use segstream_proto::trace::{SegmentJudged, TraceEvent};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Of how many streams of a connection losses are summed up at a time.
const STREAMS_MAX: usize = 4096;

/// The log of losses.
#[derive(Debug)]
pub(super) struct LossLog {
    path: PathBuf,
    file: BufWriter<File>,
    connections: BTreeMap<u64, Losses>,
}

/// The losses of one connection.
#[derive(Debug)]
struct Losses {
    origin: Origin,
    shipments: u64,
    /// How many runs of lost shipments had which length.
    runs: BTreeMap<u64, u64>,
    streams: BTreeMap<StreamId, StreamLosses>,
}

/// The losses of one stream, in all its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StreamLosses {
    segments: u64,
    segments_with_losses: u64,
    units_lost: u64,
    units_repaired: u64,
    units_tolerated: u64,
    /// Missing in segments that were not within their tolerance.
    units_missing: u64,
    first_ms: f64,
    last_ms: f64,
}

impl StreamLosses {
    fn add(&mut self, at_ms: f64, judged: &SegmentJudged) -> (u64, u64) {
        let missing: u64 = judged.holes.iter().map(|hole| u64::from(hole.len())).sum();
        // Why the larger: of a segment that was given up, units are missing that never left.
        let lost = u64::from(judged.units_lost).max(missing);
        self.segments += 1;
        if lost > 0 {
            if self.segments_with_losses == 0 {
                self.first_ms = at_ms;
            }
            self.last_ms = at_ms;
            self.segments_with_losses += 1;
            self.units_lost += lost;
            self.units_repaired += lost - missing;
            *(if judged.verdict == Verdict::WithinTolerance { &mut self.units_tolerated } else { &mut self.units_missing }) += missing;
        }
        (lost, missing)
    }

    fn line(&self, connection: u64, stream: StreamId) -> serde_json::Value {
        let known = |ms: f64| (self.segments_with_losses > 0).then_some(ms);
        json!({
            "type": "stream",
            "connection": connection,
            "stream": stream.0,
            "segments": self.segments,
            "segments_with_losses": self.segments_with_losses,
            "units_lost": self.units_lost,
            "units_repaired": self.units_repaired,
            "units_tolerated": self.units_tolerated,
            "units_missing": self.units_missing,
            "first_unix_ms": known(self.first_ms),
            "last_unix_ms": known(self.last_ms),
        })
    }
}

impl LossLog {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self::over(path.to_owned(), file))
    }

    /// A log in `file`, which is at `path`.
    pub(super) fn over(path: PathBuf, file: File) -> Self {
        Self { path, file: BufWriter::new(file), connections: BTreeMap::new() }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let Batch { origin, events, ended, .. } = batch;
        let losses = self.connections.entry(origin.serial).or_insert_with(|| Losses {
            origin: *origin,
            shipments: 0,
            runs: BTreeMap::new(),
            streams: BTreeMap::new(),
        });
        for traced in events {
            let at_ms = origin.unix_ms(traced.at);
            match &traced.event {
                TraceEvent::ShipmentsLost { first, count } => {
                    losses.shipments += count;
                    *losses.runs.entry(*count).or_default() += 1;
                    let line = json!({
                        "type": "shipments", "unix_ms": at_ms, "connection": origin.serial, "first": first.0, "count": count,
                    });
                    line_to(&mut self.file, &line)?;
                }
                TraceEvent::SegmentJudged(judged) => {
                    let (lost, missing) = losses.streams.entry(judged.stream).or_default().add(at_ms, judged);
                    if lost > 0 {
                        line_to(&mut self.file, &segment(at_ms, origin.serial, judged, lost, missing))?;
                    }
                    if losses.streams.len() > STREAMS_MAX
                        && let Some((stream, first)) = losses.streams.pop_first()
                    {
                        line_to(&mut self.file, &first.line(origin.serial, stream))?;
                    }
                }
                _ => {}
            }
        }
        if *ended && let Some(losses) = self.connections.remove(&origin.serial) {
            losses.sum_up(&mut self.file)?;
            self.file.flush()?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        for losses in core::mem::take(&mut self.connections).into_values() {
            losses.sum_up(&mut self.file)?;
        }
        self.file.flush()
    }
}

fn segment(at_ms: f64, connection: u64, judged: &SegmentJudged, lost: u64, missing: u64) -> serde_json::Value {
    json!({
        "type": "segment",
        "unix_ms": at_ms,
        "connection": connection,
        "stream": judged.stream.0,
        "segment": judged.segment.0,
        "units": judged.units,
        "units_lost": lost,
        "units_repaired": lost - missing,
        "units_missing": missing,
        "holes": super::frames::Pairs(&judged.holes),
        "verdict": judged.verdict.name(),
    })
}

impl Losses {
    /// The lines at the end of a connection.
    fn sum_up(&self, file: &mut impl Write) -> io::Result<()> {
        if self.streams.is_empty() && self.shipments == 0 {
            return Ok(());
        }
        let (connection, remote) = (self.origin.serial, self.origin.remote.to_string());
        for (stream, losses) in &self.streams {
            line_to(file, &losses.line(connection, *stream))?;
        }
        let runs: Vec<[u64; 2]> = self.runs.iter().map(|(length, count)| [*length, *count]).collect();
        let line = json!({
            "type": "connection", "connection": connection, "peer": remote, "shipments_lost": self.shipments, "runs": runs,
        });
        line_to(file, &line)
    }
}

fn line_to(file: &mut impl Write, line: &serde_json::Value) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::{Run, SegmentNumber, UnitIndex};

    fn judged(verdict: Verdict, units_lost: u32, hole: Option<(u32, u32)>) -> SegmentJudged {
        SegmentJudged {
            stream: StreamId(0),
            segment: SegmentNumber(0),
            verdict,
            units: 100,
            units_lost,
            holes: hole.and_then(|(start, end)| Run::new(UnitIndex(start), UnitIndex(end))).into_iter().collect(),
            first_arrival: None,
            source_time: crate::Timestamp::ZERO,
            delay_over_least: None,
        }
    }

    #[test]
    fn what_was_lost_was_repaired_tolerated_or_is_missing() {
        let mut losses = StreamLosses::default();
        losses.add(1.0, &judged(Verdict::Complete, 0, None));
        losses.add(2.0, &judged(Verdict::Complete, 4, None));
        losses.add(3.0, &judged(Verdict::WithinTolerance, 5, Some((7, 9))));
        losses.add(4.0, &judged(Verdict::Expired, 1, Some((40, 100))));
        let expected = StreamLosses {
            segments: 4,
            segments_with_losses: 3,
            units_lost: 4 + 5 + 60,
            units_repaired: 4 + 3,
            units_tolerated: 2,
            units_missing: 60,
            first_ms: 2.0,
            last_ms: 4.0,
        };
        assert_eq!(losses, expected);
    }
}
