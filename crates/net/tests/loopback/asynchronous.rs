//! The asynchronous driver over loopback.
use crate::pair::{Alarm, Caller, Echo, bind};
use segstream_base::{Duration, Instant};
use segstream_net::Clock;
use segstream_net::driver::tokio::{AsyncDriver, Flow, Shared};
use segstream_net::driver::{DriverConfig, Turn};
use std::future::Future;
use std::sync::Arc;

fn driver(address: &str) -> AsyncDriver {
    AsyncDriver::new(bind(address), Clock::start(), DriverConfig::default()).expect("a driver")
}

/// Runs `work` on one thread, and again on two.
fn on_runtimes<F: Future<Output = ()>>(work: impl Fn() -> F) {
    let mut one = tokio::runtime::Builder::new_current_thread();
    one.enable_all().build().expect("a runtime").block_on(work());
    let mut two = tokio::runtime::Builder::new_multi_thread();
    two.worker_threads(2).enable_all().build().expect("a runtime").block_on(work());
}

async fn exchange(address: &str) {
    let echo_driver = driver(address);
    let to = echo_driver.socket().local_addr();
    let echo = Arc::new(Shared::new(Echo::default()));
    let echoing = tokio::spawn(echo_driver.run(Arc::clone(&echo), |_: &mut Echo, _: &Turn| Flow::Sleep));
    let caller = Arc::new(Shared::new(Caller::new(to, 10_000, 1_200)));
    let hook = |caller: &mut Caller, _: &Turn| if caller.is_done() { Flow::Stop } else { Flow::Sleep };
    tokio::spawn(driver(address).run(Arc::clone(&caller), hook)).await.expect("no panic").expect("no error");
    assert!(caller.lock().is_done());
    assert!(!caller.lock().times_went_backward);
    assert!(caller.lock().marks >= 10_000, "{} of 10000 datagrams kept their mark", caller.lock().marks);
    assert!(echo.lock().echoed >= 10_000);
    echoing.abort();
}

#[test]
fn ten_thousand_datagrams_come_back_over_ipv4() {
    on_runtimes(|| exchange("127.0.0.1:0"));
}

#[test]
fn ten_thousand_datagrams_come_back_over_ipv6() {
    on_runtimes(|| exchange("[::1]:0"));
}

#[test]
fn a_deadline_is_never_early_and_is_named() {
    on_runtimes(|| async {
        for micros in [1, 70, 900, 15_000] {
            let driver = driver("127.0.0.1:0");
            let at = driver.clock().now() + Duration::from_micros(micros);
            let alarm = Arc::new(Shared::new(Alarm { at, rang: None }));
            let mut names = Vec::new();
            let hook = |alarm: &mut Alarm, turn: &Turn| {
                names.extend(turn.timer);
                if alarm.rang.is_some() { Flow::Stop } else { Flow::Sleep }
            };
            driver.run(Arc::clone(&alarm), hook).await.expect("no error");
            assert!(alarm.lock().rang >= Some(at));
            assert_eq!(names, ["alarm"]);
        }
    });
}

#[test]
fn a_deadline_that_moves_nearer_is_met_and_one_that_moves_away_is_not_met_early() {
    on_runtimes(|| async {
        let driver = driver("127.0.0.1:0");
        let clock = driver.clock();
        let alarm = Arc::new(Shared::new(Alarm { at: Instant::FAR_FUTURE, rang: None }));
        let hook = |alarm: &mut Alarm, _: &Turn| if alarm.rang.is_some() { Flow::Stop } else { Flow::Sleep };
        let running = tokio::spawn(driver.run(Arc::clone(&alarm), hook));
        for millis in [40, 5, 20] {
            alarm.lock().at = clock.now() + Duration::from_millis(millis);
            alarm.changed();
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        running.await.expect("no panic").expect("no error");
        let alarm = alarm.lock();
        assert!(alarm.rang >= Some(alarm.at));
    });
}

#[test]
fn a_peer_that_does_not_listen_ends_nothing() {
    on_runtimes(|| async {
        let nobody = bind("127.0.0.1:0").local_addr();
        let driver = driver("127.0.0.1:0");
        let (clock, socket) = (driver.clock(), Arc::clone(driver.socket()));
        let caller = Arc::new(Shared::new(Caller::new(nobody, 32, 100)));
        let mut timeouts = 0;
        let hook = move |_: &mut Caller, turn: &Turn| {
            timeouts += usize::from(turn.timer.is_some());
            if timeouts == 2 { Flow::Stop } else { Flow::Sleep }
        };
        driver.run(Arc::clone(&caller), hook).await.expect("no error in spite of the refusal");
        assert!(clock.now() >= Instant::ZERO + Duration::from_millis(400));
        assert!(socket.counters().unreachable > 0, "{:?}", socket.counters());
    });
}

#[test]
fn a_hook_that_changes_the_endpoint_gets_its_turn_and_a_stop_ends_the_task() {
    on_runtimes(|| async {
        let driver = driver("127.0.0.1:0");
        let shared = Arc::new(Shared::new(Alarm { at: Instant::FAR_FUTURE, rang: None }));
        let mut turns = 0;
        let hook = move |alarm: &mut Alarm, _: &Turn| {
            turns += 1;
            match turns {
                1..5 => Flow::Again,
                5 => {
                    alarm.at = Instant::ZERO;
                    Flow::Again
                }
                _ => Flow::Stop,
            }
        };
        driver.run(Arc::clone(&shared), hook).await.expect("no error");
        assert!(shared.lock().rang.is_some());
    });
}
