//! What an observer on the wire reads: the edges of the window that an end grants, and the class it echoes.
//!
//! Called by the world for every datagram that leaves. The protections of the models encrypt nothing, so a tap needs no access to
//! the endpoints.
//!
//! Invariant: a tap only reads; what it keeps is part of a state, because properties depend on it.

use segstream_base::StreamId;
use segstream_base::codec::Reader;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Class, Header, Kind, Report, ReportFrame};
use std::collections::BTreeMap;

/// The newest grant of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edges {
    /// Segments below this number may be sent.
    pub segments: u64,
    /// This many units may have been started in all.
    pub units: u64,
}

/// What one end has said in its reports.
#[derive(Clone, Debug)]
pub struct Tap {
    /// The length of the seals.
    seal_bytes: usize,
    /// The newest grant of each stream.
    pub grants: BTreeMap<StreamId, Edges>,
    /// The newest change that was echoed, and the class that is in force for the peer's direction by that.
    pub echoed: Option<(u64, Class)>,
    /// What contradicts what was said before.
    pub contradiction: Option<String>,
}

/// The kind and number of a datagram, for people.
pub fn name(datagram: &[u8]) -> String {
    Header::decode(&mut Reader::new(datagram))
        .map_or_else(|_| format!("{} unreadable bytes", datagram.len()), |header| format!("{} {}", header.kind.name(), header.number))
}

/// The kind of a datagram, if it is a shipment.
pub fn kind(datagram: &[u8]) -> Option<Kind> {
    Header::decode(&mut Reader::new(datagram)).ok().map(|header| header.kind)
}

/// The report in a datagram, if it is one; `seal_bytes` behind it are its seal.
pub fn report(datagram: &[u8], seal_bytes: usize) -> Option<Report> {
    Header::decode(&mut Reader::new(datagram)).ok().filter(|header| header.kind == Kind::Report)?;
    let body = datagram.get(HEADER_BYTES..datagram.len().checked_sub(seal_bytes)?)?;
    Report::decode(&mut Reader::new(body)).ok()
}

impl Tap {
    /// A tap on an end whose seals are `seal_bytes` long.
    pub const fn new(seal_bytes: usize) -> Self {
        Self { seal_bytes, grants: BTreeMap::new(), echoed: None, contradiction: None }
    }

    /// A datagram leaves.
    pub fn read(&mut self, datagram: &[u8]) {
        let Some(report) = report(datagram, self.seal_bytes) else { return };
        for frame in &report.frames {
            match frame {
                ReportFrame::Grant { stream, segments, units, .. } => self.on_grant(*stream, Edges { segments: *segments, units: *units }),
                ReportFrame::ReclassEcho { change, class } => self.on_echo(*change, *class),
                _ => {}
            }
        }
    }

    fn on_grant(&mut self, stream: StreamId, new: Edges) {
        let old = self.grants.insert(stream, new).unwrap_or_default();
        if new.segments < old.segments || new.units < old.units {
            self.contradiction = Some(format!("the window of stream {stream} retreats from {old:?} to {new:?}"));
        }
    }

    fn on_echo(&mut self, change: u64, class: Class) {
        if self.echoed.is_some_and(|(known, said)| change < known || change == known && class != said) {
            self.contradiction = Some(format!("the echo goes from {:?} to change {change}, class {class}", self.echoed));
        }
        self.echoed = Some((change, class));
    }
}
