//! HTPNET's stages on threads of this machine.
//!
//! Called by the benchmarks, and to give the model the costs of this machine.
//!
//! Limit: a measurement differs from one run to the next, so it is never stored as an outcome. The busy time of a stage is
//! wall time of its turns, times the share of its waking time in which the thread had a processor.
//!
//! Invariant: a run that does not deliver every packet in order and unchanged is an error.

use super::StagesError;
use super::costs::StageCosts;
use super::process::{Assembly, FLOW, STAGE_NAMES, STAGES, Told, told};
use super::scenario::PACKETS_MIN;
use super::spread::{self, PROCESSORS_MAX};
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_net::staged::{self, Finished, Mapping, StagedOptions, Stop};
use segstream_path::{LossSpec, PathConfig};
use segstream_schemes::htpnet::{Config, SyncPeriod};

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measuring {
    /// Threads, 1 to [`PROCESSORS_MAX`]. Default 1.
    pub threads: usize,
    /// By which costs the stages are spread over the threads, in a row. Default [`StageCosts::paper`].
    pub costs: StageCosts,
    /// Whether each thread is bound to a processor. Default no.
    pub pin: bool,
    /// How often it is run. Default 5.
    pub runs: usize,
    /// Packets of a run, the first fifth of which is not measured. Default 1,000,000.
    pub packets: u32,
    /// A whole packet. Default 2048 bytes, as HT has them.
    pub packet_bytes: u32,
    /// The window in packets. Default 4096.
    pub window: u32,
    /// How often states are exchanged. Default 1 ms.
    pub sync_period: Duration,
    /// Which packets the network loses, data and control alike, forward. Default none.
    pub loss: LossSpec,
    /// Which ones back. Default none.
    pub loss_back: LossSpec,
    /// The delay of the network, one way. Default none.
    pub delay: Duration,
    /// The longest run. Default 60 s.
    pub time_max: Duration,
}

impl Default for Measuring {
    fn default() -> Self {
        Self {
            threads: 1,
            costs: StageCosts::paper(),
            pin: false,
            runs: 5,
            packets: 1_000_000,
            packet_bytes: 2048,
            window: 4096,
            sync_period: Duration::from_millis(1),
            loss: LossSpec::None,
            loss_back: LossSpec::None,
            delay: Duration::ZERO,
            time_max: Duration::from_secs(60),
        }
    }
}

/// What one stage did in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredStage {
    /// Its name, of [`STAGE_NAMES`].
    pub name: &'static str,
    /// Calls for a message or a timer.
    pub calls: u64,
    /// Nanoseconds a call, what a message costs to take and to hand on included.
    pub call_ns: f64,
    /// Nanoseconds a delivered packet.
    pub packet_ns: f64,
    /// How often it had a message for which there was no room.
    pub stalls: u64,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Packets delivered a second by each run, in the steady state, ascending.
    pub packets_per_second: Vec<f64>,
    /// The thread of each stage, by the number of the stage.
    pub thread_of: [usize; STAGES],
    /// Whether all threads were bound to processors.
    pub pinned: bool,
    /// The share of its waking time in which each thread had a processor, in the run of the median: what is below one was
    /// taken by other work on this machine, and the rate with it.
    pub processor_shares: Vec<f64>,
    /// The stages, in the run of the median.
    pub stages: Vec<MeasuredStage>,
    /// Data packets that left in it.
    pub data_sent: u64,
    /// Data packets that the network lost in it.
    pub data_lost: u64,
}

