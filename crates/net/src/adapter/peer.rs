//! What both adapters know of the other end: its address, the connection, when it was last heard, and when
//! the halves' time began.
//!
//! Called by both adapters.
//!
//! Invariant: a datagram of another address or connection changes nothing but a count.

use super::envelope::{Envelope, Kind};
use segstream_base::endpoint::{Deadline, Local};
use segstream_base::{Duration, Instant};
use std::net::SocketAddr;

/// When an adapter repeats itself, and when it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// OPEN and CLOSE are repeated so often until they are answered; 100 ms by default. On a path with a longer
    /// round trip each is sent more than once even if none is lost.
    pub repeat: Duration,
    /// How long an answer to OPEN is waited for; 10 s by default.
    pub open_timeout: Duration,
    /// How long the peer may be silent in a transfer; 10 s by default. After a quarter of it the sender asks for
    /// a sign of life.
    pub idle_timeout: Duration,
    /// How often CLOSE is sent at most; 10 by default. Without an answer the transfer then ends all the same.
    pub close_tries: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            repeat: Duration::from_millis(100),
            open_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(10),
            close_tries: 10,
        }
    }
}

/// What an adapter has sent, received and refused, as counts of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterCounters {
    /// Sent, envelopes of all kinds.
    pub datagrams_sent: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Of them packets of the scheme that carry payload.
    pub data_sent: u64,
    /// Of them packets of the scheme that carry none.
    pub control_sent: u64,
    /// Received from the peer, of this connection.
    pub datagrams_received: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_received: u64,
    /// Of them packets handed to the scheme that carry payload.
    pub data_received: u64,
    /// Of them packets handed to the scheme that carry none.
    pub control_received: u64,
    /// Of them packets the scheme could not decode.
    pub malformed: u64,
    /// Of them data packets not handed to the scheme because their payload has no place in the store; to the
    /// scheme they are lost.
    pub refused_by_store: u64,
    /// Of them those that do not belong to the present phase, such as a CLOSED nobody waits for.
    pub unexpected: u64,
    /// Not ours: another magic byte, version or kind.
    pub foreign: u64,
    /// Of another address or connection.
    pub stray: u64,
    /// Requests refused because no half could be built from their parameters.
    pub requests_refused: u64,
}

/// The other end.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    /// Our address, at which it asked; any when we ask.
    pub(super) local: Local,
    pub(super) connection: u32,
    /// When a datagram of it came last.
    pub(super) heard: Instant,
    /// When the connection was opened, which is zero to the halves.
    origin: Option<Instant>,
}

impl Peer {
    pub(super) fn new(now: Instant, address: SocketAddr, local: Local, connection: u32) -> Self {
        Self { address, local, connection, heard: now, origin: None }
    }

    /// The halves' time begins.
    pub(super) fn start_time(&mut self, now: Instant) {
        self.origin = Some(now);
    }

    /// `now` as a half counts it: zero until the connection is open.
    pub(super) fn half_time(&self, now: Instant) -> Instant {
        self.origin.map_or(Instant::ZERO, |origin| Instant::ZERO + now.since(origin))
    }

    /// A deadline of a half as the driver counts it.
    pub(super) fn driver_deadline(&self, deadline: Deadline) -> Deadline {
        let origin = self.origin.unwrap_or(Instant::ZERO);
        Deadline { at: origin + deadline.at.since(Instant::ZERO), ..deadline }
    }

    pub(super) fn is(&self, from: SocketAddr, envelope: Envelope) -> bool {
        self.address == from && self.connection == envelope.connection
    }

    pub(super) const fn envelope(&self, kind: Kind, detail: u16) -> Envelope {
        Envelope { kind, detail, connection: self.connection }
    }
}

impl AdapterCounters {
    /// Reads the envelope of a datagram; what is none is counted.
    pub(super) fn open<'a>(&mut self, datagram: &'a [u8]) -> Option<(Envelope, &'a [u8])> {
        let opened = Envelope::decode(datagram).ok();
        self.foreign += u64::from(opened.is_none());
        opened
    }

    pub(super) fn note_received(&mut self, bytes: usize) {
        self.datagrams_received += 1;
        self.bytes_received += bytes as u64;
    }

    pub(super) fn note_sent(&mut self, bytes: usize) {
        self.datagrams_sent += 1;
        self.bytes_sent += bytes as u64;
    }

    pub(super) fn note_packet_sent(&mut self, is_data: bool) {
        let counter = if is_data { &mut self.data_sent } else { &mut self.control_sent };
        *counter += 1;
    }

    pub(super) fn note_packet_received(&mut self, is_data: bool) {
        let counter = if is_data { &mut self.data_received } else { &mut self.control_received };
        *counter += 1;
    }
}
