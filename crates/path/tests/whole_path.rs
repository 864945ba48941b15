//! The path as its users see it: sums of delays, every packet accounted for, and impairments that do not
//! disturb one another.

use proptest::prelude::*;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_path::{Fate, LossPlace, LossSpec, Path, PathConfig, PathCounters, Probability, QueueLimit, ReorderSpec};

const PACKET: Bytes = Bytes::new(1000);

/// 8 Mbit/s: a packet of 1000 bytes takes exactly 1 ms.
fn one_packet_a_millisecond() -> PathConfig {
    PathConfig { bandwidth: Some(Bandwidth::from_megabits_per_second(8)), queue: QueueLimit::UNLIMITED, ..PathConfig::default() }
}

fn path(config: &PathConfig) -> Path {
    Path::new(config, Seed(11), "forward").unwrap()
}

fn at_micros(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

fn arrival(fate: Fate) -> Option<Instant> {
    match fate {
        Fate::Delivered { at } => Some(at),
        Fate::Lost | Fate::Dropped => None,
    }
}

fn loss(text: &str) -> LossSpec {
    text.parse().unwrap()
}

fn assert_conserved(counters: PathCounters) {
    assert_eq!(counters.sent, counters.delivered - counters.duplicated + counters.lost + counters.dropped_queue, "{counters:?}");
}

/// How many of the packets sent after each one arrive before it. A tie is no overtaking.
fn overtaken(arrivals: &[Instant]) -> Vec<usize> {
    (0..arrivals.len()).map(|n| arrivals[n + 1..].iter().take(200).filter(|later| **later < arrivals[n]).count()).collect()
}

#[test]
fn a_perfect_path_changes_nothing() {
    let mut path = path(&PathConfig::default());
    for micros in 0..100 {
        let passage = path.send(at_micros(micros), PACKET);
        assert_eq!(passage.fate, Fate::Delivered { at: at_micros(micros) });
        assert_eq!((passage.duplicate, passage.corrupt_bit), (None, None));
    }
}

#[test]
fn d_d_1_takes_the_transmission_and_the_delay_and_never_waits() {
    // Arrivals every 1.25 ms, service 1 ms: utilisation 0.8 and no waiting.
    let config = PathConfig { delay: Duration::from_millis(30), ..one_packet_a_millisecond() };
    let mut path = path(&config);
    for n in 0..1000 {
        let sent = at_micros(n * 1250);
        assert_eq!(arrival(path.send(sent, PACKET).fate), Some(sent + Duration::from_millis(31)));
        assert_eq!(path.waiting_bytes(sent), Bytes::ZERO);
    }
}

#[test]
fn an_overloaded_d_d_1_waits_a_little_longer_each_time() {
    // Arrivals every 0.8 ms, service 1 ms: packet n waits n x 0.2 ms.
    let mut path = path(&one_packet_a_millisecond());
    for n in 0..1000 {
        let sent = at_micros(n * 800);
        assert_eq!(arrival(path.send(sent, PACKET).fate), Some(sent + Duration::from_micros(1000 + n * 200)));
    }
}

#[test]
fn a_full_queue_passes_the_bandwidth_and_drops_the_excess() {
    let config = PathConfig { queue: QueueLimit::Packets(10), ..one_packet_a_millisecond() };
    let mut path = path(&config);
    let n = 10_000;
    for packet in 0..n {
        let _ = path.send(at_micros(packet * 500), PACKET);
    }
    let counters = path.counters();
    assert_conserved(counters);
    // In 5 s the link sends 5000; one more is on it and ten wait.
    assert_eq!(counters.delivered, 5000 + 10);
    assert_eq!(counters.dropped_queue, n - 5010);
}

#[test]
fn m_d_1_waits_as_pollaczek_and_khinchine_say() {
    // Mean wait = rho s / (2 (1 - rho)) = 2 ms at rho = 0.8, s = 1 ms.
    let mut path = path(&one_packet_a_millisecond());
    let mut random = Seed(12).stream("arrivals");
    let mut now = Instant::ZERO;
    let batches = 100;
    let means: Vec<f64> = (0..batches)
        .map(|_| {
            let mut sum = 0.0;
            for _ in 0..20_000 {
                now += random.exponential(Duration::from_micros(1250));
                let left = arrival(path.send(now, PACKET).fate).unwrap();
                sum += left.since(now).as_millis_f64() - 1.0;
            }
            sum / 20_000.0
        })
        .collect();
    let mean = means.iter().sum::<f64>() / f64::from(batches);
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / f64::from(batches - 1);
    let z = (mean - 2.0) / (variance / f64::from(batches)).sqrt();
    assert!(z.abs() < 4.5, "mean wait {mean} ms, z {z}");
}

#[test]
fn loss_before_the_bottleneck_spares_it_and_after_does_not() {
    for (place, last) in [(LossPlace::Before, 3), (LossPlace::After, 5)] {
        let config = PathConfig { loss: loss("list:1,3"), loss_at: place, ..one_packet_a_millisecond() };
        let mut path = path(&config);
        let fates: Vec<Fate> = (0..5).map(|_| path.send(Instant::ZERO, PACKET).fate).collect();
        assert_eq!((fates[1], fates[3]), (Fate::Lost, Fate::Lost));
        assert_eq!(arrival(fates[4]), Some(at_micros(last * 1000)));
    }
}

#[test]
fn a_list_counts_every_packet_sent_also_those_the_queue_drops() {
    let config =
        PathConfig { queue: QueueLimit::Packets(0), loss: loss("list:2"), loss_at: LossPlace::After, ..one_packet_a_millisecond() };
    let mut path = path(&config);
    let fates = [0, 0, 1000].map(|micros| path.send(at_micros(micros), PACKET).fate);
    assert_eq!(fates, [Fate::Delivered { at: at_micros(1000) }, Fate::Dropped, Fate::Lost]);
    assert_conserved(path.counters());
}

#[test]
fn the_same_seed_gives_the_same_fates_and_another_direction_does_not() {
    let config = everything();
    let run = |seed, direction: &str| {
        let mut path = Path::new(&config, Seed(seed), direction).unwrap();
        (0..20_000).map(|n| path.send(at_micros(n * 90), PACKET)).collect::<Vec<_>>()
    };
    assert_eq!(run(1, "forward"), run(1, "forward"));
    assert_ne!(run(1, "forward"), run(1, "back"));
    assert_ne!(run(1, "forward"), run(2, "forward"));
}

#[test]
fn changing_one_impairment_leaves_the_choices_of_the_others() {
    let choices = |config: &PathConfig| {
        let mut path = path(config);
        (0..50_000)
            .map(|n| {
                let passage = path.send(at_micros(n * 1100), PACKET);
                (passage.fate == Fate::Lost, passage.duplicate.is_some(), passage.corrupt_bit)
            })
            .collect::<Vec<_>>()
    };
    let base = PathConfig { loss: loss("gilbert:rate=2%,burst=3"), ..everything() };
    let before = choices(&base);
    let slower = choices(&PathConfig { delay: Duration::from_millis(7), jitter: Duration::from_millis(9).into(), ..base.clone() });
    assert_eq!(before, slower);
    let without_loss = choices(&PathConfig { loss: LossSpec::None, ..base.clone() });
    assert!(before.iter().zip(&without_loss).all(|(with, without)| with.0 || (with.1, with.2) == (without.1, without.2)));
    let uncorrupted = choices(&PathConfig { corrupt: Probability::ZERO, reorder: ReorderSpec::None, ..base });
    assert!(before.iter().zip(&uncorrupted).all(|(with, without)| (with.0, with.1) == (without.0, without.1)));
}

/// Every impairment at once.
fn everything() -> PathConfig {
    PathConfig {
        delay: Duration::from_millis(30),
        jitter: Duration::from_millis(2).into(),
        loss: loss("bursty:good=162ms,bad=18ms,loss=0.5"),
        reorder: "1%:distance=5".parse().unwrap(),
        duplicate: Probability::new(0.01).unwrap(),
        corrupt: Probability::new(0.01).unwrap(),
        queue: QueueLimit::Packets(20),
        ..one_packet_a_millisecond()
    }
}

#[test]
fn a_distance_of_five_is_overtaken_by_five_in_an_even_stream() {
    let config = PathConfig { delay: Duration::from_millis(30), reorder: "2%:distance=5".parse().unwrap(), ..one_packet_a_millisecond() };
    let n = 200_000u64;
    for gap in [1000, 1700, 250] {
        // At a gap of 250 us the link itself spaces the packets.
        let mut path = path(&config);
        let arrivals: Vec<Instant> = (0..n).map(|k| arrival(path.send(at_micros(k * gap), PACKET).fate).unwrap()).collect();
        let overtaken = overtaken(&arrivals);
        let late = overtaken.iter().filter(|count| **count > 0).count();
        assert_eq!(late as u64, path.counters().reordered);
        assert!(overtaken[20..overtaken.len() - 20].iter().all(|count| *count == 0 || *count == 5), "gap {gap}");
        // A renewal process with cycles of 5 + geometric(q) packets, mean 1 / P and variance (1 - q) / q^2 < 1 / P^2:
        // the share has a variance below P / n.
        let share = late as f64 / n as f64;
        assert!((share - 0.02).abs() < 4.5 * (0.02 / n as f64).sqrt(), "gap {gap}: {share}");
    }
}

#[test]
fn a_distance_is_never_exceeded_in_an_uneven_stream() {
    let config =
        PathConfig { jitter: Duration::from_micros(300).into(), reorder: "5%:distance=3".parse().unwrap(), ..one_packet_a_millisecond() };
    let mut path = path(&config);
    let mut random = Seed(13).stream("gaps");
    let mut now = Instant::ZERO;
    let arrivals: Vec<Instant> = (0..100_000)
        .map(|n| {
            // Bursts of ten, then a pause of up to 100 ms.
            now += if n % 10 == 0 { Duration::from_micros(random.below(100_000)) } else { Duration::from_micros(random.below(50)) };
            arrival(path.send(now, PACKET).fate).unwrap()
        })
        .collect();
    let overtaken = overtaken(&arrivals);
    assert!(overtaken.iter().all(|count| *count <= 3));
    assert!(overtaken.iter().filter(|count| **count == 3).count() > 1000);
}

#[test]
fn a_late_packet_takes_its_additional_delay_and_delays_no_other() {
    let config = PathConfig { delay: Duration::from_millis(5), reorder: "10%:delay=10ms".parse().unwrap(), ..one_packet_a_millisecond() };
    let mut path = path(&config);
    let mut late = 0;
    for n in 0..10_000 {
        let sent = at_micros(n * 1500);
        let took = arrival(path.send(sent, PACKET).fate).unwrap().since(sent);
        assert!(took == Duration::from_millis(6) || took == Duration::from_millis(16));
        late += u64::from(took == Duration::from_millis(16));
    }
    assert_eq!(late, path.counters().reordered);
    assert!((late as f64 - 1000.0).abs() < 4.5 * 30.0, "{late}");
}

#[test]
fn copies_follow_their_originals_and_are_counted() {
    let config = PathConfig {
        delay: Duration::from_millis(3),
        jitter: Duration::from_millis(4).into(),
        duplicate: Probability::new(0.1).unwrap(),
        ..PathConfig::default()
    };
    let mut path = path(&config);
    let mut last = Instant::ZERO;
    for n in 0..10_000 {
        let passage = path.send(at_micros(n * 100), PACKET);
        for at in arrival(passage.fate).into_iter().chain(passage.duplicate) {
            assert!(at >= last);
            last = at;
        }
    }
    let counters = path.counters();
    assert_conserved(counters);
    assert!((counters.duplicated as f64 - 1000.0).abs() < 4.5 * 30.0, "{counters:?}");
}

#[test]
fn time_that_goes_backward_counts_as_the_last() {
    let mut path = path(&one_packet_a_millisecond());
    let _ = path.send(at_micros(5000), PACKET);
    assert_eq!(arrival(path.send(Instant::ZERO, PACKET).fate), Some(at_micros(7000)));
}

#[test]
fn a_configuration_that_cannot_be_is_refused_with_a_sentence() {
    let zero = PathConfig { bandwidth: Some(Bandwidth::ZERO), ..PathConfig::default() };
    let certain = PathConfig { loss: LossSpec::Random(Probability::new(1.0).unwrap()), ..PathConfig::default() };
    let often = ReorderSpec::Distance { share: Probability::new(0.5).unwrap(), distance: 2 };
    let often = PathConfig { reorder: often, ..PathConfig::default() };
    for (config, value) in [(zero, "0 bit/s"), (certain, "random:1"), (often, "0.5")] {
        let sentence = Path::new(&config, Seed(1), "forward").map(|_| ()).unwrap_err().to_string();
        assert!(sentence.contains(value), "{sentence}");
    }
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for_and_none_is_faster_than_the_delay(
        seed in any::<u64>(),
        packets in proptest::collection::vec((0u64..3_000_000, 0u64..2000), 1..300),
        after in any::<bool>(),
    ) {
        let config = PathConfig { loss_at: if after { LossPlace::After } else { LossPlace::Before }, ..everything() };
        let mut path = Path::new(&config, Seed(seed), "forward").unwrap();
        let mut now = Instant::ZERO;
        let (mut arrived, mut flipped) = (0, 0);
        for (gap, bytes) in packets {
            now += Duration::from_nanos(gap);
            let passage = path.send(now, Bytes::new(bytes));
            if let Fate::Delivered { at } = passage.fate {
                prop_assert!(at >= now + config.delay);
                prop_assert!(passage.duplicate.is_none_or(|copy| copy >= at));
                prop_assert!(passage.corrupt_bit.is_none_or(|bit| bit < bytes * 8));
                arrived += 1 + u64::from(passage.duplicate.is_some());
                flipped += u64::from(passage.corrupt_bit.is_some());
            } else {
                prop_assert_eq!((passage.duplicate, passage.corrupt_bit), (None, None));
            }
        }
        let counters = path.counters();
        prop_assert_eq!(counters.delivered, arrived);
        prop_assert_eq!(counters.corrupted, flipped);
        prop_assert_eq!(counters.sent, counters.delivered - counters.duplicated + counters.lost + counters.dropped_queue);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,40}", kind in 0usize..5) {
        let text = ["", "bursty:good=", "gilbert:rate=", "list:", "1%:"][kind].to_owned() + &text;
        let _ = text.parse::<LossSpec>();
        let _ = text.parse::<ReorderSpec>();
        let _ = text.parse::<Probability>();
    }
}
