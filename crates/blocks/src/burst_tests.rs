//! Tests of burst rate control: exact rates, bounded bursts, no credit from idling.

use super::*;
use proptest::prelude::*;

const SIZE: Bytes = Bytes::new(1000);

fn mbit(megabits: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(megabits)
}

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn us(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// Sends whatever may leave at `now`.
fn drain(pacer: &mut Pacer, now: Instant) -> u64 {
    let mut sent = 0;
    while pacer.ready(now) {
        pacer.on_sent(now, SIZE);
        sent += 1;
    }
    sent
}

/// When shipments leave before `end` with a queue that is never empty and timers that are never late.
fn departures(pacer: &mut Pacer, end: Instant) -> Vec<Instant> {
    let mut left = Vec::new();
    while let Some(at) = pacer.next_departure().filter(|at| *at < end) {
        assert!(pacer.ready(at));
        pacer.on_sent(at, SIZE);
        left.push(at);
    }
    left
}

#[test]
fn contradictions_are_refused_with_their_values() {
    assert_eq!(RateSpec::new(Bandwidth::ZERO, 1, 1), Err(RateSpecError::PeakZero));
    assert_eq!(RateSpec::new(mbit(1), 0, 7), Err(RateSpecError::BurstsPerSecondZero { burst_shipments: 7 }));
    assert_eq!(RateSpec::new(mbit(1), 7, 0), Err(RateSpecError::BurstShipmentsZero { bursts_per_second: 7 }));
    // 100 bursts of 125 datagrams of 1000 bytes are exactly 100 Mbit/s.
    let spec = RateSpec::new(mbit(100), 100, 125).unwrap();
    assert_eq!((spec.check(SIZE), spec.average_of(SIZE)), (Ok(()), mbit(100)));
    let error = spec.check(Bytes::new(1001)).unwrap_err();
    assert!(matches!(error, RateSpecError::PeakTooLow { datagram, .. } if datagram == Bytes::new(1001)));
    assert!(error.to_string().contains("100 Mbit/s"), "{error}");
    assert_eq!(RateSpec::smooth(mbit(5)).check(Bytes::new(u64::MAX)), Ok(()));
}

#[test]
fn a_smooth_rate_is_exact_to_the_nanosecond_after_any_number_of_shipments() {
    let rate = 333_333_333u64;
    let mut pacer = Pacer::new(RateSpec::smooth(Bandwidth::from_bits_per_second(rate)), Instant::ZERO);
    for sent in 0u128..100_000 {
        let exact = sent * 1000 * 8 * SECOND / u128::from(rate);
        assert_eq!(pacer.next_departure(), Some(Instant::from_nanos(exact as u64)));
        pacer.on_sent(Instant::ZERO, SIZE);
    }
}

#[test]
fn a_timer_that_is_always_late_costs_no_rate() {
    let mut pacer = Pacer::new(RateSpec::smooth(mbit(80)), Instant::ZERO);
    // 80 Mbit/s are 10 shipments a millisecond; the caller comes every 1.5 ms only.
    let sent: u64 = (0..=1000u64).map(|turn| drain(&mut pacer, us(turn * 1500))).sum();
    assert_eq!(sent, 15_001);
}

#[test]
fn a_stall_is_made_up_for_the_catch_up_bound_only() {
    let mut pacer = Pacer::new(RateSpec::smooth(mbit(80)), Instant::ZERO);
    assert_eq!(drain(&mut pacer, ms(0)), 1);
    assert_eq!(drain(&mut pacer, ms(500)), 21, "2 ms at 10 a millisecond, and the one due now");
    pacer.catch_up = Duration::ZERO;
    assert_eq!(drain(&mut pacer, ms(900)), 1);
}

#[test]
fn idling_earns_no_credit_and_forgives_no_debt() {
    let mut pacer = Pacer::new(RateSpec::smooth(mbit(80)), Instant::ZERO);
    assert_eq!(drain(&mut pacer, ms(0)), 1);
    pacer.on_idle(ms(0));
    assert!(!pacer.ready(us(50)), "the last shipment still occupies the peak");
    pacer.on_idle(us(50));
    assert_eq!(drain(&mut pacer, ms(5)), 1, "5 ms of idling are no credit");
    pacer.on_idle(ms(5));
    pacer.on_sent(ms(9), SIZE);
    assert_eq!(pacer.next_departure(), Some(us(9100)), "sending unasked ends idling too");
}

#[test]
fn bursts_start_at_multiples_of_their_period_and_are_paced_at_the_peak() {
    let start = us(123);
    let mut pacer = Pacer::new(RateSpec::new(mbit(80), 100, 20).unwrap(), start);
    let left = departures(&mut pacer, start + Duration::from_secs(2));
    assert_eq!(left.len(), 2 * 100 * 20);
    for (number, at) in left.iter().enumerate() {
        let (burst, within) = (number as u64 / 20, number as u64 % 20);
        assert_eq!(*at, start + Duration::from_millis(10) * burst + Duration::from_micros(100) * within);
    }
    assert_eq!(pacer.average(), Some(mbit(16)));
}

#[test]
fn a_period_that_is_no_whole_number_of_nanoseconds_does_not_drift() {
    let mut pacer = Pacer::new(RateSpec::new(mbit(1000), 30_000, 1).unwrap(), Instant::ZERO);
    let left = departures(&mut pacer, ms(10_000));
    assert_eq!(left.len(), 300_000);
    assert!(left.iter().enumerate().all(|(burst, at)| u128::from(at.as_nanos()) == burst as u128 * SECOND / 30_000));
}

#[test]
fn late_timers_cost_bursts_nothing_either() {
    let mut pacer = Pacer::new(RateSpec::new(mbit(80), 1000, 5).unwrap(), Instant::ZERO);
    let sent: u64 = (0..1000u64).map(|turn| drain(&mut pacer, us(turn * 2300))).sum();
    assert_eq!(sent, (999 * 23 / 10) * 5 + 5, "every burst that has started, 999 * 2.3 of them, and the last in full");
}

#[test]
fn what_is_queued_while_a_burst_runs_uses_what_the_burst_has_left() {
    let mut pacer = Pacer::new(RateSpec::new(mbit(80), 100, 20).unwrap(), Instant::ZERO);
    for shipment in 0..5 {
        assert_eq!(drain(&mut pacer, us(100 * shipment)), 1);
    }
    pacer.on_idle(us(450));
    let left = departures_from(&mut pacer, ms(4), ms(10));
    assert_eq!((left.len(), left.first().copied(), left.last().copied()), (15, Some(ms(4)), Some(us(5400))));
    assert_eq!(pacer.next_departure(), Some(ms(10)));
    // A burst that is found late keeps only what fits before its end.
    pacer.on_idle(ms(10));
    assert_eq!(departures_from(&mut pacer, us(19_500), ms(20)).len(), 5);
    assert_eq!(pacer.next_departure(), Some(ms(20)));
    // One that resumes in a later burst has all of that burst and nothing of the earlier ones.
    assert_eq!(drain(&mut pacer, ms(20)), 1);
    pacer.on_idle(ms(20));
    assert_eq!(departures_from(&mut pacer, ms(41), ms(50)).len(), 20);
    assert_eq!(pacer.next_departure(), Some(ms(50)));
}

/// Like [`departures`], with a queue that fills at `from`.
fn departures_from(pacer: &mut Pacer, from: Instant, end: Instant) -> Vec<Instant> {
    let mut left = vec![from];
    assert!(pacer.ready(from));
    pacer.on_sent(from, SIZE);
    left.extend(departures(pacer, end));
    left
}

#[test]
fn datagrams_too_large_for_the_bursts_leave_at_the_peak() {
    let mut pacer = Pacer::new(RateSpec::new(mbit(8), 1000, 2).unwrap(), Instant::ZERO);
    let left = departures(&mut pacer, ms(1000));
    assert!(left.iter().enumerate().all(|(number, at)| *at == ms(number as u64)), "1000 bytes take 1 ms");
}

#[test]
fn a_change_of_rate_keeps_what_was_charged() {
    let mut pacer = Pacer::new(RateSpec::smooth(mbit(8)), Instant::ZERO);
    pacer.on_sent(ms(0), SIZE);
    pacer.set_spec(us(500), RateSpec::smooth(mbit(80)));
    assert_eq!(pacer.next_departure(), Some(us(550)), "half of 8000 bits are left, at ten times the rate");
    pacer.set_spec(us(500), RateSpec::new(mbit(80), 100, 2).unwrap());
    assert_eq!(departures(&mut pacer, us(10_600)), [us(550), us(650), us(10_500)]);
    // Changing again and again within a burst gives no second one: it has one shipment left.
    let mut sent = 0;
    for turn in 0..200 {
        pacer.set_spec(us(10_510 + turn), RateSpec::new(mbit(80), 100, 2 + turn as u32 % 2).unwrap());
        sent += drain(&mut pacer, us(10_510 + turn));
    }
    assert_eq!((sent, pacer.next_departure()), (1, Some(us(20_500))));
    // From one burst a second to a thousand: the next one is no further than a millisecond away.
    let mut slow = Pacer::new(RateSpec::new(mbit(80), 1, 1).unwrap(), Instant::ZERO);
    slow.on_sent(ms(0), SIZE);
    slow.set_spec(ms(100), RateSpec::new(mbit(80), 1000, 1).unwrap());
    assert_eq!(slow.next_departure(), Some(ms(101)));
}

#[test]
fn unlimited_is_always_ready_and_nothing_passes_a_closed_peak() {
    let mut pacer = Pacer::unlimited();
    pacer.on_sent(ms(0), SIZE);
    assert_eq!((pacer.ready(ms(0)), pacer.next_departure(), pacer.average()), (true, None, None));
    pacer.set_spec(ms(7), RateSpec::smooth(Bandwidth::ZERO));
    assert_eq!((pacer.ready(ms(8)), pacer.next_departure()), (false, Some(Instant::FAR_FUTURE)));
    pacer.on_sent(ms(8), SIZE);
    pacer.set_spec(ms(9), RateSpec::smooth(mbit(8)));
    assert!(pacer.ready(ms(9)), "an open peak lets at once what a closed one held");
}

proptest! {
    /// Wakes at random, idles at random; whatever happens, no stretch of time carries too much.
    #[test]
    fn no_stretch_of_time_carries_more_than_the_peak_and_the_catch_up(
        bursts in prop::option::of((1u32..2000, 1u32..30)),
        steps in prop::collection::vec((0u64..30_000, any::<bool>(), 1u32..40), 1..60),
    ) {
        let peak = mbit(80);
        let spec = bursts.map_or(RateSpec::smooth(peak), |(f, l)| RateSpec::new(peak, f, l).unwrap());
        let mut pacer = Pacer::new(spec, Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut left: Vec<Instant> = Vec::new();
        for (wait_us, idle, queued) in steps {
            now += Duration::from_micros(wait_us);
            for _ in 0..queued {
                if pacer.ready(now) {
                    pacer.on_sent(now, SIZE);
                    left.push(now);
                }
            }
            if idle {
                pacer.on_idle(now);
            }
        }
        for (i, from) in left.iter().enumerate() {
            for (j, to) in left.iter().enumerate().skip(i) {
                let span = to.since(*from) + Pacer::CATCH_UP;
                let carried = (j - i) as u64;
                prop_assert!(carried <= peak.bytes_in(span).get() / 1000 + 1, "{carried} more from {from} to {to}");
                if let Some((f, l)) = bursts {
                    // Bursts that can have started in the stretch, and one that was running.
                    let started = span.as_nanos() as u128 * u128::from(f) / SECOND + 2;
                    prop_assert!(carried as u128 <= started * u128::from(l), "{carried} more from {from} to {to}");
                }
            }
        }
    }
}

#[test]
fn a_burst_that_is_ended_gives_way_to_the_next_and_never_to_the_one_after() {
    // 10 bursts a second of 3, each shipment 1 ms at the peak.
    let spec = RateSpec::new(mbit(8), 10, 3).unwrap();
    let mut pacer = Pacer::new(spec, Instant::ZERO);
    for sent in 1..=3u64 {
        // After one, two and all three of a burst: the next shipment leaves 100 ms after the burst began.
        let start = ms((sent - 1) * 100);
        for shipment in 0..sent {
            let at = start + Duration::from_millis(shipment);
            assert!(pacer.ready(at), "shipment {shipment} of burst {sent}");
            pacer.on_sent(at, SIZE);
        }
        pacer.end_burst();
        assert_eq!(pacer.next_departure(), Some(start + Duration::from_millis(100)), "after {sent}");
    }
    let mut smooth = Pacer::new(RateSpec::smooth(mbit(8)), Instant::ZERO);
    smooth.on_sent(Instant::ZERO, SIZE);
    smooth.end_burst();
    assert_eq!(smooth.next_departure(), Some(ms(1)));
}

#[test]
fn control_that_is_due_as_often_as_bursts_are_leaves_each_a_place_for_data() {
    let mut pacer = Pacer::new(RateSpec::new(mbit(1), 5, 1).unwrap(), ms(0));
    let mut data = 0;
    for burst in 0..50 {
        pacer.on_control_sent(ms(200 * burst), Bytes::new(70), true);
        while pacer.ready(ms(200 * burst + 100)) {
            pacer.on_sent(ms(200 * burst + 100), Bytes::new(1228));
            data += 1;
        }
    }
    assert_eq!(data, 50);
}

#[test]
fn control_that_alone_is_more_than_the_rate_leaves_half_of_it_to_data() {
    // 70 bytes every millisecond are 560 kbit/s.
    let mut pacer = Pacer::new(RateSpec::smooth(Bandwidth::from_bits_per_second(200_000)), ms(0));
    let mut data = 0;
    for now in 0..10_000 {
        pacer.on_control_sent(ms(now), Bytes::new(70), true);
        while pacer.ready(ms(now)) {
            pacer.on_sent(ms(now), Bytes::new(1200));
            data += 1;
        }
    }
    // 200 kbit/s carry 208 datagrams of 1200 bytes in 10 s.
    assert!((103..=106).contains(&data), "{data}");
}
