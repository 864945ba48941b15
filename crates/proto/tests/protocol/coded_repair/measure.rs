//! The tables of docs/CODING.md: quantiles and cost on the path of the tables.

use super::{CodingTarget, Live, Parts};
use crate::bottleneck::ms;
use segstream_base::{Duration, Tolerance};

/// A row: what is sent over which path, what coding may cost in thousandths, and how its name begins.
struct Row {
    live: Live,
    budget_permille: u16,
    kind: &'static str,
}

/// Of every 256 units 32 may be missing, three of them side by side.
fn partial() -> Tolerance {
    Tolerance::new(256, 32, 3).unwrap()
}

/// Segments of 256 KiB over 100 Mbit/s.
fn large() -> Vec<Row> {
    let mut rows = Vec::new();
    for (is_auto, round_trip) in [(false, 60), (false, 20), (false, 200), (true, 60)] {
        for loss in ["1e-3", "1e-2", "1e-1", "gilbert:rate=1%,burst=8"] {
            for tolerance in [Tolerance::reliable(256), partial()] {
                let heavy = loss == "1e-1" && tolerance.is_reliable();
                let period = match (heavy, is_auto) {
                    (false, _) => Live::RELIABLE.period,
                    // 70 % of the bandwidth, or 60 %.
                    (true, false) => Duration::from_micros(30_000),
                    (true, true) => Duration::from_micros(35_000),
                };
                let live = Live { loss, round_trip, tolerance, period, is_auto, ..Live::RELIABLE };
                let kind = if is_auto { "auto" } else { "fixed" };
                rows.push(Row { live, budget_permille: if heavy { 200 } else { 100 }, kind });
            }
        }
    }
    rows
}

/// Segments of 20 ms at 5 and 20 Mbit/s, 80 % of the bandwidth; 60 % at 1e-1, where what is lost and the budget of 20 % need the rest.
fn small() -> impl Iterator<Item = Row> {
    let paths = [(5, "5mbit"), (20, "20mbit")];
    paths.into_iter().flat_map(|(megabits, kind)| {
        let losses = ["1e-3", "1e-2", "1e-1", "gilbert:rate=1%,burst=8"];
        losses.map(|loss| {
            let (load, budget_permille) = if loss == "1e-1" { (60, 200) } else { (80, 100) };
            let segment_bytes = megabits * 25 * load;
            let live = Live { megabits, segment_bytes, loss, period: ms(20), ..Live::RELIABLE };
            Row { live, budget_permille, kind }
        })
    })
}

/// The slices of `segstream demo`: 1 MiB at 250 Mbit/s.
fn slices() -> impl Iterator<Item = Row> {
    let period = Duration::from_micros(41_943);
    let live = Live { megabits: 250, segment_bytes: 1 << 20, tolerance: Tolerance::reliable(1024), period, ..Live::RELIABLE };
    ["1e-3", "gilbert:rate=0.1%,burst=8"].into_iter().map(move |loss| Row {
        live: Live { loss, ..live },
        budget_permille: 100,
        kind: "slices",
    })
}

/// Prints the quantiles: without repair units, with each part, and with both. It takes many minutes. `CELL` chooses a loss, `RTT` a round trip in
/// milliseconds, `KIND` the rows: fixed, auto, 5mbit, 20mbit or slices; `BACK` is a loss on the way back instead of the same, `SEGMENTS` how many of
/// each of five seeds, 800 if it is not set, `BUDGET` the budget in thousandths.
#[test]
#[ignore = "a measurement"]
fn table() {
    let set = |name: &str| std::env::var(name).ok();
    let number = |name: &str| set(name).and_then(|text| text.parse::<u64>().ok());
    let back = set("BACK").map(|text| &*text.leak());
    let segments = number("SEGMENTS").unwrap_or(800);
    eprintln!(
        "| rate | loss | round trip | tolerance | repair units | p50 | p95 | p99 | p99 of the seeds | most | sent again | repair units, % | beyond exact repair, % |"
    );
    for Row { live, budget_permille, kind } in large().into_iter().chain(small()).chain(slices()) {
        let is_left_out = |name: &str, is: String| set(name).is_some_and(|chosen| chosen != is);
        if is_left_out("CELL", live.loss.into()) || is_left_out("RTT", live.round_trip.to_string()) || is_left_out("KIND", kind.into()) {
            continue;
        }
        let budget_permille = number("BUDGET").map_or(budget_permille, |budget| budget as u16);
        let target = CodingTarget { latency: ms(live.round_trip / 2 + 50), budget_permille };
        let all = [("none", Parts::None), ("hedged", Parts::Hedged), ("ahead", Parts::Ahead(target)), ("both", Parts::Both(target))];
        let mut exact = 0.0;
        for (name, parts) in all {
            let outcome = Live { parts, back, ..live }.pooled(segments);
            let share = |units: u64| units as f64 * 100.0 / outcome.units as f64;
            if name == "none" {
                exact = share(outcome.again);
            }
            eprintln!(
                "| {kind} | {} | {} | {} | {name} | {:.1} | {:.1} | {:.1} | {:.1?} | {:.1} | {:.2} | {:.2} | {:.2} |",
                live.loss,
                live.round_trip,
                live.tolerance,
                outcome.quantile(0.5),
                outcome.quantile(0.95),
                outcome.quantile(0.99),
                outcome.p99s,
                outcome.quantile(1.0),
                share(outcome.again),
                share(outcome.repair_units),
                outcome.overhead() * 100.0 - exact,
            );
        }
    }
}
