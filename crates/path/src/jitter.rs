//! Jitter, as a user writes it, and the model of a wireless hop.
//!
//! Called by command lines, scenarios and configuration; [`crate::delay`] runs it.
//!
//! ```text
//! none
//! 10ms          uniform from 0 to 10 ms for each packet, drawn by itself; order is kept
//! wifi:12ms     short contention and rare long stalls, 12 ms on average; order is kept
//! ```
//!
//! `wifi` is a model of a hop whose medium is shared: packets leave it together whenever it is won (IEEE 802.11-2020 10.23,
//! transmission opportunities), ten times as close to each other as they came, and now and then it is not won for long: others' bursts, a scan, a retransmission at the
//! lowest rate. From one access to the next pass spans that are independent of the traffic and of each other: exponential
//! ones of mean 8/15 M and, one in 226, of mean 8 M. So the hop stalls for 1/16 of the time. An exponential span that is
//! under way goes on for its mean, so what arrives at any instant waits `15/16 x 8/15 M + 1/16 x 8 M = M` for the next access on
//! average, at any rate. Behind a stall much leaves one after the other, which adds a tenth at most. Limit: the two-part shape is the usual one for such waits (hyperexponential); its numbers are ours, fitted to no
//! one network.
//!
//! Invariant: neither accesses nor what leaves go backward, and no packet leaves before the first access that is not before it.

use crate::probability::parse_span;
use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};

/// Jitter: the variation of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Jitter {
    /// Nothing.
    #[default]
    None,
    /// Each packet takes up to so much longer, uniformly.
    Uniform(Duration),
    /// A wireless hop: packets wait for the medium, so long on average.
    Wifi(Duration),
}

impl Jitter {
    /// The longest mean wait of the wireless hop.
    pub const WIFI_MOST: Duration = Duration::from_secs(10);
    /// The shortest.
    pub const WIFI_LEAST: Duration = Duration::from_micros(1);

    /// Whether the delay does not vary.
    pub const fn is_none(self) -> bool {
        match self {
            Self::None => true,
            Self::Uniform(most) => most.is_zero(),
            Self::Wifi(_) => false,
        }
    }

    /// Checks what was built by hand; what was parsed has passed.
    ///
    /// # Errors
    /// A mean of the wireless hop that cannot be.
    pub fn check(self) -> Result<(), SpecError> {
        match self {
            Self::Wifi(mean) if !(Self::WIFI_LEAST..=Self::WIFI_MOST).contains(&mean) => Err(SpecError::WifiMean(mean)),
            _ => Ok(()),
        }
    }
}

/// Uniform, up to so much.
impl From<Duration> for Jitter {
    fn from(most: Duration) -> Self {
        if most.is_zero() { Self::None } else { Self::Uniform(most) }
    }
}

impl FromStr for Jitter {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let jitter = match text.trim().split_once(':') {
            None if text.trim() == "none" => Self::None,
            None => parse_span(text, "jitter").map_err(|_| SpecError::NotAJitter(text.to_owned()))?.into(),
            Some(("wifi", mean)) => Self::Wifi(parse_span(mean, "mean of the wifi jitter")?),
            Some(_) => return Err(SpecError::NotAJitter(text.to_owned())),
        };
        jitter.check()?;
        Ok(jitter)
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Uniform(most) => most.fmt(f),
            Self::Wifi(mean) => write!(f, "wifi:{mean}"),
        }
    }
}

/// When the wireless hop may send.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    mean: Duration,
    random: Random,
    access: Instant,
    /// When the last packet came, and when it left.
    came: Instant,
    left: Instant,
}

impl Medium {
    /// The share of the time that the hop stalls.
    const STALLED: f64 = 1.0 / 16.0;
    /// The share of the spans that are stalls: 1/16 of the time in spans 15 times as long, of 15/16 + 1/16 / 15.
    const STALLS: f64 = 1.0 / 226.0;
    /// Packets that waited for the same access leave this many times closer together than they arrived. Why not together: no
    /// hop is infinitely fast, and neither is whoever emulates it.
    const COMPRESSED: u64 = 10;
    /// What lies between two of them at most.
    const SPACING_MOST: Duration = Duration::from_micros(50);
    /// After this many mean waits without a packet the hop is met in its steady state, so that a pause costs no time to pass.
    const FORGOTTEN_AFTER: u64 = 256;

    /// A hop with a mean wait of `mean`, drawn from the stream `wifi.<direction>`.
    pub(crate) fn new(mean: Duration, seed: Seed, direction: &str) -> Self {
        Self { mean, random: seed.stream(&format!("wifi.{direction}")), access: Instant::ZERO, came: Instant::ZERO, left: Instant::ZERO }
    }

    /// When a packet leaves that came at `at`, which must not go backward.
    pub(crate) fn leaves(&mut self, at: Instant) -> Instant {
        let spacing = (at.since(self.came) / Self::COMPRESSED).min(Self::SPACING_MOST);
        self.came = at;
        self.left = self.access_at(at).max(self.left + spacing);
        self.left
    }

    /// The first access that is not before `at`.
    fn access_at(&mut self, at: Instant) -> Instant {
        if at.since(self.access) > self.mean * Self::FORGOTTEN_AFTER {
            self.access = at + self.span(Self::STALLED);
        }
        while self.access < at {
            let span = self.span(Self::STALLS);
            self.access += span;
        }
        self.access
    }

