//! The order of events, the fate of every packet, and that a run depends on nothing but its arguments.

use crate::arq::{Handed, Mode, SLOT, Settings, backlog, pair, setup};
use segstream_base::halves::Packet;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_path::Jitter;
use segstream_path::{LossPlace, QueueLimit};
use segstream_sim::{Control, Direction, DirectionTraffic, End, EventLog, Moment, Observer, PacketEvent, PacketFate, Setup, Source};

/// Keeps every packet event.
#[derive(Default)]
struct Watch(Vec<(Instant, Direction, u64, Moment)>);

impl Observer for Watch {
    const PACKETS: bool = true;

    fn packet<P: Packet>(&mut self, event: PacketEvent<'_, P>) {
        self.0.push((event.now, event.direction, event.number, event.moment));
    }
}

/// Every impairment a path has, in both directions.
fn rough() -> Setup {
    let mut setup = setup(20);
    for path in [&mut setup.forward, &mut setup.back] {
        path.jitter = Jitter::Uniform(SLOT * 3);
        path.loss = "gilbert:rate=2%,burst=3".parse().unwrap();
        path.reorder = "5%:distance=3".parse().unwrap();
        path.duplicate = "5%".parse().unwrap();
        path.corrupt = "2%".parse().unwrap();
    }
    setup.forward.loss_at = LossPlace::After;
    setup
}

fn settings() -> Settings {
    Settings::filling(Mode::SelectiveRepeat, 30)
}

fn log(settings: &Settings, source: Source, setup: &Setup, seed: u64) -> String {
    let mut run = pair(settings, source, setup, seed, EventLog::with_contents(Vec::new()));
    assert_eq!(run.settle(), End::Settled);
    String::from_utf8(run.into_observer().finish().unwrap()).unwrap()
}

#[test]
fn the_event_log_of_a_short_run_is_the_golden_one() {
    let mut setup = setup(2);
    setup.forward.loss = "list:1".parse().unwrap();
    let text = log(&Settings::filling(Mode::GoBackN, 2), backlog(4), &setup, 1);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulation/golden/go_back_n.txt"), &text).unwrap();
    }
    assert_eq!(text, include_str!("golden/go_back_n.txt"));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let first = log(&settings(), backlog(500), &rough(), 7);
    assert_eq!(first, log(&settings(), backlog(500), &rough(), 7));
    assert_ne!(first, log(&settings(), backlog(500), &rough(), 8));
}

#[test]
fn check_mode_changes_nothing() {
    for mode in [Mode::GoBackN, Mode::SelectiveRepeat] {
        let settings = Settings { markers: true, ..Settings::filling(mode, 30) };
        for control in [Control::InBand, Control::OutOfBand] {
            let plain = Setup { control, ..rough() };
            let checked = Setup { check: true, ..plain.clone() };
            assert_eq!(log(&settings, backlog(300), &plain, 3), log(&settings, backlog(300), &checked, 3));
        }
    }
}

#[test]
fn an_observer_changes_nothing() {
    let mut watched = pair(&settings(), backlog(500), &rough(), 7, (Watch::default(), ()));
    let mut alone = pair(&settings(), backlog(500), &rough(), 7, ());
    assert_eq!((watched.settle(), watched.now()), (alone.settle(), alone.now()));
    assert_eq!(watched.traffic(), alone.traffic());
}

/// When packets arrive, and their numbers.
type Arrivals = Vec<(Instant, u64)>;

/// What every packet was said to do, and did: (arrival, number), in the order of arrival.
fn arrivals(watch: &Watch, direction: Direction) -> (Arrivals, Arrivals) {
    let (mut said, mut seen) = (Vec::new(), Vec::new());
    for (now, _, number, moment) in watch.0.iter().filter(|event| event.1 == direction) {
        match moment {
            Moment::Arrived => seen.push((*now, *number)),
            Moment::Sent(PacketFate::Arrives { at, copy_at }) | Moment::Decided(PacketFate::Arrives { at, copy_at }) => {
                said.push((*at, *number));
                said.extend(copy_at.map(|at| (at, *number)));
            }
            Moment::Sent(_) | Moment::Decided(_) => {}
        }
    }
    said.sort_unstable();
    (said, seen)
}

#[test]
fn jittered_reordered_and_copied_packets_arrive_in_the_order_of_time_and_sending() {
    let mut run = pair(&settings(), backlog(3000), &rough(), 5, Watch::default());
    assert_eq!(run.settle(), End::Settled);
    let traffic = run.traffic();
    for direction in [Direction::Forward, Direction::Back] {
        let path = if direction == Direction::Forward { traffic.forward.path } else { traffic.back.path };
        assert!(path.reordered > 50 && path.duplicated > 50 && path.corrupted > 20 && path.lost > 20, "{path:?}");
        let (said, seen) = arrivals(run.observer(), direction);
        assert_eq!(said[..seen.len()], seen);
    }
    assert!(run.observer().0.is_sorted_by_key(|event| event.0));
}

fn assert_conserved(traffic: DirectionTraffic) {
    assert_eq!(traffic.packets() + traffic.path.duplicated, traffic.accounted(), "{traffic:?}");
}

