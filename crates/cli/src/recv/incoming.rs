//! One connection: its streams, what the sender says about them, and what comes of each.
//!
//! Called by the receiver's loop.
//!
//! ```text
//! Receiving --last segment taken--> Hashing --hash--> Waiting --sender's record--> Keeping --name--> Done
//!     any of them --failure, or the connection's end--> Leaving --> Done
//! ```
//!
//! Invariant: every stream is answered once.

use super::segment_record::{SegmentRecord, SmallestDelay};
use super::writer::{Job, Key};
use crate::live_statistics::LiveStatistics;
use crate::manifest::{self, Answer, FILES_MAX, MANIFEST_LABEL, RECORD_BYTES_MAX, Record};
use crate::transfer_report::{FileReport, TransferReport};
use segstream::{CloseReason, ConnectionId, Contract, Order, Received, SegmentNumber, StreamId, Verdict};
use segstream_base::{Bytes, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Streams that a sender can have live, and so name before they are opened here.
const STREAMS_AHEAD: u32 = 256;

/// How far a stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Receiving,
    Hashing,
    Waiting,
    Keeping,
    Leaving,
    Done,
}

/// One stream of data.
#[derive(Debug)]
pub(super) struct Arriving {
    /// Which stream of data, counted from 0.
    number: u32,
    pub(super) stage: Stage,
    contract: Contract,
    /// Whether the content cannot be the sender's: holes, or another order.
    differs: bool,
    next_segment: SegmentNumber,
    /// How far into the file has been written.
    written_to: u64,
    report: FileReport,
}

/// What the sender has said about a stream, which may be before the stream is opened.
#[derive(Debug, Default)]
struct Said {
    /// That it begins.
    begun: bool,
    /// The length of every segment but the last.
    segment_bytes: Option<u64>,
    /// How it has ended.
    end: Option<Record>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Incoming {
    id: ConnectionId,
    pub(super) manifest: Option<StreamId>,
    /// Whether the sender's first stream has been opened: then it is known whether there is a manifest.
    first_is_open: bool,
    pub(super) answers: Option<StreamId>,
    /// Answers that the stream for them does not take yet.
    pub(super) unsent: VecDeque<segstream::Bytes>,
    pub(super) streams: BTreeMap<StreamId, Arriving>,
    /// Those of them of which something may come.
    receiving: BTreeSet<StreamId>,
    said: BTreeMap<StreamId, Said>,
    pub(super) report: TransferReport,
    pub(super) live: LiveStatistics,
    pub(super) closed: Option<CloseReason>,
    drop_holes: bool,
    /// The most that may be written, and what has been.
    bytes_max: Option<Bytes>,
    written: u64,
    first_data: Option<Instant>,
    last_delivery: Instant,
    smallest_delay: SmallestDelay,
}

impl Incoming {
    /// A connection without streams yet, which may write so much.
    pub(super) fn new(id: ConnectionId, drop_holes: bool, bytes_max: Option<Bytes>, live: LiveStatistics) -> Self {
        Self {
            id,
            manifest: None,
            first_is_open: false,
            answers: None,
            unsent: VecDeque::new(),
            streams: BTreeMap::new(),
            receiving: BTreeSet::new(),
            said: BTreeMap::new(),
            report: TransferReport::default(),
            live,
            closed: None,
            drop_holes,
            bytes_max,
            written: 0,
            first_data: None,
            last_delivery: Instant::ZERO,
            smallest_delay: SmallestDelay::default(),
        }
    }

    /// The sender has opened a stream: its manifest, or one of data, which has the job to begin it. With the first it is known whether
    /// there is a manifest, and what waited for that is compared.
    pub(super) fn open(&mut self, stream: StreamId, contract: &Contract, jobs: &mut Vec<Job>) {
        let is_first = stream == StreamId::FIRST;
        if is_first && contract.label == MANIFEST_LABEL {
            self.manifest = Some(stream);
        } else {
            self.begin(stream, contract, jobs);
        }
        if is_first {
            self.first_is_open = true;
            self.settle_waiting(jobs);
        }
    }

