//! Observers of a run.
//!
//! Called by [`crate::Simulation`]; implemented by whatever measures, records or draws.
//!
//! Invariant: an observer returns nothing, so it cannot change a run. Packet events are not computed for one that does not want
//! them ([`Observer::PACKETS`]).

use core::fmt;
use segstream_base::Instant;
use segstream_base::halves::{Packet, ReceiverEvent, Segment, SegmentNumber, SenderEvent, StreamId};

/// Observes a run. Every method does nothing by default; `()` observes nothing.
pub trait Observer {
    /// Whether [`Observer::packet`] is wanted. Default: no, so that a run costs nothing for it.
    const PACKETS: bool = false;

    /// The source's segment was accepted as number `number`. Its `source_time` is when it was due.
    fn submitted(&mut self, now: Instant, segment: &Segment, number: SegmentNumber) {
        let _ = (now, segment, number);
    }

    /// The first packet of a segment has been handed out for the first time: its delay begins.
    fn started(&mut self, now: Instant, stream: StreamId, segment: SegmentNumber) {
        let _ = (now, stream, segment);
    }

    /// The receiver has told something: [`ReceiverEvent::Delivered`] or [`ReceiverEvent::Ended`].
    fn delivered(&mut self, now: Instant, event: &ReceiverEvent) {
        let _ = (now, event);
    }

    /// A verdict has reached the sender: [`SenderEvent::Judged`].
    fn judged(&mut self, now: Instant, event: &SenderEvent) {
        let _ = (now, event);
    }

    /// A packet was sent or has arrived; only called when [`Observer::PACKETS`] is true.
    fn packet<P: Packet>(&mut self, event: PacketEvent<'_, P>) {
        let _ = event;
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From sender to receiver.
    Forward,
    /// From receiver to sender.
    Back,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Back => "back",
        })
    }
}

/// The fate of a packet that was just sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// It arrives.
    Arrives {
        /// When.
        at: Instant,
        /// When a copy of it arrives besides.
        copy_at: Option<Instant>,
    },
    /// The loss process loses it.
    Lost,
    /// The full queue drops it.
    Dropped,
    /// It arrives with a flipped bit and is discarded: a checksum finds it.
    Corrupted,
    /// It is in a queue that decides at dequeue; [`Moment::Decided`] follows.
    Waits,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A half has sent it.
    Sent(PacketFate),
    /// Its queue has decided.
    Decided(PacketFate),
    /// It arrives at the other half.
    Arrived,
}

/// Something that happens to a packet.
#[derive(Debug)]
pub struct PacketEvent<'a, P> {
    /// When.
    pub now: Instant,
    /// Which way the packet goes.
    pub direction: Direction,
    /// Which packet of this direction, counted from 0; a copy has the number of its original.
    pub number: u64,
    /// What happens to it.
    pub moment: Moment,
    /// The packet.
    pub packet: &'a P,
}

// Why: a derived impl would ask for `P: Copy`, although only a reference is copied.
impl<P> Clone for PacketEvent<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for PacketEvent<'_, P> {}

impl Observer for () {}

/// Two observers; the first is called first.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const PACKETS: bool = A::PACKETS || B::PACKETS;

    fn submitted(&mut self, now: Instant, segment: &Segment, number: SegmentNumber) {
        self.0.submitted(now, segment, number);
        self.1.submitted(now, segment, number);
    }

    fn started(&mut self, now: Instant, stream: StreamId, segment: SegmentNumber) {
        self.0.started(now, stream, segment);
        self.1.started(now, stream, segment);
    }

    fn delivered(&mut self, now: Instant, event: &ReceiverEvent) {
        self.0.delivered(now, event);
        self.1.delivered(now, event);
    }

    fn judged(&mut self, now: Instant, event: &SenderEvent) {
        self.0.judged(now, event);
        self.1.judged(now, event);
    }

    fn packet<P: Packet>(&mut self, event: PacketEvent<'_, P>) {
        if A::PACKETS {
            self.0.packet(event);
        }
        if B::PACKETS {
            self.1.packet(event);
        }
    }
}
