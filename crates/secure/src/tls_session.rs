//! The session of one connection under TLS 1.3.
//!
//! Made by [`crate::Tls`]; the connection calls it through the contract `segstream_proto::session::Session`.
//!
//! Invariant: nothing leaves unsealed: a shipment for which there is no key leaves as zeros. No shipment of the data levels is sealed or
//! opened before the handshake is complete.
//!
//! Source: RFC 9001 5 and 6; the handshake is in [`crate::handshake`], the keys of the data levels in
//! [`crate::key_phases`].

use crate::Fingerprint;
use crate::handshake::Handshake;
use crate::header_protection;
use crate::key_phases::{self, KeyPhases, Limits, SEAL_BYTES};
use core::fmt;
use rustls::quic::{HeaderProtectionKey, Keys, PacketKeySet, Secrets};
use segstream_base::ShipmentNumber;
use segstream_proto::session::{HandshakeError, Session};
use segstream_wire::Level;

/// The session of one connection.
pub(crate) struct TlsSession {
    pub(crate) handshake: Handshake,
    handshake_keys: Option<HandshakeKeys>,
    pub(crate) data_keys: Option<DataKeys>,
}

/// The keys of the handshake level, which has no key update.
struct HandshakeKeys {
    keys: PacketKeySet,
    limits: Limits,
    sealed: u64,
    refused: u64,
}

/// The keys of the data levels, and those of header protection.
pub(crate) struct DataKeys {
    pub(crate) key_phases: KeyPhases,
    local_header: Box<dyn HeaderProtectionKey>,
    remote_header: Box<dyn HeaderProtectionKey>,
}

impl TlsSession {
    pub(crate) fn new(handshake: Handshake) -> Self {
        let mut session = Self { handshake, handshake_keys: None, data_keys: None };
        session.take_keys();
        session
    }

    fn take_keys(&mut self) {
        let made = self.handshake.take_keys();
        if let Some(keys) = made.handshake {
            self.handshake_keys = Some(HandshakeKeys::new(keys));
        }
        if let Some((keys, secrets)) = made.data.map(|made| *made) {
            self.data_keys = Some(DataKeys::new(keys, secrets));
        }
    }

    /// The keys of the data levels, once the handshake is complete.
    fn usable_data_keys(&mut self) -> Option<&mut DataKeys> {
        self.data_keys.as_mut().filter(|_| self.handshake.is_complete())
    }

    fn try_seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> bool {
        match level {
            Level::Initial => false,
            Level::Handshake => self.handshake_keys.as_mut().is_some_and(|keys| keys.seal(number, shipment)),
            Level::Data | Level::DataOdd => self.usable_data_keys().is_some_and(|keys| keys.seal(level, number, shipment)),
        }
    }
}

impl HandshakeKeys {
    fn new(keys: Keys) -> Self {
        let limits = Limits::of(&*keys.local.packet);
        Self { keys: PacketKeySet { local: keys.local.packet, remote: keys.remote.packet }, limits, sealed: 0, refused: 0 }
    }

    fn aead_limit_reached(&self) -> bool {
        self.sealed >= self.limits.sealed_max || self.refused >= self.limits.refused_max
    }

    fn seal(&mut self, number: ShipmentNumber, shipment: &mut [u8]) -> bool {
        let sealed = !self.aead_limit_reached() && key_phases::seal(&*self.keys.local, number, shipment);
        self.sealed += u64::from(sealed);
        sealed
    }

    fn open(&mut self, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        if self.refused >= self.limits.refused_max {
            return None;
        }
        let opened = key_phases::open(&*self.keys.remote, number, shipment);
        self.refused += u64::from(opened.is_none());
        opened
    }
}

impl DataKeys {
    fn new(keys: Keys, secrets: Secrets) -> Self {
        let present = PacketKeySet { local: keys.local.packet, remote: keys.remote.packet };
        Self { key_phases: KeyPhases::new(present, secrets), local_header: keys.local.header, remote_header: keys.remote.header }
    }

    fn seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> bool {
        let sealed = self.key_phases.seal(level, number, shipment);
        if sealed {
            header_protection::apply(&*self.local_header, shipment);
        }
        sealed
    }
}

impl Session for TlsSession {
    fn seal_bytes(&self) -> usize {
        SEAL_BYTES
    }

    fn data_level(&self) -> Level {
        self.data_keys.as_ref().map_or(Level::Data, |keys| keys.key_phases.level())
    }

    fn can_seal(&self, level: Level) -> bool {
        match level {
            Level::Initial => true,
            Level::Handshake => self.handshake_keys.is_some() || self.handshake.is_complete(),
            Level::Data | Level::DataOdd => self.handshake.is_complete(),
        }
    }

    fn seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) {
        if !self.try_seal(level, number, shipment) {
            shipment.fill(0);
        }
    }

    fn unprotect_header(&self, shipment: &mut [u8]) {
        if let Some(keys) = self.data_keys.as_ref().filter(|_| self.handshake.is_complete()) {
            header_protection::apply(&*keys.remote_header, shipment);
        }
    }

    fn open(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        match level {
            Level::Initial => None,
            Level::Handshake => self.handshake_keys.as_mut()?.open(number, shipment),
            Level::Data | Level::DataOdd => {
                let opened = self.usable_data_keys()?.key_phases.open(level, number, shipment)?;
                // RFC 9001 4.9.2: a peer that seals data has completed the handshake, so the handshake keys are discarded.
                self.handshake_keys = None;
                Some(opened)
            }
        }
    }

    fn read_handshake(&mut self, level: Level, bytes: &[u8]) -> Result<(), HandshakeError> {
        let read = self.handshake.read(level, bytes);
        self.take_keys();
        read
    }

    fn write_handshake(&mut self) -> Option<(Level, Vec<u8>)> {
        self.handshake.write()
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        self.handshake.peer_parameters()
    }

    fn answer(&mut self, parameters: &[u8]) -> Result<(), HandshakeError> {
        let answered = self.handshake.answer(parameters);
        self.take_keys();
        answered
    }

    fn is_complete(&self) -> bool {
        self.handshake.is_complete()
    }

    fn peer(&self) -> Option<Fingerprint> {
        self.handshake.peer()
    }

    fn authenticates_peer(&self) -> bool {
        true
    }

    fn aead_limit_reached(&self) -> bool {
        self.handshake_keys.as_ref().is_some_and(HandshakeKeys::aead_limit_reached)
            || self.data_keys.as_ref().is_some_and(|keys| keys.key_phases.aead_limit_reached())
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession").field("is_complete", &self.is_complete()).field("peer", &self.peer()).finish_non_exhaustive()
    }
}
