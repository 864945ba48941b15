//! The life of a connection and of its streams.
//!
//! Called by C programs. A connection is a number of its endpoint; 0 is none.
//!
//! Invariant: a number that was released names nothing any more.

use crate::arguments::{self, Out};
use crate::contract::{self, segstream_contract};
use crate::endpoint::{self, segstream_endpoint, with};
use crate::events::segstream_close_reason;
use crate::failure::{Failure, guarded};
use crate::status::segstream_status;
use segstream::{Peer, StreamId, Trust};
use std::ffi::c_char;
use std::net::SocketAddr;

/// Whom to trust at an address.
fn trust(text: &str) -> Result<Trust, Failure> {
    match text.split_once(':') {
        Some(("name", name)) => Ok(Trust::Certified(name.to_owned())),
        _ if text == "anyone" => Ok(Trust::Anyone),
        _ => text
            .parse()
            .map(Trust::Key)
            .map_err(|wrong| Failure::argument(format!("{wrong}; or give name:HOST for a peer that is certified, or anyone"))),
    }
}

/// A peer of C's two texts.
///
/// # Safety
///
/// Both are NULL or texts.
unsafe fn peer(address: *const c_char, trusted: *const c_char) -> Result<Peer, Failure> {
    // Safety: as this function's caller promises.
    let address: SocketAddr = arguments::address(unsafe { arguments::text(address, "address") }?)?;
    if trusted.is_null() {
        return Ok(address.into());
    }
    // Safety: as this function's caller promises.
    Ok(Peer { address, trust: trust(unsafe { arguments::text(trusted, "trust") }?)? })
}

/// Makes a connection with these first streams, numbered from 0, and waits until it is established, at most for the setting
/// connect_timeout_ms. `trust` is the fingerprint of the peer's key, or "name:HOST" for a peer that is certified by that name, or
/// "anyone"; NULL trusts nobody, which is right in plain mode only.
///
/// # Safety
///
/// `endpoint` is a handle; `address` is a text; `trust` is NULL or a text; `contracts` points to `contracts_count` contracts, whose labels
/// are NULL or texts; `connection` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_connect(
    endpoint: *mut segstream_endpoint,
    address: *const c_char,
    trust: *const c_char,
    contracts: *const segstream_contract,
    contracts_count: usize,
    connection: *mut u64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, peer) = unsafe { (Out::new(connection, "connection")?, peer(address, trust)?) };
        // Safety: as this function's caller promises.
        let contracts = unsafe { contract::read_all(contracts, contracts_count) }?;
        let connect = |state: &mut endpoint::State| {
            let id = state.endpoint.connect(peer, contracts)?;
            Ok(state.number(id))
        };
        // Safety: as this function's caller promises.
        out.set(unsafe { with(endpoint, connect) }?);
        Ok(())
    })
}

/// Begins a connection as segstream_connect() does, and does not wait: SEGSTREAM_EVENT_CONNECTED or SEGSTREAM_EVENT_CLOSED follows.
///
/// # Safety
///
/// As of segstream_connect().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_begin_connect(
    endpoint: *mut segstream_endpoint,
    address: *const c_char,
    trust: *const c_char,
    contracts: *const segstream_contract,
    contracts_count: usize,
    connection: *mut u64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, peer) = unsafe { (Out::new(connection, "connection")?, peer(address, trust)?) };
        // Safety: as this function's caller promises.
        let contracts = unsafe { contract::read_all(contracts, contracts_count) }?;
        let begin = |state: &mut endpoint::State| {
            let id = state.endpoint.begin_connect(peer, contracts)?;
            Ok(state.number(id))
        };
        // Safety: as this function's caller promises.
        out.set(unsafe { with(endpoint, begin) }?);
        Ok(())
    })
}

/// Waits for the next incoming connection.
///
/// # Safety
///
/// `endpoint` is a handle; `connection` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_accept(endpoint: *mut segstream_endpoint, connection: *mut u64, timeout_ms: i64) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(connection, "connection") }?;
        let accept = |state: &mut endpoint::State| {
            let id = state.endpoint.accept(arguments::timeout(timeout_ms))?;
            Ok(state.number(id))
        };
        // Safety: as this function's caller promises.
        out.set(unsafe { with(endpoint, accept) }?);
        Ok(())
    })
}

/// Waits for the next stream that the peer opens. SEGSTREAM_END if the connection was closed gracefully.
///
/// # Safety
///
/// `endpoint` is a handle; `stream` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_accept_stream(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: *mut u32,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(stream, "stream") }?;
        let accept = |state: &mut endpoint::State| Ok(state.connection(connection)?.accept_stream(arguments::timeout(timeout_ms))?);
        // Safety: as this function's caller promises.
        out.set(unsafe { with(endpoint, accept) }?.ok_or_else(Failure::end)?.0);
        Ok(())
    })
}

/// Opens a stream of ours. SEGSTREAM_BLOCKED while as many are live as the peer allows.
///
/// # Safety
///
/// `endpoint` is a handle; `contract` points to a contract, whose label is NULL or a text; `stream` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_open_stream(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    contract: *const segstream_contract,
    stream: *mut u32,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, contracts) = unsafe { (Out::new(stream, "stream")?, contract::read_all(contract, 1)?) };
        let open = |state: &mut endpoint::State| {
            let contract = contracts.into_iter().next().unwrap_or_default();
            Ok(state.connection(connection)?.open_stream(contract)?)
        };
        // Safety: as this function's caller promises.
        out.set(unsafe { with(endpoint, open) }?.0);
        Ok(())
    })
}

