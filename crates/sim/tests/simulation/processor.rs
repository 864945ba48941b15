//! A sender whose work takes time, and control that is not lost as data is.

use crate::arq::{ArqReceiver, ArqSender, Forward, Mode, SLOT, Settings, backlog, pair, setup};
use segstream_base::halves::{
    Deadline, Operations, Packet, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender, SenderCounters, SenderEvent,
    StreamId, SubmitError,
};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_path::{LossPlace, LossSpec};
use segstream_sim::{Direction, End, EventLog, Moment, Observer, PacketEvent, SenderCost, Setup, Simulation};

const PACKETS: u64 = 4000;

/// A sender that always would if it could.
fn unpaced(window: u64) -> Settings {
    Settings { window, slot: Duration::ZERO, timeout: None, ..Settings::filling(Mode::SelectiveRepeat, 0) }
}

fn costing(round_trip: u64, packet: Duration, timer: Duration) -> Setup {
    Setup { sender_cost: Some(SenderCost { packet, timer, ..SenderCost::default() }), ..setup(round_trip) }
}

fn time_of(window: u64, setup: &Setup) -> Duration {
    let mut run = pair(&unpaced(window), backlog(PACKETS), setup, 1, ());
    assert_eq!(run.run(), End::Delivered);
    run.now().since(Instant::ZERO)
}

#[test]
fn a_wide_window_sends_a_packet_a_service() {
    for service in [SLOT * 2, SLOT * 7] {
        // The last packet has its own time on the line and half a round trip to go.
        assert_eq!(time_of(PACKETS, &costing(10, service, Duration::ZERO)), service * (PACKETS - 1) + SLOT * 6);
    }
}

#[test]
fn a_narrow_window_sends_itself_once_a_round_trip() {
    // W packets in a round trip and the time of one on the line, whatever the service.
    for (window, service) in [(1, SLOT), (8, SLOT * 2), (20, SLOT * 3)] {
        let rounds = PACKETS / window;
        let whole = SLOT * 101 * (rounds - 1) + service * (window - 1) + SLOT * 51;
        assert_eq!(time_of(window, &costing(100, service, Duration::ZERO)), whole);
    }
}

#[test]
fn what_feedback_costs_delays_the_next_data_packet() {
    let (service, cost) = (SLOT * 2, Duration::from_micros(300));
    // The acknowledgment is worked on before the packet that it lets go.
    assert_eq!(time_of(1, &costing(100, service, cost)), (SLOT * 101 + cost) * (PACKETS - 1) + SLOT * 51);
    // At its limit the processor has one of each to do.
    let busy = time_of(50, &costing(2, service, cost));
    let expected = (service + cost) * PACKETS;
    assert!(busy.as_secs_f64() / expected.as_secs_f64() > 0.99 && busy <= expected, "{busy} instead of {expected}");
}

#[test]
fn a_processor_that_takes_no_time_changes_nothing() {
    let lossy = |sender_cost| {
        let mut setup = Setup { sender_cost, ..setup(20) };
        setup.forward.loss = "0.1".parse().unwrap();
        setup
    };
    let log = |setup: &Setup| {
        let settings = Settings { markers: true, ..Settings::filling(Mode::GoBackN, 20) };
        let mut run = pair(&settings, backlog(500), setup, 1, EventLog::new(Vec::new()));
        assert_eq!(run.settle(), End::Settled);
        run.into_observer().finish().unwrap()
    };
    assert_eq!(log(&lossy(None)), log(&lossy(Some(SenderCost::default()))));
}

/// A sender that has a control packet at every beat; as a process of its own, or not.
struct Beating {
    half: ArqSender,
    beat: Duration,
    due: Instant,
    apart: bool,
}

impl Sender for Beating {
    type Forward = Forward;
    type Feedback = <ArqSender as Sender>::Feedback;

    fn submit(&mut self, now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        self.half.submit(now, segment)
    }
    fn append(&mut self, now: Instant, stream: StreamId, bytes: u64, last: bool) -> Result<(), SubmitError> {
        self.half.append(now, stream, bytes, last)
    }
    fn finish(&mut self, now: Instant) {
        self.half.finish(now);
    }
    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        self.half.reconfigure(now, change)
    }
    fn handle_feedback(&mut self, now: Instant, packet: &Self::Feedback) {
        self.half.handle_feedback(now, packet);
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if now >= self.due {
            self.due = now + self.beat;
            return Some(Forward::Marker { behind: 0 });
        }
        self.half.poll_transmit(now)
    }
    fn poll_control(&mut self, now: Instant) -> Option<Forward> {
        if self.apart && now >= self.due { self.poll_transmit(now) } else { None }
    }
    fn poll_timeout(&self) -> Option<Deadline> {
        Deadline::earlier(self.half.poll_timeout(), Some(Deadline { at: self.due, timer: "beat" }))
    }
    fn poll_control_timeout(&self) -> Option<Deadline> {
        if self.apart { Some(Deadline { at: self.due, timer: "beat" }) } else { self.poll_timeout() }
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.half.handle_timeout(now);
    }
    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.half.poll_event()
    }
    fn counters(&self) -> SenderCounters {
        self.half.counters()
    }
    fn operations(&self) -> Operations {
        self.half.operations()
    }
    fn probe(&self, out: &mut dyn Probe) {
        self.half.probe(out);
    }
}

