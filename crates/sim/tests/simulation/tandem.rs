//! The tandem: its times to the slot, its closed forms, what it conserves, and what it refuses.

use crate::arq::{ArqReceiver, ArqSender, Defect, Handed, Mode, Settings};
use crate::relay::{RelayReceiver, RelaySender};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_sim::tandem::{
    Arrivals, ArrivalsError, Order, Split, Tandem, TandemConfig, TandemConfigError, TandemError, TandemOutcome, Tie,
};

const SLOT: Duration = Duration::from_nanos(81_920);

/// The stations of the paper with a quiet link and nobody else on it.
fn quiet() -> TandemConfig {
    TandemConfig { external_rate: 0.0, packet_error_rate: 0.0, warm_up_slots: 0, ..TandemConfig::default() }
}

/// Messages of one packet, of the size that the repeat-request pair takes.
fn single(config: TandemConfig) -> TandemConfig {
    TandemConfig { packet_payload_bytes: crate::arq::PACKET_BYTES, message_continue: 0.0, ..config }
}

fn relayed(config: &TandemConfig, seed: u64) -> TandemOutcome {
    Tandem::new(RelaySender::default(), RelayReceiver::default(), config, Seed(seed)).unwrap().run().unwrap().clone()
}

fn go_back_n(window: u64) -> Settings {
    Settings { window, slot: Duration::ZERO, timeout: Some(SLOT * 120), ..Settings::filling(Mode::GoBackN, 1) }
}

fn repeated(settings: &Settings, config: &TandemConfig, seed: u64) -> Tandem<ArqSender, ArqReceiver> {
    Tandem::new(ArqSender::new(settings.clone()), ArqReceiver::new(settings), config, Seed(seed)).unwrap()
}

#[test]
fn a_message_that_meets_nobody_takes_15_slots_and_2_for_each_further_packet() {
    for order in [Order::DeparturesFirst, Order::ArrivalsFirst] {
        for packets in [1, 2, 3, 10] {
            let config = TandemConfig {
                arrivals: Arrivals::Bernoulli { rate: 1e-4 },
                // Every message is as long as it may be.
                message_continue: 1.0 - 1e-12,
                message_packets_max: packets,
                slots: 400_000,
                order,
                ..quiet()
            };
            let outcome = relayed(&config, 1);
            let delay = 15 + 2 * (u64::from(packets) - 1);
            assert!(outcome.delay.count > 20);
            assert_eq!((outcome.delay.slots_sum, outcome.delay.slots_max), (outcome.delay.count * delay, delay));
            assert_eq!(outcome.delay.variance(), 0.0);
            assert_eq!(config.delay_slots_min(), 15);
            assert_eq!(config.control_round_trip_slots(), 29);
        }
    }
}

/// The stations behind XTP1 serve as fast as it does, so all waiting is there: a message finds rate E[B(B-1)] / 2(1 - rate E[B])
/// slots of work, where B = 2 n is its own; with n geometric of mean 2 that is 10 rate / (1 - 4 rate), and it takes
/// 15 + 2 (n - 1), 17 on the average.
#[test]
fn messages_of_geometric_length_wait_as_the_closed_form_says() {
    for rate in [0.01, 0.06, 0.12, 0.2] {
        let config = TandemConfig { arrivals: Arrivals::Bernoulli { rate }, slots: 1_600_000, warm_up_slots: 10_000, ..quiet() };
        let outcome = relayed(&config, 3);
        let means: Vec<f64> = outcome.batches.iter().map(|batch| batch.delay.slots_mean()).collect();
        let count = means.len() as f64;
        let mean = means.iter().sum::<f64>() / count;
        let error = (means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0) / count).sqrt();
        let exact = 17.0 + 10.0 * rate / (1.0 - 4.0 * rate);
        assert!((mean - exact).abs() < 5.0 * error, "rate {rate}: {mean} is not {exact} within 5 * {error}");
        assert_eq!(relayed(&TandemConfig { order: Order::ArrivalsFirst, ..config }, 3), outcome, "without drops the order is nothing");
        assert!(!outcome.unstable());
        // Little's law, over the whole run.
        let little = outcome.throughput_messages_per_slot() * outcome.delay_slots_mean();
        assert!((outcome.backlog_messages_mean() / little - 1.0).abs() < 1e-3, "{} and {little}", outcome.backlog_messages_mean());
    }
}

