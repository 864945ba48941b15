//! Windows: a receiver that takes its time never makes its sender wait forever, and is never overrun.
//!
//! Explored by `tests/window.rs`. A submits more segments than the window holds, B takes each whenever it pleases.
//!
//! Invariant: the edges B grants never retreat (the tap sees that) and are never beyond what has been taken and the buffer;
//! B refuses nothing; and in the end everything is taken and judged whole.

use crate::exploration::{Bounds, Instance, Sometimes};
use crate::world::{Forger, Side, World, small_config, small_contract};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, SegmentNumber, StreamId};

/// The window, in segments.
const WINDOW: u32 = 2;

/// A stream whose receiver takes its time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// How many segments of one unit A submits, at once; at most twice the window.
    pub segments: usize,
    /// What the network may do.
    pub bounds: Bounds,
    /// A network that changes what it carries, to see the claim fail.
    pub forger: Option<Forger>,
}

impl Instance for Window {
    const NAME: &'static str = "window";
    const SOMETIMES: &'static [Sometimes] = &[
        ("the window is closed while segments wait", |world| {
            let unjudged = world.connection(Side::A).is_some_and(|connection| connection.has_unjudged());
            unjudged && world.heard(Side::A).judged.len() == WINDOW as usize && world.heard(Side::B).taken.is_empty()
        }),
        ("everything is taken", |world| world.heard(Side::B).taken.len() == world.heard(Side::A).accepted.len()),
    ];

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn begin(&self) -> World {
        let world = World::new([small_config(false), small_config(true)], Duration::from_micros(100), vec![small_contract(WINDOW)]);
        let mut world = world.connected(Duration::from_millis(2)).slow_readers().forging(self.forger);
        (0..self.segments).for_each(|_| world.submit(Side::A, StreamId(0), 1));
        world
    }

    fn script(&self, side: Side) -> usize {
        if side == Side::B { self.segments } else { 0 }
    }

    fn act(&self, world: &mut World, side: Side, _index: usize) -> bool {
        world.read(side, StreamId(0))
    }

    fn fault(&self, world: &World) -> Option<String> {
        let taken = world.heard(Side::B).taken.len() as u64;
        let most = taken + u64::from(WINDOW);
        let granted = world.said(Side::B).grants.get(&StreamId(0)).copied().unwrap_or_default();
        if granted.segments > most || granted.units > most {
            return Some(format!("B grants {granted:?} with {taken} segments taken and room for {WINDOW}"));
        }
        let refused = world.connection(Side::B).map_or(0, |connection| connection.receiver_counters().parts_refused);
        (refused > 0).then(|| format!("B is overrun: it has refused {refused} parts"))
    }

    fn is_reached(&self, world: &World) -> bool {
        let whole = |verdicts: &[(StreamId, SegmentNumber, Verdict)]| {
            verdicts.len() == self.segments && verdicts.iter().all(|verdict| verdict.2 == Verdict::Complete)
        };
        whole(&world.heard(Side::A).judged) && whole(&world.heard(Side::B).taken)
    }
}
