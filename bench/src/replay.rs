//! Replays a record to one half alone.
//!
//! A step is what a driver does when it wakes: tell the half what has come, take everything it wants to send
//! and to tell, and ask when it wants to be called again.
//!
//! Invariant: recording and replaying make the same calls; only the fate of the packets differs.

use crate::path::{SEGMENT_UNITS, UNIT_BYTES};
use segstream_base::Instant;
use segstream_base::halves::{Receiver as _, Segment, Sender as _, SenderEvent, StreamId};
use segstream_proto::halves::{Feedback, Forward, LoneReceiver, LoneSender};
use std::hint::black_box;

/// Wakes the sender, which always has a segment more to submit while any are `left`.
#[inline]
pub(crate) fn sender_step(sender: &mut LoneSender, now: Instant, report: Option<&Feedback>, left: &mut u64, mut sent: impl FnMut(Forward)) {
    match report {
        Some(report) => sender.handle_feedback(now, report),
        None => sender.handle_timeout(now),
    }
    let mut room = now == Instant::ZERO;
    while let Some(event) = sender.poll_event() {
        room |= matches!(event, SenderEvent::WindowOpen(_));
        black_box(&event);
    }
    while room && *left > 0 {
        let bytes = Some(u64::from(SEGMENT_UNITS) * u64::from(UNIT_BYTES));
        room = sender.submit(now, Segment { stream: StreamId(0), bytes, source_time: now, tolerance: None }).is_ok();
        *left -= u64::from(room);
    }
    while let Some(packet) = sender.poll_transmit(now) {
        sent(packet);
    }
    black_box(sender.poll_timeout());
}

/// Wakes the receiver, whose application takes everything at once.
#[inline]
pub(crate) fn receiver_step(receiver: &mut LoneReceiver, now: Instant, packet: Option<&Forward>, mut reported: impl FnMut(Feedback)) {
    match packet {
        Some(packet) => receiver.handle_forward(now, packet),
        None => receiver.handle_timeout(now),
    }
    while let Some(report) = receiver.poll_transmit(now) {
        reported(report);
    }
    while let Some(event) = receiver.poll_event() {
        black_box(&event);
    }
    black_box(receiver.poll_timeout());
}

/// Plays a part of a record to a sender. Not inlined, so that a profiler finds it by name.
#[inline(never)]
pub(crate) fn replay_sender(sender: &mut LoneSender, record: &[(Instant, Option<Box<Feedback>>)], left: &mut u64) {
    for (now, report) in record {
        sender_step(sender, *now, report.as_deref(), left, |packet| {
            black_box(&packet);
        });
    }
}

/// Plays a part of a record to a receiver. Not inlined, so that a profiler finds it by name.
#[inline(never)]
pub(crate) fn replay_receiver(receiver: &mut LoneReceiver, record: &[(Instant, Option<Forward>)]) {
    for (now, packet) in record {
        receiver_step(receiver, *now, packet.as_ref(), |report| {
            black_box(&report);
        });
    }
}
