//! State exchanges: rate samples from TXS and their acknowledgments (HT 3.2).
//!
//! Some TXS request that their arrival is reported. Two acknowledged ones give an [`Exchange`]: the times between their departures and
//! arrivals, and what was sent, received, lost and marked between them. All counters are cumulative, so that the next acknowledged
//! exchange makes up for lost TXS and reports.
//!
//! Called by the half. Invariant: at most [`KEPT`] departures are kept; an arrival counts once, and never if it is older than the newest
//! acknowledged one.

use segstream_base::{Duration, ExchangeNumber, Instant, ShipmentNumber};
use segstream_blocks::congestion::{Exchange, Limit};
use segstream_wire::report::Arrived;
use std::collections::VecDeque;

/// If more exchanges than this in a row were lost, there was an outage.
const OUTAGE: u64 = 4;

/// The maximum number of unacknowledged exchanges that are kept.
const KEPT: usize = 512;
/// The distance of exchanges without data doubles so often, to half a round trip, and not beyond the most that controllers space them by: those
/// at the end of a full queue are lost, and the next one after them must not be long in coming.
const DOUBLINGS_MAX: u32 = 3;
const REPEATED_WITHIN: Duration = Duration::from_millis(300);
/// And their distance grows only while the first unacknowledged one is not older than this.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// The maximum number of outstanding probes of the datagram size that are kept.
const PROBES_MAX: usize = 16;

/// An exchange that has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    sync: ExchangeNumber,
    /// Counts the exchanges.
    index: u64,
    pub(crate) at: Instant,
    /// Its shipment number.
    pub(crate) number: ShipmentNumber,
    /// Everything that had left by then, the exchange included, in IP bytes.
    pub(crate) bytes: u64,
    /// For how long there had been nothing that could leave, ever.
    limited: Limited,
}

/// For how long there was nothing that could leave: in all, and because of the receiver's window.
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    total: Duration,
    by_window: Duration,
}

impl Limited {
    /// With another `span` of the same kind.
    fn and(self, span: Duration, limit: Limit) -> Self {
        let by_window = if limit == Limit::Window { self.by_window + span } else { self.by_window };
        Self { total: self.total + span, by_window }
    }

    /// What it has become since it was `before`.
    fn since(self, before: Self) -> Self {
        Self { total: self.total.saturating_sub(before.total), by_window: self.by_window.saturating_sub(before.by_window) }
    }

    /// What held data back, if anything did for most of `alpha`.
    fn most_of(self, alpha: Duration) -> Option<Limit> {
        let limit = if self.by_window > self.total / 2 { Limit::Window } else { Limit::Application };
        (self.total > alpha / 2).then_some(limit)
    }
}

/// The newest acknowledged exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedExchange {
    pub(crate) departure: Departure,
    pub(crate) arrived: Arrived,
}

/// The exchanges of a sender.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    departures: VecDeque<Departure>,
    acked: Option<AckedExchange>,
    /// The highest count of losses so far: spurious losses decrease the peer's count, and must not be counted twice.
    lost_max: u64,
    /// Losses of an outage that are not declared lost yet.
    outage_losses_pending: u64,
    count: u64,
    /// When the last one left, and as which shipment.
    last: Option<(Instant, ShipmentNumber)>,
    /// How many in turn have left without data before them since the path last delivered something.
    repeated: u32,
    /// Probes that are not known to have arrived: number and IP bytes; and how many of those before them were lost.
    probes: VecDeque<(ShipmentNumber, u64)>,
    probes_lost: u64,
    sent_bytes: u64,
    /// What of that had left before this path began.
    sent_before: u64,
    /// Since when nothing can leave that waits for no more than the rate, and for how long that was so before.
    limited_since: Option<(Instant, Limit)>,
    limited: Limited,
}

impl Exchanges {
    /// A shipment of `bytes` IP bytes has left.
    #[inline]
    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// A probe of the datagram size has left as shipment `number`.
    pub(crate) fn on_probe(&mut self, number: ShipmentNumber, bytes: u64) {
        if self.probes.len() >= PROBES_MAX {
            self.probes.pop_front();
        }
        self.probes.push_back((number, bytes));
        self.on_sent(bytes);
    }

    /// The probe in shipment `number` has arrived.
    pub(crate) fn on_probe_arrived(&mut self, number: ShipmentNumber) {
        self.probes.retain(|probe| probe.0 != number);
    }

