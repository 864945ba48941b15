//! An endpoint's settings, under the names they have everywhere: here, on the command line, in TOML.
//!
//! Invariant: every field has a default that is safe on a path its user does not own.

use crate::{Algorithm, Rate};
use segstream_net::bind::SocketConfig;
use segstream_net::driver::{DriverConfig, Polling, Threads};
use segstream_proto::config::{Config as ProtocolConfig, DatagramSize, Shard};
use segstream_wire::{Class, Limits};
use std::time::Duration;

/// The settings of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rate of each connection in our direction, in whole IP packets. Default [`Rate::AUTO`]: what the path
    /// carries is found, and shared with others. A fixed rate is for a path whose capacity is known and ours.
    pub rate: Rate,
    /// Whether a connection ends when the path carries almost nothing of a fixed rate: see
    /// [`crate::CloseReason::PathOverloaded`]. Default yes.
    pub circuit_breaker: bool,
    /// Error control 4, flow control 2, rate control 1. Default 7, all of them.
    pub class: Class,
    /// The datagrams we send. Default [`DatagramSize::Discover`]: 1200 bytes, which every path carries, and more where the
    /// path is found to carry more and the rate makes use of it.
    pub datagram_bytes: DatagramSize,
    /// Whether a class with neither flow control nor rate control is allowed. Default no.
    pub unlimited: bool,
    /// A connection is given up when nothing has arrived for so long. Default 10 s; at least 1 s.
    pub idle_timeout: Duration,
    /// How long a connection is tried. Default 10 s.
    pub connect_timeout: Duration,
    /// The most streams of a peer that may be live at a time on one connection; those that have ended do not count. Default 256.
    /// Limit: an ended stream's place is not used again, so whoever has more to open makes another connection.
    pub streams: u32,
    /// The largest receive buffer of one stream in bytes. Default 64 MiB.
    pub stream_window_bytes: u64,
    /// The most connections at a time. Default 1024.
    pub connections: usize,
    /// The most set-ups of peers that are not known yet at a time, and of them for one IP address. Default 256 and 16.
    pub setups: usize,
    /// See [`Config::setups`].
    pub setups_per_host: usize,
    /// The most handshakes begun for peers in a second. Default 500.
    pub handshakes_per_second: u32,
    /// The re-sequencing distance R at first; it grows up to 256 with what the path does. Default 3.
    pub reorder: u32,
    /// Bytes asked of the system for the socket's buffers. Default 8 MiB.
    pub socket_buffer_bytes: usize,
    /// Whether segmentation offload (GSO and GRO) is used where the system has it. Default yes; off to measure what it gains.
    pub offload: bool,
    /// How an endpoint on the caller's own thread waits. Default [`Polling::Brief`]: it busy-polls for
    /// about the cost of a wake-up before it blocks, as long as that pays.
    pub polling: Polling,
    /// Which functions of an endpoint on the caller's own thread have a thread of their own. Default [`Threads::One`]: none has.
    pub threads: Threads,
}

impl Default for Config {
    fn default() -> Self {
        let protocol = ProtocolConfig::default();
        Self {
            rate: protocol.rate,
            circuit_breaker: protocol.circuit_breaker,
            class: protocol.class,
            datagram_bytes: DatagramSize::Discover,
            unlimited: false,
            idle_timeout: protocol.limits.idle_timeout.into(),
            connect_timeout: protocol.connect_timeout.into(),
            streams: protocol.limits.streams,
            stream_window_bytes: protocol.stream_window_bytes,
            connections: protocol.connections,
            setups: protocol.setups,
            setups_per_host: protocol.setups_per_host,
            handshakes_per_second: protocol.handshakes_per_second,
            reorder: protocol.reorder,
            socket_buffer_bytes: segstream_net::bind::DEFAULT_BUFFER_BYTES,
            offload: true,
            polling: Polling::Brief,
            threads: Threads::One,
        }
    }
}

impl Config {
    /// The same settings with an automatic rate under `congestion`, as [`crate::Algorithm::offered`] finds it by name. A rate that is not
    /// automatic becomes [`Rate::AUTO`].
    pub fn with_congestion(mut self, congestion: &'static Algorithm) -> Self {
        self.rate = if self.rate.is_auto() { self.rate } else { Rate::AUTO }.under(congestion);
        self
    }

    /// The same settings with a fixed rate of `megabits` Mbit/s.
    pub fn with_rate_megabits(mut self, megabits: u64) -> Self {
        self.rate = Rate::smooth(segstream_base::Bandwidth::from_megabits_per_second(megabits));
        self
    }

    pub(crate) fn protocol(&self, accept: bool, shard: Shard) -> ProtocolConfig {
        ProtocolConfig {
            limits: Limits { streams: self.streams, datagram_bytes: 65_507, idle_timeout: self.idle_timeout.into() },
            class: self.class,
            rate: self.rate,
            circuit_breaker: self.circuit_breaker,
            datagram_bytes: self.datagram_bytes,
            unlimited: self.unlimited,
            reorder: self.reorder,
            stream_window_bytes: self.stream_window_bytes,
            connections: self.connections,
            setups: self.setups,
            setups_per_host: self.setups_per_host,
            handshakes_per_second: self.handshakes_per_second,
            accept,
            shard,
            connect_timeout: self.connect_timeout.into(),
            ..ProtocolConfig::default()
        }
    }

    pub(crate) fn driver(&self) -> DriverConfig {
        DriverConfig { polling: self.polling, threads: self.threads, ..DriverConfig::default() }
    }

    pub(crate) fn socket(&self) -> SocketConfig {
        SocketConfig {
            receive_buffer_bytes: self.socket_buffer_bytes,
            send_buffer_bytes: self.socket_buffer_bytes,
            offload: self.offload,
            ..SocketConfig::default()
        }
    }
}
