//! The blocking driver over loopback.

use crate::pair::{Alarm, Caller, Echo, bind};
use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Local, Transmit};
use segstream_base::{Duration, Instant};
use segstream_net::Clock;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::driver::{DriverConfig, Threads};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Every choice of threads.
const THREADS: [Threads; 4] = [Threads::One, Threads::Sending, Threads::Receiving, Threads::Both];

fn driver(address: &str) -> BlockingDriver {
    on_threads(address, Threads::One)
}

fn on_threads(address: &str, threads: Threads) -> BlockingDriver {
    BlockingDriver::new(bind(address), Clock::start(), DriverConfig { threads, ..DriverConfig::default() }).expect("a driver")
}

fn exchange(echo_address: &str, call: impl Fn(SocketAddr) -> SocketAddr, caller_address: &str, config: DriverConfig) {
    let mut echo_driver = on_threads(echo_address, config.threads);
    let to = call(echo_driver.socket().local_addr());
    let (waker, stop) = (echo_driver.waker(), AtomicBool::new(false));
    thread::scope(|scope| {
        let echoing = scope.spawn(|| {
            let mut echo = Echo::default();
            while !stop.load(Ordering::Acquire) {
                echo_driver.turn(&mut echo, None).expect("a turn");
            }
            echo.echoed
        });
        let mut calling = BlockingDriver::new(bind(caller_address), Clock::start(), config).expect("a driver");
        let mut caller = Caller::new(to, 10_000, 1_200);
        while !caller.is_done() {
            calling.turn(&mut caller, None).expect("a turn");
        }
        stop.store(true, Ordering::Release);
        waker.wake();
        assert!(echoing.join().expect("no panic") >= 10_000);
        assert!(!caller.times_went_backward);
        assert!(calling.socket().counters().datagrams_received >= 10_000);
        assert!(caller.marks >= 10_000, "{} of 10000 datagrams kept their mark", caller.marks);
    });
}

#[test]
fn ten_thousand_datagrams_come_back_over_ipv4() {
    exchange("127.0.0.1:0", |to| to, "127.0.0.1:0", DriverConfig::default());
}

#[test]
fn ten_thousand_datagrams_come_back_over_ipv6() {
    exchange("[::1]:0", |to| to, "[::1]:0", DriverConfig::default());
}

#[test]
fn a_socket_for_all_addresses_knows_an_ipv4_peer_by_its_ipv4_address() {
    exchange("[::]:0", |to| ([127, 0, 0, 1], to.port()).into(), "127.0.0.1:0", DriverConfig::default());
}

#[test]
fn ten_thousand_datagrams_come_back_one_a_call() {
    let config = DriverConfig { datagrams_per_send: 1, ..DriverConfig::default() };
    exchange("127.0.0.1:0", |to| to, "127.0.0.1:0", config);
}

#[test]
fn ten_thousand_datagrams_come_back_whatever_has_a_thread_of_its_own() {
    for threads in THREADS {
        exchange("127.0.0.1:0", |to| to, "127.0.0.1:0", DriverConfig { threads, ..DriverConfig::default() });
    }
}

/// Gives numbers from 0 on, as many as it is asked for.
struct Numbers {
    to: SocketAddr,
    next: u32,
    end: u32,
}

impl Endpoint for Numbers {
    fn handle_datagram(&mut self, _: Instant, _: Arrival, _: &mut [u8]) {}