    /// An exchange with shipment number `acked` has arrived: a probe before it that has not is removed from the counters. It was lost because
    /// of its size, which is not a congestion signal (RFC 8899 3, RFC 9000 14.4).
    fn discount_lost_probes(&mut self, acked: ShipmentNumber) {
        while let Some(&(number, bytes)) = self.probes.front().filter(|probe| probe.0 < acked) {
            self.probes.pop_front();
            self.probes_lost += 1;
            self.sent_bytes -= bytes;
            for departure in self.departures.iter_mut().filter(|departure| departure.number > number) {
                departure.bytes -= bytes;
            }
        }
    }

    /// What holds data back besides the rate, if anything does.
    #[inline]
    pub(crate) fn note_limit(&mut self, now: Instant, limit: Option<Limit>) {
        if self.limited_since.map(|(_, limit)| limit) == limit {
            return;
        }
        if let Some((since, before)) = self.limited_since {
            self.limited = self.limited.and(now.since(since), before);
        }
        self.limited_since = limit.map(|limit| (now, limit));
    }

    /// The exchange `sync` has left as shipment `number`; `data` was the last shipment of data.
    pub(crate) fn on_departure(&mut self, now: Instant, sync: ExchangeNumber, number: ShipmentNumber, data: Option<ShipmentNumber>) {
        self.repeated = if self.has_left_since(data) { 0 } else { self.repeated.saturating_add(1) };
        if self.departures.len() >= KEPT {
            // Why the second: the first says since when nothing was acknowledged.
            self.departures.remove(1);
        }
        let limited = self.limited_since.map_or(self.limited, |(since, limit)| self.limited.and(now.since(since), limit));
        let departure = Departure { sync, index: self.count, at: now, number, bytes: self.sent_bytes, limited };
        debug_assert!(self.departures.back().is_none_or(|last| last.sync < sync && last.number < number && last.bytes <= departure.bytes));
        self.departures.push_back(departure);
        debug_assert!(self.departures.len() <= KEPT && self.probes.len() <= PROBES_MAX);
        self.count += 1;
        self.last = Some((now, number));
    }

    /// An exchange is acknowledged; `None` if that is not new, or there is no earlier one to compare with.
    /// `reorder` is the reordering threshold R.
    pub(crate) fn on_arrival(&mut self, arrived: &Arrived, rtt: Duration, reorder: u32) -> Option<Exchange> {
        let found = self.departures.binary_search_by_key(&arrived.sync, |departure| departure.sync).ok()?;
        self.discount_lost_probes(self.departures.get(found)?.number);
        let departure = *self.departures.get(found)?;
        self.departures.drain(..=found);
        let before = self.acked.replace(AckedExchange { departure, arrived: *arrived });
        let lost_before = self.lost_max;
        self.lost_max = lost_before.max(arrived.lost.saturating_sub(self.probes_lost));
        let AckedExchange { departure: from, arrived: before } = before?;
        let alpha = departure.at.since(from.at);
        let limited = departure.limited.since(from.limited);
        let exchanges = departure.index - from.index;
        let lost = self.lost_max - lost_before;
        // Why: the receiver declares a shipment lost R shipments later. The last losses of an outage are reported after the first exchange
        // that gets through, and are not losses of the path after the outage.
        let belated = lost.min(core::mem::take(&mut self.outage_losses_pending));
        debug_assert!(departure.sync > from.sync && departure.number > from.number && departure.bytes >= from.bytes, "{departure:?}");
        if exchanges > OUTAGE {
            self.outage_losses_pending = u64::from(reorder);
        }
        Some(Exchange {
            sent_at: departure.at,
            alpha,
            beta: Duration::from_nanos(arrived.at.saturating_sub(before.at)),
            exchanges,
            sent_bytes: departure.bytes - from.bytes,
            received_bytes: arrived.bytes.saturating_sub(before.bytes),
            shipments: departure.number - from.number,
            lost: lost - belated,
            marked: arrived.marked.saturating_sub(before.marked),
            // Limit: clocks that are 292 years apart.
            delay: (arrived.at as i64).wrapping_sub(departure.at.as_nanos() as i64),
            rtt,
            limited: limited.most_of(alpha),
            limited_for: limited.total,
        })
    }

    /// The path changes: exchanges of the previous path are not measurements of this one, even if they are acknowledged later (RFC 9000 9.4).
    /// The previous path had the reordering threshold `reorder`.
    pub(crate) fn on_path_change(&mut self, reorder: u32) {
        self.departures.clear();
        self.probes.clear();
        self.acked = None;
        self.last = None;
        // Why: its last losses come to light so many shipments later, as after an outage.
        self.outage_losses_pending = u64::from(reorder);
        self.sent_before = self.sent_bytes;
    }

