//! Connection migration in every order of events.

use segstream_base::Duration;
use segstream_model::exploration::{Bounds, Findings, explore};
use segstream_model::migration::{Action, Migration};
use segstream_model::world::Attacker;

/// Long enough for a challenge that is repeated.
const BOUNDS: Bounds = Bounds { losses: 1, copies: 0, holds: 0, attacker_copies: 0, horizon: Duration::from_millis(300) };
const COPIED: Bounds = Bounds { attacker_copies: 1, horizon: Duration::from_millis(10), ..BOUNDS };
/// Long enough for a challenge by way of the attacker, and its answer.
const BRIEF: Duration = Duration::from_millis(2);
const SENDS_AND_MOVES: [&[Action]; 2] = [&[Action::Submits, Action::MovesTo(7)], &[]];
const STAYS: Migration = Migration { actions: [&[Action::Submits], &[]], attacker: Attacker::Silent, keyed: true, bounds: BOUNDS };

const CHALLENGED: &str = "a challenge leaves for an address that has not answered";
const FOLLOWED: &str = "B follows A";
const TAKEN_IN: &str = "B takes the attacker's address";

/// Nothing is broken, and of what could be seen exactly `never` is not.
fn assert_clean_and_never(mut found: Findings, never: &[&str]) {
    assert_eq!(found.unseen, never, "{found}");
    found.unseen.clear();
    found.assert_clean();
}

#[test]
fn a_peer_that_moves_while_it_sends_is_followed_and_everything_is_judged() {
    let bounds = Bounds { losses: 2, horizon: Duration::from_millis(10), ..BOUNDS };
    assert_clean_and_never(explore(Migration { actions: SENDS_AND_MOVES, bounds, ..STAYS }), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_moves_while_it_is_sent_to_is_followed_and_everything_is_judged() {
    let claim = Migration { actions: [&[Action::MovesTo(7)], &[Action::Submits]], ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_moves_and_comes_back_is_found_where_it_is() {
    let claim = Migration { actions: [&[Action::MovesTo(7), Action::Submits, Action::MovesTo(1)], &[]], ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_has_nothing_to_say_is_followed_by_what_keeps_the_connection_alive() {
    let bounds = Bounds { losses: 0, horizon: Duration::from_millis(600), ..COPIED };
    let claim = Migration { actions: [&[Action::MovesTo(7)], &[]], bounds, ..STAYS };
    assert_clean_and_never(explore(claim), &[TAKEN_IN]);
}

#[test]
fn what_an_attacker_sends_on_from_elsewhere_once_leaves_the_peer_where_it_is() {
    assert_clean_and_never(explore(Migration { bounds: COPIED, ..STAYS }), &[FOLLOWED, TAKEN_IN]);
}

#[test]
fn a_attacker_that_has_the_peer_answer_is_taken_for_it_only_until_the_peer_is_heard() {
    let bounds = Bounds { losses: 0, attacker_copies: 2, ..COPIED };
    assert_clean_and_never(explore(Migration { attacker: Attacker::Relays, bounds, ..STAYS }), &[]);
}

#[test]
fn a_peer_that_moves_while_an_attacker_sends_on_what_it_says_is_followed() {
    let bounds = Bounds { horizon: BRIEF, ..COPIED };
    assert_clean_and_never(explore(Migration { actions: SENDS_AND_MOVES, bounds, ..STAYS }), &[TAKEN_IN]);
}

#[test]
fn a_peer_that_moves_is_followed_though_an_attacker_has_it_answer() {
    let bounds = Bounds { losses: 0, attacker_copies: 2, horizon: BRIEF, ..COPIED };
    assert_clean_and_never(explore(Migration { actions: SENDS_AND_MOVES, attacker: Attacker::Relays, bounds, ..STAYS }), &[]);
}

#[test]
fn a_attacker_that_is_always_first_is_taken_for_the_peer() {
    let found = explore(Migration { attacker: Attacker::Races, bounds: Bounds { losses: 0, ..BOUNDS }, ..STAYS });
    assert!(found.faults.len() == 1 && found.faults[0].contains("TimedOut"), "{found}");
    assert!(!found.unseen.contains(&TAKEN_IN), "{found}");
}

#[test]
fn in_plain_mode_a_peer_that_moves_is_lost() {
    let bounds = Bounds { losses: 0, ..BOUNDS };
    let found = explore(Migration { actions: SENDS_AND_MOVES, keyed: false, bounds, ..STAYS });
    assert!(found.faults.len() == 1 && found.faults[0].contains("TimedOut"), "{found}");
    assert_eq!(found.unseen, [CHALLENGED, FOLLOWED, TAKEN_IN]);
}
