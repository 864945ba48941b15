//! Submits files as streams and their bytes as segments, as the send buffer drains.
//!
//! - [`current`]: the file that is read, compared and sent; [`packs`]: small files.
//!
//! Called by the transfer's loop. A segment's lifetime counts from its submission, so the next one is submitted
//! only when the backlog is short: some milliseconds at the current rate, and at least a segment.
//!
//! ```text
//! walk ── offer ── reply ── want      small file: into a pack ── answered
//!                        │            other file: a stream ── answered
//!                        ├─ from      its beginning is read and compared; the rest is sent
//!                        ├─ has       all of it is read and compared; sent if it differs and the other gives way
//!                        └─ refused, newer, made
//! ```
//!
//! A file's stream retires when the receiver has taken everything of it, and only live streams are limited, so any number of
//! files follow one another: at the stream limit of the receiver the next file waits.
//!
//! Invariant: files are sent in the order in which the receiver wants them; one that fails harms no other.
//! Invariant: no more than [`OFFERS_AHEAD`] files are remembered that are not settled, however many there are.

mod current;
mod packs;

use super::Plan;
use super::outgoing::{Outgoing, Start, State};
use super::source::{Source, open_file};
use super::walk::{Found, Walk};
use crate::manifest::{Answer, Kind, OFFERS_AHEAD, Offer, Record, Takes};
use crate::transfer_report::{FileReport, TransferReport};
use current::{Current, Stage};
use packs::{Packs, read_small};
use segstream::blocking::Connection;
use segstream::{Clock, Contract, Error, OpenStreamError, SegmentNumber, StreamId};
use segstream_base::{Duration, Instant};
use segstream_net::Waker;
use std::collections::{BTreeMap, VecDeque};

/// Segments without a verdict.
pub(super) type Unjudged = BTreeMap<(StreamId, SegmentNumber), Submission>;

/// A segment that was submitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submission {
    /// Its bytes, or those of the files that are in it.
    pub(super) bytes: u64,
    pub(super) units: u64,
    pub(super) source_time: Instant,
}

/// The backlog that is enough, as time at the current rate.
const BACKLOG_TARGET: Duration = Duration::from_millis(40);
/// When to check a full backlog again.
const BACKLOG_POLL: Duration = Duration::from_millis(4);
/// The most that is submitted before the network is served again.
const TURN_BYTES: usize = 512 * 1024;
/// Offers in a record, and their bytes at most.
const OFFERS_IN_RECORD: usize = 64;
/// Offers that are made before the network is served again.
const OFFERS_IN_TURN: usize = 512;

/// When [`FileQueue::submit`] is to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Submitted {
    /// At once: there is more.
    More,
    /// At an event, or at this time.
    Wait(Instant),
    /// Never: everything has been submitted.
    All,
}

/// What comes of the attempt to open a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opened {
    /// It is there.
    Stream(StreamId),
    /// The stream limit is reached; an event says when another stream may be opened.
    Limit,
}

/// All files of a transfer.
#[derive(Debug)]
pub(super) struct FileQueue {
    walk: Walk,
    /// Whether the walk is at its end.
    walked: bool,
    /// Files that are not settled, and those before the first of them that are.
    outgoing: Outgoing,
    /// What the receiver takes, once it is known.
    takes: Option<Takes>,
    /// Offers that can be sent or compared, in this order.
    ready: VecDeque<u64>,
    /// The file being read.
    current: Option<Current>,
    packs: Packs,
    /// Directories that the receiver has made, for their times.
    directories: Vec<Offer>,
    /// The offer of each stream's file.
    by_stream: BTreeMap<StreamId, u64>,
    /// Sentences for people about what is left out or fails.
    notes: Vec<String>,
    /// Units submitted.
    pub(super) units: u64,
    segment_bytes: usize,
    segment_wait: Duration,
    /// Whether pipes end with what has been read of them.
    pipes_end: bool,
    /// Drop-oldest: a live source does not wait for room in the send buffer.
    drops_oldest: bool,
    /// Whether the contract permits packs: they need every byte.
    packable: bool,
    clock: Clock,
    waker: Waker,
}

/// Records for the manifest.
pub(super) type Records = Vec<Record>;

impl FileQueue {
    /// The files of `plan`, none of them open yet.
    pub(super) fn new(plan: &Plan, clock: Clock, waker: Waker) -> Self {
        Self {
            walk: plan.walk(),
            walked: false,
            outgoing: Outgoing::default(),
            takes: None,
            ready: VecDeque::new(),
            current: None,
            packs: Packs::default(),
            directories: Vec::new(),
            by_stream: BTreeMap::new(),
            notes: Vec::new(),
            units: 0,
            segment_bytes: plan.segment_bytes,
            segment_wait: plan.segment_wait,
            pipes_end: false,
            drops_oldest: plan.drops_oldest,
            packable: plan.is_reliable,
            clock,
            waker,
        }
    }

