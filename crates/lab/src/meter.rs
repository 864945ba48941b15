//! Measures a simulation: delays, verdicts, batches.
//!
//! Called by the simulator at each segment's start and acceptance; read by [`crate::run`].
//!
//! Invariant: the work is per segment, never per packet.

use crate::outcome::{BATCHES, Batch, Delays, LARGEST_KEPT, Quantiles, quantile};
use crate::statistics::Largest;
use segstream_base::halves::{ReceiverEvent, SegmentNumber, StreamId, Verdict};
use segstream_base::{Duration, Instant};
use segstream_sim::Observer;
use std::collections::VecDeque;

/// Segments due before then are left out of the delays from when they were due. Why so long: halves without a connection wait a round
/// trip for the first window and then catch up, which takes a second where the round trip is 200 ms and a sixth of the link is spare.
const WARM_UP: Duration = Duration::from_secs(2);

/// Measures one run.
#[derive(Debug)]
pub(crate) struct Meter {
    segments: u64,
    /// When the segments from `base` on started; far future for those that have not, or are judged.
    starts: VecDeque<Instant>,
    base: u64,
    pub(crate) first_start: Option<Instant>,
    pub(crate) last_acceptance: Option<Instant>,
    delays: Vec<u64>,
    /// From one segment being due to the next, of a source with even intervals.
    interval: Option<Duration>,
    /// Delays from then on, without those of the warm-up.
    from_due: Vec<u64>,
    pub(crate) verdicts: (u64, u64, u64),
    pub(crate) packets_accepted: u64,
    pub(crate) packets_delivered: u64,
    pub(crate) batches: Vec<Batch>,
    open: Batch,
    opened_at: Instant,
}

impl Meter {
    /// For a run of this many segments, due at even intervals or always.
    pub(crate) fn new(segments: u64, interval: Option<Duration>) -> Self {
        Self {
            segments,
            starts: VecDeque::new(),
            base: 0,
            first_start: None,
            last_acceptance: None,
            // Limit: a run that is cut short leaves the room unused; 8 bytes a segment.
            delays: Vec::with_capacity(segments.min(1 << 24) as usize),
            interval,
            from_due: Vec::new(),
            verdicts: (0, 0, 0),
            packets_accepted: 0,
            packets_delivered: 0,
            batches: Vec::with_capacity(BATCHES as usize),
            open: Batch::default(),
            opened_at: Instant::ZERO,
        }
    }

    /// Segments the receiver has judged.
    pub(crate) fn judged(&self) -> u64 {
        self.verdicts.0 + self.verdicts.1 + self.verdicts.2
    }

    /// The delays, in the end.
    pub(crate) fn delays(&mut self) -> Delays {
        let mut largest = Largest::<LARGEST_KEPT>::new();
        for delay in &self.delays {
            largest.record(*delay as f64);
        }
        self.delays.sort_unstable();
        let at = |share: f64| quantile(&self.delays, share);
        // Limit: a sum above 584 years stays there; the mean is then too small.
        let sum_ns = self.delays.iter().fold(0, |sum: u64, delay| sum.saturating_add(*delay));
        let square = |delay: &u64| (delay / 1_000).saturating_mul(delay / 1_000);
        let squares_us2 = self.delays.iter().fold(0, |sum: u64, delay| sum.saturating_add(square(delay)));
        Delays { sum_ns, squares_us2, median_ns: at(0.5), p99_ns: at(0.99), largest }
    }

    /// Quantiles of the delays from when segments were due, in the end.
    pub(crate) fn delays_from_due(&mut self) -> Option<Quantiles> {
        Quantiles::of(&mut self.from_due)
    }

    fn count_from_due(&mut self, now: Instant, segment: SegmentNumber) {
        let due = self.interval.map(|interval| Instant::ZERO + interval * segment.0);
        if let Some(due) = due.filter(|due| *due >= Instant::ZERO + WARM_UP) {
            self.from_due.push(now.since(due).as_nanos());
        }
    }

    fn take_start(&mut self, segment: u64) -> Option<Instant> {
        let slot = self.starts.get_mut(segment.checked_sub(self.base)? as usize)?;
        let start = std::mem::replace(slot, Instant::FAR_FUTURE);
        while self.starts.front() == Some(&Instant::FAR_FUTURE) {
            self.starts.pop_front();
            self.base += 1;
        }
        (start != Instant::FAR_FUTURE).then_some(start)
    }

    fn count_batch(&mut self, now: Instant, delay_ns: u64, packets: u64) {
        self.open.segments += 1;
        self.open.packets += packets;
        self.open.delay_sum_ns = self.open.delay_sum_ns.saturating_add(delay_ns);
        if self.open.segments == (self.segments / BATCHES).max(1) && self.batches.len() < BATCHES as usize {
            self.open.span_ns = now.since(self.opened_at).as_nanos();
            self.batches.push(std::mem::take(&mut self.open));
            self.opened_at = now;
        }
    }
}

impl Observer for Meter {
    fn started(&mut self, now: Instant, _stream: StreamId, segment: SegmentNumber) {
        if self.first_start.is_none() {
            self.first_start = Some(now);
            self.opened_at = now;
        }
        let Some(at) = segment.0.checked_sub(self.base).map(|at| at as usize) else { return };
        if self.starts.len() <= at {
            self.starts.resize(at + 1, Instant::FAR_FUTURE);
        }
        self.starts[at] = now;
    }

    fn delivered(&mut self, now: Instant, event: &ReceiverEvent) {
        let ReceiverEvent::Delivered { segment, verdict, units, holes, .. } = event else { return };
        match verdict {
            Verdict::Complete => self.verdicts.0 += 1,
            Verdict::WithinTolerance => self.verdicts.1 += 1,
            Verdict::Expired | Verdict::Unknown => self.verdicts.2 += 1,
        }
        self.last_acceptance = Some(now);
        let delay = self.take_start(segment.0).map_or(0, |start| now.since(start).as_nanos());
        self.delays.push(delay);
        self.count_from_due(now, *segment);
        let packets = if verdict.is_met() { u64::from(*units) } else { 0 };
        self.packets_accepted += packets;
        self.packets_delivered += packets.saturating_sub(u64::from(*holes));
        self.count_batch(now, delay, packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(segment: u64) -> ReceiverEvent {
        let (stream, segment) = (StreamId::FIRST, SegmentNumber(segment));
        ReceiverEvent::Delivered { stream, segment, verdict: Verdict::Complete, units: 256, holes: 0 }
    }

    #[test]
    fn a_segment_that_leaves_late_is_late_by_when_it_was_due() {
        let second = Duration::from_secs(1);
        let mut meter = Meter::new(4, Some(second));
        for segment in 0..4 {
            // Due after as many seconds, it leaves half a second late, and needs a tenth.
            let leaves = Instant::ZERO + second * segment + second / 2;
            meter.started(leaves, StreamId::FIRST, SegmentNumber(segment));
            meter.delivered(leaves + second / 10, &delivered(segment));
        }
        assert_eq!(meter.delays().p99_ns, 100_000_000);
        // Those due after none and one seconds are of the warm-up.
        let late = 600_000_000;
        assert_eq!(meter.delays_from_due(), Some(Quantiles { segments: 2, median_ns: late, p95_ns: late, p99_ns: late }));
        assert_eq!(Meter::new(4, None).delays_from_due(), None);
    }
}