/// Finishes a stream of ours: no more segments will be sent on it.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_finish_stream(endpoint: *mut segstream_endpoint, connection: u64, stream: u32) -> segstream_status {
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, |state| Ok(state.connection(connection)?.finish_stream(StreamId(stream))?)) })
}

/// Writes the contract of a stream of the peer, with the window as granted and `label` NULL, and its label with a zero byte into the buffer
/// `label`. 513 bytes are enough; with a buffer of 0 bytes the label is left out.
///
/// # Safety
///
/// `endpoint` is a handle; `contract` is NULL or valid for writing; `label` is valid for writing `label_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_receiving_contract(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    contract: *mut segstream_contract,
    label: *mut c_char,
    label_bytes: usize,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises; any byte may be written to a buffer of characters.
        let (out, label) = unsafe { (Out::new(contract, "contract")?, arguments::buffer(label.cast::<u8>(), label_bytes, "label")?) };
        // Safety: as this function's caller promises.
        let contract = unsafe { with(endpoint, |state| Ok(state.connection(connection)?.receiving_contract(StreamId(stream))?)) }?;
        if !label.is_empty() && !arguments::copy_text(&contract.label, label) {
            let text = format!("the label needs {} bytes; the buffer has {label_bytes}", contract.label.len() + 1);
            return Err(Failure::new(segstream_status::SEGSTREAM_BUFFER_TOO_SMALL, text));
        }
        out.set(contract::without_label(&contract));
        Ok(())
    })
}

/// Writes the peer's address with its zero byte. 64 bytes are enough.
///
/// # Safety
///
/// `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_remote_address(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    buffer: *mut c_char,
    buffer_bytes: usize,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { endpoint::tell(endpoint, buffer, buffer_bytes, |state| Ok(state.connection(connection)?.remote()?.to_string())) }
}

/// Writes the fingerprint of the peer's key with its zero byte; an empty text in plain mode. 64 bytes are enough.
///
/// # Safety
///
/// As of segstream_remote_address().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_peer_fingerprint(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    buffer: *mut c_char,
    buffer_bytes: usize,
) -> segstream_status {
    let fingerprint = |state: &mut endpoint::State| {
        let connection = state.connection(connection)?;
        Ok(connection.peer_fingerprint().map(|key| key.to_string()).unwrap_or_default())
    };
    // Safety: as this function's caller promises.
    unsafe { endpoint::tell(endpoint, buffer, buffer_bytes, fingerprint) }
}

/// Closes a connection gracefully: waits until every segment accepted at both ends is judged and the peer has confirmed the end. What the peer
/// sends meanwhile is discarded. `detail` is a sentence for the peer, NULL for none; `code` is 0 when all is well. The connection is
/// still to be released.
///
/// # Safety
///
/// `endpoint` is a handle; `detail` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_close(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    code: u64,
    detail: *const c_char,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { ending(endpoint, connection, detail, |connection, detail| connection.close(code, detail)) }
}

/// Begins a graceful close; SEGSTREAM_EVENT_CLOSED is the event of its end.
///
/// # Safety
///
/// As of segstream_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_begin_close(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    code: u64,
    detail: *const c_char,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { ending(endpoint, connection, detail, |mut connection, detail| connection.begin_close(code, detail)) }
}

/// Aborts a connection at once; segments without a verdict are SEGSTREAM_VERDICT_UNKNOWN.
///
/// # Safety
///
/// As of segstream_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_abort(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    code: u64,
    detail: *const c_char,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { ending(endpoint, connection, detail, |connection, detail| connection.abort(code, detail)) }
}

/// Ends a connection in one of three ways.
///
/// # Safety
///
/// `endpoint` is a handle; `detail` is NULL or a text.
unsafe fn ending(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    detail: *const c_char,
    end: impl FnOnce(segstream::blocking::Connection<'_>, &str) -> Result<(), segstream::Error>,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let detail = if detail.is_null() { "" } else { unsafe { arguments::text(detail, "detail") }? };
        // Safety: as this function's caller promises.
        unsafe { with(endpoint, |state| Ok(end(state.connection(connection)?, detail)?)) }
    })
}

/// Waits until the connection has ended, and tells why and with which code of the peer. What arrives can still be received.
/// segstream_last_error() is the reason as a sentence, although this returns SEGSTREAM_OK.
///
/// # Safety
///
/// `endpoint` is a handle; `reason` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_closed(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    reason: *mut segstream_close_reason,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(reason, "reason") }?;
        // Safety: as this function's caller promises.
        let reason = unsafe { with(endpoint, |state| Ok(state.connection(connection)?.closed(arguments::timeout(timeout_ms))?)) }?;
        crate::failure::keep(reason.to_string());
        out.set(segstream_close_reason::of(&reason));
        Ok(())
    })
}

/// Releases a connection; its number names nothing from now on. One that has not ended is closed gracefully while the network is served.
/// A connection counts towards the limit of its endpoint until this is called.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_release(endpoint: *mut segstream_endpoint, connection: u64) -> segstream_status {
    let release = |state: &mut endpoint::State| {
        let id = state.id(connection)?;
        state.endpoint.release(id);
        state.forget(connection);
        Ok(())
    };
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, release) })
}
