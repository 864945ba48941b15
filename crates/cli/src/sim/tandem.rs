//! `segstream sim xtp`: XTP's error control over a tandem of finite queues (XT Figure 2), its flags and what it prints.
//!
//! Called by the verb.
//!
//! Invariant: what the flags mean is a scenario of the laboratory; a flag of the black box is refused with where it belongs.

use super::arguments::{Arguments, count};
use super::in_words;
use super::summary::{OVER_REPLICATIONS, Row, Summary};
use super::sweep::{MergeArguments, SweepArguments};
use crate::{progress, quantity, usage};
use anyhow::{Context as _, Result};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Error, Subcommand};
use segstream_base::random::Seed;
use segstream_lab::runner::Runner;
use segstream_lab::statistics::Estimate;
use segstream_lab::tandem::{
    Arrivals, NODES, Order, TandemConfig, TandemOutcome, TandemResult, TandemScenario, TandemScheme, Tie, WTIMER_SLOTS, value_names,
};
use segstream_schemes::xtp::{Question, ReceiverStrategy, SenderStrategy};
use serde_json::json;
use std::sync::atomic::AtomicBool;

/// What is simulated over a tandem of queues instead of a black box, or more than one scenario.
#[derive(Debug, Subcommand)]
pub(crate) enum Tandem {
    Xtp(Box<TandemArguments>),
    Sweep(SweepArguments),
    Merge(MergeArguments),
}

/// Simulates XTP's error control over a tandem of finite queues (XT): messages pass XTP1, LINK1, where other traffic joins
/// them, a link with bit errors, LINK2 and XTP2.
///
/// Times are in slots; a packet occupies the link for one slot. Delay is the time from the arrival of a message at XTP1 to
/// the departure from XTP2 of the packet that completes it, in order. A run without a steady state has no mean delay, and
/// the output says so.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  segstream sim xtp --sender sr --receiver store-aggressive --user-rate 0.12 --window 60\n  \
                        segstream sim xtp --sender gbn --receiver store-conservative --arrivals ibp:c2=10 --replications 5")]
pub(crate) struct TandemArguments {
    /// What the sender retransmits: gbn (go-back-N), sr (selective repeat), and handshake or handshake-gbn (the same two, only after
    /// a synchronising handshake).
    #[arg(long, value_name = "HOW", default_value = "sr")]
    sender: SenderStrategy,
    /// What the receiver does with packets out of order: discard, store-conservative (stores them silently) or
    /// store-aggressive (stores them and reports the gap).
    #[arg(long, value_name = "HOW", default_value = "store-aggressive")]
    receiver: ReceiverStrategy,
    /// How messages arrive: bernoulli, or ibp:c2=10, interrupted Bernoulli with its squared coefficient of variation.
    #[arg(long, value_name = "HOW", value_parser = arrivals, default_value = "bernoulli")]
    arrivals: Arrivals,
    /// Messages per slot; a message has two packets on average.
    #[arg(long, value_name = "RATE", default_value_t = 0.12)]
    user_rate: f64,
    /// Packets of cross traffic per slot at LINK1.
    #[arg(long, value_name = "RATE", default_value_t = 0.1)]
    external_rate: f64,
    /// The window in packets.
    #[arg(long, value_name = "N", default_value_t = 60)]
    window: u32,
    /// The capacity of LINK1 in packets, the one in service included.
    #[arg(long, value_name = "N", default_value_t = 13)]
    link1_room: u32,
    /// The timeout of a status request (WTIMER), in slots.
    #[arg(long, value_name = "N", default_value_t = WTIMER_SLOTS)]
    wtimer: u32,
    /// What the last packet of a window asks for: sreq (the status at once) or dreq (when what has come is delivered).
    #[arg(long, value_name = "WHAT", value_parser = value_names::question, default_value = "sreq")]
    asks: Question,
    /// How long the receiving user takes for each packet, in slots.
    #[arg(long, value_name = "N", default_value_t = 0)]
    reads: u32,
    /// Nothing is retransmitted twice within this many slots [default: 50 for gbn, else 29].
    #[arg(long, value_name = "N")]
    filter: Option<u32>,
    /// The probability that the link corrupts a packet.
    #[arg(long, value_name = "P", default_value = "8.19e-6")]
    packet_error_rate: f64,
    /// Which event is first when one packet leaves a queue and another arrives in the same slot: departures or arrivals.
    #[arg(long, value_name = "WHAT", value_parser = value_names::order, default_value = "departures")]
    order: Order,
    /// Whose packet is first when two arrive at LINK1 in the same slot: external (cross traffic), user or drawn (random).
    #[arg(long, value_name = "WHOSE", value_parser = value_names::tie, default_value = "external")]
    tie: Tie,
    /// The number of measured slots.
    #[arg(long, value_name = "N", value_parser = count, default_value = "2000000")]
    slots: u64,
    /// The number of slots before the measurement.
    #[arg(long, value_name = "N", value_parser = count, default_value = "20000")]
    warm_up: u64,
    /// The seed of all random numbers; each replication derives its own from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The number of independent runs, from which confidence intervals are computed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), default_value_t = 1)]
    replications: u32,
    /// The number of threads for replications [default: one per processor].
    #[arg(long, value_name = "N", value_parser = quantity::threads, default_value = "0", hide_default_value = true)]
    threads: usize,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    pub(super) json: bool,
}

