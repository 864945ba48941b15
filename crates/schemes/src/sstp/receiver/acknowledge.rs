//! ACK XMT: positive acknowledgments at once, requests at once and then periodically.
//!
//! Called by the receiving half. Source: EC 3.3 and EC 4.2, acknowledgment transmission. ACKQ itself is the
//! `asked` mark of the slots: a request is made anew from the slot each time it leaves.
//!
//! Invariant: every packet that leaves has a control sequence number of its own.

use crate::sstp::Config;
use crate::sstp::packet::{Feedback, Grant, Pack, Snak};
use segstream_base::{Duration, Instant};
use segstream_blocks::{Bitmap, Rtt};
use std::collections::VecDeque;

/// The shortest time between two requests for one segment.
const PERIOD_MIN: Duration = Duration::from_millis(5);

/// What leaves for the sender.
#[derive(Clone, Debug)]
pub(super) struct Acknowledger {
    connection: u32,
    /// How long an acknowledgment takes to be made: 3 t_p with ideal feedback, nothing otherwise.
    overhead: Duration,
    segment_time: Duration,
    outbox: VecDeque<(Instant, Feedback)>,
    control: u64,
    /// The round trip of requests.
    rtt: Rtt,
    /// The earliest repetition in ACKQ, or earlier.
    pub repeat_at: Instant,
    pub requests_sent: u64,
    pub packs_sent: u64,
}

impl Acknowledger {
    pub(super) fn new(config: &Config, overhead: Duration) -> Self {
        Self {
            connection: config.connection,
            overhead,
            segment_time: config.segment_time(),
            outbox: VecDeque::new(),
            control: 0,
            rtt: Rtt::new(),
            repeat_at: Instant::FAR_FUTURE,
            requests_sent: 0,
            packs_sent: 0,
        }
    }

    /// A request was answered for the first time after so long.
    pub(super) fn on_answer(&mut self, now: Instant, after: Duration) {
        self.rtt.on_sample(now, after);
    }

    /// The time between two requests for one segment: EC 4.2 repeats them "periodically".
    pub(super) fn period(&self) -> Duration {
        let quarter = self.rtt.min().map_or(Duration::ZERO, |trip| trip / 4);
        quarter.max(self.segment_time * 2).max(PERIOD_MIN)
    }

    fn grant(&mut self, segment: Option<u64>, edges: (u64, u64)) -> Grant {
        self.control += 1;
        let cut = |number: u64| u32::try_from(number).unwrap_or(u32::MAX - 1);
        Grant {
            connection: self.connection,
            control: self.control as u32,
            segment: segment.map(cut),
            accepted: cut(edges.0),
            limit: cut(edges.1),
        }
    }

    /// Acknowledges `segment`; `edges` are R_l and R_h + 1.
    pub(super) fn pack(&mut self, now: Instant, segment: Option<u64>, edges: (u64, u64), soft: bool, holes: bool, end: bool) {
        let grant = self.grant(segment, edges);
        self.packs_sent += 1;
        self.outbox.push_back((now + self.overhead, Feedback::Pack(Pack { grant, soft, holes, end })));
    }

    /// Asks for packets of `segment`.
    pub(super) fn snak(&mut self, now: Instant, segment: u64, edges: (u64, u64), request: &Bitmap) {
        let grant = self.grant(Some(segment), edges);
        self.requests_sent += 1;
        self.outbox.push_back((now + self.overhead, Feedback::Snak(Snak { grant, request: request.clone() })));
    }

    /// Nothing leaves any more.
    pub(super) fn close(&mut self) {
        self.outbox.clear();
        self.repeat_at = Instant::FAR_FUTURE;
    }

    /// When the next packet may leave.
    #[inline]
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.outbox.front().map(|(at, _)| *at)
    }

    /// The next packet that may leave now.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<Feedback> {
        if self.next_at()? > now {
            return None;
        }
        self.outbox.pop_front().map(|(_, packet)| packet)
    }
}