/// A packet asked for in slot t is received in t + 15, and its answer is there in t + 29.
#[test]
fn stop_and_wait_sends_a_packet_every_29_slots_and_is_unstable_when_more_arrive() {
    let config = single(TandemConfig { arrivals: Arrivals::Bernoulli { rate: 1.0 }, slots: 29_000, ..quiet() });
    let mut run = repeated(&go_back_n(1), &config, 1);
    let outcome = run.run().unwrap();
    let delivered = 1000;
    assert_eq!((outcome.messages_offered, outcome.messages_delivered(), outcome.packets_sent), (29_000, delivered, delivered));
    assert_eq!(outcome.packets_retransmitted, 0);
    // Message k arrives in slot k and is delivered in slot 29 k + 15.
    assert_eq!(outcome.delay.slots_sum, (0..delivered).map(|message| 28 * message + 15).sum());
    assert_eq!(outcome.delay.slots_max, 28 * (delivered - 1) + 15);
    assert_eq!(outcome.backlog_end, 28_000);
    assert!(outcome.unstable());
}

#[test]
fn a_timer_rings_in_the_first_slot_that_does_not_begin_before_it() {
    let config = single(TandemConfig { arrivals: Arrivals::Bernoulli { rate: 1.0 }, slots: 3_000, ..quiet() });
    for (half_slots, every) in [(5, 3), (6, 3), (7, 4), (1, 2)] {
        let settings = Settings { slot: SLOT * half_slots / 2, ..go_back_n(1000) };
        let mut run = repeated(&settings, &config, 1);
        assert_eq!(run.run().unwrap().packets_sent, 3_000u64.div_ceil(every), "a packet every {half_slots} half slots");
    }
}

#[test]
fn control_of_the_sender_takes_14_slots_and_occupies_nobody() {
    let config = single(TandemConfig { arrivals: Arrivals::Bernoulli { rate: 1.0 }, slots: 64, ..quiet() });
    let settings = Settings { markers: true, ..go_back_n(1000) };
    let mut run = repeated(&settings, &config, 1);
    assert_eq!(run.run().unwrap().control_packets, 31);
    let at = |slot: u64| Instant::ZERO + SLOT * slot;
    // The marker behind a packet waits for the server that serves it, so it leaves with the next packet.
    let expected = [
        (at(15), Handed::Data(0)),
        (at(16), Handed::Marker(0)),
        (at(17), Handed::Data(1)),
        (at(18), Handed::Marker(1)),
        (at(19), Handed::Data(2)),
    ];
    assert_eq!(run.receiver().handed[..5], expected);
}

#[test]
fn every_packet_is_received_dropped_corrupted_or_under_way_and_every_message_delivered_or_due() {
    for (seed, order) in (1..).zip([Order::DeparturesFirst, Order::ArrivalsFirst]) {
        let config = single(TandemConfig {
            arrivals: Arrivals::Interrupted { rate: 0.3, scv: 10.0, alpha: 1.0 },
            external_rate: 0.2,
            packet_error_rate: 0.01,
            link1_room: 3,
            slots: 100_000,
            order,
            ..quiet()
        });
        let mut run = repeated(&go_back_n(30), &config, seed);
        let outcome = run.run().unwrap().clone();
        assert!(outcome.packets_retransmitted > 1000 && outcome.packets_corrupted > 100 && outcome.overflow_drops() > 100, "{order:?}");
        assert_eq!(outcome.link2.dropped.total() + outcome.xtp2.dropped.total(), 0, "LINK1 lets through no more than they serve");
        let accounted = outcome.packets_received + outcome.packets_corrupted + outcome.overflow_drops() + run.packets_under_way();
        assert_eq!(outcome.packets_sent, accounted);
        assert_eq!(outcome.messages_offered, outcome.messages_delivered() + outcome.backlog_end);
        assert_eq!(outcome.packets_offered, outcome.messages_offered);
        // External packets go no further than LINK2.
        assert!(outcome.link2.arrived.external > 1000);
        assert_eq!(outcome.xtp2.arrived.external, 0);
        assert_eq!(outcome.link1.occupancy_slots.iter().sum::<u64>(), outcome.slots);
        assert_eq!(outcome.batches.iter().map(|batch| batch.slots).sum::<u64>(), outcome.slots);
    }
}

