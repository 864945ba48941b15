//! Queueing delay over packets: mean, quantiles and maximum, in constant memory.
//!
//! Called by [`super::Link`] for each packet that crosses it.
//!
//! Delays are counted in classes, 64 to each doubling, as in an HDR histogram.
//!
//! Invariant: mean and maximum are exact; a quantile is at most 1/64 too large.

use segstream_base::Duration;

/// Classes to each doubling.
const FINE_BITS: u32 = 6;
/// Enough for every 64-bit number of nanoseconds.
const CLASSES: usize = (64 - FINE_BITS as usize + 1) << FINE_BITS;

/// Statistics of queueing delay.
#[derive(Clone, Debug)]
pub struct QueueMeter {
    classes: Box<[u64]>,
    packets: u64,
    sum_ns: u64,
    max: Duration,
    interval: Interval,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    packets: u64,
    sum_ns: u64,
    max: Duration,
}

impl Default for QueueMeter {
    fn default() -> Self {
        Self { classes: vec![0; CLASSES].into_boxed_slice(), packets: 0, sum_ns: 0, max: Duration::ZERO, interval: Interval::default() }
    }
}

impl QueueMeter {
    /// Records the queueing delay of a packet.
    pub(crate) fn record(&mut self, queued: Duration) {
        let nanos = queued.as_nanos();
        if let Some(count) = self.classes.get_mut(class(nanos)) {
            *count += 1;
        }
        self.packets += 1;
        self.sum_ns = self.sum_ns.saturating_add(nanos);
        self.max = self.max.max(queued);
        self.interval.packets += 1;
        self.interval.sum_ns = self.interval.sum_ns.saturating_add(nanos);
        self.interval.max = self.interval.max.max(queued);
    }

    /// The number of recorded packets.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The mean delay; zero without packets.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.checked_div(self.packets).unwrap_or(0))
    }

    /// The longest delay.
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// The `share`-quantile of the delay; zero without packets.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (libm::ceil(share * self.packets as f64) as u64).max(1);
        let mut seen = 0;
        for (at, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(class_end(at)).min(self.max);
            }
        }
        Duration::ZERO
    }

    pub(super) fn restart(&mut self) {
        *self = Self { interval: self.interval, ..Self::default() };
    }

    pub(super) fn take_interval(&mut self) -> Option<(Duration, Duration)> {
        let interval = std::mem::take(&mut self.interval);
        (interval.packets > 0).then(|| (Duration::from_nanos(interval.sum_ns / interval.packets), interval.max))
    }
}

/// The class of a number: exact below 128, then by its highest seven bits.
const fn class(nanos: u64) -> usize {
    let doublings = (u64::BITS - nanos.leading_zeros()).saturating_sub(FINE_BITS + 1);
    ((doublings as usize) << FINE_BITS) + (nanos >> doublings) as usize
}

/// The largest number of a class.
const fn class_end(class: usize) -> u64 {
    let doublings = (class >> FINE_BITS).saturating_sub(1) as u32;
    let first = class as u64 - ((doublings as u64) << FINE_BITS);
    (first << doublings) | ((1 << doublings) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_its_numbers_to_one_64th() {
        for nanos in (0..300).chain([1_000, 1 << 20, 123_456_789, u64::MAX / 3, u64::MAX]) {
            let end = class_end(class(nanos));
            assert!(end >= nanos && end - nanos <= nanos / 64, "{nanos} counts as {end}");
        }
        assert!(class(u64::MAX) < CLASSES);
    }

    #[test]
    fn quantiles_mean_and_maximum_are_those_of_the_packets() {
        let mut meter = QueueMeter::default();
        for millis in 1..=100 {
            meter.record(Duration::from_millis(millis));
        }
        let p95 = meter.quantile(0.95).as_millis_f64();
        assert!((95.0..=95.0 * (1.0 + 1.0 / 64.0)).contains(&p95), "{p95}");
        assert_eq!(meter.max(), Duration::from_millis(100));
        assert_eq!(meter.quantile(1.0), Duration::from_millis(100));
        assert_eq!(meter.mean(), Duration::from_micros(50_500));
        assert_eq!(meter.take_interval(), Some((Duration::from_micros(50_500), Duration::from_millis(100))));
        assert_eq!(meter.take_interval(), None);
    }
}
