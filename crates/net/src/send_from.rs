//! Sending from a chosen source address, for a socket that is bound to all addresses of the host.
//!
//! Called by [`crate::socket::Socket`] when a transmission names the local address it leaves from.
//!
//! Why not `quinn-udp`: the kernel refuses a source address that this host no longer has with `EINVAL`, which also means that
//! segmentation offload is missing. `quinn-udp` would then disable offload and ECN for all peers.
//!
//! Invariant: nothing is allocated. The routing table chooses the interface (RFC 1122 3.3.4.2); for a link-local destination its
//! scope does.
//!
//! Source: sendmsg(2), udp(7) for `UDP_SEGMENT`, ip(7) for `IP_PKTINFO`, RFC 3542 6.2 for `IPV6_PKTINFO`.
//!
//! Limit: Linux. Elsewhere `quinn-udp` sends.

use crate::socket::GsoBatch;
use quinn_udp::UdpSocketState;
use std::io;
use std::net::IpAddr;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn send_from(state: &UdpSocketState, socket: &socket2::Socket, source: IpAddr, batch: &GsoBatch<'_>) -> io::Result<()> {
    state.try_send(quinn_udp::UdpSockRef::from(socket), &batch.transmit(Some(source)))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::send_from;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code)]
mod linux {
    use super::{GsoBatch, IpAddr, UdpSocketState, io};
    use crate::send_many::{in_pktinfo, in6_pktinfo};
    use nix::libc;
    use segstream_base::endpoint::Ecn;
    use std::mem;
    use std::os::fd::AsRawFd;

    /// Room for the ECN bits (24 bytes), the datagram size (24) and the source (32, or 40 over IPv6).
    const CONTROL_BYTES: usize = 96;

    #[repr(C, align(8))]
    struct Control([u8; CONTROL_BYTES]);

    /// Control messages being written one after the other.
    struct Messages<'a> {
        header: &'a libc::msghdr,
        /// Where the next one goes; null when the buffer is full.
        next: *mut libc::cmsghdr,
        bytes: usize,
    }

    impl Messages<'_> {
        /// Appends a message. `T` is the plain type that the system defines for `kind`.
        fn push<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
            // SAFETY: plain arithmetic.
            let (whole, space) = unsafe { (libc::CMSG_LEN(size_of::<T>() as _), libc::CMSG_SPACE(size_of::<T>() as _) as usize) };
            assert!(!self.next.is_null() && self.bytes + space <= CONTROL_BYTES, "the three messages fit the buffer");
            // SAFETY: `next` is in the control buffer, which has `space` bytes left there.
            unsafe {
                (*self.next).cmsg_level = level;
                (*self.next).cmsg_type = kind;
                (*self.next).cmsg_len = whole as _;
                libc::CMSG_DATA(self.next).cast::<T>().write_unaligned(value);
                self.next = libc::CMSG_NXTHDR(self.header, self.next);
            }
            self.bytes += space;
        }
    }

    /// Sends a batch in one system call.
    pub(crate) fn send_from(_: &UdpSocketState, socket: &socket2::Socket, source: IpAddr, batch: &GsoBatch<'_>) -> io::Result<()> {
        let destination = socket2::SockAddr::from(batch.destination);
        let mut slice = libc::iovec { iov_base: batch.bytes.as_ptr().cast_mut().cast(), iov_len: batch.bytes.len() };
        let mut control = Control([0; CONTROL_BYTES]);
        // SAFETY: plain integers and pointers, for which zero is a valid value.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = destination.as_ptr().cast_mut().cast();
        header.msg_namelen = destination.len();
        header.msg_iov = &raw mut slice;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: the control buffer is as long as the header says.
        let mut messages = Messages { next: unsafe { libc::CMSG_FIRSTHDR(&raw const header) }, header: &header, bytes: 0 };
        match (batch.ecn.map(Ecn::bits), batch.is_ipv4()) {
            (Some(mark), true) => messages.push(libc::IPPROTO_IP, libc::IP_TOS, libc::c_int::from(mark)),
            (Some(mark), false) => messages.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::c_int::from(mark)),
            (None, _) => {}
        }
        if batch.bytes.len() > batch.size {
            messages.push(libc::SOL_UDP, libc::UDP_SEGMENT, batch.size as u16);
        }
        match source {
            IpAddr::V4(source) => messages.push(libc::IPPROTO_IP, libc::IP_PKTINFO, in_pktinfo(source)),
            IpAddr::V6(source) => messages.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, in6_pktinfo(source)),
        }
        header.msg_controllen = messages.bytes as _;
        loop {
            // SAFETY: name, buffer and control are alive, are as long as the header says, and are only read.
            if unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, 0) } >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
