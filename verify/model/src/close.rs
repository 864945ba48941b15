//! Graceful close: every accepted segment gets a verdict, and both ends forget the connection.
//!
//! Explored by `tests/close.rs`. Each end submits a segment, if it has one, and closes, if it does, whenever it pleases.
//!
//! Invariant: whoever hears of a graceful end has heard a true verdict on everything it had accepted before; what is
//! whole to its sender has been taken by the receiver; and both ends forget the connection.

use crate::exploration::{Bounds, Instance, Sometimes};
use crate::world::{Side, World, small_config, small_contract};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, StreamId};
use segstream_proto::error::CloseReason;

/// What the application of an end does with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Whether it submits a segment first.
    pub sends: bool,
    /// Whether it closes.
    pub closes: bool,
}

/// A connection that one end closes, or both do.
#[derive(Clone, Copy, Debug)]
pub struct Close {
    /// What A and B do.
    pub endings: [Ending; 2],
    /// What the network may do.
    pub bounds: Bounds,
}

impl Instance for Close {
    const NAME: &'static str = "close";
    const SOMETIMES: &'static [Sometimes] = &[
        ("one end is over while the other is not", |world| {
            let [a, b] = Side::BOTH.map(|side| world.heard(side).ended.is_empty());
            a != b
        }),
        ("both ends are over", |world| Side::BOTH.iter().all(|&side| !world.heard(side).ended.is_empty())),
    ];

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn begin(&self) -> World {
        let mut world = World::new([small_config(false), small_config(true)], Duration::from_micros(300), vec![small_contract(2)]);
        world = world.connected(Duration::from_millis(2));
        if self.endings[1].sends {
            world.act(Side::B, |connection, now| connection.open_stream(now, small_contract(2)));
            world = world.connected(Duration::from_millis(2));
        }
        world
    }

    fn script(&self, side: Side) -> usize {
        let Ending { sends, closes } = self.endings[side as usize];
        usize::from(sends) + usize::from(closes)
    }

    fn act(&self, world: &mut World, side: Side, index: usize) -> bool {
        if self.endings[side as usize].sends && index == 0 {
            world.submit(side, StreamId(0), 2);
        } else {
            world.act(side, |connection, now| connection.close(now, 0, "done"));
        }
        true
    }

    fn fault(&self, world: &World) -> Option<String> {
        Side::BOTH.into_iter().find_map(|side| {
            let (heard, peer) = (world.heard(side), world.heard(side.other()));
            let reason = heard.ended.first()?;
            if !matches!(reason, CloseReason::ClosedHere | CloseReason::ClosedByPeer { .. }) || heard.ended.len() > 1 {
                return Some(format!("{side:?} hears of the end {:?}", heard.ended));
            }
            let true_verdicts = heard.judged.iter().filter(|judged| judged.2 != Verdict::Unknown).count();
            if true_verdicts != heard.accepted.len() {
                return Some(format!("{side:?} hears of a graceful end with verdicts {:?} on {:?}", heard.judged, heard.accepted));
            }
            let missed = heard.judged.iter().find(|judged| judged.2.is_met() && !peer.taken.contains(judged));
            missed.map(|judged| format!("the peer of {side:?} has never taken {judged:?}"))
        })
    }

    fn is_reached(&self, world: &World) -> bool {
        Side::BOTH.iter().all(|&side| world.kept(side) == 0 && world.heard(side).ended.len() == 1)
    }
}
