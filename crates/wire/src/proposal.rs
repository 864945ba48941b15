//! Proposal and agreement, inside the handshake that CR, CC and HS carry (spec 6.9, 6.10); compare QUIC's transport parameters.
//!
//! Called by connections. Invariant: both repeat the identifiers that are sent outside the handshake, so that an agreement is valid for one
//! connection only.

use crate::class::Class;
use crate::contract::{Contract, Limits};
use crate::handshake::{decode_token, encode_token};
use crate::report::ReportFrame;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::{Bandwidth, Duration};

/// The most streams a proposal or an agreement can name.
pub const STREAMS_MAX: usize = 64;

/// The extension of repair units (spec 12.1).
pub const EXTENSION_REPAIR: u64 = 1;

/// What the initiator proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The version of the protocol, as in the request.
    pub version: u16,
    /// The request's identifier.
    pub request: u64,
    /// The identifier the initiator wants to be addressed by.
    pub connection: u32,
    /// The class proposed for both directions.
    pub class: Class,
    /// The rate the initiator will send at; zero when unpaced.
    pub rate: Bandwidth,
    /// What the initiator allows.
    pub limits: Limits,
    /// The first streams, numbered from 0.
    pub streams: Vec<Contract>,
    /// The extensions that the initiator has, as bits ([`EXTENSION_REPAIR`]); not written if there are none.
    pub extensions: u64,
}

/// What the responder agrees to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The request's identifier.
    pub request: u64,
    /// The identifier the responder wants to be addressed by.
    pub connection: u32,
    /// The class accepted: never more than was proposed.
    pub class: Class,
    /// What the responder allows.
    pub limits: Limits,
    /// The stateless reset token; `None` if the responder sends no stateless resets.
    pub reset: Option<[u8; 16]>,
    /// The address token for a later request; may be empty.
    pub token: Vec<u8>,
    /// GRANT and REFUSED frames for the proposal's streams.
    pub grants: Vec<ReportFrame>,
}

impl Proposal {
    /// Writes the proposal.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u16(self.version);
        out.u64(self.request);
        out.u32(self.connection);
        out.u8(self.class.number());
        out.varint(self.rate.bits_per_second());
        self.limits.encode(out);
        out.u8(self.streams.len().min(STREAMS_MAX) as u8);
        for contract in self.streams.iter().take(STREAMS_MAX) {
            contract.encode(out);
        }
        // Why only then: an initiator without extensions says what it always said.
        if self.extensions != 0 {
            out.varint(self.extensions);
        }
    }

    /// Reads a proposal.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (version, request) = (input.u16("version")?, input.u64("request identifier")?);
        let connection = input.u32("connection identifier")?;
        let class = class(input)?;
        let rate = Bandwidth::from_bits_per_second(input.varint("rate")?);
        let limits = Limits::decode(input)?;
        let count = input.u8("stream count")?;
        if usize::from(count) > STREAMS_MAX {
            return Err(input.error("stream count", DecodeErrorKind::OutOfRange(u64::from(count))));
        }
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(Contract::decode(input)?);
        }
        let extensions = if input.is_empty() { 0 } else { input.varint("extensions")? };
        Ok(Self { version, request, connection, class, rate, limits, streams, extensions })
    }
}

impl Agreement {
    /// Writes the agreement.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.request);
        out.u32(self.connection);
        out.u8(self.class.number());
        self.limits.encode(out);
        out.u8(u8::from(self.reset.is_some()));
        out.bytes(self.reset.as_ref().map_or(&[][..], |reset| reset));
        encode_token(&self.token, out);
        for frame in &self.grants {
            frame.encode(out);
        }
    }

    /// Reads an agreement to its end.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (request, connection) = (input.u64("request identifier")?, input.u32("connection identifier")?);
        let class = class(input)?;
        let limits = Limits::decode(input)?;
        let reset = match input.u8("reset")? {
            0 => None,
            1 => input.bytes(16, "reset")?.try_into().ok(),
            other => return Err(input.error("reset", DecodeErrorKind::OutOfRange(u64::from(other)))),
        };
        let token = decode_token(input)?;
        let mut grants = Vec::new();
        while !input.is_empty() {
            grants.push(ReportFrame::decode(input)?);
        }
        Ok(Self { request, connection, class, limits, reset, token, grants })
    }
}

fn class(input: &mut Reader<'_>) -> Result<Class, DecodeError> {
    let number = input.u8("class")?;
    Class::new(number).ok_or_else(|| input.error("class", DecodeErrorKind::OutOfRange(u64::from(number))))
}

/// The idle timeout in force: the shorter of the two sides', at least one second.
pub fn agreed_idle_timeout(ours: &Limits, theirs: &Limits) -> Duration {
    ours.idle_timeout.min(theirs.idle_timeout).max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::tests::written;
    use proptest::prelude::*;
    use segstream_base::{StreamId, Tolerance};

    #[test]
    fn what_is_proposed_and_agreed_comes_back_as_it_was() {
        let proposal = Proposal {
            version: 2,
            request: 0x0123_4567_89ab_cdef,
            connection: 9,
            class: Class::ALL,
            rate: Bandwidth::from_megabits_per_second(100),
            limits: Limits::default(),
            streams: vec![Contract::default(), Contract { tolerance: Tolerance::new(8, 1, 1).unwrap(), ..Contract::default() }],
            extensions: 0,
        };
        for proposal in [proposal.clone(), Proposal { extensions: EXTENSION_REPAIR, ..proposal }] {
            assert_eq!(Proposal::decode(&mut Reader::new(&written(|out| proposal.encode(out)))), Ok(proposal.clone()));
        }
        for reset in [None, Some([3; 16])] {
            let agreement = Agreement {
                request: 4,
                connection: 5,
                class: Class::ALL,
                limits: Limits::default(),
                reset,
                token: vec![1, 2],
                grants: vec![ReportFrame::Grant { stream: StreamId(0), segments: 1, units: 2, end_known: false }],
            };
            assert_eq!(Agreement::decode(&mut Reader::new(&written(|out| agreement.encode(out)))), Ok(agreement.clone()));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(input in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Proposal::decode(&mut Reader::new(&input));
            let _ = Agreement::decode(&mut Reader::new(&input));
        }
    }
}
