//! From a UDP payload to something readable.
//!
//! Called by the verb for every datagram.
//!
//! Invariant: nothing is shown of a shipment whose seal is broken. No bytes panic.
//!
//! Limit: the full number of a shipment is taken for its low 32 bits, so those after the first 2^32 of a connection
//! count as undecodable.

use segstream_base::codec::{DecodeError, Reader};
use segstream_proto::session::Plain;
use segstream_wire::handshake::{Confirm, Disconnect, Reject, Request};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::report::Arrived;
use segstream_wire::{Contract, Header, Kind, Part, Report, ReportFrame, State, StateFrame};
use serde::Serialize;

/// A shipment as it is shown.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Shipment {
    /// CR, CC, RJ, DR, DC, DT, TXS or RXS.
    pub(super) kind: &'static str,
    /// The low 32 bits of its number.
    pub(super) number: u32,
    /// The identifier of its destination.
    pub(super) connection: u32,
    /// What it carries, a text each: parts of data, or frames.
    pub(super) parts: Vec<String>,
}

/// Why a shipment cannot be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecodable {
    /// The capture has only a part of it.
    CutOff,
    /// The seal does not hold.
    BrokenSeal,
    /// The body is none of its kind.
    Malformed,
}

impl Shipment {
    /// The shipment in `payload`; `None` when it is of another protocol.
    pub(super) fn read(payload: &[u8], whole: bool) -> Option<Result<Self, Undecodable>> {
        let header = Header::decode(&mut Reader::new(payload)).ok()?;
        if !whole {
            return Some(Err(Undecodable::CutOff));
        }
        let mut opened = payload.to_vec();
        let Some(end) = Plain::open(u64::from(header.number), &mut opened) else { return Some(Err(Undecodable::BrokenSeal)) };
        let body = opened.get(HEADER_BYTES..end).unwrap_or(&[]);
        let parts = parts(header.kind, &mut Reader::new(body)).map_err(|_| Undecodable::Malformed);
        let Header { kind, number, connection, .. } = header;
        Some(parts.map(|parts| Self { kind: kind.name(), number, connection, parts }))
    }
}

fn parts(kind: Kind, body: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    Ok(match kind {
        Kind::Request => request(&Request::decode(body)?),
        Kind::Confirm => confirm(&Confirm::decode(body)?),
        Kind::Reject => {
            let Reject { reason, detail, .. } = Reject::decode(body)?;
            vec![format!("{reason:?} {detail:?}")]
        }
        Kind::Disconnect => {
            let Disconnect { code, abort, detail } = Disconnect::decode(body)?;
            vec![format!("{} code {code} {detail:?}", if abort { "abort" } else { "close" })]
        }
        Kind::DisconnectConfirm => Vec::new(),
        Kind::Data => {
            let mut parts = Vec::new();
            while !body.is_empty() {
                parts.push(part(&Part::decode(body)?.0));
            }
            parts
        }
        Kind::State => state(&State::decode(body)?),
        Kind::Report => report(&Report::decode(body)?),
    })
}

fn request(request: &Request) -> Vec<String> {
    let Request { version, class, rate, connection, streams, .. } = request;
    let first = format!("version {version} class {class} rate {rate} answer to {connection:08x}");
    let streams = streams.iter().enumerate().map(|(id, contract)| format!("stream {id} {}", describe(contract)));
    std::iter::once(first).chain(streams).collect()
}

fn confirm(confirm: &Confirm) -> Vec<String> {
    let first = format!("class {} answer to {:08x}", confirm.class, confirm.connection);
    std::iter::once(first).chain(confirm.grants.iter().map(report_frame)).collect()
}

fn describe(contract: &Contract) -> String {
    let (window, errors, burst) = contract.tolerance;
    format!("{:?} units of {} bytes tolerance {window},{errors},{burst}", contract.label, contract.unit_bytes)
}

fn part(part: &Part) -> String {
    let Part { stream, segment, first, count, again, length, .. } = part;
    let length = length.map_or(String::new(), |length| format!(" of {length} bytes"));
    let again = if *again { " again" } else { "" };
    format!("stream {stream} segment {segment}{length} positions {first}..{}{again}", first + count)
}

fn state(state: &State) -> Vec<String> {
    let confirmed = state.confirmed.highest.map_or(String::new(), |report| format!(" confirms report {report}"));
    let answer = if state.answer { " wants an answer" } else { "" };
    let exchange = if state.exchange { " wants its arrival told" } else { "" };
    let first = format!("sync {}{confirmed}{answer}{exchange}", state.sync);
    std::iter::once(first).chain(state.frames.iter().map(state_frame)).collect()
}

fn state_frame(frame: &StateFrame) -> String {
    match frame {
        StateFrame::Open { stream, contract } => format!("open stream {stream} {}", describe(contract)),
        StateFrame::Finished(finished) => {
            format!("finished stream {} segment {} of {} bytes", finished.stream, finished.segment, finished.length)
        }
        StateFrame::Skip(finished) => format!("skip stream {} segment {} of {} bytes", finished.stream, finished.segment, finished.length),
        StateFrame::End { stream, segments } => format!("end stream {stream} after {segments} segments"),
        StateFrame::Waiting { stream } => format!("waiting stream {stream}"),
        StateFrame::Reached(reached) => {
            format!("reached stream {} segment {} up to position {}", reached.stream, reached.segment, reached.position)
        }
        StateFrame::Reclass { change, class, rate } => format!("change {change} class {class} rate {rate}"),
    }
}

fn report(report: &Report) -> Vec<String> {
    let echo = report.echo.map_or("nothing".to_owned(), |echo| format!("#{echo}"));
    let first = format!("report {} echo {echo} reorder {}", report.number, report.reorder);
    std::iter::once(first).chain(report.frames.iter().map(report_frame)).collect()
}

fn report_frame(frame: &ReportFrame) -> String {
    match frame {
        ReportFrame::Grant { stream, segments, units, end_known } => {
            let end = if *end_known { " end known" } else { "" };
            format!("grant stream {stream} segments {segments} units {units}{end}")
        }
        ReportFrame::Complete { stream, first, count } => {
            format!("complete stream {stream} segments {first}..{}", first.saturating_add(*count))
        }
        ReportFrame::Judged { stream, segment, verdict, units, holes, .. } => {
            format!("judged stream {stream} segment {segment} {verdict} of {units} units holes {}", runs(holes))
        }
        ReportFrame::Request { stream, segment, missing, tail_from, length_wanted } => {
            let tail = tail_from.map_or(String::new(), |from| format!(" {from}.."));
            let length = if *length_wanted { " length" } else { "" };
            format!("request stream {stream} segment {segment} positions {}{tail}{length}", runs(missing))
        }
        ReportFrame::ReclassEcho { change, class } => format!("change {change} accepted class {class}"),
        ReportFrame::Refused { stream, reason } => format!("refused stream {stream} {reason:?}"),
        ReportFrame::Arrival(arrived) => {
            let Arrived { sync, at, bytes, shipments, lost, marked } = arrived;
            format!("arrival of sync {sync} at {at} ns after {bytes} bytes in {shipments} shipments, {lost} lost, {marked} marked")
        }
    }
}

fn runs(runs: &[(u32, u32)]) -> String {
    let texts: Vec<String> =
        runs.iter().map(|&(start, end)| if end == start + 1 { start.to_string() } else { format!("{start}..{end}") }).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(",") }
}
