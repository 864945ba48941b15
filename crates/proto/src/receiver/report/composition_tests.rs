//! Confirmations of many streams, which a half takes only from its own connection. What else a report contains is tested from outside
//! (`tests/protocol/report_composition.rs`).

use super::*;
use crate::receiver::{ReceiverConfig, RecvHalf};
use proptest::prelude::*;
use segstream_wire::{Contract, State};

const BODY_BYTES: usize = 200;

/// A half whose application confirms, with so many streams.
fn half(streams: u32) -> RecvHalf {
    let config = ReceiverConfig {
        class: Class::ALL,
        class_max: Class::ALL,
        unlimited: false,
        body_bytes: BODY_BYTES,
        overhead_bytes: 28,
        reorder: 3,
        reorder_adapting: false,
        streams_max: streams,
        stream_window_bytes: 1 << 16,
        connection_window_bytes: 1 << 30,
        window_segments_max: 100,
        buffer_bytes: None,
    };
    let mut half = RecvHalf::new(config, Instant::ZERO);
    half.set_confirms();
    let contract = Contract { window_units: 10, window_segments: 10, ..Contract::default() };
    (0..streams).for_each(|stream| half.open(Instant::ZERO, StreamId(stream), &contract));
    half
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The streams that the report at `millis` confirms, and its shipments. The sender's state comes a millisecond before it.
fn confirmed(half: &mut RecvHalf, millis: u64) -> (Vec<u32>, usize) {
    let number = ShipmentNumber(millis);
    assert!(half.on_shipment(at(millis - 1), number, 100));
    half.on_state(at(millis - 1), number, &State { sync: ExchangeNumber(millis), ..State::default() });
    let reports: Vec<Report> = core::iter::from_fn(|| half.poll_report(at(millis))).collect();
    let told = reports.iter().flat_map(|report| &report.frames).filter_map(|frame| match frame {
        ReportFrame::Durable { stream, segments: SegmentNumber(0), last: true } => Some(stream.0),
        _ => None,
    });
    (told.collect(), reports.len())
}

#[test]
fn all_confirmations_are_told_in_one_report_that_has_room_for_them() {
    let mut half = half(60);
    (0..60).for_each(|stream| half.confirm(Instant::ZERO, StreamId(stream), SegmentNumber(0), true).unwrap());
    for round in 1..4 {
        let (told, shipments) = confirmed(&mut half, 1000 * round);
        assert_eq!(told, (0..60).collect::<Vec<_>>(), "until a report that carried them is confirmed");
        assert!((2..SHIPMENTS_MAX).contains(&shipments));
    }
}

#[test]
fn of_more_confirmations_than_a_report_has_room_for_the_next_tells_the_rest() {
    let mut half = half(600);
    (0..600).for_each(|stream| half.confirm(Instant::ZERO, StreamId(stream), SegmentNumber(0), true).unwrap());
    let mut told = std::collections::BTreeSet::new();
    // Their windows take three reports, and they themselves two; the windows of all go first.
    for round in 1..=4 {
        let (more, shipments) = confirmed(&mut half, 1000 * round);
        assert!(shipments <= SHIPMENTS_MAX);
        told.extend(more);
    }
    assert_eq!(told, (0..600).collect());
}

#[test]
fn without_confirmations_none_are_told() {
    assert_eq!(confirmed(&mut half(10), 1000), (vec![], 1));
}

/// What a frame with these runs takes beyond one with none.
fn run_bytes(runs: &[Run<Position>]) -> usize {
    let frame =
        |missing| ReportFrame::Request { stream: StreamId(0), segment: SegmentNumber(0), missing, tail_from: None, length_wanted: false };
    frame(runs.iter().copied().collect()).encoded_len() - frame(Runs::new()).encoded_len()
}

proptest! {
    #[test]
    fn as_many_runs_are_kept_as_fit_and_the_rest_begins_where_it_says(
        steps in proptest::collection::vec((1_u32..20_000, 1_u32..200), 0..500),
        room in 0_usize..900,
    ) {
        let mut at = 0;
        let runs: Vec<Run<Position>> = steps
            .into_iter()
            .map(|(gap, units)| {
                let from = at + gap;
                at = from + units;
                Run::new(Position(from), Position(at)).unwrap()
            })
            .collect();
        let (kept, rest) = fitting(runs.iter().copied(), runs.len(), room);
        prop_assert_eq!(&kept[..], &runs[..kept.len()]);
        prop_assert_eq!(rest, runs.get(kept.len()).map(|run| run.start()));
        prop_assert!(kept.is_empty() || run_bytes(&kept) <= room);
        // A byte is kept free for the number of runs, which may need a second one.
        let is_full = rest.is_none() || kept.len() == RUNS_MAX || run_bytes(&runs[..=kept.len()]) >= room;
        prop_assert!(is_full, "{} of {} runs in {room}", kept.len(), runs.len());
    }
}
