//! XT Fig. 7: delay over the window, go-back-N with a storing receiver.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: as Fig. 8 except for the sender. What the paper says of both is judged there.
//! Source: XT 4, Fig. 7.

use super::over_window;
use super::tandem::{SEGSTREAM, SIX, Who};
use segstream_lab::figure::Figure;
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/fig7",
    title: "Delay over the window, go-back-N",
    source: "XT 4, Figure 7",
    summary: "Mean delay of a message over the window at 0.12 messages/slot, for schemes 1.2 and 1.3. The figure's caption names schemes \
              2.1 and 1.3; the text compares 1.2 and 1.3, and so do we.\n\n\
              A small window costs waiting at its end. A large one lets the sender overfill LINK1, and what it then sends again fills \
              LINK1 once more: at a window of 120 neither scheme has a steady state.",
    parameters: &[
        ("user throughput", "0.12 messages/slot (stated for Table 4)"),
        ("windows", "30 to 120 packets (stated), in steps of 10 (chosen)"),
        ("arrivals", "Bernoulli (chosen)"),
        ("WTIMER, room of LINK1", "200 slots, 13 packets (chosen: see sensitivity)"),
    ],
    tandem: points,
    figures,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const WHO: [Who; 3] = [SIX[1], SIX[2], SEGSTREAM];

fn points() -> Vec<TandemPoint> {
    over_window::points(&WHO)
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let title = "Delay over the window, go-back-N, 0.12 messages/slot";
    vec![over_window::figure(measured, ("xt-fig7", title), (20.0, 100.0), &WHO)]
}
