//! The partial check of a segment: whether it is accepted, and what of it is requested again.
//!
//! Called by the receiver when a segment may be complete, when a gap shows that something of it was
//! lost, and before every request. Source: EC 4.2, "Checking Application Tolerance", steps 1 to 3.
//!
//! The paper marks a tolerated loss as *present*. The next check no longer sees it and forgives E more,
//! so a segment that needs several rounds can end with more holes than promised. Hence three ways:
//!
//! - [`Accounting::StrictAll`], the default: a tolerated hole stays counted, and after a violation
//!   everything missing is requested. That costs a few units and saves rounds, which is the paper's own
//!   goal (EC 3.3: fewest rounds, then fewest packets).
//! - [`Accounting::StrictBurst`]: a tolerated hole stays counted; only the burst that violates is asked
//!   for, from its first violating unit on.
//! - [`Accounting::PaperLiteral`]: as written. For the paper's figures only.
//!
//! Invariant: in the strict ways `present` is never changed, and a segment is accepted only when
//! [`Tolerance::allows`] all that it lacks.

use crate::bitmap::Bitmap;
use core::fmt;
use core::str::FromStr;
use segstream_base::UnitIndex;
use segstream_base::tolerance::{HoleCount, Tolerance};

/// How tolerated holes are counted, and what is requested after a violation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Accounting {
    /// Tolerated holes stay counted; a violation asks for everything missing.
    #[default]
    StrictAll,
    /// Tolerated holes stay counted; a violation asks for the rest of its burst.
    StrictBurst,
    /// Tolerated holes become present; a violation asks for the rest of its burst.
    PaperLiteral,
}

impl Accounting {
    /// Every way, the default first.
    pub const ALL: [Self; 3] = [Self::StrictAll, Self::StrictBurst, Self::PaperLiteral];

    /// The name: `strict-all`, `strict-burst` or `paper-literal`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StrictAll => "strict-all",
            Self::StrictBurst => "strict-burst",
            Self::PaperLiteral => "paper-literal",
        }
    }
}

impl fmt::Display for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not the name of an [`Accounting`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownAccounting(
    /// The text, as given.
    pub String,
);

impl fmt::Display for UnknownAccounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an accounting; write strict-all, strict-burst or paper-literal", self.0)
    }
}

impl core::error::Error for UnknownAccounting {}

impl FromStr for Accounting {
    type Err = UnknownAccounting;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|accounting| accounting.name() == text).ok_or_else(|| UnknownAccounting(text.to_owned()))
    }
}

/// Checks segments in one of the three ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checker {
    accounting: Accounting,
}

impl Checker {
    /// A checker that counts in this way.
    pub const fn new(accounting: Accounting) -> Self {
        Self { accounting }
    }

    /// The way it counts.
    pub const fn accounting(&self) -> Accounting {
        self.accounting
    }

    /// Checks a segment of `units`, of which `present` has arrived and the first `important` must.
    /// A caller that may not yet count a unit as missing checks later, or checks a shorter segment.
    ///
    /// Returns whether the segment is accepted. Then `request` is all zero and `tolerated` holds the
    /// holes; otherwise `request` holds the units to ask for (never none) and `tolerated` what need not be
    /// asked for. Both get the length `units`, and so does a `present` that is shorter. Nothing allocates
    /// once the bitmaps have reached their size.
    ///
    /// [`Accounting::PaperLiteral`] also sets the tolerated bits of `present` and keeps those of
    /// `tolerated`, which are the true holes as far as they have not arrived later.
    pub fn check(
        &self,
        tolerance: Tolerance,
        important: u32,
        present: &mut Bitmap,
        tolerated: &mut Bitmap,
        units: u32,
        request: &mut Bitmap,
    ) -> bool {
        present.grow(units);
        request.reset(units);
        match self.accounting {
            Accounting::StrictAll => strict_all(tolerance, important, present, tolerated, units, request),
            Accounting::StrictBurst => {
                tolerated.reset(units);
                by_burst(tolerance, important, present, units, tolerated, request);
            }
            Accounting::PaperLiteral => {
                tolerated.grow(units);
                by_burst(tolerance, important, present, units, tolerated, request);
                for run in tolerated.one_runs(0, units) {
                    present.set_range(run.start(), run.len());
                }
            }
        }
        request.count_ones() == 0
    }
}

/// All or nothing: either the tolerance allows what is missing, or all of it is requested.
fn strict_all(tolerance: Tolerance, important: u32, present: &Bitmap, tolerated: &mut Bitmap, units: u32, request: &mut Bitmap) {
    tolerated.reset(units);
    // Why: most checks of a damaged segment end here, before any unit is looked at one by one.
    let missing = units - present.count_ones_in(0, units);
    let allowed =
        missing <= tolerance.most_holes(units) && tolerance.allows(present.zero_runs(0, units).flatten().map(UnitIndex), important);
    let holes = if allowed { tolerated } else { request };
    for run in present.zero_runs(0, units) {
        holes.set_range(run.start(), run.len());
    }
}

