//! `intervals`: T_normal and T_error of adaptive acknowledgment on real sockets, which AA leaves to future work (AA 4).
//!
//! The halves that the studies simulate run behind the adapter over UDP on this machine, through the link emulator, which loses packets. The
//! sender is paced at a packet each 121.2 us, what the end systems of AA Table 1 take for one; what the processors here take comes on top,
//! and the timers are the system's. Beside each point stands the simulator's at the same rate with no cost of work.

use crate::print;
use crate::spread::Spread;
use anyhow::{Context, Result, bail};
use clap::Args;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration};
use segstream_lab::live::{Receiving, Sending};
use segstream_lab::machine::Machine;
use segstream_lab::registry;
use segstream_lab::scenario::{self, Scenario};
use segstream_net::adapter::{ReceiveOptions, SendOptions, Watch, read_segments};
use segstream_net::link::{Link, LinkConfig};
use segstream_schemes::adaptive_ack;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A DATA packet (AA Table 1).
const DATA_BYTES: u32 = 1024;
/// What an end system takes for it, 70 us and 0.05 us a byte (AA Table 1).
const PACKET_NS: u64 = 121_200;
/// The window of AA Figures 5 to 7, in packets.
const WINDOW: u32 = 400;

/// Options of `intervals`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How often each pair is measured, all in turns.
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Packets of a transfer.
    #[arg(long, default_value_t = 20_000)]
    packets: u64,
    /// The loss rates.
    #[arg(long, value_delimiter = ',', default_value = "1e-3,1e-2,1e-1")]
    loss: Vec<f64>,
    /// T_normal in milliseconds, with T_error 5 ms.
    #[arg(long, value_delimiter = ',', default_value = "10,20,30,40,50,60,80")]
    normal: Vec<u64>,
    /// T_error in milliseconds, with T_normal 40 ms.
    #[arg(long, value_delimiter = ',', default_value = "1,2,5,10,20,40")]
    error: Vec<u64>,
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    repetitions: usize,
    packets: u64,
    points: Vec<PointReport>,
}

#[derive(Serialize)]
struct PointReport {
    loss: f64,
    t_normal_ms: u64,
    t_error_ms: u64,
    /// Packets delivered once times 121.2 us, over the time from the first data packet to the last acceptance.
    throughput_efficiency: Spread,
    /// The same in virtual time.
    simulated: f64,
    retransmitted_share: f64,
    feedback_per_1000: f64,
}

/// One transfer.
struct Transfer {
    efficiency: f64,
    retransmitted: f64,
    feedback: f64,
}

/// Measures every pair at every loss rate.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut pairs: Vec<(u64, u64)> = options.normal.iter().map(|normal| (*normal, 5)).collect();
    pairs.extend(options.error.iter().map(|error| (40, *error)).filter(|pair| !options.normal.contains(&pair.0) || pair.1 != 5));
    let cases: Vec<(f64, (u64, u64))> = options.loss.iter().flat_map(|loss| pairs.iter().map(|pair| (*loss, *pair))).collect();
    let mut measured: Vec<Vec<Transfer>> = cases.iter().map(|_| Vec::new()).collect();
    for repetition in 0..options.repetitions.max(1) {
        for ((loss, pair), transfers) in cases.iter().zip(&mut measured) {
            transfers.push(transfer(&of(*pair, *loss, options.packets)?, repetition as u64)?);
        }
    }
    let mut points = Vec::new();
    for ((loss, pair), transfers) in cases.into_iter().zip(measured) {
        let scenario = of(pair, loss, options.packets)?;
        let simulated = segstream_lab::run::run(&scenario, Seed(1))?.outcome.throughput_efficiency(PACKET_NS as f64 * 1e-9);
        let median = |value: fn(&Transfer) -> f64| Spread::of(transfers.iter().map(value).collect());
        points.push(PointReport {
            loss,
            t_normal_ms: pair.0,
            t_error_ms: pair.1,
            throughput_efficiency: median(|it| it.efficiency),
            simulated,
            retransmitted_share: median(|it| it.retransmitted).median,
            feedback_per_1000: median(|it| it.feedback).median,
        });
    }
    let report = Report { machine: Machine::here(), repetitions: options.repetitions, packets: options.packets, points };
    print(options.json, &report, &text(&report))
}

