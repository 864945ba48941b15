//! Faults besides those of the paths: hosts that crash, hang or do not read, routes that are blocked.
//!
//! Drawn by the plan, carried out by the swarm. Invariant: a fault has an end, or is the end of a host.

use crate::draw::{between, millis};
use core::fmt;
use segstream_base::random::Random;
use segstream_base::{Duration, Instant};

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// A host loses everything it knew. It starts anew when the fault is over; `for_good`: it does not.
    Crash { host: usize, for_good: bool },
    /// A host is not driven: its clock jumps when it is again.
    Pause { host: usize },
    /// The applications of a host take nothing.
    Deaf { host: usize },
    /// Nothing passes from one host to another.
    Block { from: usize, to: usize },
}

/// A fault and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) at: Instant,
    pub(crate) lasts: Duration,
}

impl Fault {
    /// When it is over.
    pub(crate) fn over(&self) -> Instant {
        self.at + self.lasts
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { host, .. } => write!(f, "crash of h{host}"),
            Self::Pause { host } => write!(f, "h{host} is not driven"),
            Self::Deaf { host } => write!(f, "h{host} takes nothing"),
            Self::Block { from, to } => write!(f, "nothing passes from h{from} to h{to}"),
        }
    }
}

/// The faults of a run of this many hosts. A peaceful one has applications that do not read, and no other.
pub(crate) fn draw(random: &mut Random, hosts: usize, horizon: Duration, peaceful: bool) -> Vec<Fault> {
    let count = if random.chance(0.7) { between(random, 1, 5) } else { 0 };
    (0..count).map(|_| one(random, hosts, horizon, peaceful)).collect()
}

fn one(random: &mut Random, hosts: usize, horizon: Duration, peaceful: bool) -> Fault {
    let (host, other) = (random.below(hosts as u64) as usize, random.below(hosts as u64 - 1) as usize);
    let (drawn, for_good) = (random.below(8), random.chance(0.3));
    let kind = match drawn {
        _ if peaceful => FaultKind::Deaf { host },
        0 | 1 => FaultKind::Crash { host, for_good },
        2 | 3 => FaultKind::Pause { host },
        4 | 5 => FaultKind::Deaf { host },
        _ => FaultKind::Block { from: host, to: (host + 1 + other) % hosts },
    };
    Fault { kind, at: Instant::from_nanos(random.below(horizon.as_nanos())), lasts: millis(random, 2, 5000) }
}
