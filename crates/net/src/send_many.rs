//! Many datagrams in one system call where the system does not cut a train itself.
//!
//! Called by [`crate::socket::Socket`] when segmentation offload is missing, has failed or is not wanted.
//!
//! Invariant: what is said to be taken is a number of datagrams from the first on; the error of a later one is told
//! by the next call, which begins with it.
//!
//! Source: sendmmsg(2); ip(7) and RFC 3542 6.5 for the congestion mark.

use segstream_base::endpoint::Ecn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The most datagrams of one call. More gain nothing: each costs far more than its share of the call.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const DATAGRAMS_MAX: usize = 64;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const DATAGRAMS_MAX: usize = 1;

/// Sends `datagrams`, equal pieces of `size` bytes, the last of which may be shorter, and at most
/// [`DATAGRAMS_MAX`] of them. Returns how many the kernel has taken, at least one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn send_many(
    socket: BorrowedFd<'_>,
    destination: SocketAddr,
    ecn: Option<Ecn>,
    size: usize,
    datagrams: &[u8],
) -> io::Result<usize> {
    use nix::cmsg_space;
    use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
    use std::io::IoSlice;
    use std::os::fd::AsRawFd;
    let slices: Vec<[IoSlice<'_>; 1]> = datagrams.chunks(size).take(DATAGRAMS_MAX).map(|datagram| [IoSlice::new(datagram)]).collect();
    let addresses = vec![Some(SockaddrStorage::from(destination)); slices.len()];
    let (tos, class) = (ecn.map_or(0, bits), i32::from(ecn.map_or(0, bits)));
    let is_ipv4 = destination.ip().to_canonical().is_ipv4();
    let mark = [if is_ipv4 { ControlMessage::Ipv4Tos(&tos) } else { ControlMessage::Ipv6TClass(&class) }];
    let (room, marks) = match ecn {
        Some(_) => (Some(cmsg_space!(i32)), &mark[..]),
        None => (None, &[][..]),
    };
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(slices.len(), room);
    let sent = sendmmsg(socket.as_raw_fd(), &mut headers, &slices, &addresses, marks, MsgFlags::MSG_DONTWAIT)?;
    Ok(sent.count())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn send_many(_: BorrowedFd<'_>, _: SocketAddr, _: Option<Ecn>, _: usize, _: &[u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// RFC 3168 5: the two bits of a mark.
#[cfg(any(target_os = "linux", target_os = "android"))]
const fn bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::CongestionExperienced => 3,
    }
}
