//! Set-up and close: CR, CC, RJ, DR (spec 6.1 to 6.4); DC has an empty body.
//!
//! Called by connections. Invariant: an answer to a request echoes its random identifier, so that
//! nobody who has not seen the request can forge one.

use crate::class::Class;
use crate::contract::{Contract, Limits};
use crate::report::ReportFrame;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::{Bandwidth, Duration};

/// The version of the protocol in this crate.
pub const VERSION: u16 = 1;
/// The longest text that explains a reject or a disconnect.
pub const DETAIL_BYTES_MAX: usize = 256;
/// The most streams a request or a confirm can name.
pub const STREAMS_MAX: usize = 64;

/// CR: asks for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The version of the protocol.
    pub version: u16,
    /// A random identifier that every answer echoes.
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
}

/// CC: confirms a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The request's identifier.
    pub request: u64,
    /// The identifier the responder wants to be addressed by.
    pub connection: u32,
    /// The class accepted: never more than was proposed.
    pub class: Class,
    /// What the responder allows.
    pub limits: Limits,
    /// GRANT and REFUSED frames for the request's streams.
    pub grants: Vec<ReportFrame>,
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectReason {
    /// The version is not spoken; the answer names the one that is.
    Version,
    /// The endpoint has as many connections as it keeps.
    Busy,
    /// The endpoint accepts no connections.
    NotAccepting,
    /// Class or limits cannot be agreed on.
    Unacceptable,
    /// The application refused.
    Refused,
    /// A reason this version does not know.
    Other(u8),
}

/// RJ: refuses a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The request's identifier.
    pub request: u64,
    /// Why.
    pub reason: RejectReason,
    /// The version the responder speaks.
    pub version: u16,
    /// A sentence for people.
    pub detail: String,
}

/// DR: asks to disconnect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disconnect {
    /// Zero when everything was delivered; otherwise the application's or the protocol's code.
    pub code: u64,
    /// Whether the connection ends at once, whatever is undelivered.
    pub abort: bool,
    /// A sentence for people.
    pub detail: String,
}

impl Request {
    /// Writes the body of a CR.
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
    }

    /// Reads the fields every version has: the version and the request's identifier, and the identifier
    /// to answer to. What follows may differ.
    pub fn decode_version(input: &mut Reader<'_>) -> Result<(u16, u64, u32), DecodeError> {
        Ok((input.u16("version")?, input.u64("request identifier")?, input.u32("connection identifier")?))
    }

    /// Reads the body of a CR of this version.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (version, request, connection) = Self::decode_version(input)?;
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
        Ok(Self { version, request, connection, class, rate, limits, streams })
    }
}

impl Confirm {
    /// Writes the body of a CC.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.request);
        out.u32(self.connection);
        out.u8(self.class.number());
        self.limits.encode(out);
        for frame in &self.grants {
            frame.encode(out);
        }
    }

    /// Reads the body of a CC to its end.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (request, connection) = (input.u64("request identifier")?, input.u32("connection identifier")?);
        let class = class(input)?;
        let limits = Limits::decode(input)?;
        let mut grants = Vec::new();
        while !input.is_empty() {
            grants.push(ReportFrame::decode(input)?);
        }
        Ok(Self { request, connection, class, limits, grants })
    }
}

impl RejectReason {
    const fn code(self) -> u8 {
        match self {
            Self::Version => 0,
            Self::Busy => 1,
            Self::NotAccepting => 2,
            Self::Unacceptable => 3,
            Self::Refused => 4,
            Self::Other(code) => code,
        }
    }

    const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Version,
            1 => Self::Busy,
            2 => Self::NotAccepting,
            3 => Self::Unacceptable,
            4 => Self::Refused,
            other => Self::Other(other),
        }
    }
}

impl Reject {
    /// Writes the body of an RJ.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.request);
        out.u8(self.reason.code());
        out.u16(self.version);
        out.text(cut(&self.detail));
    }

    /// Reads the body of an RJ.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            request: input.u64("request identifier")?,
            reason: RejectReason::from_code(input.u8("reject reason")?),
            version: input.u16("version")?,
            detail: input.text(DETAIL_BYTES_MAX, "detail")?.to_owned(),
        })
    }
}

impl Disconnect {
    /// Writes the body of a DR.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u8(u8::from(self.abort));
        out.varint(self.code);
        out.text(cut(&self.detail));
    }

    /// Reads the body of a DR.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let abort = match input.u8("abort")? {
            0 => false,
            1 => true,
            other => return Err(input.error("abort", DecodeErrorKind::OutOfRange(u64::from(other)))),
        };
        Ok(Self { abort, code: input.varint("code")?, detail: input.text(DETAIL_BYTES_MAX, "detail")?.to_owned() })
    }
}

/// The longest beginning of `text` that may travel.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(DETAIL_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
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
    use proptest::prelude::*;

    fn written(encode: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
        let mut buffer = vec![0; 2000];
        let mut writer = Writer::new(&mut buffer);
        encode(&mut writer);
        let count = writer.finish().unwrap();
        buffer.truncate(count);
        buffer
    }

    #[test]
    fn set_up_and_close_come_back_as_they_were() {
        let request = Request {
            version: VERSION,
            request: 0x0123_4567_89ab_cdef,
            connection: 9,
            class: Class::ALL,
            rate: Bandwidth::from_megabits_per_second(100),
            limits: Limits::default(),
            streams: vec![Contract::default(), Contract { tolerance: (8, 1, 1), ..Contract::default() }],
        };
        assert_eq!(Request::decode(&mut Reader::new(&written(|out| request.encode(out)))), Ok(request.clone()));
        let confirm = Confirm {
            request: 4,
            connection: 5,
            class: Class::ALL,
            limits: Limits::default(),
            grants: vec![ReportFrame::Grant { stream: 0, segments: 1, units: 2, end_known: false }],
        };
        assert_eq!(Confirm::decode(&mut Reader::new(&written(|out| confirm.encode(out)))), Ok(confirm.clone()));
        let reject = Reject { request: 4, reason: RejectReason::Busy, version: VERSION, detail: "full".into() };
        assert_eq!(Reject::decode(&mut Reader::new(&written(|out| reject.encode(out)))), Ok(reject.clone()));
        let close = Disconnect { code: 3, abort: true, detail: "gone".into() };
        assert_eq!(Disconnect::decode(&mut Reader::new(&written(|out| close.encode(out)))), Ok(close.clone()));
    }

    #[test]
    fn a_long_detail_is_cut_at_a_character() {
        let close = Disconnect { code: 0, abort: false, detail: "ü".repeat(400) };
        let bytes = written(|out| close.encode(out));
        let decoded = Disconnect::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(decoded.detail.len(), DETAIL_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(input in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Request::decode(&mut Reader::new(&input));
            let _ = Confirm::decode(&mut Reader::new(&input));
            let _ = Reject::decode(&mut Reader::new(&input));
            let _ = Disconnect::decode(&mut Reader::new(&input));
        }
    }
}
