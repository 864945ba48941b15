//! What an application does with one side of a connection: streams, segments, when and how it ends.
//!
//! Drawn when the side appears, from the seed of the run and the number of the side. Carried out by [`crate::side`].
//!
//! Invariant: a side sends little, at most 150 kB, and the less the smaller its windows are, so that a run takes
//! milliseconds.

use crate::draw::{between, millis, one_of};
use crate::plan;
use crate::task::Act;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Tolerance};
use segstream_proto::config::DATAGRAM_BYTES_MIN;
use segstream_proto::connection::Role;
use segstream_proto::rate::Rate;
use segstream_wire::Class;
use segstream_wire::contract::{Contract, InterleaveChoice, Order, SEGMENT_UNITS_MAX};

/// Bytes a side sends, at most.
const SIDE_BYTES_MAX: u64 = 150_000;
/// Units a stream sends, at most.
const STREAM_UNITS_MAX: u64 = 300;

/// A segment to send.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPlan {
    /// Its bytes: one number for a whole segment, what is appended step by step for an opened one.
    pub(crate) pieces: Vec<u64>,
    pub(crate) opened: bool,
    /// A tolerance of its own.
    pub(crate) own: Option<Tolerance>,
}

/// A stream to open.
#[derive(Clone, Debug)]
pub(crate) struct StreamPlan {
    pub(crate) contract: Contract,
    pub(crate) segments: Vec<SegmentPlan>,
    /// How long the application waits between two things it hands over.
    pub(crate) gap: Duration,
    /// Opened so long after the connection was established; `None`: at once, with the request if we ask.
    pub(crate) later: Option<Duration>,
    /// Whether it is finished when everything is handed over; otherwise with the connection.
    pub(crate) finishes: bool,
}

/// When and how the application ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Gracefully, so long after everything was handed over.
    WhenDone(Duration),
    /// So long after its beginning, whatever there is.
    After(Duration, Act),
    /// It waits for its peer.
    Never,
}

/// Another class and rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) after: Duration,
    pub(crate) class: Class,
    pub(crate) rate: Rate,
}

/// What an application does with a side.
#[derive(Clone, Debug)]
pub(crate) struct SidePlan {
    pub(crate) streams: Vec<StreamPlan>,
    pub(crate) ending: Ending,
    /// Another class and rate that are asked for, so long after the connection was established.
    pub(crate) change: Option<Change>,
}

impl SidePlan {
    /// The plan of side `number`.
    pub(crate) fn draw(seed: Seed, number: u32, role: Role, peaceful: bool) -> Self {
        let mut random = seed.stream(&format!("side.{number}"));
        let most = if role == Role::Initiator { 4 } else { 2 };
        let least = u64::from(role == Role::Initiator);
        let mut bytes = between(&mut random, 1000, SIDE_BYTES_MAX);
        let streams = (0..between(&mut random, least, most)).map(|_| stream(&mut random, &mut bytes)).collect();
        let ending = ending(&mut random, role, peaceful);
        let (changes, after) = (random.chance(0.15), millis(&mut random, 1, 1000));
        let class = one_of(&mut random, &[7, 7, 6, 5, 3, 2, 1]);
        let class = Class::new(class).unwrap_or_default();
        let rate = plan::rate(&mut random, class, DATAGRAM_BYTES_MIN, peaceful);
        let change = (changes && !peaceful).then_some(Change { after, class, rate });
        Self { streams, ending, change }
    }
}

fn ending(random: &mut Random, role: Role, peaceful: bool) -> Ending {
    let (choice, linger, after) = (random.below(20), millis(random, 1, 2000), millis(random, 1, 3000));
    let linger = if random.chance(0.6) { Duration::ZERO } else { linger };
    match (role, choice) {
        (_, 0 | 1) if !peaceful => Ending::After(after, Act::Close),
        (_, 2 | 3) if !peaceful => Ending::After(after, Act::Abort),
        // One side must end the connection: the initiator.
        (Role::Initiator, _) | (Role::Responder, 4..=8) => Ending::WhenDone(linger),
        (Role::Responder, _) => Ending::Never,
    }
}

