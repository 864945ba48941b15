//! An attacker with valid keys, who may send any frames that decode: from seeds, with numbers at borders, to both halves.
//!
//! Every turn stays within the budget of work (spec 11.4), except for one that hands over a segment; what is kept stays within the grants,
//! each segment's overhead included.

use crate::receiver_config::receiver_config;
use segstream_base::random::{Random, Seed};
use segstream_base::tolerance::Tolerance;
use segstream_base::{Bandwidth, Duration, ExchangeNumber, Instant, Position, ReportNumber, Run, SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::work::{self, TURN_STEPS};
use segstream_proto::receiver::{ReceiverConfig, RecvHalf};
use segstream_wire::contract::{InterleaveChoice, Order};
use segstream_wire::report::Runs;
use segstream_wire::state::{Confirmed, Finished, Reached};
use segstream_wire::{Class, Contract, Part, Report, ReportFrame, State, StateFrame};

const STREAMS: u32 = 3;
/// Frames of a datagram.
const FRAMES: u64 = 100;
const DATAGRAMS: u64 = 150;

/// A number at one of the borders, or near the last one.
fn number(random: &mut Random, borders: &[u64]) -> u64 {
    let at = borders[random.below(borders.len() as u64) as usize];
    let near = [0, 1, 2, random.below(300)][random.below(4) as usize];
    if random.chance(0.5) { at + near } else { at.saturating_sub(near) }
}

/// A tolerance under which it matters where holes lie, or none.
fn tolerance(random: &mut Random) -> Tolerance {
    let window = [1, 2, 100, 4096, 1 << 20, 1 << 28][random.below(6) as usize];
    let part = |random: &mut Random| random.below(u64::from(window) + 1) as u32;
    let (errors, burst) = (part(random), part(random));
    Tolerance::new(window, errors, burst).unwrap()
}

fn contract(random: &mut Random) -> Contract {
    Contract {
        unit_bytes: [1, 7, 100, 1000][random.below(4) as usize],
        tolerance: tolerance(random),
        interleave: if random.chance(0.5) { InterleaveChoice::Auto } else { InterleaveChoice::Off },
        order: if random.chance(0.5) { Order::InOrder } else { Order::AsAccepted },
        importance: [0, 1, 1 << 20][random.below(3) as usize],
        window_units: [64, 5000, 1 << 28][random.below(3) as usize],
        window_segments: [1, 100, 65_536, 1 << 28][random.below(4) as usize],
        ..Contract::default()
    }
}

/// The attacker of a receiver.
struct Attacker {
    random: Random,
    unit_bytes: Vec<u64>,
    next: u64,
}

impl Attacker {
    fn segment(&mut self) -> SegmentNumber {
        SegmentNumber(number(&mut self.random, &[0, 3, 100, 1024, 65_535, 1 << 20]))
    }

    fn stream(&mut self) -> (StreamId, u64) {
        let stream = self.random.below(u64::from(STREAMS));
        (StreamId(stream as u32), self.unit_bytes[stream as usize])
    }

    fn units(&mut self) -> u64 {
        number(&mut self.random, &[1, 64, 5000, 1 << 14, 1 << 20])
    }

    fn own(&mut self) -> Option<Tolerance> {
        self.random.chance(0.2).then(|| tolerance(&mut self.random))
    }

    fn part(&mut self) -> Part {
        let (stream, unit_bytes) = self.stream();
        let (opened, units) = (self.random.chance(0.2), self.units().max(1));
        let count = 1 + self.random.below(4) as u32;
        Part {
            stream,
            segment: self.segment(),
            first: Position((self.units() as u32).saturating_sub(count)),
            count,
            retransmission: self.random.chance(0.3),
            opened,
            length: (!opened).then_some(units * unit_bytes),
            tolerance: self.own(),
            source_time: Instant::ZERO,
            payload_bytes: count * unit_bytes as u32,
        }
    }

    /// The last shipment of a statement: one that was passed, or will be soon, or late.
    fn last(&mut self) -> ShipmentNumber {
        let early = self.random.below(self.next + 1);
        ShipmentNumber([early, self.next.saturating_sub(1), self.next + 10][self.random.below(3) as usize])
    }

    fn frame(&mut self) -> StateFrame {
        let ((stream, unit_bytes), segment, tolerance) = (self.stream(), self.segment(), self.own());
        let last_shipment = Some(self.last()).filter(|_| self.random.chance(0.8));
        let length = self.units() * unit_bytes;
        let finished =
            Finished { stream, segment, opened: self.random.chance(0.2), length, source_time: Instant::ZERO, tolerance, last_shipment };
        match self.random.below(12) {
            0..5 => StateFrame::Finished(finished),
            5..8 => StateFrame::Skip(finished),
            8 | 9 => {
                let position = Position(self.units() as u32);
                let last_shipment = self.last();
                StateFrame::Reached(Reached { stream, segment, position, source_time: Instant::ZERO, tolerance, last_shipment })
            }
            10 => {
                let class = Class::new(self.random.below(8) as u8).unwrap();
                StateFrame::Reclass { change: self.random.bits() >> 8, class, rate: Bandwidth::from_megabits_per_second(1) }
            }
            _ => StateFrame::Waiting { stream },
        }
    }
}

fn receiver(contracts: &[Contract]) -> RecvHalf {
    let config = ReceiverConfig { unlimited: true, ..receiver_config() };
    let mut half = RecvHalf::new(config, Instant::ZERO);
    for (stream, contract) in contracts.iter().enumerate() {
        half.open(Instant::ZERO, StreamId(stream as u32), contract);
    }
    half
}

/// One turn: within the budget, unless it has handed over a segment, which may have any number of units.
fn turn<T>(seed: u64, half: &mut RecvHalf, work: impl FnOnce(&mut RecvHalf) -> T) -> T {
    let judged = half.counters.segments;
    let (result, steps) = work::counted(|| work(half));
    assert!(steps <= TURN_STEPS || half.counters.segments != judged, "seed {seed}: a turn of {steps} steps");
    result
}

fn attack_receiver(seed: u64) {
    let mut random = Seed(seed).stream("served");
    let contracts: Vec<Contract> = (0..STREAMS).map(|_| contract(&mut random)).collect();
    let (mut half, takes) = (receiver(&contracts), random.chance(0.5));
    let unit_bytes = contracts.iter().map(|contract| u64::from(contract.unit_bytes)).collect();
    let mut attacker = Attacker { random, unit_bytes, next: 0 };
    for datagram in 0..DATAGRAMS {
        let now = Instant::ZERO + Duration::from_micros(100 * datagram);
        attacker.next += 1 + u64::from(attacker.random.chance(0.3)) * attacker.random.below(8);
        let at = ShipmentNumber(attacker.next);
        if attacker.random.chance(0.6) {
            let parts: Vec<Part> = (0..FRAMES).map(|_| attacker.part()).collect();
            turn(seed, &mut half, |half| {
                half.on_shipment(now, at, 1200);
                parts.iter().for_each(|part| _ = half.on_part(now, at, part));
                half.after_shipment(now);
            });
        } else {
            let confirmed =
                Confirmed { highest: attacker.random.chance(0.3).then_some(ReportNumber(datagram)), before: attacker.random.bits() };
            let frames = (0..FRAMES).map(|_| attacker.frame()).collect();
            let state = State { sync: ExchangeNumber(datagram), answer: true, confirmed, frames, ..State::default() };
            turn(seed, &mut half, |half| {
                half.on_shipment(now, at, 1200);
                half.on_state(now, at, &state);
                half.after_shipment(now);
            });
        }
        while turn(seed, &mut half, |half| half.handle_timeout(now)) {}
        while turn(seed, &mut half, |half| half.poll_report(now)).is_some() {}
        for stream in (0..STREAMS).map(StreamId).filter(|_| takes) {
            while let Some(delivery) = half.poll_delivery(stream) {
                half.release(now, stream, delivery.segment);
            }
        }
    }
    let granted = half.granted_bytes();
    assert!(half.kept_bytes() <= granted + (1 << 20), "seed {seed}: {} bytes are kept of {granted}", half.kept_bytes());
}

#[test]
fn no_frames_of_a_served_peer_make_a_receiver_work_or_keep_more_than_they_are_worth() {
    (0..60).for_each(attack_receiver);
}

fn report_frame(random: &mut Random, segments: u64, units: u64) -> ReportFrame {
    let (stream, segment) = (StreamId(0), SegmentNumber(number(random, &[0, segments / 2, segments])));
    let runs = |random: &mut Random| {
        let mut at = random.below(3) as u32;
        let count = random.below(9);
        (0..count)
            .filter_map(|_| {
                at += 2 + random.below(units / 2) as u32;
                Run::single(Position(at - 1))
            })
            .collect::<Runs<Position>>()
    };
    match random.below(3) {
        0 => ReportFrame::Complete { stream, first: segment, count: number(random, &[1, segments, 1 << 40]).max(1) },
        _ => ReportFrame::Request {
            stream,
            segment,
            missing: runs(random),
            tail_from: random.chance(0.5).then(|| Position(random.below(units) as u32)),
            length_wanted: random.chance(0.3),
        },
    }
}

#[test]
fn no_frames_of_a_served_peer_make_a_sender_work_more_than_they_are_worth() {
    for seed in 0..20 {
        let mut random = Seed(seed).stream("served");
        let (segments, units) = if random.chance(0.5) { (1, 16_384) } else { (128, 128) };
        let mut half = crate::work_budget::sender(segments, units);
        let (mut all, mut most) = (0, 4 * segments * units);
        for at in 0..DATAGRAMS {
            let frames = (0..FRAMES).map(|_| report_frame(&mut random, segments, units)).collect();
            // A new echo lets each position be examined once more, when as many shipments have left.
            let report = Report { number: ReportNumber(at), echo: Some(ShipmentNumber(100)), reorder: 3, frames, ..Report::default() };
            let now = Instant::ZERO + Duration::from_secs(1);
            let ((), steps) = work::counted(|| half.handle_report(now, &report));
            assert!(steps <= 2 * TURN_STEPS, "seed {seed}: a turn of {steps} steps");
            (all, most) = (all + steps, most + 2_000);
            assert!(all <= most, "seed {seed}: {all} steps of {most} after {at} reports");
        }
    }
}
