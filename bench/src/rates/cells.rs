//! The cells of the matrix: paths, who is beside, and when a cell is met. Data only; a cell is a row.
//!
//! Called by [`super::run`].
//!
//! Invariant: a cell is not changed because it is missed.

/// The kernel's controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Cubic,
    Bbr,
}

impl Kernel {
    /// As the kernel, iperf3 and the results call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// When the measured flow begins, beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The other comes later.
    First,
    /// The other is there.
    Second,
    Same,
}

/// When a cell is met. Rates in Mbit/s of the application's bytes, parts between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// G: at least 0.9 of the better kernel flow, and a queue no longer than the kernel's BBR, 15 ms or five datagram times.
    /// Besides, at least this part of the link in whole packets, and at most this part dropped by the queue.
    Good { filled_min: f64, loss_max: f64 },
    /// A rate, and at most this part dropped by policer or queue.
    AtLeast { mbit: f64, loss_max: f64 },
    /// CUBIC beside ours keeps what it keeps beside the kernel's BBR.
    LeavesCubic,
    /// A part of the link; with `steady` no more starved seconds than a kernel flow in our place has.
    Share { min: f64, max: f64, steady: bool },
    /// Jain's index of our flows, and at most this part dropped by the queue.
    Fair { jain_min: f64, loss_max: f64 },
    /// Jain's index of our flows is at least that of the better kernel's.
    FairAsKernel,
    /// After the last change a queue below 300 ms, and 0.9 of the link within 2 s.
    Recovers,
    /// This part of the segments of a live source is judged complete within the deadline. It has so much while it is on, and is on and off
    /// for the same time in turn.
    InTime { mbit: f64, deadline_ms: u32, on_off_s: u32, min: f64 },
    /// The queue's 95th percentile.
    QueueBelow { p95_ms: f64 },
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) name: &'static str,
    /// With a trace its mean.
    pub(super) mbit: f64,
    /// The bandwidth from these seconds of the measurement on.
    pub(super) changes: &'static [(f64, f64)],
    pub(super) rtt_ms: f64,
    pub(super) queue_bdp: f64,
    /// What `link --jitter` takes, and how many milliseconds of delay at most, or on average, that adds.
    pub(super) jitter: Option<(&'static str, f64)>,
    pub(super) loss: &'static str,
    pub(super) aqm: &'static str,
    /// Whether the kernel's flows ask for ECN. Ours always do; without it their queue does not know ECN.
    pub(super) ecn: bool,
    /// A file in the directory of `--traces`.
    pub(super) trace: Option<&'static str>,
    /// Other flags of `link`.
    pub(super) flags: &'static [&'static str],
    pub(super) beside: Option<(Kernel, Turn)>,
    /// How many measured flows, all started together.
    pub(super) count: usize,
    /// The clocks of our senders' hosts differ by up to a second.
    pub(super) unsynchronised: bool,
    /// Of ours; `None` is what the run was asked for.
    pub(super) congestion: Option<&'static str>,
    /// A time of its own, and from which second on it counts.
    pub(super) seconds: Option<(u32, u32)>,
    pub(super) met: Rule,
}

/// What most rows have: 20 Mbit/s, 40 ms, one bandwidth-delay product of queue, nobody beside.
pub(super) const BASE: Cell = Cell {
    name: "",
    mbit: 20.0,
    changes: &[],
    rtt_ms: 40.0,
    queue_bdp: 1.0,
    jitter: None,
    loss: "none",
    aqm: "droptail",
    ecn: false,
    trace: None,
    flags: &[],
    beside: None,
    count: 1,
    unsynchronised: false,
    congestion: None,
    seconds: None,
    met: GOOD,
};
pub(super) const GOOD: Rule = Rule::Good { filled_min: 0.0, loss_max: 1.0 };
pub(super) const HALF: Rule = Rule::Share { min: 0.35, max: 0.6, steady: true };
pub(super) const THIRD: Rule = Rule::Share { min: 0.3, max: 1.0, steady: false };
pub(super) const FAIR: Rule = Rule::Fair { jain_min: 0.95, loss_max: 0.02 };
const FAIR_CROWD: Rule = Rule::Fair { jain_min: 0.9, loss_max: 1.0 };
const LATE: Option<(u32, u32)> = Some((90, 30));

