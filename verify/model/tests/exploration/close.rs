//! Graceful close in every order of events.

use segstream_base::Duration;
use segstream_model::close::{Close, Ending};
use segstream_model::exploration::{Bounds, explore};

const BOUNDS: Bounds = Bounds { losses: 1, copies: 0, holds: 0, attacker_copies: 0, horizon: Duration::from_millis(50) };
const NOTHING: Ending = Ending { sends: false, closes: false };
const SENDS: Ending = Ending { sends: true, closes: false };
const CLOSES: Ending = Ending { sends: false, closes: true };
const SENDS_AND_CLOSES: Ending = Ending { sends: true, closes: true };

#[test]
fn whoever_sends_and_closes_has_its_verdict_first() {
    explore(Close { endings: [SENDS_AND_CLOSES, NOTHING], bounds: BOUNDS }).assert_clean();
}

#[test]
fn a_peer_that_still_sends_has_its_verdict_too() {
    explore(Close { endings: [CLOSES, SENDS], bounds: BOUNDS }).assert_clean();
}

#[test]
fn both_ends_may_close_at_once_though_control_is_lost() {
    explore(Close { endings: [CLOSES, CLOSES], bounds: BOUNDS }).assert_clean();
}

#[test]
fn a_goodbye_that_comes_twice_or_late_changes_nothing() {
    let bounds = Bounds { losses: 0, copies: 1, ..BOUNDS };
    explore(Close { endings: [CLOSES, CLOSES], bounds }).assert_clean();
}

#[test]
fn a_goodbye_that_is_lost_again_and_again_is_repeated() {
    let bounds = Bounds { losses: 3, horizon: Duration::from_millis(150), ..BOUNDS };
    explore(Close { endings: [CLOSES, NOTHING], bounds }).assert_clean();
}
