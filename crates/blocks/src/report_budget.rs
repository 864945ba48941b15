//! A rate limiter of reports: a report costs the end systems as much as a shipment (AA Table 1), so their long-term rate is bounded,
//! whatever happens on the path.
//!
//! Called by the receiver when something is to be reported at once. Source: the generic cell rate algorithm in its
//! virtual-scheduling form (ITU-T I.371): every report moves a theoretical time on by the gap, and the next may leave
//! when that is no more than a few gaps ahead.
//!
//! Invariant: any span of time t has at most t / gap + [`BURST`] + 1 reports that asked here first.

use segstream_base::{Duration, Instant};

/// Reports that may follow each other at once after a pause: single losses are told when they are found.
pub const BURST: u64 = 4;

/// The budget of one receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportBudget {
    /// When all reports so far would be over, had each been a gap behind the one before it.
    spent: Instant,
}

impl ReportBudget {
    /// An untouched budget.
    pub const fn new(now: Instant) -> Self {
        Self { spent: now }
    }

    /// When the next report may leave, from `now` on.
    #[inline]
    pub fn earliest(&self, now: Instant, gap: Duration) -> Instant {
        now.max(self.spent - gap * BURST)
    }

    /// A report of this many shipments has left.
    #[inline]
    pub fn spend(&mut self, now: Instant, gap: Duration, shipments: u64) {
        let before = self.spent;
        self.spent = self.spent.max(now) + gap * shipments;
        debug_assert!(self.spent >= before && self.spent >= now, "a report was given back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GAP: Duration = Duration::from_millis(3);

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn single_reports_leave_at_once_and_many_a_gap_apart() {
        let mut budget = ReportBudget::new(Instant::ZERO);
        let mut left = Vec::new();
        let mut now = ms(100);
        for _ in 0..8 {
            now = budget.earliest(now, GAP);
            left.push(now);
            budget.spend(now, GAP, 1);
        }
        assert_eq!(left, [100, 100, 100, 100, 100, 103, 106, 109].map(ms));
        assert_eq!(budget.earliest(ms(1000), GAP), ms(1000), "a pause gives the burst back");
    }

    #[test]
    fn a_long_report_counts_for_as_many_as_it_has_shipments() {
        let mut budget = ReportBudget::new(Instant::ZERO);
        budget.spend(ms(50), GAP, 8);
        assert_eq!(budget.earliest(ms(50), GAP), ms(62));
    }

    proptest! {
        #[test]
        fn no_span_has_more_reports_than_the_gap_allows(asked in proptest::collection::vec(0_u64..2_000, 1..200)) {
            let mut budget = ReportBudget::new(Instant::ZERO);
            let (mut now, mut left) = (Instant::ZERO, Vec::new());
            for micros in asked {
                now = budget.earliest(now + Duration::from_micros(micros), GAP);
                left.push(now);
                budget.spend(now, GAP, 1);
            }
            for (from, first) in left.iter().enumerate() {
                for (to, last) in left.iter().enumerate().skip(from) {
                    let allowed = last.since(*first).as_nanos() / GAP.as_nanos() + BURST + 1;
                    prop_assert!((to - from + 1) as u64 <= allowed);
                }
            }
        }
    }
}
