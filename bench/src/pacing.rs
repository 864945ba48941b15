//! The accuracy of the pacer: departures are recorded at the system call that sends them.
//!
//! Called by people. A sender with a fixed rate runs for some seconds against a receiver over loopback, once for each
//! rate, smoothly and in bursts.
//!
//! Invariant: a stretch of time in which the machine kept the sender waiting for more than [`STALL`] beyond what it asked
//! for says nothing of the rate control; such stretches are counted and left out.
//!
//! Source: FC 3.3.

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use segstream::{Bandwidth, Bytes, Contract};
use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Transmit};
use segstream_base::{Duration, Instant, StreamId};
use segstream_blocks::burst::{Pacer, RateSpec};
use segstream_lab::machine::Machine;
use segstream_net::driver::DriverConfig;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::{Clock, Socket, SocketConfig};
use segstream_proto::config::Config as ProtocolConfig;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::Endpoint as Protocol;
use segstream_proto::rate::Rate;
use segstream_proto::session::Trust;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Which rates, for how long.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rates in Mbit/s, whole IP packets.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000])]
    megabits: Vec<u64>,
    /// How long each runs, after a second that is not counted.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// Over how long the rate is counted each time. A machine that keeps its processes waiting several times a second
    /// leaves no whole second to count.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..=10_000))]
    window_ms: u64,
    /// L, the shipments of a burst, where the rate is in bursts.
    #[arg(long, value_name = "N", default_value_t = 64)]
    burst: u32,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Waiting longer than this beyond a deadline is the machine's doing.
const STALL: Duration = Duration::from_millis(1);
/// UDP and IPv4.
const BELOW_BYTES: u64 = 28;
/// Units of which one fills a datagram of 1200 bytes as far as units can.
const UNIT_BYTES: u32 = 1160;
const SEGMENT_UNITS: usize = 64;

/// What one run has shown.
#[derive(Debug, Serialize)]
struct Run {
    name: String,
    rate_bps: f64,
    burst_shipments: u32,
    windows_counted: usize,
    windows_with_a_stall: usize,
    /// Of the rate of a counted window from what was asked for, in per cent.
    deviation_percent_max: f64,
    /// One per cent, or one burst, or one batch.
    deviation_percent_allowed: f64,
    /// Datagrams of one call.
    batch_datagrams_max: u64,
    /// The most datagrams that left in any stretch of time beyond what the rate carries in it.
    excess_datagrams_max: f64,
    /// Datagrams that may: one batch, and one burst or as much as lateness may be made up for, whichever is more.
    excess_datagrams_allowed: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    runs: Vec<Run>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut runs = Vec::new();
    for &megabits in &options.megabits {
        for burst in [0, options.burst] {
            runs.push(measure(megabits, burst, options)?);
        }
    }
    let report = Report { machine: Machine::here(), runs };
    crate::print(options.json, &report, &text(&report)?)
}

fn text(report: &Report) -> Result<String> {
    let mut text = format!(
        "{}\n\n{:<24} {:>8} {:>8} {:>20} {:>7} {:>18}\n",
        report.machine, "", "windows", "stalled", "deviation (allowed)", "batch", "excess (allowed)"
    );
    for run in &report.runs {
        writeln!(
            text,
            "{:<24} {:>8} {:>8} {:>8.3} % ({:>6.2} %) {:>7} {:>8.1} ({:>7.1})",
            run.name,
            run.windows_counted,
            run.windows_with_a_stall,
            run.deviation_percent_max,
            run.deviation_percent_allowed,
            run.batch_datagrams_max,
            run.excess_datagrams_max,
            run.excess_datagrams_allowed
        )?;
    }
    Ok(text)
}

/// A departure: when, how many datagrams, how many bytes of whole IP packets.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Instant,
    datagrams: u64,
    bytes: u64,
}

/// The endpoint, and what has left it.
struct Watched {
    protocol: Protocol,
    departures: Vec<Departure>,
    /// When a deadline was kept too late.
    stalls: Vec<Instant>,
}

