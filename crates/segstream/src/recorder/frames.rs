//! The sender's and the receiver's state as JSON, for the qlog.
//!
//! Called for every TXS and RXS that is recorded. Invariant: labels of streams are left out, since they may be names of files.

use segstream_base::{Ordinal, Run};
use segstream_wire::report::Arrived;
use segstream_wire::state::{Finished, Reached};
use segstream_wire::{Contract, Report, ReportFrame, State, StateFrame};
use serde_json::{Value, json};

/// Runs as pairs: the first, and how many.
pub(super) fn holes<N: Ordinal>(runs: &[Run<N>]) -> Value {
    runs.iter().map(|run| json!([run.start().index(), run.len()])).collect()
}

/// A TXS.
pub(super) fn state(state: &State) -> Value {
    let frames: Vec<Value> = state.frames.iter().map(state_frame).collect();
    json!({
        "sync": state.sync.0,
        "confirmed_report": state.confirmed.highest.map(|report| report.0),
        "answer": state.answer,
        "exchange": state.exchange,
        "frames": frames,
    })
}

fn state_frame(frame: &StateFrame) -> Value {
    match frame {
        StateFrame::Open { stream, contract } => open(stream.0, contract),
        StateFrame::Finished(finished) => self::finished("finished", finished),
        StateFrame::Skip(finished) => self::finished("skip", finished),
        StateFrame::Reached(Reached { stream, segment, position, last_shipment, .. }) => json!({
            "type": "reached", "stream": stream.0, "segment": segment.0, "position": position.0, "last_shipment": last_shipment.0,
        }),
        StateFrame::End { stream, segments } => json!({ "type": "end", "stream": stream.0, "segments": segments }),
        StateFrame::Waiting { stream } => json!({ "type": "waiting", "stream": stream.0 }),
        StateFrame::Reclass { change, class, rate } => {
            json!({ "type": "reclass", "change": change, "class": class.number(), "rate_bps": rate.bits_per_second() })
        }
    }
}

fn open(stream: u32, contract: &Contract) -> Value {
    let (window, errors, burst) = contract.tolerance.triplet();
    json!({
        "type": "open",
        "stream": stream,
        "unit_bytes": contract.unit_bytes,
        "tolerance": [window, errors, burst],
        "window_units": contract.window_units,
        "window_segments": contract.window_segments,
    })
}

fn finished(name: &str, finished: &Finished) -> Value {
    let Finished { stream, segment, length, last_shipment, .. } = finished;
    let last_shipment = last_shipment.map(|number| number.0);
    json!({ "type": name, "stream": stream.0, "segment": segment.0, "bytes": length, "last_shipment": last_shipment })
}

/// An RXS.
pub(super) fn report(report: &Report) -> Value {
    let frames: Vec<Value> = report.frames.iter().map(report_frame).collect();
    json!({
        "number": report.number.0,
        "echo": report.echo.map(|echo| echo.0),
        "reordering_threshold_shipments": report.reorder,
        "frames": frames,
    })
}

fn report_frame(frame: &ReportFrame) -> Value {
    match frame {
        ReportFrame::Grant { stream, segments, units, end_known } => {
            json!({ "type": "grant", "stream": stream.0, "segments": segments, "units": units, "end_known": end_known })
        }
        ReportFrame::Complete { stream, first, count } => {
            json!({ "type": "complete", "stream": stream.0, "first": first.0, "count": count })
        }
        ReportFrame::Judged { stream, segment, verdict, units, holes: missing, .. } => json!({
            "type": "judged",
            "stream": stream.0,
            "segment": segment.0,
            "verdict": verdict.name(),
            "units": units,
            "holes": holes(missing),
        }),
        ReportFrame::Request { stream, segment, missing, tail_from, length_wanted } => json!({
            "type": "request",
            "stream": stream.0,
            "segment": segment.0,
            "missing": holes(missing),
            "tail_from": tail_from.map(|from| from.0),
            "length_wanted": length_wanted,
        }),
        ReportFrame::ReclassEcho { change, class } => json!({ "type": "reclass_echo", "change": change, "class": class.number() }),
        ReportFrame::Refused { stream, reason } => json!({ "type": "refused", "stream": stream.0, "reason": format!("{reason:?}") }),
        ReportFrame::Arrival(Arrived { sync, at, bytes, shipments, lost, marked }) => json!({
            "type": "arrival",
            "sync": sync.0,
            "at_ns": at,
            "bytes": bytes,
            "shipments": shipments,
            "lost": lost,
            "marked": marked,
        }),
        ReportFrame::MaxStreams { streams } => json!({ "type": "max_streams", "streams": streams }),
        ReportFrame::Durable { stream, segments, last } => {
            json!({ "type": "durable", "stream": stream.0, "segments": segments.0, "last": last })
        }
        ReportFrame::Losses { judged, lost, runs } => json!({ "type": "losses", "judged": judged, "lost": lost, "runs": runs }),
        ReportFrame::AnyRepairs { stream, segment, lost, held } => {
            json!({ "type": "any_repairs", "stream": stream.0, "segment": segment.0, "lost": lost, "held": held })
        }
    }
}
