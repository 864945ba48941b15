//! Opening a UDP socket: its options, which of them the system may refuse, and what the user can do then.
//!
//! Called by [`crate::socket::Socket::bind`].
//!
//! Invariant: an error names the address and says what to do. If the system grants less than was requested, that is a warning and
//! not an error.
//!
//! Source: socket(7), ip(7), ipv6(7), udp(7); RFC 3493 5.3 for IPv4 over an IPv6 socket.

use rustix::io::Errno;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockAddr, Type};
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The buffers a socket asks for by default: 8 MiB, 64 ms at 1 Gbit/s.
pub const DEFAULT_BUFFER_BYTES: usize = 8 * 1024 * 1024;

/// The options of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketConfig {
    /// The receive buffer (`SO_RCVBUF`); [`DEFAULT_BUFFER_BYTES`] by default.
    pub receive_buffer_bytes: usize,
    /// The send buffer (`SO_SNDBUF`); [`DEFAULT_BUFFER_BYTES`] by default.
    pub send_buffer_bytes: usize,
    /// Whether several sockets may be bound to the same address and share what arrives (`SO_REUSEPORT`); all of them need this
    /// option. Off by default, so that a port in use is an error.
    pub share_port: bool,
    /// Whether ICMP errors are counted. On by default.
    pub count_network_errors: bool,
    /// Whether segmentation offload is used: GSO (`UDP_SEGMENT`) and GRO (`UDP_GRO`). On by default; off to measure its effect.
    pub offload: bool,
}

impl Default for SocketConfig {
    fn default() -> Self {
        Self {
            receive_buffer_bytes: DEFAULT_BUFFER_BYTES,
            send_buffer_bytes: DEFAULT_BUFFER_BYTES,
            share_port: false,
            count_network_errors: true,
            offload: true,
        }
    }
}

/// Why a socket could not be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Another socket is bound to the address.
    #[error("the UDP address {address} is already in use; stop the program that has it, or give another port (port 0 selects a free one)")]
    AddressInUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// This user may not bind the address.
    #[error("this user may not bind the UDP address {address}; give a port of 1024 or above, or run with the privilege to bind lower ones")]
    PermissionDenied {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address belongs to no interface of this machine.
    #[error("the address {} belongs to no network interface of this machine; give one that does, or 0.0.0.0 or [::] for all interfaces", .address.ip())]
    AddressNotAvailable {
        /// The requested address.
        address: SocketAddr,
    },
    /// The system lacks the address family.
    #[error("this system does not support {}, which the address {address} needs; bind an address of the other family", family_name(.address))]
    FamilyUnsupported {
        /// The requested address.
        address: SocketAddr,
    },
    /// No file descriptor is left.
    #[error("no socket can be opened for {address} because this process has too many open files; raise the limit with `ulimit -n`")]
    TooManyOpenFiles {
        /// The requested address.
        address: SocketAddr,
    },
    /// Any other error of the system.
    #[error("the UDP socket for {address} could not be set up: the operating system refused to {step}: {source}")]
    System {
        /// The requested address.
        address: SocketAddr,
        /// What the system was asked to do.
        step: &'static str,
        /// What it answered.
        source: io::Error,
    },
}

/// The system granted less than was requested. The socket works, but not as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketWarning {
    /// The receive buffer is smaller than requested.
    ReceiveBuffer {
        /// The requested size.
        asked_bytes: usize,
        /// The granted size.
        granted_bytes: usize,
    },
    /// The send buffer is smaller than requested.
    SendBuffer {
        /// The requested size.
        asked_bytes: usize,
        /// The granted size.
        granted_bytes: usize,
    },
    /// The system cannot send several datagrams in one call.
    NoSegmentationOffload,
    /// The IP layer may fragment datagrams.
    MayFragment,
    /// ICMP errors cannot be counted.
    NoNetworkErrors,
}

impl fmt::Display for SocketWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ReceiveBuffer { asked_bytes, granted_bytes } => write!(
                f,
                "The operating system grants a receive buffer of {granted_bytes} bytes instead of {asked_bytes}, so bursts may be \
                 dropped. Raise the limit with `sysctl -w net.core.rmem_max={asked_bytes}`."
            ),
            Self::SendBuffer { asked_bytes, granted_bytes } => write!(
                f,
                "The operating system grants a send buffer of {granted_bytes} bytes instead of {asked_bytes}, so sending may stall. \
                 Raise the limit with `sysctl -w net.core.wmem_max={asked_bytes}`."
            ),
            Self::NoSegmentationOffload => f.write_str(
                "The operating system has no segmentation offload (GSO: UDP_SEGMENT, Linux 4.18 or later), so sending takes more \
                 processor time.",
            ),
            Self::MayFragment => f.write_str(
                "The operating system cannot set the don't-fragment flag; give a datagram size that every link of the path \
                 carries.",
            ),
            Self::NoNetworkErrors => {
                f.write_str("The operating system does not report ICMP errors, so an unreachable peer is noticed only by a timeout.")
            }
        }
    }
}

