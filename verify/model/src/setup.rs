//! Set-up: one request makes one connection or none, and no state is kept for a peer that never returns.
//!
//! Explored by `tests/setup.rs`. Only what an application sees of an endpoint is looked at, so it does not matter of
//! which legs set-up consists.
//!
//! Invariant: in every state B has at most one connection; from every state both ends are connected in the end, or
//! neither is; and when A is gone for good, B forgets it.

use crate::exploration::{Bounds, Instance, Sometimes};
use crate::world::{Side, World};
use segstream_base::{Duration, Instant, StreamId};
use segstream_proto::config::Config;
use segstream_wire::{Contract, Limits};

/// A request, and a segment that waits for the connection.
#[derive(Clone, Copy, Debug)]
pub struct SetUp {
    /// How long A tries, and B waits for it.
    pub connect_timeout: Duration,
    /// What the application of A does besides asking.
    pub then: Then,
    /// What the network may do.
    pub bounds: Bounds,
}

/// What comes after the request, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    Nothing,
    /// A segment is submitted.
    Data,
    /// A is gone for good, without a word.
    Gone,
}

const IDLE: Duration = Duration::from_secs(2);

impl SetUp {
    fn config(&self) -> Config {
        let limits = Limits { idle_timeout: IDLE, ..Limits::default() };
        Config { limits, connect_timeout: self.connect_timeout, accept: true, pacing_quantum: Duration::ZERO, ..Config::default() }
    }

    /// When everything that can happen to set-up has happened: both ends have given up or lost patience.
    fn end(&self) -> Instant {
        Instant::ZERO + self.bounds.horizon + self.connect_timeout * 2 + IDLE * 2
    }
}

fn is_connected(world: &World, side: Side) -> bool {
    world.connection(side).is_some_and(|connection| connection.is_established())
}

impl Instance for SetUp {
    const NAME: &'static str = "set-up";
    const SOMETIMES: &'static [Sometimes] = &[
        ("both ends are connected", |world| Side::BOTH.iter().all(|&side| is_connected(world, side))),
        ("one end is connected and the other is not yet", |world| is_connected(world, Side::A) && !is_connected(world, Side::B)),
    ];

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn begin(&self) -> World {
        let configs = [Config { accept: false, ..self.config() }, self.config()];
        let contract = Contract { unit_bytes: 16, window_units: 4, window_segments: 4, ..Contract::default() };
        World::new(configs, Duration::from_millis(10), vec![contract])
    }

    fn script(&self, side: Side) -> usize {
        usize::from(self.then != Then::Nothing && side == Side::A)
    }

    fn act(&self, world: &mut World, side: Side, _index: usize) -> bool {
        match self.then {
            Then::Nothing => {}
            Then::Data => world.submit(side, StreamId(0), 16),
            Then::Gone => world.vanish(side),
        }
        true
    }

    fn fault(&self, world: &World) -> Option<String> {
        let kept = world.kept(Side::B);
        if kept > 1 {
            return Some(format!("B keeps {kept} connections for one request"));
        }
        (world.kept(Side::A) > 1).then(|| "A keeps more connections than it has asked for".to_owned())
    }

    fn is_reached(&self, world: &World) -> bool {
        if self.then == Then::Gone {
            return world.kept(Side::B) == 0;
        }
        let [a, b] = Side::BOTH.map(|side| is_connected(world, side));
        let kept = Side::BOTH.map(|side| world.kept(side));
        let both = a && b && kept == [1, 1];
        let neither = !a && !b && kept == [0, 0];
        let heard = world.heard(Side::A);
        let for_good = world.next_event().is_none() || world.now() >= self.end();
        (both || neither) && heard.judged.len() == heard.accepted.len() && for_good
    }
}
