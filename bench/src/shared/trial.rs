//! A trial: one link between two namespaces, the flows over it, and what was observed of them.
//!
//! Called by the scenarios.
//!
//! Invariant: every process ends with the trial; the senders are interrupted, so nothing is sent to its end.

use super::feeder::Application;
use crate::arrivals::{Arrivals, TCP_PAYLOAD};
use anyhow::{Context as _, Result};
use segstream_testbed::kernel_tcp::Series;
use segstream_testbed::probe::Crossing;
use segstream_testbed::process::{Running, Said};
use segstream_testbed::{Ends, Side, Testbed};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What all trials have in common.
#[derive(Debug)]
pub(super) struct TrialSetup {
    /// The command.
    pub(super) segstream: PathBuf,
    /// How long a trial lasts.
    pub(super) seconds: f64,
    /// The directory for the output of both ends.
    pub(super) trace: Option<PathBuf>,
}

/// A flow from A to B.
#[derive(Clone, Debug)]
pub(super) enum Flow {
    /// The flagship, from this second on; greedy without an application.
    Stream { start: f64, application: Option<Application> },
    /// The kernel's TCP with this congestion control, from this second on.
    Tcp { start: f64, congestion_control: &'static str },
}

/// What was observed in a trial.
#[derive(Debug)]
pub(super) struct Observed {
    /// Of each stream in the order of the flows.
    pub(super) streams: Vec<Arrivals>,
    /// Of each TCP in the order of the flows.
    pub(super) tcps: Vec<Tcp>,
    /// The link's own report.
    pub(super) link: Value,
    /// When a packet left, and how long it took from A to B; both in seconds.
    pub(super) crossings: Vec<(f64, f64)>,
}

/// What a TCP carried.
#[derive(Debug)]
pub(super) struct Tcp {
    start: f64,
    series: Series,
}

impl Tcp {
    /// The mean rate of whole packets, in bit/s.
    pub(super) fn bps(&self, from: f64, to: f64) -> f64 {
        let since = |at: f64| Duration::from_secs_f64((at - self.start).max(0.0));
        self.series.bps(since(from), since(to)) / TCP_PAYLOAD
    }
}

/// The flagship's two ends while they run.
struct Stream {
    sender: Running,
    receiver: Running,
}

impl TrialSetup {
    /// Runs a trial on a link with these flags.
    pub(super) fn run(&self, name: &str, flags: &[&str], flows: &[Flow]) -> Result<Observed> {
        let testbed = Testbed::new(&self.segstream, flags)?;
        let (ends, zero, stop) = (testbed.ends(), testbed.opened(), AtomicBool::new(false));
        let (streams, tcps, crossings) = thread::scope(|scope| {
            let probe = scope.spawn(|| ends.probe(&stop));
            let tcps: Vec<_> = flows
                .iter()
                .filter_map(|flow| match *flow {
                    Flow::Tcp { start, congestion_control } => Some(scope.spawn(move || self.tcp(ends, zero, start, congestion_control))),
                    Flow::Stream { .. } => None,
                })
                .collect();
            let mut streams = Vec::new();
            for flow in flows {
                let Flow::Stream { start, application } = flow else { continue };
                sleep_until(zero, *start);
                let mut stream = self.stream(ends, application.is_some());
                if let (Some(application), Some(pipe)) = (application, stream.sender.take_input()) {
                    scope.spawn(move || application.feed(pipe, zero, self.seconds));
                }
                streams.push(stream);
            }
            sleep_until(zero, self.seconds);
            stop.store(true, Ordering::Relaxed);
            let streams: Vec<[Vec<Said>; 2]> = streams.into_iter().map(Stream::end).collect();
            let tcps: Vec<Tcp> = tcps.into_iter().map(joined).collect();
            (streams, tcps, joined(probe))
        });
        let link = testbed.end().json();
        self.keep(name, &streams)?;
        let crossing = |crossing: Crossing| (crossing.left.duration_since(zero).as_secs_f64(), crossing.took.as_secs_f64());
        Ok(Observed {
            streams: streams.iter().map(|[_, receiver]| Arrivals::of(receiver, zero)).collect(),
            tcps,
            link,
            crossings: crossings.into_iter().map(crossing).collect(),
        })
    }

    fn tcp(&self, ends: &Ends, zero: Instant, start: f64, congestion_control: &str) -> Tcp {
        sleep_until(zero, start);
        let start = zero.elapsed().as_secs_f64();
        Tcp { start, series: ends.kernel_tcp(congestion_control, Duration::from_secs_f64((self.seconds - start).max(0.1))) }
    }

    fn stream(&self, ends: &Ends, limited: bool) -> Stream {
        let listen = format!("{}:0", ends.address(Side::B));
        let program: &Path = &self.segstream;
        let flags = ["recv", "--listen", &listen, "--insecure", "--stats", "50ms"];
        let mut receiver = ends.start(Side::B, program, &flags, Stdio::null());
        let to = receiver.listening().to_string();
        let zeros = || File::open("/dev/zero").map_or_else(|_| Stdio::null(), Stdio::from);
        let stdin = if limited { Stdio::piped() } else { zeros() };
        let flags = ["send", &to, "-", "--rate", "auto", "--insecure", "--stats", "50ms"];
        Stream { sender: ends.start(Side::A, program, &flags, stdin), receiver }
    }

    /// Writes the output of both ends, if that is wanted.
    fn keep(&self, name: &str, streams: &[[Vec<Said>; 2]]) -> Result<()> {
        let Some(directory) = &self.trace else { return Ok(()) };
        for (number, said) in streams.iter().enumerate() {
            for (end, said) in ["send", "recv"].into_iter().zip(said) {
                let path = directory.join(format!("{name}-{number}-{end}.jsonl"));
                let lines: String = said.iter().flat_map(|said| [said.line.as_str(), "\n"]).collect();
                std::fs::write(&path, lines).with_context(|| format!("{} cannot be written", path.display()))?;
            }
        }
        Ok(())
    }
}

impl Stream {
    /// Interrupts both ends and returns their output.
    fn end(self) -> [Vec<Said>; 2] {
        let sender = self.sender.interrupt();
        // It has ended by itself if it learnt of the interruption.
        [sender.said, self.receiver.interrupt().said]
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn sleep_until(zero: Instant, seconds: f64) {
    thread::sleep((zero + Duration::from_secs_f64(seconds)).saturating_duration_since(Instant::now()));
}
