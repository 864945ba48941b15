//! What a peer sends costs work in proportion to its bytes, whatever contract it has proposed and whatever it has sent before (spec 11.4).
//!
//! Work is counted in steps of loops ([`segstream_blocks::work`]), not in time, so that the test means the same on every machine.

use crate::receiver_config::receiver_config;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Bandwidth, Duration, ExchangeNumber, Instant, Position, ReportNumber, Run, SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::work::{self, TURN_STEPS};
use segstream_proto::number::ShipmentCounter;
use segstream_proto::rate::Rate;
use segstream_proto::receiver::RecvHalf;
use segstream_proto::sender::{SendHalf, SenderConfig, SenderHalfEvent};
use segstream_wire::contract::InterleaveChoice;
use segstream_wire::report::Runs;
use segstream_wire::state::Finished;
use segstream_wire::{Class, Contract, Part, Report, ReportFrame, State, StateFrame};

/// Parts or frames of a datagram.
const FRAMES: u32 = 100;

/// A receiver as a connection has it by default, with one stream of the attacker's.
struct Victim {
    half: RecvHalf,
    number: u64,
    worst_turn: u64,
    steps: u64,
}

impl Victim {
    fn of(contract: &Contract) -> Self {
        let mut half = RecvHalf::new(receiver_config(), Instant::ZERO);
        half.open(Instant::ZERO, StreamId(0), contract);
        Self { half, number: 0, worst_turn: 0, steps: 0 }
    }

    fn turn<T>(&mut self, work: impl FnOnce(&mut RecvHalf) -> T) -> T {
        let (result, steps) = work::counted(|| work(&mut self.half));
        self.worst_turn = self.worst_turn.max(steps);
        self.steps += steps;
        result
    }

    /// A datagram arrives; then the turns it has caused.
    fn arrives(&mut self, take: impl FnOnce(&mut RecvHalf, Instant, ShipmentNumber)) {
        let (now, number) = (Instant::ZERO + Duration::from_micros(self.number), ShipmentNumber(self.number));
        self.number += 1;
        self.turn(|half| {
            half.on_shipment(now, number, 1200);
            take(half, now, number);
            half.after_shipment(now);
        });
        while self.turn(|half| half.handle_timeout(now)) {}
        self.turn(|half| half.poll_report(now));
    }

    fn parts(&mut self, parts: &[Part]) {
        self.arrives(|half, now, number| parts.iter().for_each(|part| _ = half.on_part(now, number, part)));
    }

    fn frames(&mut self, frames: &[StateFrame]) {
        let state = State { sync: ExchangeNumber(self.number), frames: frames.iter().cloned().collect(), ..State::default() };
        self.arrives(|half, now, number| half.on_state(now, number, &state));
    }

    /// The peer asks for a report, and has it; each of its shipments is a turn.
    fn answer(&mut self) {
        let now = Instant::ZERO + Duration::from_micros(self.number);
        let state = State { sync: ExchangeNumber(self.number), answer: true, ..State::default() };
        self.arrives(|half, now, number| half.on_state(now, number, &state));
        while self.turn(|half| half.poll_report(now)).is_some() {}
    }

    /// The turns since `mark` and all that they took together are within the budget: a few steps for each unit that was settled.
    fn assert_within_budget(&self, about: &str, datagrams: u64, settled: u64) {
        assert!(self.worst_turn <= TURN_STEPS, "{about}: a turn of {} steps", self.worst_turn);
        let most = datagrams * TURN_STEPS / 2 + 40 * settled;
        assert!(self.steps <= most, "{about}: {} steps of at most {most}", self.steps);
    }

    /// Forgets what was counted so far.
    fn mark(&mut self) {
        (self.worst_turn, self.steps) = (0, 0);
    }
}

/// The units of the largest segment of one-byte units that a default receiver grants room for.
const UNITS: u32 = (64 << 20) / 64;

