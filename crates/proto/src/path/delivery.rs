//! What each report acknowledges, for a report-clocked congestion controller: bytes delivered and lost, the delivery
//! rate, and bytes in flight.
//!
//! A report echoes the highest shipment number that has arrived, so all that left up to then is delivered or lost. Which of it is
//! lost comes with state exchanges ([`super::exchange`]), sixteen a round trip: they count every loss, of tolerated units too.
//!
//! Called by the half; there only while such a controller is. Why not a record for each shipment: what leaves at one time tells
//! the same, so shipments that leave in a batch share one. Nothing is allocated once warm.
//!
//! Invariant: at most [`BATCHES`] batches are kept; bytes are delivered or lost once.
//! Source: draft-ietf-ccwg-bbr 4.1.1 (delivery rate), RFC 9002 7.3.2 (one recovery a round trip), RFC 6298 (timeouts).
//!
//! Limit: a lost shipment counts as long as the mean of those that left with it, and as delivered until its loss is told.

use segstream_base::{Duration, Instant, ShipmentNumber};
use segstream_blocks::congestion::rate_sample::{Deliveries, Departure};
use segstream_blocks::congestion::{CongestionEvent, Exchange, Limit, Report};
use segstream_blocks::rtt::Rtt;
use std::collections::VecDeque;

/// The most batches kept until they are echoed. Beyond that, shipments join the newest batch.
const BATCHES: usize = 512;
/// The least that is added to a round trip for the timeout, Linux's instead of the second of RFC 6298 2.4.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(200);
/// The most doublings of the timeout (exponential back-off).
const DOUBLINGS: u32 = 16;

/// Consecutive shipments that left at one time.
#[derive(Clone, Copy, Debug)]
struct Batch {
    first: ShipmentNumber,
    last: ShipmentNumber,
    /// All that had left before the first, and by the last.
    bytes_before: u64,
    bytes: u64,
    departure: Departure,
}

impl Batch {
    /// All that had left by shipment `number`, if those of the batch are alike.
    fn bytes_by(&self, number: ShipmentNumber) -> u64 {
        let (sent, shipments) = (self.bytes - self.bytes_before, self.last.next() - self.first);
        let part = u128::from(sent) * u128::from(number.min(self.last).next() - self.first) / u128::from(shipments);
        self.bytes_before + part as u64
    }
}

/// Delivery accounting of one path.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    batches: VecDeque<Batch>,
    deliveries: Deliveries,
    /// The last shipment that left, and all that had left by it.
    last: ShipmentNumber,
    sent_bytes: u64,
    /// The highest echo, and all that had left by it.
    echo: Option<ShipmentNumber>,
    echoed_bytes: u64,
    /// Lost bytes that were counted as delivered.
    overcounted: u64,
    /// Losses and marks of exchanges since the last report.
    lost: u64,
    marked: u64,
    packets: u64,
    /// The recovery period lasts until this shipment or a later one is echoed.
    recovery: Option<ShipmentNumber>,
    /// Marks are not answered again before this shipment is echoed.
    marks_from: ShipmentNumber,
    limited: Option<Limit>,
    /// When an echo came last, and how many timeouts have expired since.
    echoed_at: Instant,
    timeouts: u32,
}

impl Delivery {
    /// Data or state has left in shipment `number`, `bytes` IP bytes.
    ///
    /// Why nothing else counts: reports and probes of the datagram size are not governed by the cap, as acknowledgments are not
    /// (RFC 9002 7).
    pub(crate) fn on_sent(&mut self, now: Instant, number: ShipmentNumber, bytes: u64) {
        debug_assert!(self.batches.back().is_none_or(|batch| batch.last < number));
        let (before, in_flight) = (self.sent_bytes, self.in_flight());
        self.last = number;
        self.sent_bytes += bytes;
        let full = self.batches.len() >= BATCHES;
        if let Some(batch) = self.batches.back_mut().filter(|batch| full || batch.departure.sent_at == now) {
            (batch.last, batch.bytes) = (number, self.sent_bytes);
            batch.departure.joined(in_flight + bytes);
            return;
        }
        if self.batches.is_empty() {
            self.echoed_at = self.echoed_at.max(now);
        }
        let departure = self.deliveries.depart(now, in_flight, bytes);
        self.batches.push_back(Batch { first: number, last: number, bytes_before: before, bytes: self.sent_bytes, departure });
    }

