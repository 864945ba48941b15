//! A window in datagrams that grows as CUBIC's (RFC 9438): fast to where it was, flat there, then faster again.
//!
//! Called by competitive mode. Without fast convergence, and with the Reno-friendly region of RFC 9438 4.3.
//!
//! Invariant: the window is at least four datagrams.

use segstream_base::{Duration, Instant};

/// What is left after a decrease (RFC 9438 4.6).
const BETA: f64 = 0.7;
/// The constant C (RFC 9438 5.1), datagrams a cubic second.
const C: f64 = 0.4;
/// Reno's growth with that decrease, datagrams a round trip (RFC 9438 4.3). Why not one above `most`: Linux does not either, and is what
/// the window is beside.
const RENO_GROWTH: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The least window.
const LEAST: f64 = 4.0;

/// The window.
#[derive(Clone, Copy, Debug)]
pub(super) struct CubicWindow {
    window: f64,
    /// The window before the last decrease, and when that was.
    most: f64,
    epoch: Instant,
    /// How far below `most` it began again.
    fall: f64,
    /// What Reno's window would be (RFC 9438 4.3, W_est).
    reno: f64,
}

impl CubicWindow {
    /// A window that nothing has decreased: it grows from the beginning (RFC 9438 4.10).
    pub(super) fn new(now: Instant, window: f64) -> Self {
        let window = window.max(LEAST);
        Self { window, most: window, epoch: now, fall: 0.0, reno: window }
    }

    /// Datagrams.
    pub(super) const fn get(&self) -> f64 {
        self.window
    }

    /// The growth due at `now`, of which `covered` seconds are the last exchange's, with a round trip of `rtt` seconds; at most half as much
    /// again.
    pub(super) fn grow(&mut self, now: Instant, covered: f64, rtt: f64) {
        let time = now.since(self.epoch).as_secs_f64();
        let plateau = libm::cbrt(self.fall / C);
        let cubic = C * (time - plateau).powi(3) + self.most;
        self.reno += RENO_GROWTH * covered / rtt;
        self.window = self.window.max(cubic.max(self.reno).min(1.5 * self.window));
    }

    /// For so long the window was not used: that time does not count (RFC 9438 5.8).
    pub(super) fn pause(&mut self, time: Duration) {
        self.epoch += time;
    }

    /// A multiplicative change besides the law.
    pub(super) fn scale(&mut self, factor: f64) {
        self.window = (self.window * factor).max(LEAST);
    }

    /// Congestion: a decrease, and a new epoch.
    pub(super) fn decrease(&mut self, now: Instant) {
        self.most = self.window;
        self.epoch = now;
        self.scale(BETA);
        self.fall = self.most - self.window;
        self.reno = self.window;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_nothing_has_decreased_grows_at_once() {
        let mut cubic = CubicWindow::new(Instant::ZERO, 1000.0);
        for (seconds, covered, expected) in [(1, 1.0, 1005.3), (5, 4.0, 1050.0)] {
            cubic.grow(Instant::ZERO + Duration::from_secs(seconds), covered, 0.1);
            assert!((cubic.get() - expected).abs() < 0.1, "{seconds} s: {}", cubic.get());
        }
        cubic.pause(Duration::from_secs(3));
        cubic.grow(Instant::ZERO + Duration::from_secs(8), 0.0, 0.1);
        assert!((cubic.get() - 1050.0).abs() < 0.1, "what was not used does not count: {}", cubic.get());
    }

    #[test]
    fn the_window_is_back_after_the_cube_root_and_then_grows_faster() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut cubic = CubicWindow::new(at(0), 1000.0);
        cubic.decrease(at(0));
        assert_eq!(cubic.get(), 700.0);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.086 s.
        for (millis, expected) in [(4_543, 962.5), (9_086, 1000.0), (13_629, 1037.5)] {
            cubic.grow(at(millis), 4.543, 0.1);
            assert!((cubic.get() - expected).abs() < 0.1, "{millis} ms: {}", cubic.get());
        }
        cubic.scale(1e-3);
        assert_eq!(cubic.get(), LEAST);
    }

    #[test]
    fn reno_has_grown_by_each_round_trip_as_it_was_and_not_by_the_last() {
        let mut cubic = CubicWindow::new(Instant::ZERO, 20.0);
        cubic.decrease(Instant::ZERO);
        let mut rtt = 0.01;
        for tenths in 1..=4 {
            cubic.grow(Instant::ZERO + Duration::from_millis(100 * tenths), 0.1, rtt);
            rtt = 0.1;
        }
        // 14 datagrams, ten round trips of 10 ms and three of 100 ms: CUBIC's own window is back at 20 after 2.5 s only.
        assert!((cubic.get() - (14.0 + 13.0 * RENO_GROWTH)).abs() < 1e-9, "{}", cubic.get());
    }
}