fn part(first: u32, count: u32, again: bool) -> Part {
    Part {
        stream: StreamId(0),
        segment: SegmentNumber(0),
        first: Position(first),
        count,
        retransmission: again,
        opened: false,
        length: Some(u64::from(UNITS)),
        tolerance: None,
        source_time: Instant::ZERO,
        payload_bytes: count,
    }
}

fn finished() -> StateFrame {
    let (stream, segment, length) = (StreamId(0), SegmentNumber(0), u64::from(UNITS));
    let (source_time, tolerance, opened) = (Instant::ZERO, None, false);
    StateFrame::Finished(Finished { stream, segment, opened, length, source_time, tolerance, last_shipment: None })
}

fn contract(tolerance: Tolerance, interleave: InterleaveChoice) -> Contract {
    Contract { unit_bytes: 1, tolerance, interleave, window_units: 1 << 28, window_segments: 65_536, ..Contract::default() }
}

/// Tolerances under which it is not the number of holes that decides, so that a check must know where they lie.
fn tolerances() -> [Tolerance; 5] {
    let of = |window, errors, burst| Tolerance::new(window, errors, burst).unwrap();
    // The first is the one of the attack that was measured.
    [of(1 << 28, 1 << 28, UNITS - 2), of(UNITS, UNITS / 2, UNITS / 4), of(4096, 4000, 3000), of(2, 1, 1), of(1 << 28, 1 << 28, 3)]
}

#[test]
fn small_parts_duplicates_and_statements_of_a_huge_segment_cost_what_they_bring() {
    for tolerance in tolerances() {
        for interleave in [InterleaveChoice::Auto, InterleaveChoice::Off] {
            let about = format!("{tolerance}, {interleave:?}");
            let mut victim = Victim::of(&contract(tolerance, interleave));
            // Every other unit of the first quarter arrives, then one at three quarters: what lies between is lost.
            let quarter = UNITS / 4;
            let mut datagrams = 0;
            for first in (0..quarter).step_by(2 * FRAMES as usize) {
                let parts: Vec<Part> = (0..FRAMES).map(|index| part(first + 2 * index, 1, false)).collect();
                victim.parts(&parts);
                datagrams += 1;
            }
            for step in 0..10 {
                victim.parts(&[part(3 * quarter + step, 1, false)]);
                datagrams += 1;
            }
            victim.assert_within_budget(&about, datagrams, u64::from(UNITS));
            victim.mark();
            // Retransmissions of single units, each three times; and the statement, again and again.
            for index in 0..200 {
                let parts: Vec<Part> = (0..FRAMES).map(|part_of| part(quarter + 7 * (index * FRAMES + part_of) / 3, 1, true)).collect();
                victim.parts(&parts);
                victim.frames(&vec![finished(); FRAMES as usize]);
            }
            victim.assert_within_budget(&about, 400, u64::from(200 * FRAMES / 3));
        }
    }
}

#[test]
fn a_segment_of_which_all_is_due_is_not_checked_anew_for_each_repair() {
    for tolerance in tolerances() {
        let mut victim = Victim::of(&contract(tolerance, InterleaveChoice::Auto));
        // A thousand units in steps, and the last: after R more shipments all the others are lost.
        let spread = UNITS / 1000;
        for index in 0..10 {
            let parts: Vec<Part> = (0..FRAMES).map(|part_of| part((index * FRAMES + part_of) * spread, 1, false)).collect();
            victim.parts(&parts);
        }
        victim.parts(&[part(UNITS - 1, 1, false)]);
        (0..5).for_each(|_| victim.frames(&[finished()]));
        victim.assert_within_budget(&format!("{tolerance}, lost"), 16, u64::from(UNITS));
        victim.mark();
        for index in 0..200 {
            let parts: Vec<Part> = (0..FRAMES).map(|part_of| part(1 + (index * FRAMES + part_of) * 37, 1, true)).collect();
            victim.parts(&parts);
        }
        victim.assert_within_budget(&format!("{tolerance}, repaired"), 200, u64::from(200 * FRAMES));
    }
}

