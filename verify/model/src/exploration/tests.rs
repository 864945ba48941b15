//! The digest of a state is enough, and the checker visits every state.

use super::*;
use crate::class_change::{Change, ClassChange};
use crate::close::{Close, Ending};
use crate::migration::{Action, Migration};
use crate::setup::{SetUp, Then};
use crate::world::Attacker;
use std::collections::{BTreeMap, VecDeque};

/// Visits `instance` without the checker. Every state is reached by as many histories as there are, and what follows
/// from it must be the same by each. Gives the number of states, and how often one was reached again.
fn compare_futures<I: Instance>(instance: I) -> (usize, usize) {
    let model = Explored(instance);
    let mut known: BTreeMap<u64, Vec<Option<u64>>> = BTreeMap::new();
    let mut again = 0;
    let mut queue: VecDeque<State> = model.init_states().into();
    while let Some(state) = queue.pop_front() {
        let next: Vec<Option<State>> = state.choices.iter().map(|&step| model.next_state(&state, step)).collect();
        let digests = next.iter().map(|next| next.as_ref().map(|next| next.digest)).collect();
        match known.get(&state.digest) {
            Some(before) => {
                assert_eq!(*before, digests, "one digest, two futures: {:?}", state.steps);
                again += 1;
            }
            None => {
                known.insert(state.digest, digests);
                queue.extend(next.into_iter().flatten());
            }
        }
    }
    (known.len(), again)
}

#[test]
fn equal_digests_have_equal_futures_and_the_checker_visits_every_one() {
    const CHANGES: &[Change] = &[Change::Class(6)];
    let bounds = Bounds { losses: 1, copies: 1, holds: 0, attacker_copies: 0, horizon: Duration::from_millis(2) };
    let reclass = ClassChange { class: 7, class_max: 7, changes: CHANGES, bounds };
    let closes = Ending { sends: false, closes: true };
    let close = Close { endings: [closes, closes], bounds: Bounds { copies: 0, ..bounds } };
    let horizon = Duration::from_millis(250);
    let set_up = SetUp { connect_timeout: Duration::from_millis(300), then: Then::Gone, bounds: Bounds { horizon, ..bounds } };
    let copied = Bounds { losses: 0, copies: 0, attacker_copies: 1, ..bounds };
    let moved =
        Migration { actions: [&[Action::Submits, Action::MovesTo(7)], &[]], attacker: Attacker::Relays, keyed: true, bounds: copied };
    let compared = [compare_futures(reclass), compare_futures(close), compare_futures(set_up), compare_futures(moved)];
    assert_eq!(
        compared.map(|(states, _)| states),
        [explore(reclass).states, explore(close).states, explore(set_up).states, explore(moved).states]
    );
    assert!(compared.iter().all(|(states, again)| *states > 100 && *again > 20), "{compared:?}");
}
