//! Queue management, jitter, aggregation and route changes of an emulated path, as written on the command line.
//!
//! Called by `link` and `sim`, which have the same flags.
//!
//! Invariant: a trace is read in bounded memory, whatever file is named.

use crate::quantity;
use clap::Args;
use segstream_base::Duration;
use segstream_lab::scenario::Hop;
use segstream_path::{Aqm, DelaySteps, Jitter, OpportunityTrace};
use std::fs::File;
use std::io::Read;

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct Hops {
    /// A recorded link for both directions, in the place of --bandwidth: a file in Mahimahi's format, in which each line is a time in
    /// milliseconds at which 1500 bytes may leave. At its end it starts again.
    #[arg(long, value_name = "FILE", value_parser = trace)]
    pub(crate) trace: Option<OpportunityTrace>,
    /// The same for the opposite direction: a file, or none for --bandwidth [default: --trace].
    #[arg(long, value_name = "FILE", value_parser = trace_or_none)]
    pub(crate) trace_back: Option<OpportunityTrace>,
    /// Queue management of each direction: droptail; codel (RFC 8289), pie (RFC 8033), red (Floyd and Jacobson 1993),
    /// fq-codel (RFC 8290) or dualpi2 (RFC 9332), with settings such as codel:target=5ms,interval=100ms. All but droptail mark
    /// ECN-capable packets instead of dropping them, as their RFC says.
    #[arg(long, value_name = "SPEC", default_value = "droptail")]
    pub(crate) aqm: Aqm,
    /// The queues do not know ECN: what they would mark they drop.
    #[arg(long)]
    pub(crate) no_ecn: bool,
    /// Random addition to the delay of each direction: 10ms for up to so much, drawn for each packet; wifi:12ms for a wireless hop
    /// with short waits and rare long stalls, 12 ms on average; none. It causes no reordering.
    #[arg(long, value_name = "SPEC", default_value = "0ms")]
    pub(crate) jitter: Jitter,
    /// The same for the opposite direction [default: --jitter].
    #[arg(long, value_name = "SPEC")]
    pub(crate) jitter_back: Option<Jitter>,
    /// What the link of a direction has sent is gathered and released in bursts, so long apart; 0ms releases it at once.
    #[arg(long, value_name = "T", value_parser = quantity::duration, default_value = "0ms")]
    pub(crate) aggregate: Duration,
    /// The same for the opposite direction [default: --aggregate].
    #[arg(long, value_name = "T", value_parser = quantity::duration)]
    pub(crate) aggregate_back: Option<Duration>,
    /// A route that changes: the delay of each direction from these times on, in the place of half of --rtt, such as
    /// 0s:20ms,10s:60ms.
    #[arg(long, value_name = "LIST", default_value = "none")]
    pub(crate) delay_steps: DelaySteps,
    /// The same for the opposite direction [default: --delay-steps].
    #[arg(long, value_name = "LIST")]
    pub(crate) delay_steps_back: Option<DelaySteps>,
}

impl Hops {
    /// The hop of the forward direction.
    pub(crate) fn there(&self) -> Hop {
        Hop {
            trace: self.trace.clone().unwrap_or_default(),
            aqm: self.aqm,
            ecn_unaware: self.no_ecn,
            jitter: self.jitter,
            aggregate: self.aggregate,
            delay_steps: self.delay_steps.clone(),
            ..Hop::default()
        }
    }

    /// The hop of the opposite direction.
    pub(crate) fn back(&self) -> Hop {
        Hop {
            trace: self.trace_back.as_ref().or(self.trace.as_ref()).cloned().unwrap_or_default(),
            aqm: self.aqm,
            ecn_unaware: self.no_ecn,
            jitter: self.jitter_back.unwrap_or(self.jitter),
            aggregate: self.aggregate_back.unwrap_or(self.aggregate),
            delay_steps: self.delay_steps_back.clone().unwrap_or_else(|| self.delay_steps.clone()),
            ..Hop::default()
        }
    }

    /// The longest round trip without jitter, where `rtt` is the one without steps.
    pub(crate) fn longest_round_trip(&self, rtt: Duration) -> Duration {
        let there = self.delay_steps.most().unwrap_or(rtt / 2);
        let back = self.delay_steps_back.as_ref().unwrap_or(&self.delay_steps).most().unwrap_or(rtt.saturating_sub(rtt / 2));
        there + back
    }
}

/// Reads a trace, or the word none.
fn trace_or_none(path: &str) -> Result<OpportunityTrace, String> {
    if path == "none" { Ok(OpportunityTrace::NONE) } else { trace(path) }
}

/// Reads a trace in Mahimahi's format.
fn trace(path: &str) -> Result<OpportunityTrace, String> {
    let file = File::open(path).map_err(|error| format!("cannot open the trace: {error}"))?;
    let mut text = String::new();
    // Why one more: what is longer than any trace is told from one that is just as long.
    let read =
        file.take(OpportunityTrace::TEXT_MOST + 1).read_to_string(&mut text).map_err(|error| format!("cannot read the trace: {error}"))?;
    if read as u64 > OpportunityTrace::TEXT_MOST {
        return Err(format!("the file is longer than {} bytes, which no trace may be; shorten it", OpportunityTrace::TEXT_MOST));
    }
    OpportunityTrace::read(&text).map_err(|error| error.to_string())
}
