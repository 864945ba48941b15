//! What a sending half believes of a receiver: nothing of units that never left, nothing twice, and nothing beyond
//! what a frame speaks of. A receiver that says nothing at all is asked again.

use segstream_base::halves::Verdict;
use segstream_base::{
    Bandwidth, Duration, Instant, Ordinal, Position, ReportNumber, Run, SegmentNumber, ShipmentNumber, StreamId, Tolerance, UnitIndex,
};
use segstream_proto::number::ShipmentCounter;
use segstream_proto::rate::Rate;
use segstream_proto::sender::{Outgoing, SendHalf, SenderConfig, SenderHalfEvent};
use segstream_wire::{Class, Contract, Part, Report, ReportFrame};

const UNIT_BYTES: u64 = 1024;

/// A segment, its verdict and its holes.
type Judged = (SegmentNumber, Verdict, Vec<Run<UnitIndex>>);

/// A sending half of one stream, and all that has left it.
struct Sender {
    half: SendHalf,
    counter: ShipmentCounter,
    now: Instant,
    numbers: Vec<ShipmentNumber>,
    parts: Vec<Part>,
    states: u64,
    reports: ReportNumber,
}

impl Sender {
    /// Nothing has been heard of the receiver.
    fn new(contract: Contract) -> Self {
        let config = SenderConfig {
            class: Class::ALL,
            body_bytes: 1100,
            overhead_bytes: 41,
            rate: Rate::smooth(Bandwidth::from_megabits_per_second(10)),
            epoch: Duration::ZERO,
            circuit_breaker: false,
            pacing_quantum: Duration::ZERO,
            keep_alive: Duration::from_secs(5),
        };
        let mut half = SendHalf::new(config, Instant::ZERO);
        assert_eq!(half.open_stream(Instant::ZERO, contract), Ok(StreamId(0)));
        let counter = ShipmentCounter::default();
        Self { half, counter, now: Instant::ZERO, numbers: vec![], parts: vec![], states: 0, reports: ReportNumber(0) }
    }

    /// The receiver has granted `segments` and `units`.
    fn granted(contract: Contract, segments: u64, units: u64) -> Self {
        let mut sender = Self::new(contract);
        sender.report(None, [ReportFrame::Grant { stream: StreamId(0), segments, units, end_known: false }]);
        sender
    }

    fn submit(&mut self, units: u64) {
        self.half.submit(self.now, StreamId(0), Some(units * UNIT_BYTES), Instant::ZERO, None).unwrap();
    }

    /// The next report, with this echo and a distance of 0.
    fn report(&mut self, echo: Option<u64>, frames: impl IntoIterator<Item = ReportFrame>) {
        let report =
            Report { number: self.reports, echo: echo.map(ShipmentNumber), frames: frames.into_iter().collect(), ..Report::default() };
        self.reports += 1;
        self.half.handle_report(self.now, &report);
    }

    /// Lets everything leave that is due within `span`.
    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let mut parts = Vec::new();
            while let Some((number, outgoing)) = self.half.poll_transmit(self.now, &mut self.counter, &mut parts) {
                self.numbers.push(number);
                self.states += u64::from(matches!(outgoing, Outgoing::State(_)));
                self.parts.append(&mut parts);
            }
            match self.half.poll_timeout() {
                Some(deadline) if deadline.at <= end => self.now = self.now.max(deadline.at),
                _ => break,
            }
        }
        self.now = end;
    }

    /// The verdicts told so far, with their holes.
    fn judged(&mut self) -> Vec<Judged> {
        let events = core::iter::from_fn(|| self.half.poll_event());
        let mut judged = Vec::new();
        for event in events {
            if let SenderHalfEvent::Judged { segments, verdict, holes, .. } = event {
                judged.extend(segments.start.up_to(segments.end).map(|segment| (segment, verdict, holes.clone())));
            }
        }
        judged
    }
}