fn stream(random: &mut Random, bytes: &mut u64) -> StreamPlan {
    let contract = contract(random);
    let opens = one_of(random, &[0.0, 0.0, 0.0, 0.3, 1.0]);
    let owns = one_of(random, &[0.0, 0.0, 0.3]);
    let size = random.below(5);
    let window = u64::from(contract.window_units);
    // A small window takes many round trips.
    let mut units = STREAM_UNITS_MAX.min(window * 12);
    let most = 60.min(u64::from(contract.window_segments) * 12);
    let count = between(random, 0, most);
    let mut segments = Vec::new();
    for _ in 0..count {
        let segment = segment(random, &contract, size, (opens, owns));
        let length: u64 = segment.pieces.iter().sum();
        if length > *bytes || contract.units_of(length) > units.max(window + 1) {
            continue;
        }
        *bytes -= length;
        units = units.saturating_sub(contract.units_of(length));
        segments.push(segment);
    }
    let gap = millis(random, 1, 60);
    let (hurries, late, after) = (random.chance(0.6), random.chance(0.2), millis(random, 1, 300));
    StreamPlan {
        contract,
        segments,
        gap: if hurries { Duration::ZERO } else { gap },
        later: late.then_some(after),
        finishes: random.chance(0.5),
    }
}

fn segment(random: &mut Random, contract: &Contract, size: u64, (opens, owns): (f64, f64)) -> SegmentPlan {
    let (window, unit) = (u64::from(contract.window_units), u64::from(contract.unit_bytes));
    let units = match size {
        0 => 1,
        1 => between(random, 1, 4),
        2 => between(random, 1, 40.min(window)),
        3 => between(random, 1, 120.min(window)),
        // Some are longer than the window.
        _ => one_of(random, &[1, 3, window.min(80), window.min(80), (window + 1).min(80)]),
    };
    let bytes = (units * unit - random.below(unit)).saturating_sub(u64::from(random.chance(0.1)) * units * unit);
    let opened = random.chance(opens);
    let own = tolerance(random);
    let own = random.chance(owns).then_some(own);
    let mut pieces = vec![bytes];
    if opened {
        for _ in 0..random.below(5) {
            let rest = pieces.pop().unwrap_or(0);
            let piece = random.below(rest + 1);
            pieces.extend([piece, rest - piece]);
        }
    }
    SegmentPlan { pieces, opened, own }
}

fn contract(random: &mut Random) -> Contract {
    let window = |random: &mut Random| {
        let sizes = [between(random, 1, 4), between(random, 5, 40), between(random, 50, 400), 16 * 1024];
        one_of(random, &[sizes[0], sizes[1], sizes[2], sizes[2], sizes[3], sizes[3]]) as u32
    };
    let depth = between(random, 1, 40) as u32;
    let lifetime = millis(random, 10, 2000);
    Contract {
        unit_bytes: one_of(random, &[1120, 1024, 1024, 1000, 500, 200, 37, 1]),
        tolerance: tolerance(random),
        importance: one_of(random, &[0, 0, 0, 1, 3]),
        order: one_of(random, &[Order::InOrder, Order::AsAccepted]),
        lifetime: if random.chance(0.25) { lifetime } else { Duration::ZERO }.into(),
        interleave: one_of(
            random,
            &[InterleaveChoice::Auto, InterleaveChoice::Auto, InterleaveChoice::Off, InterleaveChoice::Depth(depth)],
        ),
        window_units: window(random),
        window_segments: window(random),
        weight: between(random, 1, 6) as u8,
        label: String::new(),
    }
}

/// Reliable, anything goes, or something between.
fn tolerance(random: &mut Random) -> Tolerance {
    let kind = random.below(8);
    let window = between(random, 1, 64);
    let (errors, burst) = (random.below(window.min(20) + 1) as u32, random.below(window.min(8) + 1) as u32);
    match kind {
        0 | 1 => Tolerance::reliable(SEGMENT_UNITS_MAX),
        2 => Tolerance::any(1),
        _ => Tolerance::new(window as u32, errors, burst).unwrap(),
    }
}
