//! The events of a connection as texts of its qlog.
//!
//! Called for every event that is recorded. The events are our own; `docs/QLOG.md` lists them, `docs/qlog.schema.json` is their schema.
//!
//! Invariant: an event tells no payload, no key, and no text of an application.

use super::Origin;
use super::frames::{Pairs, ReportObject, StateObject, report, state};
use crate::Timestamp;
use segstream_base::UnitIndex;
use segstream_proto::error::CloseReason;
use segstream_proto::trace::{Content, DropCause, PathState, SegmentJudged, Shipments, TraceEvent, Traced};
use segstream_wire::{Part, Repair};
use serde::{Serialize, Serializer};

/// What stands in front of each text of the sequence (RFC 7464 2.1).
const RECORD_SEPARATOR: u8 = 0x1e;

/// An event in the file.
#[derive(Serialize)]
struct Text<D> {
    time: f64,
    name: &'static str,
    data: D,
}

/// Appends an event to `texts`.
pub(super) fn append_event(texts: &mut Vec<u8>, origin: &Origin, traced: &Traced) {
    let time = origin.unix_ms(traced.at);
    if let Some((name, data)) = event(origin, traced) {
        append(texts, &Text { time, name, data });
    }
}

/// Appends a text of the sequence (RFC 7464 2.1).
pub(super) fn append(texts: &mut Vec<u8>, text: &impl Serialize) {
    texts.push(RECORD_SEPARATOR);
    // Why the result is ignored: memory takes everything, and no key is anything but a string.
    let _ = serde_json::to_writer(&mut *texts, text);
    texts.push(b'\n');
}

/// The data of an event.
#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Nothing {},
    Closed { reason: &'static str, code: Option<u64> },
    Remote { remote: String },
    Shipments(ShipmentsObject<'a>),
    Dropped { cause: &'static str },
    Lost { first: u64, count: u64 },
    Submitted { stream: u32, segment: u64, bytes: Option<u64>, source_ms: f64 },
    Judged(JudgedObject<'a>),
    Verdict { stream: u32, first: u64, count: u64, verdict: &'static str, holes: Pairs<'a, UnitIndex> },
    Path(PathObject),
    Omitted { count: u64 },
}

/// The name and the data of an event.
fn event<'a>(origin: &Origin, traced: &'a Traced) -> Option<(&'static str, Data<'a>)> {
    Some(match &traced.event {
        TraceEvent::Established => ("segstream:connection_established", Data::Nothing {}),
        TraceEvent::Closed(reason) => ("segstream:connection_closed", closed(reason)),
        TraceEvent::Migrated(remote) => ("segstream:peer_migrated", Data::Remote { remote: remote.to_string() }),
        TraceEvent::Sent(sent) => ("segstream:shipments_sent", Data::Shipments(shipments(sent))),
        TraceEvent::Received(received) => ("segstream:shipments_received", Data::Shipments(shipments(received))),
        TraceEvent::Dropped(cause) => ("segstream:datagram_dropped", Data::Dropped { cause: cause_name(*cause) }),
        TraceEvent::ShipmentsLost { first, count } => ("segstream:shipments_lost", Data::Lost { first: first.0, count: *count }),
        TraceEvent::SegmentSubmitted { stream, segment, bytes, source_time } => {
            let source_ms = origin.unix_ms(*source_time);
            ("segstream:segment_submitted", Data::Submitted { stream: stream.0, segment: segment.0, bytes: *bytes, source_ms })
        }
        TraceEvent::SegmentJudged(told) => ("segstream:segment_judged", Data::Judged(judged(traced.at, told))),
        TraceEvent::VerdictReceived { stream, segments, verdict, holes } => {
            let (stream, first, count) = (stream.0, segments.start.0, segments.end.0 - segments.start.0);
            ("segstream:verdict_received", Data::Verdict { stream, first, count, verdict: verdict.name(), holes: Pairs(holes) })
        }
        TraceEvent::PathUpdated(path) => ("segstream:path_updated", Data::Path(path_state(path))),
        TraceEvent::Omitted(count) => ("segstream:events_omitted", Data::Omitted { count: *count }),
        // An event that this version of the recorder does not know.
        _ => return None,
    })
}

/// Why a connection ended. The peer's sentence is not told: it may be a text of the application.
fn closed<'a>(reason: &CloseReason) -> Data<'a> {
    let (reason, code) = match reason {
        CloseReason::ClosedHere => ("closed_here", None),
        CloseReason::ClosedByPeer { code, .. } => ("closed_by_peer", Some(*code)),
        CloseReason::AbortedByPeer { code, .. } => ("aborted_by_peer", Some(*code)),
        CloseReason::AbortedHere => ("aborted_here", None),
        CloseReason::TimedOut(_) => ("timed_out", None),
        CloseReason::NoAnswer(_) => ("no_answer", None),
        CloseReason::Rejected { .. } => ("rejected", None),
        CloseReason::PathOverloaded { .. } => ("path_overloaded", None),
        CloseReason::HandshakeFailed(_) => ("handshake_failed", None),
        CloseReason::ResetByPeer => ("reset_by_peer", None),
        CloseReason::AeadLimitReached => ("aead_limit_reached", None),
        CloseReason::PeerOverMemoryBudget(_) => ("peer_over_memory_budget", None),
        CloseReason::ProtocolViolation(_) => ("protocol_violation", None),
        _ => ("other", None),
    };
    Data::Closed { reason, code }
}

const fn cause_name(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Authentication => "authentication",
        DropCause::Duplicate => "duplicate",
        DropCause::Malformed => "malformed",
    }
}

/// Shipments; of what they can carry that is there which they do.
#[derive(Serialize)]
struct ShipmentsObject<'a> {
    kind: &'static str,
    first: u64,
    count: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<PartObjects<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<RepairObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<StateObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ReportObject<'a>>,
}

