//! The blocking driver over loopback.

use crate::pair::{Alarm, Caller, Echo, bind};
use segstream_base::{Duration, Instant};
use segstream_net::Clock;
use segstream_net::driver::DriverConfig;
use segstream_net::driver::blocking::BlockingDriver;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn driver(address: &str) -> BlockingDriver {
    BlockingDriver::new(bind(address), Clock::start(), DriverConfig::default()).expect("a driver")
}

fn exchange(echo_address: &str, call: impl Fn(std::net::SocketAddr) -> std::net::SocketAddr, caller_address: &str, config: DriverConfig) {
    let mut echo_driver = driver(echo_address);
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
fn a_deadline_is_never_early_and_is_named() {
    for spin_below in [Duration::ZERO, Duration::from_micros(200)] {
        let config = DriverConfig { spin_below, ..DriverConfig::default() };
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
    let mut driver = driver("127.0.0.1:0");
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
