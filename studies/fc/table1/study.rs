//! FC Table 1: what a packet costs the end systems.
//!
//! Called through [`super::STUDIES`]. The table is that of EC Table 2.
//!
//! Invariant: no claim is judged by the speed of the machine this runs on.
//! Source: FC 5, Table 1.

use crate::processing_cost;
use segstream_lab::study::Study;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/table1",
    title: "Processing delay of a packet",
    source: "FC 5, Table 1 (EC 6, Table 2)",
    summary: "The papers measured SSTP inside the SunOS 4.0.3 kernel: 273 us to send a packet and 310 us to receive one, without copies \
              between application and kernel. Beside it stands what a packet costs the state machines of this project on the machine \
              that made this report: no packet is encoded, copied or handed to a network, so the two are no race.",
    parameters: &[
        ("packet", "1024 bytes (273 us and 30 Mbit/s give it)"),
        ("scenario", "the common point, without loss and with p = 1e-3 (chosen: not stated)"),
        ("run length", "100,000 packets, the median of seven replays (chosen)"),
    ],
    points: Vec::new,
    figures: |_| Vec::new(),
    tables: |_| processing_cost::tables(),
    claims: &[],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};
