//! From samples to figures: medians and quantiles, and how ours compare with others.
//!
//! Called by the verb when everything is measured.
//!
//! Invariant: goodput is the receiver's, round trips and delays are of all repetitions together, and processor time is that of
//! both ends: on loopback the receiving path of the system runs on the sender's account.

use super::measurement::Sample;
use super::workload::{WARM_UP, Workload};
use serde::Serialize;
use serde_json::{Map, Value};

const GB: f64 = 1e9;

/// What came of one transport under one workload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) workload: &'static str,
    pub(super) version: String,
    pub(super) encrypts: bool,
    /// How it was set up, in a sentence.
    pub(super) settings: String,
    pub(super) repetitions: usize,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

/// The figures of a workload.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Figures {
    Goodput {
        goodput_bps_median: f64,
        goodput_bps_min: f64,
        goodput_bps_max: f64,
        cpu_seconds_per_gb: f64,
        /// Payload delivered in all repetitions.
        bytes: u64,
        /// Segments, or datagrams of bare UDP, that were not.
        incomplete: u64,
    },
    Records {
        segments_per_second_median: f64,
        segments_per_second_min: f64,
        segments_per_second_max: f64,
        cpu_us_per_segment: f64,
        incomplete: u64,
    },
    RoundTrips {
        round_trip_us_mean: f64,
        round_trip_us_p50: f64,
        round_trip_us_p99: f64,
        round_trip_us_max: f64,
        cpu_us_per_round_trip: f64,
        round_trips: usize,
    },
    Delays {
        delay_us_mean: f64,
        delay_us_p50: f64,
        delay_us_p99: f64,
        delay_us_max: f64,
        segments: usize,
        incomplete: u64,
    },
    Active {
        goodput_bps_median: f64,
        cpu_seconds_per_gb: f64,
        connections: u64,
        /// Units that were sent again, in all repetitions.
        sent_again: u64,
        incomplete: u64,
    },
    Connections {
        server_cpu_us_per_setup: f64,
        setups_per_server_cpu_second: f64,
        memory_bytes_per_connection: f64,
        idle_connections: u64,
    },
}

impl Figures {
    /// Of the samples of a workload; the second list is of its second job, if it has one.
    pub(super) fn of(workload: Workload, samples: &[Vec<Sample>]) -> Self {
        let first = samples.first().map_or(&[][..], Vec::as_slice);
        match workload {
            Workload::Throughput => Self::goodput(first),
            Workload::Records => Self::records(first),
            Workload::PingPong => Self::round_trips(first),
            Workload::AtRate => Self::delays(first),
            Workload::Active => Self::active(first),
            Workload::Connections => Self::connections(first, samples.get(1).map_or(&[][..], Vec::as_slice)),
        }
    }

    fn goodput(samples: &[Sample]) -> Self {
        let (goodput, cpu) = goodput_and_processor(samples);
        Self::Goodput {
            goodput_bps_median: quantile(&goodput, 0.5),
            goodput_bps_min: quantile(&goodput, 0.0),
            goodput_bps_max: quantile(&goodput, 1.0),
            cpu_seconds_per_gb: quantile(&cpu, 0.5),
            bytes: samples.iter().map(|sample| sample.serve.bytes).sum(),
            incomplete: samples.iter().map(|sample| sample.serve.incomplete).sum(),
        }
    }

    fn records(samples: &[Sample]) -> Self {
        let rate = sorted(samples.iter().map(|sample| per(sample.serve.complete as f64, sample.serve.seconds)));
        let cpu = sorted(samples.iter().map(|sample| per(cpu_seconds(sample) * 1e6, sample.serve.complete as f64)));
        Self::Records {
            segments_per_second_median: quantile(&rate, 0.5),
            segments_per_second_min: quantile(&rate, 0.0),
            segments_per_second_max: quantile(&rate, 1.0),
            cpu_us_per_segment: quantile(&cpu, 0.5),
            incomplete: samples.iter().map(|sample| sample.serve.incomplete).sum(),
        }
    }