/// The paper's pass, units in order: what violates is requested with the rest of its burst, what does not
/// is tolerated. A unit that is requested counts neither to the total nor to a run, as it will come.
fn by_burst(tolerance: Tolerance, important: u32, present: &Bitmap, units: u32, tolerated: &mut Bitmap, request: &mut Bitmap) {
    let mut count = HoleCount::default();
    for run in present.zero_runs(0, units) {
        let (start, end) = (run.start(), run.end());
        let must = important.clamp(start, end);
        let first_refused = if start < must {
            // An important unit violates, and with it the rest of the burst, as with any other violation.
            start
        } else if tolerance.is_any() {
            end
        } else {
            run.iter().find(|unit| !count.admits(tolerance, UnitIndex(*unit))).unwrap_or(end)
        };
        tolerated.set_range(start, first_refused - start);
        request.set_range(first_refused, end - first_refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STRICT: [Accounting; 2] = [Accounting::StrictAll, Accounting::StrictBurst];

    /// A segment under check, as a receiver holds it.
    struct Held {
        present: Bitmap,
        tolerated: Bitmap,
        request: Bitmap,
    }

    impl Held {
        fn without(units: u32, missing: &[u32]) -> Self {
            let mut held = Self { present: Bitmap::new(), tolerated: Bitmap::new(), request: Bitmap::new() };
            held.present.reset(units);
            held.present.set_range(0, units);
            for unit in missing {
                held.present.clear(*unit);
            }
            held
        }

        fn check(&mut self, accounting: Accounting, tolerance: Tolerance, important: u32) -> bool {
            let units = self.present.len();
            Checker::new(accounting).check(tolerance, important, &mut self.present, &mut self.tolerated, units, &mut self.request)
        }

        fn requested(&self) -> Vec<u32> {
            ones(&self.request)
        }
    }

    fn ones(bits: &Bitmap) -> Vec<u32> {
        (0..bits.len()).filter(|unit| bits.get(*unit)).collect()
    }

    fn tolerance(window: u32, errors: u32, burst: u32) -> Tolerance {
        Tolerance::new(window, errors, burst).unwrap()
    }

    #[test]
    fn names_read_back() {
        for accounting in Accounting::ALL {
            assert_eq!(accounting.to_string().parse(), Ok(accounting));
        }
        assert!("strict".parse::<Accounting>().unwrap_err().to_string().contains("paper-literal"));
    }

    #[test]
    fn the_three_ways_ask_for_different_units_after_a_violation() {
        // E = 2 a window of 10, B = 1. Unit 1 is tolerated, 4 too, 5 violates the run.
        let missing = [1, 4, 5, 6, 12];
        let cases = [
            (Accounting::StrictAll, vec![1, 4, 5, 6, 12], vec![]),
            (Accounting::StrictBurst, vec![5, 6], vec![1, 4, 12]),
            (Accounting::PaperLiteral, vec![5, 6], vec![1, 4, 12]),
        ];
        for (accounting, requested, tolerated) in cases {
            let mut held = Held::without(20, &missing);
            assert!(!held.check(accounting, tolerance(10, 2, 1), 0), "{accounting}");
            assert_eq!((held.requested(), ones(&held.tolerated)), (requested, tolerated), "{accounting}");
        }
    }

    #[test]
    fn a_violating_burst_is_asked_for_across_the_border_of_windows() {
        let mut held = Held::without(20, &[8, 9, 10, 11, 13]);
        assert!(!held.check(Accounting::StrictBurst, tolerance(10, 1, 1), 0));
        assert_eq!((held.requested(), ones(&held.tolerated)), (vec![9, 10, 11], vec![8, 13]));
    }

    #[test]
    fn important_units_are_asked_for_even_when_everything_else_may_be_lost() {
        for accounting in Accounting::ALL {
            let mut held = Held::without(8, &[1, 2, 5]);
            assert!(!held.check(accounting, Tolerance::any(8), 2), "{accounting}");
            assert!(held.request.get(1));
            let mut held = Held::without(8, &[2, 3, 4, 5, 6, 7]);
            assert!(held.check(accounting, Tolerance::any(8), 2), "{accounting}");
        }
    }

    #[test]
    fn reliable_segments_are_asked_for_whole_and_their_bitmap_stays() {
        for accounting in Accounting::ALL {
            let mut held = Held::without(8, &[1, 6]);
            assert!(!held.check(accounting, Tolerance::reliable(8), 0));
            assert_eq!((held.requested(), held.present.count_ones()), (vec![1, 6], 6), "{accounting}");
        }
    }

    #[test]
    fn a_bitmap_that_never_saw_a_unit_is_as_long_as_the_segment_afterwards() {
        let (mut present, mut tolerated, mut request) = (Bitmap::new(), Bitmap::new(), Bitmap::new());
        assert!(!Checker::default().check(tolerance(4, 1, 1), 0, &mut present, &mut tolerated, 100, &mut request));
        assert_eq!((present.len(), request.count_ones()), (100, 100));
    }

    /// Two rounds: 2 and 5 are lost at first, the paper forgives 2 and asks for 5 to 7; 5 and 6 come, 7 is
    /// lost again, and is forgiven as if 2 had arrived.
    #[test]
    fn the_papers_wording_breaks_the_promise_in_the_second_round() {
        let promise = tolerance(10, 1, 1);
        for (accounting, accepted) in [(Accounting::PaperLiteral, true), (Accounting::StrictBurst, false), (Accounting::StrictAll, false)] {
            let mut held = Held::without(10, &[2, 5, 6, 7]);
            assert!(!held.check(accounting, promise, 0));
            held.present.set(5);
            held.present.set(6);
            assert_eq!(held.check(accounting, promise, 0), accepted, "{accounting}");
            if accepted {
                assert_eq!(ones(&held.tolerated), [2, 7], "two holes, one promised");
                assert!(!promise.allows(ones(&held.tolerated).into_iter().map(UnitIndex), 0));
            }
        }
    }

    fn any_tolerance() -> impl Strategy<Value = Tolerance> {
        (1u32..40, 0u32..6, 0u32..5).prop_map(|(w, e, b)| tolerance(w, e.min(w), b.min(w)))
    }

    proptest! {
        #[test]
        fn strict_all_accepts_exactly_what_the_tolerance_allows(t in any_tolerance(), missing in prop::collection::btree_set(0u32..150, 0..14), important in 0u32..8) {
            let missing: Vec<u32> = missing.into_iter().collect();
            let mut held = Held::without(150, &missing);
            let allowed = t.allows(missing.iter().copied().map(UnitIndex), important);
            prop_assert_eq!(held.check(Accounting::StrictAll, t, important), allowed);
            let (asked, kept) = if allowed { (vec![], missing) } else { (missing, vec![]) };
            prop_assert_eq!((held.requested(), ones(&held.tolerated)), (asked, kept));
        }

        #[test]
        fn a_segment_accepted_after_any_number_of_rounds_keeps_the_promise(
            t in any_tolerance(),
            important in 0u32..6,
            sent in prop::collection::vec(prop::bool::weighted(0.7), 1..130),
            arrivals in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.6), 130), 1..6),
        ) {
            for accounting in STRICT {
                let missing: Vec<u32> = (0..sent.len() as u32).filter(|unit| !sent[*unit as usize]).collect();
                let mut held = Held::without(sent.len() as u32, &missing);
                for round in &arrivals {
                    let before = held.present.clone();
                    let accepted = held.check(accounting, t, important);
                    prop_assert_eq!(&held.present, &before, "a strict way must not change what is present");
                    let holes: Vec<u32> = (0..before.len()).filter(|unit| !before.get(*unit)).collect();
                    if accepted {
                        prop_assert!(t.allows(holes.iter().copied().map(UnitIndex), important), "{accounting}: {holes:?}");
                        prop_assert_eq!(ones(&held.tolerated), holes);
                        break;
                    }
                    let asked = held.requested();
                    prop_assert!(!asked.is_empty() && asked.iter().all(|unit| !before.get(*unit)));
                    let mut both: Vec<u32> = asked.iter().copied().chain(ones(&held.tolerated)).collect();
                    both.sort_unstable();
                    prop_assert_eq!(both, holes, "every missing unit is asked for or tolerated");
                    for unit in asked.into_iter().filter(|unit| round[*unit as usize]) {
                        held.present.set(unit);
                    }
                }
            }
        }

        #[test]
        fn what_is_asked_for_is_enough(accounting in prop::sample::select(&Accounting::ALL), t in any_tolerance(), important in 0u32..6, missing in prop::collection::btree_set(0u32..150, 0..40)) {
            let missing: Vec<u32> = missing.into_iter().collect();
            let mut held = Held::without(150, &missing);
            if !held.check(accounting, t, important) {
                for unit in held.requested() {
                    held.present.set(unit);
                }
                prop_assert!(held.check(accounting, t, important), "one round without loss must be enough");
            }
        }
    }
}
