//! Repair units: a code of two units and one repair unit, in every order of events.
//!
//! Explored by `tests/coded.rs`. A segment of two units, each in a shipment of its own, and a repair unit that is coded ahead. So that there
//! is one, a shipment was lost before: only then the sender knows of losses.
//!
//! Invariant: as long as two of the three shipments can still arrive in time, nothing of the segment is sent again and no further repair unit leaves;
//! a unit counts once, whether it arrived or was restored; and in the end both ends say that the segment is complete.

use crate::exploration::{Bounds, Instance, Sometimes};
use crate::world::{Side, World, small_config, small_contract};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, StreamId};
use segstream_proto::coding_choice::Coding;
use segstream_proto::config::Config;
use segstream_proto::sender::CodingTarget;
use segstream_wire::{Contract, Kind};

/// Two of them do not fit a datagram.
const UNIT_BYTES: usize = 700;
/// One repair unit for two units, where a round of retransmission, which takes 12 ms at least, would miss the latency.
const TARGET: CodingTarget = CodingTarget { latency: Duration::from_millis(1), budget_permille: 500 };

/// A segment with a repair unit.
#[derive(Clone, Copy, Debug)]
pub struct Coded {
    /// What the network may do.
    pub bounds: Bounds,
    /// How many units and repair units A had sent because they were asked for, before the segment.
    pub asked_before: u64,
    /// How many may have been lost or held, and more is sent all the same: 1. Another number, to see the claim fail.
    pub spared: u32,
}

impl Coded {
    /// The claim.
    pub fn new(bounds: Bounds) -> Self {
        let claim = Self { bounds, asked_before: 0, spared: 1 };
        Self { asked_before: asked(&claim.begin()), ..claim }
    }
}

/// Units and repair units that A has sent because they were asked for.
fn asked(world: &World) -> u64 {
    world.connection(Side::A).map_or(0, |connection| {
        let sent = connection.sender_counters();
        sent.units_retransmitted + sent.repair_units_sent - sent.repair_units_ahead
    })
}

/// Units that B counts, and those of them that were restored.
fn counted(world: &World) -> (u64, u64) {
    world.connection(Side::B).map_or((0, 0), |connection| {
        let received = connection.receiver_counters();
        (received.units_received + received.units_restored, received.units_restored)
    })
}

fn complete(world: &World) -> usize {
    world.heard(Side::B).taken.iter().filter(|taken| taken.2 == Verdict::Complete).count()
}

impl Instance for Coded {
    const NAME: &'static str = "coded";
    const SOMETIMES: &'static [Sometimes] = &[
        ("a repair unit is not needed", |world| complete(world) == 2 && world.missed() == 0),
        ("a unit is lost, and the segment is complete before anything is asked for", |world| {
            complete(world) == 2 && world.missed() == 1 && counted(world).1 > 0
        }),
        ("more is lost than the code restores", |world| world.missed() == 2 && complete(world) == 1),
    ];

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// A segment of one unit is lost and repaired; then all is quiet.
    fn begin(&self) -> World {
        let coded = Config { coding: Coding::Auto(TARGET), ..small_config(false) };
        let contract = Contract { unit_bytes: UNIT_BYTES as u32, ..small_contract(8) };
        let world = World::new([coded, small_config(true)], Duration::from_micros(100), vec![contract]);
        let mut world = world.connected(Duration::from_millis(2));
        world.submit(Side::A, StreamId(0), UNIT_BYTES);
        let mut is_lost = false;
        while world.heard(Side::A).judged.is_empty() {
            if !world.has_arrival() {
                world.wait();
            } else if !is_lost && world.arrival_kind() == Some(Kind::Data) {
                world.lose();
                is_lost = true;
            } else {
                world.deliver();
            }
        }
        world.counting_missed()
    }

    fn script(&self, side: Side) -> usize {
        usize::from(side == Side::A)
    }

    fn act(&self, world: &mut World, side: Side, _index: usize) -> bool {
        world.submit(side, StreamId(0), 2 * UNIT_BYTES);
        true
    }

    fn fault(&self, world: &World) -> Option<String> {
        let sent = asked(world) - self.asked_before;
        if sent > 0 && world.missed() <= self.spared {
            return Some(format!("A has sent {sent} more, and {} of three were lost or late", world.missed()));
        }
        let submitted = world.heard(Side::A).accepted.len() as u64;
        let (units, restored) = counted(world);
        // One unit of the first segment, two of the second.
        if units > 2 * submitted - submitted.min(1) {
            return Some(format!("B counts {units} units, {restored} of them restored, of {submitted} segments"));
        }
        world.early_end()
    }

    fn is_reached(&self, world: &World) -> bool {
        let judged = &world.heard(Side::A).judged;
        judged.len() == 2 && judged.iter().all(|judged| judged.2 == Verdict::Complete) && complete(world) == 2 && counted(world).0 == 3
    }
}
