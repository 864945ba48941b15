//! EC Table 2: what a packet costs at each end.
//!
//! Called through [`super::STUDIES`]. FC Table 1 is the same table.
//!
//! Invariant: everything here is a measurement of the machine it runs on; it has no points and is compared with nothing.
//! Source: EC 6, Table 2.

use crate::processing_cost;
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::measured::Measured;
use segstream_lab::study::Study;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ec/table2",
    title: "Processing cost of a packet",
    source: "EC 6, Table 2",
    summary: "The paper measured SSTP in the kernel of SunOS 4.0.3 in 1992, without the copy between application and kernel: 273 us for \
              a packet sent and 310 us for one received. Here the protocol state machines are given the same calls as in a simulated \
              run, without path, simulator, bytes and operating system, and each half is timed by itself.\n\nThe two are measurements \
              of different things: the paper's has the driver, the buffers and the checksum in it. What can be compared is the order of \
              the schemes among each other, and what the protocol alone would allow.",
    parameters: &[
        ("packet", "1024 bytes (EC 6, from 273 us and 30 Mbit/s)"),
        ("loss", "none, and 1e-3 (chosen: not stated)"),
        ("copy of the payload", "left out (EC 6 leaves it out between application and kernel)"),
        ("machine", "the one this ran on: numbers differ from run to run and are compared with no table"),
    ],
    points: Vec::new,
    figures: |_| Vec::new(),
    tables: |_| processing_cost::tables(),
    claims: &[Claim {
        id: "EC-C14",
        text: "SSTP over COIP is about 20 % faster than TCP/IP, 22 Mbit/s (EC 6; so in the summaries of EC and FC)",
        check: faster_than_tcp,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

fn faster_than_tcp(_: &Measured) -> Option<Finding> {
    let rate = |microseconds: f64| processing_cost::rate_mbit(1024, microseconds * 1e3);
    let (sends, receives) = (rate(273.0), rate(310.0));
    let measured = format!(
        "1024 bytes in 273 and 310 us are {sends:.1} and {receives:.1} Mbit/s, {:.2} and {:.2} of 22",
        sends / 22.0,
        receives / 22.0
    );
    Some(Finding::not_judged(measured).because(
        "Two kernels of one machine of 1992 were measured, and 22 Mbit/s is quoted: nothing that runs here can say more than that the \
         arithmetic on the slower end gives the 20 %.",
    ))
}
