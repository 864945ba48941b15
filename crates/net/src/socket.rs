//! One UDP socket that moves many datagrams a system call and never fails for what a network may do.
//!
//! Called by the drivers and the link emulator. It never blocks but in [`Socket::wait`].
//!
//! Invariant: an error of the network (nobody listens, no route, too big) is counted and ends nothing; the
//! datagrams it concerns are dropped, as a path might lose them. What the kernel has not taken is told to the
//! caller to the byte.
//!
//! Source: udp(7) for `UDP_SEGMENT` and `UDP_GRO`, ip(7) for `IP_RECVERR`, RFC 3542 for the IPv6 options.

use crate::bind::{self, SocketConfig, SocketError, SocketWarning};
use crate::counters::{LiveCounters, SocketCounters};
use crate::receive::{BATCHES_MAX, ReceiveBatch, SINGLES_MAX};
use crate::receive_many::receive_many;
use crate::send_from::send_from;
use crate::send_many::{DATAGRAMS_MAX, send_many};
use quinn_udp::{EcnCodepoint, TransportErrorPayload, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use segstream_base::endpoint::{Ecn, Local, Transmit};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The most bytes one sending call takes: what an IPv4 packet can carry over UDP.
pub const SEND_BYTES_MAX: usize = 65_507;

/// How many error notices one call takes before it lets the caller go on.
const NOTICES_MAX: usize = 64;

/// A bound, non-blocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: socket2::Socket,
    state: UdpSocketState,
    offload: bool,
    /// Whether the system has refused to cut a batch apart.
    gso_failed: AtomicBool,
    local: SocketAddr,
    warnings: Vec<SocketWarning>,
    counters: LiveCounters,
}

/// What became of datagrams handed to [`Socket::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SendOutcome {
    /// The kernel has taken all of them.
    Sent,
    /// The send buffer is full. The first `taken_bytes` are dealt with, a whole number of datagrams; hand over
    /// the rest when the socket is writable.
    WouldBlock {
        /// Bytes that must not be handed over again.
        taken_bytes: usize,
    },
    /// Some or all were dropped because the network or the system refused them; nothing remains to be sent.
    Dropped {
        /// How many.
        datagrams: usize,
        /// Why the last of them was.
        reason: DropReason,
    },
}

/// Why datagrams were dropped on sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// No route, no host or nobody who listens.
    Unreachable,
    /// Larger than the path or the socket carries.
    TooBig,
    /// The system's own queue was full.
    QueueFull,
    /// A rule of this machine (a firewall) forbids it.
    Forbidden,
    /// The address cannot be sent to from this socket: port 0, of the other family, or link-local and without
    /// its scope.
    UnusableAddress,
    /// Another error of the system, by its number.
    Other(i32),
}

/// What to wait for besides time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// A datagram to receive.
    Readable,
    /// Room in the send buffer.
    Writable,
    /// Room in the send buffer, or a datagram.
    ReadableOrWritable,
    /// Nothing of the socket.
    Neither,
}

/// The most other descriptors that a wait can be ended by.
pub const OTHERS_MAX: usize = 2;

/// What a wait has ended with; nothing set when time was up or a signal came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// There may be datagrams.
    pub readable: bool,
    /// There is room in the send buffer; only if asked for.
    pub writable: bool,
    /// Which of the other descriptors are readable.
    pub others: [bool; OTHERS_MAX],
}

