//! The values that the papers' figures rest on, with ideal feedback and short runs.

use super::driver::{Fate, HALF_TRIP, Net, Outcome, Way};
use super::*;
use segstream_base::Duration;
use segstream_base::random::Seed;

/// A run of `segments` under random loss of data packets.
fn random_loss(config: Config, p: f64, segments: u64) -> Outcome {
    let mut random = Seed(1).stream("loss");
    let fate = move |_, way: &Way| -> Fate {
        let lost = matches!(way, Way::There(Forward::Data(_))) && random.chance(p);
        (!lost).then_some(Duration::ZERO)
    };
    let mut net = Net::new(config, segments, fate);
    net.run(Duration::from_secs(3600));
    net.outcome
}

/// A run in which one packet of segment 5 is lost once.
fn one_loss(config: Config, segments: u64) -> Outcome {
    let mut lost = false;
    let fate = move |_, way: &Way| -> Fate {
        let hit = !lost && matches!(way, Way::There(Forward::Data(data)) if data.segment == 5 && data.packet == 100);
        lost |= hit;
        (!hit).then_some(Duration::ZERO)
    };
    let mut net = Net::new(config, segments, fate);
    net.run(Duration::from_secs(3600));
    net.outcome
}

fn near(value: f64, expected: f64, within: f64) {
    assert!((value - expected).abs() <= within, "{value} is not within {within} of {expected}");
}

#[test]
fn an_acknowledgment_returns_exactly_t_a_after_the_last_packet_of_a_group() {
    let config = operating_point(1, 1);
    let outcome = random_loss(config, 0.0, 3);
    // W = 1: a segment starts when the one before is acknowledged, t_s + RTD + 3 t_p after its start.
    let round = config.segment_time() + HALF_TRIP * 2 + config.packet_time() * 3;
    for segment in 0..3 {
        assert_eq!(outcome.started[&segment], Instant::ZERO + round * segment);
        assert_eq!(outcome.delivered[&segment].0, outcome.started[&segment] + config.segment_time() + HALF_TRIP);
    }
}

#[test]
fn one_tolerated_loss_saves_a_round_trip_of_the_maximum_delay() {
    // As often lost as makes two rounds certain in 2e5 packets; the papers' 1e7 need only 1e-3.
    let p = 4e-3;
    let config = operating_point(36, 36);
    let outcome = random_loss(config, p, 800);
    assert!(outcome.efficiency(&config) > 0.94, "{}", outcome.efficiency(&config));
    near(outcome.delay_ms_max(), 154.4, 0.2);
    let one = Config { tolerance: Tolerance::new(256, 1, 1).unwrap(), ..config };
    near(random_loss(one, p, 800).delay_ms_max(), 94.4, 0.2);
    let any = Config { tolerance: Tolerance::any(256), ..config };
    near(random_loss(any, p, 800).delay_ms_max(), 34.2, 0.1);
    near(random_loss(config, 1e-3, 800).delay_ms_mean(), 47.7, 1.5);
}

#[test]
fn a_window_larger_than_the_buffer_beats_one_of_its_size() {
    for (buffer, wide, narrow) in [(4, 0.324, 0.185), (7, 0.399, 0.296), (14, 0.660, 0.523)] {
        let config = operating_point(36, buffer);
        near(random_loss(config, 1e-3, 1200).efficiency(&config), wide, 0.025);
        let config = operating_point(buffer, buffer);
        near(random_loss(config, 1e-3, 1200).efficiency(&config), narrow, 0.025);
    }
}

#[test]
fn lazy_soft_acknowledgment_collapses_and_eager_does_not() {
    let of = |acknowledgment, buffer| {
        let config = Config { acknowledgment, ..operating_point(36, buffer) };
        random_loss(config, 1e-3, 800).efficiency(&config)
    };
    near(of(Acknowledgment::SoftLazy, 4), 0.074, 0.02);
    assert!(of(Acknowledgment::SoftEager, 4) > 0.25, "asked for at once it is as good as hard");
}

