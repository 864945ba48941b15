//! Files become streams, and their bytes segments, not earlier than they can leave.
//!
//! Called by the transfer's loop. A segment's age counts from when it is handed over, so it is handed over when
//! little is left that waits to be sent: some milliseconds of the rate, and no less than a segment.
//!
//! A file's stream retires when the receiver has taken everything of it, and only live streams are limited, so any number of
//! files follow one another: when as many streams are live as the receiver allows, the next file waits.
//!
//! Invariant: files are sent in the order they were named; one that fails harms no other.

use super::source::{Next, Source};
use super::{Plan, name};
use crate::manifest::Record;
use crate::transfer_report::FileReport;
use segstream::blocking::Connection;
use segstream::{Bytes, Clock, Contract, Error, OpenStreamError, SegmentNumber, StreamId, SubmitError};
use segstream_base::{Duration, Instant};
use segstream_net::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

/// How much of the rate may wait to be sent.
const AHEAD: Duration = Duration::from_millis(40);
/// How soon to look again when enough waits.
const LOOK_AGAIN: Duration = Duration::from_millis(4);
/// How much is handed over before the network is served again.
const TURN_BYTES: usize = 512 * 1024;
/// The name of standard input at the receiver.
const STANDARD_INPUT: &str = "stdin";

/// A file on its way, or done.
#[derive(Debug)]
pub(super) struct Sent {
    /// What is known of it.
    pub(super) report: FileReport,
    /// Whether everything of it has been handed over.
    pub(super) finished: bool,
    /// Whether the receiver has said what it computed.
    pub(super) answered: bool,
}

/// What the feed has done, and when it wants to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// At once: there is more.
    More,
    /// When something happens, or at this time.
    Waits(Instant),
    /// Never: everything has been handed over.
    Everything,
}

/// What came of the attempt to begin the next file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// It is being read.
    File,
    /// There is none.
    Nothing,
    /// As many streams are live as the receiver allows; an event tells when one more may be opened.
    Later,
}

/// The file being read.
#[derive(Debug)]
struct Current {
    source: Source,
    stream: StreamId,
    file: usize,
    hasher: blake3::Hasher,
    /// A segment that was refused because the send buffer is full.
    held: Option<(Bytes, Instant)>,
}

impl Current {
    fn next(&mut self, now: Instant, segment_bytes: usize) -> Next {
        match self.held.take() {
            Some((bytes, at)) => Next::Held(bytes, at),
            None => self.source.next(now, segment_bytes),
        }
    }
}

/// All sources of a transfer.
#[derive(Debug)]
pub(super) struct Feed {
    /// Files not begun; `None` is standard input.
    waiting: VecDeque<Option<PathBuf>>,
    current: Option<Current>,
    /// The first file, opened before there is a connection: none is asked for when nothing can be read.
    prepared: Option<(Source, String)>,
    /// Every file so far, in the order they were named.
    pub(super) files: Vec<Sent>,
    /// The place in `files` of each stream's.
    by_stream: BTreeMap<StreamId, usize>,
    /// Units handed over.
    pub(super) units: u64,
    segment_bytes: usize,
    segment_wait: Duration,
    /// The source does not wait: when the send buffer is full, the oldest segments make room.
    drops_oldest: bool,
    clock: Clock,
    waker: Waker,
}

/// What a file turned into: a record for the manifest.
pub(super) type Records = Vec<Record>;

impl Feed {
    /// The files of `plan`, none of them open yet.
    pub(super) fn new(plan: &Plan, clock: Clock, waker: Waker) -> Self {
        let waiting = if plan.paths.is_empty() { [None].into() } else { plan.paths.iter().cloned().map(Some).collect() };
        let (segment_bytes, segment_wait) = (plan.segment_bytes, plan.segment_wait);
        Self {
            waiting,
            current: None,
            prepared: None,
            files: Vec::new(),
            by_stream: BTreeMap::new(),
            units: 0,
            segment_bytes,
            segment_wait,
            drops_oldest: plan.drops_oldest,
            clock,
            waker,
        }
    }

