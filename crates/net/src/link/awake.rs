//! Keeping the processors from falling asleep while datagrams are on their way.
//!
//! Called by the relay once a turn that looks for arrivals.
//!
//! A processor that sleeps deeply wakes late. A virtual one wakes only when its host finds room for it again, which
//! takes milliseconds on a busy host. So the relay asks the system for processors that wake at once, as long as
//! there is traffic; an idle link spares the energy.
//!
//! Source: `/dev/cpu_dma_latency` of the kernel's power management quality of service; the wish lasts as long as
//! the file is open, so nothing remains when the program ends in whatever way. Limit: Linux, and the
//! administrator; elsewhere nothing is asked.
//!
//! Invariant: failing is no error, and the wish ends [`QUIET_FOR`] after the last datagram.

use segstream_base::{Duration, Instant};
use std::fs::File;

/// How long nothing must have come or gone before the processors may sleep again.
const QUIET_FOR: Duration = Duration::from_secs(1);

/// The wish, while it is held.
#[derive(Debug)]
pub(super) struct Awake {
    wanted: bool,
    wish: Option<File>,
    busy_at: Instant,
    granted: bool,
}

impl Awake {
    /// Holds nothing yet, and never will unless `wanted`.
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, wish: None, busy_at: Instant::ZERO, granted: false }
    }

    /// Notes at `now` whether there is traffic.
    pub(super) fn note(&mut self, now: Instant, traffic: bool) {
        if traffic {
            self.busy_at = now;
            if self.wanted && self.wish.is_none() {
                self.wish = ask();
                self.granted |= self.wish.is_some();
                // Why: what is refused once will be refused again.
                self.wanted = self.wish.is_some();
            }
        } else if self.wish.is_some() && now.since(self.busy_at) >= QUIET_FOR {
            self.wish = None;
        }
    }

    /// Whether the wish was ever granted.
    pub(super) fn granted(&self) -> bool {
        self.granted
    }
}

#[cfg(target_os = "linux")]
fn ask() -> Option<File> {
    use std::io::Write;
    let mut wish = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    // The latency that is tolerated, in microseconds.
    wish.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(wish)
}

#[cfg(not(target_os = "linux"))]
fn ask() -> Option<File> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wish_is_held_during_traffic_and_a_while_after() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut awake = Awake::new(true);
        awake.note(at(0), false);
        assert!(awake.wish.is_none());
        awake.note(at(1000), true);
        // Only the administrator is granted it.
        assert_eq!(awake.wish.is_some(), awake.granted());
        awake.note(at(1999), false);
        assert_eq!(awake.wish.is_some(), awake.granted());
        awake.note(at(2000), false);
        assert!(awake.wish.is_none());
    }

    #[test]
    fn nothing_is_asked_unless_wanted() {
        let mut awake = Awake::new(false);
        awake.note(Instant::ZERO, true);
        assert!(awake.wish.is_none() && !awake.granted());
    }
}
