//! A transmitter: when the last bit of each packet leaves, at a constant bandwidth, along a trace of bandwidths or in the
//! delivery opportunities of a recorded link.
//!
//! Called by [`crate::bottleneck`] and [`crate::scheduled`].
//!
//! Work is bits times 10^9, of which a link of R bit/s does R in a nanosecond. Bandwidths change at whole nanoseconds, so
//! the work of every piece of a trace is a whole number, and the departure of a packet is where the integral of the
//! bandwidth reaches its work: exact, with the fraction below a nanosecond carried to the next packet.
//!
//! With opportunities a packet leaves with its last byte: each carries 1500 bytes of one or of several packets, what is left
//! of one is lost when nothing waits for it, and nothing leaves in between.
//!
//! Invariant: a train without a gap leaves in exactly the time its bits take, to the nanosecond, across any number of
//! changes of the bandwidth.

use crate::config::PathConfig;
use crate::opportunity_trace::{OPPORTUNITY_BYTES, OpportunityTrace};
use crate::rate_trace::{RateTrace, Work, work};
use crate::spec_error::SpecError;
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// Sends one packet after another.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    free_at: Instant,
    bandwidth: Bandwidth,
    remainder: Remainder,
    /// Why boxed: links that do not change stay small.
    changing: Option<Box<Changing>>,
}

/// A link whose bandwidth changes.
#[derive(Clone, Debug)]
enum Changing {
    Traced(Traced),
    Recorded(Recorded),
}

/// The position of a link in its recording.
#[derive(Clone, Debug)]
struct Recorded {
    trace: OpportunityTrace,
    /// The opportunity that serves next, and when it comes.
    number: u64,
    at: Instant,
    /// What is left of it.
    left: u64,
}

/// The position of a link in its trace.
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
    /// The idle transmitter that `config` describes; `None` when the bandwidth is unlimited.
    ///
    /// # Errors
    /// A bandwidth of zero, or two descriptions of how it changes.
    pub(crate) fn of(config: &PathConfig) -> Result<Option<Self>, SpecError> {
        match (config.opportunities.is_none(), config.trace.is_none(), config.bandwidth) {
            (false, false, _) => Err(SpecError::TwoTraces),
            (false, true, _) => Ok(Some(Self::recorded(config.opportunities.clone()))),
            (true, false, _) => Ok(Some(Self::traced(config.trace.clone()))),
            (true, true, Some(Bandwidth::ZERO)) => Err(SpecError::ZeroBandwidth),
            (true, true, bandwidth) => Ok(bandwidth.map(Self::constant)),
        }
    }

    /// An idle transmitter of `bandwidth`, which is not zero.
    pub(crate) fn constant(bandwidth: Bandwidth) -> Self {
        Self { free_at: Instant::ZERO, bandwidth, remainder: Remainder::default(), changing: None }
    }

    /// An idle transmitter along `trace`, which is not [`RateTrace::NONE`].
    pub(crate) fn traced(trace: RateTrace) -> Self {
        let (bandwidth, period) = (trace.rate_at(Instant::ZERO), trace.period());
        let ends = trace.next((0, 0)).map(|(_, at)| at);
        let traced = Traced { trace, period, done: 0, place: (0, 0), ends };
        Self { changing: Some(Box::new(Changing::Traced(traced))), ..Self::constant(bandwidth) }
    }

    /// An idle transmitter in the opportunities of `trace`, which is not [`OpportunityTrace::NONE`].
    pub(crate) fn recorded(trace: OpportunityTrace) -> Self {
        let bandwidth = trace.mean();
        let recorded = Recorded { trace, number: 0, at: Instant::ZERO, left: 0 };
        Self { changing: Some(Box::new(Changing::Recorded(recorded))), ..Self::constant(bandwidth) }
    }

    /// When everything handed over so far will have been sent.
    #[inline]
    pub(crate) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// When the transmission of a packet begins that arrives at `now`: when all others have left, and not in an outage.
    #[inline]
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        let idle = self.free_at < now;
        if idle {
            // Why: the link stood idle, so the fraction of a nanosecond it was busy beyond `free_at` is past.
            self.free_at = now;
            self.remainder = Remainder::default();
        }
        self.free_at = match self.changing.as_deref_mut() {
            None => self.free_at,
            Some(Changing::Recorded(recorded)) => recorded.next(now),
            Some(Changing::Traced(traced)) => {
                if idle {
                    traced.go_to(now);
                }
                traced.out_of_outage(self.free_at)
            }
        };
        self.free_at
    }

    /// Sends the packet that [`Transmitter::start`] was asked for: returns when its last bit leaves.
    #[inline]
    pub(crate) fn send(&mut self, bytes: Bytes) -> Instant {
        self.free_at = match self.changing.as_deref_mut() {
            None => self.free_at + self.bandwidth.transmit_time(bytes, &mut self.remainder),
            Some(Changing::Traced(traced)) => traced.send(self.free_at, bytes),
            Some(Changing::Recorded(recorded)) => recorded.send(bytes),
        };
        self.free_at
    }

    /// The bandwidth at the start of the next transmission; of a recorded link the mean of it all.
    pub(crate) fn rate(&self) -> Bandwidth {
        match self.changing.as_deref() {
            Some(Changing::Traced(traced)) => traced.rate(),
            _ => self.bandwidth,
        }
    }
}