    /// The newest acknowledged exchange of this path.
    pub(crate) const fn acked(&self) -> Option<&AckedExchange> {
        self.acked.as_ref()
    }

    /// All that has left, on whichever path, in IP bytes, without lost probes.
    #[inline]
    pub(crate) const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Probes of the datagram size that were declared lost.
    pub(crate) const fn probes_lost(&self) -> u64 {
        self.probes_lost
    }

    /// When the last exchange left.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.last.map(|(at, _)| at)
    }

    /// A report has told that the path delivers.
    pub(crate) const fn on_progress(&mut self) {
        self.repeated = 0;
    }

    /// Whether `data`, the last shipment of data, has left since the last exchange.
    fn has_left_since(&self, data: Option<ShipmentNumber>) -> bool {
        data.is_some_and(|data| self.last.is_none_or(|(_, number)| data > number))
    }

    /// The spacing to the next exchange where the cap in flight blocks data and exchanges are `period` apart otherwise; `data` was the last
    /// shipment of data. From the second exchange on without data, and without progress of the path, it doubles.
    ///
    /// Why: at the beginning on a slow path the rate is a guess. Until the path has answered, exchanges at that rate would fill its queue,
    /// though what they could tell is told by those that are on their way. Why only while there are answers: whoever gives none is found by
    /// the number of exchanges.
    pub(crate) fn blocked_period(&self, period: Duration, data: Option<ShipmentNumber>) -> Duration {
        // Why in this order: mostly data has left, and this is asked for every shipment.
        if self.repeated == 0 || self.has_left_since(data) || self.is_silent() {
            return period;
        }
        (period * (1 << self.repeated.min(DOUBLINGS_MAX))).min(REPEATED_WITHIN).max(period)
    }

    /// Whether the receiver acknowledges no exchanges: none ever, or none for long.
    fn is_silent(&self) -> bool {
        let is_unanswered = |last: Instant| self.unacked().is_some_and(|(_, first)| last.since(first) > ANSWERED_WITHIN);
        self.acked.is_none() || self.last().is_some_and(is_unanswered)
    }

    /// The number of unacknowledged exchanges, and when the first of them left.
    pub(crate) fn unacked(&self) -> Option<(u32, Instant)> {
        let first = self.departures.front()?;
        Some((u32::try_from(self.departures.len()).unwrap_or(u32::MAX), first.at))
    }

    /// Bytes in flight on this path, in IP bytes. Limit: only exchanges acknowledge, so everything sent since the last acknowledged one counts.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.sent_bytes - self.acked.as_ref().map_or(self.sent_before, |acked| acked.departure.bytes)
    }

    /// Whether an acknowledged exchange covers shipment `number`.
    #[inline]
    pub(crate) fn covers(&self, number: ShipmentNumber) -> bool {
        self.acked.as_ref().is_some_and(|acked| acked.departure.number > number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn arrived(sync: u64, at_ms: u64, bytes: u64, lost: u64) -> Arrived {
        Arrived { sync: ExchangeNumber(sync), at: at_ms * 1_000_000, bytes, shipments: 0, lost, marked: 0 }
    }

    #[test]
    fn what_lost_exchanges_would_have_told_is_in_the_next() {
        let mut exchanges = Exchanges::default();
        for turn in 0..4u64 {
            exchanges.on_sent(1000);
            exchanges.on_departure(at(turn * 10), ExchangeNumber(turn * 2), ShipmentNumber(turn * 5), None);
        }
        let rtt = Duration::from_millis(40);
        assert_eq!(exchanges.on_arrival(&arrived(0, 1020, 900, 0), rtt, 3).map(|exchange| exchange.exchanges), None);
        let exchange = exchanges.on_arrival(&arrived(6, 1055, 3900, 2), rtt, 3).expect("there is one before it");
        assert_eq!((exchange.alpha, exchange.beta), (Duration::from_millis(30), Duration::from_millis(35)));
        assert_eq!((exchange.exchanges, exchange.sent_bytes, exchange.received_bytes), (3, 3000, 3000));
        assert_eq!((exchange.shipments, exchange.lost, exchange.delay), (15, 2, 1_025_000_000));
        assert!(exchanges.on_arrival(&arrived(4, 1060, 3900, 2), rtt, 3).is_none(), "older than what is known");
        assert_eq!(exchanges.unacked(), None);
    }

    #[test]
    fn a_probe_that_is_lost_is_as_if_it_had_never_left() {
        let mut exchanges = Exchanges::default();
        let mut acked = |sync: u64, received, lost, probe: Option<bool>| {
            exchanges.on_sent(1000);
            if let Some(arrives) = probe {
                exchanges.on_probe(ShipmentNumber(sync * 10 - 1), 9000);
                if arrives {
                    exchanges.on_probe_arrived(ShipmentNumber(sync * 10 - 1));
                }
            }
            exchanges.on_departure(at(sync), ExchangeNumber(sync), ShipmentNumber(sync * 10), None);
            let in_flight = exchanges.in_flight();
            let exchange = exchanges.on_arrival(&arrived(sync, sync, received, lost), Duration::ZERO, 3)?;
            Some((in_flight, exchange.sent_bytes, exchange.received_bytes, exchange.lost))
        };
        assert_eq!(acked(1, 1000, 0, None), None);
        assert_eq!(acked(2, 11_000, 0, Some(true)), Some((10_000, 10_000, 10_000, 0)));
        // Its loss comes to light later than that of its bytes; what else was lost counts.
        assert_eq!(acked(3, 12_000, 0, Some(false)), Some((10_000, 1000, 1000, 0)));
        assert_eq!(acked(4, 13_000, 1, None), Some((1000, 1000, 1000, 0)));
        assert_eq!(acked(5, 13_000, 2, None), Some((1000, 1000, 0, 1)));
    }

    #[test]
    fn what_came_after_all_is_not_lost_twice() {
        let mut exchanges = Exchanges::default();
        let mut lost = |sync, lost| {
            exchanges.on_departure(at(sync), ExchangeNumber(sync), ShipmentNumber(sync), None);
            exchanges.on_arrival(&arrived(sync, sync, 0, lost), Duration::ZERO, 3).map_or(0, |exchange| exchange.lost)
        };
        assert_eq!([lost(0, 0), lost(1, 5), lost(2, 1), lost(3, 4), lost(4, 7)], [0, 5, 0, 0, 2]);
    }

    #[test]
    fn what_an_outage_has_lost_is_not_held_against_the_path_after_it() {
        let mut exchanges = Exchanges::default();
        let mut acked = |sync, lost| {
            exchanges.on_departure(at(sync), ExchangeNumber(sync), ShipmentNumber(sync), None);
            exchanges.on_arrival(&arrived(sync, sync, 0, lost), Duration::ZERO, 3).map(|exchange| exchange.lost)
        };
        assert_eq!((acked(0, 0), acked(1, 0)), (None, Some(0)));
        for sync in 2..20 {
            exchanges.on_departure(at(sync), ExchangeNumber(sync), ShipmentNumber(sync), None);
        }
        let mut acked = |sync, lost| {
            exchanges.on_departure(at(sync), ExchangeNumber(sync), ShipmentNumber(sync), None);
            exchanges.on_arrival(&arrived(sync, sync, 0, lost), Duration::ZERO, 3).map(|exchange| exchange.lost)
        };
        assert_eq!([acked(20, 15), acked(21, 20), acked(22, 22)], [Some(15), Some(2), Some(2)]);
    }

    #[test]
    fn without_data_between_them_blocked_exchanges_leave_at_growing_distances() {
        let (mut exchanges, period) = (Exchanges::default(), Duration::from_millis(5));
        exchanges.on_departure(at(0), ExchangeNumber(0), ShipmentNumber(0), None);
        exchanges.on_departure(at(1), ExchangeNumber(1), ShipmentNumber(1), None);
        assert_eq!(exchanges.blocked_period(period, None), period, "nothing is acknowledged yet");
        assert!(exchanges.on_arrival(&arrived(0, 1, 0, 0), Duration::ZERO, 3).is_none());
        let mut number = 2;
        let mut spacing_ms = |data: bool, data_since: bool| {
            let last_data = data.then_some(ShipmentNumber(number));
            number += 2;
            exchanges.on_departure(at(number), ExchangeNumber(number), ShipmentNumber(number - 1), last_data);
            let last_data = if data_since { Some(ShipmentNumber(number)) } else { last_data };
            exchanges.blocked_period(period, last_data).as_millis()
        };
        assert_eq!(spacing_ms(true, false), 5);
        assert_eq!([(); 8].map(|()| spacing_ms(false, false)), [10, 20, 40, 40, 40, 40, 40, 40]);
        assert_eq!(spacing_ms(false, true), 5, "data has left");
        assert_eq!((spacing_ms(true, false), spacing_ms(false, false)), (5, 10));
        let within = [(90, 180), (200, 300), (400, 400)];
        assert!(within.iter().all(|&(ms, apart)| exchanges.blocked_period(Duration::from_millis(ms), None).as_millis() == apart));
        assert!(exchanges.blocked_period(period, None) > period);
        exchanges.on_progress();
        assert_eq!(exchanges.blocked_period(period, None), period, "the path has delivered something");
        exchanges.on_departure(at(2500), ExchangeNumber(2500), ShipmentNumber(2500), None);
        assert_eq!(exchanges.blocked_period(period, None), period, "nothing is acknowledged any more");
    }

    #[test]
    fn an_exchange_is_limited_when_for_most_of_it_nothing_could_leave() {
        let mut exchanges = Exchanges::default();
        let mut limited = |sync, idle_from: u64| {
            exchanges.note_limit(at(sync * 10 - 10), None);
            exchanges.note_limit(at(sync * 10 - 10 + idle_from), Some(Limit::Application));
            exchanges.on_departure(at(sync * 10), ExchangeNumber(sync), ShipmentNumber(sync), None);
            exchanges.on_arrival(&arrived(sync, sync, 0, 0), Duration::ZERO, 3).map(|exchange| exchange.limited.is_some())
        };
        assert_eq!([limited(1, 0), limited(2, 2), limited(3, 8), limited(4, 10)], [None, Some(true), Some(false), Some(false)]);
    }

    #[test]
    fn an_exchange_tells_whether_the_application_or_the_window_was_the_limit() {
        let mut exchanges = Exchanges::default();
        let mut limited = |sync, window_until: u64| {
            exchanges.note_limit(at(sync * 10 - 10), Some(Limit::Window));
            exchanges.note_limit(at(sync * 10 - 10 + window_until), Some(Limit::Application));
            exchanges.on_departure(at(sync * 10), ExchangeNumber(sync), ShipmentNumber(sync), None);
            exchanges.on_arrival(&arrived(sync, sync, 0, 0), Duration::ZERO, 3).and_then(|exchange| exchange.limited)
        };
        assert_eq!([limited(1, 0), limited(2, 2), limited(3, 8)], [None, Some(Limit::Application), Some(Limit::Window)]);
    }

    #[test]
    fn what_left_on_the_path_before_is_no_measure_of_this_one() {
        let mut exchanges = Exchanges::default();
        let leave = |exchanges: &mut Exchanges, sync: u64| {
            exchanges.on_sent(1000);
            exchanges.on_departure(at(sync), ExchangeNumber(sync), ShipmentNumber(sync), None);
        };
        let acked = |exchanges: &mut Exchanges, sync, lost| {
            exchanges.on_arrival(&arrived(sync, sync, 0, lost), Duration::ZERO, 3).map(|exchange| (exchange.sent_bytes, exchange.lost))
        };
        leave(&mut exchanges, 0);
        leave(&mut exchanges, 1);
        assert_eq!((acked(&mut exchanges, 0, 0), acked(&mut exchanges, 1, 2)), (None, Some((1000, 2))));
        leave(&mut exchanges, 2);
        exchanges.on_probe(ShipmentNumber(9), 9000);
        exchanges.on_path_change(3);
        assert_eq!((exchanges.in_flight(), exchanges.unacked(), exchanges.last()), (0, None, None));
        leave(&mut exchanges, 3);
        leave(&mut exchanges, 4);
        assert_eq!((acked(&mut exchanges, 2, 7), exchanges.in_flight()), (None, 2000), "it left on the path before");
        // Of those before the first exchange nothing counts, nor of those whose loss comes to light just behind it.
        assert_eq!((acked(&mut exchanges, 3, 9), acked(&mut exchanges, 4, 13)), (None, Some((1000, 1))));
    }

    #[test]
    fn an_outage_keeps_a_bounded_memory_and_its_beginning() {
        let mut exchanges = Exchanges::default();
        for turn in 0..5000 {
            exchanges.on_departure(at(turn), ExchangeNumber(turn), ShipmentNumber(turn), None);
        }
        assert_eq!(exchanges.unacked(), Some((KEPT as u32, at(0))));
        exchanges.on_arrival(&arrived(4999, 1, 1, 1), Duration::ZERO, 3);
        assert_eq!(exchanges.unacked(), None);
    }
}
