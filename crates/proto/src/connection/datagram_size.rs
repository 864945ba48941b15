//! How large datagrams may be on this path: found by probes (RFC 8899, DPLPMTUD).
//!
//! Called by the connection when data waits to leave, and when a report or a response comes. A probe is a challenge
//! (PC) padded to the size in question; the response (PR) confirms the size. First the sizes that links usually have
//! are tried, the largest first; then halves of the interval between what is confirmed and what has failed. The size in use
//! is confirmed again now and then, sooner when something was lost.
//!
//! ```text
//!  confirmed                    failed
//!  1200 ..... 1472 ............ 8972 ............ 65,507
//!    data leaves in these |  not tried again for 600 s
//! ```
//!
//! Invariant: no datagram is larger than a confirmed probe, but for probes; a probe carries no data, waits for the rate like
//! data, and one is on its way at a time. What fails costs nothing but itself: 1200 bytes are always carried.

use super::Connection;
use crate::config::DATAGRAM_BYTES_MIN;
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_wire::Kind;
use segstream_wire::header::HEADER_BYTES;

/// Probes of one size that are lost in a row before the size is held too large: MAX_PROBES (RFC 8899 5.1.2).
const PROBES_MAX: u32 = 3;
/// When a probe that nothing is heard after is given up: PROBE_TIMER (RFC 8899 5.1.1). Why the shortest that is allowed: loss
/// is found by numbers, long before; the timer is for silence alone.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// The same on long paths, in round trips.
const PROBE_ROUND_TRIPS: u64 = 3;
/// When a size that has failed may be tried again: PMTU_RAISE_TIMER (RFC 8899 5.1.1).
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// How often the size in use is confirmed while data flows, and how often when something was lost.
const CONFIRM: Duration = Duration::from_secs(1);
const CONFIRM_SUSPECT: Duration = Duration::from_millis(100);
/// Confirming takes at most one part in so many of the rate.
const CONFIRM_SHARE: u64 = 128;
/// The search ends when what is confirmed and what has failed are so close.
const GRANULARITY: usize = 8;
/// What links carry in one IP packet: IP itself, jumbo frames, Ethernet.
const LINK_BYTES: [usize; 3] = [65_535, 9_000, 1_500];

/// What is asked: whether the path carries `size`. All tries have the same proof, so that a late answer counts too.
#[derive(Clone, Copy, Debug)]
struct Question {
    size: usize,
    proof: u64,
    /// Tries that were lost.
    lost: u32,
    /// The probe on its way: its number, and when it left.
    out: Option<(u64, Instant)>,
}

/// What bounds the search at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The largest datagram that is sensible at the rate in force.
    pub(super) sensible: usize,
    /// The rate in force, if any.
    pub(super) rate: Option<Bandwidth>,
    pub(super) round_trip: Duration,
}

/// The search for the largest datagram that the path carries.
#[derive(Debug)]
pub(super) struct Search {
    /// Headers of UDP and IP.
    below: usize,
    /// The largest datagram the peer takes.
    most: usize,
    /// The largest that is confirmed.
    size: usize,
    confirmed: Instant,
    /// The smallest that has failed, and when.
    failed: Option<(usize, Instant)>,
    question: Option<Question>,
    /// Probes in a row that nothing at all was heard after.
    silent: u32,
    /// Data was lost since the size in use was confirmed.
    suspect: bool,
}

impl Search {
    /// A search that has found nothing yet, on a path that takes `below` bytes around a datagram.
    pub(super) fn new(below: u64) -> Self {
        Self {
            below: below as usize,
            most: DATAGRAM_BYTES_MIN,
            size: DATAGRAM_BYTES_MIN,
            confirmed: Instant::ZERO,
            failed: None,
            question: None,
            silent: 0,
            suspect: false,
        }
    }

    /// The peer takes datagrams of at most `most` bytes.
    pub(super) fn limit(&mut self, most: usize) {
        self.most = most.clamp(DATAGRAM_BYTES_MIN, LINK_BYTES[0] - self.below);
    }

