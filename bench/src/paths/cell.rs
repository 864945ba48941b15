//! One measurement and its result.
//!
//! Called by [`super::run`] for each cell that the journal does not have.
//!
//! Invariant: goodput and delays are the receiver's; the wire is what the device of the sender's host counts.

use super::end::{End, Listening, Outcome};
use super::matrix::Cell;
use anyhow::{Context as _, Result};
use segstream_testbed::{Ends, Side, Testbed};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long an end takes at most to listen, and to end when its work is done.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How large the kernel may make the buffers of TCP: least, first, most. A new namespace has less.
const TCP_BUFFERS: [(&str, &str); 2] = [("ipv4/tcp_rmem", "4096 131072 33554432"), ("ipv4/tcp_wmem", "4096 16384 16777216")];

/// The programs whose ends are measured.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) segstream: PathBuf,
    /// Empty if no peer is measured.
    pub(super) peers: PathBuf,
}

/// What is kept of a measurement: a line of the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) workload: String,
    pub(super) transport: String,
    pub(super) loss: String,
    pub(super) seed: u64,
    /// The flags of both ends, so that a measurement under others is another one.
    pub(super) flags: String,
    /// Of the application, at the receiver.
    pub(super) goodput_bps: f64,
    /// IP bytes that left the sender's host for a byte that the receiver's application got.
    pub(super) wire_bytes_per_byte: Option<f64>,
    /// Of both ends together.
    pub(super) cpu_seconds_per_gb: Option<f64>,
    /// Of `schedule`: from when a segment was due to when it was complete.
    pub(super) delay_ms: Option<Delay>,
    /// The same of each segment, to the microsecond, so that seeds can be taken together.
    #[serde(default)]
    pub(super) delays_ms: Vec<f64>,
    /// Of `schedule`: which part of the segments was never complete.
    pub(super) incomplete: Option<f64>,
    /// Whether the link was true; where it was not, the numbers mean less.
    pub(super) link_kept_up: bool,
    /// By how much one packet of a thousand left the link too late, at least.
    pub(super) link_lateness_ms: f64,
    /// Why there is no result.
    pub(super) error: Option<String>,
}

/// Delays of the complete segments.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Delay {
    pub(super) mean: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Delay {
    /// Of these, if there are any.
    pub(super) fn of(mut delays: Vec<f64>) -> Option<Self> {
        delays.sort_by(f64::total_cmp);
        let max = *delays.last()?;
        let rank = (delays.len() as f64 * 0.99).ceil() as usize;
        Some(Self { mean: delays.iter().sum::<f64>() / delays.len() as f64, p99: delays[rank.clamp(1, delays.len()) - 1], max })
    }
}

impl Programs {
    /// Measures a cell. What goes wrong at an end is a result too; only a missing right is an error.
    pub(super) fn measure(&self, cell: &Cell) -> Result<Measured> {
        let link = cell.link();
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        let testbed = Testbed::new(&self.segstream, &link)?;
        for side in [Side::A, Side::B] {
            TCP_BUFFERS.iter().for_each(|(setting, value)| testbed.set(side, setting, value));
        }
        let played = self.play(cell, testbed.ends());
        let report = testbed.end().json();
        let link_kept_up = report["kept_up"] == true;
        let link_lateness_ms = report["lateness_ms_p999"].as_f64().unwrap_or(f64::MAX);
        Ok(match played {
            Ok(measured) => Measured { link_kept_up, link_lateness_ms, ..measured },
            Err(error) => Measured { link_kept_up, link_lateness_ms, error: Some(format!("{error:#}")), ..blank(cell) },
        })
    }

