//! Connection migration: a peer whose address changes is followed, and an attacker who forwards its shipments from another address
//! is not taken for it.
//!
//! Explored by `tests/exploration/migration.rs`. The applications submit segments and A moves, each whenever it pleases; an attacker copies
//! datagrams of A and sends them to B from its own address.
//!
//! Invariant: nothing but challenges leaves for an address that has not answered one, and at most three times the bytes that
//! came from there ([`crate::anti_amplification`] checks that); in the end each end knows where the other is, and every segment is
//! taken and judged whole.
//!
//! Limit: that is so where what A sends itself is, now and then, the first to arrive. An attacker whose copies always come first
//! is taken for the peer (RFC 9000 9.3.3); a test shows it.

use crate::exploration::{Bounds, Instance, Sometimes};
use crate::world::{Attacker, Side, World, small_config, small_contract};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant, StreamId};
use segstream_proto::config::Config;
use segstream_wire::Limits;

/// What the application of an end does, or its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A segment of one unit is submitted.
    Submits,
    /// The end is at this host from now on; A begins at 1, B at 2.
    MovesTo(u8),
}

/// A connection whose ends may move.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// What A and B do, in order.
    pub actions: [&'static [Action]; 2],
    /// What the attacker does besides copying.
    pub attacker: Attacker,
    /// Whether the connection has keys. In plain mode nobody is followed.
    pub keyed: bool,
    /// What the network may do.
    pub bounds: Bounds,
}

/// Short, so that an end that has nothing to say is heard of soon: after a quarter of it.
const IDLE: Duration = Duration::from_secs(2);
const LATENCY: Duration = Duration::from_micros(300);

impl Migration {
    /// When the ends have heard of each other often enough since the last fault.
    fn end(&self) -> Instant {
        Instant::ZERO + self.bounds.horizon + IDLE * 2
    }

    fn submits(&self, side: Side) -> usize {
        self.actions[side as usize].iter().filter(|action| **action == Action::Submits).count()
    }
}

/// Whether an end knows where the other is.
fn knows(world: &World, side: Side) -> bool {
    world.connection(side).is_some_and(|connection| connection.remote() == world.address(side.other()))
}

impl Instance for Migration {
    const NAME: &'static str = "moved";
    const SOMETIMES: &'static [Sometimes] = &[
        ("a challenge leaves for an address that has not answered", |world| {
            world.anti_amplification(Side::B).accounts.values().any(|account| account.left_bytes > 0 && !account.answered)
        }),
        ("B follows A", |world| {
            let moves = world.connection(Side::B).map_or(0, |connection| connection.counters.migrations);
            moves > 0 && knows(world, Side::B)
        }),
        ("B takes the attacker's address", |world| world.is_at_the_attacker(Side::B)),
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
        world.with_attacker(self.attacker)
    }

    fn script(&self, side: Side) -> usize {
        self.actions[side as usize].len()
    }

    fn act(&self, world: &mut World, side: Side, index: usize) -> bool {
        match self.actions[side as usize][index] {
            Action::Submits => world.submit(side, StreamId(0), 1),
            Action::MovesTo(host) => world.move_to(side, host),
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
        // Why also later: what an attacker has begun must not come to pass after all.
        world.now() >= self.end() && world.held().next().is_none() && Side::BOTH.into_iter().all(well)
    }
}
