//! Several parties over one link, in virtual time.
//!
//! Called by laboratories and tests. A party is any [`crate::Simulation`] that has joined the [`Link`]; its own path lies
//! behind the link, its way back is its own. The party with the earliest next event goes first, the first to
//! have joined at equal times.
//!
//! ```text
//! party 1 --\                         /--> own path --> receiver 1
//! party 2 ----> link: queue, bandwidth ---> own path --> receiver 2
//! ```
//!
//! - [`Link`], [`Entry`]: the link and a party's way onto it.
//! - [`Party`], [`Tally`]: who sends over it, and what it has done.
//! - [`QueueMeter`]: what waiting was like.
//!
//! Invariant: the same parties, link and seeds give the same events in the same order.

mod link;
mod party;
mod queue_meter;

pub(crate) use link::entering;
pub use link::{Entry, Link};
pub use party::{Party, Tally};
pub use queue_meter::QueueMeter;

use crate::end::End;
use segstream_base::{Duration, Instant};

/// A party of the run, and when it is there.
struct Member<'a> {
    party: Box<dyn Party + 'a>,
    entry: Option<u64>,
    stop: Instant,
    next_at: Instant,
}

impl Member<'_> {
    /// Looks when the next event of the party comes, unless it is gone by then.
    fn look_ahead(&mut self) {
        let next_at = self.party.next_at();
        self.next_at = if next_at < self.stop { next_at } else { Instant::FAR_FUTURE };
    }
}

/// Parties that share a [`Link`].
pub struct Shared<'a> {
    link: Link,
    members: Vec<Member<'a>>,
    now: Instant,
}

/// Why a shared run ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("party {party} (counted from 0) cannot go on: {end}")]
pub struct SharedError {
    /// Which party, in the order of [`Shared::add`].
    pub party: usize,
    /// Why.
    pub end: End,
}

impl<'a> Shared<'a> {
    /// A run over `link` without parties.
    pub const fn new(link: Link) -> Self {
        Self { link, members: Vec::new(), now: Instant::ZERO }
    }

    /// Adds a party that has joined the link. It starts when its entry says, and is gone at `stop`: from then on it sends
    /// nothing and hears nothing, and what it has under way stays so. Returns its number, counted from 0.
    pub fn add(&mut self, party: Box<dyn Party + 'a>, stop: Instant) -> usize {
        let next_at = if party.next_at() < stop { party.next_at() } else { Instant::FAR_FUTURE };
        let entry = party.entry_number();
        self.members.push(Member { party, entry, stop, next_at });
        self.members.len() - 1
    }

    /// The link.
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// How far the run is.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The party `number`.
    pub fn party(&self, number: usize) -> Option<&dyn Party> {
        self.members.get(number).map(|member| &*member.party)
    }

    /// The parties in the order in which they were added.
    pub fn parties(&self) -> impl Iterator<Item = &dyn Party> {
        self.members.iter().map(|member| &*member.party)
    }

    /// Runs every event up to `until` and those at it.
    ///
    /// # Errors
    /// Names the party that cannot go on.
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
            let Some((party, at)) = next.filter(|(_, at)| *at <= until) else { break };
            self.now = at;
            let Some(member) = self.members.get_mut(party) else { break };
            member.party.advance(at);
            member.look_ahead();
            if let Some(end) = member.party.failed() {
                return Err(SharedError { party, end });
            }
            self.hand_over()?;
        }
        self.now = until;
        Ok(())
    }

    /// Runs until `until` and calls `sample` after every `every` of it, with the run as it is then.
    ///
    /// # Errors
    /// Names the party that cannot go on.
    pub fn run_sampled(&mut self, until: Instant, every: Duration, mut sample: impl FnMut(&Self)) -> Result<(), SharedError> {
        while self.now < until {
            self.run_until((self.now + every.max(Duration::from_nanos(1))).min(until))?;
            sample(self);
        }
        Ok(())
    }

    /// Tells the parties what the link has decided of their packets.
    fn hand_over(&mut self) -> Result<(), SharedError> {
        while let Some(decided) = self.link.decided() {
            let found = self.members.iter_mut().enumerate().find(|(_, member)| member.entry == Some(decided.entry));
            let Some((party, member)) = found else { continue };
            member.party.decided(self.now, decided.ticket, &decided.passage);
            member.look_ahead();
            if let Some(end) = member.party.failed() {
                return Err(SharedError { party, end });
            }
        }
        Ok(())
    }

    /// Whose event comes first, and when; `None` when nothing is pending.
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
