//! The link emulator over real sockets of this machine.

use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_net::link::{Link, LinkConfig, LinkError, LinkReport, RelayCounters};
use segstream_path::{PathConfig, PathCounters, Probability, QueueLimit};
use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

const FAMILIES: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

/// A socket that gives up after ten seconds, so that a broken link fails a test instead of hanging it.
fn socket(any: &str) -> UdpSocket {
    let socket = UdpSocket::bind(any).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    socket
}

fn config(any: &str, server: &UdpSocket) -> LinkConfig {
    LinkConfig::new(any.parse().unwrap(), server.local_addr().unwrap())
}

fn delayed(millis: u64) -> PathConfig {
    PathConfig { delay: Duration::from_millis(millis), ..PathConfig::default() }
}

/// Runs a link beside `work`, which is given its address.
fn with_link<T>(config: &LinkConfig, work: impl FnOnce(SocketAddr) -> T) -> (T, LinkReport) {
    let link = Link::bind(config).unwrap();
    let (address, stop) = (link.local_addr(), AtomicBool::new(false));
    let (done, report) = thread::scope(|scope| {
        let relay = scope.spawn(|| link.run(&stop));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(address)));
        stop.store(true, Ordering::Relaxed);
        (done, relay.join().unwrap().unwrap())
    });
    let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert_accounted(report.forward, report.forward_relayed);
    assert_accounted(report.back, report.back_relayed);
    assert_eq!(report.lateness.datagrams, report.forward_relayed.sent + report.back_relayed.sent);
    (done, report)
}

fn assert_accounted(path: PathCounters, relayed: RelayCounters) {
    let RelayCounters { sent, dropped_limit, dropped_send_buffer, dropped_refused, dropped_client_gone, unsent } = relayed;
    assert_eq!(path.sent, path.delivered - path.duplicated + path.lost + path.dropped_queue + path.dropped_aqm + path.dropped_policer);
    assert_eq!(path.delivered, sent + dropped_limit + dropped_send_buffer + dropped_refused + dropped_client_gone + unsent);
}

/// Receives numbers until `last` has come or nothing more does.
fn receive_numbers(socket: &UdpSocket, last: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.last() != Some(&last) {
        let mut buffer = [0; 2048];
        let Ok((length, _)) = socket.recv_from(&mut buffer) else { break };
        assert!(length >= 4);
        numbers.push(u32::from_be_bytes(std::array::from_fn(|n| buffer[n])));
    }
    numbers
}

fn send_number(socket: &UdpSocket, to: SocketAddr, number: u32, bytes: usize) {
    let mut datagram = vec![0; bytes];
    datagram[..4].copy_from_slice(&number.to_be_bytes());
    socket.send_to(&datagram, to).unwrap();
}

#[test]
fn it_relays_both_ways_and_delays_at_least_as_told() {
    for any in FAMILIES {
        let (server, client) = (socket(any), socket(any));
        let config = LinkConfig { forward: delayed(20), back: delayed(30), ..config(any, &server) };
        let (_, report) = with_link(&config, |link| {
            for number in 0..5u32 {
                let started = Instant::now();
                send_number(&client, link, number, 100);
                let mut buffer = [0; 2048];
                let (length, upstream) = server.recv_from(&mut buffer).unwrap();
                assert!(started.elapsed() >= std::time::Duration::from_millis(20));
                assert_ne!(upstream, client.local_addr().unwrap());
                server.send_to(&buffer[..length], upstream).unwrap();
                let (length, from) = client.recv_from(&mut buffer).unwrap();
                assert!(started.elapsed() >= std::time::Duration::from_millis(50));
                assert_eq!((length, from, &buffer[..4]), (100, link, &number.to_be_bytes()[..]));
            }
        });
        assert_eq!((report.forward_relayed.sent, report.back_relayed.sent, report.clients), (5, 5, 1));
        assert_eq!(report.unroutable, 0);
    }
}

