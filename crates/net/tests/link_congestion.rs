//! Congestion over real sockets of this machine: marks, managed queues, policers and changing bandwidths of the link.

use segstream_base::endpoint::{Ecn, Local, Transmit};
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_net::bind::SocketConfig;
use segstream_net::clock::Clock;
use segstream_net::link::{Link, LinkConfig, LinkReport};
use segstream_net::receive::ReceiveBatch;
use segstream_net::socket::{Interest, SendOutcome, Socket};
use segstream_path::{Aqm, PathConfig, Policer, QueueLimit};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const FAMILIES: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

fn socket(any: &str) -> Socket {
    Socket::bind(any.parse().unwrap(), &SocketConfig::default()).unwrap()
}

/// Runs a link with this path forward beside `work`, which is given its address.
fn with_link<T>(any: &str, server: &Socket, forward: PathConfig, work: impl FnOnce(SocketAddr) -> T) -> (T, LinkReport) {
    let config = LinkConfig { forward, ..LinkConfig::new(any.parse().unwrap(), server.local_addr()) };
    let link = Link::bind(&config).unwrap();
    let (address, stop) = (link.local_addr(), AtomicBool::new(false));
    thread::scope(|scope| {
        let relay = scope.spawn(|| link.run(&stop));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(address)));
        stop.store(true, Ordering::Relaxed);
        let report = relay.join().unwrap().unwrap();
        (done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), report)
    })
}

fn send(client: &Socket, to: SocketAddr, number: u8, ecn: Option<Ecn>) {
    let datagram = [number; 100];
    assert_eq!(client.send(&Transmit { to, from: Local::ANY, datagram_bytes: datagram.len(), ecn }, &datagram), SendOutcome::Sent);
}

/// The numbers and marks of the next `count` datagrams; fewer when none comes for five seconds.
fn receive(server: &Socket, count: usize) -> Vec<(u8, Option<Ecn>)> {
    let mut batch = ReceiveBatch::new(Clock::start());
    let mut received = Vec::new();
    while received.len() < count {
        if server.receive(&mut batch).unwrap() > 0 {
            received.extend(batch.datagrams().map(|(datagram, arrival)| (datagram[0], arrival.ecn)));
        } else if !server.wait(Some(std::time::Duration::from_secs(5)), Interest::Readable, &[]).unwrap().readable {
            break;
        }
    }
    received
}

/// 128 kbit/s: a datagram of 100 bytes takes 8 ms on IPv4 and 9.25 ms on IPv6.
fn slow() -> PathConfig {
    PathConfig { bandwidth: Some(Bandwidth::from_bits_per_second(128_000)), queue: QueueLimit::UNLIMITED, ..PathConfig::default() }
}

#[test]
fn marks_pass_through_and_datagrams_that_wait_too_long_leave_marked() {
    let kinds = [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::CongestionExperienced)];
    for any in FAMILIES {
        let (server, client) = (socket(any), socket(any));
        let forward = PathConfig { mark_above: Some(Duration::from_millis(60)), ..slow() };
        let (received, report) = with_link(any, &server, forward, |link| {
            (0..40u8).for_each(|number| send(&client, link, number, kinds[usize::from(number % 4)]));
            receive(&server, 40)
        });
        assert_eq!(received.len(), 40, "{report:?}");
        let ce = Some(Ecn::CongestionExperienced);
        for (number, ecn) in &received {
            let sent = kinds[usize::from(number % 4)];
            assert!(*ecn == sent || (*ecn == ce && sent.is_some()), "{number}: {sent:?} became {ecn:?}");
        }
        // All were sent at once but for what the machine took: the first did not wait, the last waited over 300 ms.
        assert_eq!(received[..3], [(0, kinds[0]), (1, kinds[1]), (2, kinds[2])]);
        assert_eq!(received[36..], [(36, None), (37, ce), (38, ce), (39, ce)]);
        let marked = received.iter().filter(|(number, ecn)| number % 4 != 3 && *ecn == ce).count() as u64;
        assert!(report.forward.marked >= marked && report.forward.marked <= 30, "{report:?}");
        assert_eq!(report.forward_queueing.packets, 40);
        assert!(report.forward_queueing.max > Duration::from_millis(60), "{report:?}");
        assert!(report.forward_queueing.mean < report.forward_queueing.p95, "{report:?}");
        assert_eq!((report.back_queueing.packets, report.back.sent), (0, 0));
    }
}

#[test]
fn codel_marks_who_can_be_marked_and_drops_others() {
    let aqm = Aqm::CoDel { target: Duration::from_millis(10), interval: Duration::from_millis(40) };
    for ecn in [None, Some(Ecn::Ect0)] {
        let (server, client) = (socket(FAMILIES[0]), socket(FAMILIES[0]));
        // A packet of 1500 bytes takes 12 ms, which is the target then.
        let forward = PathConfig { bandwidth: Some(Bandwidth::from_megabits_per_second(1)), aqm, ..slow() };
        let (received, report) = with_link(FAMILIES[0], &server, forward, |link| {
            (0..200u8).for_each(|number| send(&client, link, number, ecn));
            // What is not dropped takes some 200 ms.
            receive(&server, if ecn.is_some() { 200 } else { 180 })
        });
        let counters = report.forward;
        assert_eq!(counters.sent, counters.delivered + counters.dropped_aqm);
        let marked = received.iter().filter(|(_, ecn)| *ecn == Some(Ecn::CongestionExperienced)).count() as u64;
        assert_eq!(counters.dropped_aqm > 0, ecn.is_none(), "{counters:?}");
        assert_eq!(marked, counters.marked);
        assert_eq!(marked > 0, ecn.is_some(), "{counters:?}");
    }
}

#[test]
fn a_policer_in_front_and_an_outage_behind_do_to_datagrams_what_they_do_to_packets() {
    let (server, client) = (socket(FAMILIES[0]), socket(FAMILIES[0]));
    // Ten packets of 128 bytes pass, then hardly anything; they leave when the outage of the first half second is over.
    let policer = Some(Policer { rate: Bandwidth::from_bits_per_second(1), burst: Bytes::new(1280) });
    let trace = "0s:0bit,500ms:1mbit".parse().unwrap();
    let forward = PathConfig { trace, policer, ..PathConfig::default() };
    let started = std::time::Instant::now();
    let (received, report) = with_link(FAMILIES[0], &server, forward, |link| {
        (0..30u8).for_each(|number| send(&client, link, number, None));
        receive(&server, 10)
    });
    assert_eq!(received.iter().map(|(number, _)| *number).collect::<Vec<u8>>(), (0..10).collect::<Vec<u8>>());
    assert!(started.elapsed() >= std::time::Duration::from_millis(500));
    assert_eq!((report.forward.delivered, report.forward.dropped_policer), (10, 20));
}
