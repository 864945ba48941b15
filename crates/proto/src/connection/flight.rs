//! The transport of handshake bytes (as CRYPTO frames): a stream at each of two levels, divided into fragments, and retransmitted as a
//! whole until the peer implicitly acknowledges it.
//!
//! Owned by set-up. Fragments out of order are dropped and repeated by the peer: a handshake takes a few shipments, and an
//! unauthenticated peer must not consume memory.
//!
//! Invariant: bytes are read in order, each once, however they arrive.

use segstream_wire::Level;
use segstream_wire::handshake::Fragment;

/// The maximum number of handshake bytes accepted from a peer at one level.
const INCOMING_BYTES_MAX: u64 = 64 * 1024;

/// One level's bytes, both ways.
#[derive(Debug, Default)]
struct Stream {
    outgoing: Vec<u8>,
    /// Where the next fragment begins.
    next: usize,
    /// How much of the peer's stream has been read.
    read: u64,
}

/// The bytes of both levels.
#[derive(Debug, Default)]
pub(super) struct Flight {
    initial: Stream,
    handshake: Stream,
}

impl Flight {
    fn stream(&mut self, level: Level) -> &mut Stream {
        if level == Level::Initial { &mut self.initial } else { &mut self.handshake }
    }

    /// Bytes to send at `level`.
    pub(super) fn push(&mut self, level: Level, bytes: &[u8]) {
        self.stream(level).outgoing.extend_from_slice(bytes);
    }

    /// The next fragment of `level`, of at most `room` bytes.
    pub(super) fn next(&mut self, level: Level, room: usize) -> Option<Fragment> {
        let stream = self.stream(level);
        let rest = stream.outgoing.get(stream.next..).filter(|rest| !rest.is_empty())?;
        let bytes = rest[..rest.len().min(room)].to_vec();
        let offset = stream.next as u64;
        stream.next += bytes.len();
        debug_assert!(stream.next <= stream.outgoing.len() && bytes.len() <= room);
        Some(Fragment { offset, bytes })
    }

    /// Whether a fragment of `level` has left since it was last begun.
    pub(super) const fn has_begun(&self, level: Level) -> bool {
        match level {
            Level::Initial => self.initial.next > 0,
            _ => self.handshake.next > 0,
        }
    }

    /// Everything that is not acknowledged is sent once more.
    pub(super) const fn begin_again(&mut self) {
        self.initial.next = 0;
        self.handshake.next = 0;
    }

    /// The peer has all bytes of `level`.
    pub(super) fn acknowledge(&mut self, level: Level) {
        let stream = self.stream(level);
        // Why the memory is freed: nothing more is sent at this level, but the connection may last long.
        stream.outgoing = Vec::new();
        stream.next = 0;
    }

    /// Whether everything is acknowledged.
    pub(super) const fn is_acknowledged(&self) -> bool {
        self.initial.outgoing.is_empty() && self.handshake.outgoing.is_empty()
    }

    /// The bytes of a fragment that continue what has been read, if any do.
    pub(super) fn take<'a>(&mut self, level: Level, fragment: &'a Fragment) -> Option<&'a [u8]> {
        let stream = self.stream(level);
        let known = usize::try_from(stream.read.checked_sub(fragment.offset)?).ok()?;
        let fresh = fragment.bytes.get(known..).filter(|fresh| !fresh.is_empty())?;
        let read = stream.read + fresh.len() as u64;
        if read > INCOMING_BYTES_MAX {
            return None;
        }
        stream.read = read;
        Some(fresh)
    }

    /// Whether any of the peer's bytes have been read.
    pub(super) const fn has_read(&self) -> bool {
        self.initial.read > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_once_and_in_order_however_fragments_arrive() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut sender = Flight::default();
        sender.push(Level::Handshake, &bytes);
        let mut fragments: Vec<Fragment> = core::iter::from_fn(|| sender.next(Level::Handshake, 30)).collect();
        assert_eq!(fragments.len(), 4);
        assert!(!sender.is_acknowledged());
        sender.begin_again();
        fragments.extend(core::iter::from_fn(|| sender.next(Level::Handshake, 70)));
        let mut receiver = Flight::default();
        let mut read = Vec::new();
        for fragment in [&fragments[1], &fragments[0], &fragments[0], &fragments[4], &fragments[3], &fragments[5]] {
            read.extend_from_slice(receiver.take(Level::Handshake, fragment).unwrap_or_default());
        }
        assert_eq!(read, bytes);
        sender.acknowledge(Level::Handshake);
        assert!(sender.is_acknowledged() && sender.next(Level::Handshake, 10).is_none());
    }

    #[test]
    fn a_peer_cannot_make_a_handshake_longer_than_the_limit() {
        let mut receiver = Flight::default();
        let mut offset = 0;
        let chunk = vec![0; 1000];
        for _ in 0..100 {
            if let Some(fresh) = receiver.take(Level::Initial, &Fragment { offset, bytes: chunk.clone() }) {
                offset += fresh.len() as u64;
            }
        }
        assert!(offset <= INCOMING_BYTES_MAX && offset > INCOMING_BYTES_MAX - 1000, "{offset}");
        for offset in [u64::MAX, offset + 1] {
            assert_eq!(receiver.take(Level::Initial, &Fragment { offset, bytes: vec![1] }), None);
        }
    }
}