#[test]
fn it_loses_exactly_the_listed_datagrams_of_each_direction() {
    for any in FAMILIES {
        let (server, client) = (socket(any), socket(any));
        let mut config = LinkConfig { forward: delayed(5), back: delayed(5), ..config(any, &server) };
        config.forward.loss = "list:0,5,17,18".parse().unwrap();
        config.back.loss = "list:3,98".parse().unwrap();
        let ((there, back), report) = with_link(&config, |link| {
            (0..100).for_each(|number| send_number(&client, link, number, 200));
            let there = receive_numbers(&server, 99);
            // Where the client's datagrams come from is where answers go.
            send_number(&client, link, 1000, 200);
            let upstream = server.recv_from(&mut [0; 2048]).unwrap().1;
            (0..100).for_each(|number| send_number(&server, upstream, number, 200));
            (there, receive_numbers(&client, 99))
        });
        let without = |lost: &[u32]| (0..100).filter(|number| !lost.contains(number)).collect::<Vec<u32>>();
        assert_eq!(there, without(&[0, 5, 17, 18]));
        assert_eq!(back, without(&[3, 98]));
        assert_eq!((report.forward.lost, report.back.lost), (4, 2));
    }
}

#[test]
fn datagrams_of_all_sizes_keep_their_bytes_and_their_order() {
    let (server, client) = (socket(FAMILIES[0]), socket(FAMILIES[0]));
    let sizes: Vec<usize> = (0..300).map(|n| [4, 1100, 1100, 1100, 37, 9000, 1400][n % 7]).collect();
    let config = LinkConfig { forward: delayed(10), ..config(FAMILIES[0], &server) };
    let ((), _) = with_link(&config, |link| {
        let numbered: Vec<(u32, usize)> = (0..).zip(sizes).collect();
        // In portions that the server's receive buffer holds.
        for portion in numbered.chunks(28) {
            for (number, bytes) in portion {
                let datagram: Vec<u8> = (0..*bytes).map(|n| (n as u32 * 7 + number) as u8).collect();
                client.send_to(&datagram, link).unwrap();
            }
            for (number, bytes) in portion {
                let mut buffer = [0; 10_000];
                let (length, _) = server.recv_from(&mut buffer).unwrap();
                assert_eq!(length, *bytes, "datagram {number}");
                assert!(buffer[..length].iter().enumerate().all(|(n, byte)| *byte == (n as u32 * 7 + number) as u8));
            }
        }
    });
}

#[test]
fn the_queue_is_filled_by_whole_packets() {
    // 1000 bit/s: nothing leaves during the test but the first. A packet of 100 bytes fills the queue with 128 on IPv4 and
    // with 148 on IPv6, of which 10 and 8 fit.
    for (any, waiting) in FAMILIES.into_iter().zip([10, 8]) {
        let (server, client) = (socket(any), socket(any));
        let mut config = config(any, &server);
        config.forward.bandwidth = Some(Bandwidth::from_bits_per_second(1000));
        config.forward.queue = QueueLimit::Bytes(Bytes::new(1280));
        config.back = delayed(1);
        let (_, report) = with_link(&config, |link| {
            (0..50).for_each(|number| send_number(&client, link, number, 100));
            receive_numbers(&server, 0)
        });
        assert_eq!(report.forward.dropped_queue, 50 - 1 - waiting);
        assert_eq!(report.forward_relayed.unsent, waiting);
    }
}

