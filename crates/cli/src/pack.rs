//! A pack: many small files in one segment.
//!
//! ```text
//! length of the head: 4 bytes, big-endian │ head: JSON [[offer,bytes,"blake3"],...] │ contents, one behind the other
//! ```
//!
//! Called by `send`, which fills packs, and by `recv`, which unpacks them. Packs travel on one stream with full reliability, so that a
//! segment of it is whole or does not arrive.
//!
//! Invariant: an entry of a pack that is read lies within the segment; entries neither overlap nor leave a gap.

use segstream_base::Bytes as Length;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes of the length in front.
const LENGTH_BYTES: usize = 4;
/// The most that the head takes for one entry: number, length, hash, punctuation.
const ENTRY_BYTES_MAX: usize = 112;

/// A file in a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry(pub(crate) u64, pub(crate) u64, pub(crate) String);

/// A pack that is being filled.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    entries: Vec<Entry>,
    contents: Vec<u8>,
}

impl Filling {
    /// The most that one file may have in a segment of `segment_bytes`.
    pub(crate) fn file_bytes_max(segment_bytes: usize) -> Length {
        Length::new(segment_bytes.saturating_sub(LENGTH_BYTES + ENTRY_BYTES_MAX + 2) as u64)
    }

    /// Whether a file of `bytes` still fits a segment of `segment_bytes`.
    pub(crate) fn takes(&self, bytes: u64, segment_bytes: usize) -> bool {
        let head = LENGTH_BYTES + 2 + (self.entries.len() + 1) * ENTRY_BYTES_MAX;
        (head + self.contents.len()) as u64 + bytes <= segment_bytes as u64
    }

    /// Adds a file; its hash.
    pub(crate) fn add(&mut self, offer: u64, content: &[u8]) -> String {
        let hash = blake3::hash(content).to_hex().to_string();
        self.entries.push(Entry(offer, content.len() as u64, hash.clone()));
        self.contents.extend_from_slice(content);
        hash
    }

    /// Whether there is nothing in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the files in it.
    pub(crate) const fn content_bytes(&self) -> u64 {
        self.contents.len() as u64
    }

    /// The segment, and which offers are in it; begins anew.
    pub(crate) fn take(&mut self) -> (Vec<u8>, Vec<u64>) {
        let Self { entries, contents } = std::mem::take(self);
        // Why it cannot fail: numbers and texts always have a form in JSON.
        let head = serde_json::to_vec(&entries).unwrap_or_default();
        let mut segment = Vec::with_capacity(LENGTH_BYTES + head.len() + contents.len());
        segment.extend_from_slice(&(head.len() as u32).to_be_bytes());
        segment.extend_from_slice(&head);
        segment.extend_from_slice(&contents);
        (segment, entries.into_iter().map(|entry| entry.0).collect())
    }
}

/// The entries of a pack and where their contents lie in it; nothing when it is none.
pub(crate) fn read(segment: &[u8]) -> Option<Vec<(Entry, Range<usize>)>> {
    let (length, rest) = segment.split_first_chunk::<LENGTH_BYTES>()?;
    let head = rest.get(..u32::from_be_bytes(*length) as usize)?;
    let entries: Vec<Entry> = serde_json::from_slice(head).ok()?;
    let mut from = LENGTH_BYTES + head.len();
    let mut placed = Vec::with_capacity(entries.len());
    for entry in entries {
        let to = from.checked_add(usize::try_from(entry.1).ok()?).filter(|to| *to <= segment.len())?;
        placed.push((entry, from..to));
        from = to;
    }
    (from == segment.len()).then_some(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_fits_the_segment() {
        const SEGMENT: usize = 4096;
        let mut filling = Filling::default();
        let contents: Vec<Vec<u8>> = (0..).map(|index: usize| vec![index as u8; index * 5 % 97]).take(60).collect();
        let mut added = 0;
        while filling.takes(contents[added].len() as u64, SEGMENT) {
            filling.add(added as u64 + (1 << 60), &contents[added]);
            added += 1;
        }
        assert!(added > 20 && added < 60, "{added}");
        let (segment, offers) = filling.take();
        assert!(segment.len() <= SEGMENT && offers.len() == added && filling.is_empty());
        for (index, (entry, range)) in read(&segment).unwrap().into_iter().enumerate() {
            assert_eq!((entry.0, &segment[range]), (offers[index], &contents[index][..]));
            assert_eq!(entry.2, blake3::hash(&contents[index]).to_hex().as_str());
        }
        let most = Filling::file_bytes_max(SEGMENT).get();
        assert!(Filling::default().takes(most, SEGMENT) && !Filling::default().takes(most + 1, SEGMENT));
    }

    #[test]
    fn what_is_no_pack_is_nothing() {
        let mut filling = Filling::default();
        filling.add(3, b"abc");
        let (segment, _) = filling.take();
        for length in 0..segment.len() {
            assert_eq!(read(&segment[..length]), None, "{length}");
        }
        assert_eq!(read(&[segment.as_slice(), b"x"].concat()), None);
        assert_eq!(read(b"\xff\xff\xff\xff[]"), None);
        let huge = br#"[[0,18446744073709551615,""],[1,2,""]]"#;
        assert_eq!(read(&[&(huge.len() as u32).to_be_bytes()[..], huge, b"ab"].concat()), None);
    }
}
