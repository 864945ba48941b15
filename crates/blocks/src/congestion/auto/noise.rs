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
//! Others who begin, drain or stop make arrivals run ahead too, but now and then, and a path's own variation does it all the time. So
//! noise is what half of the last seconds have shown: the largest of them, but at most twice their median.
//!
//! Start-up sees noise too: the delay falls although the rate has grown. What falls tell is taken whole; of what arrivals tell
//! that is left out which sums over the control time filter.
//!
//! Invariant: where packets arrive no faster than at twice the share and no fall was told, the noise is zero. What happens in less than
//! half of the last seconds is no noise.

use segstream_base::Instant;

/// So many seconds are looked at: the median of ten follows a change of the path within five, and others' drains fall into three or four.
const SECONDS: u64 = 10;
/// For so long what falls have shown is believed.
const BELIEVED: u64 = 30;
/// The largest counts up to so many medians: that of a second varies by about as much.
const MEDIANS: f64 = 2.0;
/// What arrivals must be ahead of, in shares.
const SHARES: f64 = 2.0;
/// What time stamps of ordinary hosts are uncertain by, in seconds; less is no noise.
const STAMPS: f64 = 0.001;
/// A noise below this part of the control time is filtered by the sums over it.
const PART: f64 = 1.0 / 32.0;
/// No noise is longer, in seconds.
const MOST: f64 = 1.0;

/// The noise of the last seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Noise {
    /// By how much arrivals run ahead now, in seconds.
    ahead: f64,
    /// The most of each second in which there was some, oldest first. Why not of all: most paths have none, and need no room for it.
    peaks: Vec<(u64, f64)>,
    noise: f64,
    /// The second looked at now: by the clock, and counted from one. Why counted: while it is not looked at, nothing is forgotten.
    clock: u64,
    second: u64,
    /// The second in which a fall of the delay last showed it.
    proven: Option<u64>,
}

impl Noise {
    /// `bytes` arrived within `beta` seconds, of a stream whose share is at most `share` bytes a second, on a path of control time `tau`.
    /// Noise below `least` seconds is none, unless falls have shown it.
    pub(super) fn on_arrivals(&mut self, now: Instant, tau: f64, bytes: f64, beta: f64, share: f64, least: f64) {
        self.ahead = (self.ahead + bytes / (SHARES * share.max(1.0)) - beta).clamp(0.0, MOST / SHARES);
        let second = self.look_at(now);
        self.peaks.retain(|(of, _)| second - of < SECONDS);
        self.note(self.ahead);
        let most = self.lasting();
        let proven = self.proven.is_some_and(|of| second - of < BELIEVED);
        let (filtered, least) = if proven { (0.0, STAMPS) } else { (STAMPS + PART * tau, least) };
        let noise = SHARES * most - filtered;
        self.noise = if noise < least { 0.0 } else { noise };
    }

    /// By how much arrivals run ahead at most, as far as half of the last seconds have shown it.
    fn lasting(&self) -> f64 {
        let seconds = self.second.min(SECONDS) as usize;
        let mut peaks = [0.0; SECONDS as usize];
        for (peak, (_, most)) in peaks.iter_mut().zip(&self.peaks) {
            *peak = *most;
        }
        peaks.sort_unstable_by(|one, two| two.total_cmp(one));
        peaks[0].min(MEDIANS * peaks[seconds.div_ceil(2) - 1])
    }

    /// The second of `now` is looked at. Returns its number, which never falls.
    fn look_at(&mut self, now: Instant) -> u64 {
        let clock = now.as_nanos() / 1_000_000_000;
        if self.second == 0 || clock != self.clock {
            (self.clock, self.second) = (clock, self.second + 1);
        }
        self.second
    }

    fn note(&mut self, ahead: f64) {
        match self.peaks.last_mut() {
            Some((of, most)) if *of == self.second => *most = most.max(ahead),
            _ if SHARES * ahead > STAMPS => self.peaks.push((self.second, ahead)),
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
        self.proven = Some(self.look_at(now));
        self.note(most);
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

    /// The noise at each second, with 50,000 bytes at once in those of `bursts` on a path of 1 MB/s that else is steady.
    fn over(seconds: u64, bursts: impl Fn(u64) -> bool) -> Vec<f64> {
        let mut noise = Noise::default();
        let mut step = |second: u64| {
            let at = |millis| Instant::ZERO + Duration::from_secs(second) + Duration::from_millis(millis);
            noise.on_arrivals(at(0), 0.04, if bursts(second) { 50_000.0 } else { 0.0 }, 0.0, 1e6, 0.001);
            let found = noise.get();
            noise.on_arrivals(at(900), 0.04, 0.0, 0.9, 1e6, 0.001);
            found
        };
        (0..seconds).map(&mut step).collect()
    }

    #[test]
    fn what_one_second_in_three_shows_is_others_and_what_most_seconds_show_is_noise() {
        // Of the first four seconds two are half.
        assert!(over(60, |second| second % 3 == 0)[4..].iter().all(|noise| *noise == 0.0));
        assert!(over(60, |second| second % 3 != 0)[2..].iter().all(|noise| *noise > 0.04));
    }

    #[test]
    fn noise_is_forgotten_when_half_of_ten_seconds_are_without() {
        let found = over(40, |second| second < 20);
        assert!(found[24] > 0.04 && found[25] == 0.0, "{found:?}");
    }

    #[test]
    fn seconds_that_are_not_looked_at_are_neither_forgotten_nor_counted() {
        let mut noise = Noise::default();
        let mut at = |second: u64| {
            noise.on_arrivals(Instant::ZERO + Duration::from_secs(second), 0.04, 50_000.0, 0.9, 1e6, 0.001);
            noise.on_arrivals(Instant::ZERO + Duration::from_millis(1000 * second + 900), 0.04, 50_000.0, 0.0, 1e6, 0.001);
            noise.get()
        };
        let before = (0..10).map(&mut at).last().unwrap_or(0.0);
        assert!(before > 0.04 && at(100) == before, "{before}");
    }
}
