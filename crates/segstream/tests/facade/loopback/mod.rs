//! Two endpoints of this machine for the tests, and a limit on how long a test may take.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use segstream::{Bytes, Config, Contract, Tolerance};
use segstream_net::link::{Link, LinkConfig};
use segstream_path::PathConfig;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Any port of either family.
pub const FAMILIES: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

pub fn any() -> SocketAddr {
    at(FAMILIES[0])
}

pub fn at(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// As long as any single step may take.
pub const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// A configuration that finds a silent peer gone after a second.
pub fn impatient() -> Config {
    Config { idle_timeout: seconds(1), connect_timeout: seconds(1), ..Config::default() }
}

/// Bytes that differ from place to place and from segment to segment.
pub fn pattern(segment: u64, length: usize) -> Bytes {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 7 ^ segment.wrapping_mul(131)) as u8).collect::<Vec<u8>>().into()
}

/// Segments of 64 units, of each of which `errors` may be missing, none next to another.
pub fn tolerant(errors: u32) -> Contract {
    Contract { tolerance: Tolerance::new(64, errors, 1).unwrap(), ..Contract::default() }
}

/// Runs `test` on a thread of its own; a test that does not end fails instead of hanging.
pub fn ends(test: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let running = thread::spawn(move || {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
        let _ = done.send(());
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
    finished.recv_timeout(Duration::from_secs(60)).expect("the test did not end within a minute");
    if let Err(panic) = running.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs an asynchronous test, which must end.
pub fn ends_async(test: impl Future<Output = ()> + Send + 'static) {
    ends(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(test);
    });
}

/// Runs `work` with the address of a link to `to` that loses what `loss` says on the way there.
pub fn through_link<T>(to: SocketAddr, loss: &str, work: impl FnOnce(SocketAddr) -> T) -> T {
    let forward = PathConfig { loss: loss.parse().unwrap(), delay: Duration::from_millis(2).into(), ..PathConfig::default() };
    let back = PathConfig { delay: Duration::from_millis(2).into(), ..PathConfig::default() };
    let link = Link::bind(&LinkConfig { forward, back, ..LinkConfig::new(any(), to) }).unwrap();
    let (address, stop) = (link.local_addr(), AtomicBool::new(false));
    thread::scope(|scope| {
        let relay = scope.spawn(|| link.run(&stop));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(address)));
        stop.store(true, Ordering::Relaxed);
        relay.join().unwrap().unwrap();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