impl Socket {
    /// Opens a socket bound to `address`; port 0 takes any free port. `[::]` receives IPv4 as well, whose
    /// addresses appear as IPv4 addresses; every other IPv6 address stays with IPv6.
    ///
    /// # Errors
    ///
    /// What the system refuses, with what to do about it. Less buffer than asked for is not an error but a
    /// warning.
    pub fn bind(address: SocketAddr, config: &SocketConfig) -> Result<Self, SocketError> {
        let failed = |step| move |source| SocketError::System { address, step, source };
        let mut warnings = Vec::new();
        let socket = bind::open(address, config, &mut warnings)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(failed("set its options"))?;
        if !address.ip().is_unspecified() {
            bind::leave_out_local_address(&socket, address).map_err(failed("set its options"))?;
        }
        if !config.offload {
            bind::leave_datagrams_apart(&socket).map_err(failed("set its options"))?;
        } else if state.max_gso_segments() <= 1 {
            warnings.push(SocketWarning::NoSegmentationOffload);
        }
        if state.may_fragment() {
            warnings.push(SocketWarning::MayFragment);
        }
        if config.count_network_errors && state.enable_transport_errors(UdpSockRef::from(&socket)).is_err() {
            warnings.push(SocketWarning::NoNetworkErrors);
        }
        let local = socket.local_addr().map_err(failed("tell its address"))?;
        let local = local.as_socket().unwrap_or(address);
        Ok(Self {
            socket,
            state,
            offload: config.offload,
            gso_failed: AtomicBool::new(false),
            local,
            warnings,
            counters: LiveCounters::default(),
        })
    }

    /// The address it is bound to, with the port the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What the system granted less of than was asked for.
    pub fn warnings(&self) -> &[SocketWarning] {
        &self.warnings
    }

    /// What it has carried so far.
    pub fn counters(&self) -> SocketCounters {
        self.counters.snapshot()
    }

    /// How many datagrams one sending call takes at most. It may change while the socket is used, when a network
    /// device turns out not to support segmentation offload.
    pub fn datagrams_per_send(&self) -> usize {
        if self.has_gso() { self.state.max_gso_segments() } else { DATAGRAMS_MAX }
    }

    /// Whether the system splits a GSO batch itself.
    fn has_gso(&self) -> bool {
        self.offload && self.state.max_gso_segments() > 1 && !self.gso_failed.load(Ordering::Relaxed)
    }

    /// The address it is bound to, if that is one and not all of this host's.
    fn only_address(&self) -> Option<IpAddr> {
        Some(self.local.ip()).filter(|ip| !ip.is_unspecified())
    }