/// When each control packet left.
#[derive(Default)]
struct Control(Vec<Instant>);

impl Observer for Control {
    const PACKETS: bool = true;
    fn packet<P: Packet>(&mut self, event: PacketEvent<'_, P>) {
        if event.direction == Direction::Forward && matches!(event.moment, Moment::Sent(_)) && !event.packet.is_data() {
            self.0.push(event.now);
        }
    }
}

#[test]
fn control_that_is_a_process_of_its_own_leaves_on_time_while_data_is_worked_on() {
    let (beat, service) = (Duration::from_micros(700), SLOT * 5);
    let beats = |apart| {
        let sender = Beating { half: ArqSender::new(unpaced(100)), beat, due: Instant::ZERO, apart };
        let receiver = ArqReceiver::new(&unpaced(100));
        let setup = costing(10, service, Duration::from_micros(10));
        let mut run = Simulation::new(sender, receiver, backlog(200), &setup, Seed(1), Control::default()).unwrap();
        assert_eq!(run.run(), End::Delivered);
        run.into_observer().0
    };
    let on_time = beats(true);
    assert!(on_time.len() > 1000);
    assert!(on_time.windows(2).all(|pair| pair[1].since(pair[0]) == beat), "a beat was late");
    let late = beats(false);
    assert!(late.windows(2).skip(1).take(150).all(|pair| pair[1].since(pair[0]) >= service), "without, it waits as data does");
}

#[test]
fn control_has_losses_of_its_own() {
    let settings = Settings { markers: true, ..Settings::filling(Mode::SelectiveRepeat, 20) };
    for place in [LossPlace::Before, LossPlace::After] {
        let traffic = |control_loss: Option<&str>| {
            let mut setup = Setup { control_loss: control_loss.map(|spec| spec.parse().unwrap()), ..setup(20) };
            setup.forward.loss = "0.1".parse().unwrap();
            (setup.forward.loss_at, setup.back.loss_at) = (place, place);
            let mut run = pair(&settings, backlog(PACKETS), &setup, 1, ());
            assert_eq!(run.settle(), End::Settled);
            let (forward, back) = (run.traffic().forward, run.traffic().back);
            for direction in [forward, back] {
                let sent = direction.packets() + direction.path.duplicated;
                assert_eq!(sent, direction.accounted(), "a packet is nowhere");
                assert_eq!(direction.path.sent, direction.path.delivered - direction.path.duplicated + direction.path.lost);
            }
            (forward, back)
        };
        let (none, back) = traffic(Some("none"));
        assert_eq!((back.path.lost, back.data_arrived), (0, 0), "no control is lost");
        assert_eq!(back.arrived + back.in_flight, back.control_packets);
        let share = none.path.lost as f64 / none.data_packets as f64;
        assert!((share - 0.1).abs() < 0.02, "{share}");
        let (some, back) = traffic(Some("0.5"));
        let arrived = (some.arrived - some.data_arrived) as f64 / some.control_packets as f64;
        assert!((arrived - 0.5).abs() < 0.04, "{arrived}");
        assert!((back.path.lost as f64 / back.control_packets as f64 - 0.5).abs() < 0.04);
    }
}

#[test]
fn data_and_control_are_counted_apart_in_a_list_of_losses() {
    let settings = Settings { markers: true, ..Settings::filling(Mode::GoBackN, 4) };
    let mut setup = Setup { control_loss: Some("list:0".parse::<LossSpec>().unwrap()), ..setup(4) };
    setup.forward.loss = "list:3".parse().unwrap();
    let mut run = pair(&settings, backlog(20), &setup, 1, ());
    assert_eq!(run.settle(), End::Settled);
    let handed: Vec<_> = run.receiver().handed.iter().map(|handed| handed.1).take(6).collect();
    use crate::arq::Handed::{Data, Marker};
    assert_eq!(handed, [Data(0), Data(1), Marker(1), Data(2), Marker(2), Marker(3)], "the first marker and the fourth packet");
    assert_eq!(run.traffic().back.path.lost, 1, "and the first acknowledgment");
}
