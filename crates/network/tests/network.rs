//! What the network promises to the endpoints and to whoever tests them.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use segstream_base::endpoint::{Arrival, Deadline, Ecn, Endpoint, Local, Transmit};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_network::{Capture, Datagram, Event, EventLog, Fate, Fault, HostConfig, HostId, Middlebox, Network, Reception, Ruling, Step};
use segstream_path::{PathConfig, Probability};
use std::collections::VecDeque;
use std::net::SocketAddr;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn host_address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 4000))
}

/// What a talker was handed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Heard {
    now: Instant,
    arrival: Arrival,
    bytes: Vec<u8>,
}

/// Sends what it is told to, writes down what it hears, and answers it if it is to.
#[derive(Debug, Default)]
struct Talker {
    queue: VecDeque<(SocketAddr, Local, Vec<u8>)>,
    heard: Vec<Heard>,
    woken: Vec<Instant>,
    answers: bool,
    ecn: Option<Ecn>,
    timer: Option<Instant>,
    /// Its timer does not go out when it is served.
    stuck: bool,
}

impl Talker {
    fn say(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.queue.push_back((to, Local::ANY, bytes.to_vec()));
    }

    fn texts(&self) -> Vec<&str> {
        self.heard.iter().map(|heard| str::from_utf8(&heard.bytes).unwrap()).collect()
    }
}

impl Endpoint for Talker {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        if self.answers {
            self.queue.push_back((arrival.from, arrival.to, datagram.to_vec()));
        }
        self.heard.push(Heard { now, arrival, bytes: datagram.to_vec() });
        // What a seal does to a datagram.
        datagram.fill(0);
    }

    fn poll_transmit(&mut self, _now: Instant, _max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, from, bytes) = self.queue.pop_front()?;
        out.extend(&bytes);
        Some(Transmit { to, from, datagram_bytes: bytes.len(), ecn: self.ecn })
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        self.timer.map(|at| Deadline { at, timer: "alarm" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_some_and(|at| at <= now) {
            self.woken.push(now);
            self.timer = self.timer.filter(|_| self.stuck);
        }
    }
}

/// This many talkers with a route of `config` between any two.
fn talkers<M: Middlebox>(count: usize, config: &PathConfig, middlebox: M) -> Network<Talker, M> {
    let mut network = Network::with_middlebox(Seed(1), middlebox);
    for host in 0..count {
        network.add_host(Talker::default(), host_address(host));
    }
    network.route_everywhere(config).unwrap();
    network
}

fn delay(millis: u64) -> PathConfig {
    PathConfig { delay: ms(millis), ..PathConfig::default() }
}

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const C: HostId = HostId(2);

/// A chat of everyone with everyone over a bad path, with everything going wrong.
fn eventful_log(seed: u64) -> String {
    let bad = PathConfig {
        bandwidth: Some(Bandwidth::from_megabits_per_second(1)),
        jitter: ms(5).into(),
        loss: "20%".parse().unwrap(),
        duplicate: Probability::new(0.1).unwrap(),
        corrupt: Probability::new(0.1).unwrap(),
        ..delay(20)
    };
    let mut network = Network::with_middlebox(Seed(seed), EventLog::default());
    for host in 0..3 {
        network.add_host(Talker { answers: host > 0, ..Talker::default() }, host_address(host));
    }
    network.route_everywhere(&bad).unwrap();
    network.fault_at(at_ms(100), Fault::Pause(B));
    network.fault_at(at_ms(150), Fault::Resume(B));
    network.fault_at(at_ms(200), Fault::Rebind { host: A, inside: host_address(0), outside: address("192.0.2.1:9") });
    network.fault_at(at_ms(250), Fault::Burst { from: A, to: C, share: Probability::new(0.5).unwrap(), lasts: ms(60) });
    for millis in 0..400 {
        network[A].say(host_address(1 + millis % 2), format!("message {millis}").as_bytes());
        network.run_until(at_ms(millis as u64 + 1));
    }
    network.run_until(at_ms(1000));
    network.into_middlebox().as_str().to_owned()
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_seed_another() {
    let log = eventful_log(7);
    assert_eq!(log, eventful_log(7));
    assert_ne!(log, eventful_log(8));
    for what in ["sent", "got", "lost", "copy=", "damaged", "buffered", "fault pause h1", "undelivered", "192.0.2.1:9 > "] {
        assert!(log.contains(what), "{what} never happened");
    }
    let times: Vec<u64> = log.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted());
}

