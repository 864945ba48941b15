//! How the transmitter processes a receiver's state (HT 3.3, HT 3.4, HT 4).
//!
//! Called by Tx2 for every RXS.
//!
//! A report with all pairs used may be cut short: what lies behind its last pair is neither acknowledged nor lost, and is
//! left in the table for the next exchange. Without this rule everything behind would be retransmitted.
//!
//! Invariant: nothing is declared lost that the report does not cover, or that was sent after the exchange it answers.

use super::super::Ptif;
use super::super::message::{Measured, Message, Verdicts};
use super::super::packet::{Coverage, ReceiverState};
use super::super::ticks::{TICK, since_time};
use super::Tx2;
use segstream_base::Instant;
use segstream_base::sequence::expand;
use segstream_base::stage::StageId;
use segstream_blocks::sync_table::Judgement;

/// A report in numbers that do not wrap: what it acknowledges and what it covers.
struct Report<'a> {
    /// The number after CAACK.
    next: u64,
    state: &'a ReceiverState,
    /// What it covers: first and last.
    from: u64,
    to: u64,
}

impl<'a> Report<'a> {
    /// `None` when it speaks of anything but the numbers from `known` up to `sent`, or contradicts itself.
    /// `stopped` is the number after the last one in the report with the ESYNC before, if that was cut short.
    fn read(state: &'a ReceiverState, known: u64, sent: u64, stopped: Option<u64>) -> Option<Self> {
        let unwrap = |wire: u16, from: u64| {
            let seq = from + u64::from(wire.wrapping_sub(from as u16));
            (seq <= sent).then_some(seq)
        };
        let next = unwrap(state.caack.wrapping_add(1), known)?;
        let mut low = next;
        let mut first = None;
        for (bseq, eseq) in state.ranges.as_slice() {
            let begin = unwrap(*bseq, low)?;
            let end = unwrap(*eseq, begin).filter(|end| *end < sent)?;
            first.get_or_insert(begin);
            low = end + 1;
        }
        let from = match state.coverage {
            Coverage::Whole => next,
            Coverage::Continued => first?,
            Coverage::Succeeding => stopped.or(first)?.min(first.unwrap_or(u64::MAX)),
        };
        let to = if state.ranges.is_full() { low - 1 } else { u64::MAX };
        Some(Self { next, state, from, to })
    }

    /// The runs, first and last of each.
    fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let next = self.next;
        let unwrap = move |wire: u16| next + u64::from(wire.wrapping_sub(next as u16));
        self.state.ranges.as_slice().iter().map(move |(bseq, eseq)| (unwrap(*bseq), unwrap(*eseq)))
    }
}

impl Tx2 {
    /// Takes the receiver's state.
    pub(super) fn on_report(&mut self, now: Instant, state: &ReceiverState, out: &mut Vec<(StageId, Message)>) {
        let Some(newest) = self.sync.checked_sub(1).filter(|_| self.terms.is_some_and(|terms| terms.pairs == state.ranges.room())) else {
            return;
        };
        let esync = expand(u64::from(state.esync), 16, newest);
        let is_new = esync >= self.echoed;
        let continues = state.coverage == Coverage::Continued && esync + 1 == self.echoed;
        if esync > newest || !(is_new || continues) {
            return;
        }
        let stopped = self.stopped.filter(|(before, _)| before + 1 == esync).map(|(_, seq)| seq);
        let Some(report) = Report::read(state, self.presence.next(), self.sent, stopped) else { return };
        self.stopped = report.state.ranges.is_full().then(|| (esync, report.to + 1));
        if is_new {
            self.on_echo(now, esync, state, out);
        }
        let mut verdicts = Verdicts { next: report.next, credit: state.credit, ..Verdicts::default() };
        for (first, last) in report.runs() {
            verdicts.arrived.extend((first..=last).filter(|seq| self.presence.mark(*seq)));
        }
        self.outstanding -= (verdicts.arrived.len() as u64).min(self.outstanding);
        self.outstanding -= self.presence.advance(report.next).min(self.outstanding);
        if let Some(limit) = esync.checked_sub(self.offset) {
            let judge = |seq| match seq {
                _ if self.presence.contains(seq) => Judgement::Arrived,
                _ if (report.from..=report.to).contains(&seq) => Judgement::Lost,
                _ => Judgement::Unknown,
            };
            self.table.search(limit, judge, &mut verdicts.lost);
        }
        out.push((self.routes.tx1, Message::Verdicts(Box::new(verdicts))));
    }

    /// What is looked at once an exchange: round trip, class, rate and congestion.
    fn on_echo(&mut self, now: Instant, esync: u64, state: &ReceiverState, out: &mut Vec<(StageId, Message)>) {
        let exchanges = esync + 1 - self.echoed;
        self.echoed = esync + 1;
        self.clock.on_answer(now);
        self.rtt.on_sample(now, since_time(now, state.etime));
        let mut before = None;
        while let Some(departure) = self.departures.front().filter(|departure| departure.sync < esync) {
            before = Some(*departure);
            self.departures.pop_front();
        }
        let Some(departure) = self.departures.front().copied().filter(|departure| departure.sync == esync) else { return };
        if esync >= self.wanted_since {
            // HT 3.2: what the receiver grants holds from the next exchange on, and is all that is requested then.
            let granted = self.wanted.and(state.class);
            (self.class_next, self.wanted, self.granted) = (granted, granted, true);
            self.may_wait = granted.has_error_control();
        }
        self.adopt(state.rate, departure.rate, out);
        if let Some(before) = before.filter(|_| self.ptif != Ptif::Off && state.spgap > 0) {
            let alpha = departure.left.since(before.left);
            // Why the mean only then: of a few packets it is off by a part of them, and a law that follows it runs away.
            let mean = alpha / departure.packets.max(1);
            let gap = if departure.gap.is_zero() { mean } else { departure.gap };
            let measured = Measured { alpha, beta: TICK * u64::from(state.spgap), exchanges, gap, floor: self.floor() };
            out.push((self.routes.ptif, Message::Measured(measured)));
        }
    }
}
