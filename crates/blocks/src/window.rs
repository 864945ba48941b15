//! The flow control window: which segments may be sent, and what the receiver grants.
//!
//! Called by the sender before a segment starts and by the receiver when a judged segment has been handed
//! over. Source: FC 3.4. The paper counts segments; a second edge in units bounds the receiver's memory
//! whatever the segments' lengths.
//!
//! Invariant: no edge ever retreats, at either end, whatever arrives in whatever order (FC 3.4: R_h and
//! S_h are maxima). A smaller window takes effect only as segments are released.

/// The sender's two upper edges, exclusive, as the receiver granted them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendWindow {
    segments: u64,
    units: u64,
}

impl SendWindow {
    /// A window with these edges; `default` is closed.
    pub const fn new(segments: u64, units: u64) -> Self {
        Self { segments, units }
    }

    /// Takes a grant. An edge that is older than the present one changes nothing. `true` when one moved.
    #[inline]
    pub fn advance(&mut self, segments: u64, units: u64) -> bool {
        let before = *self;
        self.segments = before.segments.max(segments);
        self.units = before.units.max(units);
        *self != before
    }

    /// Whether a segment may start that is number `segment_number` of its stream and has `units`, when the
    /// segments before it have `units_started` units in all. All of it must fit both edges.
    #[inline]
    pub const fn admits(&self, segment_number: u64, units_started: u64, units: u64) -> bool {
        let fits = match units_started.checked_add(units) {
            Some(end) => end <= self.units,
            None => false,
        };
        fits && segment_number < self.segments
    }

    /// The first segment number that may not start.
    #[inline]
    pub const fn segments(&self) -> u64 {
        self.segments
    }

    /// The first unit, counted over all segments, that may not start.
    #[inline]
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Both edges: segments and units.
    #[inline]
    pub const fn edges(&self) -> (u64, u64) {
        (self.segments, self.units)
    }
}

/// How many windows a stream delivered as accepted may run ahead of its lowest unreleased segment.
const SPAN_WINDOWS: u64 = 4;

/// The receiver's window: what it grants, from what it has released.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiveWindow {
    /// The size in segments and in units.
    window_segments: u32,
    window_units: u64,
    released_segments: u64,
    released_units: u64,
    edge_segments: u64,
    edge_units: u64,
    /// The span in segments for delivery as accepted. Never shrinks, as the edge it bounds may not retreat.
    span: u64,
    reported_segments: u64,
    reported_units: u64,
}

impl ReceiveWindow {
    /// A window of this many segments and units, at least 1 of each.
    pub fn new(segments: u32, units: u64) -> Self {
        let mut window = Self {
            window_segments: 0,
            window_units: 0,
            released_segments: 0,
            released_units: 0,
            edge_segments: 0,
            edge_units: 0,
            span: 0,
            reported_segments: 0,
            reported_units: 0,
        };
        window.resize(segments, units);
        window
    }

    /// A judged segment of `units` has been handed over, and its memory is free.
    #[inline]
    pub fn release(&mut self, units: u64) {
        self.released_segments = self.released_segments.saturating_add(1);
        self.released_units = self.released_units.saturating_add(units);
        self.push_edges();
    }

    /// The edges to grant, exclusive: segments and units, counted from the start of the stream.
    #[inline]
    pub const fn edges(&self) -> (u64, u64) {
        (self.edge_segments, self.edge_units)
    }

    /// The edges of a stream delivered as accepted, where segments are released out of order: the segment
    /// edge is at most four windows above `lowest_unreleased`, the lowest segment number not released.
    /// Never retreats as long as `lowest_unreleased` does not.
    #[inline]
    pub fn edges_from(&self, lowest_unreleased: u64) -> (u64, u64) {
        (self.edge_segments.min(lowest_unreleased.saturating_add(self.span)), self.edge_units)
    }

    /// Makes the window this many segments and units, at least 1 of each. Growing moves the edges now,
    /// shrinking holds them until enough has been released.
    pub fn resize(&mut self, segments: u32, units: u64) {
        self.window_segments = segments.max(1);
        self.window_units = units.max(1);
        self.span = self.span.max(u64::from(self.window_segments) * SPAN_WINDOWS);
        self.push_edges();
    }

    /// Makes the window fit the rate `f1` when it fitted the rate `f`: W1 = F1/F * W0, rounded down, at least
    /// 1 (FC 3.4). Up and down again may lose what was rounded off; `resize` restores an exact size.
    /// An `f` of 0 changes nothing.
    pub fn scaled(&mut self, f1: u64, f: u64) {
        if f == 0 {
            return;
        }
        let scale = |size: u64| u64::try_from(u128::from(size) * u128::from(f1) / u128::from(f)).unwrap_or(u64::MAX);
        let segments = u32::try_from(scale(u64::from(self.window_segments))).unwrap_or(u32::MAX);
        self.resize(segments, scale(self.window_units));
    }

    /// The present size: segments and units.
    #[inline]
    pub const fn size(&self) -> (u32, u64) {
        (self.window_segments, self.window_units)
    }

    /// What has been released since the start: segments and their units.
    #[inline]
    pub const fn released(&self) -> (u64, u64) {
        (self.released_segments, self.released_units)
    }

    /// What has been released since the last report: segments and their units.
    #[inline]
    pub const fn freed_since_report(&self) -> (u64, u64) {
        (self.released_segments - self.reported_segments, self.released_units - self.reported_units)
    }

    /// A report with the present edges has left.
    #[inline]
    pub fn mark_reported(&mut self) {
        self.reported_segments = self.released_segments;
        self.reported_units = self.released_units;
    }

