//! The content hash of a file that is written as its segments come: BLAKE3.
//!
//! Called by the receiver's writer and by the sender's source.
//!
//! Invariant: the hash covers a beginning of the content without a gap; what came out of order is read back
//! at the end.

use std::io;

/// How much is read back at a time.
const READ_BYTES: usize = 256 * 1024;

/// A hash under way.
#[derive(Debug, Default)]
pub(crate) struct ContentHash {
    hasher: blake3::Hasher,
    /// Everything before this is hashed.
    hashed_to: u64,
    /// Everything before this is written.
    end: u64,
}

impl ContentHash {
    /// Takes note of `bytes` at `offset`.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if offset == self.hashed_to {
            self.hasher.update(bytes);
            self.hashed_to += bytes.len() as u64;
        }
        self.end = self.end.max(offset.saturating_add(bytes.len() as u64));
    }

    /// The length of the content so far.
    pub(crate) const fn bytes(&self) -> u64 {
        self.end
    }

    /// The hash in hexadecimal. What has not been hashed yet is fetched with `read_at(offset, buffer)`; `None` when that
    /// is needed and there is nothing to read from.
    pub(crate) fn finish(mut self, mut read_at: impl FnMut(u64, &mut [u8]) -> Option<io::Result<usize>>) -> io::Result<Option<String>> {
        let mut buffer = Vec::new();
        while self.hashed_to < self.end {
            buffer.resize(READ_BYTES, 0);
            let count = match read_at(self.hashed_to, &mut buffer) {
                None => return Ok(None),
                Some(read) => read?,
            };
            if count == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has become shorter while it was written"));
            }
            self.hasher.update(buffer.get(..count).unwrap_or(&[]));
            self.hashed_to += count as u64;
        }
        Ok(Some(self.hasher.finalize().to_hex().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_have_the_hash_of_the_whole() {
        let content: Vec<u8> = (0..700_000u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        let expected = blake3::hash(&content).to_hex().to_string();
        let (a, b) = content.split_at(300_000);
        let read_at = |offset: u64, buffer: &mut [u8]| {
            let rest = &content[offset as usize..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Some(Ok(count))
        };
        for pieces in [[(0, a), (300_000, b)], [(300_000, b), (0, a)]] {
            let mut hash = ContentHash::default();
            pieces.iter().for_each(|(offset, piece)| hash.write(*offset, piece));
            assert_eq!(hash.bytes(), 700_000);
            assert_eq!(hash.finish(read_at).unwrap(), Some(expected.clone()));
        }
        let mut unreadable = ContentHash::default();
        unreadable.write(5, b"x");
        assert_eq!(unreadable.finish(|_, _| None).unwrap(), None);
    }
}
