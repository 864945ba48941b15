//! The spacing of state exchanges for a path.
//!
//! Called by controllers, for [`super::Controller::exchange_period`]. Times are in seconds.
//!
//! Invariant: the spacing is between 1 and 300 ms.

use segstream_base::Duration;

/// The round trip believed before any is known: a long one, so that the first packets do not crowd.
pub(super) const RTT_GUESSED: f64 = 0.2;
/// Control acts on this time scale at least. Time stamps of ordinary hosts are uncertain by up to 1 ms, which over half
/// of 20 ms is a few per cent of a rate.
pub(super) const TAU_LEAST: f64 = 0.020;

/// No spacing is shorter: to a time stamp that is off by as much it would mean nothing.
pub(super) const PERIOD_LEAST: f64 = 0.001;
/// No spacing is longer on a path that is fast enough.
const PERIOD_MOST: f64 = 0.025;

/// The spacing of state packets on a path of round trip `rtt`: sixteen a round trip, between 1 and 25 ms, but at most one for
/// three datagrams, of which each takes `datagram_time` seconds. On paths slower than 100 kbit/s the last gives way: a state
/// must come now and then.
pub fn exchange_period(rtt: Option<Duration>, datagram_time: f64) -> Duration {
    let rtt = rtt.map_or(RTT_GUESSED, Duration::as_secs_f64).max(TAU_LEAST);
    Duration::from_secs_f64((rtt / 16.0).clamp(PERIOD_LEAST, PERIOD_MOST).max(3.0 * datagram_time.min(0.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_sixteen_a_round_trip_within_bounds() {
        let cases = [(60_000, 100, 3_750), (50, 1, 1_250), (600_000, 100, 25_000), (60_000, 9_824, 29_472), (60_000, 900_000, 300_000)];
        for (rtt, datagram, expected) in cases {
            let period = exchange_period(Some(Duration::from_micros(rtt)), datagram as f64 * 1e-6);
            assert_eq!(period.as_micros(), expected, "rtt {rtt} us, datagram {datagram} us");
        }
    }
}
