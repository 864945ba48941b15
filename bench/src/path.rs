//! A recorded transfer: two halves over a path in virtual time, with every call of each half and its time.
//!
//! Called by `halves` once for each case; `replay` then plays the record to one half alone.
//!
//! Invariant: the record depends on the case and the seed alone. Both halves are deterministic, so one that
//! is told the same does the same.

use crate::replay::{receiver_step, sender_step};
use segstream_base::halves::{Receiver as _, Sender as _};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant, Tolerance};
use segstream_proto::halves::{Feedback, Forward, ForwardBody, LoneReceiver, LoneSender, SHIPMENT_OVERHEAD_BYTES};
use segstream_proto::rate::Rate;
use segstream_proto::receiver::ReceiverConfig;
use segstream_proto::sender::SenderConfig;
use segstream_wire::{Class, Contract};
use std::collections::VecDeque;

/// The size of a unit, as in EC 5.
pub(crate) const UNIT_BYTES: u32 = 1024;
/// Units of a segment, as in EC 5.
pub(crate) const SEGMENT_UNITS: u32 = 256;
/// Room for one unit and the header of its part, not for two units.
const BODY_BYTES: usize = UNIT_BYTES as usize + 64;
const DELAY: Duration = Duration::from_millis(5);
const RATE: Bandwidth = Bandwidth::from_megabits_per_second(1000);

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) loss: f64,
    pub(crate) tolerance: Tolerance,
    /// The pacing quantum, as a time, as drivers of real sockets have one; zero wakes the sender for each packet.
    pub(crate) pacing_quantum: Duration,
}

/// What the halves were told, and how many segments and data packets that made.
pub(crate) struct Record {
    /// Boxed, so that wakes without a report lie close together: what is measured is the half, not the record.
    pub(crate) sender: Vec<(Instant, Option<Box<Feedback>>)>,
    pub(crate) receiver: Vec<(Instant, Option<Forward>)>,
    pub(crate) segments: u64,
}

impl Case {
    /// A sender with one stream, and nothing submitted.
    pub(crate) fn sender(&self) -> LoneSender {
        let config = SenderConfig {
            class: Class::ALL,
            body_bytes: BODY_BYTES,
            overhead_bytes: SHIPMENT_OVERHEAD_BYTES + 28,
            rate: Rate::smooth(RATE),
            epoch: Duration::ZERO,
            circuit_breaker: true,
            pacing_quantum: self.pacing_quantum,
            keep_alive: Duration::from_secs(1),
        };
        let contract = Contract { unit_bytes: UNIT_BYTES, tolerance: self.tolerance, ..Contract::default() };
        LoneSender::new(config, &[contract], Instant::ZERO).expect("the contract is valid")
    }

    /// The receiver to it.
    pub(crate) fn receiver(&self) -> LoneReceiver {
        let config = ReceiverConfig {
            class: Class::ALL,
            class_max: Class::ALL,
            unlimited: true,
            body_bytes: BODY_BYTES,
            overhead_bytes: 28,
            reorder: 3,
            reorder_adapting: true,
            streams_max: 256,
            stream_window_bytes: 64 << 20,
            connection_window_bytes: u64::MAX,
            window_segments_max: 65_536,
            buffer_bytes: None,
        };
        LoneReceiver::new(config, Instant::ZERO)
    }

    /// Runs both halves over the path until `segments` segments are judged.
    pub(crate) fn record(&self, segments: u64) -> Record {
        let (mut sender, mut receiver) = (self.sender(), self.receiver());
        let mut record = Record { sender: Vec::new(), receiver: Vec::new(), segments };
        let mut left = segments;
        let mut loss = Seed(1).stream(self.name);
        let (mut forward, mut back) = (VecDeque::<(Instant, Forward)>::new(), VecDeque::<(Instant, Feedback)>::new());
        let mut now = Instant::ZERO;
        while sender.half.has_unjudged() || left > 0 {
            let mut sent = |packet| {
                if !loss.chance(self.loss) {
                    forward.push_back((now + DELAY, packet));
                }
            };
            if back.front().is_some_and(|(at, _)| *at <= now) {
                let report = back.pop_front().map(|(_, report)| report);
                sender_step(&mut sender, now, report.as_ref(), &mut left, &mut sent);
                record.sender.push((now, report.map(Box::new)));
            } else if now == Instant::ZERO || sender.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                sender_step(&mut sender, now, None, &mut left, &mut sent);
                record.sender.push((now, None));
            }
            let mut reported = |report| back.push_back((now + DELAY, report));
            if forward.front().is_some_and(|(at, _)| *at <= now) {
                let packet = forward.pop_front().map(|(_, packet)| packet);
                receiver_step(&mut receiver, now, packet.as_ref(), &mut reported);
                record.receiver.push((now, packet));
            } else if receiver.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                receiver_step(&mut receiver, now, None, &mut reported);
                record.receiver.push((now, None));
            }
            let arrivals = forward.front().map(|(at, _)| *at).into_iter().chain(back.front().map(|(at, _)| *at));
            let deadlines = [sender.poll_timeout(), receiver.poll_timeout()].into_iter().flatten().map(|deadline| deadline.at);
            let Some(next) = arrivals.chain(deadlines).min() else { break };
            now = now.max(next);
        }
        record
    }
}

/// Whether a forward packet carries data.
pub(crate) fn is_data(packet: &Forward) -> bool {
    matches!(packet.body, ForwardBody::Data(_))
}