    /// A span that is a stall with probability `stall`. The least is a nanosecond, so that time goes on.
    fn span(&mut self, stall: f64) -> Duration {
        let mean = if self.random.chance(stall) { self.mean * 8 } else { self.mean * 8 / 15 };
        self.random.exponential(mean).max(Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Duration = Duration::from_millis(12);

    /// The waits of packets that come `gap` apart.
    fn waits(gap: Duration, count: u64) -> Vec<f64> {
        let mut medium = Medium::new(MEAN, Seed(3), "forward");
        (0..count).map(|number| Instant::ZERO + gap * number).map(|at| medium.access_at(at).since(at).as_millis_f64()).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn the_mean_wait_is_the_one_asked_for_at_any_spacing() {
        // A stall of mean S = 96 ms adds x^2 / 2 of waiting for its length x, of variance 5 S^4; there is one each 16 S.
        // Over T the mean wait has the variance 5 S^3 / (16 T), and the contention adds less than a tenth of it.
        for (gap, count) in [(Duration::from_micros(100), 40_000_000), (Duration::from_millis(7), 1_000_000)] {
            let seconds = gap.as_secs_f64() * count as f64;
            let sigma = (1.1 * 5.0 * 96.0f64.powi(3) / (16.0 * seconds * 1000.0)).sqrt();
            let mean = mean(&waits(gap, count));
            assert!((mean - 12.0).abs() < 5.0 * sigma, "{gap}: {mean}, sigma {sigma}");
        }
        // Sparse packets meet the steady state: each wait is drawn by itself, with E[w^2] = 2 (15/16 6.4^2 + 1/16 96^2).
        let sparse = waits(MEAN * 300, 200_000);
        let sigma = ((2.0 * (15.0 / 16.0 * 40.96 + 576.0) - 144.0) / 200_000.0f64).sqrt();
        assert!((mean(&sparse) - 12.0).abs() < 5.0 * sigma, "{}", mean(&sparse));
    }

    #[test]
    fn most_waits_are_short_and_a_sixteenth_of_them_stalls() {
        let waits = waits(MEAN * 300, 200_000);
        // A wait above 60 ms: 15/16 exp(-60 / 6.4) + 1/16 exp(-60 / 96) = 0.03353; below 6.4 ms: 0.5967.
        let share = |holds: &dyn Fn(f64) -> bool| waits.iter().filter(|wait| holds(**wait)).count() as f64 / 200_000.0;
        let (long, short) = (share(&|wait| wait > 60.0), share(&|wait| wait < 6.4));
        let sigma = |p: f64| (p * (1.0 - p) / 200_000.0).sqrt();
        assert!((long - 0.03353).abs() < 5.0 * sigma(0.03353), "{long}");
        let expected = 15.0 / 16.0 * (1.0 - (-1.0f64).exp()) + 1.0 / 16.0 * (1.0 - (-6.4f64 / 96.0).exp());
        assert!((short - expected).abs() < 5.0 * sigma(expected), "{short} {expected}");
    }

    #[test]
    fn packets_of_one_access_leave_ten_times_as_close_and_order_is_kept() {
        let (mut medium, mut accesses) = (Medium::new(MEAN, Seed(4), "forward"), Medium::new(MEAN, Seed(4), "forward"));
        let micros = |count| Duration::from_micros(count);
        let mut before = Instant::ZERO;
        let mut close = 0;
        for at in (0..100_000).map(|number| Instant::ZERO + micros(100) * number) {
            let (leaves, access) = (medium.leaves(at), accesses.access_at(at));
            assert!(leaves >= access && leaves >= before);
            close += usize::from(leaves.since(before) == micros(10));
            before = leaves;
        }
        assert!(close > 80_000, "{close}");
        // What comes alone leaves with its access.
        let alone = before + Duration::from_secs(1);
        assert_eq!(medium.leaves(alone), accesses.access_at(alone));
        // Far apart, but in one stall: not more than 50 us.
        let mut medium = Medium { access: Instant::ZERO + micros(90_000), ..Medium::new(MEAN, Seed(4), "forward") };
        let left = [10, 20, 30].map(|millis| medium.leaves(Instant::ZERO + micros(millis * 1000)).as_nanos() / 1000);
        assert_eq!(left, [90_000, 90_050, 90_100]);
    }

    #[test]
    fn every_form_is_read_and_prints_as_what_it_is() {
        assert_eq!("10ms".parse(), Ok(Jitter::Uniform(Duration::from_millis(10))));
        assert_eq!("0ms".parse(), Ok(Jitter::None));
        for text in ["none", "10ms", "1.5ms", "wifi:12ms"] {
            assert_eq!(text.parse::<Jitter>().unwrap().to_string(), text);
        }
        for (text, value) in [
            ("", "\"\""),
            ("10", "\"10\""),
            ("lte:10ms", "\"lte:10ms\""),
            ("wifi:", "\"\""),
            ("wifi:12", "\"12\""),
            ("wifi:0ms", "0ns"),
            ("wifi:11s", "11s"),
        ] {
            let sentence = text.parse::<Jitter>().expect_err(text).to_string();
            assert!(sentence.contains(value), "{text}: {sentence}");
            assert!(sentence.split(' ').count() > 5, "{text}: {sentence}");
        }
    }
}
