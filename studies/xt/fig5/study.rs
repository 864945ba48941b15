//! XT Fig. 5: delay over user throughput, bursty arrivals.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the points of Fig. 4 except for the arrivals.
//! Source: XT 4, Fig. 5; XT 3.3.

use super::delay;
use super::over_throughput::{self, X, everyone};
use super::tandem::{SEGSTREAM, SIX, WINDOW, Who, interrupted};
use segstream_lab::figure::{Figure, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/fig5",
    title: "Delay over user throughput, bursty arrivals",
    source: "XT 4, Figure 5",
    summary: "Mean delay of a message over the user throughput with interrupted Bernoulli arrivals, C^2 = 10, and a window of 60 packets. \
              The order is that of Figure 4. A burst of messages waits at XTP1 for the server and for the window, \
              whatever the scheme; that is most of the delay.\n\n\
              Segstream does not wait for the end of a window to ask, so that it stays below all six. Paced a little below what XTP1 \
              could send it loses less at LINK1 and gains at high throughput.",
    parameters: &[
        ("arrivals", "interrupted Bernoulli (stated), C^2 = 10 (stated), alpha = 1 (chosen)"),
        ("user throughput", "0.02 to 0.15 messages/slot (chosen)"),
        ("window", "60 packets (stated)"),
        ("WTIMER, room of LINK1", "200 slots, 13 packets (chosen: see sensitivity)"),
    ],
    tandem: points,
    figures,
    tables,
    standings: |measured| delay::standings(measured, &SEGSTREAM.name(), &SIX, "bursty, messages/slot"),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// The flagship with the rate that suits it best here, in packets a slot.
const PACED: Who = Who::Segstream(Some(0.45));

fn points() -> Vec<TandemPoint> {
    let mut points = over_throughput::all_points(interrupted);
    points.extend(over_throughput::points(&PACED.name(), PACED, WINDOW, interrupted));
    points
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let mut drawn = over_throughput::drawn();
    drawn.push(over_throughput::variant(&PACED.name(), &PACED.label()));
    let title = "Delay over user throughput, bursty arrivals (C² = 10), window 60";
    vec![delay::figure(measured, ("xt-fig5", title), X, (0.0, 350.0), &drawn)]
}

fn tables(measured: &Measured) -> Vec<TextTable> {
    let mut curves: Vec<(String, String)> = everyone().map(|who| (who.name(), who.number().to_owned())).collect();
    curves.push((PACED.name(), PACED.label()));
    let title = "Mean delay of a message in slots, C² = 10";
    vec![over_throughput::delays(measured, title, &curves), over_throughput::costs(measured, 0.12, &curves)]
}
