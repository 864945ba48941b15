//! The matrix in virtual time: the same cells over the simulator's link, with models of the kernel's TCPs and our own sender.
//!
//! Called by [`super::run`] with `--virtual`, and by [`super::models`] for the models' part of it.
//!
//! What differs from the emulator: the link has no delay of its own, and what delays, holds back, polices and loses packets is behind it
//! on each flow's own path; time stamps are exact; ours has no set-up, seal or search for the datagram size, and packets of 1144
//! bytes without an IP header.
//!
//! Invariant: the same cell, contender and seed give the same run on any machine.

use super::cells::{Cell, Kernel, Rule, Turn};
use super::journal::{Key, Run};
use super::trial::{Contender, again_after};
use super::{path, segment_bytes};
use anyhow::{Context as _, Result, ensure};
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, Tolerance};
use segstream_blocks::congestion::{Algorithm, bbr1, cubic};
use segstream_lab::flagship;
use segstream_lab::scenario::Scenario;
use segstream_lab::shared::{Application, FlowOutcome, Pace, SAMPLE, SharedFlow, SharedOutcome, SharedScenario, Traffic, run};
use segstream_lab::statistics::jain;
use segstream_path::{Jitter, OpportunityTrace, RateTrace};
use std::path::Path;

/// How long after the other the later of two flows begins.
const APART: Duration = Duration::from_secs(2);
/// Below this part of the link a second is a starved one, from this one on.
const STARVED: f64 = 0.2;
const STARVED_FROM: u32 = 2;
/// Of a cell this fast a run is short, since it takes as many packets; of a faster one there is none.
const FAST_MBIT: f64 = 1000.0;
const FAST_SECONDS: u32 = 10;
/// A whole packet of ours, which is as long as before any search for the datagram size.
const PACKET_BYTES: u32 = 1144;
/// The window holds so many bandwidth-delay products: the longest queue of the table, and repair.
const WINDOW_PRODUCTS: f64 = 14.0;
const WINDOW_PACKETS: f64 = 3000.0;
/// The name of the other flow, and how those of the measured ones begin.
const OTHER: &str = "other";
const MEASURED: &str = "flow";

/// Whether a cell is run.
pub(super) fn can_be_run(cell: &Cell) -> bool {
    cell.mbit <= FAST_MBIT
}

/// How long a run of the cell lasts.
pub(super) fn seconds(cell: &Cell, seconds: u32) -> u32 {
    if cell.mbit >= FAST_MBIT { seconds.min(FAST_SECONDS) } else { seconds }
}

/// Makes a run.
pub(super) fn trial(cell: &Cell, contender: Contender, key: &Key, traces: Option<&Path>) -> Result<Run> {
    let measured = match contender {
        Contender::Kernel(kernel) => tcp(kernel, cell),
        Contender::Ours => ours(cell, Algorithm::named(&key.congestion).with_context(|| format!("there is no {}", key.congestion))?),
    };
    let mut scenario = scenario(cell, &measured, key.seconds)?;
    scenario.time_of_day = key.time_of_day();
    scenario.ecn_unaware = contender == Contender::Ours && !cell.ecn && cell.aqm != "droptail";
    if let Some(file) = path::trace(cell, traces)? {
        let text = std::fs::read_to_string(&file).with_context(|| format!("{file} cannot be read"))?;
        scenario.opportunities = OpportunityTrace::read(&text).with_context(|| file.clone())?;
    }
    let (outcome, _) = run(&scenario, Seed(key.seed)).with_context(|| format!("{} in virtual time", cell.name))?;
    ensure!(outcome.trouble.is_none(), "{}: {:?}", cell.name, outcome.trouble);
    Ok(evaluate(cell, key, &scenario, &outcome))
}

/// The model of a kernel's TCP.
pub(super) fn tcp(kernel: Kernel, cell: &Cell) -> Traffic {
    let congestion: &'static Algorithm = match kernel {
        Kernel::Cubic => &cubic::LINUX,
        Kernel::Bbr => &bbr1::ALGORITHM,
    };
    Traffic::Tcp { congestion, ecn: (cell.ecn && congestion.responds_to_ecn).then_some(Ecn::Ect0) }
}

fn ours(cell: &Cell, congestion: &'static Algorithm) -> Traffic {
    let segment_packets = (segment_bytes(cell) / u64::from(PACKET_BYTES)).max(1) as u32;
    let packets = (WINDOW_PRODUCTS * cell.rtt_ms / cell.datagram_ms()).max(WINDOW_PACKETS);
    let scenario = Scenario::default().with(|it| {
        it.scheme = flagship::Settings::default().into();
        it.workload.packet_bytes = PACKET_BYTES;
        it.workload.segment_packets = segment_packets;
        it.workload.tolerance = Tolerance::reliable(segment_packets);
        it.workload.window = (packets / f64::from(segment_packets)) as u32 + 2;
    });
    Traffic::Scheme { scenario: Box::new(scenario), pace: Pace::Controlled(congestion) }
}

