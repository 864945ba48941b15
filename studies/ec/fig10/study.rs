//! EC Fig. 10: throughput efficiency against the window, analysis and simulation.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: its points, pictures and findings are those of [`crate::window_sweep`], which FC Fig. 14 shares.
//! Source: EC 5.2, 5.3.

use crate::paired::with_differences;
use crate::window_sweep;
use segstream_lab::claim::Claim;
use segstream_lab::study::Study;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ec/fig10",
    title: "Throughput efficiency against the window",
    source: "EC 5.3, Figure 10; the closed forms in EC 5.2",
    summary: "SSTP with ideal feedback and no tolerated loss, over windows from one segment to 2.5 bandwidth-delay products and \
              beyond, at two bandwidths: that of the paper's example, and that of its delays. Solid lines are the analysis with its misprint \
              corrected, the dotted line is one curve as printed.\n\nSSTP with everything on and Segstream stand beside it: control \
              that shares the path and is lost on it costs little at any window.",
    parameters: &[
        ("loss recovery", "all of it (EC 5.3)"),
        ("packets of a segment", "256 (EC 5.3, from the tolerances)"),
        ("packet", "1024 bytes (EC 6, from 273 us and 30 Mbit/s)"),
        ("round trip", "60 ms (EC 5.3 states it for SNR alone)"),
        (
            "bandwidth",
            "100 and 500 Mbit/s (the first is that of the paper's example of 732 packets, the second fits its delays; each is judged by itself)",
        ),
        ("loss probabilities", "1e-4, 1e-3, 1e-2 (chosen; the text names the ends)"),
    ],
    points: window_sweep::points,
    figures: |points| window_sweep::figures("ec-fig10", points),
    tables: |points| with_differences(window_sweep::tables(points), points),
    claims: CLAIMS,
    standings: window_sweep::standings,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const CLAIMS: &[Claim] = &[
    Claim {
        id: "EC-C1 at 100 Mbit/s",
        text: "With p of at most 1e-4 a window of 1 + w_a gives close to the maximum throughput; 100 Mbit/s is the rate of the paper's example of 732 packets (EC 5.3)",
        check: window_sweep::least_window_slow,
    },
    Claim {
        id: "EC-C1 at 500 Mbit/s",
        text: "With p of at most 1e-4 a window of 1 + w_a gives close to the maximum throughput; 500 Mbit/s is the rate that fits the delays of EC Figure 11 (EC 5.3)",
        check: window_sweep::least_window_fast,
    },
    Claim {
        id: "EC-C2 at 100 Mbit/s",
        text: "Up to p = 1e-2 a window of about 2.5 bandwidth-delay products gives almost perfect throughput; 100 Mbit/s is the rate of the paper's example of 732 packets (EC 5.3)",
        check: window_sweep::recommended_window_slow,
    },
    Claim {
        id: "EC-C2 at 500 Mbit/s",
        text: "Up to p = 1e-2 a window of about 2.5 bandwidth-delay products gives almost perfect throughput; 500 Mbit/s is the rate that fits the delays of EC Figure 11 (EC 5.3)",
        check: window_sweep::recommended_window_fast,
    },
    Claim {
        id: "EC-C3",
        text: "The analysis is quite accurate up to p = 1e-2, and consistently predicts more than the simulation (EC 5.3)",
        check: window_sweep::accuracy,
    },
];
