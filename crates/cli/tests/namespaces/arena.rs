//! Two network namespaces with the link between them: where programs and the kernel's transports meet one path.
//!
//! The namespaces have no name and live as long as somebody has them open, so that nothing is left behind, however
//! a test ends.
//!
//! ```ignore
//! let Some(arena) = Arena::new(&["--bandwidth", "20mbit", "--rtt", "40ms"]) else { return };
//! let receiver = arena.run_in(Side::B, &mut receiving_command);
//! let series = arena.kernel_tcp("cubic", Duration::from_secs(5));
//! let report = arena.end().json();
//! ```

use crate::process::{self, Ended, Running};
use nix::sched::{CloneFlags, setns, unshare};
use rustix::io::Errno;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Read as _;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// One link at a time, so that none takes the processors from another.
static ALONE: Mutex<()> = Mutex::new(());

/// An end of the link. What goes from A to B goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

/// A link and its two ends.
pub(crate) struct Arena {
    link: Running,
    ends: Ends,
    _alone: MutexGuard<'static, ()>,
}

/// The two namespaces.
pub(crate) struct Ends {
    spaces: [File; 2],
    addresses: [IpAddr; 2],
}

/// A program inside, which ends with the test at the latest.
pub(crate) struct Inside(Child);

impl Arena {
    /// Starts the link with `flags` between 10.77.0.1 (A) and 10.77.0.2 (B). `None`, and a notice, where that is not
    /// allowed.
    pub(crate) fn new(flags: &[&str]) -> Option<Self> {
        Self::between(["10.77.0.1", "10.77.0.2"], flags)
    }

    /// Starts the link with `flags` between two addresses.
    pub(crate) fn between(addresses: [&str; 2], flags: &[&str]) -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let ends = Ends::new(addresses)?;
        let (paths, addresses) = (ends.paths(), addresses.join(","));
        let ends_flags = ["link", "--json", "--tun", &paths[0], &paths[1], "--tun-addresses", &addresses];
        let mut link = process::start(ends_flags.iter().chain(flags));
        link.wait_for("interrupt to end");
        Some(Self { link, ends, _alone: alone })
    }

    /// The address of a side.
    pub(crate) fn address(&self, side: Side) -> IpAddr {
        self.ends.addresses[side as usize]
    }

    /// Does `work` inside a namespace. Sockets that it makes stay inside, whoever uses them.
    pub(crate) fn inside<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        self.ends.inside(side, work)
    }

    /// A UDP socket at a side, on a port of its own.
    pub(crate) fn udp(&self, side: Side) -> UdpSocket {
        let address = self.address(side);
        self.inside(side, || UdpSocket::bind((address, 0)).unwrap())
    }

    /// Starts a program inside a namespace.
    pub(crate) fn run_in(&self, side: Side, command: &mut Command) -> Inside {
        self.inside(side, || Inside(command.spawn().unwrap()))
    }

    /// Changes a setting of the kernel inside a namespace, such as `ipv4/tcp_ecn`.
    pub(crate) fn set(&self, side: Side, setting: &str, value: &str) {
        self.inside(side, || fs::write(format!("/proc/sys/net/{setting}"), value).unwrap());
    }

    /// A counter of the kernel inside a namespace, such as `Udp` `InCsumErrors` or `IpExt` `InCEPkts`.
    pub(crate) fn counter(&self, side: Side, group: &str, name: &str) -> u64 {
        let tables =
            self.inside(side, || ["snmp", "netstat"].map(|table| fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap()));
        let prefix = format!("{group}:");
        let rows: Vec<&str> = tables.iter().flat_map(|table| table.lines()).filter(|row| row.starts_with(&prefix)).collect();
        let [names, values] = rows[..] else { panic!("no {group} in {tables:?}") };
        let place = names.split_whitespace().position(|column| column == name).unwrap_or_else(|| panic!("no {name} in {names}"));
        values.split_whitespace().nth(place).unwrap().parse().unwrap()
    }

    /// Sends a signal to the link.
    pub(crate) fn signal(&self, signal: Signal) {
        self.link.signal(signal);
    }

    /// Ends the link; its report. Fails when its exit status contradicts it.
    pub(crate) fn end(self) -> Ended {
        let ended = self.link.interrupt();
        // On a busy machine the link may be late, and then says so.
        let kept_up = ended.json()["kept_up"].as_bool().unwrap();
        ended.expect(if kept_up { 0 } else { 1 })
    }
}

impl Ends {
    /// Two namespaces; `None`, and a notice, where that is not allowed.
    pub(crate) fn new(addresses: [&str; 2]) -> Option<Self> {
        let made = File::options().read(true).write(true).open("/dev/net/tun").and_then(|_| Ok([space()?, space()?]));
        match made {
            Ok(spaces) => Some(Self { spaces, addresses: addresses.map(|address| address.parse().unwrap()) }),
            Err(refused) if std::env::var_os("SEGSTREAM_REQUIRE_NAMESPACES").is_some_and(|set| set == "1") => {
                panic!("namespaces are required, but the system does not let this user have them: {refused}")
            }
            Err(refused) => {
                eprintln!("NOT TESTED: this user may not make network namespaces with TUN devices: {refused}");
                None
            }
        }
    }

    /// Paths that lead to them as long as this lives.
    pub(crate) fn paths(&self) -> [String; 2] {
        [&self.spaces[0], &self.spaces[1]].map(|space| format!("/proc/{}/fd/{}", std::process::id(), space.as_raw_fd()))
    }

    /// Does `work` inside one of them.
    pub(crate) fn inside<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            setns(&self.spaces[side as usize], CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Inside {
    /// Waits for its end, which must be a success; what it wrote on its standard output if that is a pipe.
    pub(crate) fn end(mut self) -> String {
        let mut written = String::new();
        if let Some(stdout) = &mut self.0.stdout {
            stdout.read_to_string(&mut written).unwrap();
        }
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
        written
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A new namespace.
fn space() -> std::io::Result<File> {
    let made = thread::spawn(|| match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => File::open("/proc/thread-self/ns/net"),
        Err(error) => Err(Errno::from_raw_os_error(error as i32).into()),
    });
    made.join().unwrap()
}

#[test]
fn a_program_runs_inside() {
    let Some(arena) = Arena::new(&["--bandwidth", "1mbit", "--rtt", "1ms"]) else { return };
    let mut cat = Command::new("cat");
    let interfaces = arena.run_in(Side::B, cat.arg("/proc/self/net/dev").stdout(Stdio::piped())).end();
    assert!(interfaces.contains("segstream0:"), "{interfaces}");
}

#[test]
fn the_interfaces_are_gone_when_the_link_has_ended_or_was_killed() {
    for signal in [Signal::INT, Signal::KILL] {
        let Some(arena) = Arena::new(&["--bandwidth", "1mbit", "--rtt", "1ms"]) else { return };
        let interfaces = |side| arena.inside(side, || fs::read_to_string("/proc/thread-self/net/dev").unwrap());
        assert!([Side::A, Side::B].into_iter().all(|side| interfaces(side).contains("segstream0:")));
        arena.signal(signal);
        let patience = Instant::now() + Duration::from_secs(60);
        while [Side::A, Side::B].into_iter().any(|side| interfaces(side).contains("segstream0:")) {
            assert!(Instant::now() < patience, "the interfaces are still there after {signal:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
