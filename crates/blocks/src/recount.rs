//! When a hand-kept count is compared with what it counts, in debug builds.
//!
//! Called by structures that keep a count, an order or another cache beside what it follows from, after they have changed. Of a few
//! things the count is made anew each time; of many once in as many turns as there are things.
//!
//! Invariant: a recount costs O(1) a turn, over many turns, and nothing in release builds.

/// So few things are always counted.
const FEW: usize = 8;

/// Whether `size` things are counted in this turn, the number of which grows with whatever is done.
#[inline]
pub const fn is_due(size: usize, turn: u64) -> bool {
    cfg!(debug_assertions) && (size <= FEW || turn.is_multiple_of(size as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recount_of_many_things_costs_a_constant_each_turn() {
        let cost = |size: usize| (0..100_000).filter(|&turn| is_due(size, turn)).count() * size / 100_000;
        assert!([1, FEW, FEW + 1, 500, 30_000].map(cost).into_iter().all(|cost| (1..=FEW).contains(&cost)));
    }
}