/// The pair at AA's point, its losses the emulator's.
fn of((t_normal, t_error): (u64, u64), loss: f64, packets: u64) -> Result<Scenario> {
    let ms = Duration::from_millis;
    let loss = if loss > 0.0 { format!("random:{loss}") } else { "none".to_owned() };
    let loss = loss.parse().context("the loss rate")?;
    let rate = u64::from(DATA_BYTES) * 8 * 1_000_000_000 / PACKET_NS;
    Ok(Scenario::default().with_segments(1).with(|it| {
        it.scheme = adaptive_ack::Settings { t_normal: ms(t_normal), t_error: ms(t_error), ..adaptive_ack::Settings::default() }.into();
        it.black_box.rtt = Duration::ZERO;
        it.black_box.bandwidth = Bandwidth::from_bits_per_second(rate);
        it.black_box.loss = loss;
        it.workload.packet_bytes = DATA_BYTES;
        it.workload.window = WINDOW;
        it.workload.packets = packets;
    }))
}

/// The scenario once, over loopback sockets and the emulator.
fn transfer(scenario: &Scenario, seed: u64) -> Result<Transfer> {
    let scheme = registry::find("adaptive-ack").context("adaptive acknowledgment is not registered")?;
    let receiver = Receiving::bind(scheme, "127.0.0.1:0".parse()?, ReceiveOptions::default())?;
    let mut link = LinkConfig::new("127.0.0.1:0".parse()?, receiver.local_addr());
    link.forward.loss = scenario.black_box.loss.clone();
    link.seed = Seed(seed);
    let (link, stop) = (Link::bind(&link)?, AtomicBool::new(false));
    let sending = Sending::bind(scenario, link.local_addr(), SendOptions::default())?;
    let bytes = scenario::segment_bytes(scenario) * scenario.segments();
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(|_| Ok(()), Watch::default()));
        let relaying = scope.spawn(|| link.run(&stop));
        let content = std::io::repeat(7).take(bytes);
        let segments = read_segments(content, sending.segment_bytes() as usize);
        let sent = sending.run(segments, Watch::default());
        let received = receiving.join();
        stop.store(true, Ordering::Relaxed);
        let _link = relaying.join();
        (sent, received)
    });
    let (sent, Ok(received)) = (sent?, received) else { bail!("the receiver's thread failed") };
    let received = received?;
    if let Some(failure) = sent.failure.as_ref().or(received.failure.as_ref()) {
        bail!("a transfer did not end well: {failure}");
    }
    let packets = scenario.segments() as f64;
    Ok(Transfer {
        efficiency: packets * PACKET_NS as f64 * 1e-9 / received.seconds,
        retransmitted: sent.packets_retransmitted as f64 / sent.packets_sent as f64,
        feedback: received.counters.control_sent as f64 * 1000.0 / packets,
    })
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}\n{} repetitions in turns; {} packets of {DATA_BYTES} bytes, a window of {WINDOW}, a packet each 121.2 us\n\n{:<8} {:>8} {:>7}  {:<28} {:>9} {:>11} {:>13}\n",
        report.machine,
        report.repetitions,
        report.packets,
        "loss",
        "T_normal",
        "T_error",
        "throughput efficiency",
        "simulated",
        "sent again",
        "feedback/1000"
    );
    for point in &report.points {
        let Spread { median, .. } = point.throughput_efficiency;
        let _ = writeln!(
            text,
            "{:<8} {:>5} ms {:>4} ms  {median:<28.4} {:>9.4} {:>9.2} % {:>13.1}",
            point.loss,
            point.t_normal_ms,
            point.t_error_ms,
            point.simulated,
            point.retransmitted_share * 100.0,
            point.feedback_per_1000,
        );
    }
    text
}
