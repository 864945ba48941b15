//! The flags of `segstream sim`, and the scenario they mean.
//!
//! Called by the verb.
//!
//! Invariant: a flag that means nothing to the scheme is refused, not ignored.

use super::end_system::{self, EndSystem};
use crate::tolerance_argument::ToleranceArgument;
use crate::{quantity, usage};
use anyhow::Result;
use clap::Args;
use segstream::{Bandwidth, Duration};
use segstream_base::Bytes;
use segstream_blocks::Accounting;
use segstream_lab::registry;
use segstream_lab::scenario::Scenario;
use segstream_path::LossSpec;
use segstream_schemes::sstp::{Acknowledgment, FeedbackMode};
use std::path::PathBuf;

/// Simulates a scheme over a black box: bandwidth, round trip, loss. Ten million packets take about a second.
///
/// Rates count bare packets, and a data packet is --packet-bytes long, its header included. Delay runs from the first
/// transmission of a segment to its acceptance. Throughput efficiency is packets of accepted segments times packet time
/// over the time from the first transmission to the last acceptance, less half a round trip. For htpnet and tcp, which
/// their processors limit, packet time is what a packet takes of the sender's, and nothing else paces them.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  segstream sim sstp --rtt 60ms --bandwidth 500mbit --window 36 --tolerance 256,1,1 --loss 1e-3 --feedback ideal\n  \
                        segstream sim segstream --loss bursty:good=1620ms,bad=180ms,loss=1e-2 --replications 10\n  \
                        segstream sim tcp --rtt 40ms --service-us 83 --window 256 --loss 1e-3 --control-loss 0 --backoff own"
)]
pub(crate) struct Arguments {
    /// The scheme: segstream (ours), sstp (EC, FC), snr (EC), htpnet (HT) or tcp (as HT compares with it).
    #[arg(value_name = "SCHEME", value_parser = scheme)]
    pub(crate) scheme: String,
    /// Round trip, half of it in each direction.
    #[arg(long, value_name = "T", value_parser = quantity::duration, default_value = "60ms")]
    rtt: Duration,
    /// Bandwidth of each direction; the sender is paced at it [default: 500mbit; 100gbit for htpnet and tcp, where it
    /// then plays no part].
    #[arg(long, value_name = "B", value_parser = quantity::bandwidth)]
    bandwidth: Option<Bandwidth>,
    /// A data packet, its header included.
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, default_value = "1024")]
    packet_bytes: Bytes,
    /// Packets of a segment [default: 256; 1 for htpnet and tcp].
    #[arg(long, value_name = "N")]
    segment_packets: Option<u32>,
    /// The window, in segments, which are packets for htpnet and tcp [default: 36; 256 for htpnet and tcp].
    #[arg(long, value_name = "N")]
    window: Option<u32>,
    /// The receiver's buffer, in segments [default: the window].
    #[arg(long, value_name = "N")]
    buffer: Option<u32>,
    /// What a receiver does whose buffer is smaller than its window: hard, soft-lazy or soft-eager.
    #[arg(long, value_name = "ACK", default_value = "hard")]
    ack: Acknowledgment,
    /// What may be missing of every W packets: W,E,B or E,B, or reliable, or any. W must be the segment.
    #[arg(long, value_name = "W,E,B", default_value = "reliable")]
    tolerance: ToleranceArgument,
    /// How tolerated losses are counted: strict-all, strict-burst or paper-literal.
    #[arg(long, value_name = "HOW", default_value = "strict-all")]
    accounting: Accounting,
    /// Loss on the way there: none; 1e-3 or random:1e-3; gilbert:rate=1%,burst=4; bursty:good=1620ms,bad=180ms,loss=1e-3
    /// or list:5,17,18.
    #[arg(long, value_name = "SPEC", default_value = "none")]
    loss: LossSpec,
    /// Loss on the way back.
    #[arg(long, value_name = "SPEC", default_value = "none")]
    loss_back: LossSpec,
    /// Loss of packets without data, both ways, such as none or 1e-3; then the others are losses of data alone [default:
    /// they are lost as data is].
    #[arg(long, value_name = "SPEC")]
    control_loss: Option<LossSpec>,
    /// The queue on the way there, in packets [default: a bandwidth-delay product, at least 64 KiB].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    queue_packets: Option<u32>,
    /// New packets a second that the source has [default: it always has one].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    offered: Option<u32>,
    /// Whether the sender is told what became of each packet group, as the papers simulate it (ideal), or finds out by
    /// gaps, timers and reports that share the path (full).
    #[arg(long, value_name = "MODE", default_value = "full")]
    feedback: FeedbackMode,
    /// The re-sequencing distance: how many positions late a packet may come.
    #[arg(long, value_name = "N", default_value_t = 0)]
    reorder: u32,
    /// How often SNR exchanges state [default: a twelfth of the round trip].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    status_period: Option<Duration>,
    /// Lets snr take each state for one interval, however many were lost before it.
    #[arg(long)]
    slip: bool,
    /// New data packets, rounded down to whole segments.
    #[arg(long, value_name = "N", value_parser = count, default_value = "1000000")]
    packets: u64,
    /// The seed of every random choice; each replication draws its own from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Independent runs, for intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), default_value_t = 1)]
    pub(crate) replications: u32,
    /// Threads for replications [default: one a processor].
    #[arg(long, value_name = "N", value_parser = quantity::threads, default_value = "0", hide_default_value = true)]
    pub(crate) threads: usize,
    /// Encodes and decodes every packet of the first replication too, and fails if that changes anything.
    #[arg(long)]
    pub(crate) check: bool,
    /// Writes the events of the first replication, one a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Writes the packets of the first replication as a capture.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    end_system: EndSystem,
}