impl TandemArguments {
    /// The scenario the flags mean.
    fn scenario(&self) -> Result<TandemScenario> {
        let scenario = TandemScenario {
            scheme: TandemScheme::Xtp {
                sender: self.sender,
                receiver: self.receiver,
                wtimer_slots: self.wtimer,
                filter_slots: self.filter,
                asks: self.asks,
                reads_slots: self.reads,
            },
            window: self.window,
            tandem: TandemConfig {
                arrivals: self.arrivals.at_rate(self.user_rate),
                external_rate: self.external_rate,
                link1_room: self.link1_room,
                packet_error_rate: self.packet_error_rate,
                order: self.order,
                tie: self.tie,
                slots: self.slots,
                warm_up_slots: self.warm_up,
                ..TandemConfig::default()
            },
        };
        scenario.check().map_err(|error| usage::bad(error.to_string()))?;
        Ok(scenario)
    }

    /// All replications.
    pub(super) fn simulate(&self) -> Result<Summary> {
        let scenario = self.scenario()?;
        let total = u64::from(self.replications);
        let bar = progress::bar(Some(total), "{pos} of {len} replications [{wide_bar}] {eta} left", total == 1);
        let runner = Runner {
            seed: Seed(self.seed),
            store: None,
            threads: self.threads,
            progress: &|progress| bar.set_position(progress.runs_done),
            // Why never: nothing of a simulation is kept, so a signal may end it as it ends any process.
            stop: &AtomicBool::new(false),
            only_stored: false,
        };
        let results = runner.run_repeated(&[(scenario, self.replications)]).map_err(in_words);
        bar.finish_and_clear();
        Ok(self.summary(&results?.into_iter().next().context("no result came")?))
    }

    fn summary(&self, result: &TandemResult) -> Summary {
        let count =
            |key, of: fn(&TandemOutcome) -> u64| Row { key, estimate: result.over_replications(|outcome| of(outcome) as f64), count: true };
        let value = |key, estimate| Row { key, estimate, count: false };
        let exact = |mean: f64| Estimate { mean, half_width: None, samples: result.outcomes.len() as u64 };
        let slots = (self.slots + self.warm_up) as f64 * result.outcomes.len() as f64;
        let rows = vec![
            value("delay_slots_mean", result.delay_slots_mean()),
            value("throughput_messages_per_slot", result.throughput_messages_per_slot()),
            count("overflow_drops", TandemOutcome::overflow_drops),
            count("external_drops", |outcome| outcome.external_drops),
            count("packets_sent", |outcome| outcome.packets_sent),
            count("packets_retransmitted", |outcome| outcome.packets_retransmitted),
            count("packets_corrupted", |outcome| outcome.packets_corrupted),
            count("control_packets", |outcome| outcome.control_packets),
            count("feedback_packets", |outcome| outcome.feedback_packets),
            count("messages_delivered", |outcome| outcome.messages_delivered),
            count("backlog_messages_end", |outcome| outcome.backlog_messages_end),
            value("wall_seconds", exact(result.wall_s)),
            value("node_slots_per_second", exact(NODES as f64 * slots / result.wall_s.max(1e-9))),
        ];
        Summary {
            trouble: result.trouble().map(str::to_owned),
            head: vec![
                ("scheme", json!("xtp")),
                ("sender", json!(self.sender.to_string())),
                ("receiver", json!(self.receiver.to_string())),
                ("seed", json!(self.seed)),
                ("unstable", json!(result.is_unstable())),
                ("unstable_runs", json!(result.unstable_runs())),
            ],
            rows,
            replications: result.outcomes.len(),
            method: OVER_REPLICATIONS,
        }
    }
}

/// How messages arrive; the rate is a flag of its own.
fn arrivals(text: &str) -> Result<Arrivals, String> {
    value_names::arrivals(text, 0.0)
}

/// An error of the parser, which says where a flag belongs that was given to the other of the two simulations.
pub(crate) fn explained(mut error: Error) -> Error {
    let mut words = std::env::args().skip(1);
    if error.kind() != ErrorKind::UnknownArgument || words.next().as_deref() != Some("sim") {
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let Some(flag) = flag.strip_prefix("--").map(|flag| flag.split('=').next().unwrap_or(flag).to_owned()) else { return error };
    let has = |command: clap::Command| command.get_arguments().any(|argument| argument.get_long() == Some(&flag));
    let of_tandem = words.any(|word| word == "xtp");
    let hint = if of_tandem && has(Arguments::augment_args(clap::Command::new("sim"))) {
        format!("--{flag} belongs to schemes over a black box; xtp runs over a tandem of queues, see `segstream sim xtp --help`")
    } else if !of_tandem && has(TandemArguments::augment_args(clap::Command::new("xtp"))) {
        format!("--{flag} belongs to xtp over a tandem of queues; write `segstream sim xtp --{flag} ...`")
    } else {
        return error;
    };
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    error
}
