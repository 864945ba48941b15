//! The full-pipe estimator (5.3.1.2): three rounds in which more was tried and not a quarter more was delivered mean that the path's
//! bandwidth is used.
//!
//! Called by BBR for each report; read in startup and in ProbeBW_UP.
//!
//! Invariant: what was reached stays so. Rounds in which the application was the limit count for nothing.

use super::RateSample;

/// What counts as growth.
const GROWTH: f64 = 1.25;
/// Rounds without it.
const ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached: it ever was.
    pub(super) reached: bool,
    /// BBR.full_bw_now: it is, since this was looked for last.
    pub(super) now: bool,
    /// BBR.full_bw, and BBR.full_bw_count.
    bw: f64,
    count: u32,
}

impl FullPipe {
    /// ResetFullBW, with what is delivered to begin with.
    pub(super) const fn reset(&mut self, bw: f64) {
        self.bw = bw;
        self.count = 0;
        self.now = false;
    }

    /// Something else has shown that the pipe is full (5.3.1.3).
    pub(super) const fn conclude(&mut self) {
        self.now = true;
        self.reached = true;
    }

    /// CheckFullBWReached.
    pub(super) fn check(&mut self, rs: &RateSample, round_start: bool) {
        if self.now || !round_start || rs.is_app_limited {
            return;
        }
        if rs.delivery_rate >= self.bw * GROWTH {
            self.reset(rs.delivery_rate);
            return;
        }
        self.count += 1;
        if self.count >= ROUNDS {
            self.conclude();
        }
    }
}
