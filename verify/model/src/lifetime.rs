//! Lifetimes: an expired segment has the same verdict at both ends, once.
//!
//! Explored by `tests/lifetime.rs`. Segments of two units are worth sending for little more than a round trip, so that one
//! loss is repaired in time or not, as the reports come.
//!
//! Invariant: both ends say the same of every segment and say it once (the exploration sees that); in the end each has
//! said something of every segment.

use crate::exploration::{Bounds, Instance, Sometimes};
use crate::world::{Side, World, small_config, small_contract};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, StreamId};
use segstream_wire::Contract;

/// A stream whose segments grow old.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// How many segments A submits, each at any time.
    pub segments: usize,
    /// How long a segment is worth sending.
    pub lifetime: Duration,
    /// What the network may do.
    pub bounds: Bounds,
}

impl Instance for Lifetime {
    const NAME: &'static str = "lifetime";
    const SOMETIMES: &'static [Sometimes] = &[
        ("a segment expires", |world| world.heard(Side::A).judged.iter().any(|judged| judged.2 == Verdict::Expired)),
        ("a segment arrives whole", |world| world.heard(Side::A).judged.iter().any(|judged| judged.2 == Verdict::Complete)),
        ("a segment is given up and arrives whole all the same", |world| {
            let given_up = world.connection(Side::A).is_some_and(|connection| connection.sender_counters().segments_skipped > 0);
            given_up && world.heard(Side::B).taken.iter().any(|taken| taken.2 == Verdict::Complete)
        }),
    ];

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn begin(&self) -> World {
        let contract = Contract { lifetime: self.lifetime.into(), ..small_contract(4) };
        let world = World::new([small_config(false), small_config(true)], Duration::from_micros(300), vec![contract]);
        world.connected(Duration::from_millis(2))
    }

    fn script(&self, side: Side) -> usize {
        if side == Side::A { self.segments } else { 0 }
    }

    fn act(&self, world: &mut World, side: Side, _index: usize) -> bool {
        world.submit(side, StreamId(0), 2);
        true
    }

    fn fault(&self, world: &World) -> Option<String> {
        world.early_end()
    }

    fn is_reached(&self, world: &World) -> bool {
        world.heard(Side::A).judged.len() == self.segments && world.heard(Side::B).taken.len() == self.segments
    }
}
