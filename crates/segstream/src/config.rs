//! The settings of an endpoint; they have the same names on the command line.
//!
//! Invariant: every field has a default that is safe on a path shared with others.

use crate::{Algorithm, Coding, Rate};
use segstream_net::bind::SocketConfig;
use segstream_net::driver::{DriverConfig, Polling, Threads};
use segstream_proto::config::{Config as ProtocolConfig, DatagramSize, Shard};
use segstream_wire::{Class, Limits};
use std::net::SocketAddr;
use std::time::Duration;

/// A quarter of the connections that an endpoint has by default.
const CONNECTIONS_PER_PEER: usize = 256;

/// The settings of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rate of each connection in our direction, in whole IP packets. Default [`Rate::AUTO`]: a congestion controller sets it. A
    /// fixed rate is for a path whose capacity is known and not shared.
    pub rate: Rate,
    /// Whether a connection with an automatic rate begins with half of the capacity that the last one to the same host found, if the
    /// round trip is alike (Careful Resume, RFC 9959). The endpoint remembers 256 hosts, for an hour. Default yes.
    pub careful_resume: bool,
    /// Whether a circuit breaker ends a connection when the path carries almost nothing of a fixed rate: see
    /// [`crate::CloseReason::PathOverloaded`]. Default yes.
    pub circuit_breaker: bool,
    /// What is done with repair units: see [`Coding`]. Both ends need to allow them. Default [`Coding::Hedged`].
    pub coding: Coding,
    /// Error control 4, flow control 2, rate control 1. Default 7, all of them.
    pub class: Class,
    /// The size of the datagrams that we send. Default [`DatagramSize::Discover`]: 1200 bytes, which every path carries, and more if
    /// path MTU discovery finds more and the rate is high enough.
    pub datagram_bytes: DatagramSize,
    /// Whether a class with neither flow control nor rate control is allowed. Default no.
    pub unlimited: bool,
    /// The idle timeout of a connection. Default 10 s; at least 1 s.
    pub idle_timeout: Duration,
    /// The timeout of connection set-up. Default 10 s.
    pub connect_timeout: Duration,
    /// The maximum number of live streams of a peer on one connection. Default 256. Streams that have ended and were read do not count.
    pub streams: u32,
    /// Whether this application confirms what it receives ([`crate::blocking::Connection::confirm`]). If so, a stream of a peer counts as live until
    /// all of it is confirmed. Default no.
    pub confirms: bool,
    /// The maximum receive buffer of one stream in bytes. Default 64 MiB.
    pub stream_window_bytes: u64,
    /// The maximum receive buffer of all streams of a connection together, payload and state; a further stream still gets 64 KiB. Default 256 MiB.
    pub connection_window_bytes: u64,
    /// The maximum that all peers together are granted for their streams, in bytes. One stream gets a
    /// thirty-second of what is left at most; beyond it only the first stream of a connection is taken, with the least window. Default 8 GiB.
    pub memory_bytes: u64,
    /// The maximum that the connections of one key are granted together, in bytes. Default 4 GiB. In plain mode peers have no keys, and it
    /// bounds each connection.
    pub memory_bytes_per_peer: u64,
    /// The maximum number of connections. Default 1024.
    pub connections: usize,
    /// The maximum number of connections of one key, of those that peers begin. Default 256. In plain mode peers have no keys, and only
    /// [`Config::connections`] counts.
    pub connections_per_peer: usize,
    /// The maximum number of set-ups of unauthenticated peers at a time, and of those from one IP address. Default 256 and 16.
    pub setups: usize,
    /// See [`Config::setups`].
    pub setups_per_host: usize,
    /// The maximum number of handshakes that peers can start in a second. Default 500.
    pub handshakes_per_second: u32,
    /// The initial reordering threshold R; it adapts to the path, up to 256. Default 3.
    pub reorder: u32,
    /// The requested size of the socket's buffers in bytes. Default 8 MiB.
    pub socket_buffer_bytes: usize,
    /// Whether segmentation offload (GSO and GRO) is used where the system has it. Default yes; off to measure its effect.
    pub offload: bool,
    /// How a blocking endpoint waits. Default [`Polling::Brief`]: it busy-polls for about the cost of a wake-up before it blocks, as long
    /// as recent busy-polls have found datagrams.
    pub polling: Polling,
    /// Which functions of a blocking endpoint have an I/O thread. Default [`Threads::One`]: none.
    pub threads: Threads,
}

impl Default for Config {
    fn default() -> Self {
        let protocol = ProtocolConfig::default();
        Self {
            rate: protocol.rate,
            careful_resume: protocol.careful_resume,
            circuit_breaker: protocol.circuit_breaker,
            coding: protocol.coding,
            class: protocol.class,
            datagram_bytes: DatagramSize::Discover,
            unlimited: false,
            idle_timeout: protocol.limits.idle_timeout.into(),
            connect_timeout: protocol.connect_timeout.into(),
            streams: protocol.limits.streams,
            confirms: protocol.confirms,
            stream_window_bytes: protocol.stream_window_bytes,
            connection_window_bytes: protocol.connection_window_bytes,
            memory_bytes: protocol.memory_bytes,
            memory_bytes_per_peer: protocol.memory_bytes_per_peer,
            connections: protocol.connections,
            connections_per_peer: CONNECTIONS_PER_PEER,
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
    /// The same settings with an automatic rate under the algorithm `congestion`, which [`crate::Algorithm::offered`] finds by name. A
    /// fixed rate becomes [`Rate::AUTO`].
    pub fn with_congestion(mut self, congestion: &'static Algorithm) -> Self {
        self.rate = if self.rate.is_auto() { self.rate } else { Rate::AUTO }.under(congestion);
        self
    }

    /// The same settings with a fixed rate of `megabits` Mbit/s.
    pub fn with_rate_megabits(mut self, megabits: u64) -> Self {
        self.rate = Rate::smooth(segstream_base::Bandwidth::from_megabits_per_second(megabits));
        self
    }

    /// For the endpoint of a socket that is bound to `listener`, and whose clock began at `epoch` of the time of day.
    pub(crate) fn protocol(&self, accept: bool, shard: Shard, listener: SocketAddr, epoch: segstream_base::Duration) -> ProtocolConfig {
        ProtocolConfig {
            limits: Limits { streams: self.streams, datagram_bytes: 65_507, idle_timeout: self.idle_timeout.into() },
            class: self.class,
            rate: self.rate,
            epoch,
            careful_resume: self.careful_resume,
            circuit_breaker: self.circuit_breaker,
            coding: self.coding,
            datagram_bytes: self.datagram_bytes,
            unlimited: self.unlimited,
            reorder: self.reorder,
            confirms: self.confirms,
            stream_window_bytes: self.stream_window_bytes,
            connection_window_bytes: self.connection_window_bytes,
            memory_bytes: self.memory_bytes,
            memory_bytes_per_peer: self.memory_bytes_per_peer,
            connections: self.connections,
            setups: self.setups,
            setups_per_host: self.setups_per_host,
            handshakes_per_second: self.handshakes_per_second,
            accept,
            shard,
            listener: Some(listener),
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