    /// The length of all files, as far as it is known before they are read.
    pub(super) fn expected_bytes(&self) -> Option<u64> {
        let lengths = self.waiting.iter().map(|path| path.as_ref().and_then(|path| std::fs::metadata(path).ok()));
        lengths.map(|metadata| metadata.filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())).sum()
    }

    /// How many files there are.
    pub(super) fn count(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Opens the next file that can be read; whether there is one.
    pub(super) fn prepare(&mut self) -> bool {
        while self.prepared.is_none() {
            let Some(path) = self.waiting.pop_front() else { return false };
            self.prepared = self.open(path);
        }
        true
    }

    /// What has not been begun is not sent any more.
    pub(super) fn abandon(&mut self) {
        let prepared = self.prepared.take().map(|(_, name)| name);
        let waiting = self.waiting.drain(..).map(|path| path.as_deref().map_or_else(|| STANDARD_INPUT.to_owned(), name));
        for name in prepared.into_iter().chain(waiting) {
            let error = Some(format!("{name} was not sent"));
            let report = FileReport { name, error, ..FileReport::default() };
            self.files.push(Sent { report, finished: true, answered: true });
        }
    }

    fn open(&mut self, path: Option<PathBuf>) -> Option<(Source, String)> {
        let Some(path) = path else {
            return Some((Source::standard_input(self.segment_wait, self.clock, &self.waker), STANDARD_INPUT.to_owned()));
        };
        match Source::open(&path, self.segment_wait, self.clock, &self.waker) {
            Ok(source) => Some((source, name(&path))),
            Err(sentence) => {
                let report = FileReport { name: name(&path), error: Some(sentence), ..FileReport::default() };
                self.files.push(Sent { report, finished: true, answered: true });
                None
            }
        }
    }

    fn begin(&mut self, source: Source, name: String, stream: StreamId, records: &mut Records) {
        let segment_bytes = source.has_even_segments().then_some(self.segment_bytes as u64);
        records.push(Record { stream: Some(stream.0), segment_bytes, ..Record::default() });
        let report = FileReport { name, ..FileReport::default() };
        self.files.push(Sent { report, finished: false, answered: false });
        let file = self.files.len() - 1;
        self.by_stream.insert(stream, file);
        self.current = Some(Current { source, stream, file, hasher: blake3::Hasher::new(), held: None });
    }

    /// Hands over segments until enough wait to be sent; each is entered into `unjudged` with its length.
    pub(super) fn feed(
        &mut self,
        connection: &mut Connection<'_>,
        contract: &Contract,
        backlog: Backlog,
        unjudged: &mut BTreeMap<(StreamId, SegmentNumber), u64>,
        records: &mut Records,
    ) -> Result<Fed, Error> {
        let (mut fed_bytes, mut waiting) = (0, backlog.waiting_bytes);
        while fed_bytes < TURN_BYTES {
            let now = self.clock.now();
            let Some(current) = &mut self.current else {
                match self.begin_next(connection, contract, records)? {
                    Begun::File => continue,
                    Begun::Nothing => return Ok(Fed::Everything),
                    Begun::Later => return Ok(Fed::Waits(Instant::FAR_FUTURE)),
                }
            };
            if !self.drops_oldest && waiting >= backlog.enough_bytes.max(self.segment_bytes as u64) {
                return Ok(Fed::Waits(now + LOOK_AGAIN));
            }
            let (bytes, source_time) = match current.next(now, self.segment_bytes) {
                Next::Segment(bytes, at) => (Bytes::from(bytes), at),
                Next::Held(bytes, at) => (bytes, at),
                Next::Pending(due) => return Ok(Fed::Waits(due.unwrap_or(Instant::FAR_FUTURE))),
                Next::End => {
                    self.finish(connection, None, records)?;
                    continue;
                }
                Next::Failed(sentence) => {
                    self.finish(connection, Some(sentence), records)?;
                    continue;
                }
            };
            match connection.try_send(current.stream, bytes.clone(), source_time, None) {
                Ok(segment) => drop(unjudged.insert((current.stream, segment), bytes.len() as u64)),
                Err(Error::Submit(SubmitError::Blocked)) => {
                    current.held = Some((bytes, source_time));
                    return Ok(Fed::Waits(Instant::FAR_FUTURE));
                }
                Err(error @ (Error::Submit(SubmitError::TooLong { .. }) | Error::Refused { .. })) => {
                    self.finish(connection, Some(error.to_string()), records)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            self.note_sent(&bytes, contract);
            fed_bytes += bytes.len();
            waiting += bytes.len() as u64;
        }
        Ok(Fed::More)
    }

    /// Begins the next file that can be opened.
    ///
    /// Why it does not wait for the receiver to allow one more stream: the records that let earlier ones retire leave only when
    /// this has returned.
    fn begin_next(&mut self, connection: &mut Connection<'_>, contract: &Contract, records: &mut Records) -> Result<Begun, Error> {
        self.prepare();
        let Some((source, name)) = self.prepared.take() else { return Ok(Begun::Nothing) };
        let stream = match connection.open_stream(Contract { label: name.clone(), ..contract.clone() }) {
            Ok(stream) => stream,
            // The manifest is live as long as the transfer; a file needs a second stream.
            Err(Error::OpenStream(OpenStreamError::TooManyStreams { live_max })) if live_max > 1 => {
                self.prepared = Some((source, name));
                return Ok(Begun::Later);
            }
            Err(error) => return Err(error),
        };
        connection.set_drop_oldest(stream, self.drops_oldest)?;
        self.begin(source, name, stream, records);
        Ok(Begun::File)
    }

    fn note_sent(&mut self, bytes: &Bytes, contract: &Contract) {
        self.units += contract.units_of(bytes.len() as u64);
        let Some(current) = &mut self.current else { return };
        current.hasher.update(bytes);
        if let Some(file) = self.files.get_mut(current.file) {
            file.report.bytes += bytes.len() as u64;
        }
    }

    /// The current file is at its end, or cannot go on.
    fn finish(&mut self, connection: &mut Connection<'_>, failed: Option<String>, records: &mut Records) -> Result<(), Error> {
        let Some(current) = self.current.take() else { return Ok(()) };
        connection.finish_stream(current.stream)?;
        let Some(file) = self.files.get_mut(current.file) else { return Ok(()) };
        file.finished = true;
        let blake3 = failed.is_none().then(|| current.hasher.finalize().to_hex().to_string());
        file.report.blake3.clone_from(&blake3);
        records.push(Record {
            stream: Some(current.stream.0),
            bytes: Some(file.report.bytes),
            blake3,
            failed: failed.clone(),
            ..Record::default()
        });
        if file.report.error.is_none() {
            file.report.error = failed;
        }
        Ok(())
    }

    /// The receiver does not want any more of `stream`.
    pub(super) fn give_up(
        &mut self,
        connection: &mut Connection<'_>,
        stream: StreamId,
        sentence: &str,
        records: &mut Records,
    ) -> Result<(), Error> {
        if let Some(file) = self.file(stream) {
            file.answered = true;
            file.report.error.get_or_insert_with(|| sentence.to_owned());
        }
        if self.current.as_ref().is_some_and(|current| current.stream == stream) {
            self.finish(connection, Some(sentence.to_owned()), records)?;
        }
        Ok(())
    }

    /// The file sent on `stream`.
    pub(super) fn file(&mut self, stream: StreamId) -> Option<&mut Sent> {
        self.files.get_mut(*self.by_stream.get(&stream)?)
    }
}

/// What has been handed over and waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    /// Bytes that wait.
    pub(super) waiting_bytes: u64,
    /// How many are enough.
    pub(super) enough_bytes: u64,
}

impl Backlog {
    /// `waiting_bytes` wait, at `rate`; unpaced, only the send buffer is a limit.
    pub(super) fn new(waiting_bytes: u64, rate_bps: Option<u64>) -> Self {
        let enough = |bits| segstream::Bandwidth::from_bits_per_second(bits).bytes_in(AHEAD).get();
        Self { waiting_bytes, enough_bytes: rate_bps.map_or(u64::MAX, enough) }
    }
}