    fn begin(&mut self, stream: StreamId, contract: &Contract, jobs: &mut Vec<Job>) {
        let report = FileReport { name: contract.label.clone(), ..FileReport::default() };
        let arriving = Arriving {
            number: self.streams.len() as u32,
            stage: Stage::Receiving,
            contract: contract.clone(),
            differs: false,
            next_segment: SegmentNumber::FIRST,
            written_to: 0,
            report,
        };
        self.streams.insert(stream, arriving);
        self.receiving.insert(stream);
        jobs.push(Job::Open(self.key(stream), contract.label.clone()));
    }

    fn settle_waiting(&mut self, jobs: &mut Vec<Job>) {
        let waits = self.streams.iter().filter(|(_, arriving)| arriving.stage == Stage::Waiting);
        let waiting: Vec<StreamId> = waits.map(|(stream, _)| *stream).collect();
        for stream in waiting {
            self.settle(stream, jobs);
        }
    }

    /// The sentence for a sender that has opened more streams than a transfer has files.
    pub(super) fn overfull(&self) -> Option<String> {
        let is_overfull = self.streams.len() > FILES_MAX;
        is_overfull.then(|| format!("one transfer carries at most {FILES_MAX} files; let the sender send fewer, or an archive"))
    }

    /// The streams of which something may come, in the order of their numbers.
    pub(super) fn receiving(&self) -> Vec<StreamId> {
        self.receiving.iter().copied().collect()
    }

    /// Takes a record of the manifest; how many bytes are expected, if it says so.
    pub(super) fn on_record(&mut self, bytes: &[u8], jobs: &mut Vec<Job>) -> Option<u64> {
        if bytes.len() > RECORD_BYTES_MAX {
            return None;
        }
        let record: Record = serde_json::from_slice(bytes).ok()?;
        let Some(stream) = record.stream.map(StreamId) else { return record.bytes };
        let next = self.streams.last_key_value().map_or(StreamId::FIRST, |(last, _)| last.saturating_add(1));
        let is_done = self.streams.get(&stream).is_some_and(|arriving| arriving.stage == Stage::Done);
        if is_done || stream > next.saturating_add(STREAMS_AHEAD) {
            return None;
        }
        let said = self.said.entry(stream).or_default();
        if record.bytes.is_some() || record.failed.is_some() {
            said.end = Some(record);
            self.settle(stream, jobs);
        } else if !std::mem::replace(&mut said.begun, true) {
            said.segment_bytes = record.segment_bytes;
        }
        None
    }

    /// Takes a segment of data: the job to write it, and its record. Nothing once the limit is passed.
    pub(super) fn on_segment(&mut self, now: Instant, received: Received) -> Option<(Job, SegmentRecord)> {
        let key = self.key(received.stream);
        let said = self.said.get(&received.stream).and_then(|said| said.segment_bytes);
        let arriving = self.streams.get_mut(&received.stream)?;
        let offset = arriving.offset(received.segment, said.filter(|_| !self.drop_holes));
        let length = received.bytes.len() as u64;
        let record = SegmentRecord::new(arriving.number, arriving.contract.tolerance, &received, &mut self.smallest_delay);
        let (verdict, unit_bytes, first_arrival) = (received.verdict, received.unit_bytes, received.first_arrival);
        let bytes = if self.drop_holes { without_holes(&received).into() } else { received.bytes };
        // Why not the bytes alone: a gap that is left for a segment takes room in the file too, and time to hash.
        let end = offset.unwrap_or(arriving.written_to).saturating_add(bytes.len() as u64);
        self.written = self.written.saturating_add(end.saturating_sub(arriving.written_to));
        if self.bytes_max.is_some_and(|most| self.written > most.get()) {
            return None;
        }
        arriving.written_to = arriving.written_to.max(end);
        arriving.differs |= verdict != Verdict::Complete;
        arriving.report.bytes += bytes.len() as u64;
        self.first_data = match (self.first_data, first_arrival) {
            (Some(before), Some(here)) => Some(before.min(here)),
            (before, here) => before.or(here),
        };
        self.last_delivery = now;
        self.report.segments += 1;
        self.report.count(verdict, length, unit_bytes, &received.holes);
        Some((Job::Write(key, offset, bytes), record))
    }

