//! `cubic`: a window that grows as the cube of the time since the last loss, and leaves slow start when delay grows.
//!
//! Two of it are in the list. [`ALGORITHM`] is for users. [`LINUX`] is the cross traffic of simulations, which must be what a flow
//! meets in the field:
//!
//! | | `cubic` | `linux_cubic` |
//! |---|---|---|
//! | slow start ends | by HyStart++ (RFC 9406), which takes jitter for a queue more rarely | by the delay exit of HyStart, as `tcp_cubic` |
//! | pacing | twice the window a round trip in slow start, then 1.25 times (RFC 9002 7.7) | none, as without `fq` |
//! | after a timeout | K = 0 and W_max = the window (RFC 9438 4.8) | the epoch goes on below the last maximum |
//!
//! Invariant: in an epoch the window follows W(t) = C (t - K)^3 + W_max, or Reno's where that is larger.
//! Source: RFC 9438 4.
//!
//! Limit: a spurious loss (4.9) is not undone.

use super::delay_exit::DelayExit;
use super::hystart::HyStart;
use super::window::{LEAST, Window, WindowController, WindowLaw};
use super::{Algorithm, Clock, Limit, Report};
use segstream_base::Instant;

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "cubic",
    about: "a window that grows as the cube of the time since the last loss (RFC 9438), paced",
    offered: true,
    clock: Clock::Reports,
    responds_to_ecn: true,
    start: |start| Box::new(WindowController::<Cubic<HyStart>>::new(start)),
};

/// The entry of what Linux does.
pub const LINUX: Algorithm = Algorithm {
    name: "linux_cubic",
    about: "a window that grows as the cube of the time since the last loss (as Linux has it)",
    offered: false,
    clock: Clock::Reports,
    responds_to_ecn: true,
    start: |start| Box::new(WindowController::<Cubic<DelayExit>>::new(start)),
};

/// C, in packets a cubic second (RFC 9438 4.1).
const C: f64 = 0.4;
/// What is left of the window after a loss (RFC 9438 4.6).
const BETA: f64 = 0.7;
/// Reno's growth a round trip that gives the same mean with this factor (RFC 9438 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Windows a round trip at which packets leave: enough above one that the window is what limits (RFC 9002 7.7), and in slow start
/// enough to double it.
const PACING: f64 = 1.25;
const PACING_SLOW_START: f64 = 2.0;

/// CUBIC that leaves slow start by `E`.
#[derive(Clone, Copy, Debug, Default)]
struct Cubic<E> {
    /// W_max: the window before the last reduction, lowered by fast convergence.
    window_max: f64,
    /// The window at the last reduction itself.
    window_prior: f64,
    epoch: Option<Epoch>,
    /// The last acknowledgment that found the window not fully used; the epoch does not count that time.
    unused_since: Option<Instant>,
    exit: E,
}

/// What ends slow start, and with it whose CUBIC it is.
trait Exit: core::fmt::Debug + Default + Send {
    /// The RFC's, and not Linux's.
    const IS_RFC: bool;

    /// Of what a report acknowledges, how much the window grows by; `None` when slow start is over.
    fn growth(&mut self, report: &Report) -> Option<f64>;

    /// Whether slow start is over with a window of `size` packets, which has grown.
    fn is_over(&mut self, report: &Report, size: f64) -> bool;
}

impl Exit for HyStart {
    const IS_RFC: bool = true;

    fn growth(&mut self, report: &Report) -> Option<f64> {
        self.on_report(report)
    }

    fn is_over(&mut self, _report: &Report, _size: f64) -> bool {
        false
    }
}

impl Exit for DelayExit {
    const IS_RFC: bool = false;

    fn growth(&mut self, _report: &Report) -> Option<f64> {
        Some(1.0)
    }

    fn is_over(&mut self, report: &Report, size: f64) -> bool {
        self.shall_leave(report, size)
    }
}

/// A period of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds until the window is back at its maximum.
    k: f64,
    origin: f64,
    /// W_est: Reno's window (RFC 9438 4.3).
    reno: f64,
}

impl<E> Cubic<E> {
    fn begin_epoch(&self, now: Instant, window: f64) -> Epoch {
        let (origin, k) =
            if window < self.window_max { (self.window_max, libm::cbrt((self.window_max - window) / C)) } else { (window, 0.0) };
        Epoch { start: now, k, origin, reno: window }
    }

    fn avoid_congestion(&mut self, window: &mut Window, now: Instant, report: &Report) {
        let size = window.size;
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(now, size));
        if let Some(since) = self.unused_since.take() {
            epoch.start += now.since(since.max(epoch.start));
        }
        let packets = window.units.packets(report.delivered);
        let rtt = report.rtt_min.as_secs_f64();
        let at = |seconds: f64| {
            let from_k = seconds - epoch.k;
            C * from_k * from_k * from_k + epoch.origin
        };
        let t = now.since(epoch.start).as_secs_f64();
        let target = at(t + rtt).clamp(size, 1.5 * size);
        let alpha = if epoch.reno >= self.window_prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * packets / size;
        window.size = if at(t) < epoch.reno { size.max(epoch.reno) } else { size + (target - size) / size * packets };
        self.epoch = Some(epoch);
    }

    fn reduce(&mut self, window: &mut Window) {
        self.epoch = None;
        self.unused_since = None;
        self.window_prior = window.size;
        // RFC 9438 4.7: a flow that lost below its last maximum leaves room to others.
        self.window_max = if window.size < self.window_max { window.size * (1.0 + BETA) / 2.0 } else { window.size };
        window.threshold = (window.size * BETA).max(LEAST);
    }
}

impl<E: Exit> WindowLaw for Cubic<E> {
    fn on_report(&mut self, window: &mut Window, now: Instant, report: &Report) {
        if report.event.is_some() {
            self.reduce(window);
            window.size = window.threshold;
        }
        if report.recovering {
            return;
        }
        if report.limited != Some(Limit::Cap) {
            self.unused_since.get_or_insert(now);
            return;
        }
        if window.in_slow_start() {
            let growth = self.exit.growth(report);
            window.slow_start(report.delivered, growth.unwrap_or(1.0));
            if growth.is_none() || self.exit.is_over(report, window.size) {
                window.threshold = window.size;
            }
        } else {
            self.avoid_congestion(window, now, report);
        }
    }

    fn on_timeout(&mut self, window: &mut Window, expiry: u32, _in_flight: u64) {
        if expiry == 1 {
            self.reduce(window);
            if E::IS_RFC {
                // RFC 9438 4.8: the next epoch begins at its own window.
                self.window_max = 0.0;
            }
        }
        self.exit = E::default();
    }

    fn pacing_gain(&self, window: &Window) -> Option<f64> {
        E::IS_RFC.then_some(if window.in_slow_start() { PACING_SLOW_START } else { PACING })
    }
}