    /// The largest datagram that is known to be carried.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// The path is another one, of which nothing is known.
    pub(super) fn restart(&mut self) {
        *self = Self { most: self.most, ..Self::new(self.below as u64) };
    }

    /// The size of the probe that should leave now, if one should; data waits to leave.
    pub(super) fn wanted(&mut self, now: Instant, bounds: &Bounds) -> Option<usize> {
        if let Some(question) = &mut self.question {
            match question.out {
                Some((_, left)) if now.since(left) < PROBE_TIMER.max(bounds.round_trip * PROBE_ROUND_TRIPS) => return None,
                // Nothing was heard that left after it: that says nothing of its size.
                Some(_) => {
                    question.out = None;
                    self.on_silence();
                }
                None => {}
            }
        }
        self.failed = self.failed.filter(|&(_, at)| now.since(at) < RAISE_TIMER);
        // Why four times: what is lost lowers the rate, and the question why it is lost is to be answered.
        self.question = self.question.filter(|question| question.size <= bounds.sensible.saturating_mul(4));
        if let Some(question) = self.question {
            return Some(question.size);
        }
        let confirm = self.size.min(bounds.sensible);
        if confirm > DATAGRAM_BYTES_MIN && self.is_confirm_due(now, confirm, bounds.rate) {
            return Some(confirm);
        }
        self.candidate(bounds.sensible)
    }

    /// A probe of `size` has left as shipment `number`. A new question takes its proof from `draw`, which is returned.
    pub(super) fn on_sent(&mut self, now: Instant, size: usize, number: u64, draw: impl FnOnce() -> u64) -> u64 {
        let question = self.question.get_or_insert_with(|| Question { size, proof: draw(), lost: 0, out: None });
        question.out = Some((number, now));
        question.proof
    }

    /// The peer has answered; the number of the last probe it may have answered to, if it is an answer to one.
    pub(super) fn on_response(&mut self, now: Instant, proof: u64) -> Option<u64> {
        let question = self.question.take_if(|question| question.proof == proof)?;
        self.size = self.size.max(question.size);
        (self.confirmed, self.suspect, self.silent) = (now, false, 0);
        question.out.map(|(number, _)| number)
    }

    /// Shipment `echo` is the highest that has arrived: a probe more than `reorder` before it that was not answered is lost,
    /// as any shipment is.
    pub(super) fn on_echo(&mut self, now: Instant, echo: u64, reorder: u32) {
        let Some(question) = self.question.as_mut() else { return };
        let Some(_) = question.out.take_if(|(number, _)| echo > *number + u64::from(reorder)) else { return };
        self.silent = 0;
        question.lost += 1;
        if question.lost < PROBES_MAX {
            return;
        }
        self.failed = Some((question.size, now));
        if question.size <= self.size {
            // RFC 8899 4.3: a black hole. Smaller shipments get through.
            self.size = DATAGRAM_BYTES_MIN;
        }
        self.question = None;
    }

    /// Data was lost: perhaps because of its size.
    pub(super) const fn on_loss(&mut self) {
        self.suspect = true;
    }

    /// Nothing was heard after a probe. Why 1200 then: whatever the reason, those have the best chance. Why all is asked anew:
    /// the path that comes back may be another one.
    fn on_silence(&mut self) {
        self.silent += 1;
        if self.silent >= PROBES_MAX {
            self.restart();
        }
    }

    /// Whether `size` is to be confirmed again at `now`.
    fn is_confirm_due(&self, now: Instant, size: usize, rate: Option<Bandwidth>) -> bool {
        let since = now.since(self.confirmed);
        let share = |rate: Bandwidth| rate.transmit_time(Bytes::new((size + self.below) as u64), &mut Remainder::default()) * CONFIRM_SHARE;
        since >= if self.suspect { CONFIRM_SUSPECT } else { CONFIRM } && rate.is_none_or(|rate| since >= share(rate))
    }

