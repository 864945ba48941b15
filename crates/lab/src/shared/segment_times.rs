//! Measures the delays of a flow's segments.
//!
//! Called by the simulator at each segment's submission, start, acceptance and verdict; read by [`super::run`].
//!
//! Invariant: the work is per segment, never per packet; a segment counts that is accepted after the warm-up.

use super::outcome::Times;
use segstream_base::Instant;
use segstream_base::halves::{ReceiverEvent, Segment, SegmentNumber, SenderEvent, StreamId};
use segstream_sim::Observer;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A handle on what is watched: one for the simulation, one to read.
#[derive(Clone, Debug)]
pub(super) struct SegmentTimes(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    from: Instant,
    /// Segments in flight: when each was due, and when it started.
    open: BTreeMap<u64, (Instant, Option<Instant>)>,
    delays_ns: Vec<u64>,
    latencies_ns: Vec<u64>,
    /// Segments that the sender knows to be accepted, and to have expired.
    accepted: u64,
    expired: u64,
}

impl SegmentTimes {
    /// Counts segments that are accepted from `from` on, by the flow's clock.
    pub(super) fn new(from: Instant) -> Self {
        Self(Rc::new(RefCell::new(Inner {
            from,
            open: BTreeMap::new(),
            delays_ns: Vec::new(),
            latencies_ns: Vec::new(),
            accepted: 0,
            expired: 0,
        })))
    }

    /// How many segments the sender knows to be accepted, and to have expired.
    pub(super) fn verdicts(&self) -> (u64, u64) {
        let inner = self.0.borrow();
        (inner.accepted, inner.expired)
    }

    /// The delays and latencies so far.
    pub(super) fn times(&self) -> (Times, Times) {
        let inner = &mut *self.0.borrow_mut();
        (times(&mut inner.delays_ns), times(&mut inner.latencies_ns))
    }
}

fn times(nanos: &mut [u64]) -> Times {
    nanos.sort_unstable();
    let segments = nanos.len() as u64;
    let sum: u128 = nanos.iter().map(|nanos| u128::from(*nanos)).sum();
    // The smallest that at least so many per cent do not exceed.
    let quantile = |percent: u64| nanos.get((segments * percent).div_ceil(100).saturating_sub(1) as usize).copied().unwrap_or(0);
    Times {
        segments,
        mean_ns: (sum / u128::from(segments.max(1))) as u64,
        p95_ns: quantile(95),
        p99_ns: quantile(99),
        max_ns: nanos.last().copied().unwrap_or(0),
    }
}

impl Observer for SegmentTimes {
    fn submitted(&mut self, _now: Instant, segment: &Segment, number: SegmentNumber) {
        self.0.borrow_mut().open.insert(number.0, (segment.source_time, None));
    }

    fn started(&mut self, now: Instant, _stream: StreamId, segment: SegmentNumber) {
        if let Some((_, start)) = self.0.borrow_mut().open.get_mut(&segment.0) {
            start.get_or_insert(now);
        }
    }

    fn judged(&mut self, now: Instant, event: &SenderEvent) {
        let SenderEvent::Judged { verdict, .. } = event else { return };
        let inner = &mut *self.0.borrow_mut();
        if now >= inner.from {
            *(if verdict.is_met() { &mut inner.accepted } else { &mut inner.expired }) += 1;
        }
    }

    fn delivered(&mut self, now: Instant, event: &ReceiverEvent) {
        let ReceiverEvent::Delivered { segment, verdict, .. } = event else { return };
        let inner = &mut *self.0.borrow_mut();
        let Some((due, start)) = inner.open.remove(&segment.0) else { return };
        if now >= inner.from && verdict.is_met() {
            inner.delays_ns.push(now.since(start.unwrap_or(now)).as_nanos());
            inner.latencies_ns.push(now.since(due).as_nanos());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_quantile_and_maximum_are_exact() {
        let mut nanos: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(times(&mut nanos), Times { segments: 100, mean_ns: 50, p95_ns: 95, p99_ns: 99, max_ns: 100 });
        assert_eq!(times(&mut []), Times::default());
        assert_eq!(times(&mut [7]), Times { segments: 1, mean_ns: 7, p95_ns: 7, p99_ns: 7, max_ns: 7 });
    }
}
