//! One connection: its streams, the sender's records about them, and the result of each.
//!
//! Called by the receiver's loop.
//!
//! ```text
//! Receiving --last segment taken--> Hashing --hash--> Waiting --sender's record--> Keeping --name--> Done
//!     any of them --failure, or the connection's end--> Leaving --> Done
//! ```
//!
//! Invariant: every stream is answered once.

use super::checks::{Question, Reply};
use super::offers::{Begin, Offers};
use super::open_streams::OpenStreams;
use super::segment_record::{SegmentRecord, SmallestDelay};
use super::sink::Attributes;
use super::storage::Beginning;
use super::writer::{Job, Key};
use crate::live_statistics::LiveStatistics;
use crate::manifest::{self, Answer, MANIFEST_LABEL, RECORD_BYTES_MAX, Record};
use crate::transfer_report::{FileReport, TransferReport};
use segstream::{CloseReason, ConnectionId, Contract, Fingerprint, Order, Received, SegmentNumber, StreamId, Verdict};
use segstream_base::{Bytes, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// The most streams without an offer: their reports are kept until the end.
const STREAMS_MAX: usize = 65_536;

/// The state of a stream.
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
    /// The offer whose data come, if it is one.
    offer: Option<u64>,
    /// Whether its destination has been begun: with a manifest not before that has a line about it.
    is_begun: bool,
    /// Whether everything of it was taken.
    has_ended: bool,
    /// Where in the file the stream begins.
    from: u64,
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
    /// Which offer it is, and where in the file it begins.
    offer: Option<u64>,
    from: u64,
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
    /// Answers that the send buffer does not take yet.
    pub(super) unsent: VecDeque<segstream::Bytes>,
    pub(super) streams: BTreeMap<StreamId, Arriving>,
    open: OpenStreams,
    said: BTreeMap<StreamId, Said>,
    /// The stream of packs.
    packs: Option<StreamId>,
    pub(super) offers: Offers,
    pub(super) report: TransferReport,
    pub(super) live: LiveStatistics,
    pub(super) closed: Option<CloseReason>,
    drop_holes: bool,
    /// The most bytes that may be written, and how many have been.
    bytes_max: Option<Bytes>,
    written: u64,
    /// The key that the sender wants to be remembered by, until that is looked at.
    pub(super) pair: Option<String>,
    /// Whether the sender has asked for that.
    asked_to_pair: bool,
    /// What the sender has done that ends the connection.
    wrong: Option<String>,
    first_data: Option<Instant>,
    last_delivery: Instant,
    smallest_delay: SmallestDelay,
}

impl Incoming {
    /// A connection without streams yet, which may write so much.
    pub(super) fn new(
        (id, sender): (ConnectionId, Option<Fingerprint>),
        drop_holes: bool,
        bytes_max: Option<Bytes>,
        live: LiveStatistics,
    ) -> Self {
        Self {
            id,
            manifest: None,
            first_is_open: false,
            answers: None,
            unsent: VecDeque::new(),
            streams: BTreeMap::new(),
            open: OpenStreams::default(),
            said: BTreeMap::new(),
            packs: None,
            offers: Offers::new(id, sender, bytes_max),
            report: TransferReport::default(),
            live,
            closed: None,
            drop_holes,
            bytes_max,
            written: 0,
            pair: None,
            asked_to_pair: false,
            wrong: None,
            first_data: None,
            last_delivery: Instant::ZERO,
            smallest_delay: SmallestDelay::default(),
        }
    }

    /// The sender has opened a stream: its manifest, or one of data, which has the job to begin it. With the first it is known whether
    /// there is a manifest, and what waited for that is compared.
    pub(super) fn open(&mut self, stream: StreamId, contract: &Contract, jobs: &mut Vec<Job>) {
        let is_first = stream == StreamId::FIRST;
        self.open.open(stream);
        if is_first && contract.label == MANIFEST_LABEL {
            self.manifest = Some(stream);
        } else {
            self.begin(stream, contract, jobs);
        }
        if is_first {
            self.first_is_open = true;
            for stream in self.open.wanted() {
                self.begin_destination(stream, jobs);
            }
            self.settle_waiting(jobs);
        }
    }

    fn begin(&mut self, stream: StreamId, contract: &Contract, jobs: &mut Vec<Job>) {
        let report = FileReport { name: contract.label.clone(), ..FileReport::default() };
        let arriving = Arriving {
            number: self.open.want(stream),
            stage: Stage::Receiving,
            contract: contract.clone(),
            differs: false,
            next_segment: SegmentNumber::FIRST,
            written_to: 0,
            offer: None,
            is_begun: false,
            has_ended: false,
            from: 0,
            report,
        };
        self.streams.insert(stream, arriving);
        self.begin_destination(stream, jobs);
    }

