//! PIE, the proportional integral controller enhanced (RFC 8033), decided when a packet arrives.
//!
//! Called by [`crate::bottleneck`] for each packet that its queue has room for.
//!
//! Every `update` the probability to drop moves by how far the delay of the queue is from the target and by how it has changed
//! (RFC 8033 4.2). What arrives is dropped with it (4.1), or marked while it is not above 10 % (5.1); a burst that finds an
//! idle queue is not dropped (4.4). Of the optional parts, decisions are spread evenly (5.4) and a high probability grows slowly
//! (5.5). The delay is not estimated from a rate: behind a first-in-first-out queue what would arrive at an instant knows how
//! long it would wait (4.3 allows any measure of it).
//!
//! Where RFC 8033 says two things: a probability of exactly 10 % still marks, as the sentence of 5.1 says and Linux does, not its
//! pseudocode; the decay waits for two empty samples of the queue (4.2), not for two below half of the target (Appendix B).
//!
//! Limit: it is never switched off (5.3 is optional). The gains are those of the default target and update: 4.2 gives only a rule of
//! thumb for others.
//!
//! Invariant: the probability lies in [0, 1], and an update costs the same however long nothing arrived.

use crate::codel::Decision;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bytes, Duration, Instant};

/// RFC 8033 5.1: above this probability packets are dropped although they could be marked.
const MARK_MOST: f64 = 0.1;
/// RFC 8033 4.1: with at most two packets in the queue nothing is dropped.
const SPARED: Bytes = Bytes::new(2 * 1500);
/// After this many updates without an arrival, a minute of the default, the probability is zero to all digits.
const UPDATES_MOST: u64 = 4096;

/// The state of the controller, with the names of RFC 8033.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    target: Duration,
    update: Duration,
    burst: Duration,
    next_update: Instant,
    drop_prob: f64,
    /// The probabilities since the last decision against a packet, added up.
    accu_prob: f64,
    qdelay_old: Duration,
    burst_allowance: Duration,
    random: Random,
}

impl Pie {
    /// An idle controller, drawn from the stream `pie.<direction>`.
    pub(crate) fn new(target: Duration, update: Duration, burst: Duration, seed: Seed, direction: &str) -> Self {
        Self {
            target,
            update,
            burst,
            next_update: Instant::ZERO + update,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: Duration::ZERO,
            burst_allowance: burst,
            random: seed.stream(&format!("pie.{direction}")),
        }
    }

    /// Performs the updates that were due by `now`, while nothing arrived and the link was busy until `free_at`.
    pub(crate) fn update_until(&mut self, now: Instant, free_at: Instant) {
        for _ in 0..UPDATES_MOST {
            if self.next_update > now {
                return;
            }
            self.update(free_at.since(self.next_update));
            self.next_update += self.update;
        }
        let missed = now.since(self.next_update).as_nanos() / self.update.as_nanos().max(1);
        self.next_update += self.update * missed.saturating_add(1);
    }

    /// The full queue has dropped a packet: the count to the next drop begins anew (RFC 8033 Appendix B).
    pub(crate) fn queue_was_full(&mut self) {
        self.accu_prob = 0.0;
    }

    /// The fate of a packet that finds `waiting` in the queue.
    pub(crate) fn decide(&mut self, waiting: Bytes, markable: bool) -> Decision {
        if !self.burst_allowance.is_zero() || !self.drops_early(waiting) {
            Decision::Send
        } else if markable && self.drop_prob <= MARK_MOST {
            Decision::Mark
        } else {
            Decision::Drop
        }
    }

