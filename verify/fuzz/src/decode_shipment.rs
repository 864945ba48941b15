//! The bytes of a shipment: header, and the body of each kind.
//!
//! Promises: no bytes make a decoder panic; what is decoded is encoded in the length announced, in no more
//! bytes than it was read from, and decodes to the same value again.

use core::fmt::Debug;
use segstream_base::codec::{DecodeError, Reader, Writer};
use segstream_wire::handshake::{Confirm, Cookie, Disconnect, Fragment, Reject, Request};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::proposal::{Agreement, Proposal};
use segstream_wire::{Contract, Header, Kind, Part, Repair, Report, State};

/// Checks the promises for one input: as a shipment without its seal, and as the body of every kind.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let header = Header::decode(&mut Reader::new(data));
    comes_back(data, Header::decode, Header::encode, |_| Some(HEADER_BYTES));
    match header {
        Ok(header) => body(header.kind, &data[HEADER_BYTES..]),
        Err(_) => Kind::ALL.iter().for_each(|&kind| body(kind, data)),
    }
}

fn body(kind: Kind, data: &[u8]) {
    match kind {
        Kind::Request => {
            comes_back(data, Request::decode, Request::encode, |_| None);
            comes_back(data, Contract::decode, Contract::encode, |contract| Some(contract.encoded_len()));
        }
        Kind::Confirm => comes_back(data, Confirm::decode, Confirm::encode, |_| None),
        Kind::Cookie => comes_back(data, Cookie::decode, Cookie::encode, |_| None),
        Kind::Handshake => {
            comes_back(data, Fragment::decode, Fragment::encode, |_| None);
            comes_back(data, Proposal::decode, Proposal::encode, |_| None);
            comes_back(data, Agreement::decode, Agreement::encode, |_| None);
        }
        Kind::Reject => comes_back(data, Reject::decode, Reject::encode, |_| None),
        Kind::Disconnect => comes_back(data, Disconnect::decode, Disconnect::encode, |_| None),
        Kind::DisconnectConfirm | Kind::Challenge | Kind::Response => {}
        Kind::Data => parts(data),
        Kind::Repair => repair(data),
        Kind::State => comes_back(data, State::decode, State::encode, |state| Some(state.encoded_len())),
        Kind::Report => comes_back(data, Report::decode, Report::encode, |report| Some(report.encoded_len())),
    }
}

fn repair(data: &[u8]) {
    comes_back(
        data,
        |input| Repair::decode(input).map(|(repair, payload)| (repair, payload.to_vec())),
        |(repair, payload), out| {
            repair.encode_header(out);
            assert_eq!(out.position(), repair.header_len());
            out.bytes(payload);
        },
        |(repair, _)| Some(repair.encoded_len()),
    );
}

fn parts(data: &[u8]) {
    let mut input = Reader::new(data);
    while !input.is_empty() {
        let rest = &data[input.position()..];
        let Ok((part, payload)) = Part::decode(&mut input) else { return };
        assert_eq!(payload.len(), part.payload_bytes as usize);
        assert!(part.count > 0 && part.first.0.checked_add(part.count).is_some(), "{part:?} has no end");
        comes_back(
            rest,
            |input| Part::decode(input).map(|(part, payload)| (part, payload.to_vec())),
            |(part, payload), out| {
                part.encode_header(out);
                assert_eq!(out.position(), part.header_len());
                out.bytes(payload);
            },
            |(part, _)| Some(part.encoded_len()),
        );
    }
}

/// Decodes a value; if there is one, encodes and decodes it again.
fn comes_back<T: PartialEq + Debug>(
    data: &[u8],
    decode: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut Writer<'_>),
    announced: impl Fn(&T) -> Option<usize>,
) {
    let mut input = Reader::new(data);
    let value = match decode(&mut input) {
        Ok(value) => value,
        Err(refused) => {
            assert!(refused.at <= data.len(), "{refused:?} lies outside the input");
            return;
        }
    };
    let read = input.position();
    let mut bytes = vec![0; read];
    let mut out = Writer::new(&mut bytes);
    encode(&value, &mut out);
    let written = out.finish().unwrap_or_else(|full| panic!("{value:?} was read from {read} bytes: {full}"));
    if let Some(announced) = announced(&value) {
        assert_eq!(written, announced, "{value:?}");
    }
    let again = decode(&mut Reader::new(&bytes[..written]));
    assert_eq!(again.as_ref(), Ok(&value), "encoded as {:02x?}", &bytes[..written]);
}
