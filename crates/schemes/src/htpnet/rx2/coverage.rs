//! Which of the runs a receiver holds beyond CAACK a report tells.
//!
//! Called by Rx2. RANGE has room for four pairs or eight, and a receiver may hold more runs. HT does not say what then. A
//! report begins behind CAACK or where another stopped, whose last run it repeats: see [`super::super::packet::ReceiverState`].
//!
//! Invariant: a report whose pairs are not all used tells of every run from where it begins, and every continuation tells of
//! at least one run that the report before it did not, if there is one.

use super::super::message::Status;
use super::super::packet::{RangeList, ReceiverState};

/// Where a rotating report stopped: a number that the receiver had.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    stopped: Option<u64>,
}

impl Coverage {
    /// Where the next report goes on; `None` for behind CAACK.
    pub(super) fn start(&self, status: &Status) -> Option<u64> {
        self.stopped.filter(|at| *at >= status.next)
    }

    /// A report stopped there, or has told everything.
    pub(super) const fn stopped_at(&mut self, at: Option<u64>) {
        self.stopped = at;
    }
}

/// Fills RANGE of `state` from behind CAACK, or from the run that `position` lies in. Returns the last number told if there
/// may be more.
pub(super) fn report(state: &mut ReceiverState, status: &Status, position: Option<u64>) -> Option<u64> {
    state.continued = position.is_some();
    state.ranges = RangeList::new(state.ranges.room());
    let low = position.map_or(0, |at| (at - status.next) as u32);
    for (start, count) in status.bitmap.one_runs(0, status.bitmap.len()) {
        let end = start + count - 1;
        if end < low {
            continue;
        }
        let wire = |index: u32| (status.next + u64::from(index)) as u16;
        state.ranges.push(wire(start), wire(end));
        if state.ranges.is_full() {
            return Some(status.next + u64::from(end));
        }
    }
    None
}