/// A lone packet finds rate / (1 - 2 rate) slots of external work at LINK1 and, if it is second, 2 rate more.
#[test]
fn a_lone_packet_waits_for_the_external_traffic_as_the_closed_form_says() {
    let (rate, external) = (0.002, 0.1);
    for (tie, second) in [(Tie::UserFirst, 0.0), (Tie::Drawn, 0.5), (Tie::ExternalFirst, 1.0)] {
        let arrivals = Arrivals::Bernoulli { rate };
        let config = TandemConfig { arrivals, message_continue: 0.0, external_rate: external, slots: 8_000_000, tie, ..quiet() };
        let delay = relayed(&config, 4).delay;
        let at_link1 = external / (1.0 - 2.0 * external) + 2.0 * external * second;
        let exact = 15.0 + rate / (1.0 - 2.0 * rate) + at_link1;
        let error = (delay.variance() / delay.count as f64).sqrt();
        // Packets are so far apart that their delays are as good as independent.
        assert!((delay.slots_mean() - exact).abs() < 5.0 * error, "{tie:?}: {} is not {exact} within 5 * {error}", delay.slots_mean());
    }
}

/// With the sender in step with LINK1 a packet that is first in its slot always finds the room that has just been left.
#[test]
fn who_is_first_in_a_slot_decides_whose_packets_a_full_queue_drops() {
    let dropped = |tie| {
        let arrivals = Arrivals::Bernoulli { rate: 1.0 };
        let outcome = relayed(&TandemConfig { arrivals, external_rate: 0.1, slots: 100_000, tie, ..quiet() }, 1);
        // The server never rests, so as many are dropped in every case, except for what is left in the queue.
        let overload = outcome.link1.arrived.total() - 50_000;
        assert!(outcome.link1.dropped.total().abs_diff(overload) < 20, "{:?}", outcome.link1);
        (outcome.overflow_drops(), outcome.link1.dropped.external)
    };
    let (user, external) = dropped(Tie::UserFirst);
    assert!(user < 10 && external > 9_000, "{user} and {external}");
    let (drawn, _) = dropped(Tie::Drawn);
    let (user, external) = dropped(Tie::ExternalFirst);
    assert!(2 * user > 3 * drawn && drawn > 1_000 && external > 1_000, "{user} and {external}, and {drawn} when drawn");
}

#[test]
fn one_seed_is_one_run_and_another_window_meets_the_same_traffic() {
    let config = single(TandemConfig { slots: 50_000, external_rate: 0.2, ..TandemConfig::default() });
    let run = |window, seed| repeated(&go_back_n(window), &config, seed).run().unwrap().clone();
    assert_eq!(run(20, 1), run(20, 1));
    assert_ne!(run(20, 1), run(20, 2));
    let (narrow, wide) = (run(3, 1), run(60, 1));
    assert_ne!(narrow.delay, wide.delay);
    let offered = |outcome: &TandemOutcome| outcome.batches.iter().map(|batch| batch.messages_offered).collect::<Vec<_>>();
    assert_eq!(offered(&narrow), offered(&wide));
    assert_eq!(narrow.link1.arrived.external, wide.link1.arrived.external);
}

#[test]
fn at_low_load_nothing_is_dropped_and_nothing_sent_again() {
    let arrivals = Arrivals::Bernoulli { rate: 0.02 };
    let outcome = repeated(&go_back_n(60), &single(TandemConfig { arrivals, slots: 200_000, ..quiet() }), 5).run().unwrap().clone();
    assert_eq!((outcome.overflow_drops(), outcome.packets_retransmitted), (0, 0));
    let crowded = relayed(&TandemConfig { arrivals, slots: 200_000, packet_error_rate: 0.0, ..TandemConfig::default() }, 5);
    assert_eq!(crowded.overflow_drops() + crowded.messages_unmet, 0);
}

