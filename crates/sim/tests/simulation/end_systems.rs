//! Both ends work on what leaves and what arrives, against closed forms to the nanosecond.

use crate::arq::{Acknowledgement, ArqReceiver, ArqSender, Defect, Forward, Mode, PACKET_BYTES, SLOT, Settings, backlog, pair};
use segstream_base::halves::{Deadline, Packet, Probe, Receiver, ReceiverEvent};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_path::{PathConfig, QueueLimit};
use segstream_sim::{Direction, End, EndSystem, EventLog, Moment, Observer, PacketEvent, PacketFate, SenderCost, Setup, Simulation};

/// AA Table 1 for packets of 1000 bytes: 121.2 us for data, 72 us for an acknowledgment of 16 bytes.
const TABLE_1: EndSystem = EndSystem { packet: Duration::from_nanos(71_200), byte: Duration::from_nanos(50), lower_queue: 4 };
const DATA: Duration = Duration::from_nanos(121_200);
const ANSWER: Duration = Duration::from_micros(72);
/// What a data packet takes on the link: 1024 bytes at 100 Mbit/s.
const ON_LINK: Duration = Duration::from_nanos(81_920);

/// Ends that work so, a link on which a packet takes `ON_LINK`, and one of 10 Mbit/s back.
fn working(system: EndSystem) -> Setup {
    let link = |bits| PathConfig {
        bandwidth: Some(Bandwidth::from_bits_per_second(bits)),
        queue: QueueLimit::Packets(1000),
        ..PathConfig::default()
    };
    Setup { forward: link(97_656_250), back: link(10_000_000), end_systems: Some(system), ..Setup::default() }
}

/// A sender that always would if it could.
fn unpaced(window: u64) -> Settings {
    Settings { window, slot: Duration::ZERO, timeout: None, ..Settings::filling(Mode::GoBackN, 0) }
}

/// A receiver that answers at even intervals, and notes when its timer rang.
struct Periodic {
    half: ArqReceiver,
    period: Duration,
    due: Instant,
    latest: Option<Acknowledgement>,
    answer: Option<Acknowledgement>,
    rang: Vec<Instant>,
}

impl Periodic {
    fn new(period: Duration) -> Self {
        let half = ArqReceiver::new(&unpaced(1));
        Self { half, period, due: Instant::ZERO + period, latest: None, answer: None, rang: Vec::new() }
    }
}

impl Receiver for Periodic {
    type Forward = Forward;
    type Feedback = Acknowledgement;

    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        self.half.handle_forward(now, packet);
        while let Some(latest) = self.half.poll_transmit(now) {
            self.latest = Some(latest);
        }
    }
    fn poll_transmit(&mut self, _now: Instant) -> Option<Acknowledgement> {
        self.answer.take()
    }
    fn poll_timeout(&self) -> Option<Deadline> {
        Some(Deadline { at: self.due, timer: "period" })
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.rang.push(now);
        self.due += self.period;
        self.answer.clone_from(&self.latest);
    }
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.half.poll_event()
    }
    fn probe(&self, _out: &mut dyn Probe) {}
}

/// A run of `packets` with an answer every `period`.
fn answered(window: u64, packets: u64, period: Duration, setup: &Setup) -> Simulation<ArqSender, Periodic, ()> {
    let (sender, receiver) = (ArqSender::new(unpaced(window)), Periodic::new(period));
    let mut run = Simulation::new(sender, receiver, backlog(packets), setup, Seed(1), ()).unwrap();
    assert_eq!(run.run(), End::Delivered);
    run
}

#[test]
fn work_and_link_are_a_pipeline() {
    let never = Duration::from_secs(3600);
    for packets in [1, 2, 400, 5000] {
        // 400 packets take 48.48 ms, and the last crosses the link and the other end.
        let run = answered(packets, packets, never, &working(TABLE_1));
        assert_eq!(run.now(), Instant::ZERO + DATA * packets + ON_LINK + DATA);
        // Where the link is slower, it sets the pace: it stands idle only while the first packet is made.
        let quick = EndSystem { packet: Duration::from_micros(30), byte: Duration::ZERO, ..TABLE_1 };
        let run = answered(packets, packets, never, &working(quick));
        assert_eq!(run.now(), Instant::ZERO + quick.packet + ON_LINK * packets + quick.packet);
    }
}

#[test]
fn an_answer_every_period_costs_its_work_until_the_window_is_too_small_for_the_period() {
    let (window, packets) = (400, 60_000);
    let efficiency = |period: u64| {
        let run = answered(window, packets, Duration::from_millis(period), &working(TABLE_1));
        (DATA * packets).as_secs_f64() / run.now().since(Instant::ZERO).as_secs_f64()
    };
    for period in [1, 2, 5, 10, 20, 30, 40, 45] {
        let expected = 1.0 - ANSWER.as_secs_f64() / (period as f64 * 1e-3);
        assert!((efficiency(period) - expected).abs() < 2e-4, "{period} ms: {} instead of {expected}", efficiency(period));
    }
    // A window takes 48.48 ms. If a period is longer, one window leaves in each.
    for period in [50, 60, 80, 200] {
        let expected = (DATA * window).as_secs_f64() / (period as f64 * 1e-3);
        assert!((efficiency(period) / expected - 1.0).abs() < 0.01, "{period} ms: {} instead of {expected}", efficiency(period));
    }
}

