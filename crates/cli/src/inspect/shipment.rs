//! From a UDP payload to something readable.
//!
//! Called by the verb for every datagram.
//!
//! Of an encrypted connection set-up can be read until there are keys (CR, CK, CC, RJ); of HS its header; of everything
//! else that it is sealed, for which connection, and how long it is.
//!
//! Invariant: nothing is shown of a shipment whose seal is broken. No bytes panic.
//!
//! Limit: the full number of a shipment is taken for its low 32 bits, so those after the first 2^32 of a connection
//! count as undecodable. Nothing tells a damaged shipment in the clear from a sealed one but the others between the same
//! two addresses: it counts as sealed when none of them could be read.

use segstream_base::codec::{DecodeError, Reader};
use segstream_base::{Ordinal, Run, ShipmentNumber};
use segstream_proto::session::Plain;
use segstream_wire::handshake::{Confirm, Cookie, Disconnect, Fragment, Reject, Request};
use segstream_wire::header::{HEADER_BYTES, UnprotectedHeader};
use segstream_wire::proposal::{Agreement, Proposal};
use segstream_wire::report::Arrived;
use segstream_wire::{Contract, Extensions, Header, Kind, Level, Part, Repair, Report, ReportFrame, State, StateFrame};
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A shipment as it is shown.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Shipment {
    /// CR, CK, CC, HS, RJ, DR, DC, DT, TXS, RXS, PC or PR; null when it is hidden.
    pub(super) kind: Option<&'static str>,
    /// The low 32 bits of its number; null when they are hidden.
    pub(super) number: Option<u32>,
    /// The identifier of its destination.
    pub(super) connection: u32,
    /// Which keys seal it: initial (none yet), handshake or data.
    pub(super) level: &'static str,
    /// Whether its content is encrypted.
    pub(super) sealed: bool,
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

/// The pairs of addresses between which shipments are known to travel in the clear.
#[derive(Debug, Default)]
pub(super) struct Flows(BTreeSet<(SocketAddr, SocketAddr)>);

impl Flows {
    /// The shipment in `payload`; `None` when it is of another protocol.
    pub(super) fn read(
        &mut self,
        (from, to): (SocketAddr, SocketAddr),
        payload: &[u8],
        whole: bool,
    ) -> Option<Result<Shipment, Undecodable>> {
        let unprotected = UnprotectedHeader::read(payload)?;
        if !whole {
            return Some(Err(Undecodable::CutOff));
        }
        let pair = (from.min(to), from.max(to));
        let header = Header::decode(&mut Reader::new(payload)).ok();
        let is_handshake = header.is_some_and(|header| header.level == Level::Handshake);
        let opened = header.and_then(|header| Some((header, Plain::open(ShipmentNumber(header.number.into()), payload)?)));
        let Some((header, end)) = opened.filter(|_| !is_handshake) else {
            let sealed = (unprotected.data || is_handshake) && !self.0.contains(&pair);
            return match header {
                None if !unprotected.data => None,
                _ if sealed => Some(Ok(Shipment::sealed(unprotected, header.filter(|_| is_handshake)))),
                _ => Some(Err(Undecodable::BrokenSeal)),
            };
        };
        let body = payload.get(HEADER_BYTES..end).unwrap_or(&[]);
        if unprotected.data {
            self.0.insert(pair);
        } else if let (Kind::Request, Ok(request)) = (header.kind, Request::decode(&mut Reader::new(body))) {
            if request.protection == Plain::MODE {
                self.0.insert(pair);
            } else {
                self.0.remove(&pair);
            }
        }
        let in_the_clear = self.0.contains(&pair);
        let parts = parts(header.kind, in_the_clear, &mut Reader::new(body)).map_err(|_| Undecodable::Malformed);
        Some(parts.map(|parts| Shipment::open(header, parts)))
    }
}

impl Shipment {
    /// One that could be read.
    fn open(header: Header, parts: Vec<String>) -> Self {
        let Header { level, kind, number, connection } = header;
        Self { kind: Some(kind.name()), number: Some(number), connection, level: level_name(level), sealed: false, parts }
    }

    /// One of which only the unprotected part of the header can be read, and perhaps all of it.
    fn sealed(unprotected: UnprotectedHeader, header: Option<Header>) -> Self {
        let level = header.map_or("data", |header| level_name(header.level));
        let (kind, number) = (header.map(|header| header.kind.name()), header.map(|header| header.number));
        Self { kind, number, connection: unprotected.connection, level, sealed: true, parts: Vec::new() }
    }
}

const fn level_name(level: Level) -> &'static str {
    match level {
        Level::Initial => "initial",
        Level::Handshake => "handshake",
        Level::Data | Level::DataOdd => "data",
    }
}

