//! Segments that grow old in every order of events.

use segstream_base::Duration;
use segstream_model::exploration::{Bounds, explore};
use segstream_model::lifetime::Lifetime;

const BOUNDS: Bounds = Bounds { losses: 2, copies: 0, holds: 0, attacker_copies: 0, horizon: Duration::from_millis(10) };

#[test]
fn both_ends_say_the_same_of_a_segment_and_say_it_once() {
    explore(Lifetime { segments: 1, lifetime: Duration::from_micros(1200), bounds: BOUNDS }).assert_clean();
}

#[test]
fn the_skip_of_one_segment_does_not_harm_the_next() {
    let bounds = Bounds { horizon: Duration::from_millis(4), ..BOUNDS };
    explore(Lifetime { segments: 2, lifetime: Duration::from_micros(1200), bounds }).assert_clean();
}

#[test]
fn a_skip_that_comes_twice_or_late_changes_no_verdict() {
    let bounds = Bounds { losses: 1, copies: 1, horizon: Duration::from_millis(5), ..BOUNDS };
    explore(Lifetime { segments: 1, lifetime: Duration::from_micros(1200), bounds }).assert_clean();
}
