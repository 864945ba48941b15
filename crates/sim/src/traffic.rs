//! The traffic counters of a run.
//!
//! Returned by [`crate::Simulation::traffic`].
//!
//! Invariant: every packet is in one place. In each direction
//! `data_packets + control_packets + path.duplicated` is the sum of `arrived`, `in_flight`, `discarded`, `dropped_shared`,
//! `path.lost` and what the path dropped.

use segstream_path::PathCounters;

/// The traffic of both directions so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// From sender to receiver.
    pub forward: DirectionTraffic,
    /// From receiver to sender.
    pub back: DirectionTraffic,
}

impl Traffic {
    /// The packets the receiver has sent, of whatever kind.
    pub const fn feedback_packets(&self) -> u64 {
        self.back.packets()
    }
}

/// The traffic of one direction so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DirectionTraffic {
    /// Packets with units that were sent.
    pub data_packets: u64,
    /// Their bytes, headers included.
    pub data_bytes: u64,
    /// Packets without units that were sent, in band and out of band.
    pub control_packets: u64,
    /// Their bytes, headers included.
    pub control_bytes: u64,
    /// Packets that were handed to the half, or wait for its processor, copies counted.
    pub arrived: u64,
    /// Those of them with units.
    pub data_arrived: u64,
    /// Packets with a flipped bit, copies counted: a checksum finds each of them, and no half sees one.
    pub discarded: u64,
    /// Packets that are in flight now, copies counted.
    pub in_flight: u64,
    /// Packets that the link in front of the path dropped, which others share ([`crate::shared`]).
    pub dropped_shared: u64,
    /// What the path did. Packets out of band never met it.
    pub path: PathCounters,
}

impl DirectionTraffic {
    /// The packets that were sent.
    pub const fn packets(&self) -> u64 {
        self.data_packets + self.control_packets
    }

    /// The packets and copies that are accounted for; the invariant of the module says how many they must be.
    pub const fn accounted(&self) -> u64 {
        let dropped = self.path.dropped_queue + self.path.dropped_aqm + self.path.dropped_policer;
        self.arrived + self.in_flight + self.discarded + self.dropped_shared + self.path.lost + dropped
    }
}
