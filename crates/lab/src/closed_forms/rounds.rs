//! Rounds of retransmission: how many a segment needs, and the delays that follow (F4, F5).
//!
//! Called through [`super`]. A round is one transmission of what is still missing, followed by a wait of t_a.
//! The number of rounds of one packet is geometric; a segment needs the largest of s of them.
//!
//! Invariant: sums are cut where the rest is provably below one part in 10^16 of the sum.
//!
//! Source: EC 5.2, FC 4.2.

use super::Point;

/// The mean number of rounds of a segment: SUM over i >= 0 of 1 - (1 - p^i)^s (EC 5.2, the sum within D_s).
///
/// This is the mean of the largest of s geometric variables. The papers print it as SUM over i >= 1 of
/// i [(1 - p^i)^s - (1 - p^(i-1))^s], which is the same by partial summation but loses digits. The term of i = 0 is 1,
/// the wait for the first transmission.
///
/// Truncation: a term is at most s p^i, so what is left after i is at most s p^(i+1) / (1 - p); the sum stops when that
/// is below 1e-16 (the sum is at least 1). Above p = 0.999 the sum would have too many terms and its integral
/// is used: H_s / -ln p + 1/2 with the harmonic number H_s, right to 1e-8 there. Infinite at p >= 1, NaN for NaN.
pub fn rounds_mean(segment_packets: u32, p: f64) -> f64 {
    let s = f64::from(segment_packets);
    if p.is_nan() || segment_packets == 0 {
        return if p.is_nan() { f64::NAN } else { 0.0 };
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if segment_packets == 1 {
        return 1.0 / (1.0 - p.max(0.0));
    }
    if p > 0.999 {
        return harmonic(segment_packets) / -libm::log(p) + 0.5;
    }
    let (mut sum, mut power) = (1.0, p.max(0.0));
    while s * power / (1.0 - p) >= 1e-16 {
        sum += any_of(s, power);
        power *= p;
    }
    sum
}

/// H_n = 1 + 1/2 + ... + 1/n, summed up to 1000 terms and beyond that by its expansion (right to 1e-14).
fn harmonic(n: u32) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if n <= 1000 {
        return (1..=n).rev().map(|i| 1.0 / f64::from(i)).sum();
    }
    let n = f64::from(n);
    libm::log(n) + EULER + 1.0 / (2.0 * n) - 1.0 / (12.0 * n * n)
}

/// 1 - (1 - p)^n: the probability that at least one of n independent events of probability p happens.
///
/// Written with log1p and expm1, since the plain form has no digits left for p below 1e-16.
pub(super) fn any_of(n: f64, p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    -libm::expm1(n * libm::log1p(-p))
}

/// FC 3.3: X = s p / (1 - p), the packets a segment resends on average until all have arrived. Infinite at p >= 1.
pub fn retransmissions_per_segment(segment_packets: u32, p: f64) -> f64 {
    if p >= 1.0 { f64::INFINITY } else { f64::from(segment_packets) * p.max(0.0) / (1.0 - p.max(0.0)) }
}

/// The probability that the worst of `packets` packets needs at least `rounds` retransmissions: 1 - (1 - p^k)^n.
///
/// It places the steps of the largest delay at zero tolerance (EC Figure 11): with 10^7 packets and p = 1e-3
/// two retransmissions are certain and three have probability 0.01.
pub fn retransmission_probability(packets: u64, p: f64, rounds: u32) -> f64 {
    any_of(packets as f64, libm::pow(p, f64::from(rounds)))
}

