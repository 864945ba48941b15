//! The holes of a large segment, listed in turns: there may be hundreds of thousands of them, and other connections are served meanwhile.
//!
//! Owned by a segment whose verdict is certain, and which so takes no more units. Where units are interleaved, what is missing is first noted
//! by unit, and then read in order.
//!
//! Invariant: the list is complete when [`HoleList::go_on`] says so; each turn takes a bounded number of steps (spec 11.4).
//!
//! Limit: it takes a bit for each unit, if they are interleaved.

use crate::layout::Layout;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, Position, Run, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::work::{self, Loop};

/// The holes of a segment, as far as they are listed.
#[derive(Debug)]
pub(super) struct HoleList {
    verdict: Verdict,
    /// When the verdict was certain.
    judged_at: Instant,
    /// Missing units, of the positions before `noted`. Empty where units leave in order.
    missing: Bitmap<UnitIndex>,
    noted: Position,
    /// Holes of the units before `listed`.
    holes: Vec<Run<UnitIndex>>,
    listed: UnitIndex,
}

impl HoleList {
    /// Nothing is listed of a segment with this verdict.
    pub(super) fn new(verdict: Verdict, now: Instant) -> Self {
        Self { verdict, judged_at: now, missing: Bitmap::new(), noted: Position::FIRST, holes: Vec::new(), listed: UnitIndex::FIRST }
    }

    pub(super) const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// When the verdict was certain, and the holes in ascending order.
    pub(super) fn into_parts(self) -> (Instant, Vec<Run<UnitIndex>>) {
        (self.judged_at, self.holes)
    }

    /// The memory that it takes, in bytes.
    pub(super) fn heap_bytes(&self) -> u64 {
        (size_of::<Self>() + self.holes.capacity() * size_of::<Run<UnitIndex>>()) as u64 + self.missing.heap_bytes()
    }

    /// A turn: looks at `left` positions or units at most. Whether the list is complete, of a segment of `units` of which those at the
    /// positions `present` are here.
    pub(super) fn go_on(&mut self, layout: &Layout, present: &Bitmap<Position>, units: u32, left: &mut u32) -> bool {
        if layout.order.is_in_order() {
            let end = self.listed_after(units, left);
            let missing = present.zero_runs(Position(self.listed.0), Position(end.0)).map(|run| layout.units_in_order(run));
            append(&mut self.holes, missing);
            self.listed = end;
            return self.listed.0 == units;
        }
        self.missing.grow(units);
        let end = Position(units).min(self.noted.saturating_add(*left));
        *left -= end - self.noted;
        work::note(Loop::LostUnits, (end - self.noted) as usize);
        for run in present.zero_runs(self.noted, end) {
            layout.units_at(run.start(), run.len()).for_each(|unit| _ = self.missing.set(unit));
        }
        self.noted = end;
        if self.noted.0 < units {
            return false;
        }
        let end = self.listed_after(units, left);
        append(&mut self.holes, self.missing.one_runs(self.listed, end));
        self.listed = end;
        self.listed.0 == units
    }

    /// Up to where this turn lists.
    fn listed_after(&self, units: u32, left: &mut u32) -> UnitIndex {
        let end = UnitIndex(units).min(self.listed.saturating_add(*left));
        *left -= end - self.listed;
        work::note(Loop::LostUnits, (end - self.listed) as usize);
        end
    }
}

/// Adds runs that ascend; the first may go on where the list ends.
fn append(holes: &mut Vec<Run<UnitIndex>>, more: impl Iterator<Item = Run<UnitIndex>>) {
    for run in more {
        match holes.last_mut() {
            Some(last) if last.end() == run.start() => *last = last.span(run),
            _ => holes.push(run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::Tolerance;
    use segstream_wire::Contract;
    use segstream_wire::contract::InterleaveChoice;

    #[test]
    fn what_is_listed_in_turns_is_what_is_missing() {
        for (interleave, turn) in
            [InterleaveChoice::Off, InterleaveChoice::Auto, InterleaveChoice::Depth(30)].map(|of| [(of, 7), (of, 1000)]).as_flattened()
        {
            let contract =
                Contract { unit_bytes: 1, tolerance: Tolerance::new(100, 30, 5).unwrap(), interleave: *interleave, ..Contract::default() };
            let layout = Layout::new(&contract, contract.tolerance, false, Some(200));
            let mut present = Bitmap::new();
            present.reset(200);
            (0..200).filter(|at| at * at % 7 > 2 || at / 20 == 5).for_each(|at| _ = present.set(Position(at)));
            let mut list = HoleList::new(Verdict::Expired, Instant::ZERO);
            while !list.go_on(&layout, &present, 200, &mut turn.clone()) {}
            let mut missing: Vec<UnitIndex> =
                (0..200).filter(|&at| !present.get(Position(at))).flat_map(|at| layout.units_at(Position(at), 1)).collect();
            missing.sort_unstable();
            let (_, holes) = list.into_parts();
            assert_eq!(holes.iter().copied().flatten().collect::<Vec<_>>(), missing, "{interleave:?} in turns of {turn}");
            assert!(holes.windows(2).all(|pair| pair[0].end() < pair[1].start()));
        }
    }
}