    /// `drop_early` of RFC 8033 4.1, with 5.4.
    fn drops_early(&mut self, waiting: Bytes) -> bool {
        if (self.qdelay_old < self.target / 2 && self.drop_prob < 0.2) || waiting <= SPARED {
            return false;
        }
        self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + self.drop_prob };
        let drops = self.accu_prob >= 8.5 || (self.accu_prob >= 0.85 && self.random.chance(self.drop_prob));
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// RFC 8033 4.2 and 4.4, with 5.5.
    fn update(&mut self, qdelay: Duration) {
        const ALPHA: f64 = 0.125;
        const BETA: f64 = 1.25;
        let seconds = |span: Duration| span.as_secs_f64();
        let mut p = ALPHA * (seconds(qdelay) - seconds(self.target)) + BETA * (seconds(qdelay) - seconds(self.qdelay_old));
        p *= self.scale();
        if self.drop_prob >= 0.1 {
            p = p.min(0.02);
        }
        self.drop_prob += p;
        if qdelay.is_zero() && self.qdelay_old.is_zero() {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        let calm = self.drop_prob == 0.0 && qdelay < self.target / 2 && self.qdelay_old < self.target / 2;
        self.qdelay_old = qdelay;
        self.burst_allowance = if calm { self.burst } else { self.burst_allowance.saturating_sub(self.update) };
    }

    /// RFC 8033 4.2: the smaller the probability is, the smaller its steps.
    fn scale(&self) -> f64 {
        match self.drop_prob {
            p if p < 0.000_001 => 1.0 / 2048.0,
            p if p < 0.000_01 => 1.0 / 512.0,
            p if p < 0.000_1 => 1.0 / 128.0,
            p if p < 0.001 => 1.0 / 32.0,
            p if p < 0.01 => 1.0 / 8.0,
            p if p < 0.1 => 1.0 / 2.0,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pie() -> Pie {
        Pie::new(MS * 15, MS * 15, MS * 150, Seed(1), "forward")
    }

    /// Updates with a delay that stays.
    fn updates(pie: &mut Pie, qdelay: Duration, count: u64) {
        for _ in 0..count {
            pie.update(qdelay);
        }
    }

    #[test]
    fn an_update_moves_the_probability_as_the_rfc_says() {
        let mut pie = pie();
        // From 0: (0.125 x (25 - 15) ms + 1.25 x (25 - 0) ms) / 2048.
        pie.update(MS * 25);
        let first = (0.125 * 0.010 + 1.25 * 0.025) / 2048.0;
        assert!((pie.drop_prob - first).abs() < 1e-15, "{}", pie.drop_prob);
        // Between 1e-5 and 1e-4: by 128, and nothing has changed: 0.125 x 10 ms / 128.
        assert!((0.000_01..0.000_1).contains(&first));
        pie.update(MS * 25);
        assert!((pie.drop_prob - first - 0.125 * 0.010 / 128.0).abs() < 1e-15, "{}", pie.drop_prob);
        for (from, scale) in [(0.000_000_5, 2048.0), (0.000_005, 512.0), (0.000_5, 32.0), (0.005, 8.0), (0.05, 2.0), (0.3, 1.0)] {
            pie.drop_prob = from;
            pie.qdelay_old = MS * 16;
            pie.update(MS * 16);
            assert!((pie.drop_prob - from - 0.125 * 0.001 / scale).abs() < 1e-12, "{from}: {}", pie.drop_prob);
        }
    }

    #[test]
    fn a_high_probability_grows_by_at_most_two_hundredths_and_ends_at_one() {
        let mut pie = pie();
        pie.drop_prob = 0.5;
        pie.update(MS * 800);
        assert!((pie.drop_prob - 0.52).abs() < 1e-12, "{}", pie.drop_prob);
        updates(&mut pie, MS * 800, 100);
        assert_eq!(pie.drop_prob, 1.0);
    }

    #[test]
    fn without_a_queue_the_probability_decays() {
        let mut pie = pie();
        pie.drop_prob = 0.5;
        pie.update(Duration::ZERO);
        assert!((pie.drop_prob - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12, "{}", pie.drop_prob);
        pie.update_until(Instant::ZERO + Duration::from_secs(3600), Instant::ZERO);
        assert_eq!((pie.drop_prob, pie.next_update > Instant::ZERO + Duration::from_secs(3600)), (0.0, true));
        pie.update_until(Instant::FAR_FUTURE, Instant::ZERO);
    }

    #[test]
    fn a_burst_is_left_alone_for_as_long_as_it_may() {
        let mut pie = pie();
        pie.drop_prob = 1.0;
        // Ten updates of 15 ms use up 150 ms.
        for update in 0..10 {
            assert_eq!(pie.decide(Bytes::new(100_000), false), Decision::Send, "{update}");
            pie.update(MS * 100);
        }
        assert_eq!(pie.decide(Bytes::new(100_000), false), Decision::Drop);
        // Only a queue that has come to rest gives it back.
        pie.drop_prob = 0.001;
        pie.update(MS);
        assert!(pie.burst_allowance.is_zero());
        updates(&mut pie, Duration::ZERO, 1000);
        assert_eq!(pie.burst_allowance, MS * 150);
    }

    #[test]
    fn two_packets_and_a_short_delay_are_spared() {
        let mut pie = pie();
        pie.burst_allowance = Duration::ZERO;
        (pie.drop_prob, pie.qdelay_old) = (1.0, MS * 100);
        assert_eq!([3000, 3001].map(|waiting| pie.decide(Bytes::new(waiting), false)), [Decision::Send, Decision::Drop]);
        (pie.drop_prob, pie.qdelay_old) = (0.19, MS * 7);
        assert!((0..1000).all(|_| pie.decide(Bytes::new(9000), false) == Decision::Send));
        pie.drop_prob = 0.2;
        assert!((0..1000).any(|_| pie.decide(Bytes::new(9000), false) == Decision::Drop));
    }

    #[test]
    fn a_drop_of_the_full_queue_counts_as_one_of_the_spread() {
        let mut pie = pie();
        pie.burst_allowance = Duration::ZERO;
        (pie.drop_prob, pie.qdelay_old) = (0.5, MS * 20);
        // 0.5 is below 0.85, so the first packet behind a drop is sent.
        for _ in 0..100 {
            assert_eq!(pie.decide(Bytes::new(9000), false), Decision::Send);
            pie.queue_was_full();
        }
        assert!((0..100).any(|_| pie.decide(Bytes::new(9000), false) == Decision::Drop));
    }

    #[test]
    fn decisions_are_spread_and_as_many_as_the_spread_allows() {
        let mut pie = pie();
        pie.burst_allowance = Duration::ZERO;
        (pie.drop_prob, pie.qdelay_old) = (0.05, MS * 20);
        let (mut gaps, mut gap) = (Vec::new(), 0u64);
        for _ in 0..200_000 {
            gap += 1;
            if pie.decide(Bytes::new(9000), false) == Decision::Drop {
                gaps.push(gap);
                gap = 0;
            }
        }
        // 17 packets bring 0.85, and 170 bring 8.5 (171 where the sum is short by a rounding). Behind the first 16 the gap is geometric: mean 16 + 20, variance 380.
        assert!(gaps.iter().all(|gap| (17..=171).contains(gap)));
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 36.0).abs() < 5.0 * (380.0 / gaps.len() as f64).sqrt(), "{mean}");
    }

    #[test]
    fn what_can_be_marked_is_marked_up_to_a_tenth_and_dropped_above() {
        for (drop_prob, hit) in [(0.1, Decision::Mark), (0.101, Decision::Drop)] {
            let mut pie = pie();
            pie.burst_allowance = Duration::ZERO;
            (pie.drop_prob, pie.qdelay_old) = (drop_prob, MS * 20);
            let decisions: Vec<Decision> = (0..1000).map(|_| pie.decide(Bytes::new(9000), true)).collect();
            assert!(decisions.iter().all(|decision| [Decision::Send, hit].contains(decision)) && decisions.contains(&hit));
        }
    }
}
