//! The receiver's state, RXS: how far shipments have come, what is granted, judged and missing (spec 5).
//!
//! Every RXS contains the echo (the highest shipment number received) and the reordering threshold that applies to it; then frames follow to
//! the end of the shipment. A report that needs several shipments is sent as several RXS. Like state frames, report frames are
//! self-contained statements about exactly the segments and positions that they name.
//!
//! Called by both halves. Invariant: frames are idempotent and stay true; a late frame changes nothing that a newer one has decided.

use crate::class::Class;
pub use crate::runs::{RUNS_MAX, Runs, runs_len};
use crate::runs::{decode_runs, encode_runs};
use crate::state::stream;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer, varint_len};
use segstream_base::halves::Verdict;
use segstream_base::{ExchangeNumber, Position, ReportNumber, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
use smallvec::SmallVec;

/// The largest reordering threshold a report may name; receivers remember as many numbers.
pub const REORDER_MAX: u64 = 1023;

/// A frame of the receiver's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportFrame {
    /// The window of a stream: two upper edges that never retreat.
    Grant {
        /// The stream.
        stream: StreamId,
        /// So many segments may have been started in all.
        segments: u64,
        /// So many units may have been started in all.
        units: u64,
        /// Whether the end of the stream is known.
        end_known: bool,
    },
    /// Every unit of these segments has arrived.
    Complete {
        /// The stream.
        stream: StreamId,
        /// The first of them.
        first: SegmentNumber,
        /// How many.
        count: u64,
    },
    /// The verdict on a segment with holes, and the holes among its units `from..to`. A map too long for
    /// one shipment comes in several, in ascending order.
    Judged {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
        /// The verdict.
        verdict: Verdict,
        /// Units of the segment.
        units: u32,
        /// The first unit this frame speaks of.
        from: UnitIndex,
        /// One more than the last; equal to `units` in the last frame.
        to: UnitIndex,
        /// The holes.
        holes: Runs<UnitIndex>,
    },
    /// These positions are missing and wanted.
    Request {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
        /// The missing positions, in sending order.
        missing: Runs<Position>,
        /// Everything from this position on is missing too; used when the length is not known.
        tail_from: Option<Position>,
        /// Whether the segment's length is wanted.
        length_wanted: bool,
    },
    /// The last change of class and rate that has arrived.
    ReclassEcho {
        /// Which change.
        change: u64,
        /// The class accepted.
        class: Class,
    },
    /// The stream is not accepted; nothing sent on it will be kept.
    Refused {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: RefuseReason,
    },
    /// The newest TXS that asked for it has arrived.
    Arrival(Arrived),
    /// So many streams may be opened in all, those that have ended included (compare RFC 9000 19.11).
    MaxStreams {
        /// How many. Never fewer than were told before.
        streams: u64,
    },
    /// The receiver's application has these segments of a stream in safety (an extension, [`crate::extensions`]).
    Durable {
        /// The stream.
        stream: StreamId,
        /// All segments below this one. Never fewer than were told before.
        segments: SegmentNumber,
        /// No more of the stream will be confirmed.
        last: bool,
    },
    /// What the path has lost so far (an extension, spec 12.2).
    Losses {
        /// Shipment numbers below this one are judged.
        judged: u64,
        /// How many of them were lost.
        lost: u64,
        /// In how many runs of consecutive numbers.
        runs: u64,
    },
    /// Any so many repair units are asked for, in front of the REQUEST of a segment of which some have come (an extension, spec 12.2).
    AnyRepairs {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
        /// Protected units that are declared lost.
        lost: u32,
        /// Repair units that had arrived in shipments up to echo - R - 1: any `lost` - `held` more restore them.
        held: u32,
    },
}

/// When a TXS arrived, and what had arrived by then. The counts are of all shipments of the connection in this direction
/// and only grow, so that what one lost report told is in the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Arrived {
    /// SYNC of the TXS.
    pub sync: ExchangeNumber,
    /// When it arrived, in nanoseconds of the receiver's own clock.
    pub at: u64,
    /// Bytes that had arrived, this TXS included, in whole IP packets.
    pub bytes: u64,
    /// Shipments that had arrived, this TXS included.
    pub shipments: u64,
    /// Shipments declared lost, without spurious losses; so it may decrease.
    pub lost: u64,
    /// Shipments that were marked on the way (RFC 3168).
    pub marked: u64,
}

