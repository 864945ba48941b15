//! What is sent over what.
//!
//! Called by `main`; `ours` and `theirs` read the same values.
//!
//! Invariant: a schedule depends on its case and its run alone, so that both boxes get the same packets.

use segstream_base::Duration;
use segstream_base::random::Seed;

/// One comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// In bit/s.
    pub(crate) rate_bps: u64,
    pub(crate) delay_ns: u64,
    /// The queue in packets, without the one that is being transmitted.
    pub(crate) queue_packets: u64,
    pub(crate) loss: Losses,
    pub(crate) aqm: &'static str,
    /// The bytes of a packet on the wire; with `mixed` every third is a fifth of that.
    pub(crate) packet_bytes: u32,
    pub(crate) mixed: bool,
    /// The load in thousandths of the rate.
    pub(crate) load_permille: u64,
    pub(crate) packets: u32,
    pub(crate) runs: u32,
}

/// Which packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Losses {
    None,
    /// These, counted from 0.
    List(&'static [u32]),
    /// Each with this probability.
    Independent(f64),
}

/// The usual case, which the others change.
const USUAL: Case = Case {
    name: "",
    rate_bps: 10_000_000,
    delay_ns: 20_000_000,
    queue_packets: 1000,
    loss: Losses::None,
    aqm: "none",
    packet_bytes: 1250,
    mixed: false,
    load_permille: 700,
    packets: 10_000,
    runs: 1,
};

/// A list with single losses, runs, the first packet and the last.
const LIST: &[u32] = &[0, 5, 17, 18, 19, 100, 101, 102, 103, 104, 105, 1000, 1002, 1004, 5000, 7777, 7778, 9998, 9999];

/// All comparisons.
pub(crate) const CASES: &[Case] = &[
    Case { name: "list of losses", loss: Losses::List(LIST), mixed: true, ..USUAL },
    Case { name: "delay and serialisation", rate_bps: 1_544_000, delay_ns: 123_456_789, mixed: true, load_permille: 950, ..USUAL },
    Case { name: "full queue, drop-tail", queue_packets: 20, load_permille: 1_300, ..USUAL },
    Case { name: "independent losses, 1 %", loss: Losses::Independent(0.01), runs: 20, ..USUAL },
    Case { name: "independent losses, 20 %", loss: Losses::Independent(0.2), runs: 20, ..USUAL },
    Case { name: "CoDel, load 1.05", aqm: "codel", load_permille: 1_050, packets: 20_000, runs: 20, ..USUAL },
    Case { name: "CoDel, load 1.25", aqm: "codel", load_permille: 1_250, packets: 20_000, runs: 20, ..USUAL },
    Case { name: "PIE, load 1.05", aqm: "pie", load_permille: 1_050, packets: 20_000, runs: 20, ..USUAL },
    Case { name: "PIE, load 1.25", aqm: "pie", load_permille: 1_250, packets: 20_000, runs: 20, ..USUAL },
    Case { name: "RED, load 1.05", aqm: "red", load_permille: 1_050, packets: 20_000, runs: 20, ..USUAL },
    Case { name: "RED, load 1.25", aqm: "red", load_permille: 1_250, packets: 20_000, runs: 20, ..USUAL },
];

impl Case {
    /// Whether nothing in it is drawn but the schedule.
    pub(crate) fn is_deterministic(&self) -> bool {
        self.aqm == "none" && !matches!(self.loss, Losses::Independent(_))
    }

    /// How long the link takes for a packet of `packet_bytes`, in nanoseconds.
    pub(crate) fn packet_ns(&self) -> f64 {
        f64::from(self.packet_bytes) * 8e9 / self.rate_bps as f64
    }

    /// When each packet leaves, in nanoseconds, and its bytes: as a Poisson process.
    pub(crate) fn schedule(&self, run: u32) -> Vec<(u64, u32)> {
        let mut random = Seed(u64::from(run)).stream(self.name);
        let mut at = 0;
        let sizes = (0..self.packets).map(|number| if self.mixed && number % 3 == 2 { self.packet_bytes / 5 } else { self.packet_bytes });
        sizes
            .map(|bytes| {
                let mean = f64::from(bytes) * 8e9 / self.rate_bps as f64 * 1000.0 / self.load_permille as f64;
                at += random.exponential(Duration::from_nanos(mean as u64)).as_nanos();
                (at, bytes)
            })
            .collect()
    }
}