    /// Finds the first file that can be read: nothing connects when there is none. Whether there is one.
    pub(super) fn prepare(&mut self) -> bool {
        while self.outgoing.unsettled() == 0 {
            let Some(number) = self.find_next() else { return false };
            let Some(item) = self.outgoing.item(number) else { continue };
            let readable = match (&item.path, item.bytes) {
                (Some(path), Some(_)) => open_file(path, item.is_found).map(drop),
                _ => Ok(()),
            };
            if let Err(sentence) = readable {
                self.fail(number, sentence);
            }
        }
        true
    }

    /// Sentences for people since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// The next thing that the walk finds, under the number that it gets; `None` at the end.
    fn find_next(&mut self) -> Option<u64> {
        loop {
            match self.walk.next() {
                None => {
                    self.walked = true;
                    return None;
                }
                Some(Found::Item(item)) => return Some(self.outgoing.push(item)),
                Some(Found::Failed(name, sentence)) => {
                    self.notes.push(format!("segstream: {sentence}"));
                    self.outgoing.push_failed(name, sentence);
                }
                Some(Found::LeftOut(sentence)) => self.notes.push(format!("note: {sentence}")),
            }
        }
    }

    fn fail(&mut self, number: u64, sentence: String) {
        self.notes.push(format!("segstream: {sentence}"));
        self.outgoing.settle(number, |report| report.error = report.error.take().or(Some(sentence)));
    }

    /// What the receiver has said of itself, or that it says nothing.
    pub(super) fn set_takes(&mut self, takes: Takes) {
        self.takes.get_or_insert(takes);
    }

    /// Whether it is known what the receiver takes.
    pub(super) const fn knows_takes(&self) -> bool {
        self.takes.is_some()
    }

    /// How many files wait for the receiver's word.
    pub(super) fn unanswered(&self) -> usize {
        self.outgoing.unsettled()
    }

    /// How many bytes the files found so far have, and how many of them are settled without being sent.
    pub(super) const fn expected_bytes(&self) -> u64 {
        self.outgoing.expected_bytes()
    }

    /// Directories to be told complete, the innermost first.
    pub(super) fn take_directories(&mut self) -> Vec<Offer> {
        std::mem::take(&mut self.directories).into_iter().rev().collect()
    }

    /// Reports every file that is not settled as not sent.
    pub(super) fn abandon(mut self, report: &mut TransferReport) {
        while !self.walked {
            if let Some(number) = self.find_next() {
                self.outgoing.settle_unsent(number);
            }
        }
        self.outgoing.conclude(report);
    }

    /// Makes offers while few are under way.
    fn offer_more(&mut self, records: &mut Records) {
        let Some(takes) = self.takes else {
            // Standard input and pipes are not offered: nobody is asked.
            if let Some((number, _)) = self.outgoing.next_new().filter(|(_, item)| item.kind == Kind::File && item.bytes.is_none()) {
                self.make_ready(number, Start::Anew(false));
            }
            return;
        };
        let mut offers = Vec::new();
        for _ in 0..OFFERS_IN_TURN {
            let next = self.outgoing.next_new().map(|(number, _)| number);
            let Some(number) = next.or_else(|| (!self.walked && self.outgoing.held() < OFFERS_AHEAD).then(|| self.find_next()).flatten())
            else {
                break;
            };
            let Some(item) = self.outgoing.item(number) else { break };
            if item.kind == Kind::File && (item.bytes.is_none() || !takes.offers) {
                self.make_ready(number, Start::Anew(false));
            } else if !takes.offers {
                let sentence = format!("{} is a directory or link, and the receiver takes files only", item.name);
                self.fail(number, sentence);
            } else {
                offers.push(item.offer(number));
                self.outgoing.set_state(number, State::Offered);
            }
            if offers.len() >= OFFERS_IN_RECORD {
                records.push(Record { offers: std::mem::take(&mut offers), ..Record::default() });
            }
        }
        if !offers.is_empty() {
            records.push(Record { offers, ..Record::default() });
        }
    }

    fn make_ready(&mut self, number: u64, start: Start) {
        self.outgoing.set_state(number, State::Ready(start));
        self.ready.push_back(number);
    }

