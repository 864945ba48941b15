//! When a source of cross traffic has data to send.
//!
//! Called by [`super::Sender`] and [`super::Constant`].
//!
//! A source is greedy, or has packets at a rate; it pauses in given spans, or at random.
//!
//! Invariant: packets at a rate come due whether they can leave or not, and leave later if they cannot.

use super::packet::DATA_BYTES;
use segstream_base::quantity::Remainder;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use std::collections::VecDeque;

/// When there is something to send.
#[derive(Clone, Debug)]
pub struct Supply {
    /// `None` is greedy.
    rate: Option<Bandwidth>,
    remainder: Remainder,
    due: Instant,
    idle: VecDeque<(Instant, Instant)>,
    bursts: Option<Bursts>,
}

/// Spans of random length in which there is something to send, and between them.
#[derive(Clone, Debug)]
struct Bursts {
    on_mean: Duration,
    off_mean: Duration,
    on_until: Instant,
    random: Random,
}

impl Supply {
    /// Always has a packet.
    pub fn greedy() -> Self {
        Self { rate: None, remainder: Remainder::default(), due: Instant::ZERO, idle: VecDeque::new(), bursts: None }
    }

    /// Has packets at a rate, which counts whole packets. A rate of zero has none.
    pub fn at_rate(rate: Bandwidth) -> Self {
        Self { rate: Some(rate), ..Self::greedy() }
    }

    /// The same with pauses: spans from the first instant to before the second, in order.
    pub fn idle_in(mut self, spans: &[(Instant, Instant)]) -> Self {
        self.idle = spans.iter().copied().collect();
        self
    }

    /// The same in bursts: on and off for exponentially distributed spans with these means, on first.
    pub fn in_bursts(mut self, on_mean: Duration, off_mean: Duration, seed: Seed) -> Self {
        let mut random = seed.stream("bursts");
        let on_until = Instant::ZERO + random.exponential(on_mean);
        self.bursts = Some(Bursts { on_mean, off_mean, on_until, random });
        self
    }

    /// When the next packet is available: at `now`, or later.
    pub fn due(&mut self, now: Instant) -> Instant {
        if self.rate.is_some_and(Bandwidth::is_zero) {
            return Instant::FAR_FUTURE;
        }
        if self.rate.is_none() {
            self.due = self.due.max(now);
        }
        self.skip_pauses();
        self.due.max(now)
    }

    /// Takes the packet that is due.
    pub fn take(&mut self) {
        if let Some(rate) = self.rate {
            self.due += rate.transmit_time(Bytes::new(DATA_BYTES as u64), &mut self.remainder);
        }
    }

    fn skip_pauses(&mut self) {
        if let Some(bursts) = &mut self.bursts {
            while self.due >= bursts.on_until {
                self.due = self.due.max(bursts.on_until + bursts.random.exponential(bursts.off_mean));
                // Why: one nanosecond at least, so that means of zero end too.
                bursts.on_until = self.due + bursts.random.exponential(bursts.on_mean).max(Duration::from_nanos(1));
            }
        }
        while let Some((from, to)) = self.idle.front()
            && self.due >= *from
        {
            self.due = self.due.max(*to);
            self.idle.pop_front();
        }
    }
}
