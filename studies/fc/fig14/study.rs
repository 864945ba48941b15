//! FC Fig. 14: throughput efficiency against the window, analysis and simulation.
//!
//! Called through [`super::STUDIES`]. The points are those of EC Fig. 10.
//!
//! Invariant: nothing is said here that [`crate::window_sweep`] did not measure.
//! Source: FC 4.3, "Window Size Requirement", Fig. 14.

use crate::paired::with_differences;
use crate::window_sweep;
use segstream_lab::claim::Claim;
use segstream_lab::study::Study;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/fig14",
    title: "Throughput efficiency against the window, analysis and simulation",
    source: "FC 4.3, Window Size Requirement, Fig. 14 (EC 5.3, Fig. 10)",
    summary: "The window grows from one segment to three times what one round trip holds, with three loss probabilities. Lines are the \
              analysis with its second branch corrected, dotted as printed; signs are runs.\n\n\
              Both papers show this figure. The sentences on the window fit the 100 Mbit/s of the example of 732 packets, the delays of \
              EC's figures 500 to 600 Mbit/s; so both are run, and each is judged by itself.",
    parameters: &[
        ("round trip", "60 ms (stated for SNR in EC 5.3; the step of the delays)"),
        ("bandwidth", "100 and 500 Mbit/s (chosen: neither is stated)"),
        ("packet, segment", "1024 bytes, 256 packets (inferred)"),
        ("loss probabilities", "1e-4, 1e-3, 1e-2 (chosen: the text names 1e-4 and 1e-2)"),
        ("run length", "10 million packets (stated); shorter in the smaller presets"),
    ],
    points: window_sweep::points,
    figures: |points| window_sweep::figures("fc-fig14", points),
    tables: |points| with_differences(window_sweep::tables(points), points),
    claims: &[
        Claim {
            id: "FC-C1 at 100 Mbit/s",
            text: "With p <= 1e-4 a window of 1 + w_a gives close to the greatest throughput; 100 Mbit/s is the rate of the paper's example of 732 packets (FC 4.3).",
            check: window_sweep::least_window_slow,
        },
        Claim {
            id: "FC-C1 at 500 Mbit/s",
            text: "With p <= 1e-4 a window of 1 + w_a gives close to the greatest throughput; 500 Mbit/s is the rate that fits the delays of EC Figure 11 (FC 4.3).",
            check: window_sweep::least_window_fast,
        },
        Claim {
            id: "FC-C2 at 100 Mbit/s",
            text: "Up to p = 1e-2 a window of about 2.5 w_a gives almost perfect throughput; 100 Mbit/s is the rate of the paper's example of 732 packets (FC 4.3).",
            check: window_sweep::recommended_window_slow,
        },
        Claim {
            id: "FC-C2 at 500 Mbit/s",
            text: "Up to p = 1e-2 a window of about 2.5 w_a gives almost perfect throughput; 500 Mbit/s is the rate that fits the delays of EC Figure 11 (FC 4.3).",
            check: window_sweep::recommended_window_fast,
        },
        Claim {
            id: "FC-C3",
            text: "The analysis is quite accurate up to p = 1e-2, and always predicts more than the simulation gives (FC 4.3).",
            check: window_sweep::accuracy,
        },
    ],
    standings: window_sweep::standings,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};
