//! Repair units: how late segments of a live source are, and what is sent more, against what a code costs at least.
//!
//! Called through [`super::STUDIES`].
//!
//! - [`bounds`]: the least that a code costs;
//! - [`shown`]: pictures and tables;
//! - [`judged`]: the targets.
//!
//! Invariant: a segment's delay begins when it was due, not when it left; what is sent more is counted in packets, of all runs.

mod bounds;
mod judged;
mod shown;

use crate::black_box::{gilbert, mbit, random, tolerance};
use segstream_base::{Duration, Tolerance};
use segstream_lab::claim::Claim;
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Quantiles;
use segstream_lab::point::PointResult;
use segstream_lab::registry;
use segstream_lab::scenario::Scenario;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::setting::Value;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/coded_repair",
    title: "Repair units: delay and overhead, against what a code costs at least",
    source: "RFC 8867 5.8, RFC 9743 5.1.3; hedged repair and the fence code are ours",
    summary: "A live source has a segment every 26.2 ms, on a path that loses packets in both directions. What is lost is sent again when it \
              is asked for, or answered by repair units, more than were asked for (hedged), or repair units are sent ahead as well (both).\n\n\
              What is sent more stands beside two bounds: p / (1 - p), which no code of any length is below, and the fewest repair units \
              of a perfect code for one segment, which fails once in 200 segments.",
    parameters: &[
        ("path", "100 Mbit/s, a round trip of 60 ms, behind the link losses in both directions, each way by a process of its own"),
        ("source", "segments of 256 units of 1024 bytes, one in a packet of 1054 bytes, due every 26.2 ms (82 % of the link)"),
        ("at 1e-1, reliable", "a segment every 30 ms (72 %): with 17 % of repair units more than that does not fit"),
        ("tolerances", "reliable, and (256,32,3)"),
        ("rate", "fixed, the bandwidth; segments are delivered as accepted"),
        ("both", "auto with a budget of 10 % and a latency of half the round trip and 50 ms: 60 ms at 20, 80 at 60, 150 at 200 ms"),
        ("delay", "from when a segment was due to acceptance, without those of the first two seconds; the median over the runs"),
        ("floor", "half a round trip, and 256 packets at the bandwidth: 51.6 ms at a round trip of 60"),
        ("perfect code", "any 256 of 256 + r units restore the segment; r the least with which more than r are lost once in 200 at most"),
        ("run length", "a third of the preset's packets"),
    ],
    points,
    // Why: there are more than seventy points.
    shortened: 3,
    figures: shown::figures,
    tables: shown::tables,
    claims: &[
        Claim {
            id: "SG-T25",
            text: "With both, the 99th percentile is within 6 ms of the floor: reliable up to 1e-2, (256,32,3) up to 1e-1.",
            check: judged::both_is_at_the_floor,
        },
        Claim {
            id: "SG-T26",
            text: "Hedged, a third round is rare: the 99th percentile of reliable segments is within a round trip and 12 ms of the floor, \
                   from 1e-3 to 1e-1.",
            check: judged::third_rounds_are_rare,
        },
        Claim {
            id: "SG-T27",
            text: "Where it codes ahead, both sends no more than a perfect code for a segment at a loss two standard deviations above the true \
                   one (of the units of a second).",
            check: judged::costs_no_more_than_a_perfect_code,
        },
        Claim {
            id: "SG-T28",
            text: "Protecting only what can break (256,32,3), both sends at 1e-1 at most half of what a perfect code for all units needs.",
            check: judged::the_fence_is_cheap,
        },
        Claim {
            id: "SG-T29",
            text: "Without loss not a packet more is sent, and no segment is later.",
            check: judged::nothing_without_loss,
        },
        Claim {
            id: "SG-T30",
            text: "In bursts at 1e-2, of 2 to 16 in the mean, both keeps the 95th percentile of reliable segments within 6 ms of the floor, and \
                   the 99th within a round trip and 12 ms.",
            check: judged::bursts_are_repaired,
        },
        Claim {
            id: "SG-T31",
            text: "So near the floor are reliable segments at 1e-2 with round trips of 20, 60 and 200 ms.",
            check: judged::at_every_round_trip,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const UNITS: u32 = 256;
/// A packet of one unit of 1024 bytes.
const PACKET_BYTES: u32 = 1054;
/// A segment every 26.2 ms, in units a second.
const OFFERED: u32 = 9771;
/// A segment every 30 ms.
const OFFERED_LESS: u32 = 8533;
const RTT_MS: u64 = 60;
const RTTS_MS: [u64; 3] = [20, 60, 200];
const RATES: [f64; 5] = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
/// Where the mean length of bursts and the round trip are varied.
const RATE: f64 = 1e-2;
/// Loss is random at 1.
const BURSTS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];

/// What must arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Reliable,
    Partial,
}

impl Promise {
    const ALL: [Self; 2] = [Self::Reliable, Self::Partial];

    const fn name(self) -> &'static str {
        match self {
            Self::Reliable => "reliable",
            Self::Partial => "(256,32,3)",
        }
    }

    /// Units a second that are due at `rate`.
    fn offered(self, rate: f64) -> u32 {
        if self == Self::Reliable && rate >= 1e-1 { OFFERED_LESS } else { OFFERED }
    }

    fn tolerance(self) -> Tolerance {
        match self {
            Self::Reliable => Tolerance::reliable(UNITS),
            Self::Partial => tolerance(32, 3),
        }
    }
}

/// What is done with repair units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    None,
    Hedged,
    /// With this budget in per cent.
    Both(u32),
}

