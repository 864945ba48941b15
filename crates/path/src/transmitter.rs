//! A transmitter: when the last bit of each packet leaves, at a constant bandwidth or along a trace.
//!
//! Called by [`crate::bottleneck`].
//!
//! Work is bits times 10^9, of which a link of R bit/s does R in a nanosecond. Bandwidths change at whole nanoseconds, so
//! the work of every piece of a trace is a whole number, and the departure of a packet is where the integral of the
//! bandwidth reaches its work: exact, with the fraction below a nanosecond carried to the next packet.
//!
//! Invariant: a train without a gap leaves in exactly the time its bits take, to the nanosecond, across any number of
//! changes of the bandwidth.

use crate::rate_trace::{RateTrace, Work, work};
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// Sends one packet behind another.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    free_at: Instant,
    bandwidth: Bandwidth,
    remainder: Remainder,
    /// Why boxed: links that do not change stay small.
    traced: Option<Box<Traced>>,
}

/// Where a link stands on its trace.
#[derive(Clone, Debug)]
struct Traced {
    trace: RateTrace,
    period: Option<(Duration, Work)>,
    /// The work done beyond `free_at`, less than a nanosecond's.
    done: Work,
    place: (u64, usize),
    ends: Option<Instant>,
}

impl Transmitter {
    /// An idle transmitter of `bandwidth`, which is not zero.
    pub(crate) fn constant(bandwidth: Bandwidth) -> Self {
        Self { free_at: Instant::ZERO, bandwidth, remainder: Remainder::default(), traced: None }
    }

    /// An idle transmitter along `trace`, which is not [`RateTrace::NONE`].
    pub(crate) fn traced(trace: RateTrace) -> Self {
        let (bandwidth, period) = (trace.rate_at(Instant::ZERO), trace.period());
        let ends = trace.next((0, 0)).map(|(_, at)| at);
        let traced = Traced { trace, period, done: 0, place: (0, 0), ends };
        Self { traced: Some(Box::new(traced)), ..Self::constant(bandwidth) }
    }

    /// When everything handed over so far will have been sent.
    #[inline]
    pub(crate) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// When the transmission of a packet begins that arrives at `now`: when all others have left, and not in an outage.
    #[inline]
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        if self.free_at < now {
            // Why: the link stood idle, so the fraction of a nanosecond it was busy beyond `free_at` is past.
            self.free_at = now;
            self.remainder = Remainder::default();
            if let Some(traced) = &mut self.traced {
                traced.go_to(now);
            }
        }
        if let Some(traced) = &mut self.traced {
            self.free_at = traced.out_of_outage(self.free_at);
        }
        self.free_at
    }

    /// Sends the packet that [`Transmitter::start`] was asked for: returns when its last bit leaves.
    #[inline]
    pub(crate) fn send(&mut self, bytes: Bytes) -> Instant {
        self.free_at = match &mut self.traced {
            None => self.free_at + self.bandwidth.transmit_time(bytes, &mut self.remainder),
            Some(traced) => traced.send(self.free_at, bytes),
        };
        self.free_at
    }

    /// The bandwidth at the start of the next transmission.
    pub(crate) fn rate(&self) -> Bandwidth {
        self.traced.as_ref().map_or(self.bandwidth, |traced| traced.rate())
    }
}

impl Traced {
    fn go_to(&mut self, now: Instant) {
        self.done = 0;
        if self.ends.is_some_and(|ends| ends <= now) {
            self.place = self.trace.place(now);
            self.ends = self.trace.next(self.place).map(|(_, at)| at);
        }
    }

    fn rate(&self) -> Bandwidth {
        self.trace.piece(self.place).rate
    }

    /// The end of the outage that is at `at`, else `at`.
    fn out_of_outage(&mut self, mut at: Instant) -> Instant {
        while self.rate().is_zero()
            && let Some(ends) = self.ends
            && at < Instant::FAR_FUTURE
        {
            at = self.pass_on(ends, &mut 0);
        }
        at
    }

    /// When the work of `bytes` is done that begins at `at`.
    fn send(&mut self, mut at: Instant, bytes: Bytes) -> Instant {
        let mut left = work(bytes) + self.done;
        self.done = 0;
        while left > 0 && at < Instant::FAR_FUTURE {
            let rate = Work::from(self.rate().bits_per_second());
            let until = self.ends.unwrap_or(Instant::FAR_FUTURE);
            let possible = rate * Work::from(until.since(at).as_nanos());
            // Why: without an end the rate is not zero, for a trace lets something pass at last.
            if left < possible || self.ends.is_none() {
                self.done = left.checked_rem(rate).unwrap_or(0);
                return at + Duration::from_nanos(left.checked_div(rate).map_or(u64::MAX, nanos));
            }
            left -= possible;
            at = self.pass_on(until, &mut left);
        }
        at
    }

    /// Enters the next piece, which begins at `at`. At the start of a period, whole periods are passed at once, so that a
    /// packet costs no more than two periods of steps however long it takes.
    fn pass_on(&mut self, mut at: Instant, left: &mut Work) -> Instant {
        let Some((mut place, _)) = self.trace.next(self.place) else { return at };
        if let (0, Some((period, of_each))) = (place.1, self.period)
            // Why less one: the last bit leaves within a period, perhaps long before its end.
            && let Some(whole) = left.saturating_sub(1).checked_div(of_each).filter(|whole| *whole > 0)
        {
            *left -= whole * of_each;
            place.0 = place.0.saturating_add(nanos(whole));
            at += period * nanos(whole);
        }
        self.place = place;
        self.ends = self.trace.next(place).map(|(_, ends)| ends);
        at
    }
}