/// When the measured flows begin, and when the other does.
const fn starts(cell: &Cell) -> (Instant, Instant) {
    let late = Instant::from_nanos(APART.as_nanos());
    match cell.beside {
        Some((_, Turn::First)) => (Instant::ZERO, late),
        Some((_, Turn::Second)) => (late, Instant::ZERO),
        _ => (Instant::ZERO, Instant::ZERO),
    }
}

/// The cell with `measured` as the traffic of the measured flows; it is counted for `seconds` from when all flows are there.
pub(super) fn scenario(cell: &Cell, measured: &Traffic, seconds: u32) -> Result<SharedScenario> {
    let (start, other_start) = starts(cell);
    let joined = start.max(other_start);
    let end = joined + Duration::from_secs(u64::from(seconds));
    let flow = |name: String, traffic: Traffic, start: Instant| -> Result<SharedFlow> {
        Ok(SharedFlow {
            rtt: Duration::from_secs_f64(cell.rtt_ms / 1e3),
            jitter: cell.jitter.map_or(Ok(Jitter::None), |(text, _)| text.parse())?,
            aggregate: if let ["--aggregate", span] = cell.flags { millis(span)? } else { Duration::ZERO },
            loss: cell.loss.parse()?,
            policer: if let ["--policer", spec] = cell.flags { Some(spec.parse()?) } else { None },
            start,
            ..SharedFlow::new(&name, traffic)
        })
    };
    let mut flows =
        (0..cell.count).map(|number| flow(format!("{MEASURED}{number}"), measured.clone(), start)).collect::<Result<Vec<_>>>()?;
    if let Rule::InTime { mbit, deadline_ms, on_off_s, .. } = cell.met {
        let is_scheme = matches!(measured, Traffic::Scheme { .. });
        let lifetime = is_scheme.then(|| Duration::from_millis(u64::from(deadline_ms)));
        flows.iter_mut().for_each(|flow| flow.application = Application { lifetime, ..live(mbit, start, end, on_off_s) });
    }
    if let Some((kernel, _)) = cell.beside {
        flows.push(flow(OTHER.to_owned(), tcp(kernel, cell), other_start)?);
    }
    Ok(SharedScenario {
        bandwidth: bandwidth(cell.mbit),
        trace: changes(cell)?,
        queue: Bytes::new(cell.queue_bytes()),
        aqm: cell.aqm.parse()?,
        duration: end.since(Instant::ZERO),
        warm_up: joined.since(Instant::ZERO) + Duration::from_secs(cell.seconds.map_or(0, |(_, from)| u64::from(from))),
        clock_spread: if cell.unsynchronised { Duration::from_secs(1) } else { Duration::ZERO },
        flows,
        ..SharedScenario::default()
    })
}

/// Reads what the table has as `8ms`.
fn millis(text: &str) -> Result<Duration> {
    let millis = text.strip_suffix("ms").and_then(|text| text.parse().ok()).with_context(|| format!("{text} is no time in ms"))?;
    Ok(Duration::from_millis(millis))
}

fn bandwidth(mbit: f64) -> Bandwidth {
    Bandwidth::from_bits_per_second((mbit * 1e6).round() as u64)
}

fn changes(cell: &Cell) -> Result<RateTrace> {
    let steps: Vec<String> = cell.changes.iter().map(|(at, mbit)| format!("{:.0}ms:{:.0}kbit", at * 1e3, mbit * 1e3)).collect();
    if steps.is_empty() { Ok(RateTrace::NONE) } else { Ok(steps.join(",").parse()?) }
}

/// A live source, on and off for the same time in turn.
fn live(mbit: f64, from: Instant, to: Instant, on_off_s: u32) -> Application {
    let turn = Duration::from_secs(u64::from(on_off_s));
    let off = (0..).map(|turns| from + turn * (2 * turns + 1)).take_while(|off| *off < to).map(|off| (off, off + turn));
    Application::periodic(bandwidth(mbit)).idle_in(&off.collect::<Vec<_>>())
}