fn run<N: Ordinal>(start: u32, end: u32) -> Run<N> {
    Run::new(N::of(start), N::of(end)).unwrap()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_number_is_given_out_once_whatever_it_is_given_to() {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    sender.submit(100);
    sender.run(ms(300));
    assert!(sender.parts.len() == 100 && sender.states > 5, "both data and states have left");
    assert_eq!(sender.numbers, ShipmentNumber::FIRST.onward().take(sender.numbers.len()).collect::<Vec<_>>());
}

/// Units that have left of a caller that comes 1.8 ms late, in which two more were due, with or without a report just before.
fn left_of_a_late_caller(reported: bool) -> usize {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    sender.submit(100);
    sender.run(Duration::from_micros(10));
    assert_eq!(sender.parts.len(), 1);
    sender.now += Duration::from_micros(1800);
    if reported {
        sender.report(Some(0), []);
    }
    sender.run(Duration::from_micros(10));
    sender.parts.len()
}

#[test]
fn a_report_takes_nothing_of_what_a_late_caller_may_catch_up() {
    assert_eq!((left_of_a_late_caller(false), left_of_a_late_caller(true)), (3, 3));
}

#[test]
fn what_was_asked_for_before_it_left_is_not_sent_twice() {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    sender.submit(100);
    sender.run(ms(10));
    let left = sender.parts.len() as u32;
    assert!((5..50).contains(&left), "{left} units have left");
    let everything = ReportFrame::Request {
        stream: StreamId(0),
        segment: SegmentNumber(0),
        missing: [run(0, 100)].into_iter().collect(),
        tail_from: Some(Position(3)),
        length_wanted: false,
    };
    // The echo is of a number that was never given out, so that it speaks against every unit.
    sender.report(Some(1 << 20), [everything]);
    sender.run(ms(300));
    let (again, first): (Vec<&Part>, Vec<&Part>) = sender.parts.iter().partition(|part| part.retransmission);
    let asked: Vec<Position> = again.iter().flat_map(|part| part.first.up_to(part.end())).collect();
    assert_eq!(asked, (0..left).map(Position).collect::<Vec<_>>());
    assert_eq!(first.iter().map(|part| part.count).sum::<u32>(), 100);
}

#[test]
fn a_request_in_a_segment_that_is_not_there_changes_nothing() {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    sender.submit(4);
    sender.run(ms(20));
    for (stream, segment) in [(0, 1), (0, u64::MAX), (1, 0), (u32::MAX, 0)] {
        let missing = [run(0, u32::MAX)].into_iter().collect();
        sender.report(
            Some(1 << 20),
            [ReportFrame::Request {
                stream: StreamId(stream),
                segment: SegmentNumber(segment),
                missing,
                tail_from: Some(Position(0)),
                length_wanted: true,
            }],
        );
    }
    sender.run(ms(20));
    assert_eq!(sender.half.counters.units_retransmitted, 0);
}

#[test]
fn a_verdict_told_again_is_given_once() {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    for _ in 0..3 {
        sender.submit(2);
    }
    sender.run(ms(20));
    for (first, count) in [(1, 1), (1, 1), (1, 2), (0, u64::MAX)] {
        sender.report(Some(6), [ReportFrame::Complete { stream: StreamId(0), first: SegmentNumber(first), count }]);
    }
    let told: Vec<u64> = sender.judged().into_iter().map(|judged| judged.0.0).collect();
    assert_eq!(told, [1, 2, 0]);
}

#[test]
fn a_verdict_is_confirmed_long_before_the_next_sign_of_life() {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    sender.submit(2);
    sender.run(ms(50));
    let before = sender.states;
    sender.report(Some(1 << 20), [ReportFrame::Complete { stream: StreamId(0), first: SegmentNumber(0), count: 1 }]);
    sender.run(Duration::from_secs(1));
    assert!(sender.states > before, "the receiver keeps the verdict until it hears of it");
}

#[test]
fn a_map_of_holes_says_nothing_of_units_it_does_not_name() {
    let mut sender = Sender::granted(Contract { tolerance: Tolerance::new(20, 5, 5).unwrap(), ..Contract::default() }, 16, 4096);
    sender.submit(20);
    sender.run(ms(30));
    let map = |from, to, hole| ReportFrame::Judged {
        stream: StreamId(0),
        segment: SegmentNumber(0),
        verdict: Verdict::WithinTolerance,
        units: 20,
        from: UnitIndex(from),
        to: UnitIndex(to),
        holes: [hole].into_iter().collect(),
    };
    sender.report(Some(20), [map(10, 20, run(12, 14))]);
    assert_eq!(sender.judged(), [], "of the first ten units nothing is known");
    sender.report(Some(20), [map(0, 10, run(3, 4))]);
    assert_eq!(sender.judged(), [(SegmentNumber(0), Verdict::WithinTolerance, vec![run(3, 4), run(12, 14)])]);
}

#[test]
fn the_length_of_a_segment_is_told_at_once_unless_units_sent_again_will_tell_it() {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    // The first has no bytes, which no unit can tell.
    for units in [0, 4, 4] {
        sender.submit(units);
    }
    sender.run(ms(500));
    // The tails begin behind the last units, so that nothing is sent again.
    for (segment, tail_from, at_once) in [(0, Some(Position(1)), true), (1, Some(Position(4)), false), (1, None, true), (9, None, false)] {
        let missing = Default::default();
        sender.report(
            Some(1 << 20),
            [ReportFrame::Request { stream: StreamId(0), segment: SegmentNumber(segment), missing, tail_from, length_wanted: true }],
        );
        let timer = sender.half.poll_timeout().map(|deadline| deadline.timer);
        assert_eq!(timer == Some("state.news"), at_once, "segment {segment}, {tail_from:?}: {timer:?}");
        sender.run(ms(500));
    }
}

#[test]
fn a_class_is_in_force_only_if_the_echo_is_of_what_was_asked_for() {
    let six = Class::new(6).unwrap();
    for (echoed, in_force) in [(six, six), (Class::new(5).unwrap(), Class::ALL), (Class::ALL, Class::ALL)] {
        let mut sender = Sender::granted(Contract::default(), 16, 4096);
        sender.half.set_class(sender.now, six).unwrap();
        sender.report(None, [ReportFrame::ReclassEcho { change: 2, class: six }]);
        assert_eq!((sender.half.poll_event(), sender.half.class()), (None, Class::ALL), "change 2 was not asked for");
        sender.report(None, [ReportFrame::ReclassEcho { change: 1, class: echoed }]);
        assert_eq!((sender.half.poll_event(), sender.half.class()), (Some(SenderHalfEvent::Reclassed(in_force)), in_force));
    }
}

#[test]
fn an_old_grant_takes_nothing_back() {
    let mut sender = Sender::granted(Contract::default(), 16, 40);
    sender.report(None, [ReportFrame::Grant { stream: StreamId(0), segments: 1, units: 8, end_known: false }]);
    for _ in 0..5 {
        sender.submit(8);
    }
    sender.run(ms(100));
    assert_eq!(sender.parts.len(), 40);
}

#[test]
fn the_grant_of_a_confirm_opens_the_window_without_a_report() {
    let mut sender = Sender::new(Contract::default());
    sender.submit(8);
    sender.run(ms(20));
    assert_eq!(sender.parts.len(), 0);
    sender.half.handle_grant(sender.now, &ReportFrame::Grant { stream: StreamId(0), segments: 1, units: 8, end_known: false });
    sender.run(ms(20));
    assert_eq!(sender.parts.len(), 8);
}

#[test]
fn only_a_report_newer_than_all_before_measures_the_round_trip() {
    let mut sender = Sender::granted(Contract::default(), 16, 4096);
    let told = |sender: &mut Sender, number, round_trip| {
        let time = Some((sender.now - round_trip).as_nanos());
        sender.half.handle_report(sender.now, &Report { number, time, ..Report::default() });
        sender.half.rtt_smoothed()
    };
    sender.run(Duration::from_secs(1));
    assert_eq!(told(&mut sender, ReportNumber(5), ms(40)), Some(ms(40)));
    assert_eq!(told(&mut sender, ReportNumber(6), ms(80)), Some(ms(45)), "an eighth of what is new");
    assert_eq!(told(&mut sender, ReportNumber(6), ms(80)), Some(ms(45)), "the same again");
    assert_eq!(told(&mut sender, ReportNumber(4), ms(80)), Some(ms(45)), "one that was overtaken");
}

#[test]
fn a_sender_that_waits_for_the_window_asks_again_for_ever() {
    let mut sender = Sender::granted(Contract::default(), 16, 8);
    sender.submit(8);
    sender.submit(8);
    sender.run(ms(50));
    // Everything that left has arrived and is judged; the grant that should follow is lost.
    sender.report(Some(1 << 20), [ReportFrame::Complete { stream: StreamId(0), first: SegmentNumber(0), count: 1 }]);
    for minute in 0..10 {
        let before = sender.states;
        sender.run(Duration::from_secs(60));
        assert!(sender.states - before >= 60, "{} in minute {minute}", sender.states - before);
    }
    assert_eq!(sender.parts.len(), 8, "and sends nothing beyond it");
}
