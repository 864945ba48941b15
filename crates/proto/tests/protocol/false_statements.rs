//! What a receiving half believes of a sender: no end below what was seen, no unit lost that may still come, nothing
//! beyond the window it granted, and no shipment twice.

use crate::receiver_config::receiver_config;
use segstream_base::halves::Verdict;
use segstream_base::{Duration, ExchangeNumber, Instant, Position, SegmentNumber, ShipmentNumber, StreamId};
use segstream_proto::receiver::{PartOutcome, ReceiverConfig, RecvHalf, SEGMENT_STATE_BYTES};
use segstream_wire::state::Finished;
use segstream_wire::{Contract, Part, ReportFrame, State, StateFrame};

const UNIT_BYTES: u64 = 1024;

/// A receiving half, and the number of the next shipment that comes to it.
struct Receiver {
    half: RecvHalf,
    number: u64,
}

impl Receiver {
    /// R is 3. A buffer of 128 units for each stream, and of 200 for all, with the state of two windows of 100 segments and 64 more.
    fn of(contracts: &[Contract]) -> Self {
        let config = ReceiverConfig {
            streams_max: 8,
            stream_window_bytes: 128 * UNIT_BYTES,
            connection_window_bytes: 200 * (UNIT_BYTES + 8) + 2 * 164 * SEGMENT_STATE_BYTES,
            window_segments_max: 100,
            ..receiver_config()
        };
        let mut half = RecvHalf::new(config, Instant::ZERO);
        for (id, contract) in (0..).zip(contracts) {
            half.open(Instant::ZERO, StreamId(id), contract);
        }
        Self { half, number: 0 }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_millis(self.number)
    }

    /// The next shipment arrives, with whatever `take` makes of it.
    fn arrives<T>(&mut self, take: impl FnOnce(&mut RecvHalf, Instant, u64) -> T) -> T {
        let (now, number) = (self.now(), self.number);
        self.number += 1;
        assert!(self.half.on_shipment(now, ShipmentNumber(number), 1100));
        let result = take(&mut self.half, now, number);
        self.half.after_shipment(now);
        result
    }

    fn part(&mut self, segment: SegmentNumber, first: u32, units: u64) -> PartOutcome {
        let part = Part {
            stream: StreamId(0),
            segment,
            first: Position(first),
            count: 1,
            retransmission: false,
            opened: false,
            length: Some(units * UNIT_BYTES),
            tolerance: None,
            source_time: Instant::ZERO,
            payload_bytes: UNIT_BYTES as u32,
        };
        self.arrives(|half, now, number| half.on_part(now, ShipmentNumber(number), &part))
    }

    fn state(&mut self, frame: StateFrame) {
        let state = State { sync: ExchangeNumber(self.number), frames: [frame].into_iter().collect(), ..State::default() };
        self.arrives(|half, now, number| half.on_state(now, ShipmentNumber(number), &state));
    }

    /// What is granted of a stream: segments, units, and whether its end is known.
    fn granted(&self, id: usize) -> (u64, u64, bool) {
        let grants = self.half.grants();
        let Some(ReportFrame::Grant { segments, units, end_known, .. }) = grants.get(id) else { panic!("stream {id} has no grant") };
        (*segments, *units, *end_known)
    }

    fn judged(&mut self) -> Option<(u64, Verdict)> {
        self.half.poll_delivery(StreamId(0)).map(|delivery| (delivery.segment.0, delivery.verdict))
    }
}

fn given_up(segment: SegmentNumber, last_shipment: u64) -> StateFrame {
    StateFrame::Skip(Finished {
        stream: StreamId(0),
        segment,
        opened: false,
        length: 10 * UNIT_BYTES,
        source_time: Instant::ZERO,
        tolerance: None,
        last_shipment: Some(ShipmentNumber(last_shipment)),
    })
}

#[test]
fn an_end_below_what_was_seen_is_not_believed() {
    let mut receiver = Receiver::of(&[Contract::default()]);
    receiver.part(SegmentNumber(2), 0, 4);
    receiver.state(StateFrame::End { stream: StreamId(0), segments: 2 });
    assert!(!receiver.granted(0).2, "segment 2 was seen");
    receiver.state(StateFrame::End { stream: StreamId(0), segments: 3 });
    assert!(receiver.granted(0).2);
}

#[test]
fn a_segment_given_up_is_judged_when_what_left_before_can_no_longer_come() {
    let mut receiver = Receiver::of(&[Contract::default()]);
    receiver.part(SegmentNumber(0), 0, 10);
    // 1 to 5 are on their way, the last of them with a unit of the segment.
    receiver.number = 6;
    receiver.state(given_up(SegmentNumber(0), 5));
    for _ in 7..9 {
        receiver.arrives(|_, _, _| ());
        assert_eq!(receiver.judged(), None, "shipment 5 may come {} numbers late", receiver.number - 6);
    }
    receiver.arrives(|_, _, _| ());
    assert_eq!(receiver.judged(), Some((0, Verdict::Expired)), "number 9 is 5 + R + 1");
}

#[test]
fn a_part_beyond_the_granted_edges_is_refused() {
    let mut receiver = Receiver::of(&[Contract { window_segments: 3, window_units: 12, ..Contract::default() }]);
    assert_eq!(receiver.granted(0), (3, 12, false));
    assert_eq!(receiver.part(SegmentNumber(3), 0, 1), PartOutcome::Refused, "the segment lies at the edge");
    assert_eq!(receiver.part(SegmentNumber(2), 0, 13), PartOutcome::Refused, "the segment is longer than the buffer");
    assert_eq!(receiver.part(SegmentNumber(2), 0, 12), PartOutcome::Fresh);
    assert_eq!(receiver.part(SegmentNumber(1), 0, 1), PartOutcome::Refused, "the buffer is full");
}

#[test]
fn no_more_is_granted_than_the_buffer_holds() {
    let wishes = [Contract { window_units: 1 << 20, ..Contract::default() }, Contract { window_units: 1 << 20, ..Contract::default() }];
    let receiver = Receiver::of(&wishes);
    assert_eq!((receiver.granted(0).1, receiver.granted(1).1), (128, 72), "of 200 units 128 for one stream at most");
}

#[test]
fn a_unit_that_comes_twice_counts_once() {
    let mut receiver = Receiver::of(&[Contract::default()]);
    assert_eq!(receiver.part(SegmentNumber(0), 1, 4), PartOutcome::Fresh);
    assert_eq!(receiver.part(SegmentNumber(0), 1, 4), PartOutcome::Stale);
    let counters = receiver.half.counters;
    assert_eq!((counters.units_received, counters.units_duplicate), (1, 1));
    let now = receiver.now();
    for number in 0..2 {
        assert!(!receiver.half.on_shipment(now, ShipmentNumber(number), 1100), "shipment {number} is a replay");
    }
}
