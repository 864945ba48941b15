//! What leaves in a GSO batch is what would have left shipment by shipment, and what comes in one is taken as it would be datagram
//! by datagram.

use bytes::Bytes;
use proptest::prelude::*;
use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant, StreamId, Tolerance};
use segstream_proto::config::{Config, DatagramSize};
use segstream_proto::connection::{ConnectionEvent, Received};
use segstream_proto::endpoint::Endpoint;
use segstream_proto::rate::Rate;
use segstream_proto::session::Trust;
use segstream_wire::{Class, Contract};
use std::net::SocketAddr;

#[derive(Clone, Debug)]
struct Plan {
    /// Megabits a second; none is without rate control.
    rate: Option<u64>,
    streams: usize,
    unit_bytes: u32,
    tolerance: Tolerance,
    datagram_bytes: usize,
    segments: Vec<usize>,
    /// Of so many datagrams one is lost.
    lose_every: usize,
    /// Of so many one changes places with the one before it, and one comes twice.
    disturb_every: usize,
    /// Of so many batches of the sender one comes after the next.
    delay_every: usize,
}

/// How datagrams that came together are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handing {
    OneByOne,
    AsBatches,
}

/// All that could be seen from outside.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    departures: Vec<(Instant, Vec<u8>)>,
    events: Vec<(Instant, usize, ConnectionEvent)>,
    segments: Vec<(Instant, Received)>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let tolerance = prop_oneof![Just((256, 0, 0)), Just((256, 32, 3)), Just((64, 4, 1)), Just((8, 8, 8))]
        .prop_map(|(window, errors, burst)| Tolerance::new(window, errors, burst).unwrap());
    let segments = proptest::collection::vec(prop_oneof![1usize..3000, 60_000usize..200_000], 1..12);
    (
        proptest::option::of(prop_oneof![Just(20u64), Just(200), Just(2000)]),
        1usize..4,
        prop_oneof![Just(100u32), Just(1000), Just(1120)],
        tolerance,
        prop_oneof![Just(1200usize), Just(4000), Just(9000)],
        segments,
        3usize..200,
        3usize..200,
        2usize..20,
    )
        .prop_map(|(rate, streams, unit_bytes, tolerance, datagram_bytes, segments, lose_every, disturb_every, delay_every)| Plan {
            rate,
            streams,
            unit_bytes,
            tolerance,
            datagram_bytes,
            segments,
            lose_every,
            disturb_every,
            delay_every,
        })
}

fn endpoints(plan: &Plan) -> [Endpoint; 2] {
    let config = Config {
        class: Class::new(if plan.rate.is_some() { 7 } else { 6 }).unwrap(),
        rate: plan.rate.map_or(Rate::Unpaced, |rate| Rate::smooth(Bandwidth::from_megabits_per_second(rate))),
        unlimited: true,
        epoch: Duration::ZERO,
        circuit_breaker: false,
        datagram_bytes: DatagramSize::Fixed(plan.datagram_bytes),
        accept: true,
        ..Config::default()
    };
    [Endpoint::new(config.clone(), Seed(1)).unwrap(), Endpoint::new(config, Seed(2)).unwrap()]
}