fn evaluate(cell: &Cell, key: &Key, scenario: &SharedScenario, outcome: &SharedOutcome) -> Run {
    let flows: Vec<&FlowOutcome> = outcome.flows.iter().filter(|flow| flow.name != OTHER).collect();
    let (from, to) = (scenario.warm_up.as_secs_f64(), scenario.duration.as_secs_f64());
    let joined = to - f64::from(key.seconds);
    let goodput = |flow: &FlowOutcome| flow.bytes_delivered as f64 * 8.0 / (to - from);
    let link_bps = cell.mbit * 1e6;
    let filled = |from: f64, to: f64| flows.iter().map(|flow| bps(flow, from, to)).sum::<f64>() / link_bps;
    let starved = (STARVED_FROM..key.seconds).map(|at| joined + f64::from(at)).filter(|at| filled(*at, at + 1.0) < STARVED);
    let last = cell.changes.last().map(|(at, _)| *at);
    let all = |of: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(of).sum::<u64>() as f64;
    let policed = if cell.flags.first() == Some(&"--policer") { all(|flow| flow.packets_lost) } else { 0.0 };
    Run {
        key: key.clone(),
        goodput_bps: flows.iter().map(|flow| goodput(flow)).sum(),
        filled: filled(from, to),
        other_bps: outcome.flow(OTHER).map(goodput),
        starved_seconds: starved.count() as u32,
        jain: (flows.len() > 1).then(|| jain(&flows.iter().map(|flow| bps(flow, from, to)).collect::<Vec<_>>())),
        dropped: (all(|flow| flow.packets_dropped) + policed) / all(|flow| flow.packets_sent).max(1.0),
        queue_ms_p95: outcome.queue.p95_ns as f64 / 1e6,
        in_time: flows.first().and_then(|flow| in_time(cell, flow)),
        again_after_s: last.map(|last| again_after(last, to, filled)),
        wait_ms_max: cell.changes.get(1).map(|(at, mbit)| {
            // In an outage everything waits for its end; what enters after it need not.
            let from = if *mbit > 0.0 { *at } else { last.unwrap_or(*at) };
            wait_ms_max(outcome, from)
        }),
        ..Run::default()
    }
}

/// What arrived of a flow between two seconds, in bit/s.
fn bps(flow: &FlowOutcome, from: f64, to: f64) -> f64 {
    let sample = SAMPLE.as_secs_f64();
    let (first, last) = ((from / sample).round() as usize, (to / sample).round() as usize);
    let bytes: u64 = flow.bytes_arrived_series.iter().take(last).skip(first).sum();
    bytes as f64 * 8.0 / (to - from)
}

/// The longest wait of packets that entered from second `from` on.
fn wait_ms_max(outcome: &SharedOutcome, from: f64) -> f64 {
    let first = (from / SAMPLE.as_secs_f64()).round() as usize;
    outcome.queue.max_ns_series.iter().skip(first).flatten().max().map_or(0.0, |nanos| *nanos as f64 / 1e6)
}

/// The part of the segments that the sender knows to be accepted in time; the others have expired. Segments without a verdict at the end
/// do not count; TCP has no segments.
fn in_time(cell: &Cell, flow: &FlowOutcome) -> Option<f64> {
    let Rule::InTime { .. } = cell.met else { return None };
    flow.accepted_share()
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::*;

    fn cell(name: &str) -> &'static Cell {
        CELLS.iter().find(|cell| cell.name == name).unwrap()
    }

    fn of(name: &str, contender: Contender) -> Run {
        let key = Key { seed: 1, seconds: 14, congestion: "auto".to_owned(), ..Key::default() };
        trial(cell(name), contender, &key, None).unwrap()
    }

    #[test]
    fn every_cell_without_a_trace_is_a_scenario_that_can_be_run() {
        for cell in CELLS.iter().filter(|cell| can_be_run(cell)) {
            for measured in [tcp(Kernel::Cubic, cell), tcp(Kernel::Bbr, cell), ours(cell, &segstream_blocks::congestion::auto::ALGORITHM)] {
                let seconds = cell.seconds.map_or(30, |(whole, _)| whole);
                scenario(cell, &measured, seconds).unwrap().check().unwrap();
            }
        }
    }

    #[test]
    fn changes_and_company_are_seen_where_they_are() {
        let run = of("20-5-20", Contender::Kernel(Kernel::Cubic));
        // Of 14 s 5 are at a quarter of the rate.
        assert!((0.6..0.75).contains(&run.filled), "{run:?}");
        assert!(run.wait_ms_max.is_some_and(|wait| (150.0..170.0).contains(&wait)), "{run:?}");
        let beside = of("cubic-1-second", Contender::Kernel(Kernel::Cubic));
        let both = (beside.goodput_bps + beside.other_bps.unwrap()) / 20e6;
        assert!((0.93..0.97).contains(&both), "{beside:?}");
    }

    #[test]
    fn a_live_source_is_on_for_half_of_the_time() {
        let application = live(8.0, Instant::ZERO, Instant::ZERO + Duration::from_secs(14), 5);
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        assert_eq!(application.idle, [(at(5), at(10))]);
    }
}
