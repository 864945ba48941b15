//! The receive buffers: a few large ones, each holding a GRO batch of datagrams of one sender.
//!
//! Filled by [`crate::socket::Socket::receive`], read by the drivers and the link emulator.
//!
//! Invariant: no copy is made; a datagram is borrowed from where the kernel has put it.
//!
//! Source: udp(7), `UDP_GRO`: the kernel joins datagrams of one sender and one size, the last of which may be
//! shorter.

use crate::clock::{Clock, KernelTime};
use quinn_udp::{EcnCodepoint, RecvMeta};
use segstream_base::Instant;
use segstream_base::endpoint::{Arrival, Ecn, Local};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The maximum number of GRO batches in one receiving call. Eight of 64 KiB fill a fast cache; more gain nothing.
pub const BATCHES_MAX: usize = 8;

/// The number of buffers: the maximum number of datagrams in one receiving call where the kernel does not join them.
pub(crate) const BUFFERS_MAX: usize = 32;

/// The maximum size of a GRO batch: the kernel never joins more than the length field of an IP packet can express.
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// The distance between two buffers. Why not their size: buffers a power of two apart share a few sets of every cache.
const STRIDE_BYTES: usize = BATCH_BYTES_MAX + 21 * 64;

/// The datagrams of one GRO batch, one behind the other.
#[derive(Debug)]
pub struct GroBatch<'a> {
    /// All of them.
    pub bytes: &'a mut [u8],
    /// The length of each but the last, which may be shorter; at least 1.
    pub datagram_bytes: usize,
}

/// Reusable buffers for one receiving system call.
#[derive(Debug)]
pub struct ReceiveBatch {
    clock: Clock,
    buffer: Box<[u8]>,
    metas: [RecvMeta; BUFFERS_MAX],
    filled: usize,
    /// How many buffers the last call could fill.
    most: usize,
    time: KernelTime,
    /// The address of the socket the batch came from, if it has one only.
    only_address: Option<IpAddr>,
    drained: bool,
}

impl ReceiveBatch {
    /// Empty buffers (2 MiB, of which the system allocates what is used). Receive times are on `clock`.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            buffer: vec![0; BUFFERS_MAX * STRIDE_BYTES].into_boxed_slice(),
            metas: [RecvMeta::default(); BUFFERS_MAX],
            filled: 0,
            most: BUFFERS_MAX,
            time: clock.kernel_time(None),
            only_address: None,
            drained: false,
        }
    }

    /// When the batch was received.
    pub fn now(&self) -> Instant {
        self.time.now()
    }

    /// How many datagrams the last call has received.
    pub fn datagram_count(&self) -> usize {
        self.metas.iter().take(self.filled).map(|meta| meta.len.div_ceil(meta.stride.max(1))).sum()
    }

    /// Whether the last call found the socket empty, so that the caller may wait for readiness.
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    /// Whether the last call filled all buffers, so that there are probably more datagrams.
    pub fn is_full(&self) -> bool {
        self.filled == self.most
    }

    /// The GRO batches of the last call in order of arrival. A batch is of one sender and has one receive time, that of its first
    /// datagram. Empty datagrams are left out.
    pub fn gro_batches(&mut self) -> impl Iterator<Item = (Arrival, GroBatch<'_>)> {
        let (time, only_address) = (self.time, self.only_address);
        let metas = self.metas.iter().take(self.filled);
        self.buffer.chunks_exact_mut(STRIDE_BYTES).zip(metas).map(move |(buffer, meta)| {
            let to = Local { address: only_address.or_else(|| local_unicast(meta.dst_ip)), interface: meta.interface_index };
            let received = time.received(meta.timestamp);
            let arrival = Arrival { from: unmap_ipv4(meta.addr), to, ecn: meta.ecn.map(ecn), received };
            let length = meta.len.min(BATCH_BYTES_MAX);
            let (filled, _) = buffer.split_at_mut(length);
            (arrival, GroBatch { bytes: filled, datagram_bytes: meta.stride.max(1) })
        })
    }

    /// The datagrams of all GRO batches, each with its sender and its receive time.
    pub fn datagrams(&mut self) -> impl Iterator<Item = (&mut [u8], Arrival)> {
        self.gro_batches().flat_map(|(arrival, gro)| gro.bytes.chunks_mut(gro.datagram_bytes).map(move |datagram| (datagram, arrival)))
    }

    /// Fills at most `most` buffers by `receive`, which returns how many it has filled. The socket is bound to `only_address`, or to
    /// all addresses of the host. Returns the number of datagrams and of their bytes.
    pub(crate) fn fill(
        &mut self,
        most: usize,
        only_address: Option<IpAddr>,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<(usize, usize)> {
        self.filled = 0;
        self.drained = false;
        self.only_address = only_address;
        self.most = most.min(BUFFERS_MAX);
        let most = self.most;
        let mut buffers = self.buffer.chunks_exact_mut(STRIDE_BYTES).map(|buffer| &mut buffer[..BATCH_BYTES_MAX]).take(most);
        let mut slices: [IoSliceMut<'_>; BUFFERS_MAX] = std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        let filled = receive(&mut slices[..most], &mut self.metas[..most])?;
        self.filled = filled.min(self.most);
        self.time = self.clock.kernel_time(Some(self.time));
        let metas = self.metas.iter().take(self.filled);
        Ok(metas.fold((0, 0), |(datagrams, bytes), meta| (datagrams + meta.len.div_ceil(meta.stride.max(1)), bytes + meta.len)))
    }

    /// Notes that the socket was found empty.
    pub(crate) fn set_drained(&mut self) {
        self.filled = 0;
        self.drained = true;
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4, so that an endpoint knows a peer by one address only (RFC 4291 2.5.5.2).
fn unmap_ipv4(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        // Why unchanged: a link-local address needs its scope.
        IpAddr::V6(_) => address,
    }
}

/// The local address a datagram was sent to, if it is unicast and so can be answered from.
fn local_unicast(address: Option<IpAddr>) -> Option<IpAddr> {
    let is_ours = |ip: &IpAddr| !ip.is_multicast() && !ip.is_unspecified() && *ip != IpAddr::V4(Ipv4Addr::BROADCAST);
    address.map(|ip| ip.to_canonical()).filter(is_ours)
}

fn ecn(codepoint: EcnCodepoint) -> Ecn {
    match codepoint {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::CongestionExperienced,
    }
}
