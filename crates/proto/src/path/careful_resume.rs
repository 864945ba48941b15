//! Careful Resume: a connection begins where the last one to the same peer has found the capacity of the path (RFC 9959).
//!
//! Called by the sending half, for each exchange and once for the first round trip. The endpoint keeps what is saved between connections.
//!
//! | phase of RFC 9959 | here |
//! |---|---|
//! | Observing (3.1) | [`CapacityMeter`], as long as the connection lives |
//! | Reconnaissance (3.2) | set-up, which measures the round trip; a set-up that had to be repeated may mean congestion, and nothing is resumed |
//! | Unvalidated, Validating, Safe Retreat (3.3 to 3.5) | the controller's, as for every rate that is known in advance |
//!
//! Invariant: of what was saved at most half is used, by one connection, and only on a path with a round trip that is alike.
//!
//! Limit: RFC 9959 3.2 lets the jump begin when the first window of data is acknowledged; here it begins with the data, after the
//! acknowledged set-up. What is kept is a rate and a round trip, not a window (4.1 allows it). The lifetime is ours (4.3.1 names none). The
//! peer's address is taken for the path, whichever interface of ours it leaves by.

use core::mem;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::congestion::Exchange;

/// The capacity of a path, as the last connection on it found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedCapacity {
    /// The highest rate at which data arrived of late, in whole IP packets.
    pub rate: Bandwidth,
    /// The smallest round trip.
    pub rtt: Duration,
    /// Until when it may be used: [`SavedCapacity::LIFETIME`] after it was measured.
    pub expires: Instant,
}

impl SavedCapacity {
    /// For how long a capacity is remembered. Why so short: a host that has moved to another network has another path to the same peer,
    /// and half of what a link carried an hour ago can be all of what it carries now.
    pub const LIFETIME: Duration = Duration::from_secs(3600);

    /// The rate to jump to, on a path whose round trip is `rtt` by a first measurement; `None` where nothing may be resumed.
    pub(crate) fn jump(&self, now: Instant, rtt: Duration) -> Option<Bandwidth> {
        // RFC 9959 4.2.1: at half the round trip or less, and above ten times as much, it is another path.
        let is_alike = rtt > self.rtt / 2 && rtt / 10 <= self.rtt;
        if now >= self.expires || !is_alike || self.rtt.is_zero() {
            return None;
        }
        // RFC 9959 3.3: no more than half of what was in flight. Over a longer round trip the same rate would put more there.
        let longer = u128::from(rtt.max(self.rtt).as_nanos());
        let bits = u128::from(self.rate.bits_per_second() / 2) * u128::from(self.rtt.as_nanos()) / longer.max(1);
        Some(Bandwidth::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))).filter(|rate| !rate.is_zero())
    }
}

/// A rate is taken over no less, so that a burst is none.
const INTERVAL_LEAST: Duration = Duration::from_millis(20);
/// The highest rate of one to two times this counts.
const WINDOW: Duration = Duration::from_secs(10);

/// Measures the capacity of a path: a windowed maximum of the delivery rate over two round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CapacityMeter {
    /// The interval that goes on: what has arrived, and for how long.
    bytes: u64,
    span: Duration,
    /// The highest rates of this window and of the one before.
    highest: Bandwidth,
    highest_before: Bandwidth,
    window_began: Instant,
    /// When the last exchange left that counts.
    at: Instant,
}

impl CapacityMeter {
    /// An exchange is acknowledged; `rtt` is the smallest round trip.
    pub(crate) fn on_exchange(&mut self, exchange: &Exchange, rtt: Duration) {
        // Why the smaller and the longer (draft-ietf-ccwg-bbr 4.1.1.2): what is acknowledged in a burst has not been served as fast, and
        // no receiver can say that more has arrived than was sent.
        self.bytes += exchange.received_bytes.min(exchange.sent_bytes);
        self.span += exchange.alpha.max(exchange.beta);
        if self.span < (rtt * 2).max(INTERVAL_LEAST) {
            return;
        }
        let bits = u128::from(mem::take(&mut self.bytes)) * 8_000_000_000 / u128::from(mem::take(&mut self.span).as_nanos().max(1));
        if exchange.sent_at.since(self.window_began) >= WINDOW {
            self.highest_before = mem::take(&mut self.highest);
            self.window_began = exchange.sent_at;
        }
        self.highest = self.highest.max(Bandwidth::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX)));
        self.at = exchange.sent_at;
    }

    /// What to save of a path whose smallest round trip is `rtt`; `None` if nothing was measured for long enough.
    pub(crate) fn saved(&self, rtt: Duration) -> Option<SavedCapacity> {
        let rate = self.highest.max(self.highest_before);
        (!rate.is_zero()).then(|| SavedCapacity { rate, rtt, expires: self.at + SavedCapacity::LIFETIME })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn megabits(megabits: u64) -> Bandwidth {
        Bandwidth::from_megabits_per_second(megabits)
    }

    #[test]
    fn half_is_resumed_on_a_path_alike_and_nothing_on_another() {
        let saved = SavedCapacity { rate: megabits(20), rtt: ms(40), expires: Instant::ZERO + ms(1000) };
        let jump = |rtt| saved.jump(Instant::ZERO + ms(999), rtt);
        assert_eq!([ms(20), ms(410)].map(jump), [None, None]);
        assert_eq!([ms(21), ms(40)].map(jump), [Some(megabits(10)); 2]);
        assert_eq!([ms(80), ms(400)].map(jump), [Some(megabits(5)), Some(megabits(1))], "no more in flight than half of before");
        assert_eq!(saved.jump(saved.expires, ms(40)), None);
        let never = SavedCapacity { rtt: Duration::ZERO, ..saved };
        assert_eq!(never.jump(Instant::ZERO, Duration::ZERO), None);
    }

    /// One exchange of so many bytes each way.
    fn exchange(at: u64, sent: u64, received: u64, alpha: u64, beta: u64) -> Exchange {
        Exchange {
            sent_at: Instant::ZERO + ms(at),
            alpha: ms(alpha),
            beta: ms(beta),
            exchanges: 1,
            sent_bytes: sent,
            received_bytes: received,
            shipments: 1,
            rtt: ms(40),
            ..Exchange::default()
        }
    }

    #[test]
    fn the_highest_rate_of_late_is_saved_and_a_burst_or_a_lie_is_not() {
        let mut meter = CapacityMeter::default();
        let mut rate = |exchange| {
            meter.on_exchange(&exchange, ms(40));
            meter.saved(ms(40)).map(|saved| saved.rate)
        };
        assert_eq!(rate(exchange(0, 40_000, 40_000, 40, 40)), None, "less than two round trips");
        assert_eq!(rate(exchange(40, 40_000, 40_000, 40, 40)), Some(megabits(8)));
        assert_eq!(rate(exchange(120, 80_000, 80_000, 80, 8)), Some(megabits(8)), "a burst");
        assert_eq!(rate(exchange(200, 80_000, 800_000, 80, 80)), Some(megabits(8)), "more than was sent");
        assert_eq!(rate(exchange(10_200, 40_000, 40_000, 80, 80)), Some(megabits(8)));
        assert_eq!(rate(exchange(20_200, 20_000, 20_000, 80, 80)), Some(megabits(4)), "ten seconds later the next counts");
    }
}