#[test]
fn hard_and_soft_are_the_same_when_the_buffer_is_the_window() {
    let of = |acknowledgment, p, window| random_loss(Config { acknowledgment, ..operating_point(window, window) }, p, 200);
    for (p, window) in [(1e-2, 36), (0.1, 5), (0.2, 1)] {
        let hard = of(Acknowledgment::Hard, p, window);
        for soft in [Acknowledgment::SoftLazy, Acknowledgment::SoftEager] {
            let soft = of(soft, p, window);
            assert_eq!((&hard.delivered, hard.sent, hard.feedback), (&soft.delivered, soft.sent, soft.feedback));
        }
    }
}

#[test]
fn the_soft_collapse_outlives_the_one_loss_that_caused_it() {
    let late_rate = |acknowledgment| {
        let config = Config { acknowledgment, ..operating_point(36, 4) };
        let outcome = one_loss(config, 600);
        let (from, to) = (outcome.delivered[&400].0, outcome.delivered[&599].0);
        (config.segment_time() * 199).as_secs_f64() / to.since(from).as_secs_f64()
    };
    near(late_rate(Acknowledgment::SoftLazy), 0.086, 0.02);
    near(late_rate(Acknowledgment::Hard), 0.547, 0.03);
}

#[test]
fn hard_acknowledgment_heals_after_one_loss_when_it_discards_by_group_or_repeats_wait() {
    let late_rate = |discard, repeats| {
        let config = Config { discard, repeats, ..operating_point(36, 4) };
        let outcome = one_loss(config, 600);
        let (from, to) = (outcome.delivered[&400].0, outcome.delivered[&599].0);
        (config.segment_time() * 199).as_secs_f64() / to.since(from).as_secs_f64()
    };
    near(late_rate(Discard::Packet, Repeats::Preempt), 0.547, 0.03);
    near(late_rate(Discard::Packet, Repeats::Wait), 1.0, 0.005);
    near(late_rate(Discard::Group, Repeats::Preempt), 1.0, 0.005);
    near(late_rate(Discard::Group, Repeats::Wait), 1.0, 0.005);
}

#[test]
fn soft_acknowledgment_does_not_heal_when_it_discards_by_group() {
    let config = Config { acknowledgment: Acknowledgment::SoftLazy, discard: Discard::Group, ..operating_point(36, 4) };
    let outcome = one_loss(config, 600);
    let (from, to) = (outcome.delivered[&400].0, outcome.delivered[&599].0);
    let rate = (config.segment_time() * 199).as_secs_f64() / to.since(from).as_secs_f64();
    assert!(rate < 0.2, "{rate} of throughput long after the loss");
}

#[test]
fn discard_by_group_changes_nothing_when_the_buffer_is_the_window() {
    for acknowledgment in Acknowledgment::ALL {
        let of = |discard| random_loss(Config { acknowledgment, discard, ..operating_point(36, 36) }, 1e-2, 200);
        let (packet, group) = (of(Discard::Packet), of(Discard::Group));
        assert_eq!((&packet.delivered, packet.sent, packet.feedback), (&group.delivered, group.sent, group.feedback));
    }
}

/// The papers' own run length; minutes without optimisation.
#[test]
#[ignore = "ten million packets a point"]
fn the_buffer_study_at_the_papers_run_length() {
    let of = |acknowledgment, buffer, p| {
        let config = Config { acknowledgment, ..operating_point(36, buffer) };
        random_loss(config, p, 39_062).efficiency(&config)
    };
    for (buffer, rare, often) in [(4, 0.547, 0.324), (7, 0.588, 0.399), (14, 0.940, 0.660)] {
        near(of(Acknowledgment::Hard, buffer, 1e-5), rare, 0.02);
        near(of(Acknowledgment::Hard, buffer, 1e-3), often, 0.02);
    }
    for (buffer, rare) in [(4, 0.086), (7, 0.083)] {
        near(of(Acknowledgment::SoftLazy, buffer, 1e-5), rare, 0.02);
    }
}