fn parts(kind: Kind, in_the_clear: bool, body: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    Ok(match kind {
        Kind::Request => request(&Request::decode(body)?),
        Kind::Cookie => {
            let Cookie { token, .. } = Cookie::decode(body)?;
            vec![format!("asks for the request again with a cookie of {} bytes", token.len())]
        }
        Kind::Confirm => confirm(&Confirm::decode(body)?, in_the_clear),
        Kind::Handshake => vec![fragment(&Fragment::decode(body)?)],
        Kind::Challenge => vec![format!("asks for {:016x}", body.u64("challenge")?)],
        Kind::Response => vec![format!("answers {:016x}", body.u64("response")?)],
        Kind::Reject => {
            let Reject { reason, detail, .. } = Reject::decode(body)?;
            vec![format!("{reason:?} {detail:?}")]
        }
        Kind::Disconnect => {
            let Disconnect { code, abort, detail } = Disconnect::decode(body)?;
            vec![format!("{} code {code} {detail:?}", if abort { "abort" } else { "close" })]
        }
        Kind::Repair => {
            let (Repair { stream, segment, every, first, count, payload_bytes }, _) = Repair::decode(body)?;
            let end = first + count;
            vec![format!("repair stream {stream} segment {segment} units {first}..{end} every {every} {payload_bytes} bytes")]
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
    let Request { version, connection, protection, token, fragment: bytes, .. } = request;
    let in_the_clear = *protection == Plain::MODE;
    let how = match *protection {
        Plain::MODE => "in the clear".to_owned(),
        segstream_secure::Tls::MODE => "encrypted with TLS 1.3".to_owned(),
        other => format!("protection {other}"),
    };
    let token = if token.is_empty() { String::new() } else { format!(" token of {} bytes", token.len()) };
    let mut parts = vec![format!("version {version} {how} answer to {connection:08x}{token}"), fragment(bytes)];
    if let Some(Ok(proposal)) = whole(bytes).filter(|_| in_the_clear).map(|bytes| Proposal::decode(&mut Reader::new(bytes))) {
        parts.push(format!("class {} rate {}", proposal.class, proposal.rate));
        parts.extend(proposal.streams.iter().enumerate().map(|(id, contract)| format!("stream {id} {}", describe(contract))));
        parts.extend(extensions(proposal.extensions));
    }
    parts
}

fn confirm(confirm: &Confirm, in_the_clear: bool) -> Vec<String> {
    let mut parts = vec![format!("answer to {:08x}", confirm.connection), fragment(&confirm.fragment)];
    if let Some(Ok(agreement)) = whole(&confirm.fragment).filter(|_| in_the_clear).map(|bytes| Agreement::decode(&mut Reader::new(bytes))) {
        parts.push(format!("class {}", agreement.class));
        parts.extend(extensions(agreement.extensions));
        parts.extend(agreement.grants.iter().map(report_frame));
    }
    parts
}

fn extensions(extensions: Extensions) -> Option<String> {
    (!extensions.is_empty()).then(|| format!("extensions {extensions}"))
}

fn fragment(fragment: &Fragment) -> String {
    format!("handshake bytes {}..{}", fragment.offset, fragment.offset.saturating_add(fragment.bytes.len() as u64))
}

/// What a handshake in the clear agrees on, if the fragment has all of it.
fn whole(fragment: &Fragment) -> Option<&[u8]> {
    Plain::parameters(&fragment.bytes).filter(|_| fragment.offset == 0)
}

fn describe(contract: &Contract) -> String {
    let (window, errors, burst) = contract.tolerance.triplet();
    format!("{:?} units of {} bytes tolerance {window},{errors},{burst}", contract.label, contract.unit_bytes)
}

fn part(part: &Part) -> String {
    let Part { stream, segment, first, retransmission, length, .. } = part;
    let length = length.map_or(String::new(), |length| format!(" of {length} bytes"));
    let again = if *retransmission { " again" } else { "" };
    format!("stream {stream} segment {segment}{length} positions {first}..{}{again}", part.end())
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
        ReportFrame::MaxStreams { streams } => format!("streams up to {streams} in all"),
        ReportFrame::Durable { stream, segments, last } => {
            format!("durable stream {stream} below {segments}{}", if *last { ", no more will be" } else { "" })
        }
        ReportFrame::Losses { judged, lost, runs } => format!("losses {lost} of {judged} shipments in {runs} runs"),
        ReportFrame::AnyRepairs { stream, segment, lost, held } => {
            format!("any repairs stream {stream} segment {segment} for {lost} units, {held} held")
        }
    }
}

fn runs<N: Ordinal>(runs: &[Run<N>]) -> String {
    let texts: Vec<String> = runs.iter().map(|run| if run.len() == 1 { run.start().to_string() } else { run.to_string() }).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(",") }
}