    /// Begins the destination of a stream that is open, once it is known what it is.
    fn begin_destination(&mut self, stream: StreamId, jobs: &mut Vec<Job>) {
        let (key, said) = (self.key(stream), self.said.get(&stream).filter(|said| said.begun));
        if !self.first_is_open || (self.manifest.is_some() && said.is_none()) || self.packs == Some(stream) {
            return;
        }
        let (offer, from) = said.map_or((None, 0), |said| (said.offer, said.from));
        let Some(arriving) = self.streams.get_mut(&stream).filter(|arriving| !arriving.is_begun) else { return };
        arriving.is_begun = true;
        let begin = match offer {
            None => {
                let name = arriving.contract.label.clone();
                Some(Begin { name, attributes: Attributes::default(), beginning: Beginning::Plain })
            }
            Some(offer) => self.offers.begin(offer, from),
        };
        let Some(Begin { name, attributes, beginning }) = begin else {
            return self.leave(stream, "nobody asked for what comes on this stream".to_owned(), jobs);
        };
        arriving.offer = offer;
        arriving.report.name.clone_from(&name);
        (arriving.from, arriving.written_to, arriving.report.bytes) = (from, from, from);
        jobs.push(Job::Open(key, name, attributes, beginning));
        if arriving.has_ended {
            arriving.stage = Stage::Hashing;
            jobs.push(Job::Hash(key));
        }
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
        let is_overfull = self.streams.len() > STREAMS_MAX;
        is_overfull.then(|| format!("the sender has opened more than {STREAMS_MAX} streams without an offer; let it send fewer"))
    }

    /// The streams that may still bring data, and what becomes of it.
    pub(super) const fn open_streams(&self) -> &OpenStreams {
        &self.open
    }

    /// Takes a record of the manifest; what is to be looked at because of it.
    pub(super) fn on_record(&mut self, bytes: &[u8], jobs: &mut Vec<Job>) -> Option<Question> {
        if bytes.len() > RECORD_BYTES_MAX {
            return None;
        }
        let mut record: Record = serde_json::from_slice(bytes).ok()?;
        if !record.offers.is_empty() {
            return self.offers.on_offers(std::mem::take(&mut record.offers));
        }
        if record.pair.is_some() {
            // One request is answered: whoever repeats it gets no further line and no further answer.
            if !std::mem::replace(&mut self.asked_to_pair, true) {
                self.pair = record.pair;
            }
            return None;
        }
        if !record.finished.is_empty() {
            return self.offers.on_finished(std::mem::take(&mut record.finished));
        }
        let Some(stream) = record.stream.map(StreamId) else {
            if let Some(offer) = record.offer {
                self.offers.on_record(offer, &record);
                self.offers.report_settled(&mut self.report);
            }
            return None;
        };
        let is_done = match self.streams.get(&stream) {
            Some(arriving) => arriving.stage == Stage::Done,
            // Its offer is settled.
            None => self.open.was_opened(stream),
        };
        if is_done || !self.open.is_within_reach(stream) {
            return None;
        }
        let said = self.said.entry(stream).or_default();
        if record.pack {
            self.packs.get_or_insert(stream);
            self.said.remove(&stream);
        } else if record.bytes.is_some() || record.failed.is_some() {
            said.end = Some(record);
            self.settle(stream, jobs);
        } else if !std::mem::replace(&mut said.begun, true) {
            (said.segment_bytes, said.offer, said.from) = (record.segment_bytes, record.offer, record.from.unwrap_or(0));
            self.begin_destination(stream, jobs);
        }
        None
    }

    /// What was found of offers; the answers.
    pub(super) fn on_replies(&mut self, replies: Vec<(u64, Reply)>) -> Vec<Answer> {
        let answers = self.offers.on_replies(replies);
        self.offers.report_settled(&mut self.report);
        answers
    }

    /// What became of files in packs; the answers, and sentences for people.
    pub(super) fn on_unpacked(&mut self, now: Instant, told: Vec<(u64, Result<bool, String>)>) -> (Vec<Answer>, Vec<String>) {
        self.last_delivery = now;
        let told = self.offers.on_unpacked(told);
        self.offers.report_settled(&mut self.report);
        told
    }

