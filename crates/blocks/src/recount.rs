//! When a hand-kept count is compared with what it counts, in debug builds.
//!
//! Called by structures that keep a count, an order or another cache beside what it follows from, after they have changed. Of a few
//! things the count is made anew each time; of many by chance, and the more seldom the more there are.
//!
//! Why by chance, and from a sequence of the thread: whatever a structure counts may stand still while it is asked, and a structure
//! should not carry what only its checks need. The sequence is the same in every run.
//!
//! Invariant: a recount looks at [`SHARE`] things a turn, on average, and at nothing in release builds.

use core::cell::Cell;

/// So many things may be counted each turn.
const SHARE: u64 = 8;

std::thread_local! {
    static TURN: Cell<u64> = const { Cell::new(0) };
}

/// Whether `size` things are counted in this turn.
#[inline]
pub fn is_due(size: usize) -> bool {
    cfg!(debug_assertions) && is_drawn(size)
}

fn is_drawn(size: usize) -> bool {
    size as u64 <= SHARE || draw().is_multiple_of(size as u64 / SHARE)
}

/// The next number of SplitMix64.
fn draw() -> u64 {
    let turn = TURN.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    TURN.set(turn);
    let mixed = (turn ^ turn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_things_are_counted_each_time_and_many_so_seldom_that_a_turn_costs_a_constant() {
        let counted = |size: usize| (0..100_000).filter(|_| is_drawn(size)).count();
        assert_eq!(counted(SHARE as usize), 100_000);
        // One in 125: five standard deviations of sqrt(100,000 x 124) / 125 are 141.
        assert!(counted(1000).abs_diff(800) < 141);
    }
}
