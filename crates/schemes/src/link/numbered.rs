//! What a link tells of numbered packets.
//!
//! Called by the tests of TCP and adaptive acknowledgment.

use super::Link;
use crate::numbered_packet::Forward;
use segstream_base::Instant;
use segstream_base::halves::{Receiver, Sender};

impl<S, R> Link<S, R>
where
    S: Sender<Forward = Forward, Feedback: PartialEq>,
    R: Receiver<Forward = Forward, Feedback = S::Feedback>,
{
    /// The numbers of what left, in the order in which it did.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.sent.iter().map(|sent| sent.0.sequence())
    }

    /// When `sequence` left for the `time`-th time, counted from 0.
    pub(crate) fn left(&self, sequence: u32, time: usize) -> Instant {
        let times = self.times_of(|packet| packet.sequence() == sequence);
        *times.get(time).unwrap_or_else(|| panic!("{sequence} never left so often"))
    }

    /// How often `sequence` left.
    pub(crate) fn times(&self, sequence: u32) -> usize {
        self.numbers().filter(|number| *number == sequence).count()
    }
}
