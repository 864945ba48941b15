//! The laboratory: scenarios as JSON in, results as JSON out, run on threads of their own.
//!
//! Called by `segstream/lab`, which makes data sets of what comes. The scenario's text is that of the laboratory
//! (`Scenario::canonical`); names of settings are those of `segstream sim`.
//!
//! Invariant: a result depends on its scenario and its seed alone; a job that nobody waits for ends when it is dropped.

use crate::errors::Fault;
use crate::runtime::Process;
use pyo3::prelude::*;
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_lab::drawing::{Paper, csv, heat_map_svg, svg};
use segstream_lab::outcome::Outcome;
use segstream_lab::plan::{Plan, Preset};
use segstream_lab::point::PointResult;
use segstream_lab::registry::{self, SCHEMES};
use segstream_lab::runner::{Runner, RunnerError};
use segstream_lab::scenario::{self, BlackBox, Scenario, Usual, Workload};
use segstream_lab::statistics::Estimate;
use segstream_lab::store::Store;
use segstream_lab::study::{self, Finished};
use segstream_schemes::setting::{Kind, Value};
use serde_json::{Map, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

fn usage(error: impl std::fmt::Display) -> Fault {
    Fault::Usage(error.to_string())
}

/// The schemes: key, name, source.
#[pyfunction]
pub(crate) fn lab_schemes() -> Vec<(&'static str, &'static str, &'static str)> {
    SCHEMES.iter().map(|scheme| (scheme.key, scheme.name, scheme.source)).collect()
}

/// The studies: identifier, title, source.
#[pyfunction]
pub(crate) fn lab_studies() -> Vec<(&'static str, &'static str, &'static str)> {
    segstream_studies::all().iter().map(|study| (study.id, study.title, study.source)).collect()
}

/// The scenario of `scheme` that is usual, with these fields of its text replaced and these settings of the scheme; as its text.
#[pyfunction]
pub(crate) fn lab_scenario(scheme: &str, fields: &str, settings: Vec<(String, String)>) -> PyResult<String> {
    let fields: Map<String, serde_json::Value> = serde_json::from_str(fields).map_err(usage)?;
    let usual = usual(scheme)?;
    let mut text: Map<String, serde_json::Value> = serde_json::from_str(&usual.canonical()).map_err(usage)?;
    text.extend(fields);
    let text = serde_json::to_string(&text).map_err(usage)?;
    let mut scenario = Scenario::from_canonical(&text).map_err(usage)?;
    for (flag, value) in settings {
        let flag = flag.replace('_', "-");
        let value = setting(&flag, &value)?;
        scenario.set(&flag, &value).map_err(usage)?;
    }
    scenario::check_pair(&scenario).map_err(usage)?;
    Ok(scenario.canonical())
}

fn usual(scheme: &str) -> Result<Scenario, Fault> {
    let found = registry::find(scheme);
    let scheme = found.ok_or_else(|| Fault::Usage(format!("there is no scheme '{scheme}'; known are {}", registry::keys())))?;
    let usual = Usual::of(scheme);
    let black_box = BlackBox {
        rtt: usual.rtt,
        bandwidth: usual.bandwidth,
        bandwidth_back: usual.bandwidth_back,
        service: usual.service,
        work: usual.work,
        control_loss: usual.control_loss,
        ..BlackBox::default()
    };
    let mut workload = Workload { segment_packets: usual.segment_packets, window: usual.window, ..Workload::default() };
    workload.tolerance = segstream::Tolerance::reliable(usual.segment_packets);
    Ok(Scenario { black_box, workload, scheme: scheme.config() })
}

/// The value that `text` says of the setting with this flag.
fn setting(flag: &str, text: &str) -> Result<Value, Fault> {
    let about = registry::settings().into_iter().map(|(about, _)| about).find(|about| about.flag == flag);
    let about = about.ok_or_else(|| Fault::Usage(format!("'{flag}' is no parameter of a scenario and no setting of a scheme")))?;
    let refused = |what: &str| Fault::Usage(format!("{flag}={text} is not {what}"));
    match about.kind {
        Kind::Count { .. } => text.parse().map(Value::Count).map_err(|_| refused("a whole number")),
        // Nanoseconds: Python has read the unit.
        Kind::Time { .. } => text.parse().map(|nanos| Value::Time(Duration::from_nanos(nanos))).map_err(|_| refused("a time")),
        Kind::Word { .. } => Ok(Value::word(text)),
        Kind::Switch { given } if text == "True" => Ok(Value::Is(given)),
        Kind::Switch { given } if text == "False" => Ok(Value::Is(!given)),
        Kind::Switch { .. } => Err(refused("True or False")),
    }
}

/// Whether the setting with this flag is a time, so that Python reads its unit.
#[pyfunction]
pub(crate) fn lab_is_time(flag: &str) -> bool {
    let flag = flag.replace('_', "-");
    registry::settings().iter().any(|(about, _)| about.flag == flag && matches!(about.kind, Kind::Time { .. }))
}

/// Work on threads of its own.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Job {
    shared: Arc<Progress>,
    result: Mutex<Receiver<Result<String, Fault>>>,
}

