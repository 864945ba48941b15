//! What a report contains, in which order, and in how many shipments (spec 5).

use crate::receiver_config::receiver_config;
use segstream_base::{Bandwidth, Duration, ExchangeNumber, Instant, ReportNumber, ShipmentNumber, StreamId};
use segstream_proto::receiver::{ReceiverConfig, RecvHalf};
use segstream_wire::report::RefuseReason;
use segstream_wire::state::Confirmed;
use segstream_wire::{Class, Contract, Report, ReportFrame, State, StateFrame};
use std::collections::BTreeSet;

/// Shipments of one report at most (spec 5.1).
const SHIPMENTS_MAX: usize = 8;
/// Pending answers of each kind at most.
const ANSWERS_MAX: usize = 64;

struct Receiver {
    half: RecvHalf,
    next: u64,
}

impl Receiver {
    fn new(streams_max: u32, body_bytes: usize) -> Self {
        let config = ReceiverConfig {
            body_bytes,
            streams_max,
            stream_window_bytes: 1 << 16,
            connection_window_bytes: 1 << 30,
            window_segments_max: 100,
            ..receiver_config()
        };
        Self { half: RecvHalf::new(config, Instant::ZERO), next: 0 }
    }

    fn open(&mut self, streams: impl IntoIterator<Item = u32>) {
        let contract = Contract { window_units: 10, window_segments: 10, ..Contract::default() };
        streams.into_iter().for_each(|stream| self.half.open(Instant::ZERO, StreamId(stream), &contract));
    }

    /// The next shipment arrives, as a state with `frames`, which has the number `sync` of an exchange.
    fn state(&mut self, millis: u64, sync: u64, confirmed: Confirmed, frames: &[StateFrame]) {
        let number = ShipmentNumber(self.next);
        self.next += 1;
        assert!(self.half.on_shipment(at(millis), number, 100));
        let state = State {
            sync: ExchangeNumber(sync),
            time: sync * 1000,
            confirmed,
            frames: frames.iter().cloned().collect(),
            ..State::default()
        };
        self.half.on_state(at(millis), number, &state);
        self.half.after_shipment(at(millis));
    }

