//! The keys of the data levels: one set for each key phase, and the key update between them.
//!
//! Called by sessions for every shipment of a data level. Even key phases seal [`Level::Data`], odd ones [`Level::DataOdd`]; both
//! directions update together.
//!
//! Invariant: no key seals more shipments than its cipher suite allows. The keys of the next key phase are made in advance, so that a
//! forged level costs no more, and takes no other time, than any forged shipment (RFC 9001 6.3).
//!
//! Source: RFC 9001 6 (key update) and 6.6 (limits).

use rustls::quic::{PacketKey, PacketKeySet, Secrets};
use segstream_base::ShipmentNumber;
use segstream_wire::Level;
use segstream_wire::header::HEADER_BYTES;

/// The length of a seal in bytes: that of every suite of TLS 1.3.
pub const SEAL_BYTES: usize = 16;

/// Seals a shipment in place, before header protection. Returns whether it succeeded.
pub(crate) fn seal(key: &dyn PacketKey, number: ShipmentNumber, shipment: &mut [u8]) -> bool {
    let Some((header, rest)) = shipment.split_first_chunk_mut::<HEADER_BYTES>() else { return false };
    let Some((body, seal)) = rest.split_last_chunk_mut::<SEAL_BYTES>() else { return false };
    match key.encrypt_in_place(number.0, header, body) {
        Ok(tag) if tag.as_ref().len() == SEAL_BYTES => {
            seal.copy_from_slice(tag.as_ref());
            true
        }
        _ => false,
    }
}

/// Opens a shipment in place. Returns the length of header and body.
pub(crate) fn open(key: &dyn PacketKey, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
    let (header, rest) = shipment.split_first_chunk_mut::<HEADER_BYTES>()?;
    let body = key.decrypt_in_place(number.0, header, rest).ok()?;
    Some(HEADER_BYTES + body.len())
}

/// The AEAD usage limits of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Sealed shipments of a key phase after which a key update begins.
    pub(crate) update_after: u64,
    /// The maximum number of sealed shipments in a key phase (confidentiality limit).
    pub(crate) sealed_max: u64,
    /// The maximum number of shipments that did not open, in all key phases (integrity limit).
    pub(crate) refused_max: u64,
}

impl Limits {
    /// The limits of a cipher suite. The update begins at half of the confidentiality limit, so that the peer has time to follow.
    pub(crate) fn of(key: &dyn PacketKey) -> Self {
        let sealed_max = key.confidentiality_limit();
        Self { update_after: sealed_max / 2, sealed_max, refused_max: key.integrity_limit() }
    }
}

/// The peer's key of the key phase of `secrets`.
fn remote_key(secrets: &Secrets) -> Box<dyn PacketKey> {
    secrets.clone().next_packet_keys().remote
}

/// The keys of the data levels.
pub(crate) struct KeyPhases {
    limits: Limits,
    phase: u64,
    present: PacketKeySet,
    /// The peer's key of the next key phase.
    // Why not our next key too: only an update needs it, and each key takes half a kilobyte.
    next_remote: Box<dyn PacketKey>,
    /// The peer's key of the previous key phase, for reordered shipments.
    previous: Option<Box<dyn PacketKey>>,
    /// Of the next key phase.
    secrets: Secrets,
    /// How many shipments the present key has sealed.
    sealed: u64,
    /// The first number that has opened in this key phase. Numbers of the previous key phase are lower, those of the next are higher.
    heard_from: Option<ShipmentNumber>,
    /// How many shipments did not open.
    refused: u64,
}

impl KeyPhases {
    /// Begins with key phase 0; `secrets` are those of key phase 1.
    pub(crate) fn new(present: PacketKeySet, secrets: Secrets) -> Self {
        let limits = Limits::of(&*present.local);
        let next_remote = remote_key(&secrets);
        Self { limits, phase: 0, present, next_remote, previous: None, secrets, sealed: 0, heard_from: None, refused: 0 }
    }

    /// The level of the key phase that seals now.
    pub(crate) fn level(&self) -> Level {
        if self.phase.is_multiple_of(2) { Level::Data } else { Level::DataOdd }
    }

    /// Whether a key has reached its AEAD usage limit.
    pub(crate) fn aead_limit_reached(&self) -> bool {
        self.sealed >= self.limits.sealed_max || self.refused >= self.limits.refused_max
    }

    /// Seals with the present key phase, whose level `level` must be. Returns whether it succeeded.
    pub(crate) fn seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> bool {
        let sealed = level == self.level() && !self.aead_limit_reached() && seal(&*self.present.local, number, shipment);
        self.sealed += u64::from(sealed);
        debug_assert!(self.sealed <= self.limits.sealed_max, "a key has sealed too often");
        self.update_if_due();
        sealed
    }

    /// Opens with the key phase that follows from level and number, and follows the peer's key update.
    pub(crate) fn open(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        if self.refused >= self.limits.refused_max {
            return None;
        }
        let opened = self.open_by_level(level, number, shipment);
        self.refused += u64::from(opened.is_none());
        debug_assert!(self.refused <= self.limits.refused_max, "a broken seal was looked at beyond the limit");
        self.update_if_due();
        opened
    }

    fn open_by_level(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        if level == self.level() {
            let end = open(&*self.present.remote, number, shipment)?;
            self.heard_from.get_or_insert(number);
            return Some(end);
        }
        // RFC 9001 6.5: lower numbers than those of this key phase are of the previous one, higher ones of the next.
        // Limit: until a shipment of the peer has opened in this key phase, the other level is taken for the previous one. The peer
        // can be two key phases ahead only if half of all shipments that a key may seal are lost.
        match &self.previous {
            Some(previous) if self.heard_from.is_none_or(|from| number < from) => open(&**previous, number, shipment),
            _ => {
                let end = open(&*self.next_remote, number, shipment)?;
                self.advance();
                self.heard_from = Some(number);
                Some(end)
            }
        }
    }

    /// RFC 9001 6.1: no further update before the peer has followed the last one.
    fn update_if_due(&mut self) {
        if self.sealed >= self.limits.update_after && self.heard_from.is_some() {
            self.advance();
        }
    }

    fn advance(&mut self) {
        let local = self.secrets.next_packet_keys().local;
        let remote = core::mem::replace(&mut self.next_remote, remote_key(&self.secrets));
        let present = core::mem::replace(&mut self.present, PacketKeySet { local, remote });
        self.previous = Some(present.remote);
        self.phase += 1;
        self.sealed = 0;
        self.heard_from = None;
    }
}

#[cfg(test)]
impl KeyPhases {
    /// Lower limits.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// How often keys may be used.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// How many key phases there have been.
    pub(crate) fn phase(&self) -> u64 {
        self.phase
    }
}
