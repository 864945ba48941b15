//! The ways in which the demonstration sends its slices, and the path it sends them over.
//!
//! Read by the verb, for each run. Invariant: every run has the same path, slices and timing; only the
//! contract, repair units and the loss process differ.

use segstream::{Bandwidth, Coding, CodingTarget, Contract, InterleaveChoice, Order, Tolerance};
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_net::link::LinkConfig;
use segstream_path::{LossPlace, LossSpec, PathConfig};
use std::net::SocketAddr;

/// Lines of a slice, each a unit, and bytes of a line.
pub(crate) const UNITS: u32 = 1024;
/// Bytes of a line.
pub(crate) const UNIT_BYTES: u32 = 1024;
/// Bandwidth of the path in each direction, in whole IP packets.
pub(crate) const BANDWIDTH: Bandwidth = Bandwidth::from_megabits_per_second(250);
/// Delay of the path in each direction.
pub(crate) const ONE_WAY: Duration = Duration::from_millis(30);
/// Share of the bandwidth that the slices take as payload, in percent.
pub(crate) const LOAD_PERCENT: u64 = 80;
/// A run during which the path was later than this, at its 99.9th percentile, is void.
const LATENESS_MAX: Duration = Duration::from_millis(1);
/// The loss processes, as they are written on the command line.
pub(crate) const LOSSES: [&str; 2] = ["1e-3", "gilbert:rate=0.1%,burst=8"];

/// One way to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) tolerance: Tolerance,
    pub(crate) interleave: bool,
    pub(crate) coding: Coding,
}

/// Of each segment 32 units may be missing, no two of them side by side.
const TOLERANT: Tolerance = match Tolerance::new(UNITS, 32, 1) {
    Ok(tolerance) => tolerance,
    Err(_) => Tolerance::any(UNITS),
};

/// Repair lines leave ahead, so that a slice is there 100 ms after it was due: a round of retransmission would miss that.
const AHEAD: Coding = Coding::Auto(CodingTarget { latency: Duration::from_millis(100), budget_permille: CodingTarget::BUDGET_PERMILLE });

/// The five ways, in the order in which they are shown. Why the others have no repair units, which are on by default: so each shows one thing.
pub(crate) const WAYS: [Way; 5] = [
    Way { name: "plain datagrams", tolerance: Tolerance::any(UNITS), interleave: false, coding: Coding::Off },
    Way { name: "reliable", tolerance: Tolerance::reliable(UNITS), interleave: false, coding: Coding::Off },
    Way { name: "reliable, coded ahead", tolerance: Tolerance::reliable(UNITS), interleave: false, coding: AHEAD },
    Way { name: "tolerant", tolerance: TOLERANT, interleave: false, coding: Coding::Off },
    Way { name: "tolerant, interleaved", tolerance: TOLERANT, interleave: true, coding: Coding::Off },
];

impl Way {
    /// What the stream of slices promises. Slices are handed over as they are accepted: a viewer shows
    /// each at its own time and has no use for one that waits for another.
    pub(crate) fn contract(&self) -> Contract {
        Contract {
            unit_bytes: UNIT_BYTES,
            tolerance: self.tolerance,
            order: Order::AsAccepted,
            interleave: if self.interleave { InterleaveChoice::Auto } else { InterleaveChoice::Off },
            window_units: 16 * UNITS,
            window_segments: 16,
            label: "vorticity slices".into(),
            ..Contract::default()
        }
    }
}

/// From one slice's due time to the next: the slices take [`LOAD_PERCENT`] of the bandwidth as payload.
pub(crate) fn slice_period() -> Duration {
    let bits = u64::from(UNITS) * u64::from(UNIT_BYTES) * 8;
    Duration::from_nanos(bits * 1_000_000_000 / (BANDWIDTH.bits_per_second() * LOAD_PERCENT / 100))
}

/// The emulated path to `to`.
pub(crate) fn link(loss: &LossSpec, to: SocketAddr) -> LinkConfig {
    let path = |loss: LossSpec| PathConfig {
        bandwidth: Some(BANDWIDTH),
        queue: PathConfig::default_queue(BANDWIDTH, ONE_WAY * 2),
        delay: ONE_WAY,
        loss,
        loss_at: LossPlace::Before,
        ..PathConfig::default()
    };
    let mut config = LinkConfig::new(SocketAddr::new(to.ip(), 0), to);
    config.forward = path(loss.clone());
    config.back = path(loss.clone());
    config.lateness_limit = LATENESS_MAX;
    // Why: a hundred thousand packets hold a dozen bursts, so their number varies by a third from seed to
    // seed; this seed's realisation lies within a tenth of both nominal loss rates.
    config.seed = Seed(8);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_due_every_41_9_milliseconds() {
        assert_eq!(slice_period().as_micros(), 41_943);
    }

    #[test]
    fn every_contract_is_valid_and_every_loss_process_known() {
        assert!(WAYS.iter().all(|way| way.contract().validate().is_ok()));
        assert!(LOSSES.iter().all(|loss| loss.parse::<LossSpec>().is_ok()));
    }
}