    fn round_trips(samples: &[Sample]) -> Self {
        let times = sorted(samples.iter().flat_map(|sample| warm(sample.run.round_trips_us.as_deref().unwrap_or_default())).copied());
        let cpu = sorted(samples.iter().map(|sample| per(cpu_seconds(sample) * 1e6, sample.run.complete as f64)));
        Self::RoundTrips {
            round_trip_us_mean: mean(&times),
            round_trip_us_p50: quantile(&times, 0.5),
            round_trip_us_p99: quantile(&times, 0.99),
            round_trip_us_max: quantile(&times, 1.0),
            cpu_us_per_round_trip: quantile(&cpu, 0.5),
            round_trips: times.len(),
        }
    }

    fn delays(samples: &[Sample]) -> Self {
        let times = sorted(samples.iter().flat_map(|sample| sample.serve.delays_ms.iter().flatten().map(|delay| delay * 1e3)));
        Self::Delays {
            delay_us_mean: mean(&times),
            delay_us_p50: quantile(&times, 0.5),
            delay_us_p99: quantile(&times, 0.99),
            delay_us_max: quantile(&times, 1.0),
            segments: times.len(),
            incomplete: samples.iter().map(|sample| sample.serve.incomplete).sum(),
        }
    }

    fn active(samples: &[Sample]) -> Self {
        let (goodput, cpu) = goodput_and_processor(samples);
        Self::Active {
            goodput_bps_median: quantile(&goodput, 0.5),
            cpu_seconds_per_gb: quantile(&cpu, 0.5),
            connections: samples.first().map_or(0, |sample| sample.run.connections),
            sent_again: samples.iter().map(|sample| sample.run.sent_again).sum(),
            incomplete: samples.iter().map(|sample| sample.serve.incomplete).sum(),
        }
    }

    fn connections(setups: &[Sample], idle: &[Sample]) -> Self {
        let cpu = sorted(setups.iter().map(|sample| per(sample.serve.cpu_seconds * 1e6, sample.serve.complete as f64)));
        let memory =
            sorted(idle.iter().map(|sample| per(sample.serve.memory_bytes.unwrap_or_default() as f64, sample.run.complete as f64)));
        let us = quantile(&cpu, 0.5);
        Self::Connections {
            server_cpu_us_per_setup: us,
            setups_per_server_cpu_second: per(1e6, us),
            memory_bytes_per_connection: quantile(&memory, 0.5),
            idle_connections: idle.first().map_or(0, |sample| sample.run.complete),
        }
    }

    /// What two transports are compared by: medians; of round trips, delays and processor time less is better.
    const fn compared(&self) -> f64 {
        match self {
            Self::Goodput { goodput_bps_median, .. } => *goodput_bps_median,
            Self::Active { cpu_seconds_per_gb, .. } => *cpu_seconds_per_gb,
            Self::Records { segments_per_second_median, .. } => *segments_per_second_median,
            Self::RoundTrips { round_trip_us_p50, .. } => *round_trip_us_p50,
            Self::Delays { delay_us_p50, .. } => *delay_us_p50,
            Self::Connections { server_cpu_us_per_setup, .. } => *server_cpu_us_per_setup,
        }
    }
}

/// Ours by another's, for each other of `runs`, which are of one workload: plain by bare UDP, what encrypts by what encrypts,
/// and encrypted by plain.
pub(super) fn ratios(runs: &[&Run]) -> Map<String, Value> {
    let ours = |name: &str| runs.iter().find(|run| run.name == name).map(|run| run.figures.compared());
    let mut ratios = Map::new();
    for other in runs.iter().filter(|run| run.name != "plain" && run.name != "encrypted") {
        let own = if other.encrypts { "encrypted" } else { "plain" };
        if let Some(own) = ours(own) {
            ratios.insert(format!("ratio_to_{}", other.name), per(own, other.figures.compared()).into());
        }
    }
    if let (Some(plain), Some(encrypted)) = (ours("plain"), ours("encrypted")) {
        ratios.insert("ratio_encrypted_to_plain".to_owned(), per(encrypted, plain).into());
    }
    ratios
}

