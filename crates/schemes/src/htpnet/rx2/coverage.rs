//! Which of the runs beyond CAACK a report lists.
//!
//! Called by Rx2. RANGE has room for four pairs or eight, and a receiver may hold more runs. HT does not say what then. A
//! report begins behind CAACK or where another stopped: see [`super::super::packet::ReceiverState`].
//!
//! Invariant: a report whose pairs are not all used tells of every run from where it begins, and every continuation tells of
//! at least one run that the report before it did not, if there is one.

use super::super::message::Status;
use super::super::packet::{Coverage, RangeList, ReceiverState};

/// Where a rotating report stopped: a number that the receiver had.
#[derive(Clone, Debug, Default)]
pub(super) struct Rotation {
    stopped: Option<u64>,
}

impl Rotation {
    /// Where the next report continues; `None`: after CAACK.
    pub(super) fn start(&self, status: &Status) -> Option<u64> {
        // Why the highest: where nothing follows, the turn is over.
        self.stopped.filter(|at| *at >= status.next && *at + 1 < status.next + u64::from(status.bitmap.len()))
    }

    /// A report was cut there, or was complete.
    pub(super) const fn stopped_at(&mut self, at: Option<u64>) {
        self.stopped = at;
    }
}

/// Fills RANGE of `state` from behind CAACK, or from the run that `position` lies in; in a `rotation` from behind it.
/// Returns the last number reported if there may be more.
pub(super) fn report(state: &mut ReceiverState, status: &Status, position: Option<u64>, rotation: bool) -> Option<u64> {
    state.coverage = match (position, rotation) {
        (None, _) => Coverage::Whole,
        (Some(_), false) => Coverage::Continued,
        (Some(_), true) => Coverage::Succeeding,
    };
    state.ranges = RangeList::new(state.ranges.room());
    let low = position.map_or(0, |at| (at - status.next) as u32 + u32::from(rotation));
    for run in status.bitmap.one_runs(0, status.bitmap.len()) {
        let (start, end) = (run.start(), run.end() - 1);
        if end < low {
            continue;
        }
        let wire = |index: u32| (status.next + u64::from(index)) as u16;
        state.ranges.push(wire(if rotation { start.max(low) } else { start }), wire(end));
        if state.ranges.is_full() {
            return Some(status.next + u64::from(end));
        }
    }
    None
}
