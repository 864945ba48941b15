//! Many datagrams in one system call (sendmmsg) where GSO is not available.
//!
//! Called by [`crate::socket::Socket`] when GSO is missing, has failed or is disabled.
//!
//! Invariant: the returned number counts datagrams from the first on. The error of a later datagram is returned by the next call,
//! which begins with that datagram.
//!
//! Source: sendmmsg(2); ip(7) and RFC 3542 6.5 for the ECN bits.

use crate::socket::GsoBatch;
use segstream_base::endpoint::Ecn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

/// The maximum number of datagrams in one call. More gain nothing: each costs far more than its share of the call.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const DATAGRAMS_MAX: usize = 64;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const DATAGRAMS_MAX: usize = 1;

/// Sends at most [`DATAGRAMS_MAX`] datagrams of `batch` from `source`; without one the system chooses the address. Returns how
/// many the kernel has taken, at least one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn send_many(socket: BorrowedFd<'_>, source: Option<IpAddr>, batch: &GsoBatch<'_>) -> io::Result<usize> {
    use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
    use nix::{cmsg_space, libc};
    use std::io::IoSlice;
    use std::os::fd::AsRawFd;
    let slices: Vec<[IoSlice<'_>; 1]> =
        batch.bytes.chunks(batch.size).take(DATAGRAMS_MAX).map(|datagram| [IoSlice::new(datagram)]).collect();
    let addresses = vec![Some(SockaddrStorage::from(batch.destination)); slices.len()];
    let tos = batch.ecn.map_or(0, Ecn::bits);
    let class = i32::from(tos);
    let (v4, v6) = match source {
        Some(IpAddr::V4(source)) => (Some(in_pktinfo(source)), None),
        Some(IpAddr::V6(source)) => (None, Some(in6_pktinfo(source))),
        None => (None, None),
    };
    let mark = if batch.is_ipv4() { ControlMessage::Ipv4Tos(&tos) } else { ControlMessage::Ipv6TClass(&class) };
    let mark = batch.ecn.map(|_| mark);
    let from = v4.as_ref().map(ControlMessage::Ipv4PacketInfo).or(v6.as_ref().map(ControlMessage::Ipv6PacketInfo));
    let messages: Vec<ControlMessage<'_>> = mark.into_iter().chain(from).collect();
    // Why exact: the kernel would parse spare bytes as one more message and refuse it.
    let room = match (batch.ecn, source) {
        (Some(_), Some(IpAddr::V4(_))) => Some(cmsg_space!(i32, libc::in_pktinfo)),
        (Some(_), Some(IpAddr::V6(_))) => Some(cmsg_space!(i32, libc::in6_pktinfo)),
        (Some(_), None) => Some(cmsg_space!(i32)),
        (None, Some(IpAddr::V4(_))) => Some(cmsg_space!(libc::in_pktinfo)),
        (None, Some(IpAddr::V6(_))) => Some(cmsg_space!(libc::in6_pktinfo)),
        (None, None) => None,
    };
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(slices.len(), room);
    let sent = sendmmsg(socket.as_raw_fd(), &mut headers, &slices, &addresses, &messages, MsgFlags::MSG_DONTWAIT)?;
    Ok(sent.count())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn send_many(_: BorrowedFd<'_>, _: Option<IpAddr>, _: &GsoBatch<'_>) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The control message that sets the source address of an IPv4 datagram.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn in_pktinfo(source: Ipv4Addr) -> nix::libc::in_pktinfo {
    use nix::libc::{in_addr, in_pktinfo};
    let source = in_addr { s_addr: u32::from_ne_bytes(source.octets()) };
    in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: in_addr { s_addr: 0 } }
}

/// The control message that sets the source address of an IPv6 datagram.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn in6_pktinfo(source: Ipv6Addr) -> nix::libc::in6_pktinfo {
    use nix::libc::{in6_addr, in6_pktinfo};
    in6_pktinfo { ipi6_ifindex: 0, ipi6_addr: in6_addr { s6_addr: source.octets() } }
}
