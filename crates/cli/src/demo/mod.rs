//! `segstream demo`: the application the papers had in mind, for real.
//!
//! A flow simulation's vorticity slices are streamed over an emulated long path with loss, in five ways:
//! as plain datagrams, reliably without and with repair units ahead of any loss, and with a tolerance without and with interleaving. A
//! viewer fills the holes that were tolerated, and the run tells what each way costs and gives. Both ends encrypt, with keys made for
//! the run.
//!
//! - [`vortex_street`] and [`lattice_boltzmann`]: where the slices come from;
//! - [`way`] and [`transfer`]: how they travel;
//! - [`conceal`] and [`score`]: what a viewer sees of them;
//! - [`report`], [`table`], [`page`], [`picture`]: how it is shown.
//!
//! Invariant: every number and picture shown is measured in this very run.

mod conceal;
mod lattice_boltzmann;
mod page;
mod picture;
mod report;
mod score;
mod table;
mod transfer;
mod vortex_street;
mod way;

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use page::Exhibit;
use picture::{Colours, Slice};
use report::{Report, Run, SliceRecord};
use score::{DelaySummary, PictureScore};
use segstream::{Bytes, KeyLog};
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_path::LossSpec;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use transfer::{Outcome, Shown};
use way::{LOSSES, WAYS, Way};

/// Slices of a run.
const SLICES: usize = 96;
/// How often a run is made at most.
const ATTEMPTS_MAX: u32 = 3;
/// Runs are repeated as long as the whole can be over by then: it should take less than a minute.
const TIME_MAX: std::time::Duration = std::time::Duration::from_secs(50);

/// Streams a flow simulation over a lossy path in five ways and compares the results.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  segstream demo --out my-demo\nThen open my-demo/index.html.")]
pub(crate) struct Arguments {
    /// The directory for the page and the pictures. It is created if missing; files of an earlier demo are replaced.
    #[arg(long, value_name = "DIR", default_value = "segstream-demo")]
    out: PathBuf,
    /// Streams the PNG pictures in DIR instead, in the order of their names.
    #[arg(long, value_name = "DIR")]
    input: Option<PathBuf>,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Appends the secrets of the connections to this file, so that Wireshark can show what a capture of them contains.
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// For tests: how many slices a run has.
    #[arg(long, value_name = "N", default_value_t = SLICES, hide = true)]
    slices: usize,
}

/// What is streamed.
struct Source {
    slices: Vec<Slice>,
    bytes: Vec<Bytes>,
    colours: Colours,
    description: String,
}