fn nanos(wide: Work) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn along(text: &str) -> Transmitter {
        Transmitter::traced(RateTrace::parse(text).unwrap())
    }

    /// When a packet of 1000 bytes leaves that arrives at `now`.
    fn send(link: &mut Transmitter, now: u64) -> u64 {
        let _ = link.start(Instant::from_nanos(now));
        link.send(Bytes::new(1000)).as_nanos()
    }

    #[test]
    fn a_packet_across_a_change_takes_the_integral_of_both_rates() {
        // 8000 bits: 0.5 ms at 8 Mbit/s send 4000, the rest takes 1 ms at 4 Mbit/s.
        let mut link = along("0s:8mbit,1.5ms:4mbit,10ms:8mbit");
        assert_eq!([send(&mut link, 0), send(&mut link, 0), send(&mut link, 0)], [1_000_000, 2_500_000, 4_500_000]);
        assert_eq!(send(&mut link, 9_000_000), 10_500_000);
        // At the end of the trace the last rate holds for ever.
        assert_eq!(send(&mut link, 1 << 60), (1 << 60) + 1_000_000);
    }

    #[test]
    fn an_outage_holds_a_packet_and_a_packet_that_ends_with_its_start_leaves_before() {
        let mut link = along("0s:8mbit,1ms:0bit,3ms:8mbit,repeat=4ms");
        assert_eq!([0; 4].map(|_| send(&mut link, 0)), [1_000_000, 4_000_000, 5_000_000, 8_000_000]);
        assert_eq!(link.start(Instant::from_nanos(9_200_000)).as_nanos(), 11_000_000);
        assert_eq!((link.rate(), send(&mut link, 9_200_000)), (Bandwidth::from_megabits_per_second(8), 12_000_000));
    }

    #[test]
    fn a_packet_of_a_million_periods_takes_no_million_steps() {
        // One nanosecond of two is an outage: one bit leaves every 2 ns.
        let mut link = along("0s:1gbit,1ns:0bit,repeat=2ns");
        assert_eq!(link.send(Bytes::new(1 << 40)).as_nanos(), (8 << 40) * 2 - 1);
        assert_eq!(link.send(Bytes::new(1)).as_nanos(), (8 << 40) * 2 + 15);
    }

    #[test]
    fn a_packet_beyond_all_time_ends_there() {
        let mut link = along("0s:1bit,1s:2bit,repeat=3s");
        assert_eq!(link.send(Bytes::new(u64::MAX)), Instant::FAR_FUTURE);
        assert_eq!(link.send(Bytes::new(1500)), Instant::FAR_FUTURE);
    }

    proptest! {
        #[test]
        fn what_has_left_by_each_departure_is_the_integral_of_the_rate(
            spans in proptest::collection::vec((1u64..5_000_000, 0u64..400_000_000), 1..8),
            last in 1u64..50_000_000,
            repeats in any::<bool>(),
            packets in proptest::collection::vec(1u64..3000, 1..100),
            start in 0u64..20_000_000,
        ) {
            let mut from = 0;
            let mut pieces = Vec::new();
            for (span, rate) in spans {
                pieces.push((Duration::from_nanos(from), Bandwidth::from_bits_per_second(rate)));
                from += span;
            }
            pieces.push((Duration::from_nanos(from), Bandwidth::from_bits_per_second(last)));
            let trace = RateTrace::new(&pieces, repeats.then_some(Duration::from_nanos(from + 777_777))).unwrap();
            let mut link = Transmitter::traced(trace.clone());
            let start = Instant::from_nanos(start);
            let mut sent = 0;
            for bytes in packets {
                let _ = link.start(start);
                let left = link.send(Bytes::new(bytes));
                sent += bytes;
                // The last bit leaves in the nanosecond that begins at the departure.
                let before = trace.bytes_between(start, left).get();
                let after = trace.bytes_between(start, left + Duration::from_nanos(1)).get();
                prop_assert!(before <= sent && after >= sent, "{before} <= {sent} <= {after}");
            }
        }

        #[test]
        fn a_trace_without_a_change_is_the_constant_link(
            rate in 1u64..10_000_000_000,
            packets in proptest::collection::vec((0u64..100_000, 0u64..3000), 1..200),
        ) {
            let rate = Bandwidth::from_bits_per_second(rate);
            let pieces = [(Duration::ZERO, rate), (Duration::from_nanos(777), rate)];
            let mut traced = Transmitter::traced(RateTrace::new(&pieces, Some(Duration::from_micros(10))).unwrap());
            let mut constant = Transmitter::constant(rate);
            let mut now = Instant::ZERO;
            for (gap, bytes) in packets {
                now += Duration::from_nanos(gap);
                prop_assert_eq!(traced.start(now), constant.start(now));
                prop_assert_eq!(traced.send(Bytes::new(bytes)), constant.send(Bytes::new(bytes)));
            }
        }
    }
}
