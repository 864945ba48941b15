//! The processor of the sending half.
//!
//! Called by [`crate::Simulation`] when [`crate::Setup::sender_cost`] is set; without it a half's work takes no time.
//!
//! HT measures on transputers, where a transport is as fast as its busiest processor. Here the sender's data path is
//! one processor. Each data packet occupies it, and so does the bookkeeping that the half counts
//! ([`segstream_base::halves::Operations`]); while it is busy no data is requested. A packet enters the path when it is
//! asked for, and its service follows: so a lone packet does not wait for its own.
//!
//! What arrives is handed to the half at once, for the half to know, and what that costs delays the next data packet.
//! Control belongs to another process (HT 5): it is requested at any time, by
//! [`poll_control`](segstream_base::halves::Sender::poll_control), and costs nothing here.
//!
//! Invariant: between two data packets lies at least the service of the first and all bookkeeping done since it left.

use segstream_base::halves::{Operations, Packet as _, Sender};
use segstream_base::{Duration, Instant};

/// What the work of the sending half costs. Default: nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SenderCost {
    /// Each data packet, new or again.
    pub packet: Duration,
    /// Each slot of the table of sent packets that is searched.
    pub slot: Duration,
    /// Each operation on the list of timers.
    pub timer: Duration,
    /// Each timer that such an operation passes in the list.
    pub timer_passed: Duration,
}

impl SenderCost {
    /// What the bookkeeping from `before` to `after` costs.
    fn of(&self, before: Operations, after: Operations) -> Duration {
        self.slot * (after.slots_searched.saturating_sub(before.slots_searched))
            + self.timer * (after.timer_operations.saturating_sub(before.timer_operations))
            + self.timer_passed * (after.timers_passed.saturating_sub(before.timers_passed))
    }
}

/// The processor and what it has been charged for.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    cost: SenderCost,
    charged: Operations,
    free_at: Instant,
}

impl Processor {
    pub(crate) fn new(cost: SenderCost) -> Self {
        Self { cost, charged: Operations::default(), free_at: Instant::ZERO }
    }

    /// What `sender` has to send now: data when the processor is free, control at any time.
    pub(crate) fn poll<S: Sender>(&mut self, now: Instant, sender: &mut S) -> Option<S::Forward> {
        self.charge(now, sender);
        let packet = if self.is_free(now) { sender.poll_transmit(now) } else { sender.poll_control(now) };
        self.charge(now, sender);
        if packet.as_ref().is_some_and(S::Forward::is_data) {
            self.occupy(now, self.cost.packet);
        }
        packet
    }

    /// When the loop must look at `sender` again, after it has sent all it may now.
    pub(crate) fn due<S: Sender>(&self, now: Instant, sender: &S) -> Instant {
        if self.is_free(now) {
            return at(sender.poll_timeout());
        }
        // Why not what is due already: all that could be done about it is done, so it is data, which waits.
        Some(at(sender.poll_control_timeout())).filter(|due| *due > now).map_or(self.free_at, |due| due.min(self.free_at))
    }

    fn is_free(&self, now: Instant) -> bool {
        self.free_at <= now
    }

    /// Charges the bookkeeping that was done since the last time.
    fn charge<S: Sender>(&mut self, now: Instant, sender: &S) {
        let operations = sender.operations();
        if operations != self.charged {
            self.occupy(now, self.cost.of(self.charged, operations));
            self.charged = operations;
        }
    }

    fn occupy(&mut self, now: Instant, work: Duration) {
        self.free_at = self.free_at.max(now) + work;
    }
}

fn at(deadline: Option<segstream_base::halves::Deadline>) -> Instant {
    deadline.map_or(Instant::FAR_FUTURE, |deadline| deadline.at)
}
