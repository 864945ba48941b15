//! A table of named timers: one instant for each name; an expired timer is returned by its name.
//!
//! Called by every state machine that has more than one timer. The papers name theirs (BT in FC 3.3, the
//! loss timer in EC 4.2); here the names travel with the deadline.
//!
//! Invariant: a timer expires once for each time it was set, earliest first, equal times in the order of
//! [`TimerKey::ALL`].

use core::marker::PhantomData;
use segstream_base::Instant;
use segstream_base::endpoint::Deadline;
use smallvec::SmallVec;

/// The timers of one state machine: an enum without data, usually.
pub trait TimerKey: Copy + PartialEq + 'static {
    /// Every timer; equal times expire in this order.
    const ALL: &'static [Self];

    /// The name that a deadline carries.
    fn name(self) -> &'static str;

    /// The place in [`TimerKey::ALL`], or its length when the key is missing there. An enum whose
    /// variants stand there in order may say `self as usize`.
    #[inline]
    fn index(self) -> usize {
        Self::ALL.iter().position(|key| *key == self).unwrap_or(Self::ALL.len())
    }
}

/// When each timer expires. Up to eight timers need no heap.
#[derive(Clone, Debug)]
pub struct TimerTable<K: TimerKey> {
    /// By index; [`Instant::FAR_FUTURE`] for a timer that is stopped.
    at: SmallVec<[Instant; 8]>,
    keys: PhantomData<K>,
}

impl<K: TimerKey> Default for TimerTable<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: TimerKey> TimerTable<K> {
    /// All timers stopped.
    pub fn new() -> Self {
        Self { at: SmallVec::from_elem(Instant::FAR_FUTURE, K::ALL.len()), keys: PhantomData }
    }

    /// Sets `key` to expire at `at`. [`Instant::FAR_FUTURE`] stops it.
    #[inline]
    pub fn set(&mut self, key: K, at: Instant) {
        if let Some(entry) = self.at.get_mut(key.index()) {
            *entry = at;
        }
    }

    /// Stops `key`.
    #[inline]
    pub fn stop(&mut self, key: K) {
        self.set(key, Instant::FAR_FUTURE);
    }

    /// When `key` expires, if it is set.
    #[inline]
    pub fn get(&self, key: K) -> Option<Instant> {
        self.at.get(key.index()).copied().filter(|at| *at != Instant::FAR_FUTURE)
    }

    /// The timer that expires next, with its name.
    #[inline]
    pub fn next(&self) -> Option<Deadline> {
        self.earliest().map(|(at, key)| Deadline { at, timer: key.name() })
    }

    /// Stops and returns the earliest timer that has expired at `now`. Call until `None`.
    #[inline]
    pub fn pop_expired(&mut self, now: Instant) -> Option<K> {
        let (_, key) = self.earliest().filter(|(at, _)| *at <= now)?;
        self.stop(key);
        debug_assert_eq!(self.get(key), None, "a timer rings twice");
        Some(key)
    }

    #[inline]
    fn earliest(&self) -> Option<(Instant, K)> {
        // `min_by_key` returns the first of equal elements.
        let running = self.at.iter().copied().zip(K::ALL.iter().copied()).filter(|(at, _)| *at != Instant::FAR_FUTURE);
        running.min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Name {
        Report,
        Pace,
        Idle,
        Unlisted,
    }

    impl TimerKey for Name {
        const ALL: &'static [Self] = &[Self::Report, Self::Pace, Self::Idle];

        fn name(self) -> &'static str {
            match self {
                Self::Report => "report",
                Self::Pace => "pace",
                Self::Idle => "idle",
                Self::Unlisted => "unlisted",
            }
        }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn timers_ring_in_the_order_of_time_and_then_of_the_table() {
        let mut timers = TimerTable::new();
        timers.set(Name::Idle, at(5));
        timers.set(Name::Pace, at(7));
        timers.set(Name::Report, at(7));
        assert_eq!(timers.next(), Some(Deadline { at: at(5), timer: "idle" }));
        assert_eq!(timers.pop_expired(at(4)), None);
        let rung: Vec<Name> = core::iter::from_fn(|| timers.pop_expired(at(9))).collect();
        assert_eq!(rung, [Name::Idle, Name::Report, Name::Pace]);
        assert_eq!(timers.next(), None, "each rings once");
    }

    #[test]
    fn setting_again_moves_a_timer_and_stopping_silences_it() {
        let mut timers = TimerTable::new();
        timers.set(Name::Report, at(3));
        timers.set(Name::Report, at(8));
        assert_eq!((timers.get(Name::Report), timers.pop_expired(at(7))), (Some(at(8)), None));
        timers.stop(Name::Report);
        assert_eq!((timers.get(Name::Report), timers.pop_expired(at(9))), (None, None));
        timers.set(Name::Pace, Instant::FAR_FUTURE);
        assert_eq!(timers.pop_expired(Instant::FAR_FUTURE), None, "never means never");
    }

    #[test]
    fn a_key_outside_the_table_never_rings() {
        let mut timers = TimerTable::new();
        timers.set(Name::Unlisted, at(1));
        assert_eq!((timers.get(Name::Unlisted), timers.next()), (None, None));
    }
}
