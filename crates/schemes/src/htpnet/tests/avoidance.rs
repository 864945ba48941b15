//! Congestion avoidance at a bottleneck of 4000 packets/s with 64 buffers and a round trip of 20 ms (HT Fig 12).

use super::link::{Bottleneck, Link, packets};
use crate::htpnet::{Class, Config, Ptif, Ranges, SyncPeriod};
use segstream_base::{Duration, Instant};

/// Packets a second that the bottleneck serves.
const MU: f64 = 4000.0;
/// Periods of the exchange in microseconds.
const PERIODS_US: [u64; 3] = [2_500, 5_000, 10_000];

/// What is delivered at `load`, both in parts of what the bottleneck serves; after a second, over eight.
fn throughput(law: Ptif, period_us: u64, load: f64) -> f64 {
    let config = Config {
        sync_period: SyncPeriod::Fixed(Duration::from_micros(period_us)),
        gap: Some(Duration::from_secs_f64(1.0 / (MU * load))),
        ptif: law,
        // The values below are those of four pairs, as HT Table 2 draws RANGE.
        ranges: Ranges::Four,
        window: 2048,
        class: Class::new(5).unwrap(),
        ..Config::default()
    };
    let mut link = Link::new(&config, packets(&config, 100_000));
    link.cost = Duration::ZERO;
    link.bottleneck = Some(Bottleneck { bits_per_second: 4000 * 2048 * 8, packets: 64 });
    let second = Duration::from_secs(1);
    link.run(Instant::ZERO + second);
    let before = link.delivered.len();
    link.run(Instant::ZERO + second * 9);
    assert_eq!(link.receiver.duplicates(), 0, "a full queue loses packets and makes none look lost");
    (link.delivered.len() - before) as f64 / 8.0 / MU
}

#[test]
fn without_avoidance_throughput_is_linear_up_to_saturation_and_collapses_beyond() {
    for period in PERIODS_US {
        for load in [0.3, 0.6, 0.9] {
            let delivered = throughput(Ptif::Off, period, load);
            assert!((delivered - load).abs() < 0.01, "{period} {load}: {delivered}");
        }
        let delivered = throughput(Ptif::Off, period, 2.0);
        assert!(delivered < 0.3, "{period}: {delivered}");
    }
}

#[test]
fn the_held_law_keeps_nine_tenths_of_the_peak_at_any_overload() {
    for period in PERIODS_US {
        assert!(throughput(Ptif::Held, period, 0.9) > 0.89);
        for load in [1.2, 1.5, 2.0] {
            let delivered = throughput(Ptif::Held, period, load);
            assert!(delivered >= 0.9, "{period} {load}: {delivered}");
        }
    }
}

#[test]
fn the_literal_law_does_not() {
    // The values are those of the README.
    for (period, expected) in PERIODS_US.into_iter().zip([0.62, 0.82, 0.14]) {
        let delivered = throughput(Ptif::Literal, period, 2.0);
        assert!((delivered - expected).abs() < 0.02, "{period}: {delivered}");
    }
}