#[test]
fn the_clock_moves_only_when_nothing_is_left_to_do() {
    let mut network = talkers(3, &PathConfig::default(), EventLog::default());
    (network[B].answers, network[C].timer) = (true, Some(at_ms(5)));
    network[A].say(host_address(1), b"hello");
    let mut steps = Vec::new();
    while let Some(step) = network.step(at_ms(10)) {
        steps.push((network.now(), step));
    }
    assert_eq!(steps, [(Instant::ZERO, Step::Arrived(B)), (Instant::ZERO, Step::Arrived(A)), (at_ms(5), Step::Woken(C))]);
    network.run_until(at_ms(10));
    assert_eq!((network.now(), network[C].woken.as_slice()), (at_ms(10), [at_ms(5)].as_slice()));
    let expected = "0 h0 sent 10.0.0.1:4000 > 10.0.0.2:4000 bytes=5 arrives=0\n\
                    0 h1 got 10.0.0.1:4000 > 10.0.0.2:4000 bytes=5 handled\n\
                    0 h1 sent 10.0.0.2:4000 > 10.0.0.1:4000 bytes=5 arrives=0\n\
                    0 h0 got 10.0.0.2:4000 > 10.0.0.1:4000 bytes=5 handled\n\
                    5000000 h2 timer alarm\n";
    assert_eq!(network.middlebox().as_str(), expected);
}

#[test]
#[should_panic(expected = "time stands still at")]
fn a_deadline_that_does_not_move_is_told() {
    let mut network = talkers(1, &PathConfig::default(), ());
    (network[A].timer, network[A].stuck) = (Some(at_ms(1)), true);
    network.run_until(at_ms(2));
}

#[test]
fn tasks_arrivals_and_deadlines_of_one_instant_keep_their_order() {
    let mut network = Network::<Talker, (), &str>::with_tasks(Seed(1), ());
    let a = network.add_host(Talker { timer: Some(at_ms(20)), ..Talker::default() }, host_address(0));
    let b = network.add_host(Talker::default(), host_address(1));
    network.link(a, b, &delay(20)).unwrap();
    network.event_queue_mut().schedule(at_ms(20), "planned before");
    network[a].say(host_address(1), b"x");
    assert_eq!(network.step(at_ms(19)), None);
    network.event_queue_mut().schedule(at_ms(20), "planned after");
    let steps: Vec<_> = core::iter::from_fn(|| network.step(at_ms(20))).collect();
    assert_eq!(steps, [Step::Task("planned before"), Step::Arrived(b), Step::Task("planned after"), Step::Woken(a)]);
}

