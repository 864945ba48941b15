//! The flags of `segstream sim`, and the scenario they mean.
//!
//! Called by the verb.
//!
//! Invariant: a flag that means nothing to the scheme is refused, not ignored.

use super::sender_costs::{SenderCosts, microseconds};
use super::settings::Settings;
use super::tandem::Tandem;
use crate::hops::Hops;
use crate::tolerance_argument::ToleranceArgument;
use crate::{quantity, usage};
use anyhow::Result;
use clap::Args;
use segstream::Bandwidth;
use segstream_base::{Bytes, Duration, Instant};
use segstream_blocks::user::Slowdown;
use segstream_lab::registry;
use segstream_lab::scenario::{self, BlackBox, Scenario, ScenarioError, Usual, Workload};
use segstream_path::LossSpec;
use segstream_schemes::sstp::FeedbackMode;
use segstream_schemes::transport::Bursts;
use std::path::PathBuf;

/// Simulates a protocol (scheme) over a path with bandwidth, round-trip time and loss. Ten million packets take about a
/// second.
///
/// Rates count packets without IP and UDP headers; --packet-bytes includes the header of the scheme. Delay is the time from
/// the first transmission of a segment to its acceptance. Throughput efficiency is the number of packets of accepted
/// segments, times the packet time, divided by the time from the first transmission to the last acceptance less half a
/// round trip.
///
/// The packet time is the transmission time of a packet. For htpnet and tcp, which the sender's processor limits, it is the
/// processor time of a packet at the sender, and nothing else paces them. With --work-us, which adaptive-ack and sscop
/// use by default, it is the longer one of the processor time and the transmission time.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Example:\n  segstream sim sstp --rtt 60ms --bandwidth 500mbit --window 36 --tolerance 256,1,1 --loss 1e-3 --feedback ideal\n  \
                        segstream sim segstream --loss bursty:good=1620ms,bad=180ms,loss=1e-2 --replications 10\n  \
                        segstream sim sstp --burst 100,257 --loss 1e-3\n  \
                        segstream sim tcp --rtt 40ms --service-us 83 --window 256 --loss 1e-3 --control-loss 0 --backoff own\n  \
                        segstream sim segstream --trace down.txt --jitter wifi:12ms --aqm fq-codel\n  \
                        segstream sim adaptive-ack --window 400 --t-normal 40ms --t-error 5ms --loss 1e-2"
)]
pub(crate) struct Arguments {
    /// The scheme: segstream (ours), sstp (EC, FC), snr (EC), htpnet (HT), tcp (as HT compares with it), adaptive-ack (AA)
    /// or sscop (Q.2110, as AA compares with it).
    #[arg(value_name = "SCHEME", value_parser = over_a_black_box, required = true)]
    scheme: Option<String>,
    #[command(subcommand)]
    pub(crate) tandem: Option<Tandem>,
    /// Round-trip time, half of it in each direction [default: 60ms; 0s for adaptive-ack and sscop].
    #[arg(long, value_name = "T", value_parser = quantity::duration)]
    rtt: Option<Duration>,
    /// Bandwidth of each direction, at which the sender is paced [default: 500mbit; 100mbit for adaptive-ack and sscop;
    /// 100gbit for htpnet and tcp, so that it does not limit them].
    #[arg(long, value_name = "B", value_parser = quantity::bandwidth)]
    bandwidth: Option<Bandwidth>,
    /// Bandwidth from receiver to sender [default: --bandwidth; 10mbit for adaptive-ack and sscop].
    #[arg(long, value_name = "B", value_parser = quantity::bandwidth)]
    bandwidth_back: Option<Bandwidth>,
    /// The size of a data packet with its header.
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, default_value = "1024")]
    packet_bytes: Bytes,
    /// Packets per segment [default: 256; 1 for htpnet, tcp and adaptive-ack; always 1 for sscop].
    #[arg(long, value_name = "N")]
    segment_packets: Option<u32>,
    /// The window in segments [default: 36; 256 for htpnet and tcp; 400 for adaptive-ack and sscop].
    #[arg(long, value_name = "N")]
    window: Option<u32>,
    /// The receiver's buffer, in segments [default: the window].
    #[arg(long, value_name = "N")]
    buffer: Option<u32>,
    /// How many packets of a segment may be missing: reliable (none), any (all), E,B (at most E packets, at most B of them in
    /// a row) or W,E,B, where W must be --segment-packets.
    #[arg(long, value_name = "W,E,B", default_value = "reliable")]
    tolerance: ToleranceArgument,
    /// Loss from sender to receiver: none; 1e-3 or random:1e-3; gilbert:rate=1%,burst=4;
    /// bursty:good=1620ms,bad=180ms,loss=1e-3 or list:5,17,18.
    #[arg(long, value_name = "SPEC", default_value = "none")]
    loss: LossSpec,
    /// Loss from receiver to sender.
    #[arg(long, value_name = "SPEC", default_value = "none")]
    loss_back: LossSpec,
    /// Loss of control packets in both directions, such as none or 1e-3. --loss and --loss-back then apply to data packets
    /// only [default: the same loss as for data; none for adaptive-ack and sscop].
    #[arg(long, value_name = "SPEC")]
    control_loss: Option<LossSpec>,
    /// The queue from sender to receiver, in packets [default: one bandwidth-delay product, at least 64 KiB].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    queue_packets: Option<u32>,
    /// Processor time at either end per packet, data or control, and per byte of it, in microseconds [default: 0,0;
    /// 70,0.05 for adaptive-ack and sscop].
    #[arg(long, value_name = "US,US", value_parser = work)]
    work_us: Option<(Duration, Duration)>,
    /// New packets per second that the source submits [default: it always has one to send].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    offered: Option<u32>,
    /// Bursts (FC 3.3): F bursts per second of L packets each, sent at --bandwidth within a burst; for sstp and segstream.
    /// Throughput efficiency is then counted at the average rate of the bursts [default: packets leave evenly].
    #[arg(long, value_name = "F,L", value_parser = bursts)]
    burst: Option<Bursts>,
    /// A user of the receiver who is slow for a while (FC 3.4): from when, until when, and what each segment takes then; for sstp and
    /// segstream. The window follows what the user has done with [default: it takes every segment at once].
    #[arg(long, value_name = "FROM,UNTIL,TAKES", value_parser = slowdown)]
    slowdown: Option<Slowdown>,
    /// How the sender learns what arrived: ideal (told without loss or cost, as in the papers' simulations) or full (from
    /// gaps, timers and reports that share the path).
    #[arg(long, value_name = "MODE", default_value = "full")]
    feedback: FeedbackMode,
    /// The number of data packets, without retransmissions, rounded down to whole segments.
    #[arg(long, value_name = "N", value_parser = count, default_value = "1000000")]
    packets: u64,
    /// The seed of all random numbers; each replication derives its own from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The number of independent runs, from which confidence intervals are computed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), default_value_t = 1)]
    pub(crate) replications: u32,
    /// The number of threads for replications [default: one per processor].
    #[arg(long, value_name = "N", value_parser = quantity::threads, default_value = "0", hide_default_value = true)]
    pub(crate) threads: usize,
    /// Encodes and decodes every packet of the first replication, and fails if the result changes.
    #[arg(long)]
    pub(crate) check: bool,
    /// Writes the events of the first replication to this file, one per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Writes the packets of the first replication to this pcap file.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    hops: Hops,
    #[command(flatten)]
    sender_costs: SenderCosts,
    #[command(flatten)]
    settings: Settings,
}