impl Measurement {
    /// The median of the runs: the greater one of two.
    pub fn packets_per_second_median(&self) -> f64 {
        self.packets_per_second.get(self.packets_per_second.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// What each stage cost a packet: what the model can be given.
    pub fn costs(&self) -> StageCosts {
        let mut costs = [Duration::ZERO; STAGES];
        for (cost, stage) in costs.iter_mut().zip(&self.stages) {
            *cost = Duration::from_secs_f64(stage.packet_ns * 1e-9);
        }
        StageCosts(costs)
    }
}

/// Runs the stages on threads and measures them.
///
/// # Errors
///
/// When the parameters are invalid, a thread fails, or a run does not deliver everything in its time.
pub fn measure(measuring: &Measuring) -> Result<Measurement, StagesError> {
    if measuring.threads == 0 || measuring.threads > PROCESSORS_MAX {
        return Err(StagesError::Processors(measuring.threads));
    }
    if measuring.packets < PACKETS_MIN {
        return Err(StagesError::Packets(measuring.packets));
    }
    let thread_of = spread::in_a_row(&measuring.costs, measuring.threads);
    let mut runs = Vec::new();
    for run in 0..measuring.runs {
        runs.push(once(measuring, thread_of, run as u64)?);
    }
    runs.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    let packets_per_second = runs.iter().map(|run| run.rate).collect();
    let median = runs.get(runs.len() / 2).ok_or(StagesError::NoRuns)?;
    Ok(Measurement {
        packets_per_second,
        thread_of,
        pinned: runs.iter().all(|run| run.pinned),
        processor_shares: median.shares.clone(),
        stages: median.stages.clone(),
        data_sent: median.told.data_sent,
        data_lost: median.told.data_lost,
    })
}

struct Run {
    rate: f64,
    told: Told,
    pinned: bool,
    shares: Vec<f64>,
    stages: Vec<MeasuredStage>,
}

fn once(measuring: &Measuring, thread_of: [usize; STAGES], run: u64) -> Result<Run, StagesError> {
    let config = Config {
        packet_bytes: measuring.packet_bytes,
        window: measuring.window,
        sync_period: SyncPeriod::Fixed(measuring.sync_period),
        rtt: measuring.delay * 2,
        ..Config::default()
    };
    let path = |loss: &LossSpec| PathConfig { delay: measuring.delay, loss: loss.clone(), ..PathConfig::default() };
    let warm = measuring.packets / 5;
    let assembly = Assembly {
        config: &config,
        packets: measuring.packets,
        warm,
        forward: path(&measuring.loss),
        back: path(&measuring.loss_back),
        seed: Seed(1 + run),
    };
    let stop = Stop::new();
    let options =
        StagedOptions { flow: Some(FLOW.to_vec()), pin: measuring.pin, time_max: Some(measuring.time_max), ..StagedOptions::default() };
    let finished = staged::run(assembly.stages(&stop)?, &Mapping::new(thread_of.to_vec())?, &options, &stop)?;
    let told = told(&finished.stages);
    if told.delivered != measuring.packets || told.wrong > 0 {
        let (delivered, packets) = (told.delivered, measuring.packets);
        return Err(StagesError::Unfinished { delivered, packets, wrong: told.wrong, seconds: finished.elapsed.as_secs_f64() });
    }
    let rate = f64::from(measuring.packets - warm) * 1e9 / told.span_ns as f64;
    let shares: Vec<f64> = finished.threads.iter().map(staged::ThreadCounters::share).collect();
    let stages = stages(&finished, &thread_of, &shares, measuring.packets);
    Ok(Run { rate, told, pinned: finished.pinned, shares, stages })
}

fn stages<S>(finished: &Finished<S>, thread_of: &[usize], shares: &[f64], packets: u32) -> Vec<MeasuredStage> {
    let stage = |((name, counters), thread): ((&&'static str, &staged::StageCounters), &usize)| {
        let calls = counters.messages + counters.timeouts;
        let busy_ns = counters.busy.as_nanos() as f64 * shares.get(*thread).copied().unwrap_or(1.0);
        MeasuredStage {
            name,
            calls,
            call_ns: if calls == 0 { 0.0 } else { busy_ns / calls as f64 },
            packet_ns: busy_ns / f64::from(packets),
            stalls: counters.stalls,
        }
    };
    STAGE_NAMES.iter().zip(&finished.counters).zip(thread_of).map(stage).collect()
}