#[test]
fn each_path_keeps_its_own_fates_whatever_happens_elsewhere() {
    let config = PathConfig { loss: "30%".parse().unwrap(), ..delay(20) };
    let run = |disturbed: bool| {
        let mut network = talkers(3, &config, ());
        if disturbed {
            network.partition(&[A], &[B], ms(100));
        }
        for number in 0..300u64 {
            network.run_until(at_ms(number));
            network[A].say(host_address(1), format!("{number}").as_bytes());
            if disturbed {
                network[A].say(host_address(2), b"besides");
            }
        }
        network.run_until(at_ms(1000));
        assert_eq!(network.counters(A, B).sent, 300);
        network[B].texts().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (quiet, disturbed) = (run(false), run(true));
    assert!((150..270).contains(&quiet.len()), "{}", quiet.len());
    let open: Vec<_> = quiet.iter().filter(|text| text.parse::<u64>().unwrap() >= 100).cloned().collect();
    assert_eq!(disturbed, open, "what the partition lets pass is what the path lets pass");
}

#[test]
fn a_burst_loses_its_share_for_its_time() {
    let mut network = talkers(2, &delay(1), EventLog::default());
    network[A].say(host_address(1), b"before");
    network.run_until(at_ms(10));
    network.fault(Fault::Burst { from: A, to: B, share: Probability::new(1.0).unwrap(), lasts: ms(50) });
    for _ in 0..5 {
        network[A].say(host_address(1), b"during");
        network[B].say(host_address(0), b"the other way");
        network.run_until(network.now() + ms(10));
    }
    network[A].say(host_address(1), b"after");
    network.run_until(at_ms(100));
    assert_eq!(network[B].texts(), ["before", "after"]);
    assert_eq!((network[A].heard.len(), network.middlebox().count(" lost")), (5, 5));
}

#[test]
fn who_is_rebound_is_seen_elsewhere_and_hears_nothing_at_its_former_address() {
    let (inside, outside, new) = (host_address(0), address("192.0.2.1:1111"), address("192.0.2.1:2222"));
    let mut network = talkers(2, &delay(10), EventLog::default());
    network[B].answers = true;
    network.fault(Fault::Rebind { host: A, inside, outside });
    network[A].say(host_address(1), b"one");
    network.run_until(at_ms(15));
    assert_eq!((network.host_at(outside), network.host_at(inside)), (Some(A), None));
    // The answer to the first is in flight.
    network.fault(Fault::Rebind { host: A, inside, outside: new });
    network[A].say(host_address(1), b"two");
    network.run_until(at_ms(100));
    let from: Vec<SocketAddr> = network[B].heard.iter().map(|heard| heard.arrival.from).collect();
    assert_eq!(from, [outside, new]);
    assert_eq!(network[A].texts(), ["two"]);
    network[B].say(outside, b"late");
    network.run_until(at_ms(200));
    let log = network.middlebox();
    assert_eq!((log.count("undelivered"), log.count("unreachable")), (1, 1), "{}", log.as_str());
}

#[test]
fn a_paused_host_finds_its_socket_full_and_its_clock_advanced() {
    for timers_first in [false, true] {
        let mut network = Network::with_middlebox(Seed(1), EventLog::default());
        let a = network.add_host(Talker::default(), host_address(0));
        let config = HostConfig { clock: ms(5000), timers_first, socket_datagrams: 3, ..HostConfig::from(host_address(1)) };
        let b = network.add_host(Talker { timer: Some(at_ms(5010)), answers: true, ..Talker::default() }, config);
        network.link(a, b, &delay(1)).unwrap();
        assert_eq!((network.local_time(a), network.local_time(b)), (Instant::ZERO, at_ms(5000)));
        network.fault(Fault::Pause(b));
        for number in 0..5u8 {
            network.run_until(at_ms(u64::from(number) * 10));
            network[a].say(host_address(1), &[b'0' + number]);
        }
        network.run_until(at_ms(60));
        assert!(network[b].heard.is_empty() && network[a].heard.is_empty() && network.deadline(b).is_none());
        network.fault(Fault::Resume(b));
        network.run_until(at_ms(70));
        let times: Vec<(Instant, Instant)> = network[b].heard.iter().map(|heard| (heard.now, heard.arrival.received)).collect();
        assert_eq!(times, [(at_ms(5060), at_ms(5001)), (at_ms(5060), at_ms(5011)), (at_ms(5060), at_ms(5021))]);
        assert_eq!((network[b].woken.as_slice(), network[a].heard.len()), ([at_ms(5060)].as_slice(), 3));
        assert_eq!((network.middlebox().count("buffered"), network.middlebox().count("overflown")), (3, 2));
    }
}

#[test]
fn a_crashed_host_hears_nothing_and_one_that_starts_again_remembers_nothing() {
    let mut network = talkers(2, &delay(10), EventLog::default());
    network[B].timer = Some(at_ms(50));
    network[A].say(host_address(1), b"one");
    network.run_until(at_ms(20));
    network.fault(Fault::Crash(B));
    network[A].say(host_address(1), b"two");
    network.run_until(at_ms(60));
    assert!(network.get(B).is_none());
    network.restart(B, Talker::default());
    network[A].say(host_address(1), b"three");
    network.run_until(at_ms(100));
    assert_eq!((network[B].texts(), network[B].woken.len()), (vec!["three"], 0));
    assert_eq!((network.middlebox().count(" down"), network.middlebox().count("h1 restarted")), (1, 1));
}

#[test]
fn what_cannot_be_routed_is_told() {
    let mut network = Network::with_middlebox(Seed(1), EventLog::default());
    let both = [host_address(0), address("[fd00::1]:4000")];
    let a = network.add_host(Talker::default(), HostConfig::at(&both));
    let b = network.add_host(Talker::default(), HostConfig::at(&[address("[fd00::2]:4000")]));
    let c = network.add_host(Talker::default(), host_address(2));
    network.route(a, b, &delay(1)).unwrap();
    // From its address of the same family; where no route is; where no host is; to a family that it has no address of.
    for to in [address("[fd00::2]:4000"), host_address(2), address("203.0.113.1:1")] {
        network[a].say(to, b"x");
    }
    network[c].say(address("[fd00::1]:4000"), b"x");
    network.run_until(at_ms(10));
    assert_eq!(network[b].heard[0].arrival.from, address("[fd00::1]:4000"));
    assert_eq!((network.middlebox().count("arrives="), network.middlebox().count("unreachable")), (1, 3));
}

#[test]
fn a_host_with_several_addresses_is_told_which_was_asked_and_answers_from_it() {
    let addresses = ["10.0.0.2:4000", "10.1.0.2:4000", "[fd00::2]:4000"].map(address);
    let mut network = Network::new(Seed(1));
    let a = network.add_host(Talker::default(), HostConfig::at(&[host_address(0), address("[fd00::1]:4000")]));
    let b = network.add_host(Talker { answers: true, ..Talker::default() }, HostConfig::at(&addresses));
    network.link(a, b, &delay(1)).unwrap();
    for to in addresses {
        network[a].say(to, b"x");
    }
    // An address that is not the host's: nothing leaves from there.
    network[b].queue.push_back((host_address(0), Local { address: Some(address("10.9.9.9:1").ip()), interface: None }, vec![1]));
    network.run_until(at_ms(10));
    let asked: Vec<_> = network[b].heard.iter().map(|heard| heard.arrival.to.address.unwrap()).collect();
    assert_eq!(asked, addresses.map(|address| address.ip()));
    let answered: Vec<_> = network[a].heard.iter().map(|heard| heard.arrival.from).collect();
    assert_eq!(answered, addresses);
}

/// What is asked at an address behind a NAT is told as asked at the address that the host knows.
#[test]
fn a_host_behind_a_nat_knows_its_inside_address_only() {
    let outside = address("192.0.2.1:9");
    let mut network = talkers(2, &delay(1), ());
    network[A].answers = true;
    network.fault(Fault::Rebind { host: A, inside: host_address(0), outside });
    network[B].say(outside, b"x");
    network.run_until(at_ms(10));
    assert_eq!(network[A].heard[0].arrival.to.address, Some(host_address(0).ip()));
    assert_eq!(network[B].heard[0].arrival.from, outside);
}

#[test]
fn a_route_that_is_laid_again_is_another_path() {
    let mut network = talkers(2, &delay(10), ());
    network[A].say(host_address(1), b"slow");
    network.settle_all();
    network.link(A, B, &delay(1)).unwrap();
    network[A].say(host_address(1), b"fast");
    network.run_until(at_ms(20));
    assert_eq!(network[B].texts(), ["fast", "slow"]);
}

/// Rules as it is told, then passes everything.
#[derive(Default)]
struct Rules {
    rulings: VecDeque<Ruling>,
    fates: Vec<Fate>,
}

impl Middlebox for Rules {
    fn decide(&mut self, _now: Instant, datagram: &mut Datagram<'_>) -> Ruling {
        datagram.bytes[0] = datagram.bytes[0].to_ascii_uppercase();
        self.rulings.pop_front().unwrap_or_default()
    }

    fn observe(&mut self, _now: Instant, event: &Event<'_>) {
        if let Event::Sent { fate, .. } = event {
            self.fates.push(*fate);
        }
    }
}

#[test]
fn a_middlebox_drops_repeats_marks_and_changes_what_passes() {
    let rules = Rules { rulings: [Ruling::Drop, Ruling::Duplicate, Ruling::Mark].into(), fates: Vec::new() };
    let mut network = talkers(2, &delay(10), (rules, EventLog::default()));
    network[A].ecn = Some(Ecn::Ect0);
    for text in ["a", "b", "c", "d"] {
        network[A].say(host_address(1), text.as_bytes());
    }
    network.run_until(at_ms(20));
    assert_eq!(network[B].texts(), ["B", "B", "C", "D"]);
    let marks: Vec<_> = network[B].heard.iter().map(|heard| heard.arrival.ecn).collect();
    assert_eq!(marks, [Some(Ecn::Ect0), Some(Ecn::Ect0), Some(Ecn::CongestionExperienced), Some(Ecn::Ect0)]);
    let at = at_ms(10);
    let arrives = |copy| Fate::Arrives { at, copy, damaged: false };
    let (rules, log) = network.into_middlebox();
    assert_eq!(rules.fates, [Fate::Filtered, arrives(Some(at)), arrives(None), arrives(None)]);
    assert_eq!(log.count("filtered"), 1);
}

#[test]
fn a_damaged_header_reaches_no_socket_and_a_damaged_payload_differs_in_one_bit() {
    let config = PathConfig { corrupt: Probability::new(1.0).unwrap(), ..delay(1) };
    let mut network = talkers(2, &config, ());
    for _ in 0..200 {
        network[A].say(host_address(1), &[0; 28]);
    }
    network.run_until(at_ms(10));
    // Half of the bits are the header's; five standard deviations of a binomial with n = 200 and p = 1/2 are 35.
    let heard = &network[B].heard;
    assert!((65..135).contains(&heard.len()), "{}", heard.len());
    assert!(heard.iter().all(|heard| heard.bytes.iter().map(|byte| byte.count_ones()).sum::<u32>() == 1));
}

#[test]
fn what_is_injected_comes_from_whatever_address_it_names() {
    let mut network = talkers(2, &delay(10), ());
    assert_eq!(network.inject(B, address("203.0.113.66:6"), b"forged"), Reception::Handled);
    network.fault(Fault::Crash(A));
    assert_eq!(network.inject(A, address("203.0.113.66:6"), b"forged"), Reception::Down);
    let to = Local { address: Some(host_address(1).ip()), interface: None };
    assert_eq!(network[B].heard[0].arrival, Arrival { from: address("203.0.113.66:6"), to, ecn: None, received: Instant::ZERO });
}

#[test]
fn a_capture_has_what_its_host_sent_and_got_over_either_family() {
    for (mine, theirs) in [("10.0.0.1:7", "10.0.0.2:8"), ("[fd00::1]:7", "[fd00::2]:8")].map(|(a, b)| (address(a), address(b))) {
        let mut network = Network::with_middlebox(Seed(1), Capture::new(HostId(1), Vec::new()).unwrap());
        let a = network.add_host(Talker::default(), mine);
        let b = network.add_host(Talker { answers: true, ..Talker::default() }, theirs);
        network.link(a, b, &delay(3)).unwrap();
        network[a].say(theirs, b"hello");
        network.run_until(at_ms(10));
        let capture = network.into_middlebox().finish().unwrap();
        let mut reader = PcapReader::new(capture.as_slice()).unwrap();
        let mut seen = Vec::new();
        while let Some(packet) = reader.next_packet() {
            let packet = packet.unwrap();
            let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
            let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("{sliced:?}") };
            assert_eq!(matches!(sliced.net, Some(NetSlice::Ipv4(_))), mine.is_ipv4());
            seen.push((packet.timestamp.as_millis(), udp.source_port(), udp.destination_port(), udp.payload().to_vec()));
        }
        assert_eq!(seen, [(3, 7, 8, b"hello".to_vec()), (3, 8, 7, b"hello".to_vec())]);
    }
}