impl Endpoint for Watched {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.protocol.handle_datagram(now, arrival, datagram);
    }

    fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let before = out.len();
        let transmit = self.protocol.poll_transmit(now, max_datagrams, out)?;
        let bytes = (out.len() - before) as u64;
        let datagrams = bytes.div_ceil(transmit.datagram_bytes.max(1) as u64);
        self.departures.push(Departure { at: now, datagrams, bytes: bytes + datagrams * BELOW_BYTES });
        Some(transmit)
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        self.protocol.poll_deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        // Why only departures: other deadlines may lie in the past until something else makes them matter.
        if self.poll_deadline().is_some_and(|deadline| deadline.timer == "departure" && now.since(deadline.at) > STALL) {
            self.stalls.push(now);
        }
        self.protocol.handle_timeout(now);
    }
}

fn measure(megabits: u64, burst: u32, options: &Options) -> Result<Run> {
    let asked = Bandwidth::from_megabits_per_second(megabits);
    let datagram = 1_152 + BELOW_BYTES;
    let spec = match burst {
        0 => RateSpec::smooth(asked),
        shipments => {
            let per_second = (asked.bits_per_second() / (8 * datagram * u64::from(shipments))).max(1);
            let peak = Bandwidth::from_bits_per_second(asked.bits_per_second() * 2);
            RateSpec::new(peak, per_second as u32, shipments).context("a burst has shipments")?
        }
    };
    let mut receiver = segstream::blocking::Endpoint::builder().insecure().listen(([127, 0, 0, 1], 0))?;
    let peer = receiver.peer();
    let over = Arc::new(AtomicBool::new(false));
    let receiving = {
        let over = Arc::clone(&over);
        thread::spawn(move || -> Result<()> {
            let id = receiver.accept(None)?;
            let mut connection = receiver.connection(id);
            while !over.load(Ordering::Relaxed) {
                match connection.recv(StreamId(0), Some(Duration::from_millis(100).into())) {
                    Ok(_) | Err(segstream::Error::TimedOut) => {}
                    Err(_) => break,
                }
            }
            Ok(())
        })
    };
    let watched = send(peer.address, spec, options.seconds + 2);
    over.store(true, Ordering::Relaxed);
    receiving.join().map_err(|_| anyhow::anyhow!("the receiving thread has panicked"))??;
    let (watched, start) = watched?;
    judge(megabits, spec, &watched, start, options)
}

/// Sends for `seconds` at the rate; when data began to leave.
fn send(to: std::net::SocketAddr, spec: RateSpec, seconds: u64) -> Result<(Watched, Instant)> {
    let clock = Clock::start();
    let socket = Socket::bind(([127, 0, 0, 1], 0).into(), &SocketConfig::default())?;
    let mut driver = BlockingDriver::new(socket, clock, DriverConfig::default())?;
    let config = ProtocolConfig { rate: Rate::Fixed(spec), ..ProtocolConfig::default() };
    let protocol = Protocol::new(config, segstream_base::random::Seed(1))?;
    let mut watched = Watched { protocol, departures: Vec::new(), stalls: Vec::new() };
    let contract = Contract { unit_bytes: UNIT_BYTES, window_units: 8_192, ..Contract::default() };
    let id = watched.protocol.connect(clock.now(), to, &Trust::Anyone, vec![contract])?;
    let bytes = Bytes::from(vec![7; UNIT_BYTES as usize * SEGMENT_UNITS]);
    let mut start = None;
    loop {
        let now = clock.now();
        while let Some((_, event)) = watched.protocol.poll_event() {
            match event {
                ConnectionEvent::Connected => start = Some(now),
                ConnectionEvent::Closed(reason) => bail!("the connection has ended: {reason}"),
                _ => {}
            }
        }
        if let Some(start) = start {
            if now.since(start) > Duration::from_secs(seconds) {
                return Ok((watched, start));
            }
            let connection = watched.protocol.connection_mut(id).context("the connection is there")?;
            while connection.send(now, StreamId(0), bytes.clone(), now, None).is_ok() {}
        }
        driver.turn(&mut watched, Some(now + Duration::from_millis(100)))?;
    }
}

