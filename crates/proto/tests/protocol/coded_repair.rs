//! Hedged repair: a request is answered by repair units, more than it asks for where the path loses much.

use crate::bottleneck::{Source, Transfer, ms};
use crate::network::Network;
use segstream_base::{Bandwidth, Duration, StreamId, Tolerance};
use segstream_path::config::{LossPlace, PathConfig};
use segstream_proto::config::Config;
use segstream_proto::rate::Rate;
use segstream_proto::sender::CodingTarget;
use segstream_wire::Contract;
use segstream_wire::contract::Order;

/// Segments of 256 KiB in units of 1 KiB.
const SEGMENT_BYTES: u64 = 256 << 10;

/// Segments at the beginning that are not measured.
const WARM_UP: u64 = 20;

/// The path of the tables: 100 Mbit/s, a round trip of 60 ms, losses before the bottleneck, in both directions.
fn way(loss: &str, round_trip: u64) -> PathConfig {
    PathConfig {
        bandwidth: Some(Bandwidth::from_megabits_per_second(100)),
        delay: ms(round_trip / 2),
        loss: loss.parse().unwrap(),
        loss_at: LossPlace::Before,
        ..PathConfig::default()
    }
}

/// A live source over it.
#[derive(Clone, Copy)]
struct Live {
    loss: &'static str,
    /// What is lost on the way back, if not the same.
    back: Option<&'static str>,
    round_trip: u64,
    period: Duration,
    tolerance: Tolerance,
    hedged: bool,
    ahead: Option<CodingTarget>,
}

/// What came of it.
#[derive(Debug)]
struct Outcome {
    latencies: Vec<Duration>,
    repair_units: u64,
    again: u64,
    restored: u64,
    units: u64,
    bytes: u64,
}

impl Outcome {
    fn quantile(&self, share: f64) -> f64 {
        let at = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies[at.saturating_sub(1)].as_millis_f64()
    }

    /// Repair units and retransmissions, as a share of the units.
    fn overhead(&self) -> f64 {
        (self.repair_units + self.again) as f64 / self.units as f64
    }
}

impl Live {
    const RELIABLE: Self = Self {
        loss: "1e-2",
        back: None,
        round_trip: 60,
        period: Duration::from_micros(26_200),
        tolerance: Tolerance::reliable(256),
        hedged: true,
        ahead: None,
    };

    fn run(&self, segments: u64, seed: u64) -> Outcome {
        let contract = Contract { tolerance: self.tolerance, order: Order::AsAccepted, ..Contract::default() };
        let (forward, back) = (way(self.loss, self.round_trip), way(self.back.unwrap_or(self.loss), self.round_trip));
        let rate = Rate::smooth(Bandwidth::from_megabits_per_second(97));
        let mut transfer = Transfer::between(rate, (&forward, &back), Source::Every(self.period), SEGMENT_BYTES, &contract, seed);
        if self.hedged {
            transfer.sender.half.set_coding();
            transfer.receiver.half.set_coding();
            transfer.sender.half.set_coding_target(StreamId(0), self.ahead);
        }
        let end = transfer.now + Duration::from_nanos(self.period.as_nanos() * segments);
        transfer.run_to(end);
        assert!(transfer.finish_by(end + ms(20_000)), "not everything is judged");
        let (sent, received) = (transfer.sender.half.counters, transfer.receiver.half.counters);
        // Halves without a connection wait a round trip for the first grant, and then catch up.
        let settled = transfer.delivered.iter().filter(|(segment, _)| segment.0 >= self.warm_up());
        let mut latencies: Vec<Duration> = settled.map(|(_, latency)| *latency).collect();
        latencies.sort_unstable();
        Outcome {
            units: transfer.delivered.len() as u64 * 256,
            latencies,
            repair_units: sent.repair_units_sent,
            again: sent.units_retransmitted,
            restored: received.units_restored,
            bytes: transfer.sent(),
        }
    }

    /// The first segments, which wait for the first grant and then for each other: at least 20, and those of nine round trips.
    fn warm_up(&self) -> u64 {
        (ms(9 * self.round_trip).as_nanos() / self.period.as_nanos()).max(WARM_UP)
    }

    /// Five seeds together.
    fn pooled(&self, segments: u64) -> Outcome {
        let mut all = self.run(segments, 1);
        for seed in 2..=5 {
            let one = self.run(segments, seed);
            all.latencies.extend(one.latencies);
            all.repair_units += one.repair_units;
            all.again += one.again;
            all.restored += one.restored;
            all.units += one.units;
        }
        all.latencies.sort_unstable();
        all
    }
}

