//! The event queue of a run.
//!
//! Called by [`crate::Simulation`] before and after every event.
//!
//! Everything that can happen is one of a handful of streams, each in order by itself: packets arrive from
//! rings, a half has one deadline, the source one due time. So the next event is the smallest of a few
//! cached numbers, and no heap is needed. Time and class are packed into one number, so that the smallest is
//! found without a branch.
//!
//! Invariant: events come in the order of (time, class): data before control in front of the receiver, packets
//! before work that is done, that before timers, the sender before the receiver, then the source, and queues last.
//!
//! Limit: an event later than 2^60 nanoseconds (36 years) never comes.

use segstream_base::Instant;

/// What can happen, in the order in which it happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A packet in band arrives at the receiver.
    Forward,
    /// A packet out of band arrives at the receiver.
    ForwardApart,
    /// A packet in band arrives at the sender.
    Back,
    /// A packet out of band arrives at the sender.
    BackApart,
    /// A processor has done a piece of work, or has room for what it makes ([`crate::end_system`]).
    Work,
    /// The sender's deadline.
    SenderTimer,
    /// The receiver's deadline.
    ReceiverTimer,
    /// A segment is due.
    Source,
    /// A link takes a packet from a queue that decides only then.
    Queue,
}

const CLASSES: [Class; 9] = [
    Class::Forward,
    Class::ForwardApart,
    Class::Back,
    Class::BackApart,
    Class::Work,
    Class::SenderTimer,
    Class::ReceiverTimer,
    Class::Source,
    Class::Queue,
];
const CLASS_BITS: u32 = 4;
const NEVER: u64 = u64::MAX;
const LATEST: u64 = (NEVER >> CLASS_BITS) - 1;

/// The next event of every class.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// Time and class of each.
    keys: [u64; 9],
}

impl EventQueue {
    pub(crate) const fn new() -> Self {
        Self { keys: [NEVER; 9] }
    }

    /// Sets when the next event of `class` comes; [`Instant::FAR_FUTURE`] is never.
    #[inline]
    pub(crate) fn set(&mut self, class: Class, at: Instant) {
        let nanos = at.as_nanos();
        self.keys[class as usize] = if nanos > LATEST { NEVER } else { nanos << CLASS_BITS | class as u64 };
    }

    /// The next event; `None` when nothing is pending.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Instant, Class)> {
        let [a, b, c, d, e, f, g, h, i] = self.keys;
        let key = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h))).min(i);
        let class = CLASSES.get((key & 15) as usize).filter(|_| key != NEVER)?;
        Some((Instant::from_nanos(key >> CLASS_BITS), *class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_instant_events_come_in_the_order_of_their_classes() {
        let mut event_queue = EventQueue::new();
        assert_eq!(event_queue.next(), None);
        for class in CLASSES.iter().rev() {
            event_queue.set(*class, Instant::from_nanos(5));
            assert_eq!(event_queue.next(), Some((Instant::from_nanos(5), *class)));
        }
        for class in CLASSES {
            assert_eq!(event_queue.next(), Some((Instant::from_nanos(5), class)));
            event_queue.set(class, Instant::FAR_FUTURE);
        }
        assert_eq!(event_queue.next(), None);
    }

    #[test]
    fn an_earlier_event_comes_first_whatever_its_class() {
        let mut event_queue = EventQueue::new();
        event_queue.set(Class::Forward, Instant::from_nanos(LATEST));
        event_queue.set(Class::Source, Instant::from_nanos(LATEST - 1));
        assert_eq!(event_queue.next(), Some((Instant::from_nanos(LATEST - 1), Class::Source)));
        event_queue.set(Class::Source, Instant::from_nanos(LATEST + 1));
        assert_eq!(event_queue.next(), Some((Instant::from_nanos(LATEST), Class::Forward)));
    }
}