    /// What limits the sender besides the pacing rate; none while data leaves or is only paced.
    pub(crate) fn note_limit(&mut self, limit: Option<Limit>) {
        if self.limited != Some(Limit::Cap) {
            self.limited = limit.or(self.limited);
        }
        if limit == Some(Limit::Application) {
            self.deliveries.on_app_limited(self.in_flight());
        }
    }

    /// A report has completed an exchange.
    pub(crate) fn on_exchange(&mut self, exchange: &Exchange) {
        let mean = exchange.sent_bytes / exchange.shipments.max(1);
        self.lost += exchange.lost.saturating_mul(mean).min(exchange.sent_bytes);
        // Why bounded: a peer may tell any number.
        self.marked += exchange.marked.min(exchange.shipments);
        self.packets += exchange.shipments.saturating_sub(exchange.lost);
    }

    /// Connection migration: bytes in flight on the old path no longer count (RFC 9000 9.4).
    pub(crate) fn on_path_change(&mut self) {
        let (last, sent_bytes) = (self.last, self.sent_bytes);
        *self = Self { echo: Some(last), echoed_bytes: sent_bytes, last, sent_bytes, ..Self::default() };
    }

    /// Bytes in flight.
    pub(crate) const fn in_flight(&self) -> u64 {
        self.sent_bytes - self.echoed_bytes
    }

    /// A report has come that echoes shipment `echo`, with a fresh round trip if there is one; `None` when it tells nothing new.
    pub(crate) fn on_report(&mut self, now: Instant, echo: ShipmentNumber, fresh: Option<Duration>, rtt: &Rtt) -> Option<Report> {
        let in_flight_before = self.in_flight();
        let (gone, departure) = self.take_echo(now, echo);
        let (lost, marked) = (core::mem::take(&mut self.lost), core::mem::take(&mut self.marked));
        let packets = core::mem::take(&mut self.packets);
        if gone == 0 && lost == 0 && marked == 0 {
            return None;
        }
        let not_delivered = lost + self.overcounted;
        let delivered = gone.saturating_sub(not_delivered);
        self.overcounted = not_delivered.saturating_sub(gone);
        self.deliveries.deliver(now, delivered);
        self.deliveries.lose(lost);
        self.deliveries.mark(marked);
        let echo = self.echo.unwrap_or(echo);
        let recovered = self.recovery.is_some_and(|until| echo >= until);
        if recovered {
            self.recovery = None;
        }
        let event = self.event(echo, lost, marked);
        Some(Report {
            delivered,
            packets,
            lost,
            marked,
            in_flight: self.in_flight(),
            in_flight_before,
            delivered_total: self.deliveries.total(),
            sample: departure.map(|departure| self.deliveries.sample(&departure)),
            rtt: fresh,
            rtt_min: rtt.min().unwrap_or(Duration::ZERO),
            limited: self.limited.take(),
            event,
            recovered,
            recovering: self.recovery.is_some(),
        })
    }

    /// Whether a retransmission timeout expires now, and which of a row. The oldest exchange without an answer left at `since`.
    ///
    /// Why nothing is declared lost by it: exchanges go on, and the echo of one says what has arrived.
    pub(crate) fn timeout(&mut self, now: Instant, since: Instant, rtt: &Rtt) -> Option<u32> {
        let smoothed = rtt.smoothed()?;
        let once = smoothed + (rtt.variance().unwrap_or(smoothed) * 4).max(TIMEOUT_MARGIN);
        let due = since.max(self.echoed_at) + once * (1 << self.timeouts.min(DOUBLINGS));
        if now < due {
            return None;
        }
        self.timeouts += 1;
        self.recovery = Some(self.last.next());
        self.marks_from = self.last.next();
        Some(self.timeouts)
    }

    /// Bytes that are no longer in flight by this echo, and how the newest of them departed.
    fn take_echo(&mut self, now: Instant, echo: ShipmentNumber) -> (u64, Option<Departure>) {
        if self.echo.is_some_and(|highest| echo <= highest) {
            return (0, None);
        }
        self.echo = Some(echo);
        self.echoed_at = now;
        self.timeouts = 0;
        let (mut bytes, mut departure) = (self.echoed_bytes, None);
        while let Some(batch) = self.batches.front().filter(|batch| batch.first <= echo) {
            bytes = bytes.max(batch.bytes_by(echo));
            departure = Some(batch.departure);
            if batch.last > echo {
                break;
            }
            self.batches.pop_front();
        }
        let gone = bytes - self.echoed_bytes;
        self.echoed_bytes = bytes;
        debug_assert!(self.batches.len() <= BATCHES && self.batches.front().is_none_or(|batch| batch.last > echo), "an echoed batch stays");
        (gone, departure)
    }

