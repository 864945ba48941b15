//! Path MTU discovery by probes (RFC 8899, DPLPMTUD).
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

use crate::config::DATAGRAM_BYTES_MIN;
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, ShipmentNumber};

/// Probes of one size that are lost in a row before the size is held too large: MAX_PROBES (RFC 8899 5.1.2).
const PROBES_MAX: u32 = 3;
/// When a probe times out: PROBE_TIMER (RFC 8899 5.1.1). Why the shortest that is allowed: loss is detected by numbers, long
/// before; the timer only matters when nothing arrives at all.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// The same on long paths, in round trips.
const PROBE_ROUND_TRIPS: u64 = 3;
/// When a size that has failed may be tried again: PMTU_RAISE_TIMER (RFC 8899 5.1.1).
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// How often the size in use is confirmed while data flows, and how often when something was lost.
const CONFIRMATION_TIMER: Duration = Duration::from_secs(1);
const CONFIRMATION_SUSPECT: Duration = Duration::from_millis(100);
/// Confirmation probes use at most one part in so many of the rate.
const CONFIRMATION_SHARE: u64 = 128;
/// The search ends when confirmed and failed size differ by no more than this.
const GRANULARITY: usize = 8;
/// What links carry in one IP packet: IP itself, jumbo frames, Ethernet.
const COMMON_MTUS: [usize; 3] = [65_535, 9_000, 1_500];

/// The sizes of datagrams on a path.
#[derive(Debug)]
pub(crate) struct Pmtu {
    /// The search for larger datagrams, where it is enabled.
    pub(crate) search: Option<PmtuSearch>,
    /// The datagrams that all but data and probes leave in, at most; data too when their size is fixed.
    pub(crate) control_bytes: usize,
    /// Bytes of parts a shipment may carry at present.
    pub(crate) data_bytes: usize,
    /// Bytes of parts the path is known to carry; `None` when the size is fixed.
    pub(crate) body_bytes: Option<usize>,
    /// Bytes of parts that a shipment may carry at the rate in force.
    pub(crate) rate_capped_bytes: usize,
}

impl Pmtu {
    /// Shipments carry `body_bytes` of parts or frames, and no others are searched for.
    pub(crate) const fn fixed(body_bytes: usize) -> Self {
        Self { search: None, control_bytes: body_bytes, data_bytes: body_bytes, body_bytes: None, rate_capped_bytes: body_bytes }
    }

    /// The same limits on another path, of which nothing is known.
    pub(crate) fn restarted(mut self) -> Self {
        if let Some(search) = &mut self.search {
            search.restart();
        }
        self
    }
}

/// Probes of one `size`. All tries have the same token, so that a late response counts too.
#[derive(Clone, Copy, Debug)]
struct ProbedSize {
    size: usize,
    token: u64,
    /// Tries that were lost.
    lost: u32,
    /// The probe on its way: its number, and when it left.
    out: Option<(ShipmentNumber, Instant)>,
}

/// What bounds the search at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The largest datagram that is that the rate in force allows.
    pub(crate) rate_cap: usize,
    /// The rate in force, if any.
    pub(crate) rate: Option<Bandwidth>,
    pub(crate) round_trip: Duration,
}

/// The search for the largest datagram that the path carries.
#[derive(Debug)]
pub(crate) struct PmtuSearch {
    /// Headers of UDP and IP.
    below: usize,
    /// The largest datagram the peer takes.
    most: usize,
    /// The largest that is confirmed.
    size: usize,
    confirmed: Instant,
    /// The smallest that has failed, and when.
    failed: Option<(usize, Instant)>,
    probed: Option<ProbedSize>,
    /// Consecutive probes that timed out in silence.
    unanswered: u32,
    /// Data was lost since the size in use was confirmed.
    suspect: bool,
}

impl PmtuSearch {
    /// A search that has found nothing yet, on a path that takes `below` bytes around a datagram.
    pub(crate) fn new(below: u64) -> Self {
        Self {
            below: below as usize,
            most: DATAGRAM_BYTES_MIN,
            size: DATAGRAM_BYTES_MIN,
            confirmed: Instant::ZERO,
            failed: None,
            probed: None,
            unanswered: 0,
            suspect: false,
        }
    }

