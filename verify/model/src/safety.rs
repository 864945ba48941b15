//! Safety properties: what must hold in every state of every instance, whatever the applications do.
//!
//! Called by the exploration.
//!
//! Invariant: a verdict is given once at each end, both ends say the same, edges and echoes do not contradict those before
//! them, work stays within what bytes are worth, and nothing but challenges leaves for an address that has not answered one,
//! and of those not too much.

use crate::world::{Side, World};
use segstream_base::halves::Verdict;
use segstream_base::{SegmentNumber, StreamId};

/// What is wrong in this state, if anything is.
pub fn fault(world: &World) -> Option<String> {
    if world.stands_still() {
        return Some(format!("time stands still at {}", world.now()));
    }
    if let Some(fault) = &world.cost.fault {
        return Some(fault.clone());
    }
    Side::BOTH.into_iter().find_map(|side| of_side(world, side))
}

fn of_side(world: &World, side: Side) -> Option<String> {
    let (heard, peer) = (world.heard(side), world.heard(side.other()));
    if heard.connected > 1 {
        return Some(format!("{side:?} is connected {} times by one request", heard.connected));
    }
    if let Some(contradiction) = &world.said(side).contradiction {
        return Some(format!("{side:?} contradicts itself: {contradiction}"));
    }
    if let Some(fault) = &world.anti_amplification(side).fault {
        return Some(format!("of what {side:?} sends: {fault}"));
    }
    if heard.mangled {
        return Some(format!("{side:?} has taken what was not sent"));
    }
    if let Some(twice) = twice(&heard.judged).or_else(|| twice(&heard.taken)) {
        return Some(format!("{side:?} hears of segment {} of stream {} twice", twice.1, twice.0));
    }
    for &(stream, segment, verdict) in heard.judged.iter().filter(|judged| judged.2 != Verdict::Unknown) {
        if !heard.accepted.contains(&(stream, segment)) {
            return Some(format!("{side:?} hears a verdict on segment {segment} of stream {stream}, which it never sent"));
        }
        let taken = peer.taken.iter().find(|taken| (taken.0, taken.1) == (stream, segment));
        if let Some(taken) = taken.filter(|taken| taken.2 != verdict) {
            return Some(format!("segment {segment} of stream {stream} is {verdict} to {side:?} and {} to its peer", taken.2));
        }
    }
    None
}

fn twice(verdicts: &[(StreamId, SegmentNumber, Verdict)]) -> Option<(StreamId, SegmentNumber)> {
    let name = |verdict: &(StreamId, SegmentNumber, Verdict)| (verdict.0, verdict.1);
    let again = verdicts.iter().enumerate().find(|(at, verdict)| verdicts[..*at].iter().any(|before| name(before) == name(verdict)));
    again.map(|(_, verdict)| name(verdict))
}
