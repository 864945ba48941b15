//! The configuration of an endpoint.
//!
//! Read by [`crate::endpoint::Endpoint`] and by each connection. Invariant: a value here is a default for
//! every connection; nothing here changes while a connection lives.

use crate::coding_choice::Coding;
use crate::rate::Rate;
use core::net::SocketAddr;
use core::num::NonZeroU8;
use segstream_base::{Bandwidth, Duration};
use segstream_wire::{Class, Extensions, Limits};

/// The smallest datagram every path must carry, and the size used until it is measured.
pub const DATAGRAM_BYTES_MIN: usize = 1200;

/// One of several endpoints that share a port, each in a thread of its own. The identifiers of its connections say so,
/// so that a load balancer need not look at addresses: see [`Shard::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u8,
    count: NonZeroU8,
}

impl Shard {
    /// The only one.
    pub const ONLY: Self = Self { index: 0, count: NonZeroU8::MIN };

    /// All shards of `count`, in order.
    pub fn all(count: NonZeroU8) -> impl Iterator<Item = Self> {
        (0..count.get()).map(move |index| Self { index, count })
    }

    /// Whether a datagram is for this shard that has `byte` as the second byte of its connection identifier, which is
    /// the third of the datagram: the byte modulo the number of shards is the shard's.
    pub const fn names(self, byte: u8) -> bool {
        byte % self.count.get() == self.index
    }

    /// How many shards share the port.
    pub(crate) const fn count(self) -> u64 {
        self.count.get() as u64
    }

    /// `identifier` with the second byte such that it names this shard.
    pub(crate) fn mark(self, identifier: u32) -> u32 {
        let [first, second, third, fourth] = identifier.to_be_bytes();
        let whole = second - second % self.count.get();
        let second = whole.checked_add(self.index).unwrap_or_else(|| whole - self.count.get() + self.index);
        u32::from_be_bytes([first, second, third, fourth])
    }
}

/// The largest UDP payload.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;

/// How large the datagrams are that we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramSize {
    /// At most so many bytes, 1200 to 65,507. What the path does not carry is lost.
    Fixed(usize),
    /// Path MTU discovery, from 1200 bytes on (RFC 8899).
    Discover,
}

impl DatagramSize {
    /// The size before anything is known of the path or the peer.
    pub(crate) const fn first(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Discover => DATAGRAM_BYTES_MIN,
        }
    }
}

