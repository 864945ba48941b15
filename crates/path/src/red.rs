//! RED, random early detection (Floyd and Jacobson, IEEE/ACM Trans. Networking 1(4), 1993), decided when a packet arrives.
//!
//! Called by [`crate::bottleneck`] for each packet that arrives.
//!
//! An average of the queue, in packets and with exponential weights, says how likely an arriving packet is dropped: not at all below
//! `minth`, and up to `maxp` at `maxth`. From there to twice `maxth` the probability grows to 1 ("gentle": Floyd, Recommendation on using
//! the gentle variant of RED, 2000), and above every packet is dropped. Between two decisions packets are counted, so that drops are
//! spread evenly and not geometrically (method 2 of the paper, section 7). While the link is idle the average decays as if small packets
//! had found an empty queue; theirs is taken as the time of 1500 bytes, of which this model's packets mostly are.
//!
//! A packet that finds one packet in the queue at most is spared, as in Floyd's own implementation (ns): an average that is still high
//! would otherwise empty the link.
//!
//! A markable packet is marked where another would be dropped with a probability, and dropped where all are.
//!
//! Invariant: the average lies between 0 and the longest queue there was, and an arrival costs the same however long the link was idle.

use crate::codel::Decision;
use segstream_base::random::{Random, Seed};

/// With at most so many packets in the queue nothing is dropped.
const SPARED: u64 = 1;

/// The state, with the names of the paper.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    min_th: f64,
    max_th: f64,
    max_p: f64,
    weight: f64,
    /// The average of the queue in packets.
    average: f64,
    /// The packets that the last one has found there.
    waiting: u64,
    /// The packets since the last decision against one; `None` while the average is below `min_th` (the paper's -1).
    count: Option<u64>,
    random: Random,
}

impl Red {
    /// An idle queue, drawn from the stream `red.<direction>`. Shares are in millionths.
    pub(crate) fn new(min_th: u32, max_th: u32, max_p_ppm: u32, weight_ppm: u32, seed: Seed, direction: &str) -> Self {
        Self {
            min_th: f64::from(min_th),
            max_th: f64::from(max_th),
            max_p: f64::from(max_p_ppm) / 1e6,
            weight: f64::from(weight_ppm) / 1e6,
            average: 0.0,
            waiting: 0,
            count: None,
            random: seed.stream(&format!("red.{direction}")),
        }
    }

    /// A packet arrives and finds `waiting` packets, after the link was idle for the time of `idle_packets`.
    pub(crate) fn arrive(&mut self, waiting: u64, idle_packets: u64) {
        self.waiting = waiting;
        if idle_packets > 0 {
            self.average *= power(1.0 - self.weight, idle_packets);
        } else {
            self.average += self.weight * (waiting as f64 - self.average);
        }
    }

    /// The full queue has dropped the packet: the count to the next drop begins anew.
    pub(crate) fn queue_was_full(&mut self) {
        self.count = Some(0);
    }

    /// The fate of the packet that has arrived.
    pub(crate) fn decide(&mut self, markable: bool) -> Decision {
        if self.average < self.min_th || self.waiting <= SPARED {
            self.count = None;
            return Decision::Send;
        }
        let count = self.count.map_or(0, |count| count + 1);
        let forced = self.average >= 2.0 * self.max_th;
        let hit = forced || self.random.chance(self.probability(count));
        self.count = Some(if hit { 0 } else { count });
        match (hit, forced || !markable) {
            (false, _) => Decision::Send,
            (true, true) => Decision::Drop,
            (true, false) => Decision::Mark,
        }
    }

    /// The probability against a packet that is number `count` since the last decision against one.
    fn probability(&self, count: u64) -> f64 {
        let of_average = if self.average < self.max_th {
            self.max_p * (self.average - self.min_th) / (self.max_th - self.min_th)
        } else {
            self.max_p + (1.0 - self.max_p) * (self.average - self.max_th) / self.max_th
        };
        let left = 1.0 - count as f64 * of_average;
        if left <= of_average { 1.0 } else { of_average / left }
    }
}

/// `base` to the power of `exponent`. Why not the library's: what it gives may differ between platforms.
fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result *= square;
        }
        square *= square;
        exponent /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(average: f64) -> Red {
        Red { average, waiting: 10, ..Red::new(5, 15, 100_000, 2_000, Seed(1), "forward") }
    }

    #[test]
    fn the_average_follows_the_queue_by_its_weight() {
        let mut red = red(0.0);
        let mut expected = 0.0;
        for waiting in 0..100u64 {
            red.arrive(waiting, 0);
            expected = 0.998 * expected + 0.002 * waiting as f64;
        }
        assert!((red.average - expected).abs() < 1e-9, "{}", red.average);
    }

    #[test]
    fn an_idle_link_lets_the_average_decay_as_so_many_packets_would() {
        let mut idle = red(12.0);
        idle.arrive(0, 350);
        let mut served = red(12.0);
        (0..350).for_each(|_| served.arrive(0, 0));
        assert!((idle.average - served.average).abs() < 1e-9 && (idle.average - 12.0 * 0.4963).abs() < 0.01, "{}", idle.average);
        idle.arrive(0, u64::MAX);
        assert_eq!(idle.average, 0.0);
    }

    #[test]
    fn below_the_lower_threshold_nothing_is_dropped_and_above_twice_the_upper_everything() {
        let (mut below, mut above) = (red(4.999), red(30.0));
        assert!((0..10_000).all(|_| below.decide(false) == Decision::Send));
        assert!((0..10_000).all(|_| above.decide(true) == Decision::Drop), "what is forced is not marked");
    }

    #[test]
    fn a_queue_of_one_packet_is_spared_whatever_the_average() {
        let mut red = Red { waiting: 1, ..red(40.0) };
        assert!((0..100).all(|_| red.decide(false) == Decision::Send));
        red.waiting = 2;
        assert_eq!(red.decide(false), Decision::Drop);
    }

    #[test]
    fn drops_are_spread_evenly() {
        // At 7 of 5 to 15: p = 0.1 * 0.2 = 0.02. Behind a drop the next is packet 1 to 49, each as likely: mean 25, variance 200.
        let mut red = red(7.0);
        let (mut gaps, mut gap) = (Vec::new(), 0u64);
        for _ in 0..200_000 {
            gap += 1;
            if red.decide(false) == Decision::Drop {
                gaps.push(gap);
                gap = 0;
            }
        }
        let gaps = &gaps[1..];
        assert!(gaps.iter().all(|gap| (1..=49).contains(gap)));
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 25.0).abs() < 5.0 * (200.0 / gaps.len() as f64).sqrt(), "{mean}");
    }

    #[test]
    fn between_the_upper_threshold_and_twice_it_the_probability_grows_to_one() {
        for (average, probability) in [(14.999_999, 0.1), (15.0, 0.1), (22.5, 0.55), (29.999_999, 1.0)] {
            assert!((red(average).probability(0) - probability).abs() < 1e-6, "{average}");
        }
        assert_eq!(red(15.0).probability(9), 1.0, "a tenth is at the latest every tenth");
    }

    #[test]
    fn what_can_be_marked_is_marked() {
        let mut red = red(20.0);
        let decisions: Vec<Decision> = (0..1000).map(|_| red.decide(true)).collect();
        assert!(decisions.contains(&Decision::Mark) && decisions.contains(&Decision::Send) && !decisions.contains(&Decision::Drop));
    }
}
