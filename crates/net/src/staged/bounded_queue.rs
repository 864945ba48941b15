//! The bounded queue from one stage to another, with the backlog of messages for which it has no room.
//!
//! Called by `node`. The queue is a lock-free ring with one producer and one consumer.
//!
//! Invariant: messages leave in the order they were sent: none enters the ring while there is a backlog.

use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::collections::VecDeque;

/// The sender's end.
pub(super) struct QueueSender<M> {
    ring: Producer<M>,
    waiting: VecDeque<M>,
    /// Whether this sender is in the receiver's set of senders.
    pub(super) announced: bool,
}

/// The receiver's end.
pub(super) type QueueReceiver<M> = Consumer<M>;

/// A queue with room for `messages` messages.
pub(super) fn bounded_queue<M>(messages: usize) -> (QueueSender<M>, QueueReceiver<M>) {
    let (producer, consumer) = RingBuffer::new(messages);
    (QueueSender { ring: producer, waiting: VecDeque::new(), announced: false }, consumer)
}

impl<M> QueueSender<M> {
    /// Sends the message, or adds it to the backlog. Returns whether it was sent.
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

    /// Sends as much of the backlog as there is room for. Returns how many messages that were.
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

    /// The length of the backlog.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the ring has room for a message.
    pub(super) fn has_room(&self) -> bool {
        !self.ring.is_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_keeps_its_place_before_what_comes_later() {
        let (mut sender, mut receiver) = bounded_queue(2);
        let sent: Vec<bool> = (0..5).map(|number| sender.send(number)).collect();
        assert_eq!(sent, [true, true, false, false, false]);
        assert_eq!(receiver.pop(), Ok(0));
        assert!(!sender.send(5), "the backlog comes first");
        assert_eq!((sender.flush(), sender.waiting()), (1, 3));
        let mut seen = Vec::new();
        while let Ok(number) = receiver.pop() {
            seen.push(number);
            sender.flush();
        }
        assert_eq!(seen, [1, 2, 3, 4, 5]);
    }
}