impl Coding {
    const BOTH: Self = Self::Both(10);
    /// What reliable segments at 1e-1 need.
    const BOTH_MORE: Self = Self::Both(20);
    const ALL: [Self; 3] = [Self::None, Self::Hedged, Self::BOTH];

    /// Both, with the budget that reliable segments need at `rate`.
    const fn both_at(rate: f64) -> Self {
        if rate < 1e-1 { Self::BOTH } else { Self::BOTH_MORE }
    }

    fn name(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Hedged => "hedged".to_owned(),
            Self::BOTH => "both".to_owned(),
            Self::Both(budget) => format!("both, {budget} %"),
        }
    }

    /// The setting of the scheme.
    fn setting(self, rtt_ms: u64) -> Value {
        match self {
            Self::None => Value::None,
            Self::Hedged => Value::Word("hedged".to_owned()),
            Self::Both(budget) => Value::Word(format!("auto:latency={}ms,budget={budget}%", rtt_ms / 2 + 50)),
        }
    }
}

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Loss,
    Burst,
    RoundTrip,
}

impl Over {
    fn curve(self, promise: Promise, coding: Coding) -> String {
        let over = match self {
            Self::Loss => "loss",
            Self::Burst => "burst",
            Self::RoundTrip => "round trip",
        };
        format!("{over}: {}, {}", promise.name(), coding.name())
    }
}

/// A live source over a path.
///
/// # Panics
/// When the scheme is not in the registry or has no such setting: a fault of the study.
fn scenario(promise: Promise, coding: Coding, loss: &LossSpec, rtt_ms: u64) -> Scenario {
    let mut scenario = Scenario::default().with(|it| {
        it.scheme = registry::find("segstream").expect("a study's scheme is in the registry").config();
        it.black_box.bandwidth = mbit(100);
        it.black_box.rtt = Duration::from_millis(rtt_ms);
        it.black_box.loss = loss.clone();
        it.black_box.loss_back = loss.clone();
        it.workload.packet_bytes = PACKET_BYTES;
        it.workload.segment_packets = UNITS;
        it.workload.tolerance = promise.tolerance();
        it.workload.offered = Some(promise.offered(loss.mean()));
    });
    scenario.set("coding", &coding.setting(rtt_ms)).expect("a study's scheme has its settings");
    scenario
}

fn in_bursts(burst: f64) -> LossSpec {
    if burst > 1.0 { gilbert(RATE, burst) } else { random(RATE) }
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    let mut point = |over: Over, promise, coding, x: f64, loss: &LossSpec, rtt_ms| {
        let curve = over.curve(promise, coding);
        points.push(StudyPoint { curve, x, scenario: scenario(promise, coding, loss, rtt_ms) });
    };
    for promise in Promise::ALL {
        for coding in Coding::ALL {
            point(Over::Loss, promise, coding, 0.0, &LossSpec::None, RTT_MS);
            for rate in RATES {
                point(Over::Loss, promise, coding, rate, &random(rate), RTT_MS);
            }
            for burst in BURSTS {
                point(Over::Burst, promise, coding, burst, &in_bursts(burst), RTT_MS);
            }
            for rtt_ms in RTTS_MS {
                point(Over::RoundTrip, promise, coding, rtt_ms as f64, &random(RATE), rtt_ms);
            }
        }
    }
    point(Over::Loss, Promise::Reliable, Coding::BOTH_MORE, 1e-1, &random(1e-1), RTT_MS);
    points
}

/// The delay of a segment when nothing is lost and nothing waits, in milliseconds.
fn floor_ms(rtt_ms: f64) -> f64 {
    let segment_ms = f64::from(UNITS * PACKET_BYTES) * 8.0 / 100e6 * 1e3;
    rtt_ms / 2.0 + segment_ms
}

/// Packets that were sent beyond one for each unit, in per cent of the units.
fn sent_more(result: &PointResult) -> f64 {
    let units = result.total(|outcome| outcome.segments_delivered) * u64::from(UNITS);
    100.0 * (result.total(|outcome| outcome.packets_sent) as f64 / units as f64 - 1.0)
}

const P50: fn(&Quantiles) -> u64 = |delays| delays.median_ns;
const P95: fn(&Quantiles) -> u64 = |delays| delays.p95_ns;
const P99: fn(&Quantiles) -> u64 = |delays| delays.p99_ns;

fn ms(result: &PointResult, quantile: fn(&Quantiles) -> u64) -> f64 {
    result.delay_ms_from_due(quantile).mean
}

/// A number with its sign and so many decimals; what rounds to nothing has a plus.
fn signed(value: f64, decimals: i32) -> String {
    let scale = 10f64.powi(decimals);
    let rounded = (value * scale).round() / scale + 0.0;
    format!("{rounded:+.0$}", decimals as usize)
}

/// The result of a point.
fn at(points: &Measured, over: Over, promise: Promise, coding: Coding, x: f64) -> Option<&PointResult> {
    points.at(&over.curve(promise, coding), x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_lab::scenario::segment_bytes;

    #[test]
    fn a_packet_has_one_unit_of_1024_bytes_and_segments_are_due_every_26_2_ms() {
        let scenario = scenario(Promise::Reliable, Coding::BOTH, &random(RATE), RTT_MS);
        assert_eq!(segment_bytes(&scenario), 256 * 1024);
        assert!(scenario.canonical().contains("auto:latency=80000us,budget=10%"), "{}", scenario.canonical());
        assert!((f64::from(UNITS) / f64::from(OFFERED) - 26.2e-3).abs() < 1e-6);
        assert!((f64::from(UNITS) / f64::from(OFFERED_LESS) - 30e-3).abs() < 2e-6);
    }
}