#[test]
fn changes_of_class_do_not_judge_everything_again_and_again() {
    let contract = Contract { unit_bytes: 100, window_segments: 65_536, window_units: 200_000, ..Contract::default() };
    let mut victim = Victim::of(&contract);
    // 20,000 segments of two units, of which one arrives.
    for datagram in 0..200 {
        let parts: Vec<Part> = (0..u64::from(FRAMES))
            .map(|index| Part {
                segment: SegmentNumber(datagram * u64::from(FRAMES) + index),
                length: Some(200),
                payload_bytes: 100,
                ..part(0, 1, false)
            })
            .collect();
        victim.parts(&parts);
    }
    victim.mark();
    for datagram in 0..50_u64 {
        let reclass = |change: u64| StateFrame::Reclass {
            change,
            // The last of a datagram, which counts, is another one each time.
            class: Class::new(if datagram.is_multiple_of(2) == change.is_multiple_of(2) { 3 } else { 7 }).unwrap(),
            rate: Bandwidth::from_megabits_per_second(1),
        };
        let frames: Vec<StateFrame> = (0..u64::from(FRAMES)).map(|index| reclass(1 + datagram * u64::from(FRAMES) + index)).collect();
        victim.frames(&frames);
    }
    assert!(victim.worst_turn <= TURN_STEPS, "a turn of {} steps", victim.worst_turn);
    // Some sweeps are free at first; then each datagram earns a part of one, and the report that answers it looks at 4096.
    let most = 65_536 + 50 * (1200 / 4 + 4096 + u64::from(FRAMES));
    assert!(victim.steps <= most, "{} steps of at most {most}", victim.steps);
    // The last change is acted on in the end, when enough has arrived.
    for _ in 0..100 {
        victim.frames(&[]);
    }
    assert!(cfg!(not(debug_assertions)) || victim.steps > 65_536, "the sweep went on");
}

#[test]
fn a_judged_segment_keeps_no_map_of_its_units() {
    let mut victim = Victim::of(&contract(Tolerance::any(1), InterleaveChoice::Off));
    victim.parts(&[part(UNITS - 1, 1, false)]);
    let before = victim.half.kept_bytes();
    (0..5).for_each(|_| victim.frames(&[finished()]));
    assert!(victim.half.poll_delivery(StreamId(0)).is_some(), "the segment is not judged");
    assert!(before > u64::from(UNITS / 8) && victim.half.kept_bytes() < 4096, "{before} bytes, then {}", victim.half.kept_bytes());
}

#[test]
fn holes_of_verdicts_that_are_never_confirmed_close_the_window() {
    // Segments of which every other unit arrives, so that the holes take four times the bytes that came.
    const SEGMENT: u32 = 10_000;
    let contract = Contract { window_units: 1 << 20, ..contract(Tolerance::any(1), InterleaveChoice::Off) };
    let mut victim = Victim::of(&contract);
    let mut most = 0;
    for segment in 0..2000 {
        let length = Some(u64::from(SEGMENT));
        let of = |first, again| Part { segment: SegmentNumber(segment), length, ..part(first, 1, again) };
        for first in (0..SEGMENT).step_by(2 * FRAMES as usize) {
            victim.parts(&(0..FRAMES).map(|index| of(first + 2 * index, false)).collect::<Vec<_>>());
        }
        let frame = StateFrame::Finished(Finished {
            stream: StreamId(0),
            segment: SegmentNumber(segment),
            opened: false,
            length: u64::from(SEGMENT),
            source_time: Instant::ZERO,
            tolerance: None,
            last_shipment: Some(ShipmentNumber(victim.number - 1)),
        });
        (0..5).for_each(|_| victim.frames(core::slice::from_ref(&frame)));
        while let Some(delivery) = victim.half.poll_delivery(StreamId(0)) {
            victim.half.release(Instant::ZERO, StreamId(0), delivery.segment);
        }
        most = most.max(victim.half.kept_bytes());
    }
    // The window is 2^20 units, each charged with 64 bytes; without the rule some 80 MB of holes are kept.
    assert!(victim.half.counters.parts_refused > 0, "the window never closed");
    assert!(most < 8 << 20, "{most} bytes are kept");
}

