//! What a connection tells its application: an event waits here, from when it happens until it is taken.
//!
//! The endpoint counts what is there when it is asked, connection by connection, and takes as many: what the application does
//! between two events comes after those that were counted, whichever connection it concerns.
//!
//! Invariant: events are taken in the order in which they happened, each once; an idle connection keeps no room for them.

use super::ConnectionEvent;
use std::collections::VecDeque;

/// The events of a connection, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<ConnectionEvent>,
    /// The first of them that were counted.
    counted: usize,
}

impl Events {
    pub(super) fn push(&mut self, event: ConnectionEvent) {
        self.queue.push_back(event);
    }

    /// Whether there are events that were not counted.
    pub(super) fn has_new(&self) -> bool {
        self.queue.len() > self.counted
    }

    /// Takes events back that were not counted: nobody needs them any more.
    pub(super) fn withdraw(&mut self, is_outdated: impl Fn(&ConnectionEvent) -> bool) {
        let (mut at, counted) = (0, self.counted);
        self.queue.retain(|event| {
            at += 1;
            at <= counted || !is_outdated(event)
        });
        self.free_if_empty();
    }

    /// Counts the events that were not counted, and shows them.
    pub(super) fn count(&mut self) -> impl ExactSizeIterator<Item = &ConnectionEvent> {
        let counted = core::mem::replace(&mut self.counted, self.queue.len());
        self.queue.range(counted..)
    }

    /// Takes the oldest of the events that were counted.
    pub(super) fn take(&mut self) -> Option<ConnectionEvent> {
        self.counted = self.counted.checked_sub(1)?;
        let event = self.queue.pop_front();
        debug_assert!(event.is_some(), "an event was counted that is not there");
        self.free_if_empty();
        event
    }

    fn free_if_empty(&mut self) {
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_after_the_count_waits_for_the_next_one() {
        let mut events = Events::default();
        events.push(ConnectionEvent::Connected);
        assert_eq!(events.take(), None, "nobody has counted it");
        assert_eq!(events.count().len(), 1);
        events.push(ConnectionEvent::PeerClosing);
        events.push(ConnectionEvent::Connected);
        events.withdraw(|event| *event == ConnectionEvent::Connected);
        assert!(events.has_new());
        assert_eq!((events.take(), events.take()), (Some(ConnectionEvent::Connected), None));
        assert_eq!(events.count().collect::<Vec<_>>(), [&ConnectionEvent::PeerClosing]);
        assert_eq!((events.has_new(), events.take(), events.take()), (false, Some(ConnectionEvent::PeerClosing), None));
        assert_eq!(events.queue.capacity(), 0);
    }
}
