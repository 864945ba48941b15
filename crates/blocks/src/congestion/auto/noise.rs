//! Noise: how far the delay of a path varies by itself, without a queue.
//!
//! Called by the readings for every exchange. A bottleneck of capacity C cannot deliver so many bytes in less than `bytes / C`. What
//! arrives sooner was held back behind it and let go at once: by contention for a radio channel, by aggregation, by a
//! scheduler. By how much arrivals run ahead of the bottleneck at most is how far the delay falls without a queue as its cause.
//! It is the burstiness of an arrival curve (network calculus, Le Boudec and Thiran, 1.2).
//!
//! Of the bottleneck only our share is known, which others' coming and going changes. So arrivals must run ahead of twice the share,
//! and what they are ahead of that counts twice: for packets that arrive at once this is the whole time they were held back.
//!
//! Start-up sees noise too: the delay falls although the rate has grown. What falls tell is taken whole; of what arrivals tell
//! that is left out which sums over the control time filter.
//!
//! Invariant: where packets arrive no faster than at twice the share and no fall was told, the noise is zero.

use segstream_base::Instant;

/// For so many seconds a noise is believed: at a full rate, which hardly ever lets the queue run empty, it shows only now and then.
const BELIEVED: u64 = 30;
/// What arrivals must be ahead of, in shares.
const SHARES: f64 = 2.0;
/// What time stamps of ordinary hosts are uncertain by, in seconds; less is no noise.
const STAMPS: f64 = 0.001;
/// A noise below this part of the control time is filtered by the sums over it.
const PART: f64 = 1.0 / 16.0;
/// No noise is longer, in seconds.
const MOST: f64 = 1.0;

/// The noise of the last thirty seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Noise {
    /// By how much arrivals run ahead now, in seconds.
    ahead: f64,
    /// The most of each second in which there was some, oldest first. Why not of all: most paths have none, and need no room for it.
    peaks: Vec<(u64, f64)>,
    noise: f64,
    /// The second in which a fall of the delay last showed it.
    proven: Option<u64>,
}

impl Noise {
    /// `bytes` arrived within `beta` seconds, of a stream whose share is at most `share` bytes a second, on a path of control time `tau`.
    /// Noise below `least` seconds is none, unless falls have shown it.
    pub(super) fn on_arrivals(&mut self, now: Instant, tau: f64, bytes: f64, beta: f64, share: f64, least: f64) {
        self.ahead = (self.ahead + bytes / (SHARES * share.max(1.0)) - beta).clamp(0.0, MOST / SHARES);
        let second = now.as_nanos() / 1_000_000_000;
        self.peaks.retain(|(of, _)| second.abs_diff(*of) < BELIEVED);
        self.note(second, self.ahead);
        let most = self.peaks.iter().map(|(_, most)| *most).fold(0.0, f64::max);
        let proven = self.proven.is_some_and(|of| second.abs_diff(of) < BELIEVED);
        let (filtered, least) = if proven { (0.0, STAMPS) } else { (STAMPS + PART * tau, least) };
        let noise = SHARES * most - filtered;
        self.noise = if noise < least { 0.0 } else { noise };
    }

    fn note(&mut self, second: u64, ahead: f64) {
        match self.peaks.last_mut() {
            Some((of, most)) if *of == second => *most = most.max(ahead),
            _ if SHARES * ahead > STAMPS => self.peaks.push((second, ahead)),
            _ => {}
        }
    }

    /// Falls of the delay were others' doing.
    pub(super) fn forget_falls(&mut self) {
        if self.proven.take().is_some() {
            self.peaks.clear();
        }
    }

    /// What ended start-up was no queue: the delay fell by `fall` seconds of what was held to be one.
    pub(super) fn on_fall(&mut self, now: Instant, fall: f64) {
        let most = ((self.noise + fall) / SHARES).min(MOST / SHARES);
        let second = now.as_nanos() / 1_000_000_000;
        self.note(second, most);
        self.proven = Some(second);
    }

    /// Seconds.
    pub(super) const fn get(&self) -> f64 {
        self.noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::Duration;

    /// Exchanges of 2.5 ms at 1 MB/s whose arrivals come together every `together` exchanges; returns the noise.
    fn noise_of(together: u64, seconds: u64) -> f64 {
        let mut noise = Noise::default();
        for exchange in 1..=seconds * 400 {
            let now = Instant::ZERO + Duration::from_micros(2_500) * exchange;
            let beta = if exchange % together == 0 { 0.0025 * together as f64 } else { 0.0 };
            noise.on_arrivals(now, 0.04, 2_500.0, beta, 1e6, 0.001);
        }
        noise.get()
    }

    #[test]
    fn a_steady_stream_has_no_noise_and_bursts_have_that_of_their_length() {
        assert_eq!(noise_of(1, 3), 0.0);
        // Seven of eight exchanges come at once with the first: 17.5 ms, less what is no noise.
        let found = noise_of(8, 3);
        assert!((found - (0.0175 - STAMPS - PART * 0.04)).abs() < 1e-9, "{found}");
    }

    #[test]
    fn noise_is_forgotten_after_thirty_seconds() {
        let mut noise = Noise::default();
        noise.on_arrivals(Instant::from_nanos(1_000_000_000), 0.04, 50_000.0, 0.0, 1e6, 0.001);
        assert!(noise.get() > 0.04, "{}", noise.get());
        noise.on_arrivals(Instant::from_nanos(30_900_000_000), 0.04, 0.0, 29.9, 1e6, 0.001);
        assert!(noise.get() > 0.04, "{}", noise.get());
        noise.on_arrivals(Instant::from_nanos(31_000_000_000), 0.04, 0.0, 0.1, 1e6, 0.001);
        assert_eq!(noise.get(), 0.0);
    }
}
