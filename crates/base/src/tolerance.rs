//! The promise of a stream: the tolerance triplet `(W, E, B)`, and the strict test of it.
//!
//! The one type of it, from the application to the wire. Used by contracts and configuration, and in `blocks` by the partial
//! check and by the sending order. Source: EC 3.1, made general: the paper has one window a segment (W = s), here a segment
//! may have several.
//!
//! Invariant: W is at least 1. E and B are at most W in every tolerance that [`Tolerance::new`] made;
//! only [`Tolerance::clipped_to`] may shorten W below them.

use crate::numbers::UnitIndex;
use crate::run::Run;
use core::fmt;
use core::ops::Range;

/// How much of a segment may be missing: of every `window` units at most `errors`, and no more than
/// `burst` in a row. Windows start at the segment's start; the last one may be shorter and keeps E and B.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tolerance {
    window: u32,
    errors: u32,
    burst: u32,
}

/// Why three numbers are no tolerance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToleranceError {
    /// The window has no units.
    WindowZero,
    /// More units may be missing than there are.
    ErrorsExceedWindow {
        /// E, as given.
        errors: u32,
        /// W, as given.
        window: u32,
    },
    /// A run may be longer than the window.
    BurstExceedsWindow {
        /// B, as given.
        burst: u32,
        /// W, as given.
        window: u32,
    },
}

impl fmt::Display for ToleranceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WindowZero => f.write_str("the tolerance window W is 0 units; give a window of at least 1 unit"),
            Self::ErrorsExceedWindow { errors, window } => {
                write!(f, "E = {errors} units may be missing of a window of only W = {window}; lower E to at most {window} or raise W")
            }
            Self::BurstExceedsWindow { burst, window } => {
                write!(
                    f,
                    "a run of B = {burst} units may be missing of a window of only W = {window}; lower B to at most {window} or raise W"
                )
            }
        }
    }
}

impl core::error::Error for ToleranceError {}

/// Why a text is no tolerance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParseTripletError {
    /// The text is not three numbers with commas between them.
    NotThreeNumbers {
        /// The text, as given.
        text: String,
    },
    /// The numbers contradict each other.
    Contradiction(ToleranceError),
}

impl fmt::Display for ParseTripletError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThreeNumbers { text } => {
                write!(f, "{text:?} is not a tolerance; write three whole numbers W,E,B as in 1024,5,1")
            }
            Self::Contradiction(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ParseTripletError {}

/// Prints `(W, E, B)`.
impl fmt::Debug for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.triplet().fmt(f)
    }
}

/// Prints `W,E,B`, which [`Tolerance::parse_triplet`] reads.
impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.window, self.errors, self.burst)
    }
}

impl Tolerance {
    /// At most `errors` missing of every `window` units, at most `burst` of them in a row.
    ///
    /// # Errors
    /// When `window` is 0, or `errors` or `burst` is above it.
    pub const fn new(window: u32, errors: u32, burst: u32) -> Result<Self, ToleranceError> {
        if window == 0 {
            Err(ToleranceError::WindowZero)
        } else if errors > window {
            Err(ToleranceError::ErrorsExceedWindow { errors, window })
        } else if burst > window {
            Err(ToleranceError::BurstExceedsWindow { burst, window })
        } else {
            Ok(Self { window, errors, burst })
        }
    }

    /// Nothing may be missing: `(W, 0, 0)`. A window of 0 counts as 1.
    pub const fn reliable(window: u32) -> Self {
        Self { window: at_least_one(window), errors: 0, burst: 0 }
    }

    /// Everything may be missing: `(W, W, W)`. A window of 0 counts as 1.
    pub const fn any(window: u32) -> Self {
        let window = at_least_one(window);
        Self { window, errors: window, burst: window }
    }

    /// Reads `W,E,B`; blanks around the numbers are allowed.
    ///
    /// # Errors
    /// When the text is not three numbers, or the numbers contradict each other.
    pub fn parse_triplet(text: &str) -> Result<Self, ParseTripletError> {
        let mut numbers = [0u32; 3];
        let mut parts = text.split(',');
        let not_three = || ParseTripletError::NotThreeNumbers { text: text.to_owned() };
        for number in &mut numbers {
            *number = parts.next().and_then(|part| part.trim().parse().ok()).ok_or_else(not_three)?;
        }
        if parts.next().is_some() {
            return Err(not_three());
        }
        let [window, errors, burst] = numbers;
        Self::new(window, errors, burst).map_err(ParseTripletError::Contradiction)
    }

