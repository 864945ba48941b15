//! How many datagrams a second two threads exchange over loopback, and what it costs: one sends through a
//! blocking driver, the other receives through another.
//!
//! `cargo run --release -p segstream-net --example loopback_rate -- [datagrams_per_send] [datagram_bytes] [seconds]`

use rustix::time::{ClockId, clock_gettime};
use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Local, Transmit};
use segstream_base::{Duration, Instant};
use segstream_net::driver::DriverConfig;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::{Clock, Socket, SocketConfig, SocketCounters};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Always has something to send.
struct Source {
    to: SocketAddr,
    datagram_bytes: usize,
}

/// Counts.
#[derive(Default)]
struct Sink {
    datagrams: u64,
    waiting: Duration,
}

impl Endpoint for Source {
    fn handle_datagram(&mut self, _: Instant, _: Arrival, _: &mut [u8]) {}

    fn poll_transmit(&mut self, _: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        out.resize(max_datagrams * self.datagram_bytes, 7);
        Some(Transmit { to: self.to, from: Local::ANY, datagram_bytes: self.datagram_bytes, ecn: None })
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

impl Endpoint for Sink {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, _: &mut [u8]) {
        self.datagrams += 1;
        self.waiting += now.since(arrival.received);
    }

    fn poll_transmit(&mut self, _: Instant, _: usize, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn argument(position: usize, default: usize) -> usize {
    std::env::args().nth(position).and_then(|argument| argument.parse().ok()).unwrap_or(default)
}

fn send(to: SocketAddr, config: DriverConfig, datagram_bytes: usize, span: Duration) -> std::io::Result<(SocketCounters, f64)> {
    let socket = Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &SocketConfig::default()).map_err(std::io::Error::other)?;
    let mut driver = BlockingDriver::new(socket, Clock::start(), config)?;
    let mut source = Source { to, datagram_bytes };
    while driver.clock().now() < Instant::ZERO + span {
        driver.turn(&mut source, None)?;
    }
    Ok((driver.socket().counters(), thread_seconds()))
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = DriverConfig { datagrams_per_send: argument(1, 32), ..DriverConfig::default() };
    let (datagram_bytes, seconds) = (argument(2, 1_200), argument(3, 3));
    let socket = Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &SocketConfig::default())?;
    let to = socket.local_addr();
    let mut driver = BlockingDriver::new(socket, Clock::start(), config)?;
    let (waker, stop) = (driver.waker(), AtomicBool::new(false));
    let span = Duration::from_secs(seconds as u64);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| -> std::io::Result<(Sink, SocketCounters, f64)> {
            let mut sink = Sink::default();
            while !stop.load(Ordering::Acquire) {
                driver.turn(&mut sink, None)?;
            }
            Ok((sink, driver.socket().counters(), thread_seconds()))
        });
        let sending = scope.spawn(|| send(to, config, datagram_bytes, span));
        let sent = sending.join().map_err(|_| "the sender panicked")?;
        stop.store(true, Ordering::Release);
        waker.wake();
        let (sink, received, receiver_seconds) = receiving.join().map_err(|_| "the receiver panicked")??;
        let (sent, sender_seconds) = sent?;
        let rate = |datagrams: u64| datagrams as f64 / span.as_secs_f64();
        let cost = |cpu: f64, datagrams: u64| cpu * 1e9 / datagrams.max(1) as f64;
        println!(
            "sent      {:>9.0} datagrams/s, {:>5.0} ns of processor time each, {} datagrams in {} calls",
            rate(sent.datagrams_sent),
            cost(sender_seconds, sent.datagrams_sent),
            sent.datagrams_sent,
            sent.send_calls
        );
        println!(
            "received  {:>9.0} datagrams/s, {:>5.0} ns of processor time each, {} datagrams in {} calls",
            rate(sink.datagrams),
            cost(receiver_seconds, sink.datagrams),
            received.datagrams_received,
            received.receive_calls
        );
        println!(
            "goodput   {:>9.2} Gbit/s, {:.1} % dropped at the receiver's buffer, waited there {:.0} us on average",
            rate(sink.datagrams) * datagram_bytes as f64 * 8.0 / 1e9,
            100.0 * (1.0 - sink.datagrams as f64 / sent.datagrams_sent.max(1) as f64),
            (sink.waiting / sink.datagrams.max(1)).as_secs_f64() * 1e6
        );
        println!(
            "processors used: sender {:.2}, receiver {:.2}",
            sender_seconds / span.as_secs_f64(),
            receiver_seconds / span.as_secs_f64()
        );
        Ok(())
    })
}