impl Arrived {
    fn encoded_len(&self) -> usize {
        [self.sync.0, self.at, self.bytes, self.shipments, self.lost, self.marked].into_iter().map(varint_len).sum()
    }

    fn encode(&self, out: &mut Writer<'_>) {
        for value in [self.sync.0, self.at, self.bytes, self.shipments, self.lost, self.marked] {
            out.varint(value);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            sync: ExchangeNumber(input.varint("sync")?),
            at: input.varint("arrival time")?,
            bytes: input.varint("bytes arrived")?,
            shipments: input.varint("shipments arrived")?,
            lost: input.varint("shipments lost")?,
            marked: input.varint("shipments marked")?,
        })
    }
}

/// Why a stream is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefuseReason {
    /// The peer has as many streams as it may open.
    TooManyStreams,
    /// The application does not want it.
    NotWanted,
}

impl RefuseReason {
    const fn code(self) -> u8 {
        match self {
            Self::TooManyStreams => 0,
            Self::NotWanted => 1,
        }
    }
}

const GRANT: u8 = 0x11;
const COMPLETE: u8 = 0x12;
const JUDGED: u8 = 0x13;
const REQUEST: u8 = 0x14;
const RECLASS_ECHO: u8 = 0x15;
const REFUSED: u8 = 0x16;
const ARRIVAL: u8 = 0x17;
const MAX_STREAMS: u8 = 0x18;
const LOSSES: u8 = 0x19;
const ANY_REPAIRS: u8 = 0x1b;
const DURABLE: u8 = 0x1c;

/// The receiver's state.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Report {
    /// The number of this report shipment, counted from 0; the sender confirms it.
    pub number: ReportNumber,
    /// The highest shipment number received; `None` before the first.
    pub echo: Option<ShipmentNumber>,
    /// The reordering threshold R that applies to the requests of this report.
    pub reorder: u32,
    /// TIME of the newest TXS received, as it was sent; `None` before the first.
    pub time: Option<u64>,
    /// The time from the arrival of that TXS to the departure of the report, in nanoseconds (an ACK delay).
    pub held: u64,
    /// The statements.
    pub frames: SmallVec<[ReportFrame; 2]>,
}

impl Report {
    /// The bytes before the first frame are never more than this.
    pub const PRELUDE_BYTES_MAX: usize = 8 + 8 + 2 + 8 + 8;

    /// How many bytes [`Report::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        varint_len(self.number.0)
            + varint_len(self.echo.map_or(0, |echo| echo.0 + 1))
            + varint_len(u64::from(self.reorder))
            + self.time.map_or(1, |time| varint_len(time + 1) + varint_len(self.held))
            + self.frames.iter().map(ReportFrame::encoded_len).sum::<usize>()
    }

    /// Writes the body of an RXS.
    pub fn encode(&self, out: &mut Writer<'_>) {
        let start = out.position();
        out.varint(self.number.0);
        out.varint(self.echo.map_or(0, |echo| echo.0 + 1));
        out.varint(u64::from(self.reorder));
        match self.time {
            None => out.varint(0),
            Some(time) => {
                out.varint(time + 1);
                out.varint(self.held);
            }
        }
        for frame in &self.frames {
            frame.encode(out);
        }
        debug_assert_eq!(out.position() - start, self.encoded_len(), "a report is not as long as it says");
    }

    /// Reads the body of an RXS to its end.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = ReportNumber(input.varint("report number")?);
        let echo = input.varint("echo")?.checked_sub(1).map(ShipmentNumber);
        let reorder = input.varint_up_to(REORDER_MAX, "reorder")? as u32;
        let time = input.varint("echoed time")?.checked_sub(1);
        let held = if time.is_some() { input.varint("held")? } else { 0 };
        let mut frames = SmallVec::new();
        while !input.is_empty() {
            frames.push(ReportFrame::decode(input)?);
        }
        Ok(Self { number, echo, reorder, time, held, frames })
    }
}

