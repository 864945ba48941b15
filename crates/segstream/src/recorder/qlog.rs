//! A qlog for each connection, in JSON text sequences (draft-ietf-quic-qlog-main-schema, RFC 7464).
//!
//! Called by the thread of the recorder. The events are our own; `docs/QLOG.md` lists them, `docs/qlog.schema.json` is their schema.
//!
//! Invariant: a connection that was never established here gets no file unless this end has asked for it, so that strangers cannot fill a
//! folder.

use super::frames::{holes, report, state};
use super::{Batch, Origin};
use segstream_proto::connection::Role;
use segstream_proto::error::CloseReason;
use segstream_proto::trace::{Content, DropCause, PathState, SegmentJudged, Shipments, TraceEvent, Traced};
use segstream_wire::Part;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// The schema of the events.
const EVENT_SCHEMA: &str = "urn:segstream:qlog:events-01";
/// What stands in front of each text of the sequence (RFC 7464 2.1).
const RECORD_SEPARATOR: u8 = 0x1e;
/// How many events of a connection wait until it is established.
const PENDING_MAX: usize = 256;

/// The folder of the qlogs.
#[derive(Debug)]
pub(super) struct Qlog {
    folder: PathBuf,
    connections: BTreeMap<u64, Log>,
}

#[derive(Debug)]
enum Log {
    /// It is not known yet whether it gets a file.
    Pending(Vec<Traced>),
    Open(BufWriter<File>),
}

impl Qlog {
    pub(super) fn in_folder(folder: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, connections: BTreeMap::new() })
    }

    pub(super) fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let Batch { origin, events, ended } = batch;
        if *ended {
            if let Some(Log::Open(mut file)) = self.connections.remove(&origin.serial) {
                for traced in events {
                    write_event(&mut file, origin, traced)?;
                }
                file.flush()?;
            }
            return Ok(());
        }
        let log = self.connections.entry(origin.serial).or_insert_with(|| Log::Pending(Vec::new()));
        if let Log::Pending(pending) = log {
            let established = events.iter().any(|traced| traced.event == TraceEvent::Established);
            if origin.role == Role::Responder && !established {
                let room = PENDING_MAX - pending.len().min(PENDING_MAX);
                pending.extend(events.iter().take(room).cloned());
                return Ok(());
            }
            let first = pending.first().or(events.first());
            let begin_ms = first.map_or(0.0, |traced| origin.unix_ms(traced.at));
            let mut file = create(&self.folder, origin, begin_ms)?;
            for traced in &*pending {
                write_event(&mut file, origin, traced)?;
            }
            *log = Log::Open(file);
        }
        let Log::Open(file) = log else { return Ok(()) };
        for traced in events {
            write_event(file, origin, traced)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<()> {
        for log in self.connections.into_values() {
            if let Log::Open(mut file) = log {
                file.flush()?;
            }
        }
        Ok(())
    }
}

/// The name of this end in qlog.
const fn vantage_point(role: Role) -> &'static str {
    match role {
        Role::Initiator => "client",
        Role::Responder => "server",
    }
}

/// Makes the file of a connection and writes its head.
fn create(folder: &std::path::Path, origin: &Origin, begin_ms: f64) -> io::Result<BufWriter<File>> {
    let (begin, serial, end) = (begin_ms as u64, origin.serial, vantage_point(origin.role));
    let path = folder.join(format!("{begin}-{serial}-{end}.sqlog"));
    let mut file = BufWriter::new(OpenOptions::new().write(true).create_new(true).open(path)?);
    let head = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": "segstream",
        "trace": {
            "vantage_point": { "type": end },
            "event_schemas": [EVENT_SCHEMA],
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": { "clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z" },
                "group_id": serial.to_string(),
                "remote": origin.remote.to_string(),
            },
        },
    });
    write_text(&mut file, &head)?;
    Ok(file)
}

fn write_text(file: &mut impl Write, text: &Value) -> io::Result<()> {
    file.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *file, text)?;
    file.write_all(b"\n")
}

