//! The sender's and the receiver's state as JSON, for the qlog.
//!
//! Called for every TXS and RXS that is recorded. Invariant: labels of streams are left out, since they may be names of files.
//!
//! Why types that borrow, and no tree of values: of a fast transfer there are thousands a second, and a tree costs many times as much.

use segstream_base::{Ordinal, Position, Run, UnitIndex};
use segstream_wire::report::Arrived;
use segstream_wire::state::{Finished, Reached};
use segstream_wire::{Report, ReportFrame, State, StateFrame};
use serde::{Serialize, Serializer};

/// Runs as pairs: the first, and how many.
pub(super) struct Pairs<'a, N>(pub(super) &'a [Run<N>]);

impl<N: Ordinal> Serialize for Pairs<'_, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|run| (run.start().index(), run.len())))
    }
}

/// Frames, each as the object that `T` makes of it.
struct Each<'a, F, T>(&'a [F], fn(&'a F) -> T);

impl<F, T: Serialize> Serialize for Each<'_, F, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(self.1))
    }
}

/// A TXS.
#[derive(Serialize)]
pub(super) struct StateObject<'a> {
    sync: u64,
    confirmed_report: Option<u64>,
    answer: bool,
    exchange: bool,
    frames: Each<'a, StateFrame, StateFrameObject>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StateFrameObject {
    Open { stream: u32, unit_bytes: u32, tolerance: (u32, u32, u32), window_units: u64, window_segments: u64 },
    Finished { stream: u32, segment: u64, bytes: u64, last_shipment: Option<u64> },
    Skip { stream: u32, segment: u64, bytes: u64, last_shipment: Option<u64> },
    Reached { stream: u32, segment: u64, position: u32, last_shipment: u64 },
    End { stream: u32, segments: u64 },
    Waiting { stream: u32 },
    Reclass { change: u64, class: u8, rate_bps: u64 },
}

/// A TXS, to be written.
pub(super) fn state(state: &State) -> StateObject<'_> {
    StateObject {
        sync: state.sync.0,
        confirmed_report: state.confirmed.highest.map(|report| report.0),
        answer: state.answer,
        exchange: state.exchange,
        frames: Each(&state.frames, state_frame),
    }
}

fn state_frame(frame: &StateFrame) -> StateFrameObject {
    match frame {
        StateFrame::Open { stream, contract } => StateFrameObject::Open {
            stream: stream.0,
            unit_bytes: contract.unit_bytes,
            tolerance: contract.tolerance.triplet(),
            window_units: contract.window_units.into(),
            window_segments: contract.window_segments.into(),
        },
        StateFrame::Finished(Finished { stream, segment, length, last_shipment, .. }) => StateFrameObject::Finished {
            stream: stream.0,
            segment: segment.0,
            bytes: *length,
            last_shipment: last_shipment.map(|number| number.0),
        },
        StateFrame::Skip(Finished { stream, segment, length, last_shipment, .. }) => StateFrameObject::Skip {
            stream: stream.0,
            segment: segment.0,
            bytes: *length,
            last_shipment: last_shipment.map(|number| number.0),
        },
        StateFrame::Reached(Reached { stream, segment, position, last_shipment, .. }) => {
            StateFrameObject::Reached { stream: stream.0, segment: segment.0, position: position.0, last_shipment: last_shipment.0 }
        }
        StateFrame::End { stream, segments } => StateFrameObject::End { stream: stream.0, segments: *segments },
        StateFrame::Waiting { stream } => StateFrameObject::Waiting { stream: stream.0 },
        StateFrame::Reclass { change, class, rate } => {
            StateFrameObject::Reclass { change: *change, class: class.number(), rate_bps: rate.bits_per_second() }
        }
    }
}

/// An RXS.
#[derive(Serialize)]
pub(super) struct ReportObject<'a> {
    number: u64,
    echo: Option<u64>,
    reordering_threshold_shipments: u32,
    frames: Each<'a, ReportFrame, ReportFrameObject<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReportFrameObject<'a> {
    Grant { stream: u32, segments: u64, units: u64, end_known: bool },
    Complete { stream: u32, first: u64, count: u64 },
    Judged { stream: u32, segment: u64, verdict: &'static str, units: u32, holes: Pairs<'a, UnitIndex> },
    Request { stream: u32, segment: u64, missing: Pairs<'a, Position>, tail_from: Option<u32>, length_wanted: bool },
    ReclassEcho { change: u64, class: u8 },
    Refused { stream: u32, reason: String },
    Arrival { sync: u64, at_ns: u64, bytes: u64, shipments: u64, lost: u64, marked: u64 },
    MaxStreams { streams: u64 },
    Durable { stream: u32, segments: u64, last: bool },
    Losses { judged: u64, lost: u64, runs: u64 },
    AnyRepairs { stream: u32, segment: u64, lost: u32, held: u32 },
}

/// An RXS, to be written.
pub(super) fn report(report: &Report) -> ReportObject<'_> {
    ReportObject {
        number: report.number.0,
        echo: report.echo.map(|echo| echo.0),
        reordering_threshold_shipments: report.reorder,
        frames: Each(&report.frames, report_frame),
    }
}

fn report_frame(frame: &ReportFrame) -> ReportFrameObject<'_> {
    match *frame {
        ReportFrame::Grant { stream, segments, units, end_known } => {
            ReportFrameObject::Grant { stream: stream.0, segments, units, end_known }
        }
        ReportFrame::Complete { stream, first, count } => ReportFrameObject::Complete { stream: stream.0, first: first.0, count },
        ReportFrame::Judged { stream, segment, verdict, units, ref holes, .. } => {
            ReportFrameObject::Judged { stream: stream.0, segment: segment.0, verdict: verdict.name(), units, holes: Pairs(holes) }
        }
        ReportFrame::Request { stream, segment, ref missing, tail_from, length_wanted } => ReportFrameObject::Request {
            stream: stream.0,
            segment: segment.0,
            missing: Pairs(missing),
            tail_from: tail_from.map(|from| from.0),
            length_wanted,
        },
        ReportFrame::ReclassEcho { change, class } => ReportFrameObject::ReclassEcho { change, class: class.number() },
        ReportFrame::Refused { stream, reason } => ReportFrameObject::Refused { stream: stream.0, reason: format!("{reason:?}") },
        ReportFrame::Arrival(Arrived { sync, at, bytes, shipments, lost, marked }) => {
            ReportFrameObject::Arrival { sync: sync.0, at_ns: at, bytes, shipments, lost, marked }
        }
        ReportFrame::MaxStreams { streams } => ReportFrameObject::MaxStreams { streams },
        ReportFrame::Durable { stream, segments, last } => ReportFrameObject::Durable { stream: stream.0, segments: segments.0, last },
        ReportFrame::Losses { judged, lost, runs } => ReportFrameObject::Losses { judged, lost, runs },
        ReportFrame::AnyRepairs { stream, segment, lost, held } => {
            ReportFrameObject::AnyRepairs { stream: stream.0, segment: segment.0, lost, held }
        }
    }
}
