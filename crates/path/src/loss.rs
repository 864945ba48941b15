//! Running loss processes.
//!
//! Called by [`crate::Path`] exactly once for each packet sent, with the packet's number and the time at
//! which it passes the lossy place.
//!
//! A process clocked by packets sees every packet sent, also one that the queue drops, so the fate of
//! packet n does not depend on the queue. The states of the time-clocked process are drawn from a stream
//! of their own (`dwell.<direction>`), so they change at the same instants whatever is sent.
//!
//! Sources: EC 4.1 and F9 for the two states clocked by time; Gilbert, Bell Syst. Tech. J. 39, 1960.
//!
//! Invariant: each packet draws one number from `loss.<direction>`, whatever the state, so a greater
//! probability loses a superset.

use crate::loss_spec::{Dwell, GilbertChances, LossSpec};
use crate::probability::Probability;
use crate::spec_error::SpecError;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};

/// A loss process of one direction.
#[derive(Clone, Debug)]
pub struct Loss {
    process: Process,
    random: Random,
}

#[derive(Clone, Debug)]
enum Process {
    None,
    Random(Probability),
    Bursty { states: States, loss: Probability },
    Gilbert { chances: GilbertChances, bad: bool },
    List { numbers: Vec<u64>, next: usize },
}

impl Loss {
    /// The process described by `spec`, with the streams of `direction`.
    ///
    /// # Errors
    /// As [`LossSpec::check`].
    pub fn new(spec: &LossSpec, seed: Seed, direction: &str) -> Result<Self, SpecError> {
        spec.check()?;
        let process = match spec {
            LossSpec::None => Process::None,
            LossSpec::Random(share) => Process::Random(*share),
            LossSpec::Bursty { good, bad, loss, dwell } => {
                Process::Bursty { states: States::new(*good, *bad, *dwell, seed.stream(&format!("dwell.{direction}"))), loss: *loss }
            }
            LossSpec::Gilbert { rate, burst } => Process::Gilbert { chances: spec.gilbert_chances(*rate, *burst)?, bad: false },
            LossSpec::List(numbers) => {
                let mut numbers = numbers.clone();
                numbers.sort_unstable();
                Process::List { numbers, next: 0 }
            }
        };
        Ok(Self { process, random: seed.stream(&format!("loss.{direction}")) })
    }

    /// Whether packet `number`, which passes at `now`, is lost. Neither goes backward between calls.
    #[inline]
    pub fn takes(&mut self, number: u64, now: Instant) -> bool {
        let random = &mut self.random;
        match &mut self.process {
            Process::None => false,
            Process::Random(share) => share.happens(random),
            Process::Bursty { states, loss } => {
                let unlucky = loss.happens(random);
                states.is_bad(now) && unlucky
            }
            Process::Gilbert { chances, bad } => {
                // The packet meets the state after the move, so a run of losses lasts 1 / to_good packets.
                let moves = if *bad { chances.to_good } else { chances.to_bad };
                *bad ^= moves.happens(random);
                *bad
            }
            Process::List { numbers, next } => {
                while numbers.get(*next).is_some_and(|listed| *listed < number) {
                    *next += 1;
                }
                numbers.get(*next) == Some(&number)
            }
        }
    }
}

/// The two states clocked by time. The run starts in the good one.
#[derive(Clone, Debug)]
struct States {
    good: Duration,
    bad: Duration,
    dwell: Dwell,
    random: Random,
    /// The state that lasts until `until`.
    is_bad: bool,
    until: Instant,
}

impl States {
    fn new(good: Duration, bad: Duration, dwell: Dwell, random: Random) -> Self {
        let mut states = Self { good, bad, dwell, random, is_bad: false, until: Instant::ZERO };
        states.until = Instant::ZERO + states.next_dwell();
        states
    }

    #[inline]
    fn is_bad(&mut self, now: Instant) -> bool {
        if now >= self.until {
            self.advance(now);
        }
        self.is_bad
    }

