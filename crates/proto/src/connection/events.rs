//! The event queue of a connection for its application, and its trace, if that is wanted.
//!
//! When the application polls, the endpoint counts the pending events of each connection, and then returns as many: events that the
//! application causes between two polls come after those that were counted, for all connections.
//!
//! Invariant: events are returned in the order in which they happened, each once; an idle connection allocates no memory for them.

use super::ConnectionEvent;
use crate::trace::{Trace, TraceEvent};
use segstream_base::Instant;
use std::collections::VecDeque;

/// The events of a connection, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<ConnectionEvent>,
    /// The first of them that were counted.
    counted: usize,
    trace: Option<Box<Trace>>,
}

impl Events {
    /// A queue with a trace.
    pub(super) fn traced(now: Instant) -> Self {
        Self { trace: Some(Box::new(Trace::new(now))), ..Self::default() }
    }

    /// The trace, if it is wanted.
    #[inline]
    pub(super) fn trace(&mut self) -> Option<&mut Trace> {
        self.trace.as_deref_mut()
    }

    /// Whether the trace has events.
    pub(super) fn has_trace(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| !trace.is_empty())
    }

    pub(super) fn push(&mut self, event: ConnectionEvent) {
        if let Some(trace) = &mut self.trace {
            match &event {
                ConnectionEvent::Connected => trace.push(TraceEvent::Established),
                ConnectionEvent::Closed(reason) => {
                    trace.end_lost_run();
                    trace.push(TraceEvent::Closed(reason.clone()));
                }
                ConnectionEvent::Judged { stream, segments, verdict, holes } => {
                    let (segments, holes) = (segments.clone(), holes.clone());
                    trace.push(TraceEvent::VerdictReceived { stream: *stream, segments, verdict: *verdict, holes });
                }
                _ => {}
            }
        }
        self.queue.push_back(event);
    }

    /// Whether there are events that were not counted.
    pub(super) fn has_new(&self) -> bool {
        self.queue.len() > self.counted
    }

    /// Removes events that were not counted and are obsolete.
    pub(super) fn withdraw(&mut self, is_outdated: impl Fn(&ConnectionEvent) -> bool) {
        let (mut at, counted) = (0, self.counted);
        self.queue.retain(|event| {
            at += 1;
            at <= counted || !is_outdated(event)
        });
        self.free_if_empty();
    }

    /// Counts the uncounted events, and makes them available.
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
