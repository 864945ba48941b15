//! What both ends say about the files of a transfer: records of JSON on two reliable streams.
//!
//! The sender's manifest is its first stream: it offers files, announces the segments of a file before its data, and tells length and
//! content hash behind them. The receiver answers on a stream of its own: what it wants of each offer, and what became of it.
//!
//! ```text
//! sender    {"files":2,"bytes":1048577}
//! receiver  {"takes":{"offers":true,"packs":true}}
//! sender    {"pair":"SHA256:..."}                        of a sender with a code that wants to be remembered
//! receiver  {"paired":"studio"}
//! sender    {"offers":[{"offer":0,"name":"a","bytes":1048576,"mode":420,"mtime":[1700000000,0]},{"offer":1,"name":"b",...}]}
//! receiver  {"want":[0,2]}
//! sender    {"stream":1,"offer":0,"segment_bytes":262144}   the data of a large file: a stream of its own
//!           {"stream":1,"bytes":1048576,"blake3":"..."}
//!           {"stream":2,"pack":true}                        small files: many in a segment, see `pack`
//! receiver  {"stream":1,"bytes":1048576,"blake3":"...","error":null}
//!           {"kept":[1,1]}
//! ```
//!
//! Called by `send` and `recv`. Streams are numbered as the protocol numbers them, the manifest being 0. Standard input and pipes are
//! not offered: their name is the label of their stream.
//!
//! Invariant: a record that cannot be read is skipped; nothing a peer writes here is needed to stay safe.

use segstream::{Contract, Order};
use serde::{Deserialize, Serialize};

/// The label of the sender's manifest.
pub(crate) const MANIFEST_LABEL: &str = "segstream.manifest";
/// The label of the receiver's answers.
pub(crate) const ANSWERS_LABEL: &str = "segstream.answers";
/// The label of the stream of packs.
pub(crate) const PACKS_LABEL: &str = "segstream.packs";
/// The longest record that is read.
pub(crate) const RECORD_BYTES_MAX: usize = 32 * 1024;
/// The most offers that wait for the receiver's first reply. Why a limit: both ends remember them.
pub(crate) const OFFERS_AHEAD: u64 = 16_384;
/// The longest sentence that is taken over from a peer.
const SENTENCE_CHARACTERS_MAX: usize = 500;

/// What an offer is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    #[default]
    File,
    Directory,
    Link,
}

impl Kind {
    fn is_file(&self) -> bool {
        *self == Self::File
    }
}

/// Something that the sender has: a file, a directory, a symbolic link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Offer {
    /// Its number, counted from 0.
    pub(crate) offer: u64,
    /// Its path below the receiver's directory, with slashes.
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Kind::is_file")]
    pub(crate) kind: Kind,
    /// The length of a file.
    pub(crate) bytes: u64,
    /// Permission bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
    /// When the content was changed last: seconds since 1970 and nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtime: Option<(i64, u32)>,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
}

/// A record of the sender. All fields are optional, so that records can grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// How many files there will be, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<u64>,
    /// What the sender has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) offers: Vec<Offer>,
    /// Directories of which everything has been answered: they get their times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) finished: Vec<Offer>,
    /// Which offer is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<u64>,
    /// The receiver has the offer's content already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) same: bool,
    /// The receiver's file differs and is newer, and stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) newer: bool,
    /// The stream carries packs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pack: bool,
    /// Which stream is meant; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<u32>,
    /// Every segment of the stream but the last is so long, so its place in the file is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) segment_bytes: Option<u64>,
    /// Where in the file the stream begins: the receiver has what comes before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<u64>,
    /// The length; with a stream: of the file up to the end of what was sent on it, and the last record about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// BLAKE3 of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blake3: Option<String>,
    /// Why not everything could be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// The fingerprint of the sender's own key, from a sender that came with a one-time code and wants to be remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pair: Option<String>,
}

/// What a receiver takes; told first of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Takes {
    /// It replies to offers.
    pub(crate) offers: bool,
    /// It takes small files in packs.
    pub(crate) packs: bool,
}

/// A record of the receiver: about a stream once, about an offer once or twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    /// What it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) takes: Option<Takes>,
    /// The first of some offers that are wanted from their beginning, and how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) want: Option<(u64, u64)>,
    /// The first of some offers that are kept now, and how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kept: Option<(u64, u64)>,
    /// Which offer is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<u64>,
    /// So much of the beginning of the offer is here; its hash is `blake3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<u64>,
    /// There is a file of the offer's name and length; its hash is `blake3`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has: bool,
    /// With `has`: the file that is there gives way if it differs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) replaces: bool,
    /// The file that is there is not older than the offer, and stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) newer: bool,
    /// The stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<u32>,
    /// Bytes taken, holes included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// BLAKE3 of them; absent when there are holes or they came out of order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blake3: Option<String>,
    /// Why they could not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Whether they would survive a power cut at the receiver.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) durable: bool,
    /// The name under which the sender is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paired: Option<String>,
    /// So many directories that were told complete have their times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finished: Option<u64>,
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
