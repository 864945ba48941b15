//! Renegotiation: regardless of what happens to control, both ends are in the same class in the end, and in none that was not agreed.
//!
//! Explored by `tests/exploration/class_change.rs`. A asks for one class after the other, and for another rate, while it sends; what B echoes
//! is the class in force at B.
//!
//! Invariant: no end is ever in a class that A has not asked for or B does not allow; in the end both are in the same, and
//! it is the last one asked for.

use crate::exploration::{Bounds, Instance, Sometimes};
use crate::world::{Side, World, small_config, small_contract};
use segstream_base::halves::Verdict;
use segstream_base::{Bandwidth, Duration, StreamId};
use segstream_proto::config::Config;
use segstream_proto::rate::Rate;
use segstream_wire::Class;

/// A step of A's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Asks for the class of this number.
    Class(u8),
    /// Sets a fixed rate.
    Rate(Bandwidth),
    /// Submits a segment.
    Send,
}

/// A connection whose class changes while data flows.
#[derive(Clone, Copy, Debug)]
pub struct ClassChange {
    /// What A proposes at set-up.
    pub class: u8,
    /// The most B allows.
    pub class_max: u8,
    /// What A does, each at any time. B must allow the last class that is asked for.
    pub changes: &'static [Change],
    /// What the network may do.
    pub bounds: Bounds,
}

impl ClassChange {
    fn config(number: u8, accept: bool) -> Config {
        Config { class: Class::new(number).unwrap_or_default(), ..small_config(accept) }
    }

    /// The class of set-up.
    fn agreed(&self) -> u8 {
        self.class & self.class_max
    }

    fn asked(&self) -> impl Iterator<Item = u8> {
        self.changes.iter().filter_map(|change| if let Change::Class(number) = change { Some(*number) } else { None })
    }

    /// The class in force at B: the newest it has echoed.
    fn of_b(&self, world: &World) -> u8 {
        world.said(Side::B).echoed.map_or(self.agreed(), |(_, class)| class.number())
    }

    fn is_allowed(&self, number: u8) -> bool {
        number & !self.class_max == 0
    }
}

fn of_a(world: &World) -> Option<u8> {
    world.connection(Side::A).map(|connection| connection.class().number())
}

impl Instance for ClassChange {
    const NAME: &'static str = "reclass";
    const SOMETIMES: &'static [Sometimes] = &[
        ("the ends are in different classes", |world| {
            world.said(Side::B).echoed.is_some_and(|(_, class)| of_a(world).is_some_and(|number| number != class.number()))
        }),
        ("a change is heard of", |world| !world.heard(Side::A).reclassed.is_empty()),
    ];

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn begin(&self) -> World {
        let configs = [Self::config(self.class, false), Self::config(self.class_max, true)];
        World::new(configs, Duration::from_micros(300), vec![small_contract(4)]).connected(Duration::from_millis(2))
    }

    fn script(&self, side: Side) -> usize {
        if side == Side::A { self.changes.len() } else { 0 }
    }

    fn act(&self, world: &mut World, side: Side, index: usize) -> bool {
        match self.changes[index] {
            Change::Send => world.submit(side, StreamId(0), 2),
            Change::Rate(rate) => {
                world.act(side, |connection, now| connection.set_rate(now, Rate::smooth(rate)).is_ok());
            }
            Change::Class(number) => {
                let class = Class::new(number).unwrap_or_default();
                world.act(side, |connection, now| connection.set_class(now, class).is_ok());
            }
        }
        true
    }

    fn fault(&self, world: &World) -> Option<String> {
        let known = |number: u8| number == self.agreed() || self.asked().any(|asked| asked == number) && self.is_allowed(number);
        let classes = [(Side::A, of_a(world)), (Side::B, Some(self.of_b(world)))];
        let strange = classes.into_iter().find(|(_, class)| class.is_some_and(|number| !known(number)));
        strange.map(|(side, class)| format!("{side:?} is in class {class:?}, which was never agreed"))
    }

    fn is_reached(&self, world: &World) -> bool {
        let Some(connection) = world.connection(Side::A) else { return false };
        let class = connection.class();
        let last = self.asked().last().unwrap_or(self.agreed());
        let same = class == connection.class_to_come() && class.number() == self.of_b(world) && class.number() == last;
        let (sent, judged) = (&world.heard(Side::A).accepted, &world.heard(Side::A).judged);
        same && judged.len() == sent.len() && judged.iter().all(|judged| judged.2 != Verdict::Unknown)
    }
}