#[test]
fn corruption_flips_one_bit_and_duplication_sends_two() {
    let (server, client) = (socket(FAMILIES[0]), socket(FAMILIES[0]));
    let mut config = LinkConfig { seed: Seed(3), ..config(FAMILIES[0], &server) };
    config.forward.corrupt = Probability::new(0.5).unwrap();
    config.forward.duplicate = Probability::new(1.0).unwrap();
    let (flipped, report) = with_link(&config, |link| {
        let mut flipped = 0;
        for _ in 0..200 {
            client.send_to(&[0; 50], link).unwrap();
            let ones = [0, 1].map(|_| {
                let mut buffer = [0; 100];
                assert_eq!(server.recv_from(&mut buffer).unwrap().0, 50);
                buffer.iter().map(|byte| byte.count_ones()).sum::<u32>()
            });
            assert!(ones == [0, 0] || ones == [1, 1]);
            flipped += u64::from(ones[0]);
        }
        flipped
    });
    assert_eq!(report.forward.corrupted, flipped);
    assert!(flipped > 50 && flipped < 150);
    assert_eq!((report.forward.duplicated, report.forward_relayed.sent), (200, 400));
}

#[test]
fn reordered_datagrams_arrive_late_and_none_is_missing() {
    let (server, client) = (socket(FAMILIES[0]), socket(FAMILIES[0]));
    let mut config = LinkConfig { forward: delayed(5), ..config(FAMILIES[0], &server) };
    config.forward.bandwidth = Some(Bandwidth::from_megabits_per_second(10));
    config.forward.reorder = "10%:distance=3".parse().unwrap();
    let (numbers, report) = with_link(&config, |link| {
        (0..200).for_each(|number| send_number(&client, link, number, 200));
        let mut numbers = Vec::new();
        for _ in 0..200 {
            let mut buffer = [0; 2048];
            server.recv_from(&mut buffer).unwrap();
            numbers.push(u32::from_be_bytes(std::array::from_fn(|n| buffer[n])));
        }
        numbers
    });
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), 200);
    let late = numbers.iter().enumerate().filter(|(place, number)| numbers[..*place].iter().any(|before| before > number)).count();
    assert!(late > 0);
    assert_eq!(late as u64, report.forward.reordered);
}

#[test]
fn every_client_gets_its_own_answers_and_the_oldest_makes_room() {
    let server = socket(FAMILIES[0]);
    let config = config(FAMILIES[0], &server);
    let clients: Vec<UdpSocket> = (0..70).map(|_| socket(FAMILIES[0])).collect();
    let (_, report) = with_link(&config, |link| {
        for (number, client) in (0u32..).zip(&clients) {
            send_number(client, link, number, 20);
            let mut buffer = [0; 100];
            let (length, upstream) = server.recv_from(&mut buffer).unwrap();
            server.send_to(&buffer[..length], upstream).unwrap();
            assert_eq!(receive_numbers(client, number), [number]);
        }
    });
    assert_eq!((report.clients, report.clients_evicted), (70, 6));
}

#[test]
fn strangers_are_not_let_in_at_the_far_side() {
    let (server, client, stranger) = (socket(FAMILIES[0]), socket(FAMILIES[0]), socket(FAMILIES[0]));
    let (_, report) = with_link(&config(FAMILIES[0], &server), |link| {
        send_number(&client, link, 1, 20);
        let upstream = server.recv_from(&mut [0; 100]).unwrap().1;
        let upstream = SocketAddr::new(link.ip(), upstream.port());
        send_number(&stranger, upstream, 2, 20);
        send_number(&server, upstream, 3, 20);
        assert_eq!(receive_numbers(&client, 3), [3]);
    });
    assert_eq!((report.unroutable, report.back.sent), (1, 1));
}

#[test]
fn nobody_who_listens_ends_nothing() {
    let client = socket(FAMILIES[0]);
    let gone = socket(FAMILIES[0]).local_addr().unwrap();
    let config = LinkConfig::new(FAMILIES[0].parse().unwrap(), gone);
    let (_, report) = with_link(&config, |link| {
        for number in 0..100 {
            send_number(&client, link, number, 20);
            thread::sleep(std::time::Duration::from_millis(1));
        }
        thread::sleep(std::time::Duration::from_millis(50));
    });
    assert_eq!(report.forward.sent, 100);
}