    /// The sizes that links carry whole, the largest first, and no larger than the peer takes.
    fn links(&self) -> impl Iterator<Item = usize> {
        let (below, most) = (self.below, self.most);
        LINK_BYTES.into_iter().map(move |bytes| (bytes - below).min(most))
    }

    /// The next size to try, none of them larger than `sensible`; `None` when the search has come to its end, for now.
    fn candidate(&self, sensible: usize) -> Option<usize> {
        let end = self.failed.map_or(usize::MAX, |(failed, _)| failed - 1).min(sensible);
        if let Some(link) = self.links().find(|&link| link > self.size && link <= end) {
            return Some(link);
        }
        let (failed, _) = self.failed.filter(|(failed, _)| failed - self.size > GRANULARITY)?;
        // Why: sizes that lie between those of links are rare, so where one ends is asked first.
        let next = if self.links().any(|link| link == self.size) { self.size + GRANULARITY } else { self.size.midpoint(failed) };
        (next <= sensible).then_some(next)
    }
}

impl Connection {
    /// The bytes of a data shipment around its parts.
    fn around(&self) -> usize {
        HEADER_BYTES + self.session.seal_bytes()
    }

    /// The bytes of parts that fit the smallest datagram, which is what becomes of all of them when nothing larger gets through.
    pub(super) fn unit_room(&self) -> usize {
        DATAGRAM_BYTES_MIN - self.around()
    }

    /// The datagrams that data leaves in at present, at most.
    pub fn datagram_bytes(&self) -> usize {
        self.send.data_bytes() + self.around()
    }

    /// The largest datagram the path is known to carry, or that is allowed when the size is fixed. At low rates smaller ones
    /// are in use: [`Connection::datagram_bytes`].
    pub fn path_datagram_bytes(&self) -> usize {
        self.search.as_ref().map_or(self.control_bytes, Search::size)
    }

    /// Writes a probe if one should leave, which is then alone in its batch.
    pub(super) fn write_probe(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let around = self.around();
        let Some(search) = self.search.as_mut() else { return false };
        if !self.send.lets_data_leave(now) {
            return false;
        }
        let bounds = Bounds {
            sensible: self.send.sensible_bytes().saturating_add(around),
            rate: self.send.rate(),
            round_trip: self.send.round_trip(),
        };
        let wanted = search.wanted(now, &bounds);
        self.send.set_found_bytes(search.size() - around);
        let Some(size) = wanted else { return false };
        let number = self.counter.take();
        let proof = search.on_sent(now, size, number, || self.moved.draw());
        self.write_sized(Kind::Challenge, number, size, out, |body| {
            body.u64(proof);
            // Nobody looks at the padding: the buffer is zero.
            body.reserve(size - around - 8);
        });
        self.send.on_probe_sent(now, number, size as u64 + super::below_bytes(self.addresses.remote));
        true
    }

    /// A response has come from the peer's address: whether it answers a probe.
    pub(super) fn on_probe_answered(&mut self, now: Instant, proof: u64) {
        let around = self.around();
        let Some(search) = self.search.as_mut() else { return };
        if let Some(number) = search.on_response(now, proof) {
            self.send.on_probe_arrived(number);
        }
        self.send.set_found_bytes(search.size() - around);
    }

    /// The peer is on another path.
    pub(super) fn forget_datagram_size(&mut self) {
        let around = self.around();
        if let Some(search) = self.search.as_mut() {
            search.restart();
            self.send.set_found_bytes(search.size() - around);
        }
    }

    /// A report has come.
    pub(super) fn look_for_lost_probe(&mut self, now: Instant) {
        let around = self.around();
        let Some(search) = self.search.as_mut() else { return };
        if self.send.wants_again() {
            search.on_loss();
        }
        if let Some(echo) = self.send.echo {
            search.on_echo(now, echo, self.send.reorder);
        }
        self.send.set_found_bytes(search.size() - around);
    }
}

#[cfg(test)]
#[path = "datagram_size_tests.rs"]
mod tests;
