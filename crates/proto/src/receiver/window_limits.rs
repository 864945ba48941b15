//! How far the window of a stream is lowered to what is allowed, for the stream and for all streams of the connection together; and what
//! the window of a stream is charged with.
//!
//! Called by the half when a stream is opened. Invariant: the charges of all streams together are what the connection may take, but for the
//! least that every stream gets (spec 11.2, 11.4); what is kept of a stream never exceeds its charge.

use super::RecvHalf;
use super::segment::RecvSegment;
use super::stream::RecvStream;
use crate::endpoint::memory_budget::MemoryAccount;
use crate::session::Fingerprint;
use segstream_wire::contract::Contract;

/// What a stream gets when the others have taken all of the connection's buffer.
const STREAM_WINDOW_BYTES_MIN: u64 = 64 << 10;
const STREAM_WINDOW_SEGMENTS_MIN: u64 = 64;
/// A unit takes at least so much of a buffer. Why: what is kept for each, and the work on a segment, depend on how many there are.
const UNIT_BYTES_CHARGED_MIN: u64 = 64;
/// What a unit is charged with beyond its payload: bits that say what is here and what is lost, and a hole of eight bytes for every other one.
const UNIT_STATE_BYTES: u64 = 8;
/// What a segment is charged with beyond its units (spec 11.4): its state, its places in the queues of states and of payload, which grow by
/// doubling, and what sets of segments keep of it.
pub const SEGMENT_STATE_BYTES: u64 = 448;
const PLACES_BYTES: usize = 2 * (size_of::<Option<Box<RecvSegment>>>() + size_of::<Option<Vec<u8>>>());
const _: () = assert!(size_of::<RecvSegment>() + PLACES_BYTES + 64 <= SEGMENT_STATE_BYTES as usize);
/// The share of what is left that goes to segments beyond a window, which are kept until their verdicts are confirmed: a sixteenth.
const KEPT_SHARE: u64 = 16;

/// What a unit of a stream is charged with, in bytes.
fn unit_charge(contract: &Contract) -> u64 {
    (u64::from(contract.unit_bytes) + UNIT_STATE_BYTES).max(UNIT_BYTES_CHARGED_MIN)
}

/// What a stream under `contract` that keeps `kept_max` segments is charged with, in bytes.
pub(crate) fn charge(contract: &Contract, kept_max: u64) -> u64 {
    u64::from(contract.window_units) * unit_charge(contract) + kept_max * SEGMENT_STATE_BYTES
}

impl RecvHalf {
    /// What the streams that are not retired are charged with, in bytes: all that is kept of them stays below that (spec 11.4).
    pub fn granted_bytes(&self) -> u64 {
        self.charged_streams().map(RecvStream::charge).sum()
    }

    /// The most payload of these streams that is kept, in bytes.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.charged_streams().map(RecvStream::window_bytes).sum()
    }

    fn charged_streams(&self) -> impl Iterator<Item = &RecvStream> {
        self.streams.iter().filter(|stream| !stream.is_retired())
    }

    /// The streams are granted of this account from now on.
    pub(crate) fn set_memory(&mut self, memory: MemoryAccount) {
        self.memory = Some(memory);
    }

    /// Set-up is complete, and the peer has proved this key, if it has one. Whether the budgets of memory hold with this connection.
    pub(crate) fn on_set_up(&mut self, peer: Option<Fingerprint>) -> bool {
        self.memory.as_mut().is_none_or(|memory| memory.on_set_up(peer))
    }

    /// A stream under `contract` is granted, with the window lowered to its share of what is left; or not, if not even the least is left in the
    /// budgets of the endpoint and of the peer.
    pub(super) fn limited_to_budget(&mut self, contract: &Contract) -> Option<(Contract, u64)> {
        let Some(left) = self.memory.as_ref().map(MemoryAccount::left) else { return Some(self.limited_to_config(contract, u64::MAX)) };
        let (contract, kept_max) = self.limited_to_config(contract, left.share);
        let charge = charge(&contract, kept_max);
        // Why not the first: a connection without any stream is of no use, and the least of it is little.
        if charge > left.all && self.charged_streams().next().is_some() {
            return None;
        }
        self.memory.iter_mut().for_each(|memory| memory.grant(charge));
        Some((contract, kept_max))
    }

    /// The contract with the window lowered to what is allowed, for one stream, together with those that are not over, and by what
    /// is `left` in the budgets; and how many segments the stream may keep.
    fn limited_to_config(&self, contract: &Contract, left: u64) -> (Contract, u64) {
        let left = self.config.connection_window_bytes.saturating_sub(self.granted_bytes()).min(left);
        let unit_charge = unit_charge(contract);
        let payload_units = self.config.stream_window_bytes / u64::from(contract.unit_bytes).max(UNIT_BYTES_CHARGED_MIN);
        // Why half: neither segments nor units may take all.
        let segments = (left / 2 / SEGMENT_STATE_BYTES).max(STREAM_WINDOW_SEGMENTS_MIN);
        let segments = segments.min(contract.window_segments.min(self.config.window_segments_max).into()).max(1);
        let left = left.saturating_sub(segments * SEGMENT_STATE_BYTES);
        let more = (left / KEPT_SHARE / SEGMENT_STATE_BYTES).max(STREAM_WINDOW_SEGMENTS_MIN);
        let kept = RecvStream::kept_wanted(segments).min(segments + more);
        let left = left.saturating_sub((kept - segments) * SEGMENT_STATE_BYTES).max(STREAM_WINDOW_BYTES_MIN);
        let units = (left / unit_charge).min(payload_units).clamp(1, contract.window_units.into());
        let mut lowered = contract.clone();
        // Neither is above what the contract says.
        lowered.window_units = units as u32;
        lowered.window_segments = segments as u32;
        (lowered, kept)
    }
}
