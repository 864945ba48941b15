//! When a hand-kept count is compared with what it counts, in debug builds.
//!
//! Called by structures that keep a count, an order or another cache beside what it follows from, after they have changed. Of a few
//! things the count is made anew each time; of many now and then.
//!
//! Why a budget of the thread, and not a counter in each structure: whatever a structure counts may stand still while it is asked,
//! and a structure should not carry what only its checks need.
//!
//! Invariant: the recounts of a thread look at no more than [`SHARE`] things a turn, over all turns so far, and at nothing in release
//! builds.

use core::cell::Cell;

/// So many things may be counted for each turn.
const SHARE: usize = 8;

std::thread_local! {
    /// What earlier turns have left.
    static BUDGET: Cell<usize> = const { Cell::new(0) };
}

/// Whether `size` things are counted in this turn.
#[inline]
pub fn is_due(size: usize) -> bool {
    cfg!(debug_assertions) && is_within_budget(size)
}

fn is_within_budget(size: usize) -> bool {
    BUDGET.with(|budget| {
        let all = budget.get().saturating_add(SHARE);
        let left = all.checked_sub(size);
        budget.set(left.unwrap_or(all));
        left.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recount_of_many_things_costs_a_constant_each_turn_and_of_few_is_made_each_time() {
        let counted = |size: usize| (0..100_000).filter(|_| is_within_budget(size)).count();
        assert_eq!(counted(SHARE), 100_000);
        assert_eq!(counted(1000), 100_000 * SHARE / 1000);
    }
}
