//! The traces of AA Figures 2 and 3, packet by packet. The paper counts packets from 1, and so do these tests.

use super::link::{T_ERROR, T_NORMAL, config};
use crate::adaptive_ack::{Feedback, Forward, Receiver, Sender};
use crate::link::{PACKET_TIME, segment};
use segstream_base::halves::{Receiver as _, ReceiverEvent, Sender as _, SenderEvent};
use segstream_base::{Duration, Instant};

/// A transmitter with twenty packets to send, a receiver, and the reader's finger in the figure.
struct Trace {
    sender: Sender,
    receiver: Receiver,
    now: Instant,
}

impl Trace {
    fn new() -> Self {
        let mut sender = Sender::new(config(), Instant::ZERO).unwrap();
        for _ in 0..20 {
            sender.submit(Instant::ZERO, segment(978)).unwrap();
        }
        Self { sender, receiver: Receiver::new(config(), Instant::ZERO).unwrap(), now: Instant::ZERO }
    }

    /// The transmitter sends `number` next.
    fn sends(&mut self, number: u32) -> Forward {
        let packet = self.sender.poll_transmit(self.now).expect("a packet may leave");
        assert_eq!(packet.sequence() + 1, number, "at {}", self.now);
        self.now += PACKET_TIME;
        packet
    }

    /// `number` leaves and is lost.
    fn loses(&mut self, number: u32) {
        self.sends(number);
    }

    /// `number` leaves and arrives, whereupon these are delivered to the upper layer.
    fn arrives(&mut self, number: u32, delivered: &[u64]) {
        let packet = self.sends(number);
        self.receiver.handle_forward(self.now, &packet);
        let events = std::iter::from_fn(|| self.receiver.poll_event());
        let numbers: Vec<u64> = events
            .map(|event| match event {
                ReceiverEvent::Delivered { segment, .. } => segment.0 + 1,
                other => panic!("unexpected {other:?}"),
            })
            .collect();
        assert_eq!(numbers, delivered, "delivered by {number}");
    }

    /// The receiver sends one acknowledgment, ((gap-in, gap-out), cumulative).
    fn acknowledges(&mut self, gap: (u32, u32), cumulative: u32) -> Feedback {
        let answer = self.receiver.poll_transmit(self.now).expect("an acknowledgment leaves");
        assert_eq!(((answer.gap_in + 1, answer.gap_out + 1), answer.cumulative + 1), (gap, cumulative), "at {}", self.now);
        answer
    }

    fn is_silent(&mut self) {
        assert_eq!(self.receiver.poll_transmit(self.now), None);
    }

    /// The transmitter receives `answer`, whereupon these are released.
    fn hears(&mut self, answer: &Feedback, released: &[u64]) {
        self.sender.handle_feedback(self.now, answer);
        let events = std::iter::from_fn(|| self.sender.poll_event());
        let numbers: Vec<u64> = events
            .filter_map(|event| match event {
                SenderEvent::Judged { segment, .. } => Some(segment.0 + 1),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, released);
    }

    /// The receiver's timer, set at `set`, runs out after `period`, which is now.
    fn timer_runs_out(&mut self, set: Instant, period: Duration) {
        let due = self.receiver.poll_timeout().unwrap();
        assert_eq!((due.at, due.timer), (set + period, "status"));
        self.receiver.handle_timeout(due.at - Duration::from_nanos(1));
        self.is_silent();
        self.now = due.at;
        self.receiver.handle_timeout(self.now);
    }
}

#[test]
fn figure_2_a_bursty_loss_of_data_packets() {
    let mut trace = Trace::new();
    trace.arrives(1, &[1]);
    trace.is_silent();
    trace.timer_runs_out(Instant::ZERO, T_NORMAL);
    let status = trace.acknowledges((2, 2), 2);
    trace.is_silent();
    trace.hears(&status, &[1]);
    for number in 2..=5 {
        trace.loses(number);
    }
    trace.arrives(6, &[]);
    let detected = trace.now;
    let first = trace.acknowledges((2, 6), 2);
    trace.loses(7);
    trace.arrives(8, &[]);
    let second = trace.acknowledges((7, 8), 2);
    trace.is_silent();
    trace.hears(&first, &[]);
    trace.arrives(2, &[2]);
    trace.hears(&second, &[]);
    trace.arrives(3, &[3]);
    trace.arrives(4, &[4]);
    trace.arrives(5, &[5, 6]);
    trace.arrives(7, &[7, 8]);
    trace.arrives(9, &[9]);
    // All is recovered, and nothing is said of it before T_error runs out.
    trace.is_silent();
    trace.timer_runs_out(detected, T_ERROR);
    let (expired, status) = (trace.now, trace.acknowledges((10, 10), 10));
    trace.hears(&status, &[2, 3, 4, 5, 6, 7, 8, 9]);
    trace.arrives(10, &[10]);
    trace.timer_runs_out(expired, T_NORMAL);
    trace.acknowledges((11, 11), 11);
}

#[test]
fn figure_3_a_loss_of_an_ack_packet_behind_that_of_a_data_packet() {
    let mut trace = Trace::new();
    trace.arrives(1, &[1]);
    trace.loses(2);
    trace.arrives(3, &[]);
    let detected = trace.now;
    // It is lost, and the transmitter goes on.
    trace.acknowledges((2, 3), 2);
    trace.arrives(4, &[]);
    trace.arrives(5, &[]);
    trace.is_silent();
    trace.timer_runs_out(detected, T_ERROR);
    let (expired, status) = (trace.now, trace.acknowledges((2, 3), 2));
    trace.is_silent();
    trace.hears(&status, &[1]);
    trace.arrives(2, &[2, 3, 4, 5]);
    trace.arrives(6, &[6]);
    trace.timer_runs_out(expired, T_ERROR);
    let (expired, status) = (trace.now, trace.acknowledges((7, 7), 7));
    trace.hears(&status, &[2, 3, 4, 5, 6]);
    trace.arrives(7, &[7]);
    trace.timer_runs_out(expired, T_NORMAL);
    trace.acknowledges((8, 8), 8);
}

#[test]
fn every_open_gap_has_an_acknowledgment_of_its_own_in_each_status_until_it_is_filled() {
    let mut trace = Trace::new();
    trace.loses(1);
    trace.loses(2);
    trace.arrives(3, &[]);
    let detected = trace.now;
    trace.acknowledges((1, 3), 1);
    trace.loses(4);
    trace.arrives(5, &[]);
    trace.acknowledges((4, 5), 1);
    trace.loses(6);
    trace.arrives(7, &[]);
    trace.acknowledges((6, 7), 1);
    trace.is_silent();
    // Further gaps have not put the status off.
    trace.timer_runs_out(detected, T_ERROR);
    let first = trace.acknowledges((1, 3), 1);
    trace.acknowledges((4, 5), 1);
    trace.acknowledges((6, 7), 1);
    trace.is_silent();
    let expired = trace.now;
    trace.hears(&first, &[]);
    trace.loses(1);
    trace.arrives(2, &[]);
    trace.timer_runs_out(expired, T_ERROR);
    trace.acknowledges((1, 2), 1);
    trace.acknowledges((4, 5), 1);
    trace.acknowledges((6, 7), 1);
    trace.is_silent();
}
