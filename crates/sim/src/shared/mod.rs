//! Several flows over one link, in virtual time.
//!
//! Called by laboratories and tests. A flow is any [`crate::Simulation`] that has joined the [`Link`]; its own path is behind the
//! link, and its return path is separate. The flow with the earliest next event is run first; at equal times the one that joined
//! first.
//!
//! ```text
//! flow 1 --\                         /--> own path --> receiver 1
//! flow 2 ----> link: queue, bandwidth ---> own path --> receiver 2
//! ```
//!
//! - [`Link`], [`Entry`]: the link, and the entry of a flow to it.
//! - [`Flow`], [`FlowCounters`]: a flow and its counters.
//! - [`QueueMeter`]: statistics of queueing delay.
//!
//! Invariant: the same flows, link and seeds give the same events in the same order.

mod flow;
mod link;
mod queue_meter;

pub use flow::{Flow, FlowCounters};
pub use link::{Entry, Link};
pub use queue_meter::QueueMeter;

use crate::end::End;
use segstream_base::{Duration, Instant};

/// A flow of the run, and when it stops.
struct Member<'a> {
    flow: Box<dyn Flow + 'a>,
    entry: Option<u64>,
    stop: Instant,
    next_at: Instant,
}

impl Member<'_> {
    /// Updates the time of the flow's next event; there is none after its stop.
    fn look_ahead(&mut self) {
        let next_at = self.flow.next_at();
        self.next_at = if next_at < self.stop { next_at } else { Instant::FAR_FUTURE };
    }
}

/// Flows that share a [`Link`].
pub struct Shared<'a> {
    link: Link,
    members: Vec<Member<'a>>,
    now: Instant,
}

/// Why a shared run ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow {flow} (counted from 0) has failed: {end}")]
pub struct SharedError {
    /// Which flow, in the order of [`Shared::add`].
    pub flow: usize,
    /// Why.
    pub end: End,
}

impl<'a> Shared<'a> {
    /// A run over `link` without flows.
    pub const fn new(link: Link) -> Self {
        Self { link, members: Vec::new(), now: Instant::ZERO }
    }

    /// Adds a flow that has joined the link. It starts when its entry says, and stops at `stop`: from then on it sends and receives
    /// nothing, and its packets stay in flight. Returns its number, counted from 0.
    pub fn add(&mut self, flow: Box<dyn Flow + 'a>, stop: Instant) -> usize {
        let next_at = if flow.next_at() < stop { flow.next_at() } else { Instant::FAR_FUTURE };
        let entry = flow.entry_number();
        self.members.push(Member { flow, entry, stop, next_at });
        self.members.len() - 1
    }

    /// The link.
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// The time of the run.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The flow `number`.
    pub fn flow(&self, number: usize) -> Option<&dyn Flow> {
        self.members.get(number).map(|member| &*member.flow)
    }

    /// The flows in the order in which they were added.
    pub fn flows(&self) -> impl Iterator<Item = &dyn Flow> {
        self.members.iter().map(|member| &*member.flow)
    }

    /// Runs every event up to `until` and those at it.
    ///
    /// # Errors
    /// Names the flow that has failed.
    pub fn run_until(&mut self, until: Instant) -> Result<(), SharedError> {
        loop {
            let due = self.link.due();
            let next = self.earliest();
            if due <= until && next.is_none_or(|(_, at)| due < at) {
                self.now = self.now.max(due);
                self.link.advance(due);
                self.hand_over()?;
                continue;
            }
            let Some((flow, at)) = next.filter(|(_, at)| *at <= until) else { break };
            self.now = at;
            let Some(member) = self.members.get_mut(flow) else { break };
            member.flow.advance(at);
            member.look_ahead();
            if let Some(end) = member.flow.failed() {
                return Err(SharedError { flow, end });
            }
            self.hand_over()?;
        }
        self.now = until;
        Ok(())
    }

    /// Runs until `until` and calls `sample` after every `every` of it, with the run as it is then.
    ///
    /// # Errors
    /// Names the flow that has failed.
    pub fn run_sampled(&mut self, until: Instant, every: Duration, mut sample: impl FnMut(&Self)) -> Result<(), SharedError> {
        while self.now < until {
            self.run_until((self.now + every.max(Duration::from_nanos(1))).min(until))?;
            sample(self);
        }
        Ok(())
    }

    /// Passes the decisions of the link to the flows.
    fn hand_over(&mut self) -> Result<(), SharedError> {
        while let Some(decided) = self.link.decided() {
            let found = self.members.iter_mut().enumerate().find(|(_, member)| member.entry == Some(decided.entry));
            let Some((flow, member)) = found else { continue };
            member.flow.decided(self.now, decided.id, &decided.passage);
            member.look_ahead();
            if let Some(end) = member.flow.failed() {
                return Err(SharedError { flow, end });
            }
        }
        Ok(())
    }

    /// The flow with the earliest event, and its time; `None` when nothing is pending.
    fn earliest(&self) -> Option<(usize, Instant)> {
        let mut earliest = None;
        let mut first = Instant::FAR_FUTURE;
        for (number, member) in self.members.iter().enumerate() {
            if member.next_at < first {
                first = member.next_at;
                earliest = Some((number, first));
            }
        }
        earliest
    }
}