fn family_name(address: &SocketAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

impl SocketError {
    fn from_system(address: SocketAddr, step: &'static str, source: io::Error) -> Self {
        match Errno::from_io_error(&source) {
            Some(Errno::ADDRINUSE) => Self::AddressInUse { address },
            Some(Errno::ACCESS | Errno::PERM) => Self::PermissionDenied { address },
            Some(Errno::ADDRNOTAVAIL) => Self::AddressNotAvailable { address },
            Some(Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT) => Self::FamilyUnsupported { address },
            Some(Errno::MFILE | Errno::NFILE) => Self::TooManyOpenFiles { address },
            _ => Self::System { address, step, source },
        }
    }
}

/// Opens and binds a non-blocking socket.
pub(crate) fn open(address: SocketAddr, config: &SocketConfig, warnings: &mut Vec<SocketWarning>) -> Result<socket2::Socket, SocketError> {
    let failed = |step| move |source| SocketError::from_system(address, step, source);
    let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP)).map_err(failed("open it"))?;
    socket.set_nonblocking(true).map_err(failed("make it non-blocking"))?;
    if address.is_ipv6() {
        // Why: "all addresses" means both families to people; a particular IPv6 address has nothing to do with IPv4.
        socket.set_only_v6(!address.ip().is_unspecified()).map_err(failed("choose its address families"))?;
    }
    if config.share_port {
        socket.set_reuse_port(true).map_err(failed("share its port"))?;
    }
    enlarge_buffers(&socket, config, warnings).map_err(failed("enlarge its buffers"))?;
    socket.bind(&SockAddr::from(address)).map_err(failed("bind it"))?;
    Ok(socket)
}

fn enlarge_buffers(socket: &socket2::Socket, config: &SocketConfig, warnings: &mut Vec<SocketWarning>) -> io::Result<()> {
    let asked_bytes = config.receive_buffer_bytes;
    force_buffer_bytes(
        asked_bytes,
        |bytes| set_receive_buffer_force(socket, bytes),
        |bytes| sockopt::set_socket_recv_buffer_size(socket, bytes),
    )?;
    let granted_bytes = usable(sockopt::socket_recv_buffer_size(socket)?);
    if granted_bytes < asked_bytes {
        warnings.push(SocketWarning::ReceiveBuffer { asked_bytes, granted_bytes });
    }
    let asked_bytes = config.send_buffer_bytes;
    force_buffer_bytes(
        asked_bytes,
        |bytes| set_send_buffer_force(socket, bytes),
        |bytes| sockopt::set_socket_send_buffer_size(socket, bytes),
    )?;
    let granted_bytes = usable(sockopt::socket_send_buffer_size(socket)?);
    if granted_bytes < asked_bytes {
        warnings.push(SocketWarning::SendBuffer { asked_bytes, granted_bytes });
    }
    Ok(())
}

/// Sets a buffer to `bytes` above the system's limit, which needs a privilege; if that is refused, within the limit.
fn force_buffer_bytes(
    bytes: usize,
    forced: impl FnOnce(usize) -> Result<(), Errno>,
    limited: impl FnOnce(usize) -> Result<(), Errno>,
) -> io::Result<()> {
    // Limit: the kernel doubles the value, which has 32 bits.
    let bytes = bytes.min(i32::MAX as usize / 2);
    if forced(bytes).is_ok() {
        return Ok(());
    }
    match limited(bytes) {
        // Why: some systems refuse a value above the limit instead of granting less; then there is a warning.
        Ok(()) | Err(Errno::NOBUFS) => Ok(()),
        Err(refused) => Err(refused.into()),
    }
}

/// Disables the control message with the local address of each batch, which `quinn-udp` enables: this socket has one address only.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn disable_pktinfo(socket: &socket2::Socket, address: SocketAddr) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    if address.is_ipv4() {
        setsockopt(socket, sockopt::Ipv4PacketInfo, &false)?;
    } else {
        setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &false)?;
    }
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn disable_pktinfo(_: &socket2::Socket, _: SocketAddr) -> io::Result<()> {
    Ok(())
}

/// Disables GRO, which `quinn-udp` enables.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn disable_gro(socket: &socket2::Socket) -> io::Result<()> {
    Ok(nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::UdpGroSegment, &false)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn disable_gro(_: &socket2::Socket) -> io::Result<()> {
    Ok(())
}

/// The part of a buffer that data can use: Linux reports twice the requested size, to allow for overhead.
fn usable(reported_bytes: usize) -> usize {
    if cfg!(any(target_os = "linux", target_os = "android")) { reported_bytes / 2 } else { reported_bytes }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
use sockopt::{set_socket_recv_buffer_size_force as set_receive_buffer_force, set_socket_send_buffer_size_force as set_send_buffer_force};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_receive_buffer_force(_: &socket2::Socket, _: usize) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_send_buffer_force(_: &socket2::Socket, _: usize) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}
