//! A TUN device: the interface at one end, from which the relay reads packets and to which it writes them.
//!
//! Called by the relay.
//!
//! Source: tuntap.rst, netdevice(7), ip-sysctl.rst; the tenth and later columns of `/proc/net/dev` (proc_net(5)).
//!
//! Invariant: only the packets of programs cross an IPv4 link. IPv6 autoconfiguration is disabled, because its packets would shift
//! the numbers of the packets on the path.
//!
//! Invariant: the interface disappears with the program, however that ends.

use super::config::{TunConfig, TunError};
use super::namespace::{Namespace, refused};
use super::offload::{ReadBuffers, WriteBatch};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tun_rs::{DeviceBuilder, SyncDevice};

/// The transmit queue of the interface, which the relay reads: 10,000 packets, 240 ms of full ones at 500 Mbit/s.
const TX_QUEUE_PACKETS: u32 = 10_000;

/// The kernel replaces `%d` by the first free number.
const NAME: &str = "segstream%d";

/// How long duplicate address detection may take. It takes a millisecond, on a busy machine longer.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

/// The interface at one end.
pub(super) struct Device {
    tun: SyncDevice,
    name: String,
    /// The open interface table of the device's namespace; it stays valid when another namespace reads it.
    table: Option<File>,
}

/// The outcome of writing packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The kernel has taken them.
    Taken,
    /// The kernel had no room for them.
    NoRoom,
    /// The kernel has refused them.
    Refused,
}

impl Device {
    /// Creates the interface in `namespace` and brings it up.
    pub(super) fn open(namespace: &Namespace, address: IpAddr, prefix: u8) -> Result<Self, TunError> {
        namespace.inside(|| open_here(namespace.name(), address, prefix))?
    }

    /// The name of the interface.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Reads what the kernel hands over at once: one packet, or several of one flow. Each is given to `take`; returns how many there were,
    /// `None` if there is nothing to read.
    pub(super) fn read(&self, buffers: &mut ReadBuffers, take: impl FnMut(&[u8])) -> io::Result<Option<usize>> {
        match self.tun.recv(&mut buffers.whole) {
            Ok(length) => Ok(Some(buffers.cut(length, take))),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the packets of `batch`. One outcome for all: the kernel refuses a device, not a packet.
    pub(super) fn write(&self, batch: &mut WriteBatch) -> Written {
        let Err(error) = batch.write(&self.tun) else { return Written::Taken };
        match Errno::from_io_error(&error) {
            Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => Written::NoRoom,
            _ => Written::Refused,
        }
    }

    /// How many packets the kernel has dropped because the transmit queue was full; `None` if it does not report them.
    pub(super) fn dropped(&self) -> Option<u64> {
        let mut table = vec![0; 64 << 10];
        let length = self.table.as_ref()?.read_at(&mut table, 0).ok()?;
        dropped_of(&self.name, std::str::from_utf8(table.get(..length)?).ok()?)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Creates the interface in the namespace of this thread.
fn open_here(namespace: &str, address: IpAddr, prefix: u8) -> Result<Device, TunError> {
    let wrong = |step| move |error| refused(step, namespace, error);
    // Why first: the errors of creating a device do not say whether the system has TUN devices.
    File::options().read(true).write(true).open("/dev/net/tun").map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => TunError::NotPermitted { step: "open /dev/net/tun", name: namespace.to_owned() },
        _ => TunError::NoTunDevices { source },
    })?;
    let builder = DeviceBuilder::new().name(NAME).mtu(TunConfig::MTU).tx_queue_len(TX_QUEUE_PACKETS).offload(true).enable(false);
    let builder = match address {
        IpAddr::V4(address) => builder.ipv4(address, prefix, None),
        IpAddr::V6(address) => builder.ipv6(address, prefix),
    };
    let tun = builder.build_sync().map_err(wrong("make a TUN device"))?;
    let name = tun.name().map_err(wrong("name a TUN device"))?;
    disable_ipv6_autoconf(&name);
    tun.enabled(true).map_err(wrong("bring up a TUN device"))?;
    tun.set_nonblocking(true).map_err(wrong("poll a TUN device"))?;
    await_address(address).map_err(wrong("use the address of a TUN device"))?;
    let table = File::open("/proc/thread-self/net/dev").ok();
    Ok(Device { tun, name, table })
}

/// Waits until programs can use the address of the interface. Why: an IPv6 address is tentative until duplicate address detection
/// has finished, and cannot be bound until then.
fn await_address(address: IpAddr) -> io::Result<()> {
    let started = Instant::now();
    loop {
        match UdpSocket::bind((address, 0)) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && started.elapsed() < CONFIRMED_WITHIN => {
                thread::sleep(Duration::from_millis(1));
            }
            bound => return bound.map(drop),
        }
    }
}

/// Disables IPv6 autoconfiguration and router solicitations of the interface. A failure is no error: then there is no IPv6, or a few
/// more packets.
fn disable_ipv6_autoconf(name: &str) {
    let settings = Path::new("/proc/sys/net/ipv6/conf").join(name);
    // 1: no link-local address is generated (ip-sysctl.rst).
    for (setting, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0"), ("accept_dad", "0")] {
        let _ = fs::write(settings.join(setting), value);
    }
}

/// The number of dropped transmitted packets in the row of `name`.
fn dropped_of(name: &str, table: &str) -> Option<u64> {
    /// Eight columns of what was received, then bytes, packets and errors.
    const DROPPED: usize = 11;
    let columns = table.lines().find_map(|row| row.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    columns.split_whitespace().nth(DROPPED)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_the_interface_tells_the_drops() {
        let table = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    1    0     0          0         0        0       0    0    2    0     0       0          0
segstream10:  1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16
segstream1: 1       2    3    4    5     6          7         8        9      10   11   99   13    14      15         16
";
        assert_eq!(dropped_of("segstream1", table), Some(99));
        assert_eq!(dropped_of("segstream10", table), Some(12));
        assert_eq!(dropped_of("lo", table), Some(2));
        assert_eq!(dropped_of("segstream2", table), None);
        assert_eq!(dropped_of("lo", "lo: 1 2"), None);
    }
}
