//! The middlebox of the swarm's network: it reports every datagram to the checkers and to the attacker.
//!
//! Invariant: it lets everything pass.

use crate::addresses::Addresses;
use crate::event::{Event, Fate};
use crate::hostile::{Attacker, kind};
use crate::watch::Watch;
use segstream_base::{Instant, ShipmentNumber};
use segstream_network::{Datagram, Event as NetworkEvent, Fate as NetworkFate, Middlebox, Reception, Ruling};
use segstream_proto::session::Plain;

/// The observer.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) watch: Watch,
    pub(crate) attacker: Attacker,
    pub(crate) addresses: Addresses,
    /// Whether the attacker is there.
    pub(crate) attacked: bool,
    pub(crate) encrypted: bool,
    /// The attacker brings the next datagram; whether the host at its source address has made it as it is.
    pub(crate) forged: Option<bool>,
    /// Bytes that have left or arrived since the swarm last asked.
    pub(crate) bytes: u64,
}

impl Middlebox for Observer {
    fn decide(&mut self, _now: Instant, datagram: &mut Datagram<'_>) -> Ruling {
        if self.attacked {
            self.attacker.see(datagram.host.0, self.addresses.place(datagram.to), datagram.bytes);
        }
        Ruling::Pass
    }

    fn observe(&mut self, now: Instant, event: &NetworkEvent<'_>) {
        match *event {
            NetworkEvent::Clock => self.watch.step(now),
            NetworkEvent::Sent { host, to, bytes, fate, .. } => {
                // Keys are fresh in each run, and so are the bytes they seal.
                let content = if self.encrypted { 0 } else { u32::from_be_bytes(Plain::checksum(ShipmentNumber(0), bytes)) };
                let (to, kind) = (self.addresses.place(to), kind(bytes, self.encrypted));
                self.bytes += bytes.len() as u64;
                self.watch.tell(Event::Sent { host: host.0, to, kind, bytes: bytes.len() as u64, content, fate: fate.into() });
            }
            NetworkEvent::Arrived { host, from, bytes, reception: Reception::Handled | Reception::Buffered, .. } => {
                let (from, kind) = (self.addresses.place(from), kind(bytes, self.encrypted));
                self.bytes += bytes.len() as u64;
                let (genuine, hostile) = (self.forged.unwrap_or(true), self.forged.is_some());
                self.watch.tell(Event::Arrived { host: host.0, from, kind, bytes: bytes.len() as u64, genuine, hostile });
            }
            // The swarm tells of faults itself.
            _ => {}
        }
    }
}

impl From<NetworkFate> for Fate {
    fn from(fate: NetworkFate) -> Self {
        match fate {
            NetworkFate::Arrives { at, copy: Some(copy), .. } => Self::Twice(at, copy),
            NetworkFate::Arrives { at, copy: None, damaged: true } => Self::Damaged(at),
            NetworkFate::Arrives { at, copy: None, damaged: false } => Self::Arrives(at),
            NetworkFate::Lost | NetworkFate::Filtered => Self::Lost,
            NetworkFate::Blocked => Self::Blocked,
            NetworkFate::Unreachable => Self::Nowhere,
        }
    }
}