    /// Pipes, this one and those to come, end with what has been read of them.
    pub(super) fn end_pipe(&mut self) {
        self.pipes_end = true;
        if let Some(current) = &mut self.current {
            current.source.end_pipe();
        }
    }

    /// Submits segments until the backlog is long enough; enters each into `unjudged`.
    pub(super) fn submit(
        &mut self,
        connection: &mut Connection<'_>,
        contract: &Contract,
        backlog: Backlog,
        unjudged: &mut Unjudged,
        records: &mut Records,
    ) -> Result<Submitted, Error> {
        self.offer_more(records);
        let (mut turn, mut waiting) = (0, backlog.waiting_bytes);
        while turn < TURN_BYTES {
            if !self.drops_oldest && waiting >= backlog.enough_bytes.max(self.segment_bytes as u64) {
                return Ok(Submitted::Wait(self.clock.now() + BACKLOG_POLL));
            }
            let step = match self.current {
                Some(_) => self.go_on(connection, contract, unjudged, records)?,
                None if self.packs.held.is_some() => self.send_pack(connection, contract, unjudged, records)?,
                None => match self.ready.pop_front() {
                    Some(number) => self.begin(number),
                    None if !self.packs.filling.is_empty() => self.hold_pack(),
                    None if !self.walked || self.outgoing.waits_for_reply() => {
                        let more = !self.walked && self.takes.is_some() && self.outgoing.held() < OFFERS_AHEAD;
                        return Ok(if more { Submitted::More } else { Submitted::Wait(Instant::FAR_FUTURE) });
                    }
                    None => return self.finish_packs(connection).map(|()| Submitted::All),
                },
            };
            match step {
                Step::Read(bytes) => turn += bytes,
                Step::Sent(bytes) => {
                    turn += bytes;
                    waiting += bytes as u64;
                }
                Step::Wait(until) => return Ok(Submitted::Wait(until)),
            }
        }
        Ok(Submitted::More)
    }

    /// Begins the next file that is wanted or to be compared.
    fn begin(&mut self, number: u64) -> Step {
        let Some((item, start)) = self.outgoing.take_start(number) else { return Step::Read(0) };
        let Some(path) = item.path.clone() else {
            let source = Source::standard_input(self.segment_wait, self.clock, &self.waker);
            return self.set_current(number, source, Stage::Opening(0));
        };
        let stage = match start {
            Start::Anew(_) if self.takes_packed(item.bytes) => {
                return match read_small(&path, item.is_found, self.segment_bytes) {
                    Ok(Some(content)) => self.pack(number, &content),
                    Ok(None) => self.open(number, Stage::Opening(0)),
                    Err(sentence) => {
                        self.give_up_offer(number, sentence);
                        Step::Read(0)
                    }
                };
            }
            Start::Anew(_) => Stage::Opening(0),
            Start::From(bytes, hash) => Stage::Beginning(bytes, hash),
            Start::Compare { hash, replaces, newer } => Stage::Comparing { hash, replaces, newer },
        };
        self.open(number, stage)
    }

    fn open(&mut self, number: u64, stage: Stage) -> Step {
        let Some(item) = self.outgoing.item(number) else { return Step::Read(0) };
        let Some(path) = item.path.clone() else { return Step::Read(0) };
        match Source::open(&path, item.is_found, self.segment_wait, self.clock, &self.waker) {
            Ok(source) => self.set_current(number, source, stage),
            Err(sentence) => {
                self.give_up_offer(number, sentence);
                Step::Read(0)
            }
        }
    }

    fn set_current(&mut self, offer: u64, mut source: Source, stage: Stage) -> Step {
        if self.pipes_end {
            source.end_pipe();
        }
        self.current = Some(Current { source, offer, stage, hasher: blake3::Hasher::new(), held: None });
        Step::Read(0)
    }

    /// A file that the receiver was offered cannot be read.
    fn give_up_offer(&mut self, number: u64, sentence: String) {
        self.outgoing.say_failed(number, &sentence);
        self.fail(number, sentence);
    }

    /// The receiver has refused the rest of `stream`.
    pub(super) fn give_up(
        &mut self,
        connection: &mut Connection<'_>,
        stream: StreamId,
        sentence: &str,
        records: &mut Records,
    ) -> Result<(), Error> {
        let Some(&number) = self.by_stream.get(&stream) else { return Ok(()) };
        self.outgoing.edit(number, |report| report.error = report.error.take().or_else(|| Some(sentence.to_owned())));
        if self.current.as_ref().is_some_and(|current| matches!(current.stage, Stage::Sending(other) if other == stream)) {
            self.finish(connection, Some(sentence.to_owned()), records)?;
        }
        self.outgoing.settle(number, |_| {});
        self.by_stream.remove(&stream);
        Ok(())
    }

