//! The controller of the dual queue: PI2 and what couples the two queues (RFC 9332 A.1).
//!
//! Called by `dualpi2`.
//!
//! A base probability p' moves every `T_update` by how far the delay of the queue is from the target and by how it has changed.
//! Classic packets are dropped with its square, as TCP's rate goes with the root of its losses; L4S packets are marked with k
//! times it, as the rate of a scalable control goes with its marks, so both kinds get about the same (RFC 9332 2.1).
//!
//! Invariant: p' lies in [0, 1], and an update costs the same however long nothing happened.

use segstream_base::{Duration, Instant};

/// After this many updates without a queue the probability is zero, whatever it was.
const UPDATES_MOST: u64 = 1024;

/// With the names of RFC 9332 A.1.
#[derive(Clone, Debug)]
pub(super) struct Pi2 {
    target: f64,
    update: Duration,
    alpha: f64,
    beta: f64,
    k: f64,
    next_update: Instant,
    p: f64,
    prev_q: f64,
}

impl Pi2 {
    /// An idle controller.
    pub(super) fn new(target: Duration, rtt: Duration, coupling: u32) -> Self {
        let update = target.min(rtt / 3).max(Duration::from_nanos(1));
        let rtt = rtt.as_secs_f64();
        Self {
            target: target.as_secs_f64(),
            update,
            alpha: 0.1 * update.as_secs_f64() / (rtt * rtt),
            beta: 0.3 / rtt,
            k: f64::from(coupling),
            next_update: Instant::ZERO + update,
            p: 0.0,
            prev_q: 0.0,
        }
    }

    /// Performs the updates that were due by `now`. `delay` tells how long the queue was at an instant, given that nothing entered or
    /// left since the last call.
    pub(super) fn update_until(&mut self, now: Instant, delay: impl Fn(Instant) -> Duration) {
        for _ in 0..UPDATES_MOST {
            if self.next_update > now {
                return;
            }
            self.update(delay(self.next_update).as_secs_f64());
            self.next_update += self.update;
        }
        let missed = now.since(self.next_update).as_nanos() / self.update.as_nanos();
        self.next_update += self.update * missed.saturating_add(1);
    }

    /// `dualpi2_update` of RFC 9332 A.1.
    fn update(&mut self, cur_q: f64) {
        let p = self.p + self.alpha * (cur_q - self.target) + self.beta * (cur_q - self.prev_q);
        self.p = p.clamp(0.0, 1.0);
        self.prev_q = cur_q;
    }

    /// With which probability a classic packet is dropped or marked: p'^2.
    pub(super) fn classic(&self) -> f64 {
        self.p * self.p
    }

    /// With which probability an L4S packet is marked because of the classic queue: k p'.
    pub(super) fn coupled(&self) -> f64 {
        self.k * self.p
    }

    /// Whether every L4S packet is marked because of the classic queue, so that drops must help (RFC 9332 A.2). There the classic
    /// probability reaches `p_Cmax = min(1/k^2, 1)`.
    pub(super) fn is_overloaded(&self) -> bool {
        self.coupled() >= 1.0
    }

    #[cfg(test)]
    pub(super) fn set(&mut self, p: f64) {
        self.p = p;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pi2() -> Pi2 {
        Pi2::new(MS * 15, MS * 100, 2)
    }

    #[test]
    fn the_gains_are_those_of_the_rfc() {
        let pi2 = pi2();
        assert_eq!(pi2.update, MS * 15);
        assert!((pi2.alpha - 0.15).abs() < 1e-12 && (pi2.beta - 3.0).abs() < 1e-12);
        assert_eq!(Pi2::new(MS * 15, MS * 30, 2).update, MS * 10);
    }

    #[test]
    fn an_update_moves_the_probability_by_error_and_by_change() {
        let mut pi2 = pi2();
        pi2.update_until(Instant::ZERO + MS * 15, |_| MS * 25);
        let first = 0.15 * 0.010 + 3.0 * 0.025;
        assert!((pi2.p - first).abs() < 1e-12, "{}", pi2.p);
        // Nothing is due before 30 ms; then the queue has not changed.
        pi2.update_until(Instant::ZERO + MS * 29, |_| MS * 99);
        assert!((pi2.p - first).abs() < 1e-12);
        pi2.update_until(Instant::ZERO + MS * 30, |_| MS * 25);
        assert!((pi2.p - first - 0.15 * 0.010).abs() < 1e-12, "{}", pi2.p);
        assert!((pi2.classic() - pi2.p * pi2.p).abs() < 1e-15 && (pi2.coupled() - 2.0 * pi2.p).abs() < 1e-15);
    }

    #[test]
    fn without_a_queue_it_comes_to_rest_however_long_that_is() {
        let mut pi2 = pi2();
        pi2.set(1.0);
        assert!(pi2.is_overloaded());
        pi2.update_until(Instant::ZERO + Duration::from_secs(1_000_000), |_| Duration::ZERO);
        assert_eq!(pi2.p, 0.0);
        assert!(pi2.next_update > Instant::ZERO + Duration::from_secs(1_000_000));
        pi2.update_until(Instant::FAR_FUTURE, |_| Duration::ZERO);
    }

    #[test]
    fn the_overload_begins_where_a_quarter_of_the_classic_packets_is_dropped() {
        let mut pi2 = pi2();
        pi2.set(0.499);
        assert!(!pi2.is_overloaded());
        pi2.set(0.5);
        assert!(pi2.is_overloaded() && (pi2.classic() - 0.25).abs() < 1e-12);
    }
}