#[test]
fn the_warm_up_is_left_out_and_changes_nothing_behind_it() {
    let whole = relayed(&TandemConfig { slots: 64_000, ..quiet() }, 9);
    let behind = relayed(&TandemConfig { slots: 32_000, warm_up_slots: 32_000, ..quiet() }, 9);
    let delivered = |batches: &[segstream_sim::tandem::Batch]| batches.iter().map(|batch| batch.delay.count).sum::<u64>();
    assert_eq!(delivered(&whole.batches[32..]), delivered(&behind.batches));
    assert_eq!(whole.delay.slots_sum - behind.delay.slots_sum, whole.batches[..32].iter().map(|batch| batch.delay.slots_sum).sum());
    assert_eq!(behind.backlog_start, whole.batches[31].backlog_end);
    assert_eq!(behind.messages_offered + behind.backlog_start, behind.messages_delivered() + behind.backlog_end);
}

#[test]
fn a_message_whose_promise_is_not_kept_is_counted_apart() {
    let config = TandemConfig { slots: 10_000, ..quiet() };
    let receiver = RelayReceiver { expires: true, ..RelayReceiver::default() };
    let mut run = Tandem::new(RelaySender::default(), receiver, &config, Seed(1)).unwrap();
    let outcome = run.run().unwrap();
    assert!(outcome.messages_unmet > 1000 && outcome.messages_delivered() == 0);
    assert_eq!(outcome.messages_offered, outcome.messages_unmet + outcome.backlog_end);
}

#[test]
fn a_half_that_will_never_take_a_message_or_never_stops_ends_the_run() {
    let wrong = TandemConfig { packet_payload_bytes: 999, ..single(quiet()) };
    let refused = repeated(&go_back_n(5), &wrong, 1).run().unwrap_err();
    assert!(matches!(refused, TandemError::Refused { message: 0, .. }), "{refused}");
    let settings = Settings { defect: Some(Defect::Endless), ..go_back_n(5) };
    let endless = repeated(&settings, &single(quiet()), 1).run().unwrap_err();
    assert_eq!(endless, TandemError::Endless { half: "sender", slot: 0 });
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let config = TandemConfig::default();
    assert_eq!(config.check(), Ok(()));
    assert!((config.message_packets_mean() - 2.0).abs() < 1e-12);
    let refused = [
        (TandemConfig { slots: 0, ..config }, TandemConfigError::Zero { what: "the number of measured slots" }),
        (TandemConfig { link1_room: 0, ..config }, TandemConfigError::Zero { what: "the room of LINK1" }),
        (TandemConfig { control_slots: 0, ..config }, TandemConfigError::Zero { what: "the delay of control" }),
        (TandemConfig { xtp2_room: 70_000, ..config }, TandemConfigError::Room { queue: "XTP2", room: 70_000 }),
        (
            TandemConfig { external_rate: 1.5, ..config },
            TandemConfigError::Probability { what: "the rate of the external traffic", value: 1.5 },
        ),
        (TandemConfig { message_continue: 1.0, ..config }, TandemConfigError::Endless { value: 1.0 }),
        (
            TandemConfig { arrivals: Arrivals::Bernoulli { rate: 2.0 }, ..config },
            TandemConfigError::Arrivals(ArrivalsError::Rate { rate: 2.0 }),
        ),
    ];
    for (config, error) in refused {
        assert_eq!(config.check(), Err(error));
        assert_eq!(Tandem::new(RelaySender::default(), RelayReceiver::default(), &config, Seed(1)).err(), Some(error));
    }
    assert_eq!(TandemConfigError::Zero { what: "the room of LINK1" }.to_string(), "the room of LINK1 is 0; give at least 1");
    assert_eq!(Split { user: 1, external: 2 }.total(), 3);
}
