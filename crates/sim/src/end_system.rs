//! End systems: one processor at each end, which works on every packet that leaves or arrives.
//!
//! Called by [`crate::Simulation`] when [`crate::Setup::end_systems`] is set; without it work takes no time.
//!
//! AA models an end by its processing cost per packet and per byte (AA Table 1). Its processor does one piece of work at a time,
//! without preemption. When it is free, feedback has priority over data at both ends, because it is short and the other end
//! waits for it:
//!
//! ```text
//! sender:   feedback that has arrived, oldest first; then what the half has to send
//! receiver: feedback that the half has to send; then what has arrived, oldest first
//! ```
//!
//! Arriving packets queue without a limit and are handed to the half when their work is done. A leaving packet is taken from the
//! half when its work begins and enters the path when it is done, so the processor works on a packet while the link sends the
//! previous one: a stream needs the longer of the two times per packet, not their sum. A few packets may wait for the link; while
//! they do, the processor takes no more. The timers of a half expire on time, whatever the processor does; packets that they
//! cause wait for the processor.
//!
//! Invariant: each end does one piece of work at a time, and is idle only when nothing has arrived and the half has
//! nothing to send, or the lower queue is full.
//!
//! Source: AA 3.2, Table 1 and Figure 4. AA does not state the order of work; feedback first is chosen.

use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// What the work of both ends costs, for data and control alike. Default: nothing, and a lower queue of 4 packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndSystem {
    /// Each packet that leaves or arrives.
    pub packet: Duration,
    /// Each of its bytes, header included.
    pub byte: Duration,
    /// How many packets may wait for the link, the one that it sends not counted, before the processor makes no more; 0
    /// counts as 1. Packets out of band do not wait.
    pub lower_queue: u32,
}

impl Default for EndSystem {
    fn default() -> Self {
        Self { packet: Duration::ZERO, byte: Duration::ZERO, lower_queue: 4 }
    }
}

impl EndSystem {
    /// The work of a packet of `bytes` bytes.
    pub fn work(&self, bytes: u64) -> Duration {
        self.packet + self.byte * bytes
    }
}

/// A packet that has arrived and waits for the processor.
#[derive(Clone, Debug)]
pub(crate) struct Arrived<A> {
    pub(crate) packet: A,
    /// It is CE-marked.
    pub(crate) marked: bool,
}

/// What the processor works on.
#[derive(Clone, Debug)]
pub(crate) enum Work<A, L> {
    /// A packet that has arrived: for the half.
    Arrived(Arrived<A>),
    /// A packet that leaves: for the path.
    Leaving(L),
}

/// One end: its processor, what waits for it and what it has put in front of the link. `A` arrives, `L` leaves.
#[derive(Clone, Debug)]
pub(crate) struct Station<A, L> {
    system: EndSystem,
    arrived: VecDeque<Arrived<A>>,
    work: Option<Work<A, L>>,
    /// When that is done.
    done_at: Instant,
    /// When the link begins to send each packet that waits for it, in order.
    lower: VecDeque<Instant>,
}

impl<A, L> Station<A, L> {
    pub(crate) fn new(system: EndSystem) -> Self {
        let system = EndSystem { lower_queue: system.lower_queue.max(1), ..system };
        Self { system, arrived: VecDeque::new(), work: None, done_at: Instant::ZERO, lower: VecDeque::new() }
    }

    /// A packet has arrived and waits.
    pub(crate) fn arrive(&mut self, packet: A, marked: bool) {
        self.arrived.push_back(Arrived { packet, marked });
    }

    /// Whether no work is under way.
    pub(crate) const fn is_free(&self) -> bool {
        self.work.is_none()
    }

    /// Whether one more packet may be put in front of the link.
    pub(crate) fn has_room(&mut self, now: Instant) -> bool {
        while self.lower.front().is_some_and(|starts| *starts <= now) {
            self.lower.pop_front();
        }
        self.lower.len() < self.system.lower_queue as usize
    }

    /// The link begins to send the packet that was handed to it last at `starts`, which is not now.
    pub(crate) fn waits_until(&mut self, starts: Instant) {
        self.lower.push_back(starts);
    }