impl ReportFrame {
    /// How many bytes [`ReportFrame::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Grant { stream, segments, units, .. } => varint_len(u64::from(*stream)) + varint_len(*segments) + varint_len(*units) + 1,
            Self::Complete { stream, first, count } => varint_len(u64::from(*stream)) + varint_len(first.0) + varint_len(*count),
            Self::Judged { stream, segment, units, from, to, holes, .. } => {
                varint_len(u64::from(*stream))
                    + varint_len(segment.0)
                    + 1
                    + varint_len(u64::from(*units))
                    + varint_len(u64::from(*from))
                    + varint_len(u64::from(*to))
                    + runs_len(holes)
            }
            Self::Request { stream, segment, missing, tail_from, .. } => {
                1 + varint_len(u64::from(*stream))
                    + varint_len(segment.0)
                    + runs_len(missing)
                    + tail_from.map_or(0, |from| varint_len(u64::from(from)))
            }
            Self::ReclassEcho { change, .. } => varint_len(*change) + 1,
            Self::Refused { stream, .. } => varint_len(u64::from(*stream)) + 1,
            Self::Arrival(arrived) => arrived.encoded_len(),
            Self::MaxStreams { streams } => varint_len(*streams),
            Self::Durable { stream, segments, .. } => varint_len(u64::from(*stream)) + varint_len(segments.0) + 1,
            Self::Losses { judged, lost, runs } => varint_len(*judged) + varint_len(*lost) + varint_len(*runs),
            Self::AnyRepairs { stream, segment, lost, held } => {
                varint_len(u64::from(*stream)) + varint_len(segment.0) + varint_len(u64::from(*lost)) + varint_len(u64::from(*held))
            }
        }
    }

    /// Writes the frame.
    pub fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Grant { stream, segments, units, end_known } => {
                out.u8(GRANT);
                out.varint(u64::from(*stream));
                out.varint(*segments);
                out.varint(*units);
                out.u8(u8::from(*end_known));
            }
            Self::Complete { stream, first, count } => {
                out.u8(COMPLETE);
                out.varint(u64::from(*stream));
                out.varint(first.0);
                out.varint(*count);
            }
            Self::Judged { stream, segment, verdict, units, from, to, holes } => {
                out.u8(JUDGED);
                out.varint(u64::from(*stream));
                out.varint(segment.0);
                out.u8(verdict_code(*verdict));
                out.varint(u64::from(*units));
                out.varint(u64::from(*from));
                out.varint(u64::from(*to));
                encode_runs(holes, out);
            }
            Self::Request { stream, segment, missing, tail_from, length_wanted } => {
                out.u8(REQUEST);
                out.u8(u8::from(tail_from.is_some()) | u8::from(*length_wanted) << 1);
                out.varint(u64::from(*stream));
                out.varint(segment.0);
                encode_runs(missing, out);
                if let Some(from) = tail_from {
                    out.varint(u64::from(*from));
                }
            }
            Self::ReclassEcho { change, class } => {
                out.u8(RECLASS_ECHO);
                out.varint(*change);
                out.u8(class.number());
            }
            Self::Refused { stream, reason } => {
                out.u8(REFUSED);
                out.varint(u64::from(*stream));
                out.u8(reason.code());
            }
            Self::Arrival(arrived) => {
                out.u8(ARRIVAL);
                arrived.encode(out);
            }
            Self::MaxStreams { streams } => {
                out.u8(MAX_STREAMS);
                out.varint(*streams);
            }
            Self::Durable { .. } | Self::Losses { .. } | Self::AnyRepairs { .. } => self.encode_extension(out),
        }
    }

    /// Writes a frame of an extension.
    fn encode_extension(&self, out: &mut Writer<'_>) {
        match self {
            Self::Durable { stream, segments, last } => encode_durable(*stream, *segments, *last, out),
            Self::Losses { judged, lost, runs } => {
                out.u8(LOSSES);
                for total in [*judged, *lost, *runs] {
                    out.varint(total);
                }
            }
            Self::AnyRepairs { stream, segment, lost, held } => {
                out.u8(ANY_REPAIRS);
                out.varint(u64::from(*stream));
                out.varint(segment.0);
                out.varint(u64::from(*lost));
                out.varint(u64::from(*held));
            }
            _ => {}
        }
    }

    /// Reads one frame.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = input.position();
        let kind = input.u8("report frame")?;
        match kind {
            GRANT => Ok(Self::Grant {
                stream: stream(input)?,
                segments: input.varint("segment edge")?,
                units: input.varint("unit edge")?,
                end_known: flag(input, "end known")?,
            }),
            COMPLETE => {
                let (stream, first) = (stream(input)?, SegmentNumber(input.varint("first segment")?));
                Ok(Self::Complete { stream, first, count: input.varint("segment count")? })
            }
            JUDGED => Self::decode_judged(input),
            REQUEST => Self::decode_request(input),
            RECLASS_ECHO => {
                let change = input.varint("change")?;
                let number = input.u8("class")?;
                let class = Class::new(number).ok_or_else(|| input.error("class", DecodeErrorKind::OutOfRange(u64::from(number))))?;
                Ok(Self::ReclassEcho { change, class })
            }
            REFUSED => {
                let stream = stream(input)?;
                let reason = match input.u8("reason")? {
                    0 => RefuseReason::TooManyStreams,
                    _ => RefuseReason::NotWanted,
                };
                Ok(Self::Refused { stream, reason })
            }
            ARRIVAL => Ok(Self::Arrival(Arrived::decode(input)?)),
            MAX_STREAMS => Ok(Self::MaxStreams { streams: input.varint("streams")? }),
            DURABLE => Ok(Self::Durable {
                stream: stream(input)?,
                segments: SegmentNumber(input.varint("durable segments")?),
                last: flag(input, "last confirmation")?,
            }),
            LOSSES => {
                let judged = input.varint("judged shipments")?;
                let lost = input.varint_up_to(judged, "lost shipments")?;
                Ok(Self::Losses { judged, lost, runs: input.varint_up_to(lost, "runs of lost shipments")? })
            }
            ANY_REPAIRS => Ok(Self::AnyRepairs {
                stream: stream(input)?,
                segment: SegmentNumber(input.varint("segment")?),
                lost: input.varint_up_to(u64::from(u32::MAX), "protected units lost")? as u32,
                held: input.varint_up_to(u64::from(u32::MAX), "repair units held")? as u32,
            }),
            _ => Err(DecodeError { at, field: "report frame", kind: DecodeErrorKind::UnknownType(u64::from(kind)) }),
        }
    }

    fn decode_judged(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (stream, segment) = (stream(input)?, SegmentNumber(input.varint("segment")?));
        let verdict = decode_verdict(input)?;
        let units = input.varint_up_to(u64::from(u32::MAX), "units")? as u32;
        let from = UnitIndex(input.varint_up_to(u64::from(units), "first unit")? as u32);
        let at = input.position();
        let to = UnitIndex(input.varint_up_to(u64::from(units), "end unit")? as u32);
        let holes: Runs<UnitIndex> = decode_runs(input)?;
        let inside = holes.iter().all(|hole| from <= hole.start() && hole.end() <= to);
        if to < from || !inside {
            return Err(DecodeError { at, field: "holes", kind: DecodeErrorKind::OutOfRange(to.into()) });
        }
        Ok(Self::Judged { stream, segment, verdict, units, from, to, holes })
    }

    fn decode_request(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let flags = input.u8("request flags")?;
        if flags > 3 {
            return Err(input.error("request flags", DecodeErrorKind::UnknownType(u64::from(flags))));
        }
        let (stream, segment) = (stream(input)?, SegmentNumber(input.varint("segment")?));
        let missing = decode_runs(input)?;
        let tail_from = if flags & 1 != 0 { Some(Position(input.varint_up_to(u64::from(u32::MAX), "tail")? as u32)) } else { None };
        Ok(Self::Request { stream, segment, missing, tail_from, length_wanted: flags & 2 != 0 })
    }
}

fn encode_durable(stream: StreamId, segments: SegmentNumber, last: bool, out: &mut Writer<'_>) {
    out.u8(DURABLE);
    out.varint(u64::from(stream));
    out.varint(segments.0);
    out.u8(u8::from(last));
}

fn flag(input: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match input.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(input.error(field, DecodeErrorKind::OutOfRange(u64::from(other)))),
    }
}

const fn verdict_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Complete => 0,
        Verdict::WithinTolerance => 1,
        Verdict::Expired => 2,
        Verdict::Unknown => 3,
    }
}

fn decode_verdict(input: &mut Reader<'_>) -> Result<Verdict, DecodeError> {
    match input.u8("verdict")? {
        0 => Ok(Verdict::Complete),
        1 => Ok(Verdict::WithinTolerance),
        2 => Ok(Verdict::Expired),
        other => Err(input.error("verdict", DecodeErrorKind::OutOfRange(u64::from(other)))),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