    /// (W, E, B).
    #[inline]
    pub const fn triplet(self) -> (u32, u32, u32) {
        (self.window, self.errors, self.burst)
    }

    /// W: the length of the enforcement window in units.
    #[inline]
    pub const fn window(self) -> u32 {
        self.window
    }

    /// E: how many units of a window may be missing.
    #[inline]
    pub const fn errors(self) -> u32 {
        self.errors
    }

    /// B: how many units in a row may be missing.
    #[inline]
    pub const fn burst(self) -> u32 {
        self.burst
    }

    /// Whether nothing may be missing: E = 0 or B = 0 (EC 4.2, step 2).
    #[inline]
    pub const fn is_reliable(self) -> bool {
        self.errors == 0 || self.burst == 0
    }

    /// Whether everything may be missing: E >= W and B >= W (EC 4.2, step 1).
    #[inline]
    pub const fn is_any(self) -> bool {
        self.errors >= self.window && self.burst >= self.window
    }

    /// Whether something may be missing but not everything (EC 4.2, step 3).
    #[inline]
    pub const fn is_partial(self) -> bool {
        !self.is_reliable() && !self.is_any()
    }

    /// The same promise for a segment of `units`: a W longer than the segment means the segment.
    ///
    /// E and B stay as they are, and may then exceed W.
    #[inline]
    #[must_use]
    pub const fn clipped_to(self, units: u32) -> Self {
        if self.window <= units { self } else { Self { window: at_least_one(units), ..self } }
    }

    /// Whether the promise is kept when exactly `holes`, in ascending order, are missing.
    ///
    /// Strict: at most E in every window `kW..(k+1)W`, no run above B, where a run goes on across the
    /// border of two windows, and none below `important`. One pass that ends at the first violation.
    pub fn allows(&self, holes: impl Iterator<Item = UnitIndex>, important: u32) -> bool {
        self.allows_ranges(holes.map(range_of), important)
    }

    /// As [`Tolerance::allows`], of `holes` in ascending runs. Takes a step for each run and each window that one touches,
    /// of which there are at most three before a violation.
    pub fn allows_runs(&self, holes: impl Iterator<Item = Run<UnitIndex>>, important: u32) -> bool {
        self.allows_ranges(holes.map(|run| u64::from(run.start())..u64::from(run.end())), important)
    }

    fn allows_ranges(&self, holes: impl Iterator<Item = Range<u64>>, important: u32) -> bool {
        let mut holes = holes.peekable();
        if holes.peek().is_some_and(|first| first.start < u64::from(important)) {
            return false;
        }
        if self.is_any() {
            return true;
        }
        let mut count = HoleCount::default();
        holes.all(|range| count.admits_range(*self, range))
    }

    /// A bound on the holes of an accepted segment of `units`: with more, the promise is surely broken.
    /// With fewer it may be broken all the same.
    pub const fn most_holes(self, units: u32) -> u32 {
        if self.is_any() {
            return units;
        }
        if self.is_reliable() {
            return 0;
        }
        let last = units % self.window;
        let whole = (units / self.window) as u64 * self.most_in(self.window) as u64;
        let by_windows = whole + self.most_in(last) as u64;
        let by_runs = self.most_by_runs(units);
        if by_windows < by_runs as u64 { by_windows as u32 } else { by_runs }
    }

    /// A bound on the holes of one window of `units`.
    const fn most_in(self, units: u32) -> u32 {
        let by_runs = self.most_by_runs(units);
        if self.errors < by_runs { self.errors } else { by_runs }
    }

    /// A bound by B alone: of every B + 1 units in a row one must be present.
    const fn most_by_runs(self, units: u32) -> u32 {
        match self.burst.checked_add(1) {
            Some(group) => units - units / group,
            None => units,
        }
    }
}

const fn at_least_one(window: u32) -> u32 {
    if window == 0 { 1 } else { window }
}

/// Holes of the window in which the last hole was, and the run it ended: the state of one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct HoleCount {
    /// The end of the window that `total` counts; 64 bits, as it may lie beyond the last unit number.
    window_end: u64,
    total: u32,
    run: u32,
    /// The unit after the last hole.
    after: u64,
}

