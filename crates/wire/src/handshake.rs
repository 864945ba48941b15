//! Set-up and close: CR, CK, CC, HS, RJ, DR (spec 6.1 to 6.4, 6.7, 6.8); DC has an empty body.
//!
//! Called by connections and, for unknown peers, by the endpoint. The handshake that these messages carry contains proposal and agreement:
//! see [`crate::proposal`].
//!
//! Invariant: an answer to a request echoes its random identifier, so that an attacker that has not seen the request cannot forge an answer.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};

/// The version of the protocol in this crate.
pub const VERSION: u16 = 4;
/// The longest text that explains a reject or a disconnect.
pub const DETAIL_BYTES_MAX: usize = 256;
/// The longest token: a cookie or an address token.
pub const TOKEN_BYTES_MAX: usize = 64;

/// A run of handshake bytes, at the level of the shipment that carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// Where the run begins in the sender's handshake bytes of this level.
    pub offset: u64,
    /// The run.
    pub bytes: Vec<u8>,
}

/// CR: requests a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The version of the protocol.
    pub version: u16,
    /// A random identifier that every answer echoes.
    pub request: u64,
    /// The identifier the initiator wants to be addressed by.
    pub connection: u32,
    /// How the connection is to be protected: 0 plain, 1 TLS 1.3.
    pub protection: u8,
    /// The token for address validation: a cookie, an address token of an earlier connection, or nothing.
    pub token: Vec<u8>,
    /// The initiator's handshake bytes.
    pub fragment: Fragment,
}

/// CK: a cookie, with which the initiator repeats its request to validate its address (as a Retry packet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The request's identifier.
    pub request: u64,
    /// The token to repeat the request with.
    pub token: Vec<u8>,
}

/// CC: confirms that the connection is being set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The request's identifier.
    pub request: u64,
    /// The identifier the responder wants to be addressed by.
    pub connection: u32,
    /// The responder's handshake bytes.
    pub fragment: Fragment,
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
    /// The two sides are not protected in the same way.
    Protection,
    /// The handshake failed before there were keys.
    Handshake,
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

/// DR: requests to disconnect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disconnect {
    /// Zero when everything was delivered; otherwise the application's or the protocol's code.
    pub code: u64,
    /// Whether the connection ends at once, whatever is undelivered.
    pub abort: bool,
    /// A sentence for people.
    pub detail: String,
}

impl Fragment {
    /// Writes the fragment.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.varint(self.offset);
        out.varint(self.bytes.len() as u64);
        out.bytes(&self.bytes);
    }

    /// Reads a fragment.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let offset = input.varint("fragment offset")?;
        let length = input.varint("fragment length")?;
        let too_long = input.error("fragment length", DecodeErrorKind::OutOfRange(length));
        let bytes = input.bytes(usize::try_from(length).map_err(|_| too_long)?, "fragment")?.to_vec();
        Ok(Self { offset, bytes })
    }
}

impl Request {
    /// The bytes of a body without the fragment's, at most, with a token of `token_bytes`.
    pub const fn overhead_bytes(token_bytes: usize) -> usize {
        2 + 8 + 4 + 1 + 2 + token_bytes + 4 + 2
    }

    /// Writes the body of a CR.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u16(self.version);
        out.u64(self.request);
        out.u32(self.connection);
        out.u8(self.protection);
        encode_token(&self.token, out);
        self.fragment.encode(out);
    }

    /// Reads the fields every version has: the version and the request's identifier, and the identifier
    /// to answer to. What follows may differ.
    pub fn decode_version(input: &mut Reader<'_>) -> Result<(u16, u64, u32), DecodeError> {
        Ok((input.u16("version")?, input.u64("request identifier")?, input.u32("connection identifier")?))
    }

    /// Reads the body of a CR of this version. What follows the fragment is padding.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (version, request, connection) = Self::decode_version(input)?;
        let protection = input.u8("protection")?;
        let token = decode_token(input)?;
        Ok(Self { version, request, connection, protection, token, fragment: Fragment::decode(input)? })
    }
}

impl Cookie {
    /// Writes the body of a CK.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.request);
        encode_token(&self.token, out);
    }

    /// Reads the body of a CK.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { request: input.u64("request identifier")?, token: decode_token(input)? })
    }
}

impl Confirm {
    /// The bytes of a body without the fragment's, at most.
    pub const OVERHEAD_BYTES: usize = 8 + 4 + 4 + 2;

    /// Writes the body of a CC.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.request);
        out.u32(self.connection);
        self.fragment.encode(out);
    }

    /// Reads the body of a CC.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (request, connection) = (input.u64("request identifier")?, input.u32("connection identifier")?);
        Ok(Self { request, connection, fragment: Fragment::decode(input)? })
    }
}

pub(crate) fn encode_token(token: &[u8], out: &mut Writer<'_>) {
    let token = token.get(..token.len().min(TOKEN_BYTES_MAX)).unwrap_or_default();
    out.u8(token.len() as u8);
    out.bytes(token);
}

pub(crate) fn decode_token(input: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    let length = usize::from(input.u8("token length")?);
    if length > TOKEN_BYTES_MAX {
        return Err(input.error("token length", DecodeErrorKind::OutOfRange(length as u64)));
    }
    Ok(input.bytes(length, "token")?.to_vec())
}

impl RejectReason {
    const fn code(self) -> u8 {
        match self {
            Self::Version => 0,
            Self::Busy => 1,
            Self::NotAccepting => 2,
            Self::Unacceptable => 3,
            Self::Refused => 4,
            Self::Protection => 5,
            Self::Handshake => 6,
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
            5 => Self::Protection,
            6 => Self::Handshake,
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn written(encode: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
        let mut buffer = vec![0; 2000];
        let mut writer = Writer::new(&mut buffer);
        encode(&mut writer);
        let count = writer.finish().unwrap();
        buffer.truncate(count);
        buffer
    }

    #[test]
    fn set_up_and_close_come_back_as_they_were() {
        let fragment = Fragment { offset: 70_000, bytes: vec![1, 2, 3] };
        let request = Request {
            version: VERSION,
            request: 0x0123_4567_89ab_cdef,
            connection: 9,
            protection: 1,
            token: vec![7; 21],
            fragment: fragment.clone(),
        };
        let bytes = written(|out| request.encode(out));
        assert_eq!(Request::decode(&mut Reader::new(&bytes)), Ok(request.clone()));
        assert!(bytes.len() <= Request::overhead_bytes(request.token.len()) + fragment.bytes.len());
        let cookie = Cookie { request: 4, token: vec![9; TOKEN_BYTES_MAX] };
        assert_eq!(Cookie::decode(&mut Reader::new(&written(|out| cookie.encode(out)))), Ok(cookie.clone()));
        let confirm = Confirm { request: 4, connection: 5, fragment };
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
            let _ = Cookie::decode(&mut Reader::new(&input));
            let _ = Confirm::decode(&mut Reader::new(&input));
            let _ = Reject::decode(&mut Reader::new(&input));
            let _ = Disconnect::decode(&mut Reader::new(&input));
        }
    }
}
