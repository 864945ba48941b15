//! What counts as lost, and what the tolerance allows of it.

use super::*;
use segstream_base::UnitIndex;
use segstream_blocks::bitmap::Bitmap;
use segstream_wire::Contract;

fn segment(units: u32) -> RecvSegment {
    let contract = Contract {
        unit_bytes: 10,
        tolerance: Tolerance::new(8, 2, 1).unwrap(),
        interleave: segstream_wire::contract::InterleaveChoice::Off,
        ..Contract::default()
    };
    let promise = contract.tolerance;
    RecvSegment::new(Layout::new(&contract, promise, false, Some(u64::from(units) * 10)), promise)
}

#[test]
fn only_what_is_due_counts_as_lost() {
    let mut segment = segment(8);
    assert_eq!(segment.mark(Position(0), 2), 2);
    assert_eq!(segment.mark(Position(4), 1), 1);
    assert_eq!(segment.presence.lost, 0);
    assert_eq!(segment.advance_due(Position(4)), 2);
    assert_eq!(segment.presence.lost, 2);
    assert_eq!(segment.mark(Position(2), 1), 1);
    assert_eq!(segment.presence.lost, 1);
    assert_eq!(segment.mark(Position(3), 1), 1);
    assert_eq!((segment.presence.lost, segment.presence.got), (0, 5));
    assert_eq!(segment.mark(Position(0), 5), 0, "twice changes nothing");
}

#[test]
fn a_unit_that_arrives_after_it_was_declared_lost_breaks_no_tolerance_any_more() {
    let mut segment = segment(16);
    segment.mark(Position(0), 3);
    segment.mark(Position(5), 1);
    segment.advance_due(Position(6));
    assert_eq!(segment.allows_lost(0, &mut 100), Some(false), "units 3 and 4 are neighbours");
    assert_eq!(segment.mark(Position(4), 1), 1);
    segment.mark(Position(6), 3);
    segment.advance_due(Position(11));
    assert_eq!(segment.presence.lost, 3, "units 3, 9 and 10");
    assert_eq!(segment.allows_lost(0, &mut 100), Some(false), "units 9 and 10 are neighbours");
    assert_eq!(segment.mark(Position(9), 1), 1);
    assert_eq!(segment.allows_lost(0, &mut 100), Some(true), "units 3 and 10 lie in windows of their own");
}

/// Found by the swarm: a unit beyond the positions known so far was forgotten.
#[test]
fn units_of_an_open_segment_are_accounted_for_wherever_they_lie_in_their_block() {
    let promise = Tolerance::new(32, 12, 1).unwrap();
    let interleave = segstream_wire::contract::InterleaveChoice::Depth(34);
    let contract = Contract { unit_bytes: 10, tolerance: promise, interleave, ..Contract::default() };
    let layout = Layout::new(&contract, promise, true, None);
    let unit = |at: u32| layout.units_at(Position(at), 1).next().unwrap();
    // What is lost is known to be once a later position is here.
    for (one, other) in (0..31).flat_map(|one| (one + 2..33).map(move |other| (one, other))) {
        let mut segment = RecvSegment::new(layout, promise);
        // With an important unit each loss is accounted for.
        let judge = |segment: &mut RecvSegment| segment.allows_lost(1, &mut 100) == Some(true);
        segment.mark(Position(0), one);
        segment.mark(Position(one + 1), other - one - 1);
        segment.advance_due(Position(other));
        assert_eq!(judge(&mut segment), promise.allows([unit(one)].into_iter(), 1), "{one}");
        segment.mark(Position(other + 1), 33 - other);
        segment.advance_due(Position(34));
        let both = [unit(one).min(unit(other)), unit(one).max(unit(other))];
        assert_eq!(judge(&mut segment), promise.allows(both.into_iter(), 1), "{one} and {other}");
    }
}

#[test]
fn the_tolerance_is_judged_on_units_declared_lost() {
    let mut segment = segment(8);
    segment.mark(Position(0), 1);
    segment.mark(Position(2), 1);
    segment.advance_due(Position(3));
    assert!(segment.allows_lost(0, &mut 100) == Some(true), "one hole");
    assert!(segment.allows_lost(2, &mut 100) == Some(false), "unit 1 is important");
    segment.advance_due(Position(5));
    assert!(segment.allows_lost(0, &mut 100) == Some(false), "units 3 and 4 are neighbours");
}

#[test]
fn a_segment_of_which_nothing_came_is_judged_like_one_of_holes() {
    for (window, errors, burst) in (1..8).flat_map(|w| (0..=w).flat_map(move |e| (0..=w).map(move |b| (w, e, b)))) {
        for (units, important) in (1..20).flat_map(|units| [(units, 0), (units, 1)]) {
            let promise = Tolerance::new(window, errors, burst).unwrap().clipped_to(units);
            let layout = Layout::new(&Contract::default(), promise, false, Some(u64::from(units) * 1024));
            let segment = RecvSegment::new(layout, promise);
            let allowed = promise.allows(UnitIndex::FIRST.up_to(UnitIndex(units)), important);
            assert_eq!(segment.allows_missing(important, &mut Bitmap::new()), allowed, "{promise} of {units}, {important} important");
        }
    }
}

#[test]
fn an_open_segment_counts_what_becomes_known_as_lost_when_everything_is_due() {
    let contract = Contract { unit_bytes: 10, ..Contract::default() };
    let promise = contract.tolerance;
    let mut segment = RecvSegment::new(Layout::new(&contract, promise, true, None), promise);
    segment.mark(Position(0), 1);
    assert_eq!(segment.advance_due(ALL_DUE), 0);
    segment.mark(Position(3), 1);
    assert_eq!(segment.presence.lost, 2);
    segment.mark(Position(1), 2);
    assert_eq!(segment.presence.lost, 0);
}