/// Goodput in bit/s, and processor seconds of both ends for a GB, of each sample, sorted.
fn goodput_and_processor(samples: &[Sample]) -> (Vec<f64>, Vec<f64>) {
    let goodput = sorted(samples.iter().map(|sample| per(sample.serve.bytes as f64 * 8.0, sample.serve.seconds)));
    let cpu = sorted(samples.iter().map(|sample| per(cpu_seconds(sample), sample.serve.bytes as f64 / GB)));
    (goodput, cpu)
}

/// Without those that warm up. One alone stays.
fn warm(round_trips_us: &[f64]) -> &[f64] {
    &round_trips_us[(round_trips_us.len() as f64 * WARM_UP) as usize..]
}

/// Processor time of both ends.
fn cpu_seconds(sample: &Sample) -> f64 {
    sample.serve.cpu_seconds + sample.run.cpu_seconds
}

/// Infinite and undefined quotients are NaN, which JSON shows as null.
fn per(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { f64::NAN }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> f64 {
    per(values.iter().sum(), values.len() as f64)
}

/// Of sorted values the one that a share of them does not exceed; between two the mean, so that 0.5 is the median.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = share * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high.min(last)] - sorted[low]) * (at - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::end::line::Outcome;

    fn sample(bytes: u64, seconds: f64, cpu_seconds: f64) -> Sample {
        let serve = Outcome { bytes, seconds, cpu_seconds, ..Outcome::default() };
        Sample { run: Outcome { cpu_seconds, ..Outcome::default() }, serve }
    }

    fn run(name: &str, encrypts: bool, bytes: u64) -> Run {
        let figures = Figures::of(Workload::Throughput, &[vec![sample(bytes, 1.0, 1.0)]]);
        Run {
            name: name.to_owned(),
            workload: "throughput",
            version: String::new(),
            encrypts,
            settings: String::new(),
            repetitions: 1,
            figures,
        }
    }

    #[test]
    fn goodput_is_the_receivers_median_and_processor_time_is_of_both_ends() {
        let samples = [4.0, 1.0, 2.0].map(|seconds| sample(1_000_000_000, seconds, 0.25));
        let Figures::Goodput { goodput_bps_median, goodput_bps_min, goodput_bps_max, cpu_seconds_per_gb, .. } =
            Figures::of(Workload::Throughput, &[samples.to_vec()])
        else {
            panic!("goodput")
        };
        assert_eq!([goodput_bps_min, goodput_bps_median, goodput_bps_max], [2e9, 4e9, 8e9]);
        assert_eq!(cpu_seconds_per_gb, 0.5);
    }

    #[test]
    fn what_encrypts_is_compared_with_what_encrypts() {
        let runs = [run("plain", false, 800), run("encrypted", true, 400), run("raw", false, 1600), run("quinn", true, 200)];
        let ratios = ratios(&runs.iter().collect::<Vec<_>>());
        assert_eq!(ratios["ratio_to_raw"], 0.5);
        assert_eq!(ratios["ratio_to_quinn"], 2.0);
        assert_eq!(ratios["ratio_encrypted_to_plain"], 0.5);
    }

    #[test]
    fn the_first_tenth_of_each_samples_round_trips_is_left_out_however_few_there_are() {
        let of = |counts: &[u32]| {
            let samples = counts.iter().map(|&count| {
                let round_trips_us = Some((0..count).map(f64::from).rev().collect());
                Sample { run: Outcome { round_trips_us, ..Outcome::default() }, serve: Outcome::default() }
            });
            match Figures::of(Workload::PingPong, &[samples.collect()]) {
                Figures::RoundTrips { round_trips, round_trip_us_max, .. } => (round_trips, round_trip_us_max),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of(&[20_000]), (18_000, 17_999.0));
        assert_eq!(of(&[30, 10]), (27 + 9, 26.0));
        assert_eq!(of(&[1]), (1, 0.0));
    }

    #[test]
    fn quantiles_lie_between_the_values_and_of_none_there_is_none() {
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|share| quantile(&[1.0, 2.0, 4.0], share)), [1.0, 2.0, 3.0, 4.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
