//! A code of two units and one repair unit in every order of events.

use segstream_base::Duration;
use segstream_model::coded::Coded;
use segstream_model::exploration::{Bounds, explore};

const BOUNDS: Bounds = Bounds { losses: 3, copies: 0, holds: 0, attacker_copies: 0, horizon: Duration::from_millis(2) };

#[test]
fn nothing_is_sent_again_while_the_repair_unit_can_keep_the_promise() {
    explore(Coded::new(BOUNDS)).assert_clean();
}

#[test]
fn a_shipment_that_comes_late_counts_no_unit_twice() {
    let bounds = Bounds { losses: 1, holds: 1, horizon: Duration::from_micros(800), ..BOUNDS };
    explore(Coded::new(bounds)).assert_clean();
}

#[test]
fn a_shipment_that_comes_twice_counts_no_unit_twice() {
    let bounds = Bounds { losses: 2, copies: 1, horizon: Duration::from_micros(800), ..BOUNDS };
    explore(Coded::new(bounds)).assert_clean();
}

/// The claim can fail: with two of three lost more is sent.
#[test]
fn without_two_of_three_more_is_sent() {
    let found = explore(Coded { spared: 2, ..Coded::new(BOUNDS) });
    assert!(found.faults.iter().any(|fault| fault.contains("more, and 2 of three")), "{found}");
}
