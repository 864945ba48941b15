//! The file that is read: compared with what the receiver has, as far as that has something, and sent on a stream.
//!
//! Called by the file queue, a piece at a time, so that the network is served meanwhile.
//!
//! Invariant: what is said of a file in the manifest, its hash above all, is of the bytes that were read for the segments.

use super::{FileQueue, Opened, Records, Step, Submission, Unjudged, open};
use crate::manifest::Record;
use crate::send::outgoing::{Start, State};
use crate::send::source::{Next, Source};
use segstream::blocking::Connection;
use segstream::{Bytes, Contract, Error, StreamId, SubmitError};
use segstream_base::Instant;

/// What is read of the current file.
#[derive(Debug)]
pub(super) enum Stage {
    /// Its beginning, to be compared with this hash: so much is there already.
    Beginning(u64, String),
    /// All of it, to be compared.
    Comparing { hash: String, replaces: bool, newer: bool },
    /// It waits for a stream, from here on.
    Opening(u64),
    /// It is sent.
    Sending(StreamId),
}

/// The file being read.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) source: Source,
    pub(super) offer: u64,
    pub(super) stage: Stage,
    pub(super) hasher: blake3::Hasher,
    /// A segment that was refused because the send buffer is full.
    pub(super) held: Option<(Bytes, Instant)>,
}

impl FileQueue {
    /// Goes on with the current file.
    pub(super) fn go_on(
        &mut self,
        connection: &mut Connection<'_>,
        contract: &Contract,
        unjudged: &mut Unjudged,
        records: &mut Records,
    ) -> Result<Step, Error> {
        let now = self.clock.now();
        let Some(current) = &mut self.current else { return Ok(Step::Read(0)) };
        let stream = match &current.stage {
            Stage::Sending(stream) => *stream,
            Stage::Opening(from) => {
                let from = *from;
                return self.open_stream(connection, contract, from, records);
            }
            Stage::Beginning(to, hash) => {
                let (to, hash) = (*to, hash.clone());
                return Ok(self.read_beginning(to, &hash, now));
            }
            Stage::Comparing { .. } => return Ok(self.compare(now, records)),
        };
        let held = current.held.take().map(|(bytes, at)| Next::Held(bytes, at));
        let (bytes, source_time) = match held.unwrap_or_else(|| current.source.next(now, self.segment_bytes)) {
            Next::Segment(bytes, at) => (Bytes::from(bytes), at),
            Next::Held(bytes, at) => (bytes, at),
            Next::Pending(due) => return Ok(Step::Wait(due.unwrap_or(Instant::FAR_FUTURE))),
            Next::End => return self.finish(connection, None, records),
            Next::Failed(sentence) => return self.finish(connection, Some(sentence), records),
        };
        match connection.try_send(stream, bytes.clone(), source_time, None) {
            Ok(segment) => {
                let (bytes, units) = (bytes.len() as u64, contract.units_of(bytes.len() as u64));
                unjudged.insert((stream, segment), Submission { bytes, units, source_time });
            }
            Err(Error::Submit(SubmitError::Blocked)) => {
                current.held = Some((bytes, source_time));
                return Ok(Step::Wait(Instant::FAR_FUTURE));
            }
            Err(error @ (Error::Submit(SubmitError::TooLong { .. }) | Error::Refused { .. })) => {
                return self.finish(connection, Some(error.to_string()), records);
            }
            Err(error) => return Err(error),
        }
        self.units += contract.units_of(bytes.len() as u64);
        current.hasher.update(&bytes);
        let offer = current.offer;
        self.outgoing.edit(offer, |report| report.bytes += bytes.len() as u64);
        Ok(Step::Sent(bytes.len()))
    }

    /// Reads the beginning that the receiver has; when it is read, the file goes on behind it, or anew if it differs.
    fn read_beginning(&mut self, to: u64, expected: &str, now: Instant) -> Step {
        let Some(current) = &mut self.current else { return Step::Read(0) };
        let Source::File(file) = &mut current.source else { return Step::Read(0) };
        let read = file.read_bytes();
        let rest = to.saturating_sub(read).min(self.segment_bytes as u64) as usize;
        if rest > 0
            && let Next::Segment(bytes, _) = file.next(now, rest)
        {
            current.hasher.update(&bytes);
            return Step::Read(bytes.len());
        }
        let from = if read == to && current.hasher.finalize().to_hex().as_str() == expected { to } else { 0 };
        let gone_to = file.go_to(from);
        current.stage = Stage::Opening(from);
        let number = current.offer;
        if from == 0 {
            current.hasher = blake3::Hasher::new();
        }
        if let Err(sentence) = gone_to {
            self.current = None;
            self.give_up_offer(number, sentence);
        } else {
            self.outgoing.edit(number, |report| (report.bytes, report.resumed_from) = (from, from));
        }
        Step::Read(0)
    }

