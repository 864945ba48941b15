//! HT Fig. 14a: HTPNET and TCP under errors at a round trip of 20 ms.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the claim on both halves is judged in [`super::fig14b`], whose round trip the text names.
//! Source: HT 7, Fig. 14.

use super::under_errors::{self, PARAMETERS};
use segstream_lab::study::Study;

/// The shorter of the round trips, in milliseconds. Chosen: the text names the longer.
pub(super) const RTT_MS: u64 = 20;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig14a",
    title: "HTPNET and TCP under errors, 20 ms",
    source: "HT 7, Figure 14a",
    summary: "The throughput of each as a part of its own largest, over the packet error rate. A TCP that knows no loss but by \
              its timers waits two round trips for each, while the window stands still behind the lost packet; meanwhile the timers of \
              the whole window run out, and all of it is sent again.",
    parameters: PARAMETERS,
    points: || under_errors::points(RTT_MS),
    shortened: 10,
    figures: |points| vec![under_errors::figure(points, "ht-fig14a", RTT_MS)],
    tables: |points| vec![under_errors::table(points, RTT_MS)],
    standings: |points| under_errors::standings(points, 20),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};
