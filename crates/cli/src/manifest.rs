//! What both ends say about the files of a transfer: records of JSON on two reliable streams.
//!
//! The sender's manifest is its first stream: before the data of a file it announces its segments, behind it
//! its length and content hash. The receiver answers on a stream of its own with what it computed, so that
//! both ends compare.
//!
//! ```text
//! sender    {"files":2,"bytes":1048577}
//!           {"stream":1,"segment_bytes":262144}
//!           {"stream":1,"bytes":1048577,"blake3":"..."}
//! receiver  {"stream":1,"bytes":1048577,"blake3":"...","error":null}
//! ```
//!
//! Called by `send` and `recv`. A file's name is the label of its stream; streams are numbered as the protocol
//! numbers them, the manifest being 0.
//!
//! Invariant: a record that cannot be read is skipped; nothing a peer writes here is needed to stay safe.

use segstream::{Contract, Order};
use serde::{Deserialize, Serialize};

/// The label of the sender's manifest.
pub(crate) const MANIFEST_LABEL: &str = "segstream.manifest";
/// The label of the receiver's answers.
pub(crate) const ANSWERS_LABEL: &str = "segstream.answers";
/// The most files of a transfer. Why a limit: both ends keep a report of each until the end.
pub(crate) const FILES_MAX: usize = 65_536;
/// The longest record that is read.
pub(crate) const RECORD_BYTES_MAX: usize = 16 * 1024;
/// The longest sentence that is taken over from a peer.
const SENTENCE_CHARACTERS_MAX: usize = 500;

/// A record of the sender. All fields are optional, so that records can grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// How many files there will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<u64>,
    /// Which stream is meant; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<u32>,
    /// Every segment of the stream but the last is so long, so its place in the file is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) segment_bytes: Option<u64>,
    /// The length; with a stream: of what was sent on it, and the last record about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// BLAKE3 of what was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blake3: Option<String>,
    /// Why not everything could be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// What the receiver says about a stream, once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    /// The stream.
    pub(crate) stream: u32,
    /// Bytes taken, holes included.
    pub(crate) bytes: u64,
    /// BLAKE3 of them; null when there are holes or they came out of order.
    pub(crate) blake3: Option<String>,
    /// Why they could not be kept.
    pub(crate) error: Option<String>,
}

/// The contract of a stream of records.
pub(crate) fn contract(label: &str) -> Contract {
    Contract { window_units: 4096, window_segments: 4096, order: Order::InOrder, label: label.to_owned(), ..Contract::default() }
}

/// A peer's sentence, safe to print: short and without control characters.
pub(crate) fn printable(sentence: &str) -> String {
    sentence.chars().filter(|letter| !letter.is_control()).take(SENTENCE_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_unknown_fields_are_skipped() {
        let record = Record { stream: Some(1), bytes: Some(5), blake3: Some("ab".into()), ..Record::default() };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(text, r#"{"stream":1,"bytes":5,"blake3":"ab"}"#);
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        let newer: Record = serde_json::from_str(r#"{"stream":2,"colour":"blue"}"#).unwrap();
        assert_eq!(newer.stream, Some(2));
    }

    #[test]
    fn a_peers_sentence_cannot_write_to_the_terminal() {
        assert_eq!(printable("full\u{1b}[31m\n"), "full[31m");
        assert_eq!(printable(&"x".repeat(10_000)).len(), SENTENCE_CHARACTERS_MAX);
    }
}