    /// The peer takes datagrams of at most `most` bytes.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most.clamp(DATAGRAM_BYTES_MIN, COMMON_MTUS[0] - self.below);
    }

    /// The largest datagram that is known to be carried.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// Connection migration: restarts the search on the new path.
    pub(crate) fn restart(&mut self) {
        *self = Self { most: self.most, ..Self::new(self.below as u64) };
    }

    /// The size of the probe that should leave now, if one should; data waits to leave.
    pub(crate) fn next_probe(&mut self, now: Instant, bounds: &Bounds) -> Option<usize> {
        if let Some(probed) = &mut self.probed {
            match probed.out {
                Some((_, left)) if now.since(left) < PROBE_TIMER.max(bounds.round_trip * PROBE_ROUND_TRIPS) => return None,
                // No echo of anything sent after it: that says nothing about its size.
                Some(_) => {
                    probed.out = None;
                    self.on_probe_timeout();
                }
                None => {}
            }
        }
        self.failed = self.failed.filter(|&(_, at)| now.since(at) < RAISE_TIMER);
        // Why four times: losses caused by the size lower the rate, and the search must still find out that the size is the cause.
        self.probed = self.probed.filter(|probed| probed.size <= bounds.rate_cap.saturating_mul(4));
        if let Some(probed) = self.probed {
            return Some(probed.size);
        }
        let confirm = self.size.min(bounds.rate_cap);
        if confirm > DATAGRAM_BYTES_MIN && self.is_confirm_due(now, confirm, bounds.rate) {
            return Some(confirm);
        }
        let candidate = self.candidate(bounds.rate_cap);
        debug_assert!(candidate.is_none_or(|size| size > self.size && size <= bounds.rate_cap), "{candidate:?} after {}", self.size);
        debug_assert!(self.size >= DATAGRAM_BYTES_MIN, "{} bytes are carried by every path", self.size);
        candidate
    }

    /// A probe of `size` has left as shipment `number`. A new question takes its token from `random`, which is returned.
    pub(crate) fn on_sent(&mut self, now: Instant, size: usize, number: ShipmentNumber, random: impl FnOnce() -> u64) -> u64 {
        let probed = self.probed.get_or_insert_with(|| ProbedSize { size, token: random(), lost: 0, out: None });
        probed.out = Some((number, now));
        probed.token
    }

    /// The peer has answered; the number of the last probe it may have answered to, if it is an answer to one.
    pub(crate) fn on_response(&mut self, now: Instant, token: u64) -> Option<ShipmentNumber> {
        let probed = self.probed.take_if(|probed| probed.token == token)?;
        self.size = self.size.max(probed.size);
        (self.confirmed, self.suspect, self.unanswered) = (now, false, 0);
        probed.out.map(|(number, _)| number)
    }

    /// Shipment `echo` is the highest that has arrived: a probe more than `reorder` before it that was not answered is lost,
    /// as any shipment is.
    pub(crate) fn on_echo(&mut self, now: Instant, echo: ShipmentNumber, reorder: u32) {
        let Some(probed) = self.probed.as_mut() else { return };
        let Some(_) = probed.out.take_if(|(number, _)| echo > *number + u64::from(reorder)) else { return };
        self.unanswered = 0;
        probed.lost += 1;
        if probed.lost < PROBES_MAX {
            return;
        }
        self.failed = Some((probed.size, now));
        if probed.size <= self.size {
            // RFC 8899 4.3: a black hole. Smaller shipments get through.
            self.size = DATAGRAM_BYTES_MIN;
        }
        self.probed = None;
    }

    /// Data was lost, perhaps because of its size: confirms the size soon.
    pub(crate) const fn on_loss(&mut self) {
        self.suspect = true;
    }

    /// A probe timed out in silence. Why 1200 then: this size is most likely to pass, whatever the cause. Why the search starts
    /// over: the path after the outage may be another one.
    fn on_probe_timeout(&mut self) {
        self.unanswered += 1;
        if self.unanswered >= PROBES_MAX {
            self.restart();
        }
    }

    /// Whether `size` is to be confirmed again at `now`.
    fn is_confirm_due(&self, now: Instant, size: usize, rate: Option<Bandwidth>) -> bool {
        let since = now.since(self.confirmed);
        let share =
            |rate: Bandwidth| rate.transmit_time(Bytes::new((size + self.below) as u64), &mut Remainder::default()) * CONFIRMATION_SHARE;
        since >= if self.suspect { CONFIRMATION_SUSPECT } else { CONFIRMATION_TIMER } && rate.is_none_or(|rate| since >= share(rate))
    }

    /// The sizes that links carry whole, the largest first, and no larger than the peer takes.
    fn links(&self) -> impl Iterator<Item = usize> {
        let (below, most) = (self.below, self.most);
        COMMON_MTUS.into_iter().map(move |bytes| (bytes - below).min(most))
    }

    /// The next size to try, none of them larger than `rate_cap`; `None` when the search has come to its end, for now.
    fn candidate(&self, rate_cap: usize) -> Option<usize> {
        let end = self.failed.map_or(usize::MAX, |(failed, _)| failed - 1).min(rate_cap);
        if let Some(link) = self.links().find(|&link| link > self.size && link <= end) {
            return Some(link);
        }
        let (failed, _) = self.failed.filter(|(failed, _)| failed - self.size > GRANULARITY)?;
        // Why: sizes that lie between those of links are rare, so where one ends is asked first.
        let next = if self.links().any(|link| link == self.size) { self.size + GRANULARITY } else { self.size.midpoint(failed) };
        (next <= rate_cap).then_some(next)
    }
}

#[cfg(test)]
#[path = "pmtu_tests.rs"]
mod tests;