impl Arguments {
    /// The scenario the flags mean, which its scheme accepts.
    pub(crate) fn scenario(&self) -> Result<Scenario> {
        let usual = Scenario { scheme: self.scheme.clone(), ..Scenario::default() };
        let scheme = usual.registered().map_err(|error| usage::bad(error.to_string()))?;
        let segment_packets = self.segment_packets.unwrap_or_else(|| end_system::segment_packets(scheme));
        let mut scenario = Scenario {
            rtt: self.rtt,
            bandwidth: self.bandwidth.unwrap_or_else(|| end_system::bandwidth(scheme)),
            packet_bytes: u32::try_from(self.packet_bytes.get()).unwrap_or(u32::MAX),
            segment_packets,
            window: self.window.unwrap_or_else(|| end_system::window(scheme)),
            buffer: self.buffer,
            ack: self.ack,
            tolerance: self.tolerance.of_packets(segment_packets).map_err(usage::bad)?,
            accounting: self.accounting,
            loss: self.loss.clone(),
            loss_back: self.loss_back.clone(),
            control_loss: self.control_loss.clone(),
            queue_packets: self.queue_packets,
            offered: self.offered,
            feedback: self.feedback,
            reorder: self.reorder,
            status_period: self.status_period,
            slip: self.slip,
            packets: self.packets,
            ..usual
        };
        self.end_system.tell(scheme, &mut scenario);
        // Why the pair: what only the scheme refuses must be known before a file is made.
        registry::check_pair(&scenario).map_err(|error| usage::bad(error.to_string()))?;
        Ok(scenario)
    }
}

/// A key of the registry.
pub(crate) fn scheme(text: &str) -> Result<String, String> {
    match registry::find(text) {
        Some(scheme) => Ok(scheme.key.to_owned()),
        None => Err(format!("there is no scheme \"{text}\"; known are {}", registry::keys())),
    }
}

/// A count, which may be written as 1e7.
fn count(text: &str) -> Result<u64, String> {
    let refused = || format!("\"{text}\" is not a count; write a whole number, such as 1000000 or 1e6");
    if let Ok(count) = text.replace('_', "").parse() {
        return Ok(count);
    }
    let value: f64 = text.parse().map_err(|_| refused())?;
    if value.fract() == 0.0 && (0.0..=1e15).contains(&value) { Ok(value as u64) } else { Err(refused()) }
}