/// When answers enter the path, and when what they answer was handed to the receiver.
#[derive(Default)]
struct Answers {
    delivered: Vec<Instant>,
    left: Vec<Instant>,
    data_left: Vec<Instant>,
    /// From entering the path to arrival, of each data packet.
    on_path: Vec<Duration>,
}

impl Observer for Answers {
    const PACKETS: bool = true;
    fn delivered(&mut self, now: Instant, event: &ReceiverEvent) {
        if matches!(event, ReceiverEvent::Delivered { .. }) {
            self.delivered.push(now);
        }
    }
    fn packet<P: Packet>(&mut self, event: PacketEvent<'_, P>) {
        match (event.direction, event.moment) {
            (Direction::Back, Moment::Sent(_)) => self.left.push(event.now),
            (Direction::Forward, Moment::Sent(PacketFate::Arrives { at, .. })) => {
                self.data_left.push(event.now);
                self.on_path.push(at.since(event.now));
            }
            _ => {}
        }
    }
}

#[test]
fn feedback_is_worked_on_before_data_at_both_ends() {
    let packets = 3000;
    let mut run = pair(&unpaced(packets), backlog(packets), &working(TABLE_1), 1, Answers::default());
    assert_eq!(run.run(), End::Delivered);
    let seen = run.observer();
    // However many packets wait at the receiver, an answer waits for none of them.
    for (delivered, left) in seen.delivered.iter().zip(&seen.left) {
        assert_eq!(left.since(*delivered), ANSWER);
    }
    // The sender works on every answer that arrives while it makes a packet, right behind that packet.
    let gaps: Vec<_> = seen.data_left.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.iter().all(|gap| *gap == DATA || *gap == DATA + ANSWER), "{gaps:?}");
    // Each end has a packet and an answer to work on; so that is the time of a packet.
    let each = seen.delivered.windows(2).all(|pair| pair[1].since(pair[0]) == DATA + ANSWER);
    assert!(each && seen.delivered.len() as u64 == packets);
}

#[test]
fn no_more_than_the_lower_queue_waits_for_the_link() {
    for (lower_queue, waiting) in [(0, 1), (1, 1), (4, 4), (20, 20)] {
        let work = Duration::from_micros(10);
        let system = EndSystem { packet: work, byte: Duration::ZERO, lower_queue };
        let slow = Setup { forward: crate::arq::setup(0).forward, ..working(system) };
        let mut run = pair(&unpaced(1000), backlog(1000), &slow, 1, Answers::default());
        assert_eq!(run.run(), End::Delivered);
        // A packet is begun when the link takes one, and made while it sends that; then as many wait as may.
        let steady = &run.observer().on_path[50..];
        assert!(steady.iter().all(|span| *span + work == SLOT * (waiting + 1)), "{lower_queue}: {steady:?}");
    }
}

#[test]
fn timers_ring_at_their_time_whatever_the_processor_does() {
    let period = Duration::from_nanos(333_333);
    let run = answered(10_000, 10_000, period, &working(TABLE_1));
    let rang = &run.receiver().rang;
    assert!(rang.len() > 3000);
    assert!(rang.iter().zip(1..).all(|(at, count)| *at == Instant::ZERO + period * count));
}

#[test]
fn the_senders_timers_repair_every_loss_and_every_packet_is_in_one_place() {
    let settings = Settings { timeout: Some(Duration::from_millis(20)), markers: true, ..unpaced(50) };
    for mode in [Mode::GoBackN, Mode::SelectiveRepeat] {
        let mut lossy = working(TABLE_1);
        lossy.forward.loss = "0.1".parse().unwrap();
        lossy.forward.duplicate = "0.05".parse().unwrap();
        lossy.back.loss = "0.1".parse().unwrap();
        let log = |check| {
            let setup = Setup { check, ..lossy.clone() };
            let settings = Settings { mode, ..settings.clone() };
            let mut run = pair(&settings, backlog(1000), &setup, 1, EventLog::new(Vec::new()));
            assert_eq!(run.settle(), End::Settled);
            for direction in [run.traffic().forward, run.traffic().back] {
                assert_eq!(direction.packets() + direction.path.duplicated, direction.accounted(), "a packet is nowhere");
            }
            run.into_observer().finish().unwrap()
        };
        assert_eq!(log(false), log(true), "check mode changes nothing");
    }
}

#[test]
fn a_half_that_always_has_a_packet_cannot_hold_time_still() {
    let settings = Settings { defect: Some(Defect::Endless), ..unpaced(10) };
    let setup = Setup { until: Some(Instant::from_nanos(100_000)), ..working(EndSystem::default()) };
    assert_eq!(pair(&settings, backlog(10), &setup, 1, ()).run(), End::Limit);
}

#[test]
fn a_deadline_that_never_moves_is_found() {
    let settings = Settings { defect: Some(Defect::FrozenTimer), ..unpaced(10) };
    assert_eq!(pair(&Settings { slot: SLOT, ..settings }, backlog(10), &working(TABLE_1), 1, ()).run(), End::Stuck { timer: "frozen" });
}

#[test]
fn what_the_sender_alone_would_cost_is_not_charged_twice() {
    let both = Setup { sender_cost: Some(SenderCost { packet: SLOT, ..SenderCost::default() }), ..working(TABLE_1) };
    let time = |setup: &Setup| answered(400, 400, SLOT, setup).now();
    assert_eq!(time(&both), time(&working(TABLE_1)));
    assert_eq!(TABLE_1.work(u64::from(PACKET_BYTES)), DATA);
}