const fn beside(name: &'static str, other: Kernel, turn: Turn, queue_bdp: f64, met: Rule) -> Cell {
    Cell { name, beside: Some((other, turn)), queue_bdp, met, ..BASE }
}

const fn managed(name: &'static str, aqm: &'static str, ecn: bool) -> Cell {
    Cell { name, aqm, ecn, ..BASE }
}

const fn beside_managed(name: &'static str, aqm: &'static str, ecn: bool) -> Cell {
    Cell { name, aqm, ecn, beside: Some((Kernel::Cubic, Turn::Second)), met: Rule::LeavesCubic, ..BASE }
}

const fn many(name: &'static str, count: usize, mbit: f64) -> Cell {
    Cell { name, count, mbit, met: FAIR, ..BASE }
}

/// Names of the kind RATE-ROUNDTRIP-WHAT where the path is not the usual one.
pub(super) const CELLS: &[Cell] = &[
    Cell { name: "clean", met: Rule::Good { filled_min: 0.95, loss_max: 1.0 }, ..BASE },
    Cell { name: "deep", queue_bdp: 10.0, ..BASE },
    Cell { name: "100-60-shallow", mbit: 100.0, rtt_ms: 60.0, queue_bdp: 0.1, met: Rule::Good { filled_min: 0.0, loss_max: 0.01 }, ..BASE },
    Cell { name: "jitter10", jitter: Some(("10ms", 10.0)), ..BASE },
    Cell { name: "jitter20", jitter: Some(("20ms", 20.0)), ..BASE },
    Cell { name: "jitter40", jitter: Some(("40ms", 40.0)), ..BASE },
    Cell { name: "50-30-jitter15-loss", mbit: 50.0, rtt_ms: 30.0, jitter: Some(("15ms", 15.0)), loss: "random:0.5%", ..BASE },
    Cell { name: "100-60-jitter10-loss", mbit: 100.0, rtt_ms: 60.0, jitter: Some(("10ms", 10.0)), loss: "random:1%", ..BASE },
    Cell { name: "wifi12", jitter: Some(("wifi:12ms", 12.0)), ..BASE },
    Cell { name: "50-20-aggregate8", mbit: 50.0, rtt_ms: 20.0, flags: &["--aggregate", "8ms"], ..BASE },
    Cell { name: "100-60-loss10", mbit: 100.0, rtt_ms: 60.0, loss: "random:10%", met: Rule::AtLeast { mbit: 85.0, loss_max: 1.0 }, ..BASE },
    Cell { name: "100-60-gilbert", mbit: 100.0, rtt_ms: 60.0, loss: "gilbert:rate=1%,burst=8", ..BASE },
    Cell { name: "policer", mbit: 100.0, flags: &["--policer", "20mbit"], met: Rule::AtLeast { mbit: 19.0, loss_max: 0.02 }, ..BASE },
    managed("codel", "codel", false),
    managed("codel-ecn", "codel", true),
    managed("fq-codel", "fq-codel", false),
    managed("fq-codel-ecn", "fq-codel", true),
    managed("pie", "pie", false),
    managed("pie-ecn", "pie", true),
    beside_managed("codel-beside", "codel", false),
    beside_managed("codel-ecn-beside", "codel", true),
    beside_managed("fq-codel-beside", "fq-codel", false),
    beside_managed("fq-codel-ecn-beside", "fq-codel", true),
    beside_managed("pie-beside", "pie", false),
    beside_managed("pie-ecn-beside", "pie", true),
    // Alone all that waits is in the queue of L4S.
    Cell { name: "dualpi2", aqm: "dualpi2", ecn: true, congestion: Some("prague"), met: Rule::QueueBelow { p95_ms: 2.0 }, ..BASE },
    Cell {
        name: "dualpi2-beside",
        aqm: "dualpi2",
        ecn: true,
        congestion: Some("prague"),
        beside: Some((Kernel::Cubic, Turn::Second)),
        met: Rule::Share { min: 0.35, max: 0.65, steady: false },
        ..BASE
    },
    beside("cubic-quarter-first", Kernel::Cubic, Turn::First, 0.25, HALF),
    beside("cubic-quarter-second", Kernel::Cubic, Turn::Second, 0.25, HALF),
    beside("cubic-quarter-same", Kernel::Cubic, Turn::Same, 0.25, HALF),
    beside("cubic-1-first", Kernel::Cubic, Turn::First, 1.0, HALF),
    beside("cubic-1-second", Kernel::Cubic, Turn::Second, 1.0, HALF),
    beside("cubic-1-same", Kernel::Cubic, Turn::Same, 1.0, HALF),
    beside("cubic-4-first", Kernel::Cubic, Turn::First, 4.0, HALF),
    beside("cubic-4-second", Kernel::Cubic, Turn::Second, 4.0, HALF),
    beside("cubic-4-same", Kernel::Cubic, Turn::Same, 4.0, HALF),
    beside("bbr-1", Kernel::Bbr, Turn::Second, 1.0, THIRD),
    beside("bbr-4", Kernel::Bbr, Turn::Second, 4.0, THIRD),
    many("ours2-20", 2, 20.0),
    many("ours4-20", 4, 20.0),
    many("ours8-20", 8, 20.0),
    many("ours16-20", 16, 20.0),
    many("ours2-100", 2, 100.0),
    many("ours4-100", 4, 100.0),
    many("ours8-100", 8, 100.0),
    many("ours16-100", 16, 100.0),
    Cell { unsynchronised: true, ..many("ours2-20-clocks", 2, 20.0) },
    Cell { unsynchronised: true, ..many("ours4-20-clocks", 4, 20.0) },
    Cell { unsynchronised: true, ..many("ours16-20-clocks", 16, 20.0) },
    Cell { unsynchronised: true, ..many("ours4-100-clocks", 4, 100.0) },
    Cell { seconds: LATE, met: Rule::FairAsKernel, ..many("ours40-20", 40, 20.0) },
    Cell { seconds: LATE, met: Rule::FairAsKernel, ..many("ours100-20", 100, 20.0) },
    Cell { seconds: LATE, met: FAIR_CROWD, ..many("ours40-100", 40, 100.0) },
    Cell { seconds: LATE, met: FAIR_CROWD, ..many("ours100-100", 100, 100.0) },
    Cell { name: "slow", mbit: 0.1, ..BASE },
    Cell { name: "1-40", mbit: 1.0, ..BASE },
    Cell { name: "1000-40", mbit: 1000.0, ..BASE },
    many("ours2-1000", 2, 1000.0),
    Cell { name: "10000-40", mbit: 10_000.0, ..BASE },
    Cell { name: "20-5-20", changes: &[(0.0, 20.0), (5.0, 5.0), (10.0, 20.0)], met: Rule::Recovers, ..BASE },
    Cell { name: "outage3", changes: &[(0.0, 20.0), (5.0, 0.0), (8.0, 20.0)], met: Rule::Recovers, ..BASE },
    beside("live-8", Kernel::Cubic, Turn::Second, 1.0, Rule::InTime { mbit: 8.0, deadline_ms: 200, on_off_s: 5, min: 0.99 }),
    Cell { name: "att", mbit: 4.56, trace: Some("att-lte-driving-2016-down.txt"), ..BASE },
    Cell { name: "evdo", mbit: 0.49, trace: Some("verizon-evdo-driving-down.txt"), ..BASE },
    Cell { name: "office-wifi", mbit: 5.86, trace: Some("wifi-office-60s.txt"), ..BASE },
];

/// What the matrix also has and this tool does not run.
pub(super) const NOT_BUILT: &[(&str, &str)] = &[(
    "above 100 Mbit/s over veth",
    "this tool shapes with `link` alone; a cell through it counts while its lateness at p99.9 is below 1 ms",
)];