    /// What the receiver says of a stream's file, which settles it.
    pub(super) fn settle_stream(&mut self, stream: StreamId, with: impl FnOnce(&mut FileReport)) {
        if let Some(number) = self.by_stream.remove(&stream) {
            self.outgoing.settle(number, with);
        }
    }

    /// What went wrong with a stream's file so far, if it has one.
    pub(super) fn error_of(&self, stream: StreamId) -> Option<String> {
        self.outgoing.report(*self.by_stream.get(&stream)?)?.error.clone()
    }

    /// The receiver's word about offers. A sentence for people, if something is wrong.
    pub(super) fn on_answer(&mut self, answer: &Answer) -> Option<String> {
        if let Some((first, count)) = answer.want {
            for number in first..first.saturating_add(count.min(OFFERS_AHEAD)) {
                if self.outgoing.is_offered(number) {
                    self.make_ready(number, Start::Anew(false));
                }
            }
        }
        if let Some((first, count)) = answer.kept {
            for number in first..first.saturating_add(count.min(OFFERS_AHEAD)) {
                self.on_kept(number, answer.durable);
            }
        }
        let number = answer.offer?;
        if let Some(error) = &answer.error {
            let name = self.outgoing.item(number)?.name.clone();
            let sentence = crate::manifest::printable(error);
            let sentence = if sentence.contains(&name) { sentence } else { format!("{name}: {sentence}") };
            self.outgoing.settle(number, |report| report.error = report.error.take().or_else(|| Some(sentence.clone())));
            return Some(sentence);
        }
        if !self.outgoing.is_offered(number) {
            return None;
        }
        match (&answer.blake3, answer.from) {
            _ if answer.newer && !answer.has => self.outgoing.settle(number, |report| report.newer = true),
            (Some(hash), None) if answer.has => {
                self.make_ready(number, Start::Compare { hash: hash.clone(), replaces: answer.replaces, newer: answer.newer });
            }
            (Some(hash), Some(from)) => self.make_ready(number, Start::From(from, hash.clone())),
            _ => {}
        }
        None
    }

    fn on_kept(&mut self, number: u64, durable: bool) {
        let Some(item) = self.outgoing.item(number) else { return };
        if item.kind == Kind::Directory {
            self.directories.push(item.offer(number));
        }
        self.outgoing.settle(number, |report| {
            report.durable = Some(durable);
            // Why they agree: the receiver has compared what it unpacked.
            report.hash_agrees = Some(true);
        });
    }

    /// Records about offers that failed after they were made.
    pub(super) fn take_failed(&mut self) -> Records {
        self.outgoing.take_failed()
    }

    /// Moves settled files to the report.
    pub(super) fn report(&mut self, report: &mut TransferReport) {
        self.outgoing.report_settled(report);
    }

    /// The name of the file that is sent now.
    pub(super) fn current_name(&self) -> Option<&str> {
        let number = self.current.as_ref().map(|current| current.offer).or_else(|| self.ready.front().copied())?;
        self.outgoing.item(number).map(|item| item.name.as_str())
    }
}

/// What a step has done.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So much was read, or nothing.
    Read(usize),
    /// So much was submitted.
    Sent(usize),
    /// Nothing can be done before an event, or this time.
    Wait(Instant),
}

/// Opens a stream, unless the limit is reached.
///
/// Why it does not wait for a higher limit: the records that let earlier streams retire leave only after this has returned.
fn open(connection: &mut Connection<'_>, contract: Contract) -> Result<Opened, Error> {
    match connection.open_stream(contract) {
        Ok(stream) => Ok(Opened::Stream(stream)),
        // The manifest is live as long as the transfer; a file needs a second stream.
        Err(Error::OpenStream(OpenStreamError::TooManyStreams { live_max })) if live_max > 1 => Ok(Opened::Limit),
        Err(error) => Err(error),
    }
}

/// What has been submitted and not yet sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    /// Bytes not yet sent.
    pub(super) waiting_bytes: u64,
    /// How many are enough for now.
    pub(super) enough_bytes: u64,
}

impl Backlog {
    /// A backlog of `waiting_bytes` at a pacing rate; unpaced, only the send buffer is a limit.
    pub(super) fn new(waiting_bytes: u64, rate_bps: Option<u64>) -> Self {
        let enough = |bits| segstream::Bandwidth::from_bits_per_second(bits).bytes_in(BACKLOG_TARGET).get();
        Self { waiting_bytes, enough_bytes: rate_bps.map_or(u64::MAX, enough) }
    }
}