    /// Takes a pack; the job to write its files, or nothing if it is none, and then the connection is to be broken off.
    fn on_pack(&mut self, now: Instant, received: &Received) -> Option<(Job, SegmentRecord)> {
        let arriving = self.streams.get(&received.stream)?;
        let record = SegmentRecord::new(arriving.number, arriving.contract.tolerance, received, &mut self.smallest_delay);
        let packed = (received.verdict == Verdict::Complete).then(|| self.offers.unpack(&received.bytes)).flatten();
        let Some(packed) = packed else {
            self.wrong = Some("the sender has sent a pack of files that cannot be read, or nobody asked for".to_owned());
            return None;
        };
        let bytes = packed.iter().map(|packed| packed.place.len() as u64).sum();
        self.note_delivery(now, received, bytes);
        Some((Job::Unpack(self.id, received.bytes.clone(), packed), record))
    }

    /// Counts a segment with so many bytes of the application.
    fn note_delivery(&mut self, now: Instant, received: &Received, bytes: u64) {
        self.first_data = match (self.first_data, received.first_arrival) {
            (Some(before), Some(here)) => Some(before.min(here)),
            (before, here) => before.or(here),
        };
        self.last_delivery = now;
        self.report.segments += 1;
        self.report.count(received.verdict, bytes, received.unit_bytes, &received.holes);
    }

    /// Takes a segment of data: the job to write it, and its record. Nothing once the limit is passed.
    pub(super) fn on_segment(&mut self, now: Instant, received: Received) -> Option<(Job, SegmentRecord)> {
        if self.packs == Some(received.stream) {
            return self.on_pack(now, &received);
        }
        let key = self.key(received.stream);
        let said = self.said.get(&received.stream).and_then(|said| said.segment_bytes);
        let arriving = self.streams.get_mut(&received.stream)?;
        let offset = arriving.offset(received.segment, said.filter(|_| !self.drop_holes));
        let length = received.bytes.len() as u64;
        let record = SegmentRecord::new(arriving.number, arriving.contract.tolerance, &received, &mut self.smallest_delay);
        let missing = if self.drop_holes { Vec::new() } else { missing(&received) };
        // Why not the bytes alone: a gap that is left for a segment takes room in the file too, and time to hash.
        let kept = if self.drop_holes { Some(without_holes(&received)) } else { None };
        let kept_bytes = kept.as_ref().map_or(length, |kept| kept.len() as u64);
        let end = offset.unwrap_or(arriving.written_to).saturating_add(kept_bytes);
        self.written = self.written.saturating_add(end.saturating_sub(arriving.written_to));
        if self.bytes_max.is_some_and(|most| self.written > most.get()) {
            return None;
        }
        arriving.written_to = arriving.written_to.max(end);
        arriving.differs |= received.verdict != Verdict::Complete;
        arriving.report.bytes += kept_bytes;
        self.note_delivery(now, &received, length);
        let bytes = kept.map_or(received.bytes, Into::into);
        Some((Job::Write(key, offset, bytes, missing), record))
    }

    /// The sentence for a connection that is to be broken off: it has more to write than it may, or sends what is nothing.
    pub(super) fn refusal(&self) -> Option<String> {
        let too_much = self.bytes_max.filter(|most| self.written > most.get()).map(|most| {
            format!(
                "the sender has more bytes, and this receiver takes at most {most} of a connection; raise --max-bytes, or let less be sent"
            )
        });
        too_much.or_else(|| self.wrong.clone())
    }

    /// The name of a file that is under way.
    pub(super) fn current_name(&self) -> Option<&str> {
        let stream = self.open.wanted().into_iter().find(|stream| self.packs != Some(*stream))?;
        self.streams.get(&stream).map(|arriving| arriving.report.name.as_str())
    }

    /// Whether segments of `stream` can be taken now: those that come in any order only when it is known where they go.
    pub(super) fn takes(&self, stream: StreamId) -> bool {
        self.packs == Some(stream) || self.streams.get(&stream).is_some_and(|arriving| arriving.is_begun)
    }

    /// Everything of `stream` has been taken.
    pub(super) fn on_ended(&mut self, stream: StreamId, jobs: &mut Vec<Job>) {
        let key = self.key(stream);
        self.open.end(stream);
        if self.packs == Some(stream) {
            self.streams.remove(&stream);
            return;
        }
        if let Some(arriving) = self.streams.get_mut(&stream).filter(|arriving| arriving.stage == Stage::Receiving) {
            arriving.has_ended = true;
            if arriving.is_begun {
                arriving.stage = Stage::Hashing;
                jobs.push(Job::Hash(key));
            }
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
            Some(sentence) => {
                // What differs is wrong in its beginning too; what is not whole can be gone on with.
                let is_wrong = arriving.report.hash_agrees == Some(false);
                self.leave_as(stream, sentence, is_wrong, jobs);
            }
        }
    }