fn judge(megabits: u64, spec: RateSpec, watched: &Watched, start: Instant, options: &Options) -> Result<Run> {
    // Why not from the first: set-up is not paced.
    let begun = start + Duration::from_secs(1);
    let departures: Vec<Departure> = watched.departures.iter().filter(|departure| departure.at >= begun).copied().collect();
    let largest = departures.iter().map(|departure| departure.bytes / departure.datagrams.max(1)).max().unwrap_or(0);
    ensure!(largest > 0, "nothing has left");
    let rate = spec.average_of(segstream_base::Bytes::new(largest)).bits_per_second() as f64;
    // FC 3.3: a burst is this many shipments, whatever their size; a smooth rate is this many bytes.
    let amount = |departure: &Departure| if spec.is_smooth() { departure.bytes as f64 } else { (departure.datagrams * largest) as f64 };
    let window = Duration::from_millis(options.window_ms);
    let (mut counted, mut stalled, mut deviation) = (0, 0, 0.0_f64);
    let mut from = begun;
    while from + window <= begun + Duration::from_secs(options.seconds) {
        let to = from + window;
        let between = |at: Instant| at >= from && at < to;
        if watched.stalls.iter().any(|&at| between(at)) {
            stalled += 1;
        } else {
            let bytes: f64 = departures.iter().filter(|departure| between(departure.at)).map(amount).sum();
            counted += 1;
            deviation = deviation.max((bytes * 8.0 / window.as_secs_f64() / rate - 1.0).abs() * 100.0);
        }
        from = to;
    }
    let batch = departures.iter().map(|departure| departure.datagrams).max().unwrap_or(0);
    let made_up = spec.peak().bytes_in(Pacer::CATCH_UP).get() as f64 / largest as f64;
    let allowed = f64::from(spec.burst_shipments().max(1)).max(made_up) + batch as f64;
    let at_once = f64::from(spec.burst_shipments()).max(batch as f64) * largest as f64 * 8.0 / window.as_secs_f64() / rate;
    let name =
        if spec.is_smooth() { format!("{megabits} Mbit/s, smooth") } else { format!("{megabits} Mbit/s, L = {}", spec.burst_shipments()) };
    Ok(Run {
        name,
        rate_bps: rate,
        burst_shipments: spec.burst_shipments(),
        windows_counted: counted,
        windows_with_a_stall: stalled,
        deviation_percent_max: deviation,
        deviation_percent_allowed: (at_once * 100.0).max(1.0),
        batch_datagrams_max: batch,
        excess_datagrams_max: excess(&departures, rate, largest, amount),
        excess_datagrams_allowed: allowed,
    })
}

/// The most that left in any stretch of time beyond what the rate carries in it, in full datagrams.
fn excess(departures: &[Departure], rate: f64, largest: u64, amount: impl Fn(&Departure) -> f64) -> f64 {
    let (mut credit, mut worst, mut last) = (0.0_f64, 0.0_f64, None);
    for departure in departures {
        let carried = last.map_or(0.0, |last| departure.at.since(last).as_secs_f64()) * rate / 8.0;
        credit = (credit - carried).max(0.0) + amount(departure);
        worst = worst.max(credit / largest as f64);
        last = Some(departure.at);
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_at_once_is_excess_and_what_leaves_in_time_is_not() {
        let bytes = |departure: &Departure| departure.bytes as f64;
        let at = |millis: u64, datagrams: u64| Departure {
            at: Instant::ZERO + Duration::from_millis(millis),
            datagrams,
            bytes: datagrams * 1000,
        };
        // 8 Mbit/s carry a datagram of 1000 bytes a millisecond.
        let even: Vec<Departure> = (0..100).map(|millis| at(millis, 1)).collect();
        assert!((excess(&even, 8e6, 1000, bytes) - 1.0).abs() < 1e-9);
        let mut burst = even;
        burst.push(at(100, 9));
        assert!((excess(&burst, 8e6, 1000, bytes) - 9.0).abs() < 1e-9);
    }
}
