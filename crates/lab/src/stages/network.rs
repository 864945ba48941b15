//! The network between the ends: a node at each end, and the path between them (HT 5: a pipeline of processes that
//! simulates round trip and packet errors).
//!
//! Run as stages. Packets are passed by reference; while one is in flight the network holds its slot too.
//!
//! Invariant: packets of one direction leave in the order the path says; every slot is let go by the path that loses the
//! packet or by the host that receives it.

use segstream_base::halves::Packet;
use segstream_base::stage::StageId;
use segstream_base::{Bytes, Instant};
use segstream_net::staged::{PacketStore, Slot};
use segstream_path::{Fate, Path};
use segstream_schemes::htpnet::{Forward, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node at one end: packets wait here for the next.
pub(super) struct Node {
    pub(super) name: &'static str,
    /// Where packets of the transmitter go, and those of the receiver.
    pub(super) forward: StageId,
    pub(super) back: StageId,
    /// Where the node holds the payload that enters the network; `None` at the end where it leaves.
    pub(super) enters: Option<Arc<PacketStore>>,
    /// Data packets that went forward.
    pub(super) data: u64,
}

impl Node {
    pub(super) fn handle(&mut self, message: Message, out: &mut Vec<(StageId, Message)>) {
        match &message {
            Message::Forward { packet, slot } => {
                if let (Forward::Data(_), Some(store)) = (packet, &self.enters) {
                    store.share(Slot(*slot));
                    self.data += 1;
                }
                out.push((self.forward, message));
            }
            Message::Feedback(_) => out.push((self.back, message)),
            _ => {}
        }
    }
}

/// The path: delay and loss, both ways.
pub(super) struct Between {
    store: Arc<PacketStore>,
    forward: (Path, StageId),
    back: (Path, StageId),
    in_flight: BTreeMap<(Instant, u64), (StageId, Message)>,
    sent: u64,
    data_lost: u64,
}

impl Between {
    /// A network of the two paths, each with the stage to which it leads.
    pub(super) fn new(store: Arc<PacketStore>, forward: (Path, StageId), back: (Path, StageId)) -> Self {
        Self { store, forward, back, in_flight: BTreeMap::new(), sent: 0, data_lost: 0 }
    }

    pub(super) fn handle(&mut self, now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        let bytes = |length: usize| Bytes::new(length as u64);
        let (passage, to) = match &message {
            Message::Forward { packet, .. } => (self.forward.0.send(now, bytes(packet.encoded_len())), self.forward.1),
            Message::Feedback(packet) => (self.back.0.send(now, bytes(packet.encoded_len())), self.back.1),
            _ => return,
        };
        match passage.fate {
            Fate::Delivered { at } if at <= now && self.in_flight.is_empty() => out.push((to, message)),
            Fate::Delivered { at } => {
                self.in_flight.insert((at, self.sent), (to, message));
                self.sent += 1;
            }
            Fate::Lost | Fate::Dropped => self.lose(&message),
        }
    }

    fn lose(&mut self, message: &Message) {
        if let Message::Forward { packet: Forward::Data(_), slot } = message {
            self.data_lost += 1;
            self.store.release(Slot(*slot));
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.in_flight.first_key_value().map(|((at, _), _)| *at)
    }

    /// Hands on what has arrived.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        while let Some(first) = self.in_flight.first_entry().filter(|first| first.key().0 <= now) {
            out.push(first.remove());
        }
    }

    /// Data packets that did not come through.
    pub(super) const fn data_lost(&self) -> u64 {
        self.data_lost
    }
}
