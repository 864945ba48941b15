//! The attacks on a small scale, each against a victim in a process of its own; and proof that a missing limit is found.
//! Nothing here is a bound of time.

#![cfg(target_os = "linux")]

use segstream_siege::attacks::{Attack, Siege, crowded, flipped, flood, forged, load, receiver, replayed, served, spoofed, statements};
use segstream_siege::outcome::Outcome;
use std::sync::Mutex;

/// One at a time: the victims of the others would share the processors and the kernel's buffers.
static ALONE: Mutex<()> = Mutex::new(());

fn attack(attack: Attack, victim: &[&str]) -> Outcome {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let program = env!("CARGO_BIN_EXE_segstream-siege").into();
    let siege = Siege { program, small: true, seconds: 3, victim: victim.iter().map(ToString::to_string).collect() };
    attack(&siege).unwrap()
}

#[track_caller]
fn holds(outcome: &Outcome) {
    assert!(outcome.held(), "{outcome}");
}

#[track_caller]
fn breaks(outcome: &Outcome, what: &str) {
    assert!(outcome.bounds.iter().any(|bound| bound.what == what && !bound.held), "{what} was to be broken\n{outcome}");
}

#[test]
fn spoofed_requests_cost_no_memory_and_are_not_amplified() {
    holds(&attack(spoofed::without_a_cookie, &[]));
}

#[test]
fn set_ups_that_fall_silent_are_bounded_and_given_up() {
    holds(&attack(spoofed::silent_after_the_cookie, &[]));
}

#[test]
fn a_victim_without_limits_of_set_up_is_found() {
    let outcome = attack(spoofed::silent_after_the_cookie, &["--unlimited-setups"]);
    breaks(&outcome, "set-ups at a time");
    breaks(&outcome, "set-ups of one host");
}

#[test]
fn replayed_and_reflected_handshakes_make_no_connection() {
    holds(&attack(replayed::handshakes, &[]));
}

#[test]
fn replayed_reordered_and_made_up_shipments_change_no_transfer() {
    holds(&attack(forged::shipments, &[]));
}

#[test]
fn no_changed_bit_of_any_kind_of_shipment_is_believed() {
    holds(&attack(flipped::bits, &[]));
}

#[test]
fn datagrams_of_every_wrong_length_are_harmless() {
    holds(&attack(flipped::lengths, &[]));
}

#[test]
fn a_flood_of_an_admitted_key_stays_within_the_connections_allowed() {
    holds(&attack(flood::of_an_admitted_key, &[]));
}

#[test]
fn a_victim_that_allows_more_connections_is_found() {
    // The last word counts: the attack itself asks for 64.
    breaks(&attack(flood::of_an_admitted_key, &["--connections", "4096"]), "connections at a time");
}

#[test]
fn a_flood_of_an_unknown_key_makes_no_connection() {
    holds(&attack(flood::of_an_unknown_key, &[]));
}

#[test]
fn a_flood_of_one_host_makes_no_connection() {
    holds(&attack(flood::of_one_host, &[]));
}

#[test]
fn unknown_peers_at_a_busy_victim_are_kept_no_more_than_without_one() {
    holds(&attack(crowded::unknown_peers_at_a_busy_victim, &[]));
}

#[test]
fn a_served_peer_whose_frames_cost_much_takes_no_more_memory_than_it_was_granted() {
    holds(&attack(served::costly_parts, &[]));
}

#[test]
fn a_transfer_keeps_its_promises_under_hostile_load() {
    holds(&attack(load::beside_a_transfer, &[]));
}

#[test]
fn a_served_receiver_whose_reports_cost_much_ends_nothing_and_takes_no_more_memory_than_there_was_sent() {
    holds(&attack(receiver::costly_reports, &[]));
}

#[test]
fn a_served_peer_whose_states_cost_much_takes_no_more_memory_than_it_was_granted() {
    holds(&attack(statements::costly_states, &[]));
}