    /// Fetches what has arrived, up to one batch, and returns the number of datagrams; zero when nothing is
    /// there, or only error notices ([`ReceiveBatch::is_drained`] tells).
    ///
    /// # Errors
    ///
    /// Only what no later call could mend; never because of the network.
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        // Why not more: see the constants.
        self.receive_up_to(if self.offload { BATCHES_MAX } else { SINGLES_MAX }, batch)
    }

    /// As [`Socket::receive`], but what comes first only: the cheapest call for a busy-poll that finds nothing.
    pub(crate) fn poll(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        self.receive_up_to(if self.offload { 1 } else { SINGLES_MAX }, batch)
    }

    fn receive_up_to(&self, batches_max: usize, batch: &mut ReceiveBatch) -> io::Result<usize> {
        for _ in 0..NOTICES_MAX {
            match batch.fill(batches_max, self.only_address(), |buffers, metas| receive_many(&self.state, &self.socket, buffers, metas)) {
                Ok((datagrams, bytes)) => {
                    self.counters.receive_calls.add(1);
                    self.counters.datagrams_received.add(datagrams);
                    self.counters.bytes_received.add(bytes);
                    return Ok(datagrams);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    batch.set_drained();
                    return Ok(0);
                }
                Err(error) => match drop_reason(&error) {
                    // Why: the error was pending on the socket and belongs to something sent earlier; reading has cleared it.
                    Some(reason) => self.count_notice(reason, Errno::from_io_error(&error)),
                    None => return Err(error),
                },
            }
        }
        Ok(0)
    }

    /// Sends `datagrams`, which are equal pieces of `transmit.datagram_bytes`, the last of which may be
    /// shorter. They may be more than fit one system call.
    pub fn send(&self, transmit: &Transmit, datagrams: &[u8]) -> SendOutcome {
        let size = if transmit.datagram_bytes == 0 { datagrams.len().max(1) } else { transmit.datagram_bytes };
        let Some(destination) = self.destination(transmit.to) else {
            let datagrams = datagrams.len().div_ceil(size);
            self.counters.datagrams_dropped.add(datagrams);
            return SendOutcome::Dropped { datagrams, reason: DropReason::UnusableAddress };
        };
        let source = self.source(transmit.from, destination);
        let mut taken_bytes = 0;
        let mut dropped = 0;
        let mut outcome = SendOutcome::Sent;
        while let Some(rest) = datagrams.get(taken_bytes..).filter(|rest| !rest.is_empty()) {
            let fitting = if self.has_gso() { SEND_BYTES_MAX / size } else { usize::MAX };
            let count = fitting.clamp(1, self.datagrams_per_send().max(1));
            let (bytes, _) = rest.split_at(rest.len().min(count.saturating_mul(size)));
            let batch = GsoBatch { destination, ecn: transmit.ecn, size, bytes };
            match self.send_batch(source, &batch) {
                Ok(bytes) => taken_bytes += bytes,
                Err(SendError::Blocked) => {
                    self.counters.send_blocked.add(1);
                    return SendOutcome::WouldBlock { taken_bytes };
                }
                // Each by itself from here on: the system has taken note.
                Err(SendError::OffloadFailed) => self.counters.offload_failures.add(1),
                Err(SendError::Refused(reason)) => {
                    // Why: without offload the error is that of the first; those behind it have not been tried.
                    let refused = if self.has_gso() { bytes.len() } else { bytes.len().min(size) };
                    taken_bytes += refused;
                    let datagrams = refused.div_ceil(size);
                    dropped += datagrams;
                    self.counters.datagrams_dropped.add(datagrams);
                    outcome = SendOutcome::Dropped { datagrams: dropped, reason };
                }
            }
        }
        outcome
    }

    /// Sleeps until `interest` is met, one of `others` is readable (the first [`OTHERS_MAX`] are looked at), `timeout` has
    /// passed (`None`: never), or a signal comes. Timeouts are in nanoseconds and never end early.
    ///
    /// # Errors
    ///
    /// Only when the system lacks memory for it.
    pub fn wait(&self, timeout: Option<Duration>, interest: Interest, others: &[BorrowedFd<'_>]) -> io::Result<Readiness> {
        let events = match interest {
            Interest::Readable => PollFlags::IN,
            Interest::Writable => PollFlags::OUT,
            Interest::ReadableOrWritable => PollFlags::IN | PollFlags::OUT,
            Interest::Neither => PollFlags::empty(),
        };
        let timeout = timeout.map(|timeout| Timespec {
            // Limit: 68 years.
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX).min(i64::from(i32::MAX)),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let asked = [(self.as_fd(), events)].into_iter().chain(others.iter().map(|other| (*other, PollFlags::IN)));
        let mut asked = asked.map(|(descriptor, events)| PollFd::from_borrowed_fd(descriptor, events));
        // A descriptor asked about nothing stands in for an absent one.
        let absent = PollFd::from_borrowed_fd(self.as_fd(), PollFlags::empty());
        let mut polled: [PollFd<'_>; 1 + OTHERS_MAX] = std::array::from_fn(|_| asked.next().unwrap_or_else(|| absent.clone()));
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Readiness::default()),
            Err(refused) => return Err(refused.into()),
        }
        let [own, others @ ..] = polled.map(|polled| polled.revents());
        if own.contains(PollFlags::ERR) {
            self.take_notices();
        }
        Ok(Readiness {
            readable: own.contains(PollFlags::IN),
            writable: own.contains(PollFlags::OUT),
            others: others.map(|other| other.contains(PollFlags::IN)),
        })
    }

    /// Sends one batch in one system call; the bytes that the kernel has taken.
    fn send_batch(&self, source: Option<IpAddr>, batch: &GsoBatch<'_>) -> Result<usize, SendError> {
        let cut = batch.bytes.len() > batch.size && self.has_gso();
        // Why: a pending notice about an earlier datagram comes first, and this one has not been sent yet.
        for last in [false, true] {
            let error = match self.try_send(source, batch) {
                Ok(bytes) => {
                    self.counters.send_calls.add(1);
                    self.counters.datagrams_sent.add(bytes.div_ceil(batch.size));
                    self.counters.bytes_sent.add(bytes);
                    return Ok(bytes);
                }
                Err(error) => error,
            };
            if error.kind() == io::ErrorKind::WouldBlock {
                return Err(SendError::Blocked);
            }
            if cut && source.is_none() && is_offload_failure(&error) {
                return Err(SendError::OffloadFailed);
            }
            // Why always: a refusal of our own system leaves a notice too.
            let notices = self.take_notices();
            let reason = send_drop_reason(&error);
            // Why not by their number alone: another thread may have taken the notice whose error this call was told.
            if last || notices == 0 && reason != DropReason::Unreachable {
                return Err(SendError::Refused(reason));
            }
        }
        Err(SendError::Refused(DropReason::Other(0)))
    }

    /// Counts datagrams that were taken from an endpoint and that nobody will send.
    pub(crate) fn count_unsent(&self, datagrams: usize) {
        self.counters.datagrams_dropped.add(datagrams);
    }

    fn try_send(&self, source: Option<IpAddr>, batch: &GsoBatch<'_>) -> io::Result<usize> {
        if batch.bytes.len() > batch.size && !self.has_gso() {
            let taken = send_many(self.as_fd(), source, batch)?;
            return Ok(batch.bytes.len().min(taken * batch.size));
        }
        match source {
            Some(source) => return self.send_from(source, batch),
            None => self.state.try_send(UdpSockRef::from(&self.socket), &batch.transmit(None))?,
        }
        Ok(batch.bytes.len())
    }

    /// Sends from `source`; the bytes that the kernel has taken.
    fn send_from(&self, source: IpAddr, batch: &GsoBatch<'_>) -> io::Result<usize> {
        match send_from(&self.state, &self.socket, source, batch) {
            Err(error) if batch.bytes.len() > batch.size && is_offload_failure(&error) => {
                // Why the first alone: the error may also say that this host no longer has the source. Then this one fails too.
                let (first, _) = batch.bytes.split_at(batch.size);
                send_from(&self.state, &self.socket, source, &GsoBatch { bytes: first, ..*batch })?;
                self.gso_failed.store(true, Ordering::Relaxed);
                self.counters.offload_failures.add(1);
                Ok(batch.size)
            }
            sent => sent.map(|()| batch.bytes.len()),
        }
    }

    /// The address to send from, if the system must be told.
    fn source(&self, from: Local, destination: SocketAddr) -> Option<IpAddr> {
        if self.only_address().is_some() {
            return None;
        }
        match (from.address?, destination.ip().to_canonical()) {
            (source @ IpAddr::V4(_), IpAddr::V4(_)) => Some(source),
            // Why: from a link-local address the system sends nothing beyond the link.
            (IpAddr::V6(source), IpAddr::V6(to)) if !source.is_unicast_link_local() || to.is_unicast_link_local() => Some(source.into()),
            _ => None,
        }
    }

    /// `to` as this socket can send to it; `None` if it cannot.
    fn destination(&self, to: SocketAddr) -> Option<SocketAddr> {
        // Why: a sender can be made up with port 0. Sending to it fails as if offload were not supported, which would then
        // be given up for all peers.
        if to.port() == 0 {
            return None;
        }
        // Why: the same failure; a link-local address is nothing without the link.
        if let SocketAddr::V6(to) = to
            && to.ip().is_unicast_link_local()
            && to.scope_id() == 0
        {
            return None;
        }
        match (self.local, to.ip()) {
            (SocketAddr::V4(_), IpAddr::V4(_)) | (SocketAddr::V6(_), IpAddr::V6(_)) => Some(to),
            (SocketAddr::V4(_), IpAddr::V6(ip)) => Some(SocketAddr::new(ip.to_ipv4_mapped()?.into(), to.port())),
            (SocketAddr::V6(local), IpAddr::V4(ip)) if *local.ip() == Ipv6Addr::UNSPECIFIED => {
                Some(SocketAddrV6::new(ip.to_ipv6_mapped(), to.port(), 0, 0).into())
            }
            (SocketAddr::V6(_), IpAddr::V4(_)) => None,
        }
    }

    fn count_notice(&self, reason: DropReason, errno: Option<Errno>) {
        // Why: where notices are queued, the queue is counted, in which each stands once.
        if self.take_notices() > 0 {
            return;
        }
        match reason {
            DropReason::Unreachable => self.count_unreachable(errno == Some(Errno::CONNREFUSED)),
            DropReason::TooBig => self.counters.too_big.add(1),
            _ => self.counters.other_errors.add(1),
        }
    }

    fn count_unreachable(&self, refused: bool) {
        self.counters.unreachable.add(1);
        self.counters.refused.add(usize::from(refused));
    }

    /// Takes the error notices that wait on the socket, counts those of the network, and returns their number.
    fn take_notices(&self) -> usize {
        let mut from_network = 0;
        for _ in 0..NOTICES_MAX {
            let Ok(Some(notice)) = self.state.recv_transport_error(UdpSockRef::from(&self.socket)) else {
                break;
            };
            match notice.payload {
                TransportErrorPayload::Unreachable => self.count_unreachable(notice.raw_errno == Errno::CONNREFUSED.raw_os_error()),
                TransportErrorPayload::TooBig { .. } => self.counters.too_big.add(1),
                // Our own system's, about a datagram larger than the interface carries; the drop is counted where it was sent.
                _ if notice.raw_errno == Errno::MSGSIZE.raw_os_error() => continue,
                _ => self.counters.other_errors.add(1),
            }
            from_network += 1;
        }
        from_network
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Equal datagrams for one system call, the last of which may be shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GsoBatch<'a> {
    pub(crate) destination: SocketAddr,
    pub(crate) ecn: Option<Ecn>,
    /// The size of each.
    pub(crate) size: usize,
    pub(crate) bytes: &'a [u8],
}

impl<'a> GsoBatch<'a> {
    pub(crate) fn transmit(&self, src_ip: Option<IpAddr>) -> quinn_udp::Transmit<'a> {
        let segment_size = (self.bytes.len() > self.size).then_some(self.size);
        quinn_udp::Transmit { destination: self.destination, ecn: self.ecn.map(codepoint), contents: self.bytes, segment_size, src_ip }
    }

    /// Whether the packets are those of IPv4, whichever the socket is of.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.destination.ip().to_canonical().is_ipv4()
    }
}