    /// The sentence for a connection that has more to write than it may: `announced`, or what has come of it already.
    pub(super) fn refusal(&self, announced: Option<u64>) -> Option<String> {
        let most = self.bytes_max.filter(|most| announced.unwrap_or(self.written) > most.get())?;
        let how_many = announced.map_or("more bytes".to_owned(), |bytes| format!("{bytes} bytes"));
        Some(format!(
            "the sender has {how_many}, and this receiver takes at most {most} of a connection; raise --max-bytes, or let less be sent"
        ))
    }

    /// Whether segments of `stream` can be taken now: those that come in any order only when it is known where they go.
    pub(super) fn takes(&self, stream: StreamId) -> bool {
        if !self.first_is_open {
            return false;
        }
        let in_order = self.streams.get(&stream).is_some_and(|arriving| arriving.contract.order == Order::InOrder);
        in_order || self.manifest.is_none() || self.said.get(&stream).is_some_and(|said| said.begun)
    }

    /// Everything of `stream` has been taken.
    pub(super) fn on_ended(&mut self, stream: StreamId, jobs: &mut Vec<Job>) {
        let key = self.key(stream);
        self.receiving.remove(&stream);
        if let Some(arriving) = self.streams.get_mut(&stream).filter(|arriving| arriving.stage == Stage::Receiving) {
            arriving.stage = Stage::Hashing;
            jobs.push(Job::Hash(key));
        }
    }

    /// The writer has hashed `stream`.
    pub(super) fn on_hashed(&mut self, stream: StreamId, blake3: Option<String>, jobs: &mut Vec<Job>) {
        let Some(arriving) = self.streams.get_mut(&stream).filter(|arriving| arriving.stage == Stage::Hashing) else { return };
        arriving.report.blake3 = blake3.filter(|_| !arriving.differs);
        arriving.stage = Stage::Waiting;
        self.settle(stream, jobs);
    }

    /// Compares what came with what the sender says, once both are there.
    fn settle(&mut self, stream: StreamId, jobs: &mut Vec<Job>) {
        // Why not before: a stream that ended sooner than the first was opened may yet have a line in a manifest.
        if !self.first_is_open {
            return;
        }
        let (key, has_manifest) = (self.key(stream), self.manifest.is_some());
        let Some(arriving) = self.streams.get_mut(&stream).filter(|arriving| arriving.stage == Stage::Waiting) else { return };
        let name = &arriving.report.name;
        let wrong = match self.said.get(&stream).and_then(|said| said.end.as_ref()) {
            None if has_manifest => return,
            None => None,
            Some(Record { failed: Some(sentence), .. }) => {
                Some(format!("the sender could not send {name:?} whole: {}", manifest::printable(sentence)))
            }
            Some(record) => {
                let hashes = arriving.report.blake3.as_ref().zip(record.blake3.as_ref());
                arriving.report.hash_agrees = hashes.map(|(ours, theirs)| ours == theirs);
                (arriving.report.hash_agrees == Some(false))
                    .then(|| format!("{name:?} is not what the sender sent: its content hash differs; let it be sent again"))
            }
        };
        match wrong {
            None => {
                arriving.stage = Stage::Keeping;
                jobs.push(Job::Keep(key));
            }
            Some(sentence) => self.leave(stream, sentence, jobs),
        }
    }

    /// `stream` cannot become what it should be.
    fn leave(&mut self, stream: StreamId, sentence: String, jobs: &mut Vec<Job>) {
        let key = self.key(stream);
        self.receiving.remove(&stream);
        if let Some(arriving) = self.streams.get_mut(&stream) {
            arriving.stage = Stage::Leaving;
            arriving.report.error.get_or_insert(sentence);
            jobs.push(Job::Leave(key));
        }
    }