#[test]
fn every_packet_is_delivered_lost_dropped_discarded_or_under_way_at_every_instant() {
    for control in [Control::InBand, Control::OutOfBand] {
        for slots in (1..400).step_by(7) {
            let mut setup = Setup { control, until: Some(Instant::ZERO + SLOT * slots), ..rough() };
            // Half the bandwidth it is sent with, so that the queue fills.
            setup.forward.bandwidth = Some(Bandwidth::from_megabits_per_second(4));
            setup.forward.queue = QueueLimit::Packets(5);
            let mut run = pair(&Settings { markers: true, ..settings() }, backlog(10_000), &setup, 5, ());
            assert_eq!(run.run(), End::Limit);
            let traffic = run.traffic();
            assert_conserved(traffic.forward);
            assert_conserved(traffic.back);
            assert!(slots < 100 || traffic.forward.path.dropped_queue > 10);
        }
    }
}

#[test]
fn control_out_of_band_is_never_lost_and_comes_right_behind_the_data_in_front_of_it() {
    for jitter in [Duration::ZERO, SLOT * 5] {
        let mut setup = Setup { control: Control::OutOfBand, ..setup(20) };
        setup.forward.loss = "20%".parse().unwrap();
        setup.forward.jitter = Jitter::Uniform(jitter);
        setup.back.loss = "90%".parse().unwrap();
        let settings = Settings { markers: true, timeout: Some(SLOT * 60), ..settings() };
        let mut run = pair(&settings, backlog(2000), &setup, 9, ());
        assert_eq!(run.settle(), End::Settled);
        let traffic = run.traffic();
        assert_eq!((traffic.back.path.sent, traffic.back.path.lost), (0, 0));
        assert_eq!(traffic.forward.control_packets, traffic.forward.data_packets);
        let handed = &run.receiver().handed;
        let markers: Vec<_> = handed.iter().filter(|(_, what)| matches!(what, Handed::Marker(_))).collect();
        assert_eq!(markers.len() as u64, traffic.forward.control_packets - traffic.forward.in_flight);
        for (place, (at, what)) in handed.iter().enumerate() {
            if let Handed::Data(number) = what {
                // Jitter may let several packets arrive at one instant; their markers follow then.
                let near = if jitter.is_zero() { 1 } else { 20 };
                let marker = (*at, Handed::Marker(*number));
                assert!(handed[place + 1..].iter().take(near).any(|next| *next == marker), "behind {what:?} at {at}");
            }
        }
    }
}

/// Time in the events, and everything else of them.
fn times(text: &str) -> (Vec<u64>, Vec<String>) {
    let mut times = Vec::new();
    let mut rest = Vec::new();
    for word in text.lines().flat_map(|line| {
        line.split_once(' ')
            .map(|(time, rest)| [format!("at={time}")].into_iter().chain(rest.split(' ').map(str::to_owned)).collect::<Vec<_>>())
            .unwrap()
    }) {
        match word.split_once('=') {
            Some(("at" | "arrives" | "copy", time)) => times.push(time.parse().unwrap()),
            _ => rest.push(word),
        }
    }
    (times, rest)
}

#[test]
fn twice_the_bandwidth_and_half_the_delay_take_exactly_half_the_time() {
    let mut slow = setup(20);
    slow.forward.loss = "gilbert:rate=5%,burst=2".parse().unwrap();
    slow.back.loss = "5%".parse().unwrap();
    slow.forward.corrupt = "1%".parse().unwrap();
    let mut fast = slow.clone();
    fast.forward.bandwidth = Some(Bandwidth::from_megabits_per_second(16));
    (fast.forward.delay, fast.back.delay) = (SLOT * 5, SLOT * 5);
    for mode in [Mode::GoBackN, Mode::SelectiveRepeat] {
        let settings = Settings::filling(mode, 20);
        let quick = Settings { slot: SLOT / 2, timeout: settings.timeout.map(|timeout| timeout / 2), ..settings.clone() };
        let (slow_times, slow_rest) = times(&log(&settings, backlog(400), &slow, 11));
        let (fast_times, fast_rest) = times(&log(&quick, backlog(400), &fast, 11));
        assert_eq!(slow_rest, fast_rest);
        assert!(slow_times.iter().zip(&fast_times).all(|(slow, fast)| *slow == 2 * fast));
    }
}

#[test]
fn a_periodic_segment_that_waits_keeps_the_time_it_was_due() {
    #[derive(Default)]
    struct Due(Vec<(Instant, Instant)>);
    impl Observer for Due {
        fn submitted(&mut self, now: Instant, segment: &segstream_base::halves::Segment, _number: segstream_base::halves::SegmentNumber) {
            self.0.push((segment.source_time, now));
        }
    }
    // Twice as many segments as stop-and-wait over two slots can send.
    let source = Source::Periodic { segments: 40, segment_bytes: 1000, interval: SLOT * 3 / 2 };
    let settings = Settings { window: 1, ..Settings::filling(Mode::GoBackN, 2) };
    let mut run = pair(&settings, source, &setup(2), 1, Due::default());
    assert_eq!(run.settle(), End::Settled);
    let due = &run.observer().0;
    assert_eq!(due.len(), 40);
    for (place, (source_time, now)) in due.iter().enumerate() {
        assert_eq!(*source_time, Instant::ZERO + SLOT * 3 / 2 * place as u64);
        assert!(now >= source_time);
    }
    assert_eq!(due[39].1, Instant::ZERO + SLOT * 3 * 38);
}
