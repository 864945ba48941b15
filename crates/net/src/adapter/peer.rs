//! The state of the other end that both adapters keep: its address, the connection, when a datagram last arrived from it, and when
//! the halves' time began.
//!
//! Called by both adapters.
//!
//! Invariant: a datagram of another address or connection changes only a counter.

use super::header::{AdapterHeader, Kind};
use segstream_base::endpoint::{Deadline, Local};
use segstream_base::{Duration, Instant};
use std::net::SocketAddr;

/// Retransmission intervals and timeouts of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The interval at which OPEN and CLOSE are repeated until they are answered; 100 ms by default. On a path with a longer round
    /// trip each is sent more than once even if none is lost.
    pub repeat: Duration,
    /// The timeout for an answer to OPEN; 10 s by default.
    pub open_timeout: Duration,
    /// The idle timeout of a transfer; 10 s by default. After a quarter of it the sender sends a keep-alive.
    pub idle_timeout: Duration,
    /// The maximum number of CLOSE datagrams; 10 by default. Without an answer the transfer ends after the last.
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

/// The counters of an adapter, in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterCounters {
    /// Sent, of all kinds.
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
    /// Of them data packets that were not handed to the scheme because their payload does not fit the buffer; to the scheme they
    /// are lost.
    pub refused_by_store: u64,
    /// Of them those that do not belong to the present phase, such as an unexpected CLOSED.
    pub unexpected: u64,
    /// Received with another magic byte, version or kind.
    pub foreign: u64,
    /// Received from another address or for another connection.
    pub stray: u64,
    /// Requests refused because no half could be built from their parameters.
    pub requests_refused: u64,
}

/// The other end.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    /// Our address that it has sent to; unspecified at the initiator.
    pub(super) local: Local,
    pub(super) connection: u32,
    /// When the last datagram arrived from it.
    pub(super) heard: Instant,
    /// When the connection was opened: zero in the halves' time.
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

    /// `now` in the half's time: zero until the connection is open.
    pub(super) fn half_time(&self, now: Instant) -> Instant {
        self.origin.map_or(Instant::ZERO, |origin| Instant::ZERO + now.since(origin))
    }

    /// A deadline of a half in the driver's time.
    pub(super) fn driver_deadline(&self, deadline: Deadline) -> Deadline {
        let origin = self.origin.unwrap_or(Instant::ZERO);
        Deadline { at: origin + deadline.at.since(Instant::ZERO), ..deadline }
    }

    pub(super) fn is(&self, from: SocketAddr, header: AdapterHeader) -> bool {
        self.address == from && self.connection == header.connection
    }

    pub(super) const fn header(&self, kind: Kind, detail: u16) -> AdapterHeader {
        AdapterHeader { kind, detail, connection: self.connection }
    }
}

impl AdapterCounters {
    /// Reads the header of a datagram; counts a datagram without one.
    pub(super) fn open<'a>(&mut self, datagram: &'a [u8]) -> Option<(AdapterHeader, &'a [u8])> {
        let opened = AdapterHeader::decode(datagram).ok();
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