enum SendError {
    Blocked,
    OffloadFailed,
    Refused(DropReason),
}

/// What of the network or the machine `error` tells; `None` when it tells of a mistake in the call.
fn drop_reason(error: &io::Error) -> Option<DropReason> {
    Some(match Errno::from_io_error(error)? {
        Errno::CONNREFUSED
        | Errno::CONNRESET
        | Errno::HOSTUNREACH
        | Errno::NETUNREACH
        | Errno::HOSTDOWN
        | Errno::NETDOWN
        | Errno::NOPROTOOPT
        | Errno::PROTO
        | Errno::TIMEDOUT => DropReason::Unreachable,
        Errno::MSGSIZE => DropReason::TooBig,
        Errno::NOBUFS | Errno::NOMEM => DropReason::QueueFull,
        Errno::ACCESS | Errno::PERM => DropReason::Forbidden,
        Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL => DropReason::UnusableAddress,
        _ => return None,
    })
}

/// Whether the system may mean that it cannot cut a batch apart.
fn is_offload_failure(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::INVAL))
}

/// Why a datagram could not be sent.
fn send_drop_reason(error: &io::Error) -> DropReason {
    match Errno::from_io_error(error) {
        // What Linux says to an address that the socket's own address rules out.
        Some(Errno::INVAL) => DropReason::UnusableAddress,
        _ => drop_reason(error).unwrap_or_else(|| DropReason::Other(error.raw_os_error().unwrap_or(0))),
    }
}

fn codepoint(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::CongestionExperienced => EcnCodepoint::Ce,
    }
}
