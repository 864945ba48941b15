//! The paths of a run: any mixture of what [`segstream_path`] can do to a datagram.
//!
//! Called by the plan. Invariant: every path carries something: no loss is above a third for long, no bandwidth is
//! below 300 kbit/s, so that with a fair chance every transfer ends.

use crate::draw::{between, millis, one_of, span};
use crate::plan::magnitude;
use segstream_base::random::Random;
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_path::{Dwell, LossPlace, LossSpec, PathConfig, Probability, QueueLimit, ReorderSpec};

/// One direction; a good one when `mild`.
pub(crate) fn draw(random: &mut Random, mild: bool) -> PathConfig {
    let delay = span(random, Duration::from_micros(100), Duration::from_millis(if mild { 60 } else { 200 }));
    let bandwidth = magnitude(random, if mild { 10_000_000 } else { 300_000 }, 200_000_000);
    let (unlimited, short) = (random.chance(0.2), between(random, 3, 100));
    let long = QueueLimit::Bytes(PathConfig::QUEUE_MIN.max(Bytes::new(bandwidth / 80)));
    let jitter = one_of(random, &[Duration::ZERO, Duration::ZERO, delay / 8, delay]);
    PathConfig {
        bandwidth: (!unlimited).then_some(Bandwidth::from_bits_per_second(bandwidth)),
        // Nothing waits where the bandwidth is unlimited.
        mark_above: (random.chance(0.2) && !unlimited).then_some(Duration::from_millis(5)),
        queue: if random.chance(0.5) || mild { long } else { QueueLimit::Packets(short) },
        delay,
        jitter: jitter.into(),
        loss: loss(random, mild),
        loss_at: one_of(random, &[LossPlace::Before, LossPlace::After]),
        reorder: reorder(random),
        duplicate: rarely(random, 0.1),
        corrupt: rarely(random, if mild { 0.01 } else { 0.05 }),
        ..PathConfig::default()
    }
}

/// Mostly never, else with a chance up to `most`.
fn rarely(random: &mut Random, most: f64) -> Probability {
    let (happens, chance) = (random.chance(0.25), random.unit());
    probability(if happens { chance * most } else { 0.0 })
}

fn probability(chance: f64) -> Probability {
    Probability::new(chance).unwrap_or(Probability::ZERO)
}

fn loss(random: &mut Random, mild: bool) -> LossSpec {
    let (kind, how_much, square) = (random.below(6), random.unit(), random.unit());
    let dwell = one_of(random, &[Dwell::Exponential, Dwell::Deterministic]);
    let (good, bad) = (millis(random, 20, 1000), millis(random, 2, 200));
    let share = probability(how_much * square * if mild { 0.03 } else { 0.33 });
    match kind {
        0 | 1 => LossSpec::None,
        2 | 3 => LossSpec::Random(share),
        // Runs clocked by packets can take every repetition of a request, however rare they are.
        4 if mild => LossSpec::Random(share),
        4 => LossSpec::Gilbert { rate: probability(share.get() + 0.001), burst: 1.0 + how_much * 5.0 },
        _ if mild => LossSpec::Bursty { good: good.max(bad * 8), bad: bad / 4, loss: probability(how_much), dwell },
        _ => LossSpec::Bursty { good: good.max(bad * 2), bad, loss: probability(how_much), dwell },
    }
}

fn reorder(random: &mut Random) -> ReorderSpec {
    let (kind, share) = (random.below(8), probability(random.unit() * 0.05));
    let (delay, distance) = (millis(random, 1, 50), between(random, 1, 12) as u32);
    match kind {
        0 => ReorderSpec::Delay { share, delay },
        1 => ReorderSpec::Distance { share, distance },
        _ => ReorderSpec::None,
    }
}
