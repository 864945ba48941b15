//! Changes of class and rate in every order of events.

use segstream_base::{Bandwidth, Duration};
use segstream_model::class_change::{Change, ClassChange};
use segstream_model::exploration::{Bounds, explore};

const BOUNDS: Bounds = Bounds { losses: 2, copies: 0, holds: 0, attacker_copies: 0, horizon: Duration::from_millis(5) };

#[test]
fn both_ends_end_in_the_last_class_asked_for() {
    const CHANGES: &[Change] = &[Change::Class(6), Change::Class(2)];
    explore(ClassChange { class: 7, class_max: 7, changes: CHANGES, bounds: BOUNDS }).assert_clean();
}

#[test]
fn what_is_not_allowed_never_comes_in_force() {
    const CHANGES: &[Change] = &[Change::Class(7), Change::Class(2)];
    explore(ClassChange { class: 7, class_max: 3, changes: CHANGES, bounds: BOUNDS }).assert_clean();
}

#[test]
fn data_that_flows_meanwhile_is_judged() {
    const CHANGES: &[Change] = &[Change::Send, Change::Rate(Bandwidth::from_megabits_per_second(100)), Change::Class(3)];
    let bounds = Bounds { losses: 1, horizon: Duration::from_millis(3), ..BOUNDS };
    explore(ClassChange { class: 7, class_max: 7, changes: CHANGES, bounds }).assert_clean();
}

#[test]
fn an_echo_that_comes_late_or_twice_changes_nothing() {
    const CHANGES: &[Change] = &[Change::Class(6), Change::Class(2)];
    let bounds = Bounds { losses: 0, copies: 1, horizon: Duration::from_millis(3), ..BOUNDS };
    explore(ClassChange { class: 7, class_max: 7, changes: CHANGES, bounds }).assert_clean();
}
