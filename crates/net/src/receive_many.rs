//! Many GRO batches in one system call, each with its control messages.
//!
//! Called by [`crate::socket::Socket`].
//!
//! Why not `quinn-udp`, which sets the socket options: version 0.6.3 has 96 bytes for the control messages of a batch. The receive
//! timestamp (32), the datagram size (24), the local address (32, or 40 over IPv6) and the ECN bits (24) need more. The kernel
//! then omits the last ones: the ECN bits over IPv6, size and ECN bits over IPv4.
//!
//! Invariant: nothing is allocated, and only as many headers are written as there are buffers.
//!
//! Source: recvmmsg(2), cmsg(3); ip(7) for `IP_PKTINFO`, RFC 3542 6.2 for `IPV6_PKTINFO`.
//!
//! Limit: Linux. Elsewhere `quinn-udp` receives, and one datagram a call.

use quinn_udp::{RecvMeta, UdpSocketState};
use std::io::{self, IoSliceMut};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn receive_many(
    state: &UdpSocketState,
    socket: &socket2::Socket,
    buffers: &mut [IoSliceMut<'_>],
    metas: &mut [RecvMeta],
) -> io::Result<usize> {
    state.recv(quinn_udp::UdpSockRef::from(socket), buffers, metas)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::receive_many;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code)]
mod linux {
    use super::{IoSliceMut, RecvMeta, UdpSocketState, io};
    use crate::receive::BUFFERS_MAX;
    use nix::libc;
    use quinn_udp::EcnCodepoint;
    use std::mem::{self, MaybeUninit};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
    use std::os::fd::AsRawFd;
    use std::ptr;

    /// Room for the control messages of one batch, which take 120 bytes.
    #[derive(Clone, Copy)]
    #[repr(C, align(8))]
    struct Control([u8; 192]);

    /// Fills `buffers` with one GRO batch each and `metas` with their control messages. Returns the number of batches.
    pub(crate) fn receive_many(
        _: &UdpSocketState,
        socket: &socket2::Socket,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> io::Result<usize> {
        let mut names = [MaybeUninit::<libc::sockaddr_in6>::uninit(); BUFFERS_MAX];
        let mut controls = [MaybeUninit::<Control>::uninit(); BUFFERS_MAX];
        let mut headers = [MaybeUninit::<libc::mmsghdr>::uninit(); BUFFERS_MAX];
        let count = buffers.len().min(metas.len()).min(BUFFERS_MAX);
        for (((buffer, name), control), header) in buffers.iter_mut().zip(&mut names).zip(&mut controls).zip(&mut headers).take(count) {
            // SAFETY: both are plain integers and pointers, for which zero is a valid value.
            let (name, header) = unsafe { (name.write(mem::zeroed()), header.write(mem::zeroed())) };
            let header = &mut header.msg_hdr;
            header.msg_name = ptr::from_mut(name).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in6>() as _;
            // An `IoSliceMut` is an `iovec` in memory (its documentation).
            header.msg_iov = ptr::from_mut(buffer).cast();
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        let received = loop {
            // SAFETY: the first `count` headers are written; name, buffer and control of each are alive and borrowed exclusively.
            let received = unsafe {
                libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr().cast(), count as _, 0, ptr::null_mut::<libc::timespec>())
            };
            match usize::try_from(received) {
                Ok(received) => break received.min(count),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        };
        for ((meta, name), header) in metas.iter_mut().zip(&names).zip(&headers).take(received) {
            // SAFETY: the first `count` of both are written, and `received` is not greater.
            let (name, header) = unsafe { (name.assume_init_ref(), header.assume_init_ref()) };
            *meta = RecvMeta::default();
            meta.len = header.msg_len as usize;
            meta.stride = meta.len;
            if let Some(address) = address(name) {
                meta.addr = address;
            }
            read_control(&header.msg_hdr, meta);
        }
        Ok(received)
    }

    fn address(name: &libc::sockaddr_in6) -> Option<SocketAddr> {
        match libc::c_int::from(name.sin6_family) {
            libc::AF_INET => {
                // SAFETY: the family says that this is a `sockaddr_in`, which is the smaller of the two.
                let name = unsafe { ptr::from_ref(name).cast::<libc::sockaddr_in>().read_unaligned() };
                Some(SocketAddrV4::new(ipv4(name.sin_addr), u16::from_be(name.sin_port)).into())
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(ip, u16::from_be(name.sin6_port), name.sin6_flowinfo, name.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    fn ipv4(address: libc::in_addr) -> Ipv4Addr {
        Ipv4Addr::from(address.s_addr.to_ne_bytes())
    }

    fn read_control(header: &libc::msghdr, meta: &mut RecvMeta) {
        // SAFETY: the kernel has written the first `msg_controllen` bytes of the control buffer, as whole messages.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !next.is_null() {
            read_message(next, meta);
            // SAFETY: as above; `next` is one of them.
            next = unsafe { libc::CMSG_NXTHDR(header, next) };
        }
    }

    /// Reads one control message.
    fn read_message(at: *const libc::cmsghdr, meta: &mut RecvMeta) {
        // SAFETY: the caller's `at` is a message that the kernel has written.
        let message = unsafe { at.read_unaligned() };
        match (message.cmsg_level, message.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                meta.timestamp = payload::<libc::timespec>(at)
                    .and_then(|time| Some(std::time::Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?)));
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                if let Some(size) = payload::<libc::c_int>(at).and_then(|size| usize::try_from(size).ok()) {
                    meta.stride = size;
                }
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => meta.ecn = payload::<u8>(at).and_then(EcnCodepoint::from_bits),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                meta.ecn = payload::<libc::c_int>(at).and_then(|class| EcnCodepoint::from_bits(class as u8));
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                if let Some(info) = payload::<libc::in_pktinfo>(at) {
                    // Why this one of the two: for a broadcast it is the address to answer from.
                    meta.dst_ip = Some(IpAddr::V4(ipv4(info.ipi_spec_dst)));
                    meta.interface_index = u32::try_from(info.ipi_ifindex).ok();
                }
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                if let Some(info) = payload::<libc::in6_pktinfo>(at) {
                    meta.dst_ip = Some(IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr)));
                    #[allow(clippy::unnecessary_cast)]
                    let interface = info.ipi6_ifindex as u32;
                    meta.interface_index = Some(interface);
                }
            }
            _ => {}
        }
    }

    /// What a control message carries; `None` if it was cut off.
    fn payload<T: Copy>(at: *const libc::cmsghdr) -> Option<T> {
        // SAFETY: `at` is a message that the kernel has written, and its length says that a `T` is in it. Each kind of message that is
        // read has a payload of plain integers.
        unsafe {
            // Why the cast: the length has 32 bits in musl.
            #[allow(clippy::unnecessary_cast)]
            let whole = at.read_unaligned().cmsg_len as usize >= libc::CMSG_LEN(size_of::<T>() as _) as usize;
            whole.then(|| libc::CMSG_DATA(at).cast::<T>().read_unaligned())
        }
    }
}