/// Runs the demonstration.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let began = Instant::now();
    fs::create_dir_all(&arguments.out)
        .with_context(|| format!("cannot make the directory {}; choose another with --out", arguments.out.display()))?;
    let key_log = arguments
        .key_log
        .as_deref()
        .map(|file| KeyLog::open(file).with_context(|| format!("the key log {} cannot be opened", file.display())));
    let key_log = key_log.transpose()?;
    let source = source(arguments)?;
    let mut report = Report { circumstances: circumstances(&source), ..Report::default() };
    let mut exhibits = Vec::new();
    let mut left = (LOSSES.len() * WAYS.len()) as u32;
    let bar = progress(left.into(), "runs");
    for loss in LOSSES {
        for way in &WAYS {
            bar.set_message(format!("{}, loss {loss}", way.name));
            left -= 1;
            let (run, outcome) = one_run(way, loss, &source, key_log.as_ref(), |took| began.elapsed() + took * (left + 1) <= TIME_MAX)?;
            exhibit(&arguments.out, &run, &outcome, &source, &mut exhibits)?;
            report.runs.push(run);
            bar.inc(1);
            if bar.is_hidden() {
                eprintln!("done: {}, loss {loss}", way.name);
            }
        }
    }
    bar.finish_and_clear();
    let index = arguments.out.join("index.html");
    write(&index, page::html(&report, &exhibits)?.as_bytes())?;
    eprintln!("{}", table::text(&report));
    eprintln!("Plots and pictures: {}", index.display());
    if arguments.json {
        crate::json::print(&report)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn source(arguments: &Arguments) -> Result<Source> {
    let count = arguments.slices.max(1);
    let (slices, colours, description) = match &arguments.input {
        Some(directory) => {
            let mut pictures = picture::read_directory(directory, vortex_street::SIDE, count)?;
            let found = pictures.len();
            // Fewer pictures than slices are shown over and over.
            pictures = (0..count).map(|index| pictures[index % found].clone()).collect();
            (pictures, Colours::Grey, format!("{count} slices from {found} pictures of {}", directory.display()))
        }
        None => {
            let bar = progress(count as u64, "slices computed");
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let slices = vortex_street::slices(Seed(1), count, threads, |done| bar.set_position(done as u64));
            bar.finish_and_clear();
            (
                slices,
                Colours::Diverging,
                format!("{count} vorticity slices of flow past three cylinders, Reynolds number {}", vortex_street::REYNOLDS),
            )
        }
    };
    let bytes = slices.iter().map(|slice| Bytes::from(slice.bytes.clone())).collect();
    Ok(Source { slices, bytes, colours, description })
}

fn circumstances(source: &Source) -> Vec<(String, String)> {
    let path = format!("{}, {} round trip, emulated between real UDP sockets, encrypted", way::BANDWIDTH, way::ONE_WAY * 2);
    let slices = format!("{}; each {} lines of {} bytes", source.description, way::UNITS, way::UNIT_BYTES);
    let period = way::slice_period().as_millis_f64();
    let load = format!("{} % of the bandwidth as payload: a slice is due every {period:.1} ms", way::LOAD_PERCENT);
    [("Path", path), ("Slices", slices), ("Load", load)].map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Makes a run until the emulated path has kept its time, at most three times, and only as long as there is time for one more that
/// takes as long as this.
fn one_run(
    way: &Way,
    loss: &str,
    source: &Source,
    key_log: Option<&KeyLog>,
    has_time_for: impl Fn(std::time::Duration) -> bool,
) -> Result<(Run, Outcome)> {
    let spec: LossSpec = loss.parse().with_context(|| format!("the loss process {loss} is not understood"))?;
    let mut attempt = 1;
    loop {
        let began = Instant::now();
        let outcome = transfer::run(way, &spec, &source.bytes, key_log)?;
        if outcome.link.kept_up || attempt == ATTEMPTS_MAX || !has_time_for(began.elapsed()) {
            return Ok((summary(way, loss, attempt, &outcome, source), outcome));
        }
        attempt += 1;
    }
}

fn summary(way: &Way, loss: &str, attempts: u32, outcome: &Outcome, source: &Source) -> Run {
    let mut quality = PictureScore::default();
    let (mut delays, mut outcomes, mut holes, mut series) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, (slice, shown)) in source.slices.iter().zip(&outcome.slices).enumerate() {
        let due = outcome.start + way::slice_period() * index as u64;
        let missing = missing_lines(shown.as_ref());
        quality.add(slice, &repaired(slice, shown.as_ref(), &missing));
        let verdict = shown.as_ref().map_or(segstream::Verdict::Unknown, |shown| shown.received.verdict);
        let latency = shown.as_ref().map(|shown| shown.at.since(due));
        let delay = shown.as_ref().filter(|_| verdict.is_met()).and_then(delay_of);
        delays.extend(delay);
        outcomes.push(score::Outcome { verdict, latency });
        series.push(SliceRecord::new(delay, missing.len(), verdict));
        holes.push(missing);
    }
    let (holes_per_slice_mean, holes_longest_run) = score::holes(holes.iter().map(Vec::as_slice));
    let (window, errors, burst) = way.tolerance.triplet();
    let mut run = Run {
        name: way.name.into(),
        loss: loss.into(),
        tolerance: [window, errors, burst],
        interleave: way.interleave,
        slices: source.slices.len(),
        usable_share: score::usable_share(&outcomes),
        coding: way.coding.to_string(),
        units_retransmitted: outcome.sender.units_retransmitted,
        repair_units_sent: outcome.sender.repair_units_sent,
        wire_bytes_per_byte: wire_bytes_per_byte(outcome, source),
        holes_per_slice_mean,
        holes_longest_run,
        emulator_lateness_ms_p999: Some(outcome.link.lateness.p999.as_millis_f64()),
        attempts,
        series,
        ..Run::default()
    };
    run.set_delays(DelaySummary::of(&delays));
    run.set_quality(&quality);
    run
}

/// From the first transmission to acceptance. The first transmission is the first arrival less the delay of
/// the path, which is exact but for a slice whose very first units are lost.
fn delay_of(shown: &Shown) -> Option<Duration> {
    let first_arrival = shown.received.first_arrival?;
    Some(shown.received.judged_at.since(first_arrival) + way::ONE_WAY)
}

/// Whole IP packets in both directions for each byte of the slices.
fn wire_bytes_per_byte(outcome: &Outcome, source: &Source) -> Option<f64> {
    let bytes: usize = source.bytes.iter().map(Bytes::len).sum();
    let shipments = outcome.sender.shipments_sent + outcome.receiver.shipments_sent;
    let wire = outcome.sender.bytes_sent + outcome.receiver.bytes_sent + 28 * shipments;
    (bytes > 0).then(|| wire as f64 / bytes as f64)
}

/// The missing lines of a slice, ascending.
fn missing_lines(shown: Option<&Shown>) -> Vec<usize> {
    match shown {
        Some(shown) => shown.received.holes.iter().flatten().map(|unit| unit.0 as usize).collect(),
        None => (0..way::UNITS as usize).collect(),
    }
}

/// The slice as a viewer shows it.
fn repaired(sent: &Slice, shown: Option<&Shown>, missing: &[usize]) -> Slice {
    let bytes = shown.map_or_else(|| vec![0; sent.bytes.len()], |shown| shown.received.bytes.to_vec());
    let mut slice = Slice { width: sent.width, height: sent.height, bytes };
    conceal::conceal(&mut slice, missing);
    slice
}

/// Writes the pictures of the slice with the most holes, if there are any, and keeps them for the page.
fn exhibit(out: &Path, run: &Run, outcome: &Outcome, source: &Source, exhibits: &mut Vec<Exhibit>) -> Result<()> {
    let missing: Vec<Vec<usize>> = outcome.slices.iter().map(|shown| missing_lines(shown.as_ref())).collect();
    let Some((index, holes)) = missing.iter().enumerate().max_by_key(|(_, holes)| holes.len()).filter(|(_, holes)| !holes.is_empty())
    else {
        return Ok(());
    };
    let sent = &source.slices[index];
    let shown = repaired(sent, outcome.slices[index].as_ref(), holes);
    let name = format!("{}-{}", run.name.replace(", ", "-").replace(' ', "-"), run.loss.split(':').next().unwrap_or("loss"));
    for (kind, slice, lines) in [("sent", sent, &[][..]), ("received", sent, holes), ("repaired", &shown, &[])] {
        write(&out.join(format!("{name}-slice{index:02}-{kind}.png")), &picture::png(slice, lines, source.colours)?)?;
    }
    if run.loss != LOSSES[LOSSES.len() - 1] {
        // Bursts show more than single losses, and one row for each way is enough to look at.
        return Ok(());
    }
    let caption = format!("{}, loss {}: slice {index}, {} of {} lines missing", run.name, run.loss, holes.len(), way::UNITS);
    exhibits.push(Exhibit::new(caption, sent, holes, &shown, source.colours)?);
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}; is there room, and may you write there?", path.display()))
}

fn progress(length: u64, what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {what} {{msg}} ({{eta}} left)"));
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
