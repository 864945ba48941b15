//! Confirmations of many streams, which a half takes only from its own connection. What else a report contains is tested from outside
//! (`tests/protocol/report_composition.rs`).

use super::*;
use crate::layout::Layout;
use crate::receiver::report::Reports;
use crate::receiver::{ReceiverConfig, RecvHalf};
use proptest::prelude::*;
use segstream_base::Tolerance;
use segstream_wire::repair::repair_unit_bytes;
use segstream_wire::state::Confirmed;
use segstream_wire::{Contract, Part, Repair, State};

const BODY_BYTES: usize = 200;

/// The configuration of a half with so many streams.
const fn config(streams: u32) -> ReceiverConfig {
    ReceiverConfig {
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
    }
}

/// A half whose application confirms, with so many streams.
fn half(streams: u32) -> RecvHalf {
    let mut half = RecvHalf::new(config(streams), Instant::ZERO);
    half.set_confirms();
    let contract = Contract { window_units: 10, window_segments: 10, ..Contract::default() };
    (0..streams).for_each(|stream| half.open(Instant::ZERO, StreamId(stream), &contract));
    half
}

/// The same, in which the application has the whole of each stream in safety.
fn half_with_confirmations(streams: u32) -> RecvHalf {
    let mut half = half(streams);
    (0..streams).for_each(|stream| half.confirm(Instant::ZERO, StreamId(stream), SegmentNumber(0), true).unwrap());
    half
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn frames(reports: &[Report]) -> impl Iterator<Item = &ReportFrame> {
    reports.iter().flat_map(|report| &report.frames)
}

/// The streams that the report at `millis` confirms, and its shipments. The sender's state comes a millisecond before it.
fn confirmed(half: &mut RecvHalf, millis: u64) -> (Vec<u32>, usize) {
    let number = ShipmentNumber(millis);
    assert!(half.on_shipment(at(millis - 1), number, 100));
    half.on_state(at(millis - 1), number, &State { sync: ExchangeNumber(millis), ..State::default() });
    let reports: Vec<Report> = core::iter::from_fn(|| half.poll_report(at(millis))).collect();
    let told = frames(&reports).filter_map(|frame| match frame {
        ReportFrame::Durable { stream, segments: SegmentNumber(0), last: true } => Some(stream.0),
        _ => None,
    });
    (told.collect(), reports.len())
}

#[test]
fn all_confirmations_are_told_in_one_report_that_has_room_for_them() {
    let mut half = half_with_confirmations(60);
    for round in 1..4 {
        let (told, shipments) = confirmed(&mut half, 1000 * round);
        assert_eq!(told, (0..60).collect::<Vec<_>>(), "until a report that carried them is confirmed");
        assert!((2..SHIPMENTS_MAX).contains(&shipments));
    }
}

#[test]
fn of_more_confirmations_than_a_report_has_room_for_the_next_tells_the_rest() {
    let mut half = half_with_confirmations(600);
    let mut told = std::collections::BTreeSet::new();
    // Their windows take three reports, and they themselves two.
    for round in 1..=4 {
        let (more, shipments) = confirmed(&mut half, 1000 * round);
        assert!(shipments <= SHIPMENTS_MAX);
        told.extend(more);
    }
    assert_eq!(told, (0..600).collect());
}

#[test]
fn confirmations_come_before_windows_while_any_waits_for_its_turn() {
    let mut half = half_with_confirmations(300);
    let mut begins_with = |millis| {
        let (reports, _) = whole_report(&mut half, millis);
        frames(&reports).find(|frame| matches!(frame, ReportFrame::Grant { .. } | ReportFrame::Durable { .. })).cloned()
    };
    let mut order = Vec::new();
    for report in 1..=4 {
        order.push(matches!(begins_with(1000 * report), Some(ReportFrame::Durable { .. })));
    }
    // The second report tells the rest of them, and the third has no room for any behind the windows.
    assert_eq!(order, [true, true, false, true]);
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

/// The shipments of one report, and how many it says that it had: with its last one, and not before.
fn whole_report(half: &mut RecvHalf, millis: u64) -> (Vec<Report>, u64) {
    half.start_report(at(millis));
    let mut reports = Vec::new();
    loop {
        let RecvHalf { reports: Reports { composition, verdicts, .. }, streams, credit, arrivals, config, .. } = half;
        assert!(composition.is_under_way());
        let (report, ended) = composition.next_shipment(at(millis), &arrivals.detector, config.body_bytes, (streams, credit), verdicts);
        reports.extend(report);
        if let Some(shipments) = ended {
            assert!(!composition.is_under_way());
            return (reports, shipments);
        }
    }
}

#[test]
fn a_report_ends_with_the_shipment_that_tells_the_last() {
    for (streams, confirms, shipments) in [(3, false, 1), (3, true, 1), (60, false, 2), (60, true, 4), (600, false, 8)] {
        let mut half = if confirms { half_with_confirmations(streams) } else { half(streams) };
        let (reports, told) = whole_report(&mut half, 1000);
        assert_eq!((reports.len(), told), (shipments, shipments as u64), "{streams} streams, confirmations: {confirms}");
        assert!(reports.iter().all(|report| !report.frames.is_empty()));
    }
}

/// A half with one stream, of so many segments at most.
fn one_stream(window_segments: u32) -> RecvHalf {
    let config = ReceiverConfig { window_segments_max: window_segments, stream_window_bytes: 1 << 30, ..config(1) };
    let mut half = RecvHalf::new(config, Instant::ZERO);
    let contract = Contract { unit_bytes: UNIT_BYTES, window_units: 4 * window_segments, window_segments, ..Contract::default() };
    half.open(Instant::ZERO, StreamId(0), &contract);
    half
}

const UNIT_BYTES: u32 = 10;

/// Shipment `number` arrives, with `count` units of a segment of `units` from the first on.
fn arrive(half: &mut RecvHalf, number: u64, segment: u64, count: u32, units: u32) {
    let part = Part { segment: SegmentNumber(segment), count, length: Some(u64::from(units * UNIT_BYTES)), ..Part::default() };
    assert!(half.on_shipment(at(1), ShipmentNumber(number), 100));
    half.on_part(at(1), ShipmentNumber(number), &part);
    half.after_shipment(at(1));
}

/// Shipment `number` arrives, with the first repair unit of segment 0.
fn repair_arrives(half: &mut RecvHalf, number: u64) {
    let repair = Repair { every: 1, count: 1, payload_bytes: repair_unit_bytes(UNIT_BYTES), ..Repair::default() };
    assert!(half.on_shipment(at(1), ShipmentNumber(number), 100));
    half.on_repair(at(1), ShipmentNumber(number), &repair);
}

/// What reports tell of the repair units of a segment: units lost and repair units held.
fn repairs_told(reports: &[Report]) -> Option<(u32, u32)> {
    frames(reports).find_map(|frame| match frame {
        ReportFrame::AnyRepairs { lost, held, .. } => Some((*lost, *held)),
        _ => None,
    })
}

#[test]
fn a_shipment_looks_at_so_many_segments_and_the_next_goes_on_behind_them() {
    let before = u64::from(LOOKED_AT_MAX) + 100;
    let mut half = one_stream(10_000);
    (0..before).for_each(|number| arrive(&mut half, number, number, 1, 1));
    arrive(&mut half, before, before, 1, 2);
    (1..10).for_each(|later| arrive(&mut half, before + later, before + later, 1, 1));
    let (reports, _) = whole_report(&mut half, 1000);
    let requests = |report: &Report| report.frames.iter().filter(|frame| matches!(frame, ReportFrame::Request { .. })).count();
    assert_eq!((requests(&reports[0]), requests(&reports[1])), (0, 1), "the first looks at {LOOKED_AT_MAX} of {before} with a verdict");
}

#[test]
fn repair_units_count_as_held_once_their_shipment_is_passed() {
    let mut half = one_stream(100);
    half.set_coding();
    arrive(&mut half, 0, 0, 4, 8);
    // Shipment 1 is lost, with the other four units.
    arrive(&mut half, 2, 1, 1, 1);
    repair_arrives(&mut half, 3);
    let mut told = |highest: u64| {
        arrive(&mut half, highest, highest, 1, 1);
        repairs_told(&whole_report(&mut half, 1000 * highest).0)
    };
    // The reordering threshold is 3.
    assert_eq!([4, 5, 6, 7].map(&mut told), [None, Some((4, 0)), Some((4, 0)), Some((4, 1))]);
}

/// A segment of `units`, or of a length that is not known, of which the first four units are here and those before `due` were sent.
fn begun(units: Option<u32>, due: Position, violated: bool) -> RecvSegment {
    let contract = Contract { unit_bytes: UNIT_BYTES, ..Contract::default() };
    let length = units.map(|units| u64::from(units * UNIT_BYTES));
    let layout = Layout::new(&contract, contract.tolerance, units.is_none(), length);
    let mut segment = RecvSegment::new(layout, contract.tolerance);
    segment.mark(Position::FIRST, 4);
    segment.advance_due(due);
    segment.violated_at = violated.then_some(Instant::ZERO);
    segment
}

#[test]
fn a_segment_is_asked_for_what_it_lacks_and_for_its_length_if_only_that_can_tell() {
    let asked = |segment: &RecvSegment| {
        let (frame, cut) = request(StreamId(0), SegmentNumber(0), segment, Position::FIRST, 1000)?;
        let ReportFrame::Request { missing, tail_from, length_wanted, .. } = frame else { return None };
        Some((missing.iter().map(|run| (run.start().0, run.end().0)).collect::<Vec<_>>(), tail_from, length_wanted, cut))
    };
    let five = Position(5);
    assert_eq!(asked(&begun(Some(8), ALL_DUE, true)), Some((vec![(4, 8)], None, false, None)));
    assert_eq!(asked(&begun(Some(8), five, true)), Some((vec![(4, 5)], None, false, None)), "the rest may be on its way");
    assert_eq!(asked(&begun(Some(8), ALL_DUE, false)), None, "its tolerance is not broken");
    assert_eq!(asked(&begun(None, five, false)), None, "more of it comes");
    assert_eq!(asked(&begun(None, ALL_DUE, false)), Some((vec![], None, true, None)));
    assert_eq!(asked(&begun(None, ALL_DUE, true)), Some((vec![], Some(Position(4)), true, None)), "all from there on, whatever that is");
}

#[test]
fn the_length_of_a_segment_is_asked_for_even_if_no_other_is_in_repair() {
    let mut half = one_stream(100);
    let part = Part { count: 4, opened: true, tolerance: Some(Tolerance::any(100)), ..Part::default() };
    assert!(half.on_shipment(at(1), ShipmentNumber(0), 100));
    half.on_part(at(1), ShipmentNumber(0), &part);
    (1..10).for_each(|later| arrive(&mut half, later, later, 1, 1));
    let (reports, _) = whole_report(&mut half, 1000);
    let wanted = |frame: &&ReportFrame| matches!(frame, ReportFrame::Request { segment: SegmentNumber(0), length_wanted: true, .. });
    assert_eq!(frames(&reports).filter(wanted).count(), 1);
}

#[test]
fn a_map_of_holes_goes_on_in_the_next_shipment_and_the_next_segment_behind_it() {
    let mut half = one_stream(100);
    // Every second unit of 300 is missing, and may be.
    let own = Some(Tolerance::any(300));
    let part = Part { count: 1, length: Some(u64::from(300 * UNIT_BYTES)), tolerance: own, ..Part::default() };
    for first in (0..300).step_by(2).map(Position) {
        let number = ShipmentNumber(u64::from(first.0));
        assert!(half.on_shipment(at(1), number, 100));
        half.on_part(at(1), number, &Part { first, ..part });
    }
    (0..10).for_each(|later| arrive(&mut half, 400 + later, 1 + later, 1, 1));
    let (reports, shipments) = whole_report(&mut half, 1000);
    assert_eq!((reports.len() as u64, shipments), (3, 3));
    let (mut maps, mut told, mut holes) = (0, 0, 0);
    for frame in frames(&reports) {
        if let ReportFrame::Judged { from, to, holes: more, .. } = frame {
            assert_eq!(from.0, told, "it goes on where it was cut");
            (maps, told, holes) = (maps + 1, to.0, holes + more.len());
        }
    }
    assert_eq!((maps, told, holes), (2, 300, 150));
    let last = frames(&reports).last();
    assert_eq!(last, Some(&ReportFrame::Complete { stream: StreamId(0), first: SegmentNumber(1), count: 10 }));
}

#[test]
fn confirmed_verdicts_are_told_no_more_while_their_segments_wait_for_the_application() {
    let mut half = one_stream(100);
    (0..5).for_each(|number| arrive(&mut half, number, number, 1, 1));
    let told = |reports: &[Report]| {
        let complete = frames(reports).filter_map(|frame| match frame {
            ReportFrame::Complete { first, count, .. } => Some((first.0, *count)),
            _ => None,
        });
        complete.collect::<Vec<_>>()
    };
    let (reports, _) = whole_report(&mut half, 1000);
    assert_eq!(told(&reports), [(0, 5)]);
    half.on_confirmed(at(1001), &Confirmed { highest: Some(reports[0].number), before: 0 });
    arrive(&mut half, 5, 5, 1, 1);
    assert_eq!(told(&whole_report(&mut half, 2000).0), [(5, 1)]);
}

#[test]
fn a_frame_that_just_fits_is_added() {
    let frame = ReportFrame::MaxStreams { streams: 5 };
    let (mut report, mut room) = (Report::default(), frame.encoded_len());
    assert!(push(&mut report, &mut room, frame.clone()) && !push(&mut report, &mut room, frame));
    assert_eq!((report.frames.len(), room), (1, 0));
}

#[test]
fn how_many_repair_units_are_held_is_told_with_a_long_request_as_well() {
    let mut half = one_stream(100);
    half.set_coding();
    assert!(half.on_shipment(at(1), ShipmentNumber(0), 100));
    for first in (0..100).step_by(2).map(Position) {
        let part = Part { first, count: 1, length: Some(u64::from(100 * UNIT_BYTES)), ..Part::default() };
        half.on_part(at(1), ShipmentNumber(0), &part);
    }
    repair_arrives(&mut half, 1);
    (2..10).for_each(|later| arrive(&mut half, later, later, 1, 1));
    let (reports, _) = whole_report(&mut half, 1000);
    assert_eq!(repairs_told(&reports), Some((50, 1)));
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
