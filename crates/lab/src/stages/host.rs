//! The two hosts: one sends packets, the other receives and checks them.
//!
//! Run as stages beside the protocol's; payload goes through the packet store, copied once in and once out.
//!
//! Invariant: the receiving host counts a packet as delivered only if it is the next one and every byte of it is
//! what the sending host put in.

use segstream_base::random::Seed;
use segstream_base::stage::StageId;
use segstream_base::{Duration, Instant};
use segstream_net::staged::{PacketStore, Slot, Stop};
use segstream_schemes::htpnet::{Message, Unit};
use std::sync::Arc;

/// How many different payloads there are: a prime, so that a packet in another's place is noticed whatever the window.
const CONTENTS: usize = 61;
/// How long the host waits when the store is full though nothing of its own is in it.
const RETRY: Duration = Duration::from_micros(100);
/// After how many packets the receiving host tells that it has taken them.
const CONSUMED_BATCH: u32 = 16;

/// What the packets of an experiment hold: packet `i` the payload `i` modulo their number.
#[derive(Debug)]
pub(super) struct Contents(Vec<Vec<u8>>);

impl Contents {
    /// Payloads of `bytes` bytes, always the same.
    pub(super) fn new(bytes: u32) -> Self {
        let mut random = Seed(1).stream("content");
        Self((0..CONTENTS).map(|_| (0..bytes).map(|_| random.bits() as u8).collect()).collect())
    }

    fn of(&self, packet: u32) -> &[u8] {
        &self.0[packet as usize % CONTENTS]
    }
}

/// The host that sends.
pub(super) struct HostIn {
    store: Arc<PacketStore>,
    contents: Arc<Contents>,
    tx1: StageId,
    packets: u32,
    offered: u32,
    /// Packets offered and not released, and the most of them.
    ahead: u32,
    ahead_max: u32,
    /// When to look for a free slot again.
    retry: Instant,
}

impl HostIn {
    /// A host that offers `packets` packets to Tx1, at most `ahead_max` of them unreleased.
    pub(super) fn new(store: Arc<PacketStore>, contents: Arc<Contents>, tx1: StageId, packets: u32, ahead_max: u32) -> Self {
        Self { store, contents, tx1, packets, offered: 0, ahead: 0, ahead_max, retry: Instant::ZERO }
    }

    pub(super) fn handle(&mut self, message: &Message) {
        if let Message::Release { slot, .. } = message {
            self.store.release(Slot(*slot));
            self.ahead = self.ahead.saturating_sub(1);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (self.offered < self.packets && self.ahead < self.ahead_max).then_some(self.retry)
    }

    /// Offers one packet.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        let content = self.contents.of(self.offered);
        let Some(Slot(slot)) = self.store.put(content) else {
            self.retry = now + RETRY;
            return;
        };
        let unit = Unit { segment: self.offered, packet: 0, last: true, bytes: content.len() as u16, slot };
        out.push((self.tx1, Message::Offer(unit)));
        self.offered += 1;
        self.ahead += 1;
    }
}

/// The host that receives.
pub(super) struct HostOut {
    store: Arc<PacketStore>,
    contents: Arc<Contents>,
    rx1: StageId,
    stop: Stop,
    packets: u32,
    /// The number of packets before the steady state, and when that was reached.
    warm: u32,
    warm_at: Instant,
    last_at: Instant,
    delivered: u32,
    wrong: u32,
    consumed: u32,
    copy: Vec<u8>,
}

impl HostOut {
    /// A host that expects `packets` packets, the first `warm` of which are not measured; with the last it sets `stop`.
    pub(super) fn new(store: Arc<PacketStore>, contents: Arc<Contents>, rx1: StageId, packets: u32, warm: u32, stop: Stop) -> Self {
        Self {
            store,
            contents,
            rx1,
            stop,
            packets,
            warm,
            warm_at: Instant::ZERO,
            last_at: Instant::ZERO,
            delivered: 0,
            wrong: 0,
            consumed: 0,
            copy: Vec::new(),
        }
    }

    pub(super) fn handle(&mut self, now: Instant, message: &Message, out: &mut Vec<(StageId, Message)>) {
        match message {
            Message::Deliver { unit, .. } => self.take(now, unit, out),
            // A packet that came twice, or for which there was no buffer.
            Message::Release { slot, .. } => {
                self.store.release(Slot(*slot));
            }
            _ => {}
        }
    }

    fn take(&mut self, now: Instant, unit: &Unit, out: &mut Vec<(StageId, Message)>) {
        self.copy.clear();
        self.store.copy_out(Slot(unit.slot), &mut self.copy);
        self.store.release(Slot(unit.slot));
        if unit.segment == self.delivered && self.copy == self.contents.of(self.delivered) {
            self.delivered += 1;
        } else {
            self.wrong += 1;
        }
        self.last_at = now;
        if self.delivered == self.warm {
            self.warm_at = now;
        }
        if self.delivered == self.packets {
            self.stop.stop();
        }
        self.consumed += 1;
        if self.consumed == CONSUMED_BATCH {
            self.consumed = 0;
            out.push((self.rx1, Message::Consumed(CONSUMED_BATCH)));
        }
    }

    /// Packets that came as the next one and unchanged.
    pub(super) const fn delivered(&self) -> u32 {
        self.delivered
    }

    /// Packets that came out of their place or changed.
    pub(super) const fn wrong(&self) -> u32 {
        self.wrong
    }

    /// From the last packet that is not measured to the last.
    pub(super) const fn span(&self) -> Duration {
        self.last_at.since(self.warm_at)
    }
}
