//! Finds the transport parameters in a ClientHello.
//!
//! Called by a responder's session: its transport parameters depend on the peer's, but rustls needs them before it reads the ClientHello.
//! When the handshake is complete, the parameters found here are compared with those that rustls has read.
//!
//! Invariant: no bytes make it panic or read beyond the message.
//!
//! Source: RFC 8446 4.1.2 (ClientHello), RFC 9001 8.2 (the extension).

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader};

/// The maximum size of a ClientHello in bytes. One of rustls is below 2000, even with post-quantum keys.
pub(crate) const CLIENT_HELLO_BYTES_MAX: usize = 16 * 1024;

const CLIENT_HELLO: u8 = 1;
const QUIC_TRANSPORT_PARAMETERS: u16 = 57;

/// The result of the search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// The message is not complete yet.
    More,
    /// The message is complete, and has no such extension.
    Nothing,
    /// The peer's transport parameters.
    Parameters(&'a [u8]),
}

/// Searches the first bytes of a handshake for the transport parameters.
pub(crate) fn find_parameters(bytes: &[u8]) -> Result<Found<'_>, DecodeError> {
    let mut input = Reader::new(bytes);
    if input.is_empty() {
        return Ok(Found::More);
    }
    let kind = input.u8("handshake message")?;
    if kind != CLIENT_HELLO {
        return Err(input.error("handshake message", DecodeErrorKind::UnknownType(u64::from(kind))));
    }
    if input.remaining() < 3 {
        return Ok(Found::More);
    }
    let length = u24(&mut input)?;
    if length > CLIENT_HELLO_BYTES_MAX {
        return Err(input.error("length of the ClientHello", DecodeErrorKind::OutOfRange(length as u64)));
    }
    if input.remaining() < length {
        return Ok(Found::More);
    }
    find_in_message(&mut Reader::new(input.bytes(length, "ClientHello")?))
}

fn find_in_message<'a>(input: &mut Reader<'a>) -> Result<Found<'a>, DecodeError> {
    input.bytes(2 + 32, "version and random")?;
    let session = input.u8("length of the session identifier")?;
    input.bytes(usize::from(session), "session identifier")?;
    let suites = input.u16("length of the cipher suites")?;
    input.bytes(usize::from(suites), "cipher suites")?;
    let methods = input.u8("length of the compression methods")?;
    input.bytes(usize::from(methods), "compression methods")?;
    let length = input.u16("length of the extensions")?;
    let mut extensions = Reader::new(input.bytes(usize::from(length), "extensions")?);
    input.finish("ClientHello")?;
    let mut found = Found::Nothing;
    while !extensions.is_empty() {
        let kind = extensions.u16("extension")?;
        let length = extensions.u16("length of an extension")?;
        let body = extensions.bytes(usize::from(length), "body of an extension")?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            if found != Found::Nothing {
                return Err(extensions.error("extension", DecodeErrorKind::UnknownType(u64::from(kind))));
            }
            found = Found::Parameters(body);
        }
    }
    Ok(found)
}

fn u24(input: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let high = input.u8("length of a handshake message")?;
    let low = input.u16("length of a handshake message")?;
    Ok(usize::from(high) << 16 | usize::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Admission, Identity, Tls, Trust};
    use proptest::prelude::*;
    use segstream_proto::session::Session as _;

    fn real_hello(parameters: &[u8]) -> Vec<u8> {
        let tls = Tls::new(Identity::generate().unwrap(), Admission::nobody(), None).unwrap();
        tls.initiator(&Trust::Anyone, parameters).unwrap().write_handshake().unwrap().1
    }

    /// A ClientHello with these extensions.
    fn hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, body) in extensions {
            list.extend([kind.to_be_bytes(), (body.len() as u16).to_be_bytes()].concat());
            list.extend(*body);
        }
        let mut message = [&[3, 3][..], &[9; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &(list.len() as u16).to_be_bytes(), &list].concat();
        message.splice(0..0, [CLIENT_HELLO].into_iter().chain((message.len() as u32).to_be_bytes().into_iter().skip(1)));
        message
    }

    #[test]
    fn the_parameters_of_a_real_hello_are_found_when_it_is_whole() {
        let whole = real_hello(b"proposed");
        for length in 0..whole.len() {
            assert_eq!(find_parameters(&whole[..length]), Ok(Found::More), "{length} bytes");
        }
        assert_eq!(find_parameters(&whole), Ok(Found::Parameters(b"proposed")));
        assert_eq!(find_parameters(&[&whole[..], b"more"].concat()), Ok(Found::Parameters(b"proposed")));
        assert!(whole.len() < 2000, "{}", whole.len());
    }

    #[test]
    fn a_hello_with_none_or_two_is_told_apart() {
        assert_eq!(find_parameters(&hello(&[(16, b"x"), (57, b""), (10, b"y")])), Ok(Found::Parameters(b"")));
        assert_eq!(find_parameters(&hello(&[(16, b"x")])), Ok(Found::Nothing));
        assert!(find_parameters(&hello(&[(57, b"x"), (57, b"x")])).is_err());
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let good = hello(&[(57, b"x")]);
        let last = good.len() - 1;
        for (at, value) in [(38, 200), (last - 1, 2), (last - 1, 0), (last - 5, 1), (last - 5, 200), (0, 2)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(find_parameters(&bad).is_err(), "byte {at} is {value}");
        }
        assert!(find_parameters(&[1, 0, 0x40, 1]).is_err(), "longer than is read");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = find_parameters(&bytes);
            let mut framed = vec![CLIENT_HELLO, 0];
            framed.extend((bytes.len() as u16).to_be_bytes());
            framed.extend(&bytes);
            prop_assert_ne!(find_parameters(&framed), Ok(Found::More));
        }

        #[test]
        fn what_is_found_stands_in_the_message(at in 0usize..300, value: u8) {
            let mut bytes = real_hello(b"proposed");
            let end = bytes.len();
            bytes[at % end] = value;
            bytes.extend(b"behind");
            if let Ok(Found::Parameters(found)) = find_parameters(&bytes) {
                let start = found.as_ptr() as usize - bytes.as_ptr() as usize;
                prop_assert!(start + found.len() <= end + usize::from(at % end < 4) * 6);
            }
        }
    }
}
