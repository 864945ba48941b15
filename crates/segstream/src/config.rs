//! An endpoint's settings, under the names they have everywhere: here, on the command line, in TOML.
//!
//! Invariant: every field has a default that is safe on a path its user does not own, but for the rate,
//! which must be given there.

use crate::RateSpec;
use segstream_base::Duration;
use segstream_net::bind::SocketConfig;
use segstream_proto::config::Config as ProtocolConfig;
use segstream_wire::{Class, Limits};
use std::net::SocketAddr;

/// The rate on loopback when none is given.
const LOOPBACK_MEGABITS: u64 = 100;

/// The settings of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rate of each connection in our direction, in whole IP packets. `None`: 100 Mbit/s to a loopback
    /// address; to any other address neither a connection nor, on one that was accepted, a stream can be
    /// opened until a rate is given. Default `None`.
    pub rate: Option<RateSpec>,
    /// Error control 4, flow control 2, rate control 1. Default 7, all of them.
    pub class: Class,
    /// The datagrams we send, 1200 to 65,507 bytes. Default 1200, which every path carries.
    pub datagram_bytes: usize,
    /// Whether a class with neither flow control nor rate control is allowed. Default no.
    pub unlimited: bool,
    /// A connection is given up when nothing has arrived for so long. Default 10 s; at least 1 s.
    pub idle_timeout: Duration,
    /// How long a connection is tried. Default 10 s.
    pub connect_timeout: Duration,
    /// The most streams a peer may open on one connection, those that have ended included. Default 256.
    /// Limit: an ended stream's place is not used again, so whoever has more to open makes another connection.
    pub streams: u32,
    /// The largest receive buffer of one stream in bytes. Default 64 MiB.
    pub stream_window_bytes: u64,
    /// The most connections at a time. Default 1024.
    pub connections: usize,
    /// The re-sequencing distance R at first; it grows up to 256 with what the path does. Default 3.
    pub reorder: u32,
    /// Bytes asked of the system for the socket's buffers. Default 8 MiB.
    pub socket_buffer_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        let protocol = ProtocolConfig::default();
        Self {
            rate: None,
            class: protocol.class,
            datagram_bytes: protocol.datagram_bytes,
            unlimited: false,
            idle_timeout: protocol.limits.idle_timeout,
            connect_timeout: protocol.connect_timeout,
            streams: protocol.limits.streams,
            stream_window_bytes: protocol.stream_window_bytes,
            connections: protocol.connections,
            reorder: protocol.reorder,
            socket_buffer_bytes: segstream_net::bind::DEFAULT_BUFFER_BYTES,
        }
    }
}

impl Config {
    /// The same settings with a rate of `megabits` Mbit/s.
    pub fn with_rate_megabits(mut self, megabits: u64) -> Self {
        self.rate = Some(RateSpec::smooth(segstream_base::Bandwidth::from_megabits_per_second(megabits)));
        self
    }

    pub(crate) fn protocol(&self, accept: bool) -> ProtocolConfig {
        ProtocolConfig {
            limits: Limits { streams: self.streams, datagram_bytes: 65_507, idle_timeout: self.idle_timeout },
            class: self.class,
            // What must not be unpaced by accident is refused by `rate_is_known`.
            rate: self.rate.or(Some(RateSpec::smooth(segstream_base::Bandwidth::from_megabits_per_second(LOOPBACK_MEGABITS)))),
            datagram_bytes: self.datagram_bytes,
            unlimited: self.unlimited,
            reorder: self.reorder,
            stream_window_bytes: self.stream_window_bytes,
            connections: self.connections,
            accept,
            connect_timeout: self.connect_timeout,
            ..ProtocolConfig::default()
        }
    }

    pub(crate) fn socket(&self) -> SocketConfig {
        SocketConfig {
            receive_buffer_bytes: self.socket_buffer_bytes,
            send_buffer_bytes: self.socket_buffer_bytes,
            ..SocketConfig::default()
        }
    }

    /// Whether a connection to `remote` may be made without a rate of its own.
    pub(crate) fn rate_is_known(&self, remote: SocketAddr) -> bool {
        self.rate.is_some() || remote.ip().to_canonical().is_loopback() || !self.class.rate_control()
    }
}