impl Arguments {
    /// The scenario the flags mean, which its scheme accepts.
    pub(crate) fn scenario(&self) -> Result<Scenario> {
        // The parser asks for one.
        let key = self.scheme.as_deref().unwrap_or_default();
        let scheme = registry::find(key).ok_or_else(|| usage::bad(ScenarioError::UnknownScheme(key.to_owned()).to_string()))?;
        let usual = Usual::of(scheme);
        let segment_packets = self.segment_packets.unwrap_or(usual.segment_packets);
        let mut black_box = BlackBox {
            rtt: self.rtt.unwrap_or(usual.rtt),
            bandwidth: self.bandwidth.unwrap_or(usual.bandwidth),
            bandwidth_back: self.bandwidth_back.or(usual.bandwidth_back),
            loss: self.loss.clone(),
            loss_back: self.loss_back.clone(),
            control_loss: self.control_loss.clone().or(usual.control_loss),
            queue_packets: self.queue_packets,
            hop: self.hops.there(),
            hop_back: self.hops.back(),
            feedback: self.feedback,
            work: self.work_us.unwrap_or(usual.work),
            ..BlackBox::default()
        };
        // Where both ends work, the sender's processor alone is not charged too.
        let service = if self.work_us.is_some() { Duration::ZERO } else { usual.service };
        self.sender_costs.tell(service, &mut black_box);
        let workload = Workload {
            packet_bytes: u32::try_from(self.packet_bytes.get()).unwrap_or(u32::MAX),
            segment_packets,
            window: self.window.unwrap_or(usual.window),
            buffer: self.buffer,
            tolerance: self.tolerance.of_packets(segment_packets).map_err(usage::bad)?,
            offered: self.offered,
            bursts: self.burst,
            packets: self.packets,
            slowdown: self.slowdown,
        };
        let mut scenario = Scenario { black_box, workload, scheme: scheme.config() };
        self.settings.tell(&mut scenario)?;
        // Why the pair: what only the scheme refuses must be known before a file is made.
        scenario::check_pair(&scenario).map_err(|error| usage::bad(error.to_string()))?;
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

/// A key of the registry, of a scheme that is simulated over a black box.
fn over_a_black_box(text: &str) -> Result<String, String> {
    match text {
        "xtp" => Err("xtp is simulated over a tandem of queues and has flags of its own; write it in front of them, and see \
                      `segstream sim xtp --help`"
            .to_owned()),
        other => scheme(other),
    }
}

/// A count, which may be written as 1e7.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let refused = || format!("\"{text}\" is not a count; write a whole number, such as 1000000 or 1e6");
    if let Ok(count) = text.replace('_', "").parse() {
        return Ok(count);
    }
    let value: f64 = text.parse().map_err(|_| refused())?;
    if value.fract() == 0.0 && (0.0..=1e15).contains(&value) { Ok(value as u64) } else { Err(refused()) }
}

/// F and L: `100,256`. What they cannot be is said with the bandwidth that they must fit.
fn bursts(text: &str) -> Result<Bursts, String> {
    let read = |(per_second, packets): (&str, &str)| {
        Some(Bursts { per_second: per_second.trim().parse().ok()?, packets: packets.trim().parse().ok()? })
    };
    text.split_once(',').and_then(read).ok_or_else(|| {
        format!("\"{text}\" is not F,L; write how many bursts start per second and how many packets each has, such as 100,256")
    })
}

/// When the user is slow, and how slow: `200ms,500ms,17ms`.
fn slowdown(text: &str) -> Result<Slowdown, String> {
    let refused = || format!("\"{text}\" is not FROM,UNTIL,TAKES; write three times, such as 200ms,500ms,17ms");
    let mut times = text.split(',').map(|time| quantity::duration(time.trim()).map_err(|_| refused()));
    let mut next = || times.next().unwrap_or_else(|| Err(refused()));
    let (from, until, takes) = (next()?, next()?, next()?);
    if times.next().is_some() {
        return Err(refused());
    }
    Ok(Slowdown { from: Instant::ZERO + from, until: Instant::ZERO + until, takes })
}

/// What a packet costs an end, and a byte: `70,0.05`.
fn work(text: &str) -> Result<(Duration, Duration), String> {
    let (packet, byte) = text.split_once(',').ok_or_else(|| {
        format!("\"{text}\" is not what an end works; write what a packet costs and what each byte does, such as 70,0.05")
    })?;
    Ok((microseconds(packet)?, microseconds(byte)?))
}
