//! XT Fig. 8: delay over the window, selective repeat with a storing receiver.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: as Fig. 7 except for the sender; its points are here too, since the paper compares the two.
//! Source: XT 4, Fig. 8.

use super::over_window::{self, WINDOWS};
use super::tandem::{SEGSTREAM, SIX, Who};
use super::{delay, tandem};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::Figure;
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/fig8",
    title: "Delay over the window, selective repeat",
    source: "XT 4, Figure 8",
    summary: "Mean delay of a message over the window at 0.12 messages/slot, for schemes 2.2 and 2.3. An early report repairs early, but it \
              also moves the window while LINK1 is still full; beyond a window of about 60 packets that costs more than it gives. With \
              selective repeat it costs one to three slots, with go-back-N a collapse.\n\n\
              Segstream's window is moved by every report and its repairs are exact, so that here a larger window is never worse for it.",
    parameters: &[
        ("user throughput", "0.12 messages/slot (stated for Table 4)"),
        ("windows", "30 to 120 packets (stated), in steps of 10 (chosen)"),
        ("arrivals", "Bernoulli (chosen)"),
        ("WTIMER, room of LINK1", "200 slots, 13 packets (chosen: see sensitivity)"),
    ],
    tandem: points,
    figures,
    claims: &[Claim {
        id: "XT-C9",
        text: "The aggressive receiver is better up to a certain window and worse beyond it; with large windows it costs a go-back-N \
               sender more than a selective one (XT 4, Figures 7 and 8)",
        check: aggressive_up_to_a_window,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const WHO: [Who; 3] = [SIX[4], SIX[5], SEGSTREAM];
const BESIDE: [Who; 2] = [SIX[1], SIX[2]];

fn points() -> Vec<TandemPoint> {
    over_window::points(&[WHO.as_slice(), BESIDE.as_slice()].concat())
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let title = "Delay over the window, selective repeat, 0.12 messages/slot";
    vec![over_window::figure(measured, ("xt-fig8", title), (20.0, 45.0), &WHO)]
}

/// The first window from which on the aggressive receiver is worse, if it is better somewhere below; where both have no
/// steady state they are equal.
fn crossing(conservative: &[f64], aggressive: &[f64]) -> Option<usize> {
    let worse = |at: usize| aggressive[at] > conservative[at] || aggressive[at].is_infinite();
    let from = (0..WINDOWS.len()).rev().take_while(|at| worse(*at)).last()?;
    (0..from).any(|at| aggressive[at] < conservative[at]).then_some(from)
}

fn aggressive_up_to_a_window(measured: &Measured) -> Option<Finding> {
    let of = |who: Who| over_window::delays(measured, &who.name());
    let (gbn, gbn_early) = (of(SIX[1])?, of(SIX[2])?);
    let (sr, sr_early) = (of(SIX[4])?, of(SIX[5])?);
    let (gbn_from, sr_from) = (crossing(&gbn, &gbn_early), crossing(&sr, &sr_early));
    // The largest excess of the aggressive receiver, among windows at which the conservative one has a steady state.
    let excess = |late: &[f64], early: &[f64]| {
        late.iter().zip(early).filter(|(late, _)| late.is_finite()).fold(0.0, |most: f64, (late, early)| most.max(early / late - 1.0))
    };
    let (gbn_most, sr_most) = (excess(&gbn, &gbn_early), excess(&sr, &sr_early));
    let parts = [
        Part::point("better up to a window and worse beyond, with one sender", gbn_from.is_some() || sr_from.is_some()),
        Part::also("with both senders", gbn_from.is_some() && sr_from.is_some()),
        Part::also("costs go-back-N more", gbn_most > sr_most),
    ];
    let from = |at: Option<usize>| at.map_or_else(|| "nowhere".to_owned(), |at| format!("from {} on", WINDOWS[at]));
    let most = |most: f64| {
        if most.is_finite() { format!("by {:.0} % at most", 100.0 * most) } else { "at some to the point of no steady state".to_owned() }
    };
    let measured = format!(
        "windows 30 to 120 at {} messages/slot: 1.2 {}; 1.3 {}; 2.2 {}; 2.3 {}. 1.3 worse than 1.2 {}, {}; 2.3 worse than 2.2 {}, {}",
        tandem::THROUGHPUT,
        delay::list(&gbn),
        delay::list(&gbn_early),
        delay::list(&sr),
        delay::list(&sr_early),
        from(gbn_from),
        most(gbn_most),
        from(sr_from),
        most(sr_most)
    );
    Some(Finding::of(parts, measured))
}
