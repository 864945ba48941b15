//! `segstream link`: a path with bandwidth, delay and loss between real sockets.
//!
//! Called from the command line; the emulator itself is `segstream_net::link`.
//!
//! Invariant: the exit status tells whether the emulation was true: 1 when the link could not keep up.

use crate::hops::Hops;
use crate::interruption::Interruption;
use crate::link_speed::Speed;
use crate::link_tun::{self, TunArguments};
use crate::metrics_server::MetricsArgument;
use crate::{address, json, quantity, usage};
use anyhow::Result;
use clap::{Args, ValueEnum};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_lab::scenario::Hop;
use segstream_net::link::{Link, LinkConfig, LinkError, LinkReport, Priority, Queueing, RelayCounters};
use segstream_path::{LossPlace, LossSpec, PathConfig, PathCounters, Policer, Probability, QueueLimit, RateTrace, ReorderSpec};
use serde::Serialize;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Emulates a network path: relays datagrams from one address to another with limited bandwidth, delay and loss.
///
/// Answers go back to the sender over a path with the same bandwidth and delay. Bandwidth counts whole IP packets: 28 bytes
/// more than the datagram on IPv4, 48 on IPv6. With --tun the path lies between two network namespaces, and the packets
/// of any program cross it.
///
/// Where the system permits it, the relay runs at real-time priority, before all normal programs of the machine; it says so.
///
/// Runs until it is interrupted, then prints what it did. The exit status is 1 if it could not keep up with its own schedule.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  segstream link --listen 127.0.0.1:4400 --to 127.0.0.1:4433 --bandwidth 100mbit --rtt 60ms --loss 1e-3\n  segstream link --tun left right --bandwidth 20mbit --rtt 40ms --aqm fq-codel\n  segstream link --tun left right --trace down.txt --trace-back up.txt --rtt 40ms --jitter wifi:12ms"
)]
pub(crate) struct Arguments {
    /// The address to receive on; port 0 selects a free port.
    #[arg(long, value_name = "ADDR", value_parser = address::numeric, required_unless_present = "tun")]
    listen: Option<SocketAddr>,
    /// The address to relay to.
    #[arg(long, value_name = "ADDR", value_parser = address::numeric, required_unless_present = "tun")]
    to: Option<SocketAddr>,
    #[command(flatten)]
    tun: TunArguments,
    /// Bandwidth of each direction, such as 100mbit; or a list of changes with the time since the start of the link:
    /// 0s:10mbit,5s:5mbit,8s:10mbit. A ,repeat=20s at the end repeats the list. 0bit is an outage. --trace takes its place.
    #[arg(long, value_name = "B", value_parser = Speed::parse, required_unless_present = "trace")]
    bandwidth: Option<Speed>,
    /// Round-trip time, such as 60ms; half of it in each direction.
    #[arg(long, value_name = "T", value_parser = quantity::duration, required_unless_present = "delay_steps")]
    rtt: Option<Duration>,
    /// The size of the queue in front of the link [default: one bandwidth-delay product at the highest bandwidth, at least
    /// 64KiB].
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    queue: Option<Bytes>,
    /// Marks ECN-capable packets that wait in the queue for longer than this, in both directions.
    #[arg(long, value_name = "T", value_parser = quantity::duration)]
    mark_above: Option<Duration>,
    /// A policer in front of the queue, from --listen to --to only: a rate such as 5mbit, or rate and burst such as
    /// 5mbit,64KiB. Packets above the rate are dropped [default burst: 100 ms of the rate, at least 15000 bytes].
    #[arg(long, value_name = "RATE[,BURST]")]
    policer: Option<Policer>,
    /// Loss from --listen to --to: none; 1e-3 or random:1e-3; gilbert:rate=1%,burst=4 (mean loss, mean length of a burst);
    /// bursty:good=1620ms,bad=180ms,loss=1e-3 (loss during bad times only; 1 is an outage); list:5,17,18 (these packets).
    #[arg(long, value_name = "SPEC", default_value = "none")]
    loss: LossSpec,
    /// Loss in the opposite direction.
    #[arg(long, value_name = "SPEC", default_value = "none")]
    loss_back: LossSpec,
    /// Whether packets are lost before they use bandwidth of the link, or after.
    #[arg(long, value_name = "PLACE", value_enum, default_value_t = Place::Before)]
    loss_at: Place,
    #[command(flatten)]
    hops: Hops,
    /// Reordering in both directions: none; 1%:distance=5 (1 % of packets arrive 5 packets late) or 1%:delay=10ms.
    #[arg(long, value_name = "SPEC", default_value = "none")]
    reorder: ReorderSpec,
    /// The share of packets that arrive twice, in both directions.
    #[arg(long, value_name = "P", default_value = "0")]
    duplicate: Probability,
    /// The share of packets in which one bit is flipped, in both directions.
    #[arg(long, value_name = "P", default_value = "0")]
    corrupt: Probability,
    /// The seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Prints one JSON object on standard output at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    metrics: MetricsArgument,
}

