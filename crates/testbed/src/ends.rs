//! Two network namespaces, and what can be done inside them.
//!
//! Called by tests of the link's refusals, and by [`Testbed`](crate::Testbed), which puts a link between them.
//!
//! The namespaces have no name and live as long as somebody has them open, so that nothing is left behind, however
//! a test ends.
//!
//! Invariant: only threads made here ever enter a namespace; the caller's stays where it is.

use crate::process::{self, Running};
use nix::sched::{CloneFlags, setns, unshare};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;

/// An end of the link. What goes from A to B goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// Two network namespaces and the addresses that a link gives them.
#[derive(Debug)]
pub struct Ends {
    spaces: [File; 2],
    addresses: [IpAddr; 2],
}

/// The system does not let this user have network namespaces with TUN devices.
#[derive(Debug)]
pub struct Refused(io::Error);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the system does not let this user make network namespaces with TUN devices ({}); run it as the administrator, where there \
             is /dev/net/tun",
            self.0
        )
    }
}

impl std::error::Error for Refused {}

impl Ends {
    /// Two namespaces.
    ///
    /// # Errors
    /// A missing privilege.
    ///
    /// # Panics
    /// When `addresses` are none.
    pub fn new(addresses: [&str; 2]) -> Result<Self, Refused> {
        File::options().read(true).write(true).open("/dev/net/tun").map_err(Refused)?;
        let spaces = [space().map_err(Refused)?, space().map_err(Refused)?];
        Ok(Self { spaces, addresses: addresses.map(|address| address.parse().unwrap()) })
    }

    /// Paths that lead to them as long as this lives.
    pub fn paths(&self) -> [String; 2] {
        [&self.spaces[0], &self.spaces[1]].map(|space| format!("/proc/{}/fd/{}", std::process::id(), space.as_raw_fd()))
    }

    /// The address of a side.
    pub const fn address(&self, side: Side) -> IpAddr {
        self.addresses[side as usize]
    }

    /// Does `work` inside a namespace. Sockets that it makes stay inside, whoever uses them.
    ///
    /// # Panics
    /// When `work` does.
    pub fn inside<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            setns(&self.spaces[side as usize], CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// A UDP socket at a side, on a port of its own.
    pub fn udp(&self, side: Side) -> UdpSocket {
        let address = self.address(side);
        self.inside(side, || UdpSocket::bind((address, 0)).unwrap())
    }

    /// Starts a program at a side, with this standard input.
    pub fn start(&self, side: Side, program: &Path, arguments: &[impl AsRef<OsStr> + Sync], stdin: Stdio) -> Running {
        self.inside(side, move || process::start_with(program, arguments, stdin))
    }

    /// Changes a setting of the kernel at a side, such as `ipv4/tcp_ecn`.
    pub fn set(&self, side: Side, setting: &str, value: &str) {
        self.inside(side, || fs::write(format!("/proc/sys/net/{setting}"), value).unwrap());
    }

    /// The bytes of all IP packets that have left a side through its device, GSO batches split. The loopback device does not count.
    ///
    /// # Panics
    /// When the kernel does not tell.
    pub fn bytes_left(&self, side: Side) -> u64 {
        let table = self.inside(side, || fs::read_to_string("/proc/thread-self/net/dev").unwrap());
        let devices = table.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() != "lo");
        // Behind eight counters of what arrives stand those of what leaves (proc_net_dev(5)).
        devices.map(|(_, counters)| counters.split_whitespace().nth(8).unwrap().parse::<u64>().unwrap()).sum()
    }

    /// A counter of the kernel at a side, such as `Udp` `InCsumErrors` or `IpExt` `InCEPkts`.
    ///
    /// # Panics
    /// When the kernel has no such counter.
    pub fn counter(&self, side: Side, group: &str, name: &str) -> u64 {
        let tables =
            self.inside(side, || ["snmp", "netstat"].map(|table| fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap()));
        let prefix = format!("{group}:");
        let rows: Vec<&str> = tables.iter().flat_map(|table| table.lines()).filter(|row| row.starts_with(&prefix)).collect();
        let [names, values] = rows[..] else { panic!("no {group} in {tables:?}") };
        let place = names.split_whitespace().position(|column| column == name).unwrap_or_else(|| panic!("no {name} in {names}"));
        values.split_whitespace().nth(place).unwrap().parse().unwrap()
    }
}

/// A new namespace.
fn space() -> io::Result<File> {
    let made = thread::spawn(|| match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => File::open("/proc/thread-self/ns/net"),
        Err(error) => Err(Errno::from_raw_os_error(error as i32).into()),
    });
    made.join().unwrap()
}
