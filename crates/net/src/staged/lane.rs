//! A lane: the bounded queue from one stage to another, and what waits at its sender for room.
//!
//! Called by `seat`. The queue is a single-producer, single-consumer ring without locks.
//!
//! Invariant: messages leave a lane in the order they entered it: nothing enters the ring while something waits.

use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::collections::VecDeque;

/// The sender's end.
pub(super) struct LaneIn<M> {
    ring: Producer<M>,
    waiting: VecDeque<M>,
    /// Whether the receiver knows that this sender sends to it.
    pub(super) announced: bool,
}

/// The receiver's end.
pub(super) type LaneOut<M> = Consumer<M>;

/// A lane of `messages` places.
pub(super) fn lane<M>(messages: usize) -> (LaneIn<M>, LaneOut<M>) {
    let (producer, consumer) = RingBuffer::new(messages);
    (LaneIn { ring: producer, waiting: VecDeque::new(), announced: false }, consumer)
}

impl<M> LaneIn<M> {
    /// Sends, or keeps the message until there is room. Returns whether it was sent.
    #[inline]
    pub(super) fn send(&mut self, message: M) -> bool {
        let message = if self.waiting.is_empty() {
            match self.ring.push(message) {
                Ok(()) => return true,
                Err(PushError::Full(message)) => message,
            }
        } else {
            message
        };
        self.waiting.push_back(message);
        false
    }

    /// Sends of what waits as much as there is room for. Returns how many.
    pub(super) fn flush(&mut self) -> usize {
        let mut sent = 0;
        while let Some(message) = self.waiting.pop_front() {
            if let Err(PushError::Full(message)) = self.ring.push(message) {
                self.waiting.push_front(message);
                break;
            }
            sent += 1;
        }
        sent
    }

    /// Messages that wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the next message would find room.
    pub(super) fn has_room(&self) -> bool {
        !self.ring.is_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_keeps_its_place_before_what_comes_later() {
        let (mut sender, mut receiver) = lane(2);
        let sent: Vec<bool> = (0..5).map(|number| sender.send(number)).collect();
        assert_eq!(sent, [true, true, false, false, false]);
        assert_eq!(receiver.pop(), Ok(0));
        assert!(!sender.send(5), "room is for those that wait");
        assert_eq!((sender.flush(), sender.waiting()), (1, 3));
        let mut seen = Vec::new();
        while let Ok(number) = receiver.pop() {
            seen.push(number);
            sender.flush();
        }
        assert_eq!(seen, [1, 2, 3, 4, 5]);
    }
}
