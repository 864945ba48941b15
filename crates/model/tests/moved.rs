//! Moved addresses in every order of events.

use segstream_base::Duration;
use segstream_model::exploration::{Bounds, Findings, explore};
use segstream_model::moved::{Deed, Moved};
use segstream_model::world::Thief;

const BOUNDS: Bounds = Bounds { losses: 1, copies: 0, holds: 0, thefts: 0, horizon: Duration::from_millis(10) };
const STOLEN: Bounds = Bounds { losses: 0, thefts: 1, ..BOUNDS };
const STAYS: Moved = Moved { deeds: [&[Deed::Submits], &[]], thief: Thief::Silent, keyed: true, bounds: BOUNDS };

const CHALLENGED: &str = "a challenge leaves for an address that has not answered";
const FOLLOWED: &str = "B follows A";
const TAKEN_IN: &str = "B takes the thief's address";

/// Nothing is broken, and of what could be seen exactly `never` is not.
fn assert_clean_and_never(mut found: Findings, never: &[&str]) {
    assert_eq!(found.unseen, never, "{found}");
    found.unseen.clear();
    found.assert_clean();
}

#[test]
fn a_peer_that_moves_while_it_sends_is_followed_and_everything_is_judged() {
    let claim = Moved { deeds: [&[Deed::Submits, Deed::MovesTo(7)], &[]], ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_moves_while_it_is_sent_to_is_followed_and_everything_is_judged() {
    let claim = Moved { deeds: [&[Deed::MovesTo(7)], &[Deed::Submits]], ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_moves_and_comes_back_is_found_where_it_is() {
    let claim = Moved { deeds: [&[Deed::MovesTo(7), Deed::Submits, Deed::MovesTo(1)], &[]], ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn what_a_thief_sends_on_from_elsewhere_once_leaves_the_peer_where_it_is() {
    let claim = Moved { bounds: Bounds { losses: 1, ..STOLEN }, ..STAYS };
    assert_clean_and_never(explore(claim), &[FOLLOWED, TAKEN_IN]);
}

#[test]
fn a_thief_that_has_the_peer_answer_is_taken_for_it_until_the_peer_is_heard() {
    let claim = Moved { thief: Thief::Relays, bounds: Bounds { thefts: 2, ..STOLEN }, ..STAYS };
    assert_clean_and_never(explore(claim), &[]);
}

#[test]
fn a_peer_that_moves_while_a_thief_sends_on_what_it_says_is_followed() {
    let claim = Moved { deeds: [&[Deed::Submits, Deed::MovesTo(7)], &[]], bounds: STOLEN, ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_moves_is_followed_though_a_thief_has_it_answer() {
    let claim = Moved { deeds: [&[Deed::Submits, Deed::MovesTo(7)], &[]], thief: Thief::Relays, bounds: STOLEN, ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn a_thief_that_is_always_first_is_taken_for_the_peer() {
    let found = explore(Moved { thief: Thief::Races, bounds: Bounds { losses: 0, ..BOUNDS }, ..STAYS });
    assert!(found.faults.len() == 1 && !found.unseen.contains(&TAKEN_IN) && found.unseen.contains(&FOLLOWED), "{found}");
    println!("{found}");
}

#[test]
fn in_plain_mode_a_peer_that_moves_is_lost() {
    let found = explore(Moved { deeds: [&[Deed::Submits, Deed::MovesTo(7)], &[]], keyed: false, ..STAYS });
    assert!(found.faults.len() == 1 && found.unseen == [CHALLENGED, FOLLOWED, TAKEN_IN], "{found}");
    println!("{found}");
}