/// The configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// The limits that peers get.
    pub limits: Limits,
    /// The class proposed, and the most that is accepted. Default 7.
    pub class: Class,
    /// The rate of each connection in our direction, counted in whole IP packets. Default: automatic.
    pub rate: Rate,
    /// What the time of day shows at [`segstream_base::Instant::ZERO`], in any time zone; zero where it is not known. Senders with the
    /// controller `auto` drain queues at the same moments of it, and tokens that validate addresses age by it. Default zero.
    pub epoch: Duration,
    /// Whether a connection with an automatic rate begins with half of the capacity that the last one to the same host found, if the
    /// round trip is alike (Careful Resume, RFC 9959). Default yes.
    pub careful_resume: bool,
    /// Whether a connection ends when the path carries almost nothing of a fixed rate (RFC 8084). Default yes.
    pub circuit_breaker: bool,
    /// The datagrams we send. Default 1200 bytes: a path in virtual time carries what its test says.
    pub datagram_bytes: DatagramSize,
    /// Whether neither flow control nor rate control may be in force. Default no.
    pub unlimited: bool,
    /// The reordering threshold R at first; it adapts up to 256. Default 3.
    pub reorder: u32,
    /// The largest receive buffer of one stream, which bounds what a peer can ask for. Default 64 MiB.
    pub stream_window_bytes: u64,
    /// The largest receive buffer of all streams of a connection together; a further stream still gets
    /// 64 KiB. Default 256 MiB.
    pub connection_window_bytes: u64,
    /// The most that all peers together are granted for their streams, payload and state, in bytes. One stream gets a
    /// thirty-second of what is left at most; a stream beyond it is refused, except for the first of a connection, which gets the least. The shards of
    /// a port have equal parts of it. Default 8 GiB.
    pub memory_bytes: u64,
    /// The most that the connections of one key are granted together; in plain mode peers have no keys, and it bounds each connection. A
    /// connection whose first streams exceed it ends when the key is known. Default 4 GiB.
    pub memory_bytes_per_peer: u64,
    /// The most connections at a time. Default 1024.
    pub connections: usize,
    /// The most concurrent set-ups of peers that are not authenticated yet. Default 256.
    pub setups: usize,
    /// The most of them for one IP address. Default 16.
    pub setups_per_host: usize,
    /// The most handshakes begun for peers in a second, in bursts of at most as many. Default 500.
    pub handshakes_per_second: u32,
    /// The most stateless resets in a second. Default 100.
    pub resets_per_second: u32,
    /// Whether connections are accepted. Default no.
    pub accept: bool,
    /// Which of several endpoints on one port this is. Default: the only one.
    pub shard: Shard,
    /// The address and port that the socket is bound to: what the codes and tokens of this endpoint are worth something at. Default none,
    /// for endpoints that accept no connections.
    pub listener: Option<SocketAddr>,
    /// The pacing quantum, as a time: departures of so long share a system call. Default 200 us.
    pub pacing_quantum: Duration,
    /// The timeout of set-up. Default 10 s.
    pub connect_timeout: Duration,
    /// Whether the application confirms what it receives ([`crate::connection::Connection::confirm`]). If so, a stream of the peer counts as
    /// live until all of it is confirmed. Default no.
    pub confirms: bool,
    /// What is done with repair units, if the peer can handle them too (spec 12.2). Default [`Coding::Hedged`].
    pub coding: Coding,
    /// Whether connections tell what they do, for [`crate::endpoint::Endpoint::poll_trace`]. Default no.
    pub trace: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            class: Class::ALL,
            rate: Rate::AUTO,
            epoch: Duration::ZERO,
            careful_resume: true,
            circuit_breaker: true,
            datagram_bytes: DatagramSize::Fixed(DATAGRAM_BYTES_MIN),
            unlimited: false,
            reorder: 3,
            stream_window_bytes: 64 << 20,
            connection_window_bytes: 256 << 20,
            memory_bytes: 8 << 30,
            memory_bytes_per_peer: 4 << 30,
            connections: 1024,
            setups: 256,
            setups_per_host: 16,
            handshakes_per_second: 500,
            resets_per_second: 100,
            accept: false,
            shard: Shard::ONLY,
            listener: None,
            pacing_quantum: Duration::from_micros(200),
            connect_timeout: Duration::from_secs(10),
            confirms: false,
            coding: Coding::Hedged,
            trace: false,
        }
    }
}

impl Config {
    /// What an endpoint supports beyond what every one does.
    pub(crate) const fn extensions(&self) -> Extensions {
        let confirms = if self.confirms { Extensions::CONFIRMS } else { Extensions::NONE };
        let repair = if self.coding.is_on() { Extensions::REPAIR } else { Extensions::NONE };
        Extensions::DURABLE.with(confirms).with(repair)
    }

    /// A fixed rate of `rate` without bursts.
    pub fn with_rate(mut self, rate: Bandwidth) -> Self {
        self.rate = Rate::smooth(rate);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_names_its_shard_and_no_other_and_keeps_the_rest() {
        for count in (1..=255).filter_map(NonZeroU8::new) {
            for (index, shard) in Shard::all(count).enumerate() {
                for second in 0..=255 {
                    let marked = shard.mark(u32::from_be_bytes([7, second, 8, 9]));
                    let [first, byte, third, fourth] = marked.to_be_bytes();
                    assert_eq!((first, third, fourth), (7, 8, 9));
                    assert_eq!(usize::from(byte % count.get()), index, "{count} shards");
                    assert!(shard.names(byte) && (count.get() > 1 || byte == second));
                }
            }
        }
    }
}