    /// Begins to work on the oldest packet that has arrived, of a length that `bytes` tells. Returns whether there is one.
    pub(crate) fn begin_arrived(&mut self, now: Instant, bytes: impl Fn(&A) -> usize) -> bool {
        let Some(arrived) = self.arrived.pop_front() else { return false };
        let length = bytes(&arrived.packet);
        self.begin(now, length, Work::Arrived(arrived));
        true
    }

    /// Begins to work on a packet of `bytes` bytes that the half has handed out.
    pub(crate) fn begin_leaving(&mut self, now: Instant, bytes: usize, packet: L) {
        self.begin(now, bytes, Work::Leaving(packet));
    }

    fn begin(&mut self, now: Instant, bytes: usize, work: Work<A, L>) {
        // Why not nothing: time must pass, or a half that always has a packet would hold it still.
        self.done_at = now + self.system.work(bytes as u64).max(Duration::from_nanos(1));
        self.work = Some(work);
    }

    /// The work that is done by `now`.
    pub(crate) fn finish(&mut self, now: Instant) -> Option<Work<A, L>> {
        if self.done_at <= now { self.work.take() } else { None }
    }

    /// When there is something to do here: the end of the work, or room in front of the link.
    pub(crate) fn next_at(&self) -> Instant {
        match &self.work {
            Some(_) => self.done_at,
            None if self.lower.len() >= self.system.lower_queue as usize => self.lower.front().copied().unwrap_or(Instant::FAR_FUTURE),
            None => Instant::FAR_FUTURE,
        }
    }
}

/// The stations of a run: `F` travels forward, `B` back.
#[derive(Clone, Debug)]
pub(crate) struct Stations<F, B> {
    pub(crate) sender: Station<B, F>,
    pub(crate) receiver: Station<F, B>,
}

impl<F, B> Stations<F, B> {
    pub(crate) fn new(system: EndSystem) -> Self {
        Self { sender: Station::new(system), receiver: Station::new(system) }
    }

    /// When there is something to do at either end.
    pub(crate) fn next_at(&self) -> Instant {
        self.sender.next_at().min(self.receiver.next_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_a_part_for_the_packet_and_a_part_for_its_bytes() {
        let table_1 = EndSystem { packet: Duration::from_micros(70), byte: Duration::from_nanos(50), lower_queue: 4 };
        assert_eq!(table_1.work(1024), Duration::from_nanos(121_200));
        assert_eq!(table_1.work(32), Duration::from_nanos(71_600));
    }

    #[test]
    fn the_lower_queue_has_room_again_when_the_link_takes_its_oldest_packet() {
        let at = Instant::from_nanos;
        let mut station: Station<(), ()> = Station::new(EndSystem { lower_queue: 2, ..EndSystem::default() });
        assert!(station.has_room(at(0)) && station.next_at() == Instant::FAR_FUTURE);
        station.waits_until(at(10));
        station.waits_until(at(20));
        assert!(!station.has_room(at(9)));
        assert_eq!(station.next_at(), at(10));
        assert!(station.has_room(at(10)));
        assert_eq!(station.next_at(), Instant::FAR_FUTURE);
    }

    #[test]
    fn what_arrives_is_worked_on_in_order_one_at_a_time() {
        let mut station: Station<u8, ()> = Station::new(EndSystem { byte: Duration::from_nanos(7), ..EndSystem::default() });
        station.arrive(1, false);
        station.arrive(2, true);
        assert!(station.begin_arrived(Instant::ZERO, |_| 10));
        assert!(!station.is_free() && station.finish(Instant::from_nanos(69)).is_none());
        assert!(matches!(station.finish(Instant::from_nanos(70)), Some(Work::Arrived(Arrived { packet: 1, marked: false }))));
        assert!(station.begin_arrived(Instant::from_nanos(70), |_| 10));
        assert!(matches!(station.finish(Instant::from_nanos(140)), Some(Work::Arrived(Arrived { packet: 2, marked: true }))));
        assert!(!station.begin_arrived(Instant::from_nanos(140), |_| 10));
    }
}
