//! Decides when a count kept by hand is checked by a recount, in debug builds.
//!
//! Called by structures that keep a count, an order or another cache beside what it follows from, after they have changed. A count is
//! made anew by chance, and the more seldom the more there is to count.
//!
//! Why by chance, and from a sequence of the thread: whatever a structure counts may stand still while it is asked, and a structure
//! should not carry what only its checks need. The sequence is the same in every run.
//!
//! Invariant: a recount looks at half a thing a turn, on average, and at nothing in release builds.

use core::cell::Cell;
use segstream_base::random::mixed;

/// How many elements a recount may look at, on average.
const SHARE: u64 = 8;
/// How many calls there are for each recount, on average: simulations call millions of times.
const TURNS: u64 = 16;

std::thread_local! {
    static TURN: Cell<u64> = const { Cell::new(0) };
}

/// Whether `size` things are counted in this turn.
#[inline]
pub fn is_due(size: usize) -> bool {
    cfg!(debug_assertions) && is_drawn(size)
}

fn is_drawn(size: usize) -> bool {
    let turns = TURNS * (size as u64 / SHARE).max(1);
    // One draw in `turns`, by a product in place of a remainder (Lemire, ACM TOMACS 29(1), 2019): simulations call this millions of times.
    (u128::from(draw()) * u128::from(turns)) >> 64 == 0
}

/// The next number of SplitMix64.
fn draw() -> u64 {
    let turn = TURN.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    TURN.set(turn);
    mixed(turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_there_is_to_count_the_more_seldom_it_is_counted() {
        let counted = |size: usize| (0..100_000).filter(|_| is_drawn(size)).count();
        // One in 16: five standard deviations of sqrt(100,000 x 15) / 16 are 383. One in 2000: sqrt(100,000 x 1999) / 2000 is 7.1.
        assert!(counted(SHARE as usize).abs_diff(6250) < 383, "{}", counted(SHARE as usize));
        assert!(counted(1000).abs_diff(50) < 36, "{}", counted(1000));
    }
}