    /// `stream` is not whole.
    fn leave(&mut self, stream: StreamId, sentence: String, jobs: &mut Vec<Job>) {
        self.leave_as(stream, sentence, false, jobs);
    }

    /// `stream` has failed.
    fn leave_as(&mut self, stream: StreamId, sentence: String, is_wrong: bool, jobs: &mut Vec<Job>) {
        let key = self.key(stream);
        self.open.discard(stream);
        if let Some(arriving) = self.streams.get_mut(&stream) {
            arriving.stage = Stage::Leaving;
            arriving.report.error.get_or_insert(sentence);
            jobs.push(Job::Leave(key, is_wrong));
        }
    }

    /// `stream` has its name, and would survive a power cut or not.
    pub(super) fn on_kept(&mut self, stream: StreamId, durable: bool) {
        if let Some(arriving) = self.streams.get_mut(&stream) {
            arriving.report.durable = Some(durable);
        }
    }

    /// The writer is done with `stream`. The answer, if there was none yet.
    pub(super) fn on_done(&mut self, now: Instant, stream: StreamId, failed: Option<String>) -> Option<Answer> {
        let arriving = self.streams.get_mut(&stream).filter(|arriving| arriving.stage != Stage::Done)?;
        arriving.stage = Stage::Done;
        self.open.discard(stream);
        self.said.remove(&stream);
        if let Some(sentence) = failed {
            arriving.report.error.get_or_insert(sentence);
        }
        let report = arriving.report.clone();
        self.last_delivery = now;
        if let Some(offer) = arriving.offer {
            self.offers.on_settled(offer, report.clone());
            self.offers.report_settled(&mut self.report);
            self.streams.remove(&stream);
        }
        let FileReport { bytes, blake3, error, hash_agrees, durable, .. } = report;
        // Why: the sender must see a hash that differs, and compares for itself.
        let error = error.filter(|_| hash_agrees != Some(false));
        Some(Answer { stream: Some(stream.0), bytes: Some(bytes), blake3, error, durable: durable == Some(true), ..Answer::default() })
    }

    /// Whether every stream and every pack is done.
    pub(super) fn is_done(&self) -> bool {
        let is_done = |(stream, arriving): (&StreamId, &Arriving)| arriving.stage == Stage::Done || self.packs == Some(*stream);
        self.streams.iter().all(is_done) && self.offers.is_done()
    }

    /// The connection has ended and nothing more arrives: incomplete files keep their provisional names.
    pub(super) fn abandon(&mut self, jobs: &mut Vec<Job>) {
        let unfinished = self
            .streams
            .iter()
            .filter(|(stream, arriving)| matches!(arriving.stage, Stage::Receiving | Stage::Waiting) && self.packs != Some(**stream));
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
        self.offers.conclude(&mut self.report);
        for (_, arriving) in self.streams.into_iter().filter(|(stream, _)| self.packs != Some(*stream)) {
            self.report.add_file(arriving.report);
        }
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
        let place = segment_bytes
            .filter(|_| self.contract.order == Order::AsAccepted)
            .and_then(|bytes| segment.0.checked_mul(bytes)?.checked_add(self.from));
        self.differs |= !in_order && place.is_none();
        place
    }
}

/// The ranges of the segment's bytes that are missing.
fn missing(received: &Received) -> Vec<Range<usize>> {
    let length = received.bytes.len() as u64;
    let ranges = received.holes.iter().map(|hole| hole.byte_range(received.unit_bytes, length));
    ranges.map(|range| range.start.min(length) as usize..range.end.min(length) as usize).collect()
}

/// The bytes that arrived.
fn without_holes(received: &Received) -> Vec<u8> {
    let mut kept = Vec::with_capacity(received.bytes.len());
    let mut from = 0;
    for hole in &received.holes {
        let missing = hole.byte_range(received.unit_bytes, received.bytes.len() as u64);
        kept.extend_from_slice(received.bytes.get(from..missing.start as usize).unwrap_or(&[]));
        from = missing.end as usize;
    }
    kept.extend_from_slice(received.bytes.get(from..).unwrap_or(&[]));
    kept
}
