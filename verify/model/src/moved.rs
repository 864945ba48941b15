//! Moved addresses: a peer that moves is found again, and who sends its shipments on from elsewhere is not taken for it.
//!
//! Explored by `tests/moved.rs`. The applications submit segments and A moves, each whenever it pleases; a thief copies
//! datagrams of A and sends them to B from its own address.
//!
//! Invariant: nothing but challenges leaves for an address that has not answered one, and at most three times the bytes that
//! came from there (the ledger of each end sees that); in the end each end knows where the other is, and every segment is
//! taken and judged whole.
//!
//! Limit: that is so where what A sends itself is, now and then, the first to arrive. A thief whose copies always come first
//! is taken for the peer (RFC 9000 9.3.3); a test shows it.

use crate::exploration::{Bounds, Instance, Sight};
use crate::world::{Side, Thief, World, small_config, small_contract};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant, StreamId};
use segstream_proto::config::Config;
use segstream_wire::Limits;

/// What the application of an end does, or its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A segment of one unit is submitted.
    Submits,
    /// The end is at this host from now on; A begins at 1, B at 2.
    MovesTo(u8),
}

/// A connection whose ends may move.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// What A and B do, in order.
    pub deeds: [&'static [Deed]; 2],
    /// What the thief does besides copying.
    pub thief: Thief,
    /// Whether the connection has keys. In plain mode nobody is followed.
    pub keyed: bool,
    /// What the network may do.
    pub bounds: Bounds,
}

/// Short, so that an end that has nothing to say is heard of soon: after a quarter of it.
const IDLE: Duration = Duration::from_secs(2);
const LATENCY: Duration = Duration::from_micros(300);

impl Moved {
    /// When the ends have heard of each other often enough since the last fault.
    fn end(&self) -> Instant {
        Instant::ZERO + self.bounds.horizon + IDLE * 2
    }

    fn submits(&self, side: Side) -> usize {
        self.deeds[side as usize].iter().filter(|deed| **deed == Deed::Submits).count()
    }
}

/// Whether an end knows where the other is.
fn knows(world: &World, side: Side) -> bool {
    world.connection(side).is_some_and(|connection| connection.remote() == world.address(side.other()))
}

impl Instance for Moved {
    const NAME: &'static str = "moved";
    const SIGHTS: &'static [Sight] = &[
        ("a challenge leaves for an address that has not answered", |world| {
            world.ledger(Side::B).accounts.values().any(|account| account.left_bytes > 0 && !account.answered)
        }),
        ("B follows A", |world| {
            let moves = world.connection(Side::B).map_or(0, |connection| connection.counters.migrations);
            moves > 0 && knows(world, Side::B)
        }),
        ("B takes the thief's address", |world| world.is_at_the_thief(Side::B)),
    ];

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn begin(&self) -> World {
        let limits = Limits { idle_timeout: IDLE, ..Limits::default() };
        let configs = [false, true].map(|accept| Config { limits, ..small_config(accept) });
        let begin = if self.keyed { World::keyed } else { World::new };
        let mut world = begin(configs, LATENCY, vec![small_contract(2)]).connected(Duration::from_millis(2));
        if self.submits(Side::B) > 0 {
            world.act(Side::B, |connection, now| connection.open_stream(now, small_contract(2)));
            world = world.connected(Duration::from_millis(2));
        }
        world.with_thief(self.thief)
    }

    fn script(&self, side: Side) -> usize {
        self.deeds[side as usize].len()
    }

    fn act(&self, world: &mut World, side: Side, index: usize) -> bool {
        match self.deeds[side as usize][index] {
            Deed::Submits => world.submit(side, StreamId(0), 1),
            Deed::MovesTo(host) => world.move_to(side, host),
        }
        true
    }

    fn fault(&self, world: &World) -> Option<String> {
        world.early_end()
    }

    fn is_reached(&self, world: &World) -> bool {
        let well = |side| {
            let (judged, taken) = (&world.heard(side).judged, &world.heard(side.other()).taken);
            let whole = judged.iter().chain(taken).all(|verdict| verdict.2 == Verdict::Complete);
            whole && [judged.len(), taken.len()] == [self.submits(side); 2] && knows(world, side)
        };
        // Why also later: what a thief has begun must not come to pass after all.
        world.now() >= self.end() && world.held().next().is_none() && Side::BOTH.into_iter().all(well)
    }
}
