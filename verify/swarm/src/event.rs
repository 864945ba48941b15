//! What happens in a swarm, as the checkers, the digest and the trace see it.
//!
//! Made by the swarm, its hosts and their applications. A *side* is one end of one connection, numbered in the order
//! in which they appear. Times are those of the swarm, not of a host's own clock.
//!
//! Invariant: an event says everything a checker needs; no checker looks into an endpoint.

use core::fmt;
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant, Run, SegmentNumber, StreamId, Tolerance, UnitIndex};
use segstream_proto::connection::Role;
use segstream_proto::error::CloseReason;
use segstream_wire::contract::{Contract, Order};
use segstream_wire::{Class, Kind};

/// A stream, named by the side that sends on it. Its contract's label says the same, so that the other side knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName {
    /// The sending side.
    pub side: u32,
    /// The number of the stream there.
    pub stream: StreamId,
}

/// A segment of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// The stream.
    pub stream: StreamName,
    /// The number of the segment.
    pub segment: SegmentNumber,
}

/// Where datagrams come from and go to: a host by its number, or an address where no host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A host.
    Host(usize),
    /// Somewhere an attacker names.
    Elsewhere(u16),
}

/// A segment as its receiver was handed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delivered {
    /// The side that took it.
    pub at: u32,
    /// Which one.
    pub name: SegmentName,
    /// The verdict.
    pub verdict: Verdict,
    /// The bytes, zero where units are missing.
    pub bytes: Vec<u8>,
    /// Units.
    pub units: u32,
    /// The size of a unit.
    pub unit_bytes: u32,
    /// The holes.
    pub holes: Vec<Run<UnitIndex>>,
    /// When it was judged.
    pub judged_at: Instant,
    /// The window of the stream as granted, in units.
    pub window_units: u32,
}

/// What a side keeps, and the most it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    /// The side.
    pub side: u32,
    /// Payload bytes kept until verdicts come, and the most of them.
    pub sending: (u64, u64),
    /// Payload bytes kept until the application takes them, and the most of them.
    pub receiving: (u64, u64),
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The swarm has come to a new point in time, or to the same one again.
    Step,
    /// A host has let a datagram leave.
    Sent {
        /// The host.
        host: usize,
        /// Where to.
        to: Place,
        /// What it is, if its header says so.
        kind: Option<Kind>,
        /// Its length.
        bytes: u64,
        /// A fingerprint of its content.
        content: u32,
        /// Its fate.
        fate: Fate,
    },
    /// A datagram has reached a host.
    Arrived {
        /// The host.
        host: usize,
        /// Its source address.
        from: Place,
        /// What it is, if its header says so.
        kind: Option<Kind>,
        /// Its length.
        bytes: u64,
        /// Whether the host at that address has made it as it is.
        genuine: bool,
        /// Whether an attacker has brought it.
        hostile: bool,
    },
    /// A side has appeared: its application has asked, or its peer has.
    Appeared {
        /// The side.
        side: u32,
        /// Its host.
        host: usize,
        /// The host of its peer.
        peer: Place,
        /// Who asked.
        role: Role,
        /// How long set-up is tried.
        connect_timeout: Duration,
        /// How long silence is borne, by its own wish.
        idle_timeout: Duration,
    },
    /// Set-up is done.
    Established {
        /// The side.
        side: u32,
        /// The class in force in its direction.
        class: Class,
    },
    /// A side has asked for another class in its direction.
    ClassAsked {
        /// The side.
        side: u32,
        /// The class.
        class: Class,
    },
    /// A side has asked for a graceful end.
    CloseAsked(u32),
    /// A side has opened a stream.
    Opened {
        /// The stream.
        name: StreamName,
        /// Its contract.
        contract: Box<Contract>,
    },
    /// A side got the event of a stream of its peer.
    Offered {
        /// The side that receives.
        at: u32,
        /// The stream.
        name: StreamName,
        /// The order in which it is to be handed over.
        order: Order,
    },
    /// The peer does not take a stream.
    Refused(StreamName),
    /// A segment was accepted.
    Submitted {
        /// Which one.
        name: SegmentName,
        /// Its length; `None` when it was opened.
        bytes: Option<u64>,
        /// A tolerance of its own.
        own: Option<Tolerance>,
    },
    /// More of an open segment was accepted.
    Appended {
        /// Which one.
        name: SegmentName,
        /// This many bytes more.
        bytes: u64,
        /// Whether it has ended with them.
        last: bool,
    },
    /// The sender got a verdict.
    Told {
        /// On which segment.
        name: SegmentName,
        /// The verdict.
        verdict: Verdict,
        /// The holes.
        holes: Vec<Run<UnitIndex>>,
    },
    /// The receiver was handed a segment.
    Delivered(Box<Delivered>),
    /// The receiver got the end of a stream.
    Ended {
        /// The side that receives.
        at: u32,
        /// The stream.
        name: StreamName,
        /// How many segments it had.
        segments: u64,
    },
    /// The receiving application has confirmed segments of a stream.
    Confirmed {
        /// The side that receives.
        at: u32,
        /// The stream.
        name: StreamName,
        /// All segments below this one.
        segments: SegmentNumber,
    },
    /// The sender was told of it.
    Durable {
        /// The stream.
        name: StreamName,
        /// All segments below this one.
        segments: SegmentNumber,
    },
    /// A connection is no more.
    Closed {
        /// The side that got the event.
        side: u32,
        /// Why.
        reason: CloseReason,
    },
    /// A side was forgotten: its endpoint keeps nothing of it.
    Forgotten(u32),
    /// What a side keeps.
    Kept(Kept),
    /// The work of what has happened since the last of these: steps of loops whose length a peer decides (0 in release builds), and bytes
    /// that have left or arrived.
    Worked {
        /// So many steps.
        steps: u64,
        /// So many bytes.
        bytes: u64,
        /// Whether it was one turn. A host that was not driven takes all that waits for it at once, which is a turn for each datagram.
        is_turn: bool,
    },
    /// How many connections a host has.
    Connections {
        /// The host.
        host: usize,
        /// This many.
        count: usize,
        /// The most it may have.
        most: usize,
    },
    /// A fault begins or ends, or an attacker does something: for the trace.
    Fault(String),
    /// A host has lost everything it knew.
    Crashed(usize),
    /// A host that was not driven is driven again.
    Resumed(usize),
    /// The run is over: what is left, as (host, connections, whether it still has a deadline).
    Over(Vec<(usize, usize, bool)>),
}

/// The fate of a datagram on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(Instant),
    /// It arrives twice.
    Twice(Instant, Instant),
    /// It arrives damaged.
    Damaged(Instant),
    /// It is lost, or dropped on the way.
    Lost,
    /// The way is blocked.
    Blocked,
    /// No host has the address.
    Nowhere,
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.side, self.stream)
    }
}

impl StreamName {
    /// The name a label says.
    pub(crate) fn of_label(label: &str) -> Option<Self> {
        let (side, stream) = label.split_once('.')?;
        Some(Self { side: side.parse().ok()?, stream: StreamId(stream.parse().ok()?) })
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.stream, self.segment)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(f, "h{host}"),
            Self::Elsewhere(port) => write!(f, "x{port}"),
        }
    }
}
