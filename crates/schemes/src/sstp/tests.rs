//! Claims about the two halves, proved in virtual time.

mod claims;
mod closing;
mod driver;
mod encoding;
mod figures;
mod liveness;

use super::*;
use segstream_base::halves::{Receiver as _, Segment, Sender as _, StreamId};
use segstream_base::{Bandwidth, Instant, Tolerance};
use segstream_blocks::user::Slowdown;
use segstream_blocks::{Accounting, RateSpec};

/// The papers' operating point: 500 Mbit/s, packets of 1024 bytes, 256 to a segment, ideal feedback.
fn operating_point(window: u32, buffer: u32) -> Config {
    Config {
        connection: 7,
        packet_bytes: 1024,
        segment_packets: 256,
        window,
        buffer,
        acknowledgment: Acknowledgment::Hard,
        discard: Discard::Packet,
        repeats: Repeats::Preempt,
        tolerance: Tolerance::reliable(256),
        accounting: Accounting::StrictAll,
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(500)),
        reorder: 0,
        feedback: FeedbackMode::Ideal,
        slowdown: None,
        throttle: Throttle::Withhold,
        keep_alive: KeepAlive::Spaced,
        close_after: None,
    }
}

/// Segments of 8 packets of 118 bytes at 10 Mbit/s, a window of 4, and the protocol's own feedback.
fn small() -> Config {
    Config {
        packet_bytes: 118,
        segment_packets: 8,
        tolerance: Tolerance::reliable(8),
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(10)),
        feedback: FeedbackMode::Full,
        ..operating_point(4, 4)
    }
}

fn whole_segment(config: &Config) -> Segment {
    let bytes = u64::from(config.payload_bytes()) * u64::from(config.segment_packets);
    Segment { stream: StreamId(0), bytes: Some(bytes), source_time: Instant::ZERO, tolerance: None }
}

/// Everything the sender hands out up to `now`, its pacing obeyed.
fn drain(sender: &mut Sender, now: &mut Instant) -> Vec<Forward> {
    let mut packets = Vec::new();
    loop {
        while let Some(packet) = sender.poll_transmit(*now) {
            packets.push(packet);
        }
        match sender.poll_timeout() {
            Some(deadline) if deadline.timer == "pace" => *now = deadline.at.max(*now),
            _ => return packets,
        }
    }
}

fn feedback(receiver: &mut Receiver, now: Instant) -> Vec<Feedback> {
    std::iter::from_fn(|| receiver.poll_transmit(now)).collect()
}

/// The packets of a segment that a request asks for.
fn asked(packets: &[Feedback]) -> Vec<(u32, Vec<u32>)> {
    let requests = packets.iter().filter_map(|packet| match packet {
        Feedback::Snak(snak) => Some(snak),
        Feedback::Pack(_) => None,
    });
    requests.map(|snak| (snak.grant.segment.unwrap(), (0..snak.request.len()).filter(|p| snak.request.get(*p)).collect())).collect()
}
