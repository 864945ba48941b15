//! A tiny window in every order of events.

use segstream_base::Duration;
use segstream_model::exploration::{Bounds, explore};
use segstream_model::window::Window;

const BOUNDS: Bounds = Bounds { losses: 2, copies: 0, holds: 0, attacker_copies: 0, horizon: Duration::from_micros(2500) };

#[test]
fn lost_control_never_closes_the_window_for_good() {
    explore(Window { segments: 3, bounds: BOUNDS, forger: None }).assert_clean();
}

#[test]
fn a_grant_that_comes_late_or_twice_opens_nothing_that_is_closed() {
    let bounds = Bounds { losses: 0, copies: 1, ..BOUNDS };
    explore(Window { segments: 3, bounds, forger: None }).assert_clean();
}
