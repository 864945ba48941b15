//! A TUN device: the interface at one end, from which packets are read and to which they are written.
//!
//! Called by the relay.
//!
//! Source: tuntap.rst, netdevice(7), ip-sysctl.rst; the tenth and later columns of `/proc/net/dev` (proc_net(5)).
//!
//! Invariant: nothing but the packets of programs crosses an IPv4 link: the kernel is kept from speaking IPv6 of its
//! own accord, so that the number of a packet on the path does not depend on it.
//!
//! Invariant: the interface disappears with the program, in whatever way it ends.

use super::config::{TunConfig, TunError};
use super::namespace::{Namespace, refused};
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

/// What the kernel may hold until the relay reads it: 10,000 packets, 240 ms of full ones at 500 Mbit/s.
const HELD_PACKETS: u32 = 10_000;

/// The kernel puts the first number that is free.
const NAME: &str = "segstream%d";

/// How long the kernel may take to confirm an address. It takes a millisecond, on a busy machine longer.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

/// The interface at one end.
pub(super) struct Device {
    tun: SyncDevice,
    name: String,
    /// The table of interfaces of the device's namespace; it stays that when it is read from elsewhere.
    table: Option<File>,
}

/// What became of a packet that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The kernel has taken it.
    Taken,
    /// The kernel had no room for it.
    NoRoom,
    /// The kernel does not want it.
    Refused,
}

impl Device {
    /// Makes the interface in `namespace` and brings it up.
    pub(super) fn open(namespace: &Namespace, address: IpAddr, prefix: u8) -> Result<Self, TunError> {
        namespace.inside(|| open_here(namespace.name(), address, prefix))?
    }

    /// What the interface is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Reads one packet; `None` when there is no more.
    pub(super) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a mut [u8]>> {
        match self.tun.recv(buffer) {
            Ok(length) => Ok(buffer.get_mut(..length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one packet.
    pub(super) fn write(&self, packet: &[u8]) -> Written {
        let Err(error) = self.tun.send(packet) else { return Written::Taken };
        match Errno::from_io_error(&error) {
            Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => Written::NoRoom,
            _ => Written::Refused,
        }
    }

    /// How many packets the kernel has dropped because the relay had not read those before; `None` when it does not tell.
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

/// Makes the interface in the namespace this thread is in.
fn open_here(namespace: &str, address: IpAddr, prefix: u8) -> Result<Device, TunError> {
    let wrong = |step| move |error| refused(step, namespace, error);
    // Why first: the errors of the device itself do not say whether there is one.
    File::options().read(true).write(true).open("/dev/net/tun").map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => TunError::NotPermitted { step: "open /dev/net/tun", name: namespace.to_owned() },
        _ => TunError::NoTunDevices { source },
    })?;
    let builder = DeviceBuilder::new().name(NAME).mtu(TunConfig::MTU).tx_queue_len(HELD_PACKETS).enable(false);
    let builder = match address {
        IpAddr::V4(address) => builder.ipv4(address, prefix, None),
        IpAddr::V6(address) => builder.ipv6(address, prefix),
    };
    let tun = builder.build_sync().map_err(wrong("make a TUN device"))?;
    let name = tun.name().map_err(wrong("name a TUN device"))?;
    keep_quiet(&name);
    tun.enabled(true).map_err(wrong("bring up a TUN device"))?;
    tun.set_nonblocking(true).map_err(wrong("poll a TUN device"))?;
    await_address(address).map_err(wrong("use the address of a TUN device"))?;
    let table = File::open("/proc/thread-self/net/dev").ok();
    Ok(Device { tun, name, table })
}

/// Waits until programs can use the address of the interface. Why: the kernel confirms an IPv6 address at its leisure, and
/// refuses it until then.
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

/// Keeps the kernel from giving the interface an IPv6 address and from looking for routers. Failing is no error: then
/// there is no IPv6, or a few packets more.
fn keep_quiet(name: &str) {
    let settings = Path::new("/proc/sys/net/ipv6/conf").join(name);
    // 1 is "no address of one's own" (ip-sysctl.rst).
    for (setting, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0"), ("accept_dad", "0")] {
        let _ = fs::write(settings.join(setting), value);
    }
}

/// The transmitted packets that were dropped, in the row of `name`.
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
