//! The points of XT Figures 4 to 6: over the user throughput, with the window of XT 3.2.
//!
//! Called by the studies of these figures, which share their points.
//!
//! Invariant: a curve has a point at each of [`RATES`].

use super::delay::{self, Across, Drawn};
use super::tandem::{SEGSTREAM, SIX, WINDOW, Who};
use crate::curves::Look;
use segstream_lab::figure::{Line, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::TandemPoint;
use segstream_lab::tandem::{Arrivals, TandemOutcome};

/// User throughputs, in messages a slot.
pub(super) const RATES: [f64; 14] = [0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10, 0.11, 0.12, 0.13, 0.14, 0.15];
/// The horizontal axis.
pub(super) const X: Across = ("user throughput (messages/slot)", (0.015, 0.155));

/// The points of who transfers, with a window of `window` packets, in the curve called `name`.
pub(super) fn points(name: &str, who: Who, window: u32, arrivals: fn(f64) -> Arrivals) -> Vec<TandemPoint> {
    RATES.map(|rate| TandemPoint { curve: name.to_owned(), x: rate, scenario: who.over(window, arrivals(rate)) }).to_vec()
}

/// The six, and the flagship with the same window.
pub(super) fn everyone() -> impl Iterator<Item = Who> {
    SIX.into_iter().chain([SEGSTREAM])
}

/// The curves of everyone with the window of XT 3.2.
pub(super) fn all_points(arrivals: fn(f64) -> Arrivals) -> Vec<TandemPoint> {
    everyone().flat_map(|who| points(&who.name(), who, WINDOW, arrivals)).collect()
}

/// How everyone is drawn.
pub(super) fn drawn() -> Vec<Drawn> {
    everyone().map(|who| (who.name(), who.label(), who.look())).collect()
}

/// How another setting of the flagship is drawn.
pub(super) fn variant(name: &str, label: &str) -> Drawn {
    (name.to_owned(), label.to_owned(), Look { line: Line::Dashed, ..Who::Segstream(Some(1.0)).look() })
}

/// The delays of these curves, name and head of each.
pub(super) fn delays(measured: &Measured, title: &str, curves: &[(String, String)]) -> TextTable {
    let row = |rate: &f64| {
        let mut row = vec![format!("{rate:.2}")];
        row.extend(curves.iter().map(|(name, _)| delay::cell(measured, name, *rate)));
        row
    };
    let columns = std::iter::once("messages/slot".to_owned()).chain(curves.iter().map(|(_, head)| head.clone())).collect();
    TextTable { title: title.to_owned(), columns, rows: RATES.iter().map(row).collect() }
}

/// A count with its name.
type Count = (&'static str, fn(&TandemOutcome) -> u64);

/// What these curves cost at one throughput: packets dropped, external ones dropped, sent again, feedback.
pub(super) fn costs(measured: &Measured, rate: f64, curves: &[(String, String)]) -> TextTable {
    const COUNTS: [Count; 4] = [
        ("dropped", TandemOutcome::overflow_drops),
        ("external dropped", |outcome| outcome.external_drops),
        ("sent again", |outcome| outcome.packets_retransmitted),
        ("feedback", |outcome| outcome.feedback_packets),
    ];
    let row = |(name, head): &(String, String)| {
        let mut row = vec![head.clone()];
        let messages = delay::total(measured, name, rate, |outcome| outcome.messages_delivered).unwrap_or(0) as f64;
        let each =
            |count| delay::total(measured, name, rate, count).map_or_else(String::new, |of| format!("{:.2}", of as f64 * 1e3 / messages));
        row.extend(COUNTS.map(|(_, count)| each(count)));
        row
    };
    let columns = std::iter::once(String::new()).chain(COUNTS.map(|(head, _)| head.to_owned())).collect();
    let title = format!("Packets for each thousand messages delivered, at {rate} messages/slot");
    TextTable { title, columns, rows: curves.iter().map(row).collect() }
}