/// A sender from which everything has left, that was granted as much as it wants.
pub(crate) fn sender(segments: u64, units: u64) -> SendHalf {
    let config = SenderConfig {
        class: Class::ALL,
        body_bytes: 1100,
        overhead_bytes: 41,
        rate: Rate::smooth(Bandwidth::from_megabits_per_second(100_000)),
        epoch: Duration::ZERO,
        circuit_breaker: false,
        pacing_quantum: Duration::ZERO,
        keep_alive: Duration::from_secs(5),
    };
    let contract = Contract { unit_bytes: 100, window_units: 1 << 20, window_segments: 65_536, ..Contract::default() };
    let mut half = SendHalf::new(config, Instant::ZERO);
    half.open_stream(Instant::ZERO, contract).unwrap();
    let grant = ReportFrame::Grant { stream: StreamId(0), segments: 65_536, units: 1 << 20, end_known: false };
    half.handle_report(Instant::ZERO, &Report { frames: [grant].into_iter().collect(), ..Report::default() });
    (0..segments).for_each(|_| _ = half.submit(Instant::ZERO, StreamId(0), Some(units * 100), Instant::ZERO, None).unwrap());
    let (mut counter, mut parts, mut now) = (ShipmentCounter::default(), Vec::new(), Instant::ZERO);
    for _ in 0..2 * segments * units {
        while half.poll_transmit(now, &mut counter, &mut parts).is_some() {}
        let Some(deadline) = half.poll_timeout().filter(|deadline| deadline.timer != "state") else { break };
        now = deadline.at.max(now + Duration::from_micros(1));
        half.handle_timeout(now);
    }
    half
}

/// What a report of so many equal frames costs, as a receiver sends it again and again.
fn cost_of(half: &mut SendHalf, number: u64, frame: &ReportFrame) -> u64 {
    let frames = vec![frame.clone(); FRAMES as usize].into_iter().collect();
    let report = Report { number: ReportNumber(number), echo: Some(ShipmentNumber(100)), frames, ..Report::default() };
    work::counted(|| half.handle_report(Instant::ZERO + Duration::from_secs(1), &report)).1
}

#[test]
fn requests_that_are_told_again_cost_a_sender_little() {
    let mut half = sender(1, 16_384);
    let frame = ReportFrame::Request {
        stream: StreamId(0),
        segment: SegmentNumber(0),
        missing: Runs::new(),
        tail_from: Some(Position(0)),
        length_wanted: false,
    };
    let first = cost_of(&mut half, 1, &frame);
    assert!((16_384..TURN_STEPS).contains(&first), "{first} steps for what is looked at once");
    for number in 2..100 {
        let again = cost_of(&mut half, number, &frame);
        assert!(again < 2_000, "{again} steps for what was looked at before");
    }
}

/// Of how many segments an event tells the verdict.
fn judged(event: &SenderHalfEvent) -> Option<u64> {
    if let SenderHalfEvent::Judged { segments, .. } = event { Some(segments.end - segments.start) } else { None }
}

#[test]
fn verdicts_that_are_told_again_behind_an_older_segment_cost_a_sender_little() {
    let mut half = sender(16_384, 1);
    let frame = ReportFrame::Complete { stream: StreamId(0), first: SegmentNumber(1), count: 1 << 40 };
    let first = cost_of(&mut half, 1, &frame);
    assert!(first <= TURN_STEPS, "{first} steps in one turn");
    let mut turns = 0;
    while half.poll_timeout().is_some_and(|deadline| deadline.timer == "verdicts") {
        let ((), steps) = work::counted(|| half.handle_timeout(Instant::ZERO));
        assert!(steps <= TURN_STEPS, "{steps} steps in one turn");
        turns += 1;
    }
    let told: u64 = core::iter::from_fn(|| half.poll_event()).filter_map(|event| judged(&event)).sum();
    assert_eq!((told, turns), (16_383, 15), "each segment has its verdict once, in turns of 1024");
    for number in 2..100 {
        let again = cost_of(&mut half, number, &frame);
        assert!(again < 1_000, "{again} steps for verdicts that were known");
    }
}

