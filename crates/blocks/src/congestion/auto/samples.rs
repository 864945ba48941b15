//! The exchanges of the last control times, and sums over them.
//!
//! Called by the readings.
//!
//! Invariant: no more than 192 are kept, and nothing is allocated once they are; of a connection that is idle only two.

use std::collections::VecDeque;

/// Samples kept: four control times at sixteen a control time, or twelve where noise is longer than the control time.
const KEPT: usize = 192;
/// What is kept over a pause: the newest.
const KEPT_OVER_PAUSE: usize = 2;

/// One exchange, or a sum of several. Seconds and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) sent: f64,
    pub(super) received: f64,
    pub(super) shipments: f64,
    pub(super) lost: f64,
    pub(super) marked: f64,
    pub(super) delay: i64,
    /// A queue stood at both ends of it.
    pub(super) saturated: bool,
    pub(super) limited: bool,
    /// The queue was short.
    pub(super) calm: bool,
}

/// The exchanges, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(VecDeque<Sample>);

impl Samples {
    pub(super) fn push(&mut self, sample: Sample) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// None describes the path any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The newest covers a pause.
    pub(super) fn forget_before_pause(&mut self) {
        self.0.drain(..self.0.len().saturating_sub(KEPT_OVER_PAUSE));
        self.0.shrink_to(KEPT_OVER_PAUSE);
    }

    /// The newest samples, back to `span` before the newest.
    pub(super) fn recent(&self, span: f64) -> impl Iterator<Item = &Sample> {
        let mut covered = 0.0;
        self.0.iter().rev().take_while(move |sample| {
            let within = covered < span;
            covered += sample.alpha;
            within
        })
    }

    /// The sum of those of the newest back to `span` for which `which` holds.
    pub(super) fn sum(&self, span: f64, which: impl Fn(&Sample) -> bool) -> Sample {
        let mut sum = Sample::default();
        for sample in self.recent(span).filter(|sample| which(sample)) {
            sum.alpha += sample.alpha;
            sum.beta += sample.beta;
            sum.sent += sample.sent;
            sum.received += sample.received;
            sum.shipments += sample.shipments;
            sum.lost += sample.lost;
            sum.marked += sample.marked;
        }
        sum
    }

    /// The delays at both ends of the newest.
    pub(super) fn ends(&self) -> impl Iterator<Item = i64> {
        self.0.iter().rev().take(2).map(|sample| sample.delay)
    }
}