impl Recorded {
    /// When the opportunity comes that serves a packet which is there at `now` and has nothing in front.
    fn next(&mut self, now: Instant) -> Instant {
        if self.at <= now {
            self.go_to(self.trace.first_after(now));
        } else if self.left == 0 {
            self.go_to(self.number.saturating_add(1));
        }
        self.at
    }

    fn go_to(&mut self, number: u64) {
        self.number = number;
        self.at = self.trace.instant(number);
        self.left = OPPORTUNITY_BYTES;
    }

    /// When the last of `bytes` leaves, from the present opportunity on.
    fn send(&mut self, bytes: Bytes) -> Instant {
        match bytes.get().checked_sub(self.left).filter(|more| *more > 0) {
            None => self.left -= bytes.get(),
            Some(more) => {
                let opportunities = more.div_ceil(OPPORTUNITY_BYTES);
                self.go_to(self.number.saturating_add(opportunities));
                self.left = opportunities.saturating_mul(OPPORTUNITY_BYTES).saturating_sub(more);
            }
        }
        self.at
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
        // At the end of the trace the last rate holds forever.
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

    fn recorded(text: &str) -> Transmitter {
        Transmitter::recorded(text.parse().unwrap())
    }

    /// When packets leave, in milliseconds, that arrive at these with these bytes.
    fn leave(link: &mut Transmitter, packets: &[(u64, u64)]) -> Vec<u64> {
        let send = |(at, bytes): &(u64, u64)| {
            let _ = link.start(Instant::ZERO + Duration::from_millis(*at));
            link.send(Bytes::new(*bytes)).as_nanos() / 1_000_000
        };
        packets.iter().map(send).collect()
    }

    #[test]
    fn an_opportunity_carries_1500_bytes_of_one_packet_or_of_several() {
        let mut link = recorded("2,3,5*2,9");
        assert_eq!(leave(&mut link, &[(0, 500), (0, 500), (0, 500), (0, 1), (0, 1499)]), [2, 2, 2, 3, 3]);
        // What does not fit goes on in the next.
        assert_eq!(leave(&mut link, &[(3, 1000), (3, 1000), (3, 1500), (3, 0)]), [5, 5, 9, 9]);
        assert_eq!(leave(&mut link, &[(3, 1500), (3, 3000), (3, 4500)]), [11, 14, 20]);
    }

    #[test]
    fn an_opportunity_that_finds_nothing_is_lost_and_so_is_the_rest_of_one() {
        let mut link = recorded("2,3,5*2,9");
        assert_eq!(leave(&mut link, &[(0, 100), (1, 1400), (2, 1400), (2, 100), (4, 1500)]), [2, 2, 3, 3, 5]);
        // Arrived with the opportunity at 9 ms: missed it. The trace has wrapped: 11, 12, 14, 14, 18.
        assert_eq!(leave(&mut link, &[(9, 1500), (16, 1), (16, 1500), (100, 1500)]), [11, 18, 20, 101]);
        assert_eq!(link.rate(), "2,3,5*2,9".parse::<OpportunityTrace>().unwrap().mean());
    }

    #[test]
    fn a_packet_of_a_million_opportunities_takes_no_million_steps() {
        let mut link = recorded("1");
        assert_eq!(leave(&mut link, &[(0, 1500 * 1_000_000_000)]), [1_000_000_000]);
        assert_eq!(link.send(Bytes::new(u64::MAX)), Instant::FAR_FUTURE);
        let _ = link.start(Instant::FAR_FUTURE);
        assert_eq!(link.send(Bytes::new(1500)), Instant::FAR_FUTURE);
    }

    #[test]
    fn a_packet_beyond_all_time_ends_there() {
        let mut link = along("0s:1bit,1s:2bit,repeat=3s");
        assert_eq!(link.send(Bytes::new(u64::MAX)), Instant::FAR_FUTURE);
        assert_eq!(link.send(Bytes::new(1500)), Instant::FAR_FUTURE);
    }

    /// Mahimahi's link queue, packet by packet and opportunity by opportunity, in milliseconds.
    fn mahimahi(times: &[u64], packets: &[(u64, u64)]) -> Vec<u64> {
        let period = *times.last().unwrap();
        let mut opportunities = (0..).flat_map(|round| times.iter().map(move |time| round * period + time));
        let (mut leaves, mut front, mut rest) = (Vec::new(), 0, packets.first().map_or(0, |first| first.1));
        while front < packets.len() {
            let now = opportunities.next().unwrap();
            let mut left = 1500;
            while left > 0 && front < packets.len() && packets[front].0 < now {
                let taken = rest.min(left);
                (rest, left) = (rest - taken, left - taken);
                if rest == 0 {
                    leaves.push(now);
                    front += 1;
                    rest = packets.get(front).map_or(0, |next| next.1);
                }
            }
        }
        leaves
    }

    proptest! {
        #[test]
        fn a_recorded_link_is_mahimahis(
            gaps in proptest::collection::vec(0u64..4, 1..30),
            packets in proptest::collection::vec((0u64..5, 1u64..4000), 1..60),
        ) {
            let times: Vec<u64> = gaps.iter().scan(1, |at, gap| { *at += gap; Some(*at) }).collect();
            let packets: Vec<(u64, u64)> = packets.iter().scan(0, |at, (gap, bytes)| { *at += gap; Some((*at, *bytes)) }).collect();
            let text: Vec<String> = times.iter().map(u64::to_string).collect();
            prop_assert_eq!(leave(&mut recorded(&text.join(",")), &packets), mahimahi(&times, &packets));
        }

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
