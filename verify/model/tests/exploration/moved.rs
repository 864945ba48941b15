//! Moved addresses in every order of events.

use segstream_base::Duration;
use segstream_model::exploration::{Bounds, Findings, explore};
use segstream_model::moved::{Deed, Moved};
use segstream_model::world::Thief;

/// Long enough for a challenge that is repeated.
const BOUNDS: Bounds = Bounds { losses: 1, copies: 0, holds: 0, thefts: 0, horizon: Duration::from_millis(300) };
const STOLEN: Bounds = Bounds { thefts: 1, horizon: Duration::from_millis(10), ..BOUNDS };
/// Long enough for a challenge by way of the thief, and its answer.
const BRIEF: Duration = Duration::from_millis(2);
const SENDS_AND_MOVES: [&[Deed]; 2] = [&[Deed::Submits, Deed::MovesTo(7)], &[]];
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
    let bounds = Bounds { losses: 2, horizon: Duration::from_millis(10), ..BOUNDS };
    assert_clean_and_never(explore(Moved { deeds: SENDS_AND_MOVES, bounds, ..STAYS }), &[TAKEN_IN]);
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
fn a_peer_that_has_nothing_to_say_is_followed_by_what_keeps_the_connection_alive() {
    let bounds = Bounds { losses: 0, horizon: Duration::from_millis(600), ..STOLEN };
    let claim = Moved { deeds: [&[Deed::MovesTo(7)], &[]], bounds, ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn what_a_thief_sends_on_from_elsewhere_once_leaves_the_peer_where_it_is() {
    assert_clean_and_never(explore(Moved { bounds: STOLEN, ..STAYS }), &[FOLLOWED, TAKEN_IN]);
}

#[test]
fn a_thief_that_has_the_peer_answer_is_taken_for_it_only_until_the_peer_is_heard() {
    let bounds = Bounds { losses: 0, thefts: 2, ..STOLEN };
    assert_clean_and_never(explore(Moved { thief: Thief::Relays, bounds, ..STAYS }), &[]);
}

#[test]
fn a_peer_that_moves_while_a_thief_sends_on_what_it_says_is_followed() {
    let bounds = Bounds { horizon: BRIEF, ..STOLEN };
    assert_clean_and_never(explore(Moved { deeds: SENDS_AND_MOVES, bounds, ..STAYS }), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_moves_is_followed_though_a_thief_has_it_answer() {
    let bounds = Bounds { losses: 0, thefts: 2, horizon: BRIEF, ..STOLEN };
    assert_clean_and_never(explore(Moved { deeds: SENDS_AND_MOVES, thief: Thief::Relays, bounds, ..STAYS }), &[]);
}

#[test]
fn a_thief_that_is_always_first_is_taken_for_the_peer() {
    let found = explore(Moved { thief: Thief::Races, bounds: Bounds { losses: 0, ..BOUNDS }, ..STAYS });
    assert!(found.faults.len() == 1 && found.faults[0].contains("TimedOut"), "{found}");
    assert!(!found.unseen.contains(&TAKEN_IN), "{found}");
}

#[test]
fn in_plain_mode_a_peer_that_moves_is_lost() {
    let bounds = Bounds { losses: 0, ..BOUNDS };
    let found = explore(Moved { deeds: SENDS_AND_MOVES, keyed: false, bounds, ..STAYS });
    assert!(found.faults.len() == 1 && found.faults[0].contains("TimedOut"), "{found}");
    assert_eq!(found.unseen, [CHALLENGED, FOLLOWED, TAKEN_IN]);
}
