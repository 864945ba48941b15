//! Plain mode claims nothing that it cannot keep.

use segstream_base::ShipmentNumber;
use segstream_proto::session::{Plain, Protection, Session, Trust};
use segstream_wire::Level;

/// Both sessions of a connection in plain mode.
fn sessions() -> [Box<dyn Session>; 2] {
    let mut plain = Plain::new([7; 16]);
    let to = "10.0.0.1:1".parse().unwrap();
    [plain.initiate(to, &Trust::Anyone, b"proposed").unwrap(), plain.respond(to)]
}

#[test]
fn nobody_is_authentic_and_no_key_wears_out() {
    for session in sessions() {
        assert!(session.peer().is_none() && !session.authenticates_peer() && !session.aead_limit_reached());
        let sealable = [Level::Initial, Level::Handshake, Level::Data, Level::DataOdd].map(|level| session.can_seal(level));
        assert_eq!(sealable, [true, false, true, true], "there are no keys of a handshake");
        assert_eq!((session.data_level(), session.seal_bytes()), (Level::Data, 4));
    }
}

#[test]
fn nothing_outlives_the_endpoint_and_its_key_is_not_shown() {
    let plain = Plain::new([7; 16]);
    assert_eq!((plain.mode(), plain.lasting_mac(b"connection")), (0, None));
    assert_eq!(format!("{plain:?}"), "Plain");
}

/// The lower half of the number stands in the header, which is not looked at here.
#[test]
fn a_shipment_opens_under_its_own_number_alone() {
    let [mut ours, mut theirs] = sessions();
    let mut shipment = b"header and body....".to_vec();
    ours.seal(Level::Data, ShipmentNumber(9), &mut shipment);
    let length = shipment.len() - ours.seal_bytes();
    assert_eq!(theirs.open(Level::Data, ShipmentNumber(9), &mut shipment), Some(length));
    assert_eq!(theirs.open(Level::Data, ShipmentNumber(9 + (1 << 32)), &mut shipment), None);
}