    /// The writer is done with `stream`, one way or another. The answer, if there was none yet.
    pub(super) fn on_done(&mut self, stream: StreamId, failed: Option<String>) -> Option<Answer> {
        let arriving = self.streams.get_mut(&stream).filter(|arriving| arriving.stage != Stage::Done)?;
        arriving.stage = Stage::Done;
        self.receiving.remove(&stream);
        self.said.remove(&stream);
        if let Some(sentence) = failed {
            arriving.report.error.get_or_insert(sentence);
        }
        let FileReport { bytes, blake3, error, hash_agrees, .. } = arriving.report.clone();
        // Why: the sender must see a hash that differs, and compares for itself.
        let error = error.filter(|_| hash_agrees != Some(false));
        Some(Answer { stream: stream.0, bytes, blake3, error })
    }

    /// Whether every stream is done.
    pub(super) fn is_done(&self) -> bool {
        self.streams.values().all(|arriving| arriving.stage == Stage::Done)
    }

    /// The connection has ended and nothing more can be taken: what is not whole is left.
    pub(super) fn abandon(&mut self, jobs: &mut Vec<Job>) {
        let unfinished = self.streams.iter().filter(|(_, arriving)| matches!(arriving.stage, Stage::Receiving | Stage::Waiting));
        for stream in unfinished.map(|(&stream, _)| stream).collect::<Vec<_>>() {
            self.leave(stream, "the connection ended before everything had come".to_owned(), jobs);
        }
    }

    /// The result.
    pub(super) fn conclude(mut self) -> TransferReport {
        match self.closed {
            None | Some(CloseReason::ClosedHere | CloseReason::ClosedByPeer { code: 0, .. }) => {}
            Some(CloseReason::ClosedByPeer { detail, .. } | CloseReason::AbortedByPeer { detail, .. }) => {
                let sentence = format!("the sender ended the connection: {}", manifest::printable(&detail));
                self.report.error.get_or_insert(sentence);
            }
            Some(reason) => drop(self.report.error.get_or_insert_with(|| format!("the connection has ended: {reason}"))),
        }
        self.report.files = self.streams.into_values().map(|arriving| arriving.report).collect();
        let span = self.first_data.map_or(segstream_base::Duration::ZERO, |first| self.last_delivery.since(first));
        self.report.conclude(span);
        self.report
    }

    fn key(&self, stream: StreamId) -> Key {
        (self.id, stream)
    }
}

impl Arriving {
    /// Where segment `segment` goes: its place where that is known, else behind the last.
    fn offset(&mut self, segment: SegmentNumber, segment_bytes: Option<u64>) -> Option<u64> {
        // No segment is longer than the window, whatever is said.
        let window_bytes = u64::from(self.contract.window_units) * u64::from(self.contract.unit_bytes);
        let segment_bytes = segment_bytes.filter(|bytes| *bytes <= window_bytes);
        let in_order = segment == self.next_segment;
        self.next_segment = self.next_segment.max(segment + 1);
        let place = segment_bytes.filter(|_| self.contract.order == Order::AsAccepted).and_then(|bytes| segment.0.checked_mul(bytes));
        self.differs |= !in_order && place.is_none();
        place
    }
}

/// The bytes that arrived.
fn without_holes(received: &Received) -> Vec<u8> {
    let place = |unit: u32| (unit as usize * received.unit_bytes as usize).min(received.bytes.len());
    let mut kept = Vec::with_capacity(received.bytes.len());
    let mut from = 0;
    for &(start, end) in &received.holes {
        kept.extend_from_slice(received.bytes.get(from..place(start)).unwrap_or(&[]));
        from = place(end);
    }
    kept.extend_from_slice(received.bytes.get(from..).unwrap_or(&[]));
    kept
}