/// Parts of segments of one unit each, a datagram full of them.
fn one_unit(segments: impl Iterator<Item = u64>) -> Vec<Part> {
    segments.map(|segment| Part { segment: SegmentNumber(segment), length: Some(1), ..part(0, 1, false) }).collect()
}

#[test]
fn a_part_far_ahead_makes_no_state_for_what_has_not_begun() {
    let mut victim = Victim::of(&contract(Tolerance::reliable(1), InterleaveChoice::Off));
    (0..4).for_each(|_| victim.parts(&one_unit(65_535..65_536)));
    assert!(victim.worst_turn <= TURN_STEPS, "a turn of {} steps", victim.worst_turn);
    // A place for each, of eight bytes, which grows by doubling.
    assert!(victim.half.kept_bytes() <= 2 * 8 * 65_536 + 4096, "{} bytes are kept", victim.half.kept_bytes());
    // Once all before it is due there is a state for each, made in turns.
    (0..5).for_each(|_| victim.frames(&[finished()]));
    assert!(victim.worst_turn <= TURN_STEPS, "a turn of {} steps", victim.worst_turn);
    assert!(victim.half.kept_bytes() <= 65_536 * 512, "{} bytes are kept", victim.half.kept_bytes());
}

#[test]
fn a_report_does_not_look_again_and_again_at_all_that_waits() {
    let mut victim = Victim::of(&contract(Tolerance::reliable(1), InterleaveChoice::Off));
    // Of pairs of segments one is complete, and no verdict is ever confirmed.
    for first in (0..65_536).step_by(2 * FRAMES as usize) {
        victim.parts(&one_unit((first..65_536).step_by(2).take(FRAMES as usize)));
    }
    victim.mark();
    for _ in 0..100 {
        victim.answer();
    }
    assert!(victim.worst_turn <= TURN_STEPS, "a turn of {} steps", victim.worst_turn);
    assert!(victim.steps <= 100 * TURN_STEPS, "{} steps for 100 reports", victim.steps);
}

#[test]
fn statements_that_wait_for_a_shipment_cost_little_however_many_wait() {
    let mut victim = Victim::of(&contract(Tolerance::reliable(1), InterleaveChoice::Off));
    let finished = |segment: u64| {
        StateFrame::Finished(Finished {
            stream: StreamId(0),
            segment: SegmentNumber(segment),
            opened: false,
            length: 1,
            source_time: Instant::ZERO,
            tolerance: None,
            last_shipment: Some(ShipmentNumber(1_000_000)),
        })
    };
    victim.number = 1_000_001;
    for first in (0..50_000).step_by(FRAMES as usize) {
        victim.frames(&(0..u64::from(FRAMES)).map(|index| finished(50_000 - first - index)).collect::<Vec<_>>());
    }
    assert!(victim.worst_turn <= TURN_STEPS, "a turn of {} steps", victim.worst_turn);
}

#[test]
fn requests_for_every_other_position_in_any_order_cost_what_they_name() {
    let mut half = sender(1, 16_384);
    for number in 0..80_u32 {
        let missing = (0..FRAMES).map(|index| Run::single(Position(16_382 - 2 * (number * FRAMES + index))).unwrap());
        let frames = missing.map(|run| ReportFrame::Request {
            stream: StreamId(0),
            segment: SegmentNumber(0),
            missing: core::iter::once(run).collect(),
            tail_from: None,
            length_wanted: false,
        });
        let report = Report {
            number: ReportNumber(u64::from(number)),
            echo: Some(ShipmentNumber(100)),
            frames: frames.collect(),
            ..Report::default()
        };
        let ((), steps) = work::counted(|| half.handle_report(Instant::ZERO + Duration::from_secs(1), &report));
        assert!(steps < 4_000, "{steps} steps for {FRAMES} positions");
    }
}

