//! The largest bandwidth of this cycle of ProbeBW and the one before (5.5.2 to 5.5.6).
//!
//! Called by BBR for each report. Invariant: what the application held back counts only where it is more than was known.

use super::RateSample;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    /// Of the cycle before, and of this one.
    cycles: [f64; 2],
}

impl MaxBandwidth {
    /// BBR.max_bw.
    pub(super) const fn get(&self) -> f64 {
        self.cycles[0].max(self.cycles[1])
    }

    /// UpdateMaxBw.
    pub(super) const fn update(&mut self, rs: &RateSample) {
        if rs.delivery_rate > 0.0 && (rs.delivery_rate >= self.get() || !rs.is_app_limited) {
            self.cycles[1] = self.cycles[1].max(rs.delivery_rate);
        }
    }

    /// AdvanceMaxBwFilter: the next cycle begins.
    pub(super) const fn advance(&mut self) {
        // Why not where nothing was seen: then a cycle would be forgotten for none.
        if self.cycles[1] > 0.0 {
            self.cycles = [self.cycles[1], 0.0];
        }
    }
}
