//! Pairs of sessions, driven by hand.

use crate::tls_session::TlsSession;
use crate::{Admission, Fingerprint, Identity, Tls, Trust};
use segstream_base::ShipmentNumber;
use segstream_proto::session::{HandshakeError, Session};
use segstream_wire::Level;
use segstream_wire::header::HEADER_BYTES;

mod certified;
mod handshakes;
mod key_update;
mod seals;
mod trust;
mod wycheproof;

const PROPOSED: &[u8] = b"what the initiator proposes";
const AGREED: &[u8] = b"what the responder agrees to";

/// Which side's session has failed, and how.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Initiator(HandshakeError),
    Responder(HandshakeError),
}

/// An endpoint of a fresh identity.
fn endpoint(admission: Admission) -> Tls {
    Tls::new(Identity::generate().unwrap(), admission, None).unwrap()
}

/// Brings all that `from` has to say to `to`, in pieces of so many bytes; a responder answers what is proposed.
fn carry(from: &mut TlsSession, to: &mut TlsSession, piece: usize) -> Result<(), HandshakeError> {
    while let Some((level, bytes)) = from.write_handshake() {
        for piece in bytes.chunks(piece) {
            to.read_handshake(level, piece)?;
            if to.peer_parameters() == Some(PROPOSED) {
                to.answer(AGREED)?;
            }
        }
    }
    Ok(())
}

/// Drives a handshake to its end.
fn shake(initiator: &mut TlsSession, responder: &mut TlsSession, piece: usize) -> Result<(), Failure> {
    carry(initiator, responder, piece).map_err(Failure::Responder)?;
    carry(responder, initiator, piece).map_err(Failure::Initiator)?;
    carry(initiator, responder, piece).map_err(Failure::Responder)?;
    carry(responder, initiator, piece).map_err(Failure::Initiator)
}

/// A handshake between two endpoints.
pub(crate) fn connect(initiator: &Tls, trust: &Trust, responder: &Tls) -> Result<(TlsSession, TlsSession), Failure> {
    let mut initiator = initiator.initiator(trust, PROPOSED).map_err(Failure::Initiator)?;
    let mut responder = responder.responder();
    shake(&mut initiator, &mut responder, usize::MAX)?;
    Ok((initiator, responder))
}

/// Two sessions that have completed their handshake.
fn pair() -> (TlsSession, TlsSession) {
    connect(&endpoint(Admission::nobody()), &Trust::Anyone, &endpoint(Admission::anyone())).unwrap()
}

/// The error of an initiator that refused its peer.
fn initiator_error(failure: Failure) -> HandshakeError {
    match failure {
        Failure::Initiator(error) => error,
        Failure::Responder(error) => panic!("the responder failed: {error:?}"),
    }
}

/// The error of a responder that refused its peer.
fn responder_error(failure: Failure) -> HandshakeError {
    match failure {
        Failure::Responder(error) => error,
        Failure::Initiator(error) => panic!("the initiator failed: {error:?}"),
    }
}

fn some_key() -> Fingerprint {
    Identity::generate().unwrap().fingerprint()
}

/// A shipment of kind DT with this body, not sealed yet.
fn plain(level: Level, number: u64, body: &[u8]) -> Vec<u8> {
    let mut shipment = vec![0x40 | (level as u8) << 4 | 5, 0xde, 0xad, 0xbe, 0xef];
    shipment.extend((number as u32).to_be_bytes());
    shipment.extend(body);
    shipment
}

/// Seals a shipment under the data level of now.
fn send(from: &mut TlsSession, number: u64, body: &[u8]) -> Vec<u8> {
    let level = from.data_level();
    send_at(from, level, number, body)
}

fn send_at(from: &mut TlsSession, level: Level, number: u64, body: &[u8]) -> Vec<u8> {
    let mut shipment = plain(level, number, body);
    shipment.resize(shipment.len() + from.seal_bytes(), 0);
    from.seal(level, ShipmentNumber(number), &mut shipment);
    shipment
}

/// Removes header protection and opens as a connection does that knows the upper half of the number: the body.
fn receive(to: &mut TlsSession, upper: u64, shipment: &[u8]) -> Option<Vec<u8>> {
    let mut shipment = shipment.to_vec();
    to.unprotect_header(&mut shipment);
    let level = level_of(&shipment);
    let number = u32::from_be_bytes(shipment[5..HEADER_BYTES].try_into().unwrap());
    let end = to.open(level, ShipmentNumber(upper << 32 | u64::from(number)), &mut shipment)?;
    Some(shipment[HEADER_BYTES..end].to_vec())
}

fn level_of(shipment: &[u8]) -> Level {
    [Level::Initial, Level::Handshake, Level::Data, Level::DataOdd][usize::from(shipment[0] >> 4 & 3)]
}