#[test]
fn a_third_round_becomes_rare() {
    let plain = Live { hedged: false, ..Live::RELIABLE }.run(300, 1);
    let hedged = Live::RELIABLE.run(300, 1);
    // The floor is 52 ms, a round takes 60 more, and a second one another 60.
    assert!(plain.quantile(0.99) > 140.0, "{}", plain.quantile(0.99));
    assert!(hedged.quantile(0.99) < 125.0, "{}", hedged.quantile(0.99));
    assert!(hedged.overhead() - plain.overhead() < 0.012, "{} after {}", hedged.overhead(), plain.overhead());
    assert!(hedged.restored > 500 && plain.restored == 0);
}

#[test]
fn without_loss_not_a_byte_more_is_sent() {
    let lossless = Live { loss: "none", ..Live::RELIABLE };
    let (plain, hedged) = (Live { hedged: false, ..lossless }.run(100, 1), lossless.run(100, 1));
    assert_eq!((plain.bytes, plain.latencies), (hedged.bytes, hedged.latencies));
}

/// What coding ahead may cost in these tests.
const TARGET: CodingTarget = CodingTarget { latency: Duration::from_millis(80), budget_permille: 100 };

#[test]
fn what_is_coded_ahead_saves_the_round_trip() {
    let ahead = Live { ahead: Some(TARGET), ..Live::RELIABLE }.run(300, 1);
    assert!(ahead.quantile(0.95) < 58.0, "{}", ahead.quantile(0.95));
    assert!(ahead.overhead() < 0.045, "{}", ahead.overhead());
}

#[test]
fn the_fence_keeps_a_partial_promise_without_a_round_trip() {
    let tolerance = Tolerance::new(256, 32, 3).unwrap();
    let plain = Live { loss: "1e-1", tolerance, hedged: false, ..Live::RELIABLE }.run(300, 1);
    let ahead = Live { loss: "1e-1", tolerance, ahead: Some(TARGET), ..Live::RELIABLE }.run(300, 1);
    assert!(plain.quantile(0.99) > 100.0, "{}", plain.quantile(0.99));
    assert!(ahead.quantile(0.95) < 58.0 && ahead.overhead() < 0.075, "{} at {}", ahead.quantile(0.95), ahead.overhead());
}

#[test]
fn nothing_is_coded_ahead_where_a_round_trip_keeps_the_latency() {
    let slow = CodingTarget { latency: ms(130), ..TARGET };
    let (late, hedged) = (Live { ahead: Some(slow), ..Live::RELIABLE }.run(100, 1), Live::RELIABLE.run(100, 1));
    assert_eq!((late.repair_units, late.latencies), (hedged.repair_units, hedged.latencies));
}

/// A bulk transfer has a backlog: nobody waits for a segment but the data behind it.
#[test]
fn in_bulk_goodput_is_not_lower() {
    for loss in ["1e-3", "1e-2", "gilbert:rate=1%,burst=8"] {
        let judged = |hedged| {
            let (forward, back) = (way(loss, 60), way("none", 60));
            let rate = Rate::smooth(Bandwidth::from_megabits_per_second(97));
            let mut transfer = Transfer::between(rate, (&forward, &back), Source::Greedy, SEGMENT_BYTES, &Contract::default(), 3);
            if hedged {
                transfer.sender.half.set_coding();
                transfer.receiver.half.set_coding();
            }
            transfer.run_to(crate::bottleneck::at_ms(5000));
            transfer.judged as f64
        };
        let (plain, hedged) = (judged(false), judged(true));
        assert!(hedged >= 0.995 * plain, "{loss}: {hedged} after {plain}");
    }
}

/// The rows of the measurement: what is lost, the round trip, the period of segments, the tolerance, and what coding may cost in thousandths.
fn rows() -> Vec<(Live, u16)> {
    let partial = Tolerance::new(256, 32, 3).unwrap();
    let mut rows = Vec::new();
    for round_trip in [60, 20, 200] {
        for loss in ["1e-3", "1e-2", "1e-1", "gilbert:rate=1%,burst=8"] {
            for tolerance in [Tolerance::reliable(256), partial] {
                let heavy = loss == "1e-1" && tolerance.is_reliable();
                let period = if heavy { Duration::from_micros(30_000) } else { Live::RELIABLE.period };
                rows.push((Live { loss, round_trip, tolerance, period, ..Live::RELIABLE }, if heavy { 200 } else { 100 }));
            }
        }
    }
    rows
}