    /// Loss and marks: at most one answer in a round trip.
    fn event(&mut self, echo: ShipmentNumber, lost: u64, marked: u64) -> Option<CongestionEvent> {
        if self.recovery.is_some() {
            return None;
        }
        if lost > 0 {
            self.recovery = Some(self.last.next());
            self.marks_from = self.last.next();
            return Some(CongestionEvent::Loss);
        }
        let answers = marked > 0 && echo >= self.marks_from;
        if answers {
            self.marks_from = self.last.next();
        }
        answers.then_some(CongestionEvent::Mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_blocks::congestion::DeliverySample;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Shipments 0 to 39 of 1000 bytes, four each 10 ms.
    fn sent() -> Delivery {
        let mut delivery = Delivery::default();
        for number in 0..40 {
            delivery.on_sent(at(number / 4 * 10), ShipmentNumber(number), 1000);
        }
        delivery
    }

    fn exchange(lost: u64, marked: u64) -> Exchange {
        let sent_bytes = 10_000;
        Exchange {
            alpha: Duration::from_millis(1),
            beta: Duration::from_millis(1),
            exchanges: 1,
            sent_bytes,
            received_bytes: sent_bytes - lost * 1000,
            shipments: 10,
            lost,
            marked,
            rtt: Duration::from_millis(40),
            ..Exchange::default()
        }
    }

    fn report(delivery: &mut Delivery, millis: u64, echo: ShipmentNumber) -> Option<Report> {
        delivery.on_report(at(millis), echo, None, &Rtt::new())
    }

    #[test]
    fn an_echo_within_a_batch_acknowledges_a_part_of_it_and_each_byte_once() {
        let mut delivery = sent();
        let acked = |report: Option<Report>| report.map(|report| (report.delivered, report.in_flight_before, report.in_flight));
        assert_eq!(acked(report(&mut delivery, 140, ShipmentNumber(5))), Some((6000, 40_000, 34_000)));
        assert_eq!(acked(report(&mut delivery, 141, ShipmentNumber(5))), None, "no news");
        assert_eq!(acked(report(&mut delivery, 142, ShipmentNumber(3))), None, "older than what is known");
        assert_eq!(acked(report(&mut delivery, 150, ShipmentNumber(39))), Some((34_000, 34_000, 0)));
    }

    /// Four shipments of 1000 bytes each 10 ms, echoed 100 ms later; the application has no more at 200 ms.
    fn steady() -> Vec<DeliverySample> {
        let (mut delivery, mut samples) = (Delivery::default(), Vec::new());
        for batch in 0..40 {
            if let Some(echoed) = (batch * 4u64).checked_sub(37) {
                let report = delivery.on_report(at(batch * 10), ShipmentNumber(echoed), None, &Rtt::new());
                samples.extend(report.and_then(|report| report.sample));
            }
            for number in batch * 4..batch * 4 + 4 {
                delivery.on_sent(at(batch * 10), ShipmentNumber(number), 1000);
            }
            if batch == 20 {
                delivery.note_limit(Some(Limit::Application));
            }
        }
        samples
    }

    #[test]
    fn samples_tell_the_rate_and_what_left_while_the_application_had_nothing_is_marked() {
        let samples = steady();
        // Of batch 29, the last: 40 shipments between those echoed when it left and those echoed now, in 100 ms.
        let last = samples.last().expect("there are samples");
        assert_eq!(last.rate.map(|rate| rate.bits_per_second()), Some(3_200_000));
        let limited: Vec<usize> = (0..samples.len()).filter(|batch| samples[*batch].app_limited).collect();
        assert_eq!(limited, (21..30).collect::<Vec<_>>(), "until what was in flight then is delivered");
    }

    #[test]
    fn lost_bytes_are_not_delivered_and_begin_one_recovery_a_round_trip() {
        let (mut delivery, mut next) = (sent(), ShipmentNumber(40));
        let mut acked = |lost, echo: u64| {
            delivery.on_exchange(&exchange(lost, 0));
            let report = report(&mut delivery, 140, ShipmentNumber(echo)).expect("there is news");
            delivery.on_sent(at(140), next, 1000);
            next = next.next();
            (report.delivered, report.lost, report.event, report.recovering, report.recovered)
        };
        assert_eq!(acked(2, 9), (8000, 2000, Some(CongestionEvent::Loss), true, false));
        assert_eq!(acked(1, 19), (9000, 1000, None, true, false), "in the same round trip");
        assert_eq!(acked(0, 40), (21_000, 0, None, false, true), "what left after the loss is echoed");
        assert_eq!(delivery.deliveries.total(), 38_000);
    }

    #[test]
    fn a_loss_told_later_than_its_echo_is_taken_back() {
        let mut delivery = sent();
        assert_eq!(report(&mut delivery, 140, ShipmentNumber(9)).map(|report| report.delivered), Some(10_000));
        delivery.on_exchange(&exchange(3, 0));
        assert_eq!(report(&mut delivery, 141, ShipmentNumber(9)).map(|report| (report.delivered, report.lost)), Some((0, 3000)));
        assert_eq!(report(&mut delivery, 142, ShipmentNumber(19)).map(|report| report.delivered), Some(7000));
    }

    #[test]
    fn marks_are_answered_once_a_round_trip() {
        let mut delivery = sent();
        let mut event = |echo| {
            delivery.on_exchange(&exchange(0, 1));
            report(&mut delivery, 140, echo).and_then(|report| report.event)
        };
        assert_eq!(
            [event(ShipmentNumber(3)), event(ShipmentNumber(5)), event(ShipmentNumber(39))],
            [Some(CongestionEvent::Mark), None, None]
        );
        delivery.on_sent(at(140), ShipmentNumber(40), 1000);
        delivery.on_exchange(&exchange(0, 1));
        assert_eq!(report(&mut delivery, 180, ShipmentNumber(40)).and_then(|report| report.event), Some(CongestionEvent::Mark));
    }

    #[test]
    fn a_cap_that_was_reached_counts_until_the_next_report_and_what_limits_nothing_does_not() {
        let mut delivery = sent();
        let mut told = |limits: &[Option<Limit>], echo| {
            limits.iter().for_each(|limit| delivery.note_limit(*limit));
            report(&mut delivery, 140, ShipmentNumber(echo)).and_then(|report| report.limited)
        };
        assert_eq!(told(&[Some(Limit::Cap), None, Some(Limit::Application)], 5), Some(Limit::Cap));
        assert_eq!(told(&[None], 9), None, "the pacing rate alone");
        assert_eq!(told(&[Some(Limit::Window), None], 19), Some(Limit::Window));
    }

    #[test]
    fn what_leaves_beside_data_and_state_is_not_in_flight() {
        let mut delivery = sent();
        // Shipments 40 to 49 are reports; 50 is the next state.
        delivery.on_sent(at(100), ShipmentNumber(50), 100);
        assert_eq!(delivery.in_flight(), 40_100);
        let told = report(&mut delivery, 150, ShipmentNumber(50)).expect("all is echoed");
        assert_eq!((told.delivered, told.in_flight), (40_100, 0));
    }

    #[test]
    fn timeouts_back_off_until_an_echo_comes() {
        let mut delivery = sent();
        let mut rtt = Rtt::new();
        rtt.on_sample(at(0), Duration::from_millis(100));
        // 100 ms and four times the variance of the first sample, 50 ms.
        let mut expired = |millis| delivery.timeout(at(millis), at(0), &rtt);
        assert_eq!([expired(299), expired(300), expired(599), expired(600)], [None, Some(1), None, Some(2)]);
        assert!(report(&mut delivery, 700, ShipmentNumber(5)).is_some());
        assert_eq!([delivery.timeout(at(999), at(0), &rtt), delivery.timeout(at(1000), at(0), &rtt)], [None, Some(1)]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut delivery = Delivery::default();
        for number in 0..5000 {
            delivery.on_sent(at(number), ShipmentNumber(number), 1000);
        }
        assert_eq!(delivery.batches.len(), BATCHES);
        let acked = delivery.on_report(at(6000), ShipmentNumber(4999), None, &Rtt::new()).expect("all is echoed");
        assert_eq!((acked.delivered, acked.in_flight), (5_000_000, 0));
    }
}