/// Where packets are lost.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Place {
    Before,
    After,
}

/// The JSON object.
#[derive(Debug, Serialize)]
struct Summary {
    seconds: f64,
    kept_up: bool,
    lateness_ms_p50: f64,
    lateness_ms_p99: f64,
    lateness_ms_p999: f64,
    lateness_ms_max: f64,
    stolen_ms: Option<f64>,
    forward: Lane,
    back: Lane,
    clients: u64,
    datagrams_unroutable: u64,
    datagrams_dropped_receive_buffer: Option<u64>,
}

/// One direction in the JSON object.
#[derive(Debug, Serialize)]
struct Lane {
    packets_entered: u64,
    packets_lost: u64,
    packets_dropped_queue: u64,
    packets_dropped_aqm: u64,
    packets_dropped_policer: u64,
    packets_marked: u64,
    packets_duplicated: u64,
    packets_corrupted: u64,
    packets_reordered: u64,
    queueing_ms_mean: f64,
    queueing_ms_p95: f64,
    queueing_ms_max: f64,
    datagrams_sent: u64,
    datagrams_dropped: u64,
    datagrams_unsent: u64,
}

/// What a relay does to the machine, said before it does it.
// Why said: a thread at real-time priority goes before every normal program of the machine.
pub(crate) const PRIORITY: &str = "the relay takes real-time priority or the best niceness where the system lets it, so that it is on time; \
     other programs wait while it works";

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let interruption = Interruption::listen(None)?;
    let report = match (arguments.listen, arguments.to) {
        (Some(listen), Some(to)) => relay(arguments, listen, to, &interruption)?,
        _ => {
            let (forward, back) = paths(arguments);
            let seen = (arguments.speed(), &arguments.metrics);
            link_tun::relay(&arguments.tun, (forward, back), Seed(arguments.seed), seen, &interruption)?
        }
    };
    tell(&report);
    if arguments.json {
        json::print(&Summary::of(&report))?;
    }
    Ok(if report.kept_up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Relays between sockets until it is interrupted.
fn relay(arguments: &Arguments, listen: SocketAddr, to: SocketAddr, interruption: &Interruption) -> Result<LinkReport> {
    let (forward, back) = paths(arguments);
    let config = LinkConfig { forward, back, seed: Seed(arguments.seed), ..LinkConfig::new(listen, to) };
    let mut link = Link::bind(&config).map_err(explain)?;
    let metrics = arguments.metrics.serve_link(|| link.watch())?;
    eprintln!("listening on {}", link.local_addr());
    eprintln!("relaying to {to} at {}; interrupt to end", arguments.speed());
    eprintln!("{PRIORITY}");
    if let Some(told) = metrics {
        eprintln!("{told}");
    }
    Ok(link.run(interruption.flag())?)
}

/// What the configuration refuses is bad usage, what the system refuses is a failure.
pub(crate) fn explain(error: LinkError) -> anyhow::Error {
    match error {
        LinkError::Path { .. } | LinkError::UnusableDestination { .. } | LinkError::RelaysToItself { .. } => usage::bad(error.to_string()),
        error => error.into(),
    }
}

impl Arguments {
    /// Bandwidth and round trip, for people.
    fn speed(&self) -> String {
        let bandwidth = match (&self.hops.trace, &self.bandwidth) {
            (Some(trace), _) => format!("{} on average, by its trace", trace.mean()),
            (None, Some(bandwidth)) => bandwidth.to_string(),
            (None, None) => String::new(),
        };
        let steps = &self.hops.delay_steps;
        if steps.is_none() {
            format!("{bandwidth}, {} round trip", self.rtt.unwrap_or_default())
        } else {
            format!("{bandwidth}, {steps} one way")
        }
    }

    /// The size of the queue in front of the link: what was asked for, or that of the highest bandwidth, or that of a trace.
    fn queue(&self) -> QueueLimit {
        let bandwidth = match (&self.hops.trace, &self.bandwidth) {
            (Some(trace), _) => trace.mean(),
            (None, bandwidth) => bandwidth.as_ref().map_or(Bandwidth::ZERO, Speed::peak),
        };
        let round_trip = self.hops.longest_round_trip(self.rtt.unwrap_or_default());
        self.queue.map_or_else(|| PathConfig::default_queue(bandwidth, round_trip), QueueLimit::Bytes)
    }
}

/// The path there and the path back.
fn paths(arguments: &Arguments) -> (PathConfig, PathConfig) {
    let rtt = arguments.rtt.unwrap_or_default();
    let there = rtt / 2;
    let at_speed = |path| arguments.bandwidth.as_ref().map_or_else(PathConfig::default, |speed| speed.of(path));
    let forward = PathConfig {
        queue: arguments.queue(),
        mark_above: arguments.mark_above,
        policer: arguments.policer,
        delay: there,
        loss: arguments.loss.clone(),
        loss_at: match arguments.loss_at {
            Place::Before => LossPlace::Before,
            Place::After => LossPlace::After,
        },
        reorder: arguments.reorder,
        duplicate: arguments.duplicate,
        corrupt: arguments.corrupt,
        ..at_speed(PathConfig::default())
    };
    let back = PathConfig { delay: rtt.saturating_sub(there), loss: arguments.loss_back.clone(), policer: None, ..forward.clone() };
    (with(&arguments.hops.there(), forward), with(&arguments.hops.back(), back))
}

/// `path` with a hop, whose trace takes the place of a list of bandwidths.
fn with(hop: &Hop, path: PathConfig) -> PathConfig {
    let trace = if hop.trace.is_none() { path.trace.clone() } else { RateTrace::NONE };
    hop.of(PathConfig { trace, ..path })
}

/// The sentence about the priority that the relay had.
const fn priority(had: Priority) -> &'static str {
    match had {
        Priority::Realtime => "the relay ran at real-time priority (SCHED_FIFO), before all normal programs",
        Priority::Nice => "the relay ran at the best niceness (-20); real-time priority was not allowed",
        Priority::Unchanged => "the relay ran at normal priority; the system allowed no other",
    }
}