/// Prints the quantiles on the path of the tables: plain, hedged, ahead alone, both. It takes many minutes. `CELL` chooses a loss, `RTT` a
/// round trip in milliseconds, `BACK` a loss on the way back instead of the same, `SEGMENTS` how many of each of five seeds, 800 if it is not set.
#[test]
#[ignore = "a measurement"]
fn measure() {
    let set = |name: &str| std::env::var(name).ok();
    let back = set("BACK").map(|text| &*text.leak());
    let segments = set("SEGMENTS").and_then(|text| text.parse().ok()).unwrap_or(800);
    eprintln!(
        "| loss | round trip | tolerance | repair units | p50 | p95 | p99 | most | sent again | repair units, % | beyond exact repair, % |"
    );
    for (row, budget_permille) in rows() {
        if set("CELL").is_some_and(|cell| cell != row.loss) || set("RTT").is_some_and(|rtt| rtt != row.round_trip.to_string()) {
            continue;
        }
        let latency = ms(row.round_trip / 2 + 50);
        let target = Some(CodingTarget { latency, budget_permille });
        let mut exact = 0.0;
        for (name, hedged, ahead) in [("none", false, None), ("hedged", true, None), ("both", true, target)] {
            let outcome = Live { hedged, ahead, back, ..row }.pooled(segments);
            let share = |units: u64| units as f64 * 100.0 / outcome.units as f64;
            if name == "none" {
                exact = share(outcome.again);
            }
            eprintln!(
                "| {} | {} | {} | {name} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} |",
                row.loss,
                row.round_trip,
                row.tolerance,
                outcome.quantile(0.5),
                outcome.quantile(0.95),
                outcome.quantile(0.99),
                outcome.quantile(1.0),
                share(outcome.again),
                share(outcome.repair_units),
                outcome.overhead() * 100.0 - exact,
            );
        }
    }
}

/// Bytes that are not those of any other place.
fn pattern(segment: usize, length: usize) -> bytes::Bytes {
    (0..length).map(|at| (at.wrapping_mul(31) ^ (at >> 8).wrapping_mul(7) ^ segment.wrapping_mul(131)) as u8).collect::<Vec<u8>>().into()
}

/// Whole connections with bytes: what repair units restore is what was sent. Units of an odd size, a short last one, and a partial tolerance
/// with important units; the tolerance of the second stream lets B be broken only.
#[test]
fn restored_bytes_are_those_that_were_sent() {
    let rate = Bandwidth::from_megabits_per_second(20);
    let listening = Config { accept: true, ..Config::default().with_rate(rate) };
    let mut network = Network::new(Config::default().with_rate(rate), listening, ms(30));
    let reliable = Contract { unit_bytes: 1001, order: Order::AsAccepted, ..Contract::default() };
    let partial = Contract { tolerance: Tolerance::new(64, 30, 1).unwrap(), importance: 5, ..reliable.clone() };
    let id = network.connect(vec![reliable, partial]);
    network.run_until(ms(300));
    (network.loss, network.loss_back) = (0.1, Some(0.1));
    let lengths = [100_003, 64_064, 9, 1001, 50_000];
    for round in 0..12 {
        for stream in 0..2 {
            let segment = round * 2 + stream;
            let bytes = pattern(segment, lengths[segment % lengths.len()]);
            let now = network.now();
            network.a_mut().connection_mut(id).unwrap().send(now, StreamId(stream as u32), bytes, now, None).unwrap();
        }
        network.run_until(ms(300 + 120 * (round as u64 + 1)));
    }
    network.run_until(ms(6000));
    let sent = *network.a().connection(id).unwrap().sender_counters();
    assert!(sent.repair_units_sent > 20, "{sent:?}");
    assert_eq!(network.received.len(), 24);
    for received in &network.received {
        let segment = received.segment.0 as usize * 2 + received.stream.0 as usize;
        let sent = pattern(segment, lengths[segment % lengths.len()]);
        assert_eq!(received.bytes.len(), sent.len());
        let holes: Vec<core::ops::Range<usize>> =
            received.holes.iter().map(|hole| hole.start().0 as usize * 1001..hole.end().0 as usize * 1001).collect();
        let same = received
            .bytes
            .iter()
            .zip(&sent)
            .enumerate()
            .all(|(at, (got, sent))| got == sent || holes.iter().any(|hole| hole.contains(&at)));
        assert!(same, "segment {segment} with {:?}", received.holes);
        assert!(received.stream == StreamId(1) || holes.is_empty());
    }
}