    fn poll_transmit(&mut self, _: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let before = self.next;
        while self.next < self.end && ((self.next - before) as usize) < max_datagrams {
            out.extend_from_slice(&self.next.to_be_bytes());
            self.next += 1;
        }
        (self.next > before).then_some(Transmit { to: self.to, from: Local::ANY, datagram_bytes: 4, ecn: None })
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

/// Collects them.
#[derive(Default)]
struct Collected(Vec<u32>);

impl Endpoint for Collected {
    fn handle_datagram(&mut self, _: Instant, _: Arrival, datagram: &mut [u8]) {
        self.0.push(u32::from_be_bytes(datagram.try_into().expect("four bytes")));
    }

    fn poll_transmit(&mut self, _: Instant, _: usize, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

#[test]
fn what_was_written_leaves_and_arrives_in_order_even_if_the_driver_is_dropped_at_once() {
    for threads in THREADS {
        let mut to = on_threads("127.0.0.1:0", threads);
        let mut from = on_threads("127.0.0.1:0", threads);
        let mut numbers = Numbers { to: to.socket().local_addr(), next: 0, end: 900 };
        let mut collected = Collected::default();
        // Until all is written, and the last of it taken.
        while from.turn(&mut numbers, None).expect("a turn").blocked || numbers.next < numbers.end {}
        drop(from);
        while collected.0.len() < 900 {
            let until = to.clock().now() + Duration::from_secs(5);
            assert!(to.turn(&mut collected, Some(until)).expect("a turn").received > 0, "{threads:?}: {} of 900", collected.0.len());
        }
        assert_eq!(collected.0, (0..900).collect::<Vec<_>>(), "{threads:?}");
    }
}

#[test]
fn the_last_words_of_a_thousand_drivers_leave_however_their_ends_meet_those_of_their_threads() {
    let mut to = driver("127.0.0.1:0");
    let mut collected = Collected::default();
    for round in 0..1_000 {
        let mut from = on_threads("127.0.0.1:0", Threads::Sending);
        let mut numbers = Numbers { to: to.socket().local_addr(), next: round, end: round + 1 };
        // Why: the thread is to be met asleep, awake, and between the two.
        thread::sleep(std::time::Duration::from_micros(u64::from(round % 100)));
        while numbers.next < numbers.end {
            from.turn(&mut numbers, Some(Instant::ZERO)).expect("a turn");
        }
        drop(from);
        let until = to.clock().now() + Duration::from_secs(5);
        assert!(to.turn(&mut collected, Some(until)).expect("a turn").received > 0, "round {round}");
        assert_eq!(collected.0.last(), Some(&round));
    }
}

#[test]
fn a_driver_that_nothing_comes_to_sleeps_and_ends_whatever_has_a_thread_of_its_own() {
    for threads in THREADS {
        let mut driver = on_threads("127.0.0.1:0", threads);
        let mut collected = Collected::default();
        for _ in 0..3 {
            let until = driver.clock().now() + Duration::from_millis(2);
            let turn = driver.turn(&mut collected, Some(until)).expect("a turn");
            assert!(!turn.is_busy() && !turn.woken && driver.clock().now() >= until, "{threads:?}");
        }
    }
}

#[test]
fn a_deadline_is_never_early_and_is_named() {
    for (spin_below, threads) in
        [Duration::ZERO, Duration::from_micros(200)].into_iter().flat_map(|spin| THREADS.map(|threads| (spin, threads)))
    {
        let config = DriverConfig { spin_below, threads, ..DriverConfig::default() };
        let mut driver = BlockingDriver::new(bind("127.0.0.1:0"), Clock::start(), config).expect("a driver");
        for micros in [1, 70, 900, 15_000] {
            let mut alarm = Alarm { at: driver.clock().now() + Duration::from_micros(micros), rang: None };
            let mut name = None;
            while alarm.rang.is_none() {
                name = driver.turn(&mut alarm, None).expect("a turn").timer;
            }
            assert!(alarm.rang >= Some(alarm.at));
            assert_eq!(name, Some("alarm"));
        }
    }
}

#[test]
fn a_turn_returns_when_its_own_time_is_up() {
    let mut driver = driver("127.0.0.1:0");
    let mut alarm = Alarm { at: Instant::FAR_FUTURE, rang: None };
    let until = driver.clock().now() + Duration::from_millis(5);
    let turn = driver.turn(&mut alarm, Some(until)).expect("a turn");
    assert!(!turn.is_busy() && !turn.woken);
    assert!(alarm.rang.is_none());
}

#[test]
fn a_wake_ends_a_sleep_that_would_never_end_and_none_is_lost() {
    for threads in THREADS {
        no_wake_is_lost(on_threads("127.0.0.1:0", threads));
    }
}

fn no_wake_is_lost(mut driver: BlockingDriver) {
    let mut alarm = Alarm { at: Instant::FAR_FUTURE, rang: None };
    // Before the sleep, many as one.
    for _ in 0..1_000 {
        driver.waker().wake();
    }
    assert!(driver.turn(&mut alarm, None).expect("a turn").woken);
    let until = driver.clock().now() + Duration::from_millis(2);
    while driver.clock().now() < until {
        assert!(!driver.turn(&mut alarm, Some(until)).expect("a turn").woken, "one wake was told twice");
    }
    // During sleeps, from another thread, each answered before the next.
    let (waker, (sender, receiver)) = (driver.waker(), std::sync::mpsc::channel());
    let waking = thread::spawn(move || {
        for _ in 0..1_000 {
            waker.wake();
            receiver.recv().expect("an answer");
        }
    });
    for _ in 0..1_000 {
        while !driver.turn(&mut alarm, None).expect("a turn").woken {}
        sender.send(()).expect("a waking thread");
    }
    waking.join().expect("no panic");
}

#[test]
fn a_peer_that_does_not_listen_ends_nothing_and_costs_the_others_nothing() {
    let nobody = bind("127.0.0.1:0").local_addr();
    let mut calling = driver("127.0.0.1:0");
    let mut in_vain = Caller::new(nobody, 32, 100);
    for _ in 0..6 {
        let until = calling.clock().now() + Duration::from_millis(50);
        calling.turn(&mut in_vain, Some(until)).expect("a turn in spite of the refusal");
    }
    assert!(calling.socket().counters().unreachable > 0, "{:?}", calling.socket().counters());

    let mut echo_driver = driver("127.0.0.1:0");
    let mut caller = Caller::new(echo_driver.socket().local_addr(), 100, 100);
    let mut echo = Echo::default();
    while !caller.is_done() {
        calling.turn(&mut caller, Some(Instant::ZERO)).expect("a turn");
        echo_driver.turn(&mut echo, Some(Instant::ZERO)).expect("a turn");
    }
}