fn shipments(shipments: &Shipments) -> ShipmentsObject<'_> {
    let Shipments { kind, first, count, bytes, content } = shipments;
    let none = ShipmentsObject {
        kind: kind.name(),
        first: first.0,
        count: *count,
        bytes: *bytes,
        parts: None,
        repair: None,
        state: None,
        report: None,
    };
    match content {
        Content::Untold => none,
        Content::Part(part) => ShipmentsObject { parts: Some(PartObjects(core::slice::from_ref(part))), ..none },
        Content::Parts(parts) => ShipmentsObject { parts: Some(PartObjects(parts)), ..none },
        Content::Repair(told) => ShipmentsObject { repair: Some(repair(told)), ..none },
        Content::State(told) => ShipmentsObject { state: Some(state(told)), ..none },
        Content::Report(told) => ShipmentsObject { report: Some(report(told)), ..none },
    }
}

/// Parts of data shipments.
struct PartObjects<'a>(&'a [Part]);

impl Serialize for PartObjects<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(part))
    }
}

#[derive(Serialize)]
struct PartObject {
    stream: u32,
    segment: u64,
    first: u32,
    count: u32,
    retransmission: bool,
    payload_bytes: u32,
}

fn part(part: &Part) -> PartObject {
    let Part { stream, segment, first, count, retransmission, payload_bytes, .. } = *part;
    PartObject { stream: stream.0, segment: segment.0, first: first.0, count, retransmission, payload_bytes }
}

/// A run of repair units.
#[derive(Serialize)]
struct RepairObject {
    stream: u32,
    segment: u64,
    every: u32,
    first: u32,
    count: u32,
    payload_bytes: u32,
}

fn repair(repair: &Repair) -> RepairObject {
    let Repair { stream, segment, every, first, count, payload_bytes } = *repair;
    RepairObject { stream: stream.0, segment: segment.0, every, first, count, payload_bytes }
}

#[derive(Serialize)]
struct JudgedObject<'a> {
    stream: u32,
    segment: u64,
    verdict: &'static str,
    units: u32,
    units_lost: u32,
    holes: Pairs<'a, UnitIndex>,
    assembly_ms: Option<f64>,
    delay_over_least_ms: Option<f64>,
}

/// A segment that was judged `at` a time.
fn judged(at: Timestamp, judged: &SegmentJudged) -> JudgedObject<'_> {
    let SegmentJudged { stream, segment, verdict, units, units_lost, holes, first_arrival, delay_over_least, .. } = judged;
    JudgedObject {
        stream: stream.0,
        segment: segment.0,
        verdict: verdict.name(),
        units: *units,
        units_lost: *units_lost,
        holes: Pairs(holes),
        assembly_ms: first_arrival.filter(|_| delay_over_least.is_some()).map(|first| at.since(first).as_millis_f64()),
        delay_over_least_ms: delay_over_least.map(|delay| delay.as_millis_f64()),
    }
}

#[derive(Serialize)]
struct PathObject {
    rtt_ms_min: Option<f64>,
    rtt_ms_smoothed: Option<f64>,
    rate_bps: Option<u64>,
    in_flight_bytes: u64,
    in_flight_cap_bytes: Option<u64>,
    queue_ms: Option<f64>,
    rho: Option<f64>,
    delivery_bps: Option<f64>,
    phase: Option<&'static str>,
}

fn path_state(path: &PathState) -> PathObject {
    let PathState { rtt, rate, in_flight_bytes, in_flight_cap_bytes, queue_ms, rho, delivery_bps, phase } = *path;
    PathObject {
        rtt_ms_min: rtt.map(|(min, _)| min.as_millis_f64()),
        rtt_ms_smoothed: rtt.map(|(_, smoothed)| smoothed.as_millis_f64()),
        rate_bps: rate.map(|rate| rate.bits_per_second()),
        in_flight_bytes,
        in_flight_cap_bytes,
        queue_ms,
        rho,
        delivery_bps,
        phase,
    }
}
