//! One UDP socket that moves many datagrams per system call. Errors of the network never make it fail.
//!
//! Called by the drivers and the link emulator. Only [`Socket::wait`] blocks.
//!
//! Invariant: an error of the network (port unreachable, no route, too big) is counted and is not fatal. The datagrams it concerns
//! are dropped, as a path might lose them. The caller gets the exact number of bytes that the kernel has taken.
//!
//! Source: udp(7) for `UDP_SEGMENT` and `UDP_GRO`, ip(7) for `IP_RECVERR`, RFC 3542 for the IPv6 options.

use crate::bind::{self, SocketConfig, SocketError, SocketWarning};
use crate::counters::{LiveCounters, SocketCounters};
use crate::receive::{BATCHES_MAX, BUFFERS_MAX, ReceiveBatch};
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

/// The maximum number of bytes in one sending call: the largest UDP payload of an IPv4 packet.
pub const SEND_BYTES_MAX: usize = 65_507;

/// The maximum number of entries that one call reads from the socket's error queue.
const ERROR_QUEUE_READS_MAX: usize = 64;

/// A bound, non-blocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: socket2::Socket,
    state: UdpSocketState,
    offload: bool,
    /// Whether GSO has failed.
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
    /// The send buffer is full. The first `taken_bytes`, a whole number of datagrams, are done; pass the rest when the socket is
    /// writable.
    WouldBlock {
        /// Bytes that must not be passed again.
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
    /// No route, no host, or no program listens on the port.
    Unreachable,
    /// Larger than the path or the socket carries.
    TooBig,
    /// A queue of the system was full.
    QueueFull,
    /// A firewall rule of this machine forbids it.
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

/// The maximum number of other descriptors in a wait.
pub const OTHERS_MAX: usize = 2;

/// How a wait has ended; nothing is set after a timeout or a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// There may be datagrams.
    pub readable: bool,
    /// There is room in the send buffer; set only if that was in the interest.
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
    /// If the system refuses it; the error says what to do. A smaller buffer than requested is a warning and not an error.
    pub fn bind(address: SocketAddr, config: &SocketConfig) -> Result<Self, SocketError> {
        let failed = |step| move |source| SocketError::System { address, step, source };
        let mut warnings = Vec::new();
        let socket = bind::open(address, config, &mut warnings)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(failed("set its options"))?;
        if !address.ip().is_unspecified() {
            bind::disable_pktinfo(&socket, address).map_err(failed("set its options"))?;
        }
        if !config.offload {
            bind::disable_gro(&socket).map_err(failed("set its options"))?;
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

    /// Where the system granted less than was requested.
    pub fn warnings(&self) -> &[SocketWarning] {
        &self.warnings
    }

    /// The counters so far.
    pub fn counters(&self) -> SocketCounters {
        self.counters.snapshot()
    }

    /// The maximum number of datagrams in one sending call. It may become smaller when a network device turns out not to support
    /// GSO.
    pub fn datagrams_per_send(&self) -> usize {
        if self.has_gso() { self.state.max_gso_segments() } else { DATAGRAMS_MAX }
    }

    /// Whether GSO is available and enabled.
    fn has_gso(&self) -> bool {
        self.offload && self.state.max_gso_segments() > 1 && !self.gso_failed.load(Ordering::Relaxed)
    }

    /// The address it is bound to, unless it is bound to all addresses of this host.
    fn only_address(&self) -> Option<IpAddr> {
        Some(self.local.ip()).filter(|ip| !ip.is_unspecified())
    }

    /// Receives up to one batch and returns the number of datagrams; zero if there are none, or only ICMP errors
    /// ([`ReceiveBatch::is_drained`] tells which).
    ///
    /// # Errors
    ///
    /// Only failures of the system that a retry cannot solve; never because of the network.
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        // Why these limits: see the constants.
        self.receive_up_to(if self.offload { BATCHES_MAX } else { BUFFERS_MAX }, batch)
    }

    /// As [`Socket::receive`], but only the first datagrams: the cheapest call for a busy-poll that finds nothing.
    pub(crate) fn poll(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        self.receive_up_to(if self.offload { 1 } else { BUFFERS_MAX }, batch)
    }

    fn receive_up_to(&self, batches_max: usize, batch: &mut ReceiveBatch) -> io::Result<usize> {
        for _ in 0..ERROR_QUEUE_READS_MAX {
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
                    // Why: the error was pending on the socket and belongs to an earlier datagram; this read has cleared it.
                    Some(reason) => self.count_icmp_error(reason, Errno::from_io_error(&error)),
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
                // From here on without GSO.
                Err(SendError::OffloadFailed) => self.counters.offload_failures.add(1),
                Err(SendError::Refused(reason)) => {
                    // Why: without GSO the error is that of the first datagram; the others have not been tried.
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

    /// Sleeps until `interest` is met, one of `others` is readable (the first [`OTHERS_MAX`] count), `timeout` has passed (`None`:
    /// no timeout), or a signal arrives. Timeouts are in nanoseconds and never end early.
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
        // A descriptor without events stands in for an absent one.
        let absent = PollFd::from_borrowed_fd(self.as_fd(), PollFlags::empty());
        let mut polled: [PollFd<'_>; 1 + OTHERS_MAX] = std::array::from_fn(|_| asked.next().unwrap_or_else(|| absent.clone()));
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Readiness::default()),
            Err(refused) => return Err(refused.into()),
        }
        let [own, others @ ..] = polled.map(|polled| polled.revents());
        if own.contains(PollFlags::ERR) {
            self.drain_error_queue();
        }
        Ok(Readiness {
            readable: own.contains(PollFlags::IN),
            writable: own.contains(PollFlags::OUT),
            others: others.map(|other| other.contains(PollFlags::IN)),
        })
    }

    /// Sends one batch in one system call. Returns the bytes that the kernel has taken.
    fn send_batch(&self, source: Option<IpAddr>, batch: &GsoBatch<'_>) -> Result<usize, SendError> {
        let cut = batch.bytes.len() > batch.size && self.has_gso();
        // Why: a pending error of an earlier datagram is returned first, and then this one has not been sent.
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
            // Why always: a refusal by our own kernel leaves an entry in the error queue too.
            let notices = self.drain_error_queue();
            let reason = send_drop_reason(&error);
            // Why not by the number of entries alone: another thread may have read the entry of the error that this call returned.
            if last || notices == 0 && reason != DropReason::Unreachable {
                return Err(SendError::Refused(reason));
            }
        }
        Err(SendError::Refused(DropReason::Other(0)))
    }

    /// Counts datagrams that were taken from an endpoint and will not be sent.
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

    /// Sends from `source`. Returns the bytes that the kernel has taken.
    fn send_from(&self, source: IpAddr, batch: &GsoBatch<'_>) -> io::Result<usize> {
        match send_from(&self.state, &self.socket, source, batch) {
            Err(error) if batch.bytes.len() > batch.size && is_offload_failure(&error) => {
                // Why only the first: the error may also mean that this host no longer has the source address. Then this call fails too.
                let (first, _) = batch.bytes.split_at(batch.size);
                send_from(&self.state, &self.socket, source, &GsoBatch { bytes: first, ..*batch })?;
                self.gso_failed.store(true, Ordering::Relaxed);
                self.counters.offload_failures.add(1);
                Ok(batch.size)
            }
            sent => sent.map(|()| batch.bytes.len()),
        }
    }

    /// The source address, if the system must be told one.
    fn source(&self, from: Local, destination: SocketAddr) -> Option<IpAddr> {
        if self.only_address().is_some() {
            return None;
        }
        match (from.address?, destination.ip().to_canonical()) {
            (source @ IpAddr::V4(_), IpAddr::V4(_)) => Some(source),
            // Why: the system sends nothing beyond the link from a link-local address.
            (IpAddr::V6(source), IpAddr::V6(to)) if !source.is_unicast_link_local() || to.is_unicast_link_local() => Some(source.into()),
            _ => None,
        }
    }

    /// `to` in the form that this socket can send to; `None` if it cannot.
    fn destination(&self, to: SocketAddr) -> Option<SocketAddr> {
        // Why: a forged source address can have port 0. Sending to it fails as if GSO were not supported, which would then be disabled
        // for all peers.
        if to.port() == 0 {
            return None;
        }
        // Why: the same failure; a link-local address needs its scope.
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

    fn count_icmp_error(&self, reason: DropReason, errno: Option<Errno>) {
        // Why: where the system has an error queue, its entries are counted; each error is in it once.
        if self.drain_error_queue() > 0 {
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

    /// Reads the socket's error queue, counts the ICMP errors, and returns the number of entries.
    fn drain_error_queue(&self) -> usize {
        let mut from_network = 0;
        for _ in 0..ERROR_QUEUE_READS_MAX {
            let Ok(Some(notice)) = self.state.recv_transport_error(UdpSockRef::from(&self.socket)) else {
                break;
            };
            match notice.payload {
                TransportErrorPayload::Unreachable => self.count_unreachable(notice.raw_errno == Errno::CONNREFUSED.raw_os_error()),
                TransportErrorPayload::TooBig { .. } => self.counters.too_big.add(1),
                // From our own kernel: the datagram exceeds the MTU of the interface. The drop is counted where it was sent.
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

    /// Whether the packets are IPv4, whatever the socket is.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.destination.ip().to_canonical().is_ipv4()
    }
}

enum SendError {
    Blocked,
    OffloadFailed,
    Refused(DropReason),
}

/// The drop reason for an error of the network or the machine; `None` for a mistake in the call.
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

/// Whether the error may mean that GSO is not supported.
fn is_offload_failure(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::INVAL))
}

/// Why a datagram could not be sent.
fn send_drop_reason(error: &io::Error) -> DropReason {
    match Errno::from_io_error(error) {
        // What Linux returns for an address that the socket's own address rules out.
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
