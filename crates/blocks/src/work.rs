//! Counts the steps of loops whose length a peer decides, in debug builds: what holds the budget of work (spec 11.4) in tests.
//!
//! Called by those loops with their length; read by tests, which compare the steps with the bytes that caused them. Counts, not times,
//! because a count is the same on every machine.
//!
//! Invariant: nothing is counted in release builds. Each thread has its own counts.

use core::cell::Cell;

/// The steps that one turn of an endpoint may take (spec 11.4): with 5 ns a step, 100 us.
pub const TURN_STEPS: u64 = 20_000;

/// A loop whose length a peer decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Words of a bitmap.
    Words,
    /// Units entered into or taken out of what is lost.
    LostUnits,
    /// Segments of a stream that are looked at.
    Segments,
    /// Positions that a request names.
    Requested,
    /// Streams of a connection.
    Streams,
}

impl Loop {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [Self::Words, Self::LostUnits, Self::Segments, Self::Requested, Self::Streams];
}

std::thread_local! {
    static STEPS: [Cell<u64>; Loop::ALL.len()] = const { [const { Cell::new(0) }; Loop::ALL.len()] };
}

/// Such a loop takes so many steps.
#[inline]
pub fn note(of: Loop, steps: usize) {
    if cfg!(debug_assertions) {
        STEPS.with(|counts| {
            let count = &counts[of as usize];
            count.set(count.get() + steps as u64);
        });
    }
}

/// The steps of this thread so far, by loop.
pub fn steps() -> [(Loop, u64); Loop::ALL.len()] {
    STEPS.with(|counts| Loop::ALL.map(|of| (of, counts[of as usize].get())))
}

/// What `work` returns, and how many steps it took in all; 0 in release builds. Eight words in a row count as one step.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let weighed = |(of, count): (Loop, u64)| if of == Loop::Words { count / 8 } else { count };
    let sum = || steps().into_iter().map(weighed).sum::<u64>();
    let before = sum();
    let result = work();
    (result, sum() - before)
}

/// The work of an endpoint against the bytes that have caused it (spec 11.4): what every harness holds it to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    steps: u64,
    bytes: u64,
}

impl Budget {
    /// Steps for each byte that has left or arrived.
    pub const STEPS_PER_BYTE: u64 = 4;
    /// Steps before the first bytes.
    pub const STEPS_AT_FIRST: u64 = 4 * TURN_STEPS;

    /// So many bytes have left or arrived.
    pub const fn on_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// One turn took so many steps.
    ///
    /// # Errors
    /// With what was exceeded, when that is more than a turn may take, or more than all bytes so far are worth.
    pub fn on_turn(&mut self, steps: u64) -> Result<(), String> {
        if steps > TURN_STEPS {
            return Err(format!("a turn takes {steps} steps of {TURN_STEPS} that it may"));
        }
        self.on_work(steps)
    }

    /// Several turns took so many steps together.
    ///
    /// # Errors
    /// With what was exceeded, when that is more than all bytes so far are worth.
    pub fn on_work(&mut self, steps: u64) -> Result<(), String> {
        self.steps += steps;
        let most = Self::STEPS_AT_FIRST + Self::STEPS_PER_BYTE * self.bytes;
        if self.steps > most {
            return Err(format!("{} bytes have caused {} steps of {most} that they may", self.bytes, self.steps));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_turn_and_what_the_bytes_are_worth() {
        let mut budget = Budget::default();
        assert!((0..4).all(|_| budget.on_turn(TURN_STEPS).is_ok()));
        budget.on_bytes(10);
        assert_eq!(budget.on_turn(40), Ok(()));
        assert_eq!(budget.on_turn(1), Err("10 bytes have caused 80041 steps of 80040 that they may".into()));
        assert_eq!(Budget::default().on_turn(TURN_STEPS + 1), Err("a turn takes 20001 steps of 20000 that it may".into()));
        assert_eq!(Budget::default().on_work(TURN_STEPS + 1), Ok(()));
    }

    #[test]
    fn what_is_noted_is_counted_by_name_and_in_sum() {
        let before = steps();
        let ((), sum) = counted(|| {
            note(Loop::Words, 24);
            note(Loop::Segments, 4);
        });
        let expected = if cfg!(debug_assertions) { (24, 4, 7) } else { (0, 0, 0) };
        let after = steps();
        assert_eq!((after[0].1 - before[0].1, after[2].1 - before[2].1, sum), expected);
    }
}