#[derive(Default)]
struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stop: AtomicBool,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Job {
    fn start(work: impl FnOnce(&Runner<'_>) -> Result<String, Fault> + Send + 'static, options: JobOptions) -> Result<Self, Fault> {
        let shared = Arc::<Progress>::default();
        let (told, result) = mpsc::channel();
        let progress = Arc::clone(&shared);
        let started = std::thread::Builder::new().name("segstream-lab".to_owned()).spawn(move || {
            // Why the result is ignored: nobody waits any more.
            let _ = told.send(options.run(&progress, work));
        });
        started.map_err(|error| Fault::Library(error.into()))?;
        Ok(Self { shared, result: Mutex::new(result) })
    }
}

struct JobOptions {
    seed: u64,
    threads: usize,
    store: Option<PathBuf>,
}

impl JobOptions {
    fn run(self, progress: &Progress, work: impl FnOnce(&Runner<'_>) -> Result<String, Fault>) -> Result<String, Fault> {
        let store = self.store.map(|path| Store::open(&path)).transpose().map_err(usage)?;
        let tell = |now: segstream_lab::runner::Progress| {
            progress.done.store(now.runs_done, Ordering::Relaxed);
            progress.total.store(now.runs, Ordering::Relaxed);
        };
        let runner = Runner {
            only_stored: false,
            seed: Seed(self.seed),
            store: store.as_ref(),
            threads: self.threads,
            progress: &tell,
            stop: &progress.stop,
        };
        work(&runner)
    }
}

#[pymethods]
impl Job {
    /// Runs done, and runs known to be needed.
    fn progress(&self) -> (u64, u64) {
        (self.shared.done.load(Ordering::Relaxed), self.shared.total.load(Ordering::Relaxed))
    }

    /// Waits for the result so many seconds at most; `None` if it is not there yet.
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        let timeout = crate::contract::seconds("timeout", timeout)?;
        let waited = Process::get()?.without_gil(py, || {
            let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
            result.recv_timeout(timeout)
        })?;
        match waited {
            Ok(result) => Ok(Some(result?)),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(Fault::Usage("the result was taken before, or the work has failed".to_owned()).into())
            }
        }
    }

    /// Stops the work after the runs that are under way.
    fn cancel(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

fn failed(error: RunnerError) -> Fault {
    match error {
        RunnerError::Experiment(error) => usage(error),
        other => Fault::Library(std::io::Error::other(other.to_string()).into()),
    }
}

/// Runs each scenario so many times; a JSON list with, for each, every run's numbers and their estimates.
#[pyfunction]
pub(crate) fn lab_simulate(scenarios: Vec<String>, replications: u32, seed: u64, threads: usize, store: Option<PathBuf>) -> PyResult<Job> {
    let read = |text: &String| {
        let scenario = Scenario::from_canonical(text).map_err(usage)?;
        let packets = scenario.workload.packets;
        let plan =
            Plan { trial: None, packets, replications_min: replications, replications_max: replications, half_width: 1.0, losses_min: 0 };
        Ok::<_, Fault>((scenario, plan))
    };
    let points = scenarios.iter().map(read).collect::<Result<Vec<_>, Fault>>()?;
    let work = move |runner: &Runner<'_>| {
        let results = runner.run(&points).map_err(failed)?;
        serde_json::to_string(&results.iter().map(numbers).collect::<Vec<_>>()).map_err(usage)
    };
    Ok(Job::start(work, JobOptions { seed, threads, store })?)
}

/// A number of a run.
type Measure = (&'static str, fn(&Outcome) -> f64);

const MEASURES: [Measure; 13] = [
    ("throughput_packets_per_second", Outcome::throughput_packets_per_second),
    ("delay_ms_mean", Outcome::delay_ms_mean),
    ("delay_ms_p99", |outcome| outcome.delays.p99_ns as f64 * 1e-6),
    ("packets_sent", |outcome| outcome.packets_sent as f64),
    ("packets_retransmitted", |outcome| outcome.packets_retransmitted as f64),
    ("packets_delivered", |outcome| outcome.packets_delivered as f64),
    ("packets_lost", |outcome| outcome.packets_lost as f64),
    ("segments_delivered", |outcome| outcome.segments_delivered as f64),
    ("segments_expired", |outcome| outcome.verdicts.2 as f64),
    ("feedback_packets", |outcome| outcome.feedback_packets as f64),
    ("control_packets", |outcome| outcome.control_packets as f64),
    ("simulated_seconds", |outcome| outcome.simulated_ns as f64 * 1e-9),
    ("segments_complete", |outcome| outcome.verdicts.0 as f64),
];

/// The numbers of a point: `runs`, one object a run, and `estimates` over them.
fn numbers(point: &PointResult) -> serde_json::Value {
    let scenario = &point.scenario;
    let payload_bits = 8.0 * scenario::segment_bytes(scenario) as f64 / f64::from(scenario.workload.segment_packets);
    let goodput = |outcome: &Outcome| outcome.packets_delivered as f64 * payload_bits / (outcome.span_ns as f64 * 1e-9);
    let reference = scenario.reference_time_s();
    let run = |outcome: &Outcome| {
        let mut run = Map::new();
        run.insert("throughput_efficiency".to_owned(), json!(outcome.throughput_efficiency(reference)));
        run.insert("goodput_bps".to_owned(), json!(goodput(outcome)));
        run.extend(MEASURES.iter().map(|(key, of)| ((*key).to_owned(), json!(of(outcome)))));
        run
    };
    let mut estimates = Map::new();
    let mut add = |key: &str, estimate: Estimate| estimates.insert(key.to_owned(), json!([estimate.mean, estimate.half_width]));
    for (key, of) in MEASURES {
        add(key, point.over_replications(of));
    }
    add("goodput_bps", point.over_replications(goodput));
    // Of one run: by batch means, as the studies do.
    add("throughput_efficiency", point.throughput_efficiency());
    add("delay_ms_mean", point.delay_ms_mean());
    add("delay_ms_p99", point.delay_ms_p99());
    json!({
        "scenario": scenario.canonical(),
        "runs": point.outcomes.iter().map(run).collect::<Vec<_>>(),
        "estimates": estimates,
        "delay_ms_max": point.delay_ms_max().value,
        "trouble": point.trouble(),
    })
}

/// Runs a study; JSON with its points as CSV, its pictures as SVG and CSV, and its claims.
#[pyfunction]
pub(crate) fn lab_study(id: &str, preset: &str, seed: u64, threads: usize, store: Option<PathBuf>) -> PyResult<Job> {
    let study =
        segstream_studies::find(id).ok_or_else(|| Fault::Usage(format!("there is no study '{id}'; segstream.lab.studies() lists them")))?;
    let preset = [Preset::Quick, Preset::Standard, Preset::Paper].into_iter().find(|known| known.name() == preset);
    let preset = preset.ok_or_else(|| Fault::Usage("give the preset 'quick', 'standard' or 'paper'".to_owned()))?;
    let work = move |runner: &Runner<'_>| {
        let finished = study::run(&[study], preset, runner).map_err(failed)?;
        let finished = finished.first().ok_or_else(|| Fault::Usage("the study gave nothing".to_owned()))?;
        serde_json::to_string(&report(finished)).map_err(usage)
    };
    Ok(Job::start(work, JobOptions { seed, threads, store })?)
}

fn report(finished: &Finished) -> serde_json::Value {
    let section = &finished.section;
    let mut figures: Vec<_> =
        section.figures.iter().map(|figure| json!({"id": figure.id, "svg": svg(figure), "csv": csv(figure)})).collect();
    figures.extend(section.heat_maps.iter().map(|map| json!({"id": map.id, "svg": heat_map_svg(map, Paper::White), "csv": null})));
    json!({
        "id": section.id,
        "title": section.title,
        "source": section.source,
        "summary": section.summary,
        "points": finished.measured.csv(),
        "figures": figures,
        "claims": section.claims,
        "troubles": finished.measured.troubles().iter().map(|(curve, x, trouble)| format!("{curve} at {x}: {trouble}")).collect::<Vec<_>>(),
    })
}