/// The probability that more than `errors` of the s packets of a segment are lost at first: it must ask again.
///
/// The tail of the binomial distribution, summed from the first term above `errors`.
pub fn violation_probability(segment_packets: u32, errors: u32, p: f64) -> f64 {
    if errors >= segment_packets || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    let (s, first) = (f64::from(segment_packets), f64::from(errors) + 1.0);
    let choose = libm::lgamma(s + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(s - first + 1.0);
    let mut term = libm::exp(choose + first * libm::log(p) + (s - first) * libm::log1p(-p));
    let (mut sum, odds) = (0.0, p / (1.0 - p));
    for count in errors + 1..=segment_packets {
        sum += term;
        let count = f64::from(count);
        term *= (s - count) / (count + 1.0) * odds;
    }
    sum.min(1.0)
}

impl Point {
    /// F4, EC 5.2: D_s = t_s / (1 - p) + t_a SUM over i >= 0 of 1 - (1 - p^i)^s, in seconds.
    ///
    /// From the first transmission of a segment to the sender's knowledge that all of it has arrived. At p = 0 it is
    /// t_s + t_a. Infinite at p >= 1.
    pub fn sender_delay(&self, p: f64) -> f64 {
        if p >= 1.0 {
            return f64::INFINITY;
        }
        self.segment_time() / (1.0 - p.max(0.0)) + self.acknowledgment_time() * rounds_mean(self.segment_packets, p)
    }

    /// F5, EC 5.2: D_r = D_s - RTD / 2 - 3 t_p, in seconds: from the first transmission of a segment to its acceptance.
    ///
    /// At p = 0 it is t_s + RTD / 2, the least delay there can be.
    pub fn receiver_delay(&self, p: f64) -> f64 {
        self.sender_delay(p) - self.rtt_s / 2.0 - 3.0 * self.packet_time()
    }

    /// The delay of a segment that needs `rounds` retransmissions of one packet each, in seconds:
    /// t_s + RTD / 2 + k (t_a + t_p). The steps of EC Figure 11.
    pub fn delay_after(&self, rounds: u32) -> f64 {
        self.segment_time() + self.rtt_s / 2.0 + f64::from(rounds) * (self.acknowledgment_time() + self.packet_time())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::random::Seed;

    /// The sum as the papers print it.
    fn rounds_as_printed(segment_packets: u32, p: f64) -> f64 {
        let s = f64::from(segment_packets);
        let all_by = |i: i32| libm::pow(1.0 - libm::pow(p, f64::from(i)), s);
        (1..2000).map(|i| f64::from(i) * (all_by(i) - all_by(i - 1))).sum()
    }

    #[test]
    fn the_two_forms_of_the_delay_agree() {
        let point = Point::of_the_papers(500e6);
        for p in [1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9] {
            let sending: f64 =
                point.segment_time() * (1.0 + (1..5000).map(|i| f64::from(i) * libm::pow(p, f64::from(i)) * (1.0 - p)).sum::<f64>());
            let printed = sending + point.acknowledgment_time() * rounds_as_printed(256, p);
            let closed = point.sender_delay(p);
            assert!((printed / closed - 1.0).abs() < 1e-9, "p = {p}: {printed} and {closed}");
        }
        for (p, wanted) in [(1e-4, 1.02528), (1e-2, 1.94922), (0.1, 3.17776)] {
            assert!((rounds_mean(256, p) - wanted).abs() < 5e-6);
        }
    }

    #[test]
    fn the_mean_delays_are_those_of_the_table() {
        let table = [
            (1e-5, [51.13, 34.35, 32.25]),
            (1e-4, [52.50, 35.71, 33.61]),
            (1e-3, [64.62, 47.78, 45.68]),
            (1e-2, [108.37, 91.24, 89.09]),
            (1e-1, [184.50, 165.43, 163.05]),
        ];
        for (p, delays) in table {
            for (bandwidth, wanted) in [100e6, 500e6, 1e9].into_iter().zip(delays) {
                let delay_ms = Point::of_the_papers(bandwidth).receiver_delay(p) * 1e3;
                assert!((delay_ms - wanted).abs() <= 0.005 + 1e-9, "p = {p}, {bandwidth} bit/s: {delay_ms} ms");
            }
        }
    }

    #[test]
    fn without_loss_the_delays_are_their_ideals() {
        let point = Point::of_the_papers(500e6);
        assert!((point.sender_delay(0.0) - point.segment_time() - point.acknowledgment_time()).abs() < 1e-15);
        assert!((point.receiver_delay(0.0) - point.segment_time() - 0.03).abs() < 1e-15);
        assert!((point.sender_delay(1e-12) / 0.064_243_5 - 1.0).abs() < 1e-6);
        assert!((point.receiver_delay(1e-12) / 0.034_194_3 - 1.0).abs() < 1e-6);
        // The smallest losses still count: s p more rounds, not zero.
        assert!(((rounds_mean(256, 1e-15) - 1.0) / 256e-15 - 1.0).abs() < 1e-2);
        assert!((any_of(256.0, 1e-20) / 256e-20 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_mean_number_of_rounds_is_that_of_drawn_segments() {
        let mut random = Seed(1).stream("closed forms");
        for p in [1e-3, 1e-2, 0.1] {
            let (mut sum, mut squares, drawn) = (0.0, 0.0, 4000.0);
            for _ in 0..4000 {
                let rounds = (0..256).map(|_| 1 + std::iter::repeat_with(|| random.chance(p)).take_while(|&lost| lost).count()).max();
                let rounds = rounds.unwrap_or(0) as f64;
                sum += rounds;
                squares += rounds * rounds;
            }
            let mean = sum / drawn;
            let error = ((squares / drawn - mean * mean) / drawn).sqrt();
            assert!((mean - rounds_mean(256, p)).abs() < 4.5 * error, "p = {p}: {mean} ± {error}");
        }
    }

    #[test]
    fn the_sum_and_its_integral_meet_and_the_ends_are_limits() {
        for s in [2, 256, 5000] {
            let (below, above) = (rounds_mean(s, 0.999), rounds_mean(s, 0.999 + 1e-12));
            assert!((below / above - 1.0).abs() < 1e-7, "s = {s}: {below} and {above}");
        }
        assert!((rounds_mean(1, 0.25) - 4.0 / 3.0).abs() < 1e-15);
        assert_eq!(rounds_mean(256, 0.0), 1.0);
        assert_eq!(rounds_mean(256, 1.0), f64::INFINITY);
        assert!(rounds_mean(256, f64::NAN).is_nan());
        assert!(Point::of_the_papers(500e6).sender_delay(1.0).is_infinite());
        assert!(retransmissions_per_segment(256, 1.0).is_infinite());
        assert!(rounds_mean(256, 1.0 - 1e-12).is_finite());
    }

    #[test]
    fn the_steps_of_the_largest_delay_stand_at_154_and_94_ms_for_500_megabit_alone() {
        let steps = [
            (100e6, [50.97, 111.30, 171.63, 231.95]),
            (155e6, [43.53, 103.74, 163.95, 224.16]),
            (500e6, [34.19, 94.26, 154.33, 214.39]),
            (622e6, [33.37, 93.42, 153.48, 213.53]),
            (1e9, [32.10, 92.13, 152.16, 212.20]),
        ];
        for (bandwidth, wanted) in steps {
            let point = Point::of_the_papers(bandwidth);
            let found: Vec<f64> = (0..4).map(|rounds| point.delay_after(rounds) * 1e3).collect();
            assert!(found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 0.0051), "{found:?}");
            let fits = found[1].round() == 94.0 && found[2].round() == 154.0;
            assert_eq!(fits, bandwidth == 500e6);
        }
    }

    #[test]
    fn the_worst_of_ten_million_packets_needs_the_rounds_of_the_staircase() {
        let table = [
            (1e-5, 2, 0.0010),
            (1e-4, 2, 0.0952),
            (1e-3, 2, 1.0),
            (1e-3, 3, 0.0100),
            (1e-2, 3, 1.0),
            (1e-2, 4, 0.0952),
            (1e-1, 6, 1.0),
            (1e-1, 7, 0.6321),
            (1e-1, 8, 0.0952),
        ];
        for (p, rounds, wanted) in table {
            let found = retransmission_probability(10_000_000, p, rounds);
            assert!((found - wanted).abs() <= 5.1e-5, "p = {p}, {rounds} rounds: {found}");
        }
    }

    #[test]
    fn a_segment_resends_and_violates_as_the_papers_count() {
        assert!((retransmissions_per_segment(256, 1e-3) - 0.256).abs() < 5e-4);
        assert!((retransmissions_per_segment(256, 1e-2) - 2.586).abs() < 5e-4);
        assert!((violation_probability(256, 1, 1e-3) - 0.02760).abs() < 5e-6);
        assert_eq!(violation_probability(256, 256, 0.1), 0.0);
        // With no tolerance it is F3, and the two sides of the distribution make one.
        assert!((violation_probability(256, 0, 1e-2) / any_of(256.0, 1e-2) - 1.0).abs() < 1e-12);
        assert!((violation_probability(10, 4, 0.5) + violation_probability(10, 5, 0.5) - 1.0).abs() < 1e-12);
    }
}
