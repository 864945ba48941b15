//! Keep-alive packets on each tick of the bursts, and ends that close in silence (EC 4.1, FC 3.3).

use super::driver::{Fate, Net, Way};
use super::*;
use segstream_base::halves::{Deadline, SenderEvent, Verdict};
use segstream_base::{Duration, SegmentNumber};

/// F.
const PER_SECOND: u32 = 100;

/// Bursts of a segment, and a keep-alive packet on each tick of an empty queue.
fn ticking() -> Config {
    let rate = RateSpec::new(Bandwidth::from_megabits_per_second(10), PER_SECOND, 8).unwrap();
    Config { rate, keep_alive: KeepAlive::Tick, ..small() }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// What leaves before `until`, nothing being heard, and when.
fn left(sender: &mut Sender, until: Instant) -> Vec<(Instant, Forward)> {
    let mut packets = Vec::new();
    let mut now = Instant::ZERO;
    while now < until {
        packets.extend(std::iter::from_fn(|| sender.poll_transmit(now)).map(|packet| (now, packet)));
        let Some(Deadline { at, .. }) = sender.poll_timeout() else { break };
        now = at;
        sender.handle_timeout(now);
    }
    packets
}

#[test]
fn an_empty_queue_is_told_once_a_tick_and_ends_its_burst() {
    let config = ticking();
    let mut sender = Sender::new(config, Instant::ZERO).unwrap();
    sender.submit(Instant::ZERO, whole_segment(&config)).unwrap();
    let packets = left(&mut sender, at(55));
    let data = packets.iter().filter(|(_, packet)| matches!(packet, Forward::Data(_))).count();
    let idle: Vec<Instant> = packets.iter().filter(|(_, packet)| matches!(packet, Forward::KeepAlive(_))).map(|(at, _)| *at).collect();
    // The segment is the whole first burst, L = s: the first idle packet leaves with the next tick.
    assert_eq!((data, &idle[..]), (8, &[at(10), at(20), at(30), at(40), at(50)][..]));
    // What is submitted behind the idle packet of a tick waits for the next one.
    sender.submit(at(51), whole_segment(&config)).unwrap();
    assert!(sender.poll_transmit(at(51)).is_none());
    assert_eq!(sender.poll_timeout(), Some(Deadline { at: at(60), timer: "pace" }));
    assert!(matches!(sender.poll_transmit(at(60)), Some(Forward::Data(_))));
}

#[test]
fn everything_arrives_with_keep_alive_packets_on_ticks_when_a_third_of_all_packets_is_lost() {
    let mut random = segstream_base::random::Seed(27).stream("fate");
    let fate = move |_, _: &Way| -> Fate { (!random.chance(0.3)).then_some(Duration::ZERO) };
    let mut net = Net::new(ticking(), 40, fate);
    net.run(Duration::from_secs(60));
    assert_eq!((net.outcome.ended, net.outcome.delivered.len(), net.outcome.judged.len()), (Some(40), 40, 40));
}

#[test]
fn keep_alive_packets_keep_a_receiver_open_that_closes_without_them() {
    // A pause of 200 ms, twenty ticks; the receiver closes after five.
    for (keep_alives, closed) in [(true, 0.0), (false, 1.0)] {
        let config = Config { close_after: Some(Duration::from_millis(50)), ..ticking() };
        let mut sender = Sender::new(Config { close_after: None, ..config }, Instant::ZERO).unwrap();
        let mut receiver = Receiver::new(config, Instant::ZERO).unwrap();
        sender.submit(Instant::ZERO, whole_segment(&config)).unwrap();
        for (at, packet) in left(&mut sender, at(200)) {
            if matches!(packet, Forward::Data(_)) || keep_alives {
                receiver.handle_timeout(at);
                receiver.handle_forward(at, &packet);
            }
        }
        receiver.handle_timeout(at(200));
        assert_eq!(gauge(&receiver, "closed"), closed, "keep-alive packets: {keep_alives}");
        let answers = feedback(&mut receiver, at(200)).len();
        assert_eq!(answers == 0, closed == 1.0, "{answers} answers");
        assert_eq!(receiver.poll_timeout().is_none(), closed == 1.0);
    }
}

#[test]
fn a_sender_whose_receiver_has_closed_closes_too_and_says_what_it_does_not_know() {
    let config = Config { close_after: Some(Duration::from_millis(200)), ..ticking() };
    // The path breaks for good in the middle of the third segment, for both directions.
    let fate = |now: Instant, _: &Way| -> Fate { (now < at(24)).then_some(Duration::ZERO) };
    let mut net = Net::new(config, 12, fate);
    net.run(Duration::from_secs(2));
    assert_eq!((gauge(&net.receiver, "closed"), sender_gauge(&net.sender, "closed")), (1.0, 1.0));
    assert_eq!(net.outcome.ended, None);
    let unknown = net.outcome.judged.values().filter(|verdict| **verdict == Verdict::Unknown).count();
    // Segments 0 to 7 were taken, twice the window; of none an answer was heard, since a round trip is 60 ms.
    assert_eq!((unknown, net.outcome.judged.len()), (8, 8));
    assert!(net.sender.poll_timeout().is_none() && net.receiver.poll_timeout().is_none());
    assert!(net.sender.submit(net.now, whole_segment(&config)).is_err());
}

#[test]
fn an_end_that_has_nothing_to_wait_for_does_not_close() {
    let config = Config { close_after: Some(Duration::from_millis(100)), ..ticking() };
    let mut net = Net::new(config, 3, |_, _: &Way| Some(Duration::ZERO));
    net.run(Duration::from_secs(2));
    assert_eq!((net.outcome.ended, gauge(&net.receiver, "closed"), sender_gauge(&net.sender, "closed")), (Some(3), 0.0, 0.0));
    assert!(net.outcome.judged.values().all(|verdict| *verdict == Verdict::Complete));
    // Nothing is told twice.
    assert!(
        std::iter::from_fn(|| net.sender.poll_event()).all(|event| !matches!(event, SenderEvent::Judged { segment: SegmentNumber(_), .. }))
    );
}

#[test]
fn ticks_without_bursts_and_silence_without_keep_alive_packets_are_refused() {
    let smooth = Config { keep_alive: KeepAlive::Tick, ..small() };
    assert!(smooth.check().unwrap_err().to_string().contains("no ticks"));
    let ideal = Config { close_after: Some(Duration::from_secs(1)), ..operating_point(4, 4) };
    assert!(ideal.check().unwrap_err().to_string().contains("no keep-alive packets"));
}

/// The gauge of this name.
struct One(&'static str, f64);

impl segstream_base::halves::Probe for One {
    fn gauge(&mut self, name: &'static str, value: f64) {
        if name == self.0 {
            self.1 = value;
        }
    }
}

fn gauge(receiver: &Receiver, name: &'static str) -> f64 {
    let mut one = One(name, f64::NAN);
    receiver.probe(&mut one);
    one.1
}

fn sender_gauge(sender: &Sender, name: &'static str) -> f64 {
    let mut one = One(name, f64::NAN);
    sender.probe(&mut one);
    one.1
}