fn tell(report: &LinkReport) {
    let lanes = [
        ("forward", &report.forward, &report.forward_relayed, &report.forward_queueing),
        ("back", &report.back, &report.back_relayed, &report.back_queueing),
    ];
    for (name, path, relayed, queueing) in lanes {
        let dropped = path.dropped_queue + path.dropped_aqm;
        let PathCounters { sent, lost, dropped_policer, marked, .. } = path;
        eprint!("{name}: {sent} packets entered, {lost} lost, {dropped} dropped by the queue, ");
        if *dropped_policer > 0 {
            eprint!("{dropped_policer} dropped by the policer, ");
        }
        if *marked > 0 {
            eprint!("{marked} marked, ");
        }
        eprintln!("{} sent on; {queueing}", relayed.sent);
    }
    eprintln!("{}", report.lateness);
    eprintln!("{}", priority(report.priority));
    for warning in &report.warnings {
        eprintln!("{warning}");
    }
    if !report.kept_up {
        eprintln!("segstream: the link could not keep up, so do not trust what went through it; lower the bandwidth or free the processor");
    }
}

impl Summary {
    fn of(report: &LinkReport) -> Self {
        Self {
            seconds: report.ran.as_secs_f64(),
            kept_up: report.kept_up,
            lateness_ms_p50: report.lateness.p50.as_millis_f64(),
            lateness_ms_p99: report.lateness.p99.as_millis_f64(),
            lateness_ms_p999: report.lateness.p999.as_millis_f64(),
            lateness_ms_max: report.lateness.max.as_millis_f64(),
            stolen_ms: report.lateness.stolen.map(Duration::as_millis_f64),
            forward: Lane::of(&report.forward, &report.forward_relayed, &report.forward_queueing),
            back: Lane::of(&report.back, &report.back_relayed, &report.back_queueing),
            clients: report.clients,
            datagrams_unroutable: report.unroutable,
            datagrams_dropped_receive_buffer: report.receive_buffer_drops,
        }
    }
}

impl Lane {
    fn of(path: &PathCounters, relayed: &RelayCounters, queueing: &Queueing) -> Self {
        Self {
            packets_entered: path.sent,
            packets_lost: path.lost,
            packets_dropped_queue: path.dropped_queue,
            packets_dropped_aqm: path.dropped_aqm,
            packets_dropped_policer: path.dropped_policer,
            packets_marked: path.marked,
            packets_duplicated: path.duplicated,
            packets_corrupted: path.corrupted,
            packets_reordered: path.reordered,
            queueing_ms_mean: queueing.mean.as_millis_f64(),
            queueing_ms_p95: queueing.p95.as_millis_f64(),
            queueing_ms_max: queueing.max.as_millis_f64(),
            datagrams_sent: relayed.sent,
            datagrams_dropped: relayed.dropped_limit + relayed.dropped_send_buffer + relayed.dropped_refused + relayed.dropped_client_gone,
            datagrams_unsent: relayed.unsent,
        }
    }
}