    fn play(&self, cell: &Cell, ends: &Ends) -> Result<Measured> {
        let contender = cell.contender;
        let (program, verb) = if contender.is_ours { (&self.segstream, "bench end") } else { (&self.peers, "end") };
        let words = |own: [&str; 4]| -> Vec<String> {
            let first = verb.split(' ').chain([contender.transport]).chain(own);
            first.map(str::to_owned).chain(cell.flags()).collect()
        };
        let bind = format!("{}:0", ends.address(Side::B));
        let receiver = End::start(ends, Side::B, program, &words(["--side", "serve", "--bind", &bind]))?;
        let Listening { listening, trust } = receiver.line(Instant::now() + TIMEOUT).context("the receiver")?;
        let mut words = words(["--side", "run", "--connect", &listening]);
        // Why in one word: a text that begins with a dash would look like a flag.
        words.push(format!("--trust={trust}"));
        let sender = End::start(ends, Side::A, program, &words)?;
        let begun = Instant::now();
        let end = begun + cell.time() + TIMEOUT;
        let received: Outcome = receiver.line(end).map_err(|error| match sender.line::<Outcome>(Instant::now()) {
            Err(complaint) => anyhow::anyhow!("the receiver: {error}; the sender: {complaint}"),
            Ok(_) => anyhow::anyhow!("the receiver: {error}; the sender has ended well"),
        })?;
        let wire_bytes = ends.bytes_left(Side::A);
        // A sender that did not hear of the end does not make the measurement void.
        let sent: Option<Outcome> = sender.line(Instant::now() + TIMEOUT).ok();
        receiver.leave();
        sender.leave();
        let bytes = received.bytes as f64;
        let by_byte = |number: f64| (bytes > 0.0).then(|| number / bytes);
        let delays = received.delays_ms;
        let wanted = (cell.work.segments() - cell.work.warm_up()) as f64;
        Ok(Measured {
            goodput_bps: if received.seconds > 0.0 { bytes * 8.0 / received.seconds } else { 0.0 },
            wire_bytes_per_byte: by_byte(wire_bytes as f64),
            cpu_seconds_per_gb: sent.and_then(|sent| by_byte((sent.cpu_seconds + received.cpu_seconds) * 1e9)),
            incomplete: delays.as_ref().map(|delays| 1.0 - delays.len() as f64 / wanted),
            delays_ms: delays.iter().flatten().map(|delay| (delay * 1e3).round() / 1e3).collect(),
            delay_ms: delays.and_then(Delay::of),
            ..blank(cell)
        })
    }
}

/// Nothing measured yet.
pub(super) fn blank(cell: &Cell) -> Measured {
    Measured {
        workload: cell.work.name().to_owned(),
        transport: cell.contender.name.to_owned(),
        loss: cell.loss.name.to_owned(),
        seed: cell.seed,
        flags: cell.flags().join(" "),
        goodput_bps: 0.0,
        wire_bytes_per_byte: None,
        cpu_seconds_per_gb: None,
        delay_ms: None,
        delays_ms: Vec::new(),
        incomplete: None,
        link_kept_up: false,
        link_lateness_ms: 0.0,
        error: None,
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.error {
            return write!(f, "no result: {error}");
        }
        write!(f, "{:.1} Mbit/s", self.goodput_bps / 1e6)?;
        if let Some(Delay { mean, p99, max }) = self.delay_ms {
            write!(f, ", delay {mean:.0} / {p99:.0} / {max:.0} ms")?;
        }
        if let Some(incomplete) = self.incomplete.filter(|part| *part > 0.0) {
            write!(f, ", {:.1} % incomplete", incomplete * 100.0)?;
        }
        if let Some(wire) = self.wire_bytes_per_byte {
            write!(f, ", {wire:.3} bytes sent for a byte")?;
        }
        if self.link_kept_up { Ok(()) } else { write!(f, "; the link was {:.1} ms late", self.link_lateness_ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_a_hundred_is_not_the_99th_percentile() {
        let delay = Delay::of((1..=100).map(f64::from).rev().collect()).unwrap();
        assert_eq!((delay.mean, delay.p99, delay.max), (50.5, 99.0, 100.0));
        assert!(Delay::of(Vec::new()).is_none());
        assert_eq!(Delay::of(vec![7.0]).unwrap().p99, 7.0);
    }
}