#[test]
fn streams_whose_verdicts_are_never_confirmed_keep_no_more_segments_than_a_connection_may() {
    // The first may keep all that there is room for.
    let mut victim = Victim::of(&contract(Tolerance::reliable(1), InterleaveChoice::Off));
    let second = StreamId(8);
    (1..8).for_each(|stream| victim.half.open(Instant::ZERO, StreamId(stream), &contract(Tolerance::reliable(1), InterleaveChoice::Off)));
    victim.half.open(Instant::ZERO, second, &Contract { window_segments: 64, ..contract(Tolerance::reliable(1), InterleaveChoice::Off) });
    let mut taken = 0;
    for segment in 0..1000 {
        let parts: Vec<Part> = one_unit(segment..segment + 1).into_iter().map(|part| Part { stream: second, ..part }).collect();
        victim.parts(&parts);
        while let Some(delivery) = victim.half.poll_delivery(second) {
            victim.half.release(Instant::ZERO, second, delivery.segment);
            taken += 1;
        }
    }
    assert_eq!(taken, 128, "a window and 64 more");
}

#[test]
fn the_holes_of_a_huge_segment_are_listed_in_turns() {
    for interleave in [InterleaveChoice::Auto, InterleaveChoice::Off] {
        // No more than half may be missing, so that whole segments with it are interleaved.
        let mut victim = Victim::of(&contract(Tolerance::new(UNITS, UNITS / 2, UNITS / 2).unwrap(), interleave));
        for first in (0..UNITS).step_by(2 * FRAMES as usize) {
            victim.parts(&(0..FRAMES).map(|index| part(first + 2 * index, 1, false)).collect::<Vec<_>>());
        }
        victim.mark();
        let last = ShipmentNumber(victim.number - 1);
        let frame = StateFrame::Finished(match finished() {
            StateFrame::Finished(finished) => Finished { last_shipment: Some(last), ..finished },
            _ => unreachable!("it is made above"),
        });
        (0..5).for_each(|_| victim.frames(core::slice::from_ref(&frame)));
        assert!(victim.worst_turn <= TURN_STEPS, "{interleave:?}: a turn of {} steps", victim.worst_turn);
        let delivery = victim.half.poll_delivery(StreamId(0)).expect("the segment is judged");
        let missing: u32 = delivery.holes.iter().map(|hole| hole.len()).sum();
        assert_eq!((delivery.units, missing), (UNITS, UNITS / 2), "{interleave:?}");
        assert!(delivery.holes.windows(2).all(|pair| pair[0].end() < pair[1].start()), "{interleave:?}");
    }
}

#[test]
fn streams_that_begin_far_ahead_in_one_datagram_get_their_places_as_far_as_a_turn_goes() {
    let contract = Contract { window_units: 65_536, ..contract(Tolerance::reliable(1), InterleaveChoice::Off) };
    let mut victim = Victim::of(&contract);
    (1..4).for_each(|stream| victim.half.open(Instant::ZERO, StreamId(stream), &contract));
    let ahead = |stream| Part { stream: StreamId(stream), ..one_unit(60_000..60_001).remove(0) };
    victim.parts(&[ahead(0), ahead(1), ahead(2), ahead(3)]);
    assert!(victim.worst_turn <= TURN_STEPS, "a turn of {} steps", victim.worst_turn);
    assert_eq!(victim.half.counters.parts_refused, 4, "what does not fit a turn is asked for again");
    (0..16).for_each(|at| victim.parts(&[ahead(at % 4)]));
    assert_eq!(victim.half.counters.units_received, 4, "each has come to its place in four turns");
}

#[test]
fn an_open_segment_takes_no_more_than_the_window_however_often_it_grows() {
    let mut victim = Victim::of(&contract(Tolerance::any(1), InterleaveChoice::Off));
    let opened = |first| Part { opened: true, length: None, ..part(first, 1, false) };
    (1..16).for_each(|times| victim.parts(&[opened(times * UNITS - 1)]));
    assert_eq!(victim.half.counters.parts_refused, 14);
    assert!(victim.half.kept_bytes() < u64::from(UNITS), "{} bytes are kept", victim.half.kept_bytes());
}