impl HoleCount {
    /// Counts `hole`, which lies above every hole before, unless it would violate the tolerance.
    /// A refused hole leaves the count as it was.
    #[inline]
    pub fn admits(&mut self, tolerance: Tolerance, hole: UnitIndex) -> bool {
        self.admits_range(tolerance, range_of(hole))
    }

    /// As [`HoleCount::admits`], of all units of `holes`: window by window.
    #[inline]
    fn admits_range(&mut self, tolerance: Tolerance, holes: Range<u64>) -> bool {
        let mut next = *self;
        let run_before = if holes.start == next.after { next.run } else { 0 };
        let run = u64::from(run_before) + (holes.end - holes.start);
        if run > u64::from(tolerance.burst) {
            return false;
        }
        (next.run, next.after) = (run as u32, holes.end);
        let window = u64::from(tolerance.window);
        let mut at = holes.start;
        while at < holes.end {
            if at >= next.window_end {
                next.window_end = (at / window + 1) * window;
                next.total = 0;
            }
            let end = holes.end.min(next.window_end);
            next.total += (end - at) as u32;
            if next.total > tolerance.errors {
                return false;
            }
            at = end;
        }
        *self = next;
        true
    }
}

fn range_of(hole: UnitIndex) -> Range<u64> {
    let at = u64::from(hole);
    at..at + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tolerance(window: u32, errors: u32, burst: u32) -> Tolerance {
        Tolerance::new(window, errors, burst).unwrap()
    }

    #[test]
    fn contradictions_are_refused_with_their_values() {
        assert_eq!(Tolerance::new(0, 0, 0), Err(ToleranceError::WindowZero));
        assert_eq!(Tolerance::new(8, 9, 1), Err(ToleranceError::ErrorsExceedWindow { errors: 9, window: 8 }));
        assert_eq!(Tolerance::new(8, 1, 9), Err(ToleranceError::BurstExceedsWindow { burst: 9, window: 8 }));
        let text = Tolerance::new(8, 9, 1).unwrap_err().to_string();
        assert!(text.contains("E = 9") && text.contains("W = 8"), "{text}");
    }

    #[test]
    fn the_three_classes_of_the_paper() {
        let cases = [
            ((256, 0, 0), "r"),
            ((256, 5, 0), "r"),
            ((256, 0, 5), "r"),
            ((256, 256, 256), "a"),
            ((256, 256, 255), "p"),
            ((256, 1, 1), "p"),
        ];
        for ((w, e, b), class) in cases {
            let t = tolerance(w, e, b);
            let classes = [(t.is_reliable(), "r"), (t.is_any(), "a"), (t.is_partial(), "p")];
            assert_eq!(classes.iter().filter(|c| c.0).map(|c| c.1).collect::<Vec<_>>(), [class], "{t}");
        }
        assert!(Tolerance::reliable(0).is_reliable() && Tolerance::any(0).is_any());
    }

    #[test]
    fn a_triplet_reads_back_what_it_prints() {
        for t in [tolerance(1024, 5, 1), Tolerance::reliable(7), Tolerance::any(u32::MAX)] {
            assert_eq!(Tolerance::parse_triplet(&t.to_string()), Ok(t));
        }
        assert_eq!(Tolerance::parse_triplet(" 9, 2 ,1"), Ok(tolerance(9, 2, 1)));
        for text in ["", "1,2", "1,2,3,4", "a,b,c", "-1,0,0", "4294967296,0,0"] {
            assert!(matches!(Tolerance::parse_triplet(text), Err(ParseTripletError::NotThreeNumbers { .. })), "{text}");
        }
        assert_eq!(Tolerance::parse_triplet("0,0,0"), Err(ParseTripletError::Contradiction(ToleranceError::WindowZero)));
    }

    #[test]
    fn what_is_no_triplet_is_said_in_a_sentence_with_its_values() {
        let said = |text: &str| Tolerance::parse_triplet(text).unwrap_err().to_string();
        assert!(said("1,two,3").contains("\"1,two,3\"") && said("0,0,0").contains("window W is 0"));
        let text = said("8,1,9");
        assert!(text.contains("B = 9") && text.contains("W = 8"), "{text}");
    }

    #[test]
    fn the_bound_on_holes_is_the_lower_of_what_windows_and_runs_leave() {
        let cases = [
            ((10, 2, 1), 25, 6),
            ((10, 2, 1), 21, 5),
            ((10, 10, 1), 25, 13),
            ((3, 3, 1), 9, 5),
            ((3, 3, 2), 7, 5),
            ((8, 3, 8), 20, 9),
            ((8, 0, 3), 100, 0),
            ((8, 3, 0), 100, 0),
            ((8, 8, 8), 100, 100),
            ((u32::MAX, 5, u32::MAX), 100, 5),
        ];
        for ((w, e, b), units, most) in cases {
            assert_eq!(tolerance(w, e, b).most_holes(units), most, "({w},{e},{b}) of {units}");
        }
    }

    #[test]
    fn a_window_longer_than_the_segment_means_the_segment() {
        let clipped = tolerance(1024, 200, 3).clipped_to(100);
        assert_eq!((clipped.window(), clipped.errors(), clipped.burst()), (100, 200, 3));
        assert_eq!(tolerance(64, 2, 1).clipped_to(100), tolerance(64, 2, 1));
        assert_eq!(tolerance(64, 2, 1).clipped_to(0).window(), 1);
    }

    #[test]
    fn holes_are_counted_by_window_and_runs_across_borders() {
        type Case<'a> = ((u32, u32, u32), &'a [u32], u32, bool);
        let cases: [Case<'_>; 12] = [
            ((1024, 5, 1), &[3, 90], 0, true),
            ((10, 2, 1), &[0, 2, 10, 12, 20, 22], 0, true),
            ((10, 2, 1), &[0, 2, 4], 0, false),
            ((10, 2, 1), &[9, 10], 0, false),
            ((10, 2, 2), &[9, 10], 0, true),
            ((10, 2, 2), &[8, 9, 10], 0, false),
            ((4, 4, 4), &[0, 1, 2, 3, 4, 5, 6, 7], 0, true),
            ((4, 4, 4), &[2, 3], 3, false),
            ((4, 4, 4), &[3], 3, true),
            ((4, 0, 4), &[3], 0, false),
            ((4, 4, 0), &[], 9, true),
            ((u32::MAX, 1, 1), &[u32::MAX - 1, u32::MAX], 0, false),
        ];
        for ((w, e, b), holes, important, kept) in cases {
            assert_eq!(tolerance(w, e, b).allows(holes.iter().copied().map(UnitIndex), important), kept, "({w},{e},{b}) {holes:?}");
        }
    }

    /// The definition, word for word, without cleverness.
    fn allows_by_definition(t: Tolerance, missing: &[bool], important: u32) -> bool {
        if missing.iter().take(important as usize).any(|m| *m) {
            return false;
        }
        let within = |units: &[bool]| units.iter().filter(|m| **m).count() <= t.errors() as usize;
        let run = missing.split(|m| !m).map(<[bool]>::len).max().unwrap_or(0);
        t.is_any() || (missing.chunks(t.window() as usize).all(within) && run <= t.burst() as usize)
    }

    pub(crate) fn any_tolerance() -> impl Strategy<Value = Tolerance> {
        (1u32..40, 0u32..8, 0u32..6).prop_map(|(w, e, b)| tolerance(w, e.min(w), b.min(w)))
    }

    proptest! {
        #[test]
        fn the_one_pass_test_is_the_definition(t in any_tolerance(), missing in prop::collection::vec(prop::bool::weighted(0.2), 0..120), important in 0u32..10) {
            let holes = missing.iter().enumerate().filter(|(_, m)| **m).map(|(i, _)| UnitIndex(i as u32));
            prop_assert_eq!(t.allows(holes.clone(), important), allows_by_definition(t, &missing, important));
            let mut runs: Vec<Run<UnitIndex>> = Vec::new();
            for hole in holes {
                match runs.last_mut() {
                    Some(last) if last.end() == hole => *last = Run::new(last.start(), hole + 1).unwrap(),
                    _ => runs.push(Run::single(hole).unwrap()),
                }
            }
            prop_assert_eq!(t.allows_runs(runs.into_iter(), important), allows_by_definition(t, &missing, important));
        }

        #[test]
        fn no_accepted_segment_has_more_than_the_most_holes(t in any_tolerance(), units in 0u32..130) {
            // Holes as early as the rule admits them are as many as there can be in that order.
            let mut count = HoleCount::default();
            let greedy = (0..units).filter(|unit| count.admits(t, UnitIndex(*unit))).count() as u32;
            prop_assert!(t.is_any() || greedy <= t.most_holes(units));
            prop_assert!(t.most_holes(units) <= units);
        }
    }
}