    /// Limit: takes a step for each change of state that was slept through; dwells are at least 1 us.
    fn advance(&mut self, now: Instant) {
        if now == Instant::FAR_FUTURE {
            return;
        }
        if self.dwell == Dwell::Deterministic {
            // Whole periods need no steps.
            let period = self.good + self.bad;
            let periods = now.since(self.until).as_nanos() / period.as_nanos().max(1);
            self.until += period * periods;
        }
        while now >= self.until {
            self.is_bad = !self.is_bad;
            let dwell = self.next_dwell();
            self.until += dwell;
        }
    }

    fn next_dwell(&mut self) -> Duration {
        let mean = if self.is_bad { self.bad } else { self.good };
        match self.dwell {
            Dwell::Deterministic => mean,
            Dwell::Exponential => self.random.exponential(mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(text: &str, seed: u64) -> Loss {
        Loss::new(&text.parse().unwrap(), Seed(seed), "forward").unwrap()
    }

    /// The fates of `count` packets sent `gap` apart.
    fn fates(text: &str, seed: u64, count: u64, gap: Duration) -> Vec<bool> {
        let mut loss = loss(text, seed);
        (0..count).map(|n| loss.takes(n, Instant::ZERO + gap * n)).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64 / fates.len() as f64
    }

    /// The lengths of the runs of losses that are complete.
    fn runs(fates: &[bool]) -> Vec<f64> {
        let mut lengths: Vec<f64> = fates.split(|lost| !lost).map(|run| run.len() as f64).filter(|length| *length > 0.0).collect();
        lengths.pop();
        lengths
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn random_loss_has_its_rate_and_no_memory() {
        let n = 4_000_000u64;
        for p in [1e-4, 1e-2, 0.3] {
            let fates = fates(&p.to_string(), 1, n, Duration::ZERO);
            let sigma = (p * (1.0 - p) / n as f64).sqrt();
            assert!((share(&fates) - p).abs() < 4.5 * sigma, "{p}: {}", share(&fates));
            // Two in a row come with p^2, which memory would change.
            let pairs = fates.chunks_exact(2).filter(|pair| pair[0] && pair[1]).count() as f64;
            let expected = n as f64 / 2.0 * p * p;
            assert!((pairs - expected).abs() < 4.5 * expected.sqrt().max(1.0), "{p}: {pairs}");
        }
    }

    #[test]
    fn gilbert_has_its_rate_and_its_burst() {
        for (rate, burst) in [(0.01, 4.0), (0.1, 20.0), (0.3, 1.5)] {
            let n = 4_000_000u64;
            let fates = fates(&format!("gilbert:rate={rate},burst={burst}"), 2, n, Duration::ZERO);
            let (to_good, to_bad) = (1.0 / burst, rate / (burst * (1.0 - rate)));
            // The states of a two-state chain are correlated by 1 - to_good - to_bad from packet to packet.
            let correlation: f64 = 1.0 - to_good - to_bad;
            let sigma = (rate * (1.0 - rate) / n as f64 * (1.0 + correlation) / (1.0 - correlation)).sqrt();
            assert!((share(&fates) - rate).abs() < 4.5 * sigma, "{rate} {burst}: {}", share(&fates));
            let runs = runs(&fates);
            // A geometric length has variance (1 - r) / r^2.
            let sigma = ((1.0 - to_good) / (to_good * to_good) / runs.len() as f64).sqrt();
            assert!((mean(&runs) - burst).abs() < 4.5 * sigma, "{rate} {burst}: {}", mean(&runs));
        }
    }

    #[test]
    fn a_gilbert_burst_of_one_never_loses_two_in_a_row() {
        let fates = fates("gilbert:rate=20%,burst=1", 3, 100_000, Duration::ZERO);
        assert!(fates.windows(2).all(|pair| !(pair[0] && pair[1])));
        assert!((share(&fates) - 0.2).abs() < 0.01);
    }

    #[test]
    fn the_bursty_process_loses_as_the_paper_says_and_dwells_as_told() {
        // EC F9: p_eff = p_b d_b / (d_g + d_b). Outages (p_b = 1) show the states themselves.
        let gap = Duration::from_micros(100);
        let n = 20_000_000u64;
        let outages = fates("bursty:good=162ms,bad=18ms,loss=1", 4, n, gap);
        let cycles = n as f64 * 1e-4 / 0.180;
        // Renewal-reward: the bad time in t has variance t (d_g^2 var_b + d_b^2 var_g) / (d_g + d_b)^3.
        let sigma_share = (2.0 * 0.162f64.powi(2) * 0.018f64.powi(2) / 0.180f64.powi(4) / cycles).sqrt();
        assert!((share(&outages) - 0.1).abs() < 4.5 * sigma_share, "{}", share(&outages));
        // Dwells in packets: means of d / gap, standard deviation as large as the mean. A dwell shorter than
        // the gap may show no packet and joins its neighbours, which lengthens the means by a known bit.
        let bad = runs(&outages);
        let good = runs(&outages.iter().map(|lost| !lost).collect::<Vec<_>>());
        let (g, b) = (1620.0f64, 180.0f64);
        let exact_bad = 1.0 / (g / (g + b) * (1.0 - (-(1.0 / g + 1.0 / b)).exp()));
        let exact_good = 1.0 / (b / (g + b) * (1.0 - (-(1.0 / g + 1.0 / b)).exp()));
        assert!((mean(&bad) - exact_bad).abs() < 4.5 * exact_bad / (bad.len() as f64).sqrt(), "{} {exact_bad}", mean(&bad));
        assert!((mean(&good) - exact_good).abs() < 4.5 * exact_good / (good.len() as f64).sqrt(), "{} {exact_good}", mean(&good));

        let partial = fates("bursty:good=162ms,bad=18ms,loss=0.2", 4, n, gap);
        let bad_packets = share(&outages) * n as f64;
        // The same states, so only the loss inside them is random.
        let expected = bad_packets * 0.2;
        assert!((share(&partial) * n as f64 - expected).abs() < 4.5 * (bad_packets * 0.16).sqrt());
        assert!(partial.iter().zip(&outages).all(|(lost, bad)| !lost || *bad));
    }

    #[test]
    fn deterministic_dwells_change_to_the_nanosecond() {
        let mut loss = loss("bursty:good=3ms,bad=1ms,loss=1,dwell=deterministic", 5);
        let at = |nanos: u64| Instant::from_nanos(nanos);
        let moments = [
            (0, false),
            (2_999_999, false),
            (3_000_000, true),
            (3_999_999, true),
            (4_000_000, false),
            // Slept through a million periods, then through as many as a u64 of nanoseconds holds.
            (4_000_002_999_999, false),
            (4_000_003_000_000, true),
            (8_000_000_000_003_500_000, true),
        ];
        for (n, (nanos, lost)) in moments.into_iter().enumerate() {
            assert_eq!(loss.takes(n as u64, at(nanos)), lost, "{nanos}");
        }
    }

    #[test]
    fn the_states_change_at_the_same_instants_whatever_is_sent() {
        let (mut sparse, mut dense) = (loss("bursty:good=10ms,bad=5ms,loss=1", 6), loss("bursty:good=10ms,bad=5ms,loss=1", 6));
        for n in 0..100_000u64 {
            let now = Instant::from_nanos(n * 50_000);
            let lost = dense.takes(n, now);
            if n % 7 == 0 {
                assert_eq!(sparse.takes(n / 7, now), lost);
            }
        }
    }

    #[test]
    fn a_list_loses_exactly_its_packets() {
        let fates = fates("list:5,17,18,18,99999", 7, 1000, Duration::ZERO);
        let lost: Vec<usize> = fates.iter().enumerate().filter(|(_, lost)| **lost).map(|(n, _)| n).collect();
        assert_eq!(lost, [5, 17, 18]);
    }

    #[test]
    fn a_greater_probability_loses_a_superset() {
        let (few, many) = (fates("1%", 8, 100_000, Duration::ZERO), fates("5%", 8, 100_000, Duration::ZERO));
        assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
    }
}
