//! Which numbers beyond CAACK are known to have arrived, at the transmitter.
//!
//! Called by Tx2. Reports that list a part of what the receiver holds add up here.
//!
//! Invariant: only numbers from `next` to less than half the sequence space beyond it are marked; all before are known.

/// Bits: a power of two above the span of numbers in flight.
const BITS: u64 = 32_768;

/// A ring of marks.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    words: Vec<u64>,
    next: u64,
}

impl Presence {
    pub(super) fn new() -> Self {
        Self { words: vec![0; (BITS / 64) as usize], next: 0 }
    }

    /// The number after CAACK.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    const fn place(seq: u64) -> (usize, u64) {
        ((seq % BITS / 64) as usize, 1 << (seq % 64))
    }

    /// Whether `seq` has arrived.
    #[inline]
    pub(super) fn contains(&self, seq: u64) -> bool {
        let (word, bit) = Self::place(seq);
        seq < self.next || (seq - self.next < BITS && self.words[word] & bit != 0)
    }

    /// Marks `seq`; `false` when it was known.
    #[inline]
    pub(super) fn mark(&mut self, seq: u64) -> bool {
        if seq < self.next || seq - self.next >= BITS {
            return false;
        }
        let (word, bit) = Self::place(seq);
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Everything before `next` has arrived. Returns how many of those were not marked.
    pub(super) fn advance(&mut self, next: u64) -> u64 {
        let mut new = 0;
        while self.next < next {
            let (word, bit) = Self::place(self.next);
            new += u64::from(self.words[word] & bit == 0);
            self.words[word] &= !bit;
            self.next += 1;
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_until_they_are_passed_and_the_ring_wraps() {
        let mut presence = Presence::new();
        assert!(presence.mark(3) && !presence.mark(3) && !presence.mark(BITS));
        assert_eq!(presence.advance(5), 4);
        assert!(presence.contains(0) && !presence.contains(5));
        assert!(!presence.contains(3 + BITS), "the mark of 3 is gone from its place");
        assert!(presence.mark(3 + BITS) && presence.contains(3 + BITS));
    }
}