    /// Whether a sixteenth of the window, in segments or in units, was freed since the last report: often enough
    /// that several reports may be lost before a sender comes to the edge.
    #[inline]
    pub const fn wants_report(&self) -> bool {
        let (segments, units) = self.freed_since_report();
        segments.saturating_mul(16) >= self.window_segments as u64 || units.saturating_mul(16) >= self.window_units
    }

    #[inline]
    fn push_edges(&mut self) {
        self.edge_segments = self.edge_segments.max(self.released_segments.saturating_add(u64::from(self.window_segments)));
        self.edge_units = self.edge_units.max(self.released_units.saturating_add(self.window_units));
        debug_assert!(self.edge_segments >= self.released_segments && self.edge_units >= self.released_units, "released beyond an edge");
        debug_assert!(self.reported_segments <= self.released_segments && self.reported_units <= self.released_units);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_old_grant_cannot_take_back_a_newer_one() {
        let mut window = SendWindow::default();
        assert!(!window.admits(0, 0, 0), "closed until the first grant");
        assert!(window.advance(4, 100));
        assert!(!window.advance(3, 90));
        assert!(window.advance(3, 120));
        assert_eq!((window.edges(), window.segments(), window.units()), ((4, 120), 4, 120));
    }

    #[test]
    fn a_segment_starts_only_when_all_of_it_fits_both_edges() {
        let window = SendWindow::new(4, 100);
        let cases = [((3, 90, 10), true), ((3, 91, 10), false), ((4, 0, 1), false), ((0, u64::MAX, 1), false), ((0, 100, 0), true)];
        for ((number, started, units), admitted) in cases {
            assert_eq!(window.admits(number, started, units), admitted, "{number} {started} {units}");
        }
    }

    #[test]
    fn a_released_segment_opens_the_window_by_itself() {
        let mut window = ReceiveWindow::new(4, 100);
        assert_eq!(window.edges(), (4, 100));
        window.release(30);
        assert_eq!((window.edges(), window.released()), ((5, 130), (1, 30)));
    }

    #[test]
    fn shrinking_holds_the_edge_and_growing_moves_it() {
        let mut window = ReceiveWindow::new(8, 800);
        window.resize(4, 400);
        assert_eq!(window.edges(), (8, 800));
        for _ in 0..4 {
            window.release(100);
        }
        assert_eq!(window.edges(), (8, 800), "the released segments are what it shrank by");
        window.release(100);
        assert_eq!(window.edges(), (9, 900));
        window.resize(10, 1000);
        assert_eq!(window.edges(), (15, 1500));
    }

    #[test]
    fn the_window_follows_the_rate_rounded_down() {
        let cases = [
            ((36, 3600), (1, 2), (18, 1800)),
            ((35, 10), (1, 3), (11, 3)),
            ((2, 2), (1, 100), (1, 1)),
            ((4, 9), (3, 1), (12, 27)),
            ((5, 5), (1, 0), (5, 5)),
        ];
        for ((segments, units), (f1, f), size) in cases {
            let mut window = ReceiveWindow::new(segments, units);
            window.scaled(f1, f);
            assert_eq!(window.size(), size, "({segments}, {units}) by {f1}/{f}");
        }
        let mut window = ReceiveWindow::new(u32::MAX, u64::MAX);
        window.scaled(u64::MAX, 1);
        assert_eq!(window.size(), (u32::MAX, u64::MAX));
    }

    #[test]
    fn a_sixteenth_of_the_window_is_worth_a_report() {
        let mut window = ReceiveWindow::new(32, 1600);
        assert!(!window.wants_report());
        window.release(1);
        assert!(!window.wants_report());
        window.release(1);
        assert_eq!((window.wants_report(), window.freed_since_report()), (true, (2, 2)));
        window.mark_reported();
        assert!(!window.wants_report());
        window.release(100);
        assert_eq!(window.freed_since_report(), (1, 100));
        assert!(window.wants_report(), "one long segment is a sixteenth of the units");
    }

    #[test]
    fn a_stream_delivered_as_accepted_runs_ahead_by_four_windows_at_most() {
        let mut window = ReceiveWindow::new(4, 1000);
        for _ in 0..30 {
            window.release(1);
        }
        assert_eq!(window.edges().0, 34);
        assert_eq!(window.edges_from(0).0, 16, "segment 0 is stuck");
        assert_eq!(window.edges_from(30).0, 34);
        window.resize(1, 1000);
        assert_eq!(window.edges_from(0).0, 16, "a smaller window takes nothing back");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Release(u64),
        Resize(u32, u64),
        Scale(u64, u64),
    }

    proptest! {
        #[test]
        fn no_edge_ever_retreats(steps in prop::collection::vec(prop_oneof![
            4 => (0u64..50).prop_map(Step::Release),
            1 => (0u32..20, 0u64..900).prop_map(|(s, u)| Step::Resize(s, u)),
            1 => (0u64..9, 0u64..9).prop_map(|(a, b)| Step::Scale(a, b)),
        ], 1..80), stuck in 0u64..10) {
            let mut window = ReceiveWindow::new(6, 300);
            for step in steps {
                let before = (window.edges(), window.edges_from(stuck));
                match step {
                    Step::Release(units) => window.release(units),
                    Step::Resize(segments, units) => window.resize(segments, units),
                    Step::Scale(f1, f) => window.scaled(f1, f),
                }
                let after = (window.edges(), window.edges_from(stuck));
                prop_assert!(after.0.0 >= before.0.0 && after.0.1 >= before.0.1);
                prop_assert!(after.1.0 >= before.1.0 && after.1.1 >= before.1.1);
                let (segments, units) = window.released();
                prop_assert!(after.0.0 >= segments + u64::from(window.size().0) && after.0.1 >= units + window.size().1);
            }
        }
    }
}