fn write_event(file: &mut impl Write, origin: &Origin, traced: &Traced) -> io::Result<()> {
    let Some((name, data)) = event(&traced.event) else { return Ok(()) };
    write_text(file, &json!({ "time": origin.unix_ms(traced.at), "name": format!("segstream:{name}"), "data": data }))
}

/// The name and the data of an event.
fn event(event: &TraceEvent) -> Option<(&'static str, Value)> {
    Some(match event {
        TraceEvent::Established => ("connection_established", json!({})),
        TraceEvent::Closed(reason) => ("connection_closed", closed(reason)),
        TraceEvent::Migrated(remote) => ("peer_migrated", json!({ "remote": remote.to_string() })),
        TraceEvent::Sent(sent) => ("shipments_sent", shipments(sent)),
        TraceEvent::Received(received) => ("shipments_received", shipments(received)),
        TraceEvent::Dropped(cause) => ("datagram_dropped", json!({ "cause": cause_name(*cause) })),
        TraceEvent::ShipmentsLost { first, count } => ("shipments_lost", json!({ "first": first.0, "count": count })),
        TraceEvent::SegmentSubmitted { stream, segment, bytes } => {
            ("segment_submitted", json!({ "stream": stream.0, "segment": segment.0, "bytes": bytes }))
        }
        TraceEvent::SegmentJudged(SegmentJudged { stream, segment, verdict, units, units_lost, holes: missing, .. }) => {
            let (verdict, missing) = (verdict.name(), holes(missing));
            let (stream, segment) = (stream.0, segment.0);
            let data = json!({
                "stream": stream, "segment": segment, "verdict": verdict, "units": units, "units_lost": units_lost, "holes": missing,
            });
            ("segment_judged", data)
        }
        TraceEvent::VerdictReceived { stream, segments, verdict, holes: missing } => {
            let (stream, first, count) = (stream.0, segments.start.0, segments.end.0 - segments.start.0);
            let data = json!({ "stream": stream, "first": first, "count": count, "verdict": verdict.name(), "holes": holes(missing) });
            ("verdict_received", data)
        }
        TraceEvent::PathUpdated(path) => ("path_updated", path_state(path)),
        TraceEvent::Omitted(count) => ("events_omitted", json!({ "count": count })),
        // An event that this version of the recorder does not know.
        _ => return None,
    })
}

/// Why a connection ended. The peer's sentence is not told: it may be a text of the application.
fn closed(reason: &CloseReason) -> Value {
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
    json!({ "reason": reason, "code": code })
}

const fn cause_name(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Authentication => "authentication",
        DropCause::Duplicate => "duplicate",
        DropCause::Malformed => "malformed",
    }
}

fn shipments(shipments: &Shipments) -> Value {
    let Shipments { kind, first, count, bytes, content } = shipments;
    let mut data = json!({ "kind": kind.name(), "first": first.0, "count": count, "bytes": bytes });
    match content {
        Content::Untold => {}
        Content::Part(one) => data["parts"] = json!([part(one)]),
        Content::Parts(parts) => data["parts"] = parts.iter().map(part).collect(),
        Content::State(told) => data["state"] = state(told),
        Content::Report(told) => data["report"] = report(told),
    }
    data
}

fn part(part: &Part) -> Value {
    let Part { stream, segment, first, count, retransmission, payload_bytes, .. } = part;
    json!({
        "stream": stream.0,
        "segment": segment.0,
        "first": first.0,
        "count": count,
        "retransmission": retransmission,
        "payload_bytes": payload_bytes,
    })
}

fn path_state(path: &PathState) -> Value {
    let PathState { rtt, rate, in_flight_bytes, in_flight_cap_bytes, queue_ms, rho, delivery_bps, phase } = path;
    json!({
        "rtt_ms_min": rtt.map(|(min, _)| min.as_millis_f64()),
        "rtt_ms_smoothed": rtt.map(|(_, smoothed)| smoothed.as_millis_f64()),
        "rate_bps": rate.map(|rate| rate.bits_per_second()),
        "in_flight_bytes": in_flight_bytes,
        "in_flight_cap_bytes": in_flight_cap_bytes,
        "queue_ms": queue_ms,
        "rho": rho,
        "delivery_bps": delivery_bps,
        "phase": phase,
    })
}