/// What can be seen when a call gives at most `most` datagrams, and they are handed over as `handing` says.
fn seen(plan: &Plan, most: usize, handing: Handing) -> Seen {
    let addresses: [SocketAddr; 2] = ["10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap()];
    let mut ends = endpoints(plan);
    let contract = Contract { unit_bytes: plan.unit_bytes, tolerance: plan.tolerance, ..Contract::default() };
    let id = ends[0].connect(Instant::ZERO, addresses[1], &Trust::Anyone, vec![contract; plan.streams]).unwrap();
    let (mut segments, mut seen, mut count) = (plan.segments.iter().enumerate().peekable(), Seen::default(), 0);
    let (mut batches, mut delayed) = (0usize, None);
    for step in 0..1500u64 {
        let now = Instant::ZERO + Duration::from_millis(step);
        if ends[0].connection(id).is_some_and(|connection| connection.is_established()) {
            while let Some(&(turn, &bytes)) = segments.peek() {
                let stream = (turn % plan.streams) as u32;
                let sent = ends[0].connection_mut(id).unwrap().send(now, StreamId(stream), Bytes::from(vec![turn as u8; bytes]), now, None);
                if sent.is_err() {
                    break;
                }
                segments.next();
            }
        }
        for from in [0, 1] {
            ends[from].handle_timeout(now);
            let mut out = Vec::new();
            while let Some(transmit) = ends[from].poll_transmit(now, most, &mut out) {
                let datagrams: Vec<Vec<u8>> = out.chunks(transmit.datagram_bytes).map(<[u8]>::to_vec).collect();
                seen.departures.extend(datagrams.iter().map(|datagram| (now, datagram.clone())));
                let arrival = Arrival { from: addresses[from], to: Local::ANY, ecn: None, received: now };
                let arriving = disturbed(plan, datagrams, &mut count);
                out.clear();
                batches += usize::from(from == 0);
                if from == 0 && delayed.is_none() && batches.is_multiple_of(plan.delay_every) {
                    delayed = Some(arriving);
                    continue;
                }
                hand_over(&mut ends[1 - from], arrival, arriving, handing);
                if let Some(late) = delayed.take_if(|_| from == 0) {
                    hand_over(&mut ends[1], arrival, late, handing);
                }
            }
            while let Some((id, event)) = ends[from].poll_event() {
                if let ConnectionEvent::StreamOpened(stream) = event {
                    ends[from].connection_mut(id).unwrap().read_progressively(stream);
                }
                if let ConnectionEvent::Readable(stream) = event {
                    while let Some(segment) = ends[from].connection_mut(id).unwrap().recv(now, stream) {
                        seen.segments.push((now, segment));
                    }
                }
                seen.events.push((now, from, event));
            }
        }
    }
    seen
}

/// Events as they can be compared: those of one moment in no order, and each unit by itself.
fn by_moment(events: &[(Instant, usize, ConnectionEvent)]) -> Vec<String> {
    let each = events.iter().flat_map(|(at, end, event)| match *event {
        ConnectionEvent::Units { stream, segment, units } => {
            units.iter().map(|unit| format!("{at} {end} unit {unit} of segment {segment} of stream {stream}")).collect()
        }
        ref other => vec![format!("{at} {end} {other:?}")],
    });
    let mut told: Vec<String> = each.collect();
    told.sort();
    told
}

/// The datagrams that arrive of these, in the order they do.
fn disturbed(plan: &Plan, datagrams: Vec<Vec<u8>>, count: &mut usize) -> Vec<Vec<u8>> {
    let mut arriving: Vec<Vec<u8>> = Vec::new();
    for datagram in datagrams {
        *count += 1;
        if (*count).is_multiple_of(plan.lose_every) {
            continue;
        }
        if (*count).is_multiple_of(plan.disturb_every) {
            arriving.extend(arriving.last().cloned());
        }
        let at = arriving.len() - usize::from((*count + 1).is_multiple_of(plan.disturb_every) && !arriving.is_empty());
        arriving.insert(at, datagram);
    }
    arriving
}

/// Hands over datagrams that came together.
fn hand_over(end: &mut Endpoint, arrival: Arrival, mut datagrams: Vec<Vec<u8>>, handing: Handing) {
    if handing == Handing::OneByOne {
        datagrams.iter_mut().for_each(|datagram| end.handle_datagram(arrival.received, arrival, datagram));
        return;
    }
    // As the kernel does it: equal ones, and one that is shorter behind them.
    let mut rest = &datagrams[..];
    while let Some(first) = rest.first() {
        let equal = rest.iter().take_while(|datagram| datagram.len() == first.len()).count();
        let shorter = rest.get(equal).is_some_and(|next| next.len() < first.len());
        let (batch, after) = rest.split_at(equal + usize::from(shorter));
        end.handle_batch(arrival.received, arrival, &mut batch.concat(), first.len());
        rest = after;
    }
}

/// Everything that left, in order, with the time, when a call gives at most `most` datagrams.
fn departures(plan: &Plan, most: usize) -> Vec<(Instant, Vec<u8>)> {
    // Why undisturbed: places are changed within what a call gives, and batches are what it gives.
    seen(&Plan { disturb_every: usize::MAX, delay_every: usize::MAX, ..plan.clone() }, most, Handing::OneByOne).departures
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn batches_change_nothing_that_leaves(plan in plans()) {
        let (one, many) = (departures(&plan, 1), departures(&plan, 54));
        prop_assert!(one.len() > 3);
        for (at, (alone, among)) in one.iter().zip(&many).enumerate() {
            prop_assert!(alone == among, "departure {} differs: {} and {} bytes at {} and {}", at, alone.1.len(), among.1.len(), alone.0, among.0);
        }
        prop_assert_eq!(one.len(), many.len());
    }

    #[test]
    fn a_batch_is_taken_as_its_datagrams_would_be(plan in plans()) {
        let (one, batch) = (seen(&plan, 54, Handing::OneByOne), seen(&plan, 54, Handing::AsBatches));
        prop_assert_eq!(one.departures.len(), batch.departures.len());
        prop_assert!(one.departures == batch.departures, "something else left");
        let (alone, among) = (by_moment(&one.events), by_moment(&batch.events));
        prop_assert_eq!(alone.len(), among.len());
        for (alone, among) in alone.iter().zip(&among) {
            prop_assert_eq!(alone, among);
        }
        prop_assert!(one.segments == batch.segments, "something else was delivered");
        prop_assert!(!one.events.is_empty());
    }
}

/// The same leaves whether datagrams that came together are handed over one by one or as batches.
fn assert_answered_alike(plan: &Plan) {
    let [one, batch] = [Handing::OneByOne, Handing::AsBatches].map(|handing| seen(plan, 54, handing).departures);
    assert!(one == batch, "something else left");
}

/// Found by [`batches_change_nothing_that_leaves`].
#[test]
fn a_last_unit_that_is_so_short_that_it_fits_in_ends_a_batch() {
    let plan = Plan {
        rate: None,
        streams: 1,
        unit_bytes: 1000,
        tolerance: Tolerance::any(8),
        datagram_bytes: 4000,
        segments: vec![84_001],
        lose_every: 3,
        disturb_every: 200,
        delay_every: usize::MAX,
    };
    assert_eq!(departures(&plan, 1), departures(&plan, 54));
}

/// Found by [`a_batch_is_taken_as_its_datagrams_would_be`].
#[test]
fn a_receiver_learns_from_a_batch_that_its_sender_became_fast_no_earlier_than_from_its_datagrams() {
    let plan = Plan {
        rate: Some(200),
        streams: 1,
        unit_bytes: 1120,
        tolerance: Tolerance::new(64, 4, 1).unwrap(),
        datagram_bytes: 1200,
        segments: vec![157_113, 413, 1219, 119_841, 146_721, 63_335, 524, 98_561],
        lose_every: 116,
        disturb_every: 27,
        delay_every: 17,
    };
    assert_answered_alike(&plan);
}

/// Found by the property above: of parts that came late and together some units had been restored.
#[test]
fn a_unit_that_was_restored_is_not_told_again_when_it_comes() {
    let tolerance = Tolerance::new(256, 32, 3).unwrap();
    let segments = vec![128_001, 113_001];
    let plan = Plan {
        rate: Some(2000),
        streams: 3,
        unit_bytes: 1000,
        tolerance,
        datagram_bytes: 1200,
        segments,
        lose_every: 10,
        disturb_every: 67,
        delay_every: 7,
    };
    for handing in [Handing::OneByOne, Handing::AsBatches] {
        let told = by_moment(&seen(&plan, 54, handing).events);
        let units: Vec<&String> = told.iter().filter(|line| line.contains(" unit ")).collect();
        assert!(units.len() > 200 && units.windows(2).all(|pair| pair[0] != pair[1]));
    }
}

/// Found by [`a_batch_is_taken_as_its_datagrams_would_be`].
#[test]
fn repair_units_restore_within_a_batch_before_its_last_unit_has_the_segment_judged() {
    let plan = Plan {
        rate: Some(2000),
        streams: 2,
        unit_bytes: 1000,
        tolerance: Tolerance::new(64, 4, 1).unwrap(),
        datagram_bytes: 1200,
        segments: vec![1001, 96_001, 116_366, 1001, 135_001, 149_001],
        lose_every: 126,
        disturb_every: 127,
        delay_every: 5,
    };
    assert_answered_alike(&plan);
}

/// Found by [`a_batch_is_taken_as_its_datagrams_would_be`]: of a late batch that began behind a gap.
#[test]
fn what_a_late_batch_declares_lost_is_so_before_its_second_datagram() {
    let plan = Plan {
        rate: Some(2000),
        streams: 1,
        unit_bytes: 1120,
        tolerance: Tolerance::new(256, 0, 0).unwrap(),
        datagram_bytes: 4000,
        segments: vec![107_001, 161_880],
        lose_every: 20,
        disturb_every: 96,
        delay_every: 9,
    };
    assert_answered_alike(&plan);
}
