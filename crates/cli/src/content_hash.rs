//! The content hash of a file that is written as its segments arrive: BLAKE3.
//!
//! Called by the receiver's writer and by the sender's source.
//!
//! Invariant: the hash covers a beginning of the content without a gap; what came out of order is read back
//! at the end.

use std::collections::BTreeMap;
use std::io;

/// How much is read back at a time.
const READ_BYTES: usize = 256 * 1024;

/// A hash that is not finished.
#[derive(Debug, Default)]
pub(crate) struct ContentHash {
    hasher: blake3::Hasher,
    /// Everything before this is hashed.
    hashed_to: u64,
    /// The end of what is written last.
    end: u64,
    /// What is written behind a gap: beginnings and ends.
    ahead: BTreeMap<u64, u64>,
}

impl ContentHash {
    /// The hash of a content whose first `bytes` are in `hasher`.
    pub(crate) fn resumed(hasher: blake3::Hasher, bytes: u64) -> Self {
        Self { hasher, hashed_to: bytes, end: bytes, ahead: BTreeMap::new() }
    }

    /// Takes note of `bytes` at `offset`.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64);
        if offset == self.hashed_to {
            self.hasher.update(bytes);
            self.hashed_to = end;
        } else if offset > self.hashed_to {
            self.ahead.insert(offset, end);
        }
        self.end = self.end.max(end);
    }

    /// Hashes what is written without a gap by now, which `read_at(offset, buffer)` fetches; how much that is, and its hash.
    pub(crate) fn without_gap(&mut self, mut read_at: impl FnMut(u64, &mut [u8]) -> io::Result<usize>) -> io::Result<(u64, String)> {
        let mut buffer = Vec::new();
        while let Some(next) = self.ahead.first_entry().filter(|next| *next.key() <= self.hashed_to) {
            let end = *next.get();
            while self.hashed_to < end {
                buffer.resize(READ_BYTES.min((end - self.hashed_to) as usize), 0);
                let count = read_at(self.hashed_to, &mut buffer)?;
                if count == 0 {
                    return Err(shorter());
                }
                self.hasher.update(buffer.get(..count).unwrap_or(&[]));
                self.hashed_to += count as u64;
            }
            self.ahead.pop_first();
        }
        Ok((self.hashed_to, self.hasher.finalize().to_hex().to_string()))
    }

    /// How much is written without a gap, at least.
    pub(crate) fn known_without_gap(&self) -> u64 {
        let mut end = self.hashed_to;
        for (from, to) in &self.ahead {
            if *from > end {
                break;
            }
            end = end.max(*to);
        }
        end
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
                return Err(shorter());
            }
            self.hasher.update(buffer.get(..count).unwrap_or(&[]));
            self.hashed_to += count as u64;
        }
        Ok(Some(self.hasher.finalize().to_hex().to_string()))
    }
}

fn shorter() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it has become shorter while it was written")
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
            assert_eq!((hash.bytes(), hash.known_without_gap()), (700_000, 700_000));
            assert_eq!(hash.finish(read_at).unwrap(), Some(expected.clone()));
        }
        let mut gap = ContentHash::default();
        gap.write(300_000, b);
        assert_eq!((gap.bytes(), gap.known_without_gap()), (700_000, 0));
        gap.write(0, a);
        let (to, whole) = gap.without_gap(|offset, buffer| read_at(offset, buffer).unwrap()).unwrap();
        assert_eq!((to, &whole), (700_000, &expected));
        let mut resumed = ContentHash::resumed(blake3::Hasher::new().update(a).clone(), 300_000);
        resumed.write(300_000, b);
        assert_eq!(resumed.finish(read_at).unwrap(), Some(expected));
        let mut unreadable = ContentHash::default();
        unreadable.write(5, b"x");
        assert_eq!(unreadable.finish(|_, _| None).unwrap(), None);
    }
}
