//! The transmission buffer: numbered packets from submission to acknowledgment, and the end of the stream behind them.
//!
//! Called by the senders of TCP and adaptive acknowledgment. It numbers, keeps and releases; when a packet leaves again is the
//! sender's decision, who notes what it needs for that with each packet that has left.
//!
//! Invariant: no packet beyond the window leaves; at most two windows of packets and one segment are kept; a segment is
//! judged when its last packet is released.
//!
//! Limit: 2^32 - 2 packets a connection, its end counted; then [`SubmitError::Finished`].

use crate::numbered_packet::{Forward, Place};
use crate::unsent::Unsent;
use core::ops::Range;
use segstream_base::halves::{Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId, SubmitError, Verdict};
use std::collections::VecDeque;

/// A packet that has left.
#[derive(Clone, Copy, Debug)]
struct Sent<N> {
    /// `None` for the end of the stream.
    place: Option<Place>,
    bytes: u16,
    note: N,
}

/// How far the end of the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Finished,
    Sent,
}

/// The packets of a connection, each with a note of the sender once it has left.
#[derive(Clone, Debug)]
pub(crate) struct TransmissionBuffer<N> {
    connection: u32,
    window: u32,
    /// The packets from `base` on that have left.
    sent: VecDeque<Sent<N>>,
    /// The first packet that is not acknowledged.
    base: u32,
    unsent: Unsent,
    end: End,
    /// A submission was refused.
    blocked: bool,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
}

impl<N: Copy> TransmissionBuffer<N> {
    /// An empty buffer for `window` packets that have left.
    pub(crate) fn new(connection: u32, window: u32, unsent: Unsent) -> Self {
        Self {
            connection,
            window,
            sent: VecDeque::new(),
            base: 0,
            unsent,
            end: End::Open,
            blocked: false,
            events: VecDeque::new(),
            counters: SenderCounters::default(),
        }
    }

    /// The first packet that is not acknowledged.
    #[inline]
    pub(crate) const fn base(&self) -> u32 {
        self.base
    }

    /// The number of the next new packet.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.base + self.sent.len() as u32
    }

    /// Packets that have left and are not acknowledged.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.sent.len()
    }

    /// Packets that have not left.
    #[inline]
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent.packets()
    }

    /// What was noted with a packet that has left and is not acknowledged.
    #[inline]
    pub(crate) fn note(&mut self, sequence: u32) -> Option<&mut N> {
        Some(&mut self.sent.get_mut(sequence.checked_sub(self.base)? as usize)?.note)
    }

    /// The same for each of `numbers`, with its number; none of them may be below the first that is not acknowledged.
    pub(crate) fn notes(&mut self, numbers: Range<u32>) -> impl Iterator<Item = (u32, &mut N)> {
        let first = numbers.start.saturating_sub(self.base) as usize;
        numbers.zip(self.sent.iter_mut().skip(first).map(|sent| &mut sent.note))
    }

    /// Takes a segment of stream 0, while fewer than two windows of packets are kept.
    pub(crate) fn submit(&mut self, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let Some(bytes) = segment.bytes else { return Err(SubmitError::Finished) };
        let cut = self.unsent.cut(bytes)?;
        let after = u64::from(self.next()) + self.unsent.packets() + u64::from(cut.packets());
        // Why below the maximum: the end and the number after it must exist.
        if self.end != End::Open || segment.stream != StreamId(0) || after >= u64::from(u32::MAX) {
            return Err(SubmitError::Finished);
        }
        if self.is_full() {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        Ok(self.unsent.push(cut))
    }

    /// The end of the stream leaves behind the last segment.
    pub(crate) fn finish(&mut self) {
        if self.end == End::Open {
            self.end = End::Finished;
        }
    }

    /// Whether the window lets a new packet leave, and there is one.
    #[inline]
    pub(crate) fn may_begin(&self) -> bool {
        self.sent.len() < self.window as usize && (self.unsent.packets() > 0 || self.end == End::Finished)
    }

    /// The next packet that leaves for the first time.
    #[inline]
    pub(crate) fn begin(&mut self, note: N) -> Option<Forward> {
        if !self.may_begin() {
            return None;
        }
        let sequence = self.next();
        let sent = match self.unsent.pop() {
            Some((place, bytes)) => {
                self.counters.packets_sent += 1;
                if place.packet == 0 {
                    let segment = SegmentNumber(u64::from(place.segment));
                    self.events.push_back(SenderEvent::Started { stream: StreamId(0), segment });
                }
                Sent { place: Some(place), bytes, note }
            }
            None => {
                self.end = End::Sent;
                Sent { place: None, bytes: 0, note }
            }
        };
        self.sent.push_back(sent);
        Some(self.packet(sequence, sent))
    }

    /// A packet that leaves again.
    pub(crate) fn repeat(&mut self, sequence: u32) -> Option<Forward> {
        let sent = *self.sent.get(sequence.checked_sub(self.base)? as usize)?;
        if sent.place.is_some() {
            self.counters.packets_sent += 1;
            self.counters.packets_retransmitted += 1;
        }
        Some(self.packet(sequence, sent))
    }

    fn packet(&self, sequence: u32, sent: Sent<N>) -> Forward {
        let connection = self.connection;
        match sent.place {
            Some(place) => Forward::Data { connection, sequence, place, stride: self.unsent.stride(), bytes: sent.bytes },
            None => Forward::End { connection, sequence },
        }
    }

    /// Forgets the first packet that has left, which is acknowledged; what was noted with it.
    #[inline]
    pub(crate) fn release(&mut self) -> Option<N> {
        let sent = self.sent.pop_front()?;
        self.base += 1;
        if let Some(place) = sent.place.filter(|place| place.is_last()) {
            let segment = SegmentNumber(u64::from(place.segment));
            self.events.push_back(SenderEvent::Judged { stream: StreamId(0), segment, verdict: Verdict::Complete });
        }
        Some(sent.note)
    }

    /// Tells a user who was refused that there is room again, once there is.
    pub(crate) fn open(&mut self) {
        if self.blocked && !self.is_full() {
            self.blocked = false;
            self.events.push_back(SenderEvent::WindowOpen(StreamId(0)));
        }
    }

    fn is_full(&self) -> bool {
        self.unsent.packets() + self.sent.len() as u64 >= 2 * u64::from(self.window)
    }

    /// Puts an event of the sender behind those that wait.
    pub(crate) fn tell(&mut self, event: SenderEvent) {
        self.events.push_back(event);
    }

    /// The next thing to tell the user.
    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// What has been handed out so far.
    pub(crate) const fn counters(&self) -> SenderCounters {
        self.counters
    }
}