    /// Every shipment of the report that is due at `millis`; each fits the body.
    fn report(&mut self, millis: u64, body_bytes: usize) -> Vec<Report> {
        let reports: Vec<Report> = core::iter::from_fn(|| self.half.poll_report(at(millis))).collect();
        assert!(reports.iter().all(|report| report.encoded_len() <= body_bytes));
        reports
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn frames(reports: &[Report]) -> impl Iterator<Item = &ReportFrame> {
    reports.iter().flat_map(|report| &report.frames)
}

/// The streams whose window is told, in order.
fn granted(reports: &[Report]) -> Vec<u32> {
    let granted = frames(reports).filter_map(|frame| match frame {
        ReportFrame::Grant { stream, .. } => Some(stream.0),
        _ => None,
    });
    granted.collect()
}

fn refused(reports: &[Report]) -> Vec<u32> {
    let refused = frames(reports).filter_map(|frame| match frame {
        ReportFrame::Refused { stream, reason: RefuseReason::TooManyStreams } => Some(stream.0),
        _ => None,
    });
    refused.collect()
}

fn losses(reports: &[Report]) -> Vec<(u64, u64, u64)> {
    let losses = frames(reports).filter_map(|frame| match frame {
        ReportFrame::Losses { judged, lost, runs } => Some((*judged, *lost, *runs)),
        _ => None,
    });
    losses.collect()
}

#[test]
fn every_stream_is_told_its_window_once_in_as_many_shipments_as_that_takes() {
    let mut receiver = Receiver::new(1000, 200);
    receiver.open(0..100);
    let reports = receiver.report(1000, 200);
    assert_eq!(granted(&reports), (0..100).collect::<Vec<_>>());
    assert!((3..=SHIPMENTS_MAX).contains(&reports.len()), "{} shipments", reports.len());
    assert!(reports.iter().all(|report| !report.frames.is_empty()), "none says nothing");
    let numbers: Vec<_> = reports.iter().map(|report| report.number).collect();
    assert_eq!(numbers, (0..reports.len() as u64).map(ReportNumber).collect::<Vec<_>>());
}

#[test]
fn of_more_streams_than_a_report_has_room_for_the_next_tells_the_rest() {
    let mut receiver = Receiver::new(1000, 200);
    receiver.open(0..500);
    let (mut told, mut reports) = (BTreeSet::new(), 0);
    for round in 1..=10 {
        let shipments = receiver.report(1000 * round, 200);
        assert!(shipments.len() <= SHIPMENTS_MAX);
        reports += u32::from(!shipments.is_empty());
        told.extend(granted(&shipments));
        receiver.state(1000 * round + 1, round, Confirmed::default(), &[]);
    }
    assert_eq!(told, (0..500).collect(), "{reports} reports");
}

#[test]
fn what_is_refused_is_told_once_for_each_time_it_is_asked_and_of_so_many_at_a_time() {
    let mut receiver = Receiver::new(2, 1100);
    receiver.open([0, 1, 7, 7, 5, 7]);
    let reports = receiver.report(1000, 1100);
    assert_eq!(refused(&reports), [7, 5]);
    assert_eq!(granted(&reports), [0, 1]);
    receiver.state(1001, 1, Confirmed::default(), &[]);
    assert_eq!(refused(&receiver.report(2000, 1100)), [], "it is told once");
    receiver.open([7]);
    assert_eq!(refused(&receiver.report(3000, 1100)), [7], "and again when it is asked again");
    receiver.open(100..300);
    assert_eq!(refused(&receiver.report(4000, 1100)), (100..100 + ANSWERS_MAX as u32).collect::<Vec<_>>());
}

#[test]
fn answers_that_a_shipment_has_no_room_for_are_told_in_the_next_report() {
    let mut receiver = Receiver::new(1, 80);
    receiver.open([0]);
    receiver.open(100..130);
    let first = refused(&receiver.report(1000, 80));
    assert!(!first.is_empty() && first.len() < 30);
    let mut all = first;
    for round in 2..20 {
        receiver.state(1000 * round - 500, round, Confirmed::default(), &[]);
        all.extend(refused(&receiver.report(1000 * round, 80)));
    }
    assert_eq!(all, (100..130).collect::<Vec<_>>());
}

#[test]
fn the_end_of_a_retired_stream_is_told_to_whoever_still_names_it() {
    let mut receiver = Receiver::new(300, 1100);
    // Streams without a segment: each is over with its end.
    receiver.open(0..200);
    let ends: Vec<_> = (0..200).map(|stream| StateFrame::End { stream: StreamId(stream), segments: 0 }).collect();
    receiver.state(1, 1, Confirmed::default(), &ends);
    assert!((0..200).all(|stream| receiver.half.poll_ended(at(1), StreamId(stream)) == Some(0)));
    let reports = receiver.report(10, 1100);
    let highest = reports.last().map(|report| report.number);
    receiver.state(20, 2, Confirmed { highest, before: u64::MAX }, &[]);
    // The next one opened takes them out of the table.
    receiver.open([250]);
    assert!(receiver.half.has_retired(StreamId(3)) && !receiver.half.has_retired(StreamId(250)));
    assert_eq!(granted(&receiver.report(500, 1100)), [250]);
    receiver.open([3, 4, 3]);
    let reports = receiver.report(1000, 1100);
    assert_eq!(granted(&reports), [3, 4, 250], "those asked for first, each once");
    assert!(frames(&reports).all(|frame| !matches!(frame, ReportFrame::Grant { stream: StreamId(3 | 4), end_known: false, .. })));
    receiver.open(0..200);
    assert_eq!(granted(&receiver.report(2000, 1100)).len(), ANSWERS_MAX + 1);
}

#[test]
fn losses_are_told_when_they_change_and_for_eight_seconds() {
    let mut receiver = Receiver::new(4, 1100);
    receiver.half.set_coding();
    receiver.open([0]);
    receiver.state(0, 1, Confirmed::default(), &[]);
    assert_eq!(losses(&receiver.report(100, 1100)), [], "nothing was lost");
    // 1 and 2 are lost, and 4: two runs.
    receiver.next = 3;
    receiver.state(200, 2, Confirmed::default(), &[]);
    receiver.next = 5;
    for sync in 3..13 {
        receiver.state(200, sync, Confirmed::default(), &[]);
    }
    assert_eq!(losses(&receiver.report(300, 1100)), [(11, 3, 2)], "up to three before the highest, which is 14");
    receiver.state(8300, 13, Confirmed::default(), &[]);
    assert_eq!(losses(&receiver.report(8300, 1100)), [(12, 3, 2)]);
    receiver.state(8301, 14, Confirmed::default(), &[]);
    assert_eq!(losses(&receiver.report(9000, 1100)), [], "eight seconds after they changed");
    // What was declared lost comes late.
    receiver.next = 4;
    receiver.state(9500, 2, Confirmed::default(), &[]);
    assert_eq!(losses(&receiver.report(10_000, 1100)), [(13, 2, 2)]);
}

#[test]
fn losses_are_not_told_to_a_sender_that_has_no_use_for_them() {
    let mut receiver = Receiver::new(4, 1100);
    receiver.open([0]);
    receiver.next = 20;
    receiver.state(0, 1, Confirmed::default(), &[]);
    assert_eq!(losses(&receiver.report(1000, 1100)), []);
}

#[test]
fn the_newest_change_of_class_is_echoed_whatever_comes_again_or_late() {
    let mut receiver = Receiver::new(4, 1100);
    let class = |number| Class::new(number).unwrap();
    let mut echoed = |sync, change, asked| {
        let frame = StateFrame::Reclass { change, class: class(asked), rate: Bandwidth::from_megabits_per_second(10) };
        receiver.state(1000 * sync, sync, Confirmed::default(), &[frame]);
        let reports = receiver.report(1000 * sync + 500, 1100);
        let echoes = frames(&reports).filter_map(|frame| match frame {
            ReportFrame::ReclassEcho { change, class } => Some((*change, class.number())),
            _ => None,
        });
        echoes.collect::<Vec<_>>()
    };
    assert_eq!(echoed(1, 2, 5), [(2, 5)]);
    assert_eq!(echoed(2, 1, 6), [(2, 5)], "an older one");
    assert_eq!(echoed(3, 2, 6), [(2, 5)], "the same number");
    assert_eq!(echoed(4, 3, 7), [(3, 7)]);
}

#[test]
fn a_report_echoes_the_newest_state_and_how_long_it_was_held() {
    let mut receiver = Receiver::new(4, 1100);
    receiver.open([0]);
    receiver.state(100, 5, Confirmed::default(), &[]);
    receiver.state(110, 4, Confirmed::default(), &[]);
    receiver.state(120, 5, Confirmed::default(), &[]);
    let reports = receiver.report(130, 1100);
    assert_eq!((reports[0].time, reports[0].held), (Some(5000), 30_000_000), "of two with the same number the first counts");
    assert_eq!((reports[0].echo, reports[0].reorder), (Some(ShipmentNumber(2)), 3));
}
