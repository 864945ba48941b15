//! The user of a receiver who takes segments as fast as they come, and for a while slower.
//!
//! Called by receiving halves whose window follows what the user has taken. Source: FC 3.4 (window control strategy): a receiver
//! withholds the advancement of the window while its user is slow.
//!
//! Invariant: segments are taken one after the other, and no slower than the schedule says.

use segstream_base::{Duration, Instant};

/// When a user is slow, and how slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    /// From when on.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
    /// What each segment takes then, 1 / F_1.
    pub takes: Duration,
}

/// A user, who is never slow by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct User {
    slowdown: Option<Slowdown>,
    /// When it will have done with the segment that it works on.
    done_at: Option<Instant>,
}

impl User {
    /// One who is slow as `slowdown` says.
    pub const fn new(slowdown: Option<Slowdown>) -> Self {
        Self { slowdown, done_at: None }
    }

    /// When it will have done with the segment that it works on; `None` while it works on none.
    #[inline]
    pub const fn done_at(&self) -> Option<Instant> {
        self.done_at
    }

    /// The first segment that is ready: begins to work on it, unless it does already, and says whether it has done with it.
    ///
    /// The place of a segment is free when it has: the user works in the buffer that the segment came in (FC 4.3.1).
    #[inline]
    pub fn take(&mut self, now: Instant) -> bool {
        let Some(slowdown) = self.slowdown else { return true };
        let done_at = self.done_at.unwrap_or_else(|| {
            let is_slow = (slowdown.from..slowdown.until).contains(&now);
            // Why not beyond: with the slowdown over, what is left of a segment takes no time.
            if is_slow { (now + slowdown.takes).min(slowdown.until) } else { now }
        });
        let is_done = done_at <= now;
        self.done_at = (!is_done).then_some(done_at);
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_slow_within_the_slowdown_and_nowhere_else() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut user = User::new(Some(Slowdown { from: at(10), until: at(35), takes: Duration::from_millis(10) }));
        assert!(user.take(at(9)) && user.take(at(9)));
        assert!(!user.take(at(10)) && !user.take(at(19)));
        assert_eq!(user.done_at(), Some(at(20)));
        assert!(user.take(at(20)), "the first");
        assert!(!user.take(at(20)) && user.take(at(30)), "the second");
        assert!(!user.take(at(30)) && !user.take(at(34)) && user.take(at(35)), "the third, as the slowdown ends");
        assert!(user.take(at(35)) && user.done_at().is_none());
        let mut quick = User::default();
        assert!((0..100).all(|_| quick.take(at(1))));
    }
}
