//! The units of TIME, SPGAP and RATE, which HT does not state.
//!
//! Called by the processes. TIME and SPGAP count ticks of 100 us, so that 16 bits hold 6.5 s; RATE counts microseconds,
//! 0 for no gap.
//!
//! Invariant: a gap survives RATE rounded up to the next microsecond, never down.

use segstream_base::{Duration, Instant};

/// A tick of TIME and SPGAP.
pub(super) const TICK: Duration = Duration::from_micros(100);

/// TIME at `now`; it wraps.
pub(super) fn time_field(now: Instant) -> u16 {
    (now.as_nanos() / TICK.as_nanos()) as u16
}

/// The time from the `echoed` TIME to `now`, if it is less than 6.5 s.
pub(super) fn since_time(now: Instant, echoed: u16) -> Duration {
    TICK * u64::from(time_field(now).wrapping_sub(echoed))
}

/// SPGAP from one arrival to another `exchanges` later: the mean gap of an exchange; 6.5 s and above are one.
///
/// Ticks of a clock are counted, not gaps rounded, so that gaps add up to the time that has passed: a queue that drains by
/// less than half a tick an exchange would be missed forever.
pub(super) fn spgap_field(earlier: Instant, later: Instant, exchanges: u64) -> u16 {
    let ticks = later.as_nanos() / TICK.as_nanos() - earlier.as_nanos() / TICK.as_nanos();
    u16::try_from((ticks + exchanges / 2) / exchanges.max(1)).unwrap_or(u16::MAX)
}

/// RATE of a gap.
pub(super) fn gap_field(gap: Option<Duration>) -> u16 {
    gap.map_or(0, |gap| u16::try_from(gap.as_nanos().div_ceil(1_000)).unwrap_or(u16::MAX))
}

/// The gap of RATE.
pub(super) fn gap_of_field(field: u16) -> Duration {
    Duration::from_micros(u64::from(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_wraps_and_spans_across_the_wrap_are_right() {
        let before = Instant::ZERO + Duration::from_micros(65_535 * 100);
        assert_eq!((time_field(before), time_field(before + TICK)), (0xffff, 0));
        assert_eq!(since_time(before + TICK * 200, time_field(before)), Duration::from_millis(20));
    }

    #[test]
    fn gaps_of_arrivals_add_up() {
        let at = |exchange: u64| Instant::ZERO + Duration::from_micros(4_970) * exchange;
        let gaps: u64 = (0..100).map(|exchange| u64::from(spgap_field(at(exchange), at(exchange + 1), 1))).sum();
        assert_eq!(gaps, 4970);
        assert_eq!(spgap_field(at(0), at(3), 3), 50);
        assert_eq!(spgap_field(at(0), at(0) + Duration::from_secs(9), 1), u16::MAX);
    }

    #[test]
    fn a_gap_is_never_rounded_down() {
        assert_eq!(gap_field(Some(Duration::from_nanos(166_667))), 167);
        assert_eq!(gap_field(Some(Duration::from_secs(1))), u16::MAX);
        assert_eq!((gap_field(None), gap_of_field(0)), (0, Duration::ZERO));
    }
}