    /// Reads the current file to compare it with the receiver's.
    fn compare(&mut self, now: Instant, records: &mut Records) -> Step {
        let Some(current) = &mut self.current else { return Step::Read(0) };
        let number = current.offer;
        match current.source.next(now, self.segment_bytes) {
            Next::Segment(bytes, _) => {
                current.hasher.update(&bytes);
                Step::Read(bytes.len())
            }
            Next::Held(..) | Next::Pending(_) => Step::Read(1),
            Next::Failed(sentence) => {
                self.current = None;
                records.push(Record { offer: Some(number), failed: Some(sentence.clone()), ..Record::default() });
                self.give_up_offer(number, sentence);
                Step::Read(0)
            }
            Next::End => {
                self.compared(records);
                Step::Read(0)
            }
        }
    }

    /// The current file has been read to be compared.
    fn compared(&mut self, records: &mut Records) {
        let Some(mut current) = self.current.take() else { return };
        let number = current.offer;
        let Stage::Comparing { hash, replaces, newer } = &current.stage else { return };
        let own = current.hasher.finalize().to_hex().to_string();
        let name = self.outgoing.item(number).map_or_else(String::new, |item| item.name.clone());
        if own == *hash {
            records.push(Record { offer: Some(number), same: true, blake3: Some(own.clone()), ..Record::default() });
            self.outgoing.settle(number, |report| {
                (report.same, report.hash_agrees, report.blake3) = (true, Some(true), Some(own));
            });
        } else if *replaces {
            let Source::File(file) = &mut current.source else { return };
            if let Err(sentence) = file.go_to(0) {
                return self.give_up_offer(number, sentence);
            }
            let item_bytes = self.outgoing.item(number).and_then(|item| item.bytes);
            if self.takes_packed(item_bytes) {
                return self.make_ready(number, Start::Anew(true));
            }
            (current.stage, current.hasher) = (Stage::Opening(0), blake3::Hasher::new());
            self.current = Some(current);
        } else {
            if *newer {
                self.outgoing.settle(number, |report| report.newer = true);
                return records.push(Record { offer: Some(number), newer: true, ..Record::default() });
            }
            let sentence = format!("{name} exists at the receiver and is not overwritten; its content differs");
            self.fail(number, sentence.clone());
            records.push(Record { offer: Some(number), failed: Some(sentence), ..Record::default() });
        }
    }

    /// Opens a stream for the current file, which goes there from `from` on.
    fn open_stream(
        &mut self,
        connection: &mut Connection<'_>,
        contract: &Contract,
        from: u64,
        records: &mut Records,
    ) -> Result<Step, Error> {
        let Some(current) = &mut self.current else { return Ok(Step::Read(0)) };
        let number = current.offer;
        let Some(item) = self.outgoing.item(number) else { return Ok(Step::Read(0)) };
        let (label, is_offered) = (item.label(), item.bytes.is_some() && self.takes.is_some_and(|takes| takes.offers));
        let stream = match open(connection, Contract { label, ..contract.clone() })? {
            Opened::Stream(stream) => stream,
            Opened::Limit => return Ok(Step::Wait(Instant::FAR_FUTURE)),
        };
        connection.set_drop_oldest(stream, self.drops_oldest)?;
        let segment_bytes = current.source.has_even_segments().then_some(self.segment_bytes as u64);
        let offer = is_offered.then_some(number);
        let from = (from > 0).then_some(from);
        records.push(Record { stream: Some(stream.0), offer, from, segment_bytes, ..Record::default() });
        current.stage = Stage::Sending(stream);
        self.outgoing.set_state(number, State::Sending);
        self.by_stream.insert(stream, number);
        Ok(Step::Read(0))
    }

    /// The current file has ended or failed.
    pub(super) fn finish(&mut self, connection: &mut Connection<'_>, failed: Option<String>, records: &mut Records) -> Result<Step, Error> {
        let Some(current) = self.current.take() else { return Ok(Step::Read(0)) };
        let Stage::Sending(stream) = current.stage else { return Ok(Step::Read(0)) };
        connection.finish_stream(stream)?;
        let blake3 = failed.is_none().then(|| current.hasher.finalize().to_hex().to_string());
        let mut bytes = 0;
        if let Some(sentence) = &failed {
            self.notes.push(format!("segstream: {sentence}"));
        }
        self.outgoing.edit(current.offer, |report| {
            bytes = report.bytes;
            report.blake3.clone_from(&blake3);
            if report.error.is_none() {
                report.error.clone_from(&failed);
            }
        });
        self.outgoing.set_state(current.offer, State::Sent);
        records.push(Record { stream: Some(stream.0), bytes: Some(bytes), blake3, failed, ..Record::default() });
        Ok(Step::Read(0))
    }
}