#[test]
fn four_busy_threads_lose_nothing_but_what_is_told() {
    let server = socket(FAMILIES[0]);
    let mut config = config(FAMILIES[0], &server);
    config.forward = PathConfig { loss: "10%".parse().unwrap(), jitter: Duration::from_millis(2).into(), ..delayed(3) };
    config.back = PathConfig { reorder: "5%:delay=1ms".parse().unwrap(), ..delayed(3) };
    let (busy, all_known) = (AtomicBool::new(true), Barrier::new(4));
    let (answers, report) = with_link(&config, |link| {
        thread::scope(|scope| {
            let echo = scope.spawn(|| echo_while(&server, &busy));
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| exchange_for_a_while(link, &all_known))).collect();
            let answers = clients.into_iter().map(|client| client.join().unwrap()).sum::<u64>();
            busy.store(false, Ordering::Relaxed);
            echo.join().unwrap();
            answers
        })
    });
    assert!(answers > 0);
    assert_eq!(report.clients, 4);
    assert!(report.forward.lost > 0);
}

fn echo_while(server: &UdpSocket, busy: &AtomicBool) {
    server.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2048];
    while busy.load(Ordering::Relaxed) {
        match server.recv_from(&mut buffer) {
            Ok((length, from)) => drop(server.send_to(&buffer[..length], from)),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}

/// Sends without rest for a third of a second, once every client has had an answer, and counts the answers.
fn exchange_for_a_while(link: SocketAddr, all_known: &Barrier) -> u64 {
    let socket = socket(FAMILIES[0]);
    socket.set_nonblocking(true).unwrap();
    let (mut buffer, mut answers) = ([0; 2048], 0);
    // Why: the others fill the receive buffer of the link's socket, and the kernel drops what finds it full.
    while socket.recv_from(&mut buffer).is_err() {
        let _ = socket.send_to(&[1; 500], link);
        thread::sleep(std::time::Duration::from_millis(1));
    }
    all_known.wait();
    let started = Instant::now();
    while started.elapsed() < std::time::Duration::from_millis(333) {
        let _ = socket.send_to(&[1; 500], link);
        answers += u64::from(socket.recv_from(&mut buffer).is_ok());
    }
    answers
}

#[test]
fn it_ends_when_told_whatever_is_on_its_way() {
    let (server, client) = (socket(FAMILIES[0]), socket(FAMILIES[0]));
    let config = LinkConfig { forward: delayed(3_600_000), ..config(FAMILIES[0], &server) };
    let (_, report) = with_link(&config, |link| {
        send_number(&client, link, 1, 20);
        thread::sleep(std::time::Duration::from_millis(100));
    });
    assert_eq!((report.forward.delivered, report.forward_relayed.unsent), (1, 1));
}

#[test]
fn what_cannot_be_relayed_is_refused_with_a_sentence() {
    let server = socket(FAMILIES[0]);
    let listen: SocketAddr = FAMILIES[0].parse().unwrap();
    for to in ["0.0.0.0:4433", "127.0.0.1:0", "[::]:4433"] {
        let error = Link::bind(&LinkConfig::new(listen, to.parse().unwrap())).map(|_| ()).unwrap_err();
        assert!(matches!(error, LinkError::UnusableDestination { .. }));
        assert!(error.to_string().contains(to), "{error}");
    }
    let mut config = config(FAMILIES[0], &server);
    config.back.bandwidth = Some(Bandwidth::ZERO);
    let sentence = Link::bind(&config).map(|_| ()).unwrap_err().to_string();
    assert!(sentence.starts_with("the back path cannot be emulated: a bandwidth of 0 bit/s"), "{sentence}");
    let taken = server.local_addr().unwrap();
    let error = Link::bind(&LinkConfig::new(taken, listen_port(listen, 9))).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
    let free = socket(FAMILIES[0]).local_addr().unwrap();
    let error = Link::bind(&LinkConfig::new(free, free)).map(|_| ()).unwrap_err();
    assert!(matches!(error, LinkError::RelaysToItself { .. }));
}

fn listen_port(address: SocketAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address.ip(), port)
}
