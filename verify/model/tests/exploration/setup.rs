//! Set-up in every order of events.

use segstream_base::Duration;
use segstream_model::exploration::{Bounds, explore};
use segstream_model::setup::{SetUp, Then};

const BOUNDS: Bounds = Bounds { losses: 2, copies: 1, holds: 0, attacker_copies: 0, horizon: Duration::from_millis(700) };

#[test]
fn one_request_makes_one_connection_or_none() {
    explore(SetUp { connect_timeout: Duration::from_secs(5), then: Then::Nothing, bounds: BOUNDS }).assert_clean();
}

#[test]
fn who_gives_up_early_leaves_nothing_behind() {
    let bounds = Bounds { losses: 1, holds: 1, horizon: Duration::from_millis(450), ..BOUNDS };
    explore(SetUp { connect_timeout: Duration::from_millis(300), then: Then::Nothing, bounds }).assert_clean();
}

#[test]
fn what_waits_for_the_connection_is_judged_once() {
    let bounds = Bounds { copies: 0, horizon: Duration::from_millis(250), ..BOUNDS };
    explore(SetUp { connect_timeout: Duration::from_secs(5), then: Then::Data, bounds }).assert_clean();
}

#[test]
fn nothing_is_kept_of_who_never_comes_back() {
    explore(SetUp { connect_timeout: Duration::from_millis(500), then: Then::Gone, bounds: BOUNDS }).assert_clean();
}
