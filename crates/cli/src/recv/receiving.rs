//! The loop of a receiver: serve the network, take segments, give them to the writer, answer the sender.
//!
//! Called by the verb.
//!
//! Invariant: no more than [`WRITING_BYTES_MAX`] wait to be written beyond a segment; what does not fit stays in the
//! window, and the sender waits.

use super::checks::{Checks, Finding};
use super::incoming::{Incoming, Stage};
use super::sender_admission::SenderAdmission;
use super::sink::Sink;
use super::writer::{Completion, Job, Writer};
use super::{Arguments, Destination, Holes};
use crate::interruption::{Interruption, Shutdown, ShutdownStage};
use crate::json;
use crate::live_statistics::{LiveStatistics, StatsLines};
use crate::manifest::{self, ANSWERS_LABEL, Answer, Takes};
use crate::progress::Progress;
use crate::segment_lines::{self, SegmentLines};
use anyhow::{Context as _, Result};
use segstream::blocking::Endpoint;
use segstream::{Bytes, ConnectionEvent, ConnectionId, Error, StreamStatistics, SubmitError};
use segstream_base::{Duration, Instant};
use std::collections::BTreeMap;

/// The most bytes in the writer's queue.
const WRITING_BYTES_MAX: u64 = 32 << 20;
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// The code of an abort by the receiver.
const REFUSED: u64 = 1;

/// A receiver at work.
#[derive(Debug)]
pub(super) struct Receiving<'a> {
    endpoint: Endpoint,
    arguments: &'a Arguments,
    admission: SenderAdmission,
    writer: Writer,
    checks: Checks,
    destination: Destination,
    segments: Option<SegmentLines>,
    stats: StatsLines,
    interruption: Interruption,
    shutdown: Shutdown,
    incoming: BTreeMap<ConnectionId, Incoming>,
    progress: Progress,
    /// Bytes in the writer's queue.
    writing_bytes: u64,
    served: u64,
    success: bool,
}

impl<'a> Receiving<'a> {
    /// A receiver that listens.
    pub(super) fn new(
        endpoint: Endpoint,
        arguments: &'a Arguments,
        admission: SenderAdmission,
        destination: Destination,
        (segments, stats): (Option<SegmentLines>, StatsLines),
        (interruption, shutdown): (Interruption, Shutdown),
    ) -> Self {
        Self {
            writer: Writer::start(Sink::new(destination.clone(), arguments.durability, arguments.hidden), endpoint.waker()),
            checks: Checks::start(destination.clone(), arguments.overwrite, arguments.hidden, endpoint.waker()),
            endpoint,
            arguments,
            admission,
            destination,
            segments,
            interruption,
            shutdown,
            incoming: BTreeMap::new(),
            progress: Progress::new(stats.are_on_standard_error() || arguments.keep),
            stats,
            writing_bytes: 0,
            served: 0,
            success: true,
        }
    }

    /// Receives until one connection has ended, or with `--keep` until it is interrupted; whether all went well.
    pub(super) fn run(mut self) -> Result<bool> {
        while !self.interruption.is_asked() && !self.is_shut_down() {
            let settling = self.incoming.values().any(|incoming| incoming.closed.is_some());
            let now = self.endpoint.clock().now();
            let until = self
                .incoming
                .values()
                .map(|incoming| incoming.live.next())
                .fold((now + SLEEP_MAX).min(self.shutdown.until()), Instant::min);
            let timeout = if settling && self.writing_bytes == 0 { Duration::from_millis(1) } else { until.since(now) };
            let event = self.endpoint.wait(Some(timeout.into()))?;
            let quiet = event.is_none();
            if let Some((id, event)) = event {
                self.on_event(id, event)?;
            }
            while let Some(completion) = self.writer.poll() {
                self.on_completion(completion)?;
            }
            while let Some(finding) = self.checks.poll() {
                self.on_finding(finding)?;
            }
            let taken = self.take()?;
            self.tell()?;
            self.conclude(quiet && !taken)?;
            if !self.arguments.keep && self.served > 0 && self.incoming.is_empty() {
                return self.finish();
            }
        }
        self.interrupt()
    }

    /// Whether SIGTERM has come, and what was in progress then has ended or has had its time.
    fn is_shut_down(&mut self) -> bool {
        match self.shutdown.at(self.endpoint.clock().now()) {
            ShutdownStage::No => false,
            ShutdownStage::Over => true,
            ShutdownStage::Until(_) => self.incoming.is_empty(),
            ShutdownStage::Begins => {
                self.endpoint.stop_accepting();
                self.progress.line(&self.shutdown.sentence());
                self.incoming.is_empty()
            }
        }
    }

    /// The user interrupts it: with `--keep` that is a success, otherwise a failure.
    fn interrupt(mut self) -> Result<bool> {
        self.success &= self.arguments.keep && self.incoming.is_empty();
        let mut jobs = Vec::new();
        for (&id, incoming) in &mut self.incoming {
            self.endpoint.connection(id).abort(REFUSED, "interrupted by the receiver's user")?;
            incoming.report.error = Some("interrupted".to_owned());
            incoming.abandon(&mut jobs);
        }
        self.ask(jobs);
        for completion in self.writer.finish() {
            self.on_completion(completion)?;
        }
        for (id, incoming) in std::mem::take(&mut self.incoming) {
            self.report(id, incoming)?;
        }
        self.finish()
    }

    fn finish(mut self) -> Result<bool> {
        self.flush_segments();
        Ok(self.success)
    }

    /// Writes what waits for the file of --segments-json. If that fails, nothing more is written there, and the transfers go on.
    fn flush_segments(&mut self) {
        if let Some(Err(error)) = self.segments.as_mut().map(|segments| segments.flush()) {
            self.end_segments(&error);
        }
    }

    fn end_segments(&mut self, error: &std::io::Error) {
        self.segments = None;
        self.success = false;
        self.progress.line(&segment_lines::failure(error));
    }

    fn on_event(&mut self, id: ConnectionId, event: ConnectionEvent) -> Result<()> {
        if !self.incoming.contains_key(&id) && !self.admit(id)? {
            return Ok(());
        }
        let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
        let mut jobs = Vec::new();
        match event {
            ConnectionEvent::Connected => {
                incoming.answers = self.endpoint.connection(id).open_stream(manifest::contract(ANSWERS_LABEL)).ok();
                let packs = matches!(self.destination, Destination::Nowhere | Destination::Directory(_));
                let takes = Takes { offers: true, packs };
                return self.answer(id, &[Answer { takes: Some(takes), ..Answer::default() }]);
            }
            ConnectionEvent::StreamOpened(stream) => {
                let mut connection = self.endpoint.connection(id);
                incoming.open(stream, &connection.receiving_contract(stream)?, &mut jobs);
                if let Some(sentence) = incoming.overfull() {
                    break_off(&mut self.endpoint, id, incoming, sentence)?;
                }
            }
            ConnectionEvent::Writable(stream) if incoming.answers == Some(stream) => self.send_answers(id)?,
            ConnectionEvent::Readable(stream) if incoming.manifest == Some(stream) => self.read_manifest(id)?,
            ConnectionEvent::Ended { stream, .. } => incoming.on_ended(stream, &mut jobs),
            ConnectionEvent::Closed(reason) => incoming.closed = Some(reason),
            // What is readable is taken in every round.
            _ => {}
        }
        self.ask(jobs);
        Ok(())
    }

    /// Whether a connection is served: without `--keep` only the first.
    fn admit(&mut self, id: ConnectionId) -> Result<bool> {
        let mut connection = self.endpoint.connection(id);
        let Ok(address) = connection.remote() else { return Ok(false) };
        if self.shutdown.has_begun() {
            connection.abort(REFUSED, "this receiver is ending; try again when it has been started anew")?;
            self.endpoint.release(id);
            return Ok(false);
        }
        if !self.arguments.keep && (self.served > 0 || !self.incoming.is_empty()) {
            connection.abort(REFUSED, "this receiver takes one connection and has it already; start it with --keep for more")?;
            self.endpoint.release(id);
            return Ok(false);
        }
        if self.destination.is_sequential() && !self.incoming.is_empty() {
            connection.abort(REFUSED, "this receiver writes to a pipe, and another sender has it; try again when that one is done")?;
            self.endpoint.release(id);
            return Ok(false);
        }
        let key = connection.peer_fingerprint();
        let live = LiveStatistics::new(&self.stats, self.endpoint.clock().now());
        let limit = self.arguments.bytes_max().filter(|_| !matches!(self.destination, Destination::Nowhere));
        let mut incoming = Incoming::new((id, key), self.arguments.holes == Holes::Drop, limit, live);
        incoming.report.address = Some(address.to_string());
        incoming.report.peer = key.map(|key| key.to_string());
        self.incoming.insert(id, incoming);
        let who = key.map_or(String::new(), |key| format!(", whose key is {key}"));
        self.progress.line(&format!("connected with {address}{who}"));
        if let Some(invitation) = self.admission.on_connected(key, !self.arguments.keep)? {
            self.progress.line(&invitation);
        }
        Ok(true)
    }

    fn read_manifest(&mut self, id: ConnectionId) -> Result<()> {
        let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
        let Some(manifest) = incoming.manifest else { return Ok(()) };
        let mut jobs = Vec::new();
        while let Some(received) = self.endpoint.connection(id).try_recv(manifest) {
            if let Some(question) = incoming.on_record(&received.bytes, &mut jobs) {
                self.checks.ask(question);
            }
        }
        self.progress.expected(incoming.offers.offered_bytes());
        let pair = incoming.pair.take();
        self.ask(jobs);
        if let Some(key) = pair {
            let sender = self.endpoint.connection(id).peer_fingerprint();
            let paired = self.admission.pair(sender, &key);
            self.progress.line(&paired.told);
            self.answer(id, &[Answer { paired: paired.name, ..Answer::default() }])?;
        }
        Ok(())
    }

    /// The checks have found something.
    fn on_finding(&mut self, finding: Finding) -> Result<()> {
        let (id, answers) = match finding {
            Finding::Replies(id, replies) => (id, self.incoming.get_mut(&id).map(|incoming| incoming.on_replies(replies))),
            Finding::Finished(id, count) => (id, self.incoming.get_mut(&id).map(|incoming| vec![incoming.offers.on_times(count)])),
        };
        let answers = answers.unwrap_or_default();
        for error in answers.iter().filter_map(|answer| answer.error.as_ref()) {
            self.progress.line(&format!("segstream: {error}"));
        }
        self.answer(id, &answers)
    }

    /// Takes segments while there is room to write them; whether there were any.
    fn take(&mut self) -> Result<bool> {
        let mut jobs = Vec::new();
        let (mut taken, mut unwritten) = (false, None);
        for (&id, incoming) in &mut self.incoming {
            let now = self.endpoint.clock().now();
            let mut connection = self.endpoint.connection(id);
            for stream in incoming.open_streams().discarded() {
                while connection.try_recv(stream).is_some() {}
            }
            for stream in incoming.open_streams().wanted() {
                while self.writing_bytes < WRITING_BYTES_MAX && incoming.takes(stream) {
                    let Some(received) = connection.try_recv(stream) else { break };
                    let Some((job, record)) = incoming.on_segment(now, received) else { break };
                    if let Job::Write(_, _, bytes, _) | Job::Unpack(_, bytes, _) = &job {
                        self.writing_bytes += bytes.len() as u64;
                    }
                    jobs.push(job);
                    taken = true;
                    if let Some(segments) = &mut self.segments {
                        unwritten = segments.add(&record).err().or(unwritten);
                    }
                }
                // Only a file can be written at an offset; other destinations take one stream after another.
                if self.destination.is_sequential()
                    && incoming.streams.get(&stream).is_some_and(|arriving| arriving.stage == Stage::Receiving)
                {
                    break;
                }
            }
            self.progress.delivered(incoming.report.bytes);
            self.progress.name(incoming.current_name());
            if let Some(sentence) = incoming.refusal() {
                break_off(&mut self.endpoint, id, incoming, sentence)?;
            }
        }
        self.ask(jobs);
        match unwritten {
            Some(error) => self.end_segments(&error),
            None if taken => self.flush_segments(),
            None => {}
        }
        Ok(taken)
    }

    fn ask(&self, jobs: Vec<Job>) {
        for job in jobs {
            self.writer.ask(job);
        }
    }

    fn on_completion(&mut self, completion: Completion) -> Result<()> {
        let now = self.endpoint.clock().now();
        let ((id, stream), failed) = match completion {
            Completion::Written(bytes) => {
                self.writing_bytes = self.writing_bytes.saturating_sub(bytes);
                return Ok(());
            }
            Completion::Hashed(key, blake3) => {
                let mut jobs = Vec::new();
                if let Some(incoming) = self.incoming.get_mut(&key.0) {
                    incoming.on_hashed(key.1, blake3, &mut jobs);
                }
                self.ask(jobs);
                return Ok(());
            }
            Completion::Renamed(key, durable) => {
                if let Some(incoming) = self.incoming.get_mut(&key.0) {
                    incoming.on_kept(key.1, durable);
                }
                (key, None)
            }
            Completion::Unpacked(id, told) => {
                let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
                let (answers, sentences) = incoming.on_unpacked(now, told);
                for sentence in sentences {
                    self.progress.line(&format!("segstream: {sentence}"));
                }
                return self.answer(id, &answers);
            }
            Completion::Left(key, part) => {
                if let Some(part) = part {
                    self.progress.line(&format!("segstream: what came is left in {part}"));
                }
                (key, None)
            }
            Completion::Failed(key, sentence) => {
                self.progress.line(&format!("segstream: {sentence}"));
                (key, Some(sentence))
            }
        };
        let answer = self.incoming.get_mut(&id).and_then(|incoming| incoming.on_done(now, stream, failed));
        self.answer(id, answer.as_slice())
    }

    fn answer(&mut self, id: ConnectionId, answers: &[Answer]) -> Result<()> {
        let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
        if incoming.answers.is_none() {
            return Ok(());
        }
        for answer in answers {
            incoming.unsent.push_back(Bytes::from(serde_json::to_vec(answer).context("an answer cannot be written as JSON")?));
        }
        self.send_answers(id)
    }

    /// Submits pending answers, as far as the send buffer of their stream takes them.
    fn send_answers(&mut self, id: ConnectionId) -> Result<()> {
        let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
        let Some(answers) = incoming.answers else { return Ok(()) };
        while let Some(bytes) = incoming.unsent.front() {
            let now = self.endpoint.clock().now();
            match self.endpoint.connection(id).try_send(answers, bytes.clone(), now, None) {
                Ok(_) => drop(incoming.unsent.pop_front()),
                Err(Error::Submit(SubmitError::Blocked)) => return Ok(()),
                // The sender has closed or stopped reading: it needs no answer.
                Err(Error::Submit(_) | Error::Closed { .. } | Error::Closing { .. } | Error::Refused { .. }) => incoming.unsent.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn tell(&mut self) -> Result<()> {
        let now = self.endpoint.clock().now();
        for (&id, incoming) in &mut self.incoming {
            let statistics = self.endpoint.connection(id).statistics()?;
            incoming.report.note_round_trip(statistics.rtt_ms_min);
            incoming.live.tell(now, incoming.report.address.as_deref(), incoming.report.bytes, &statistics)?;
        }
        Ok(())
    }

    /// Ends connections that have closed and whose files are settled. `quiet`: nothing came and nothing was taken.
    fn conclude(&mut self, quiet: bool) -> Result<()> {
        let closed: Vec<ConnectionId> = self.incoming.iter().filter(|(_, incoming)| incoming.closed.is_some()).map(|(&id, _)| id).collect();
        for id in closed {
            let Some(incoming) = self.incoming.get_mut(&id) else { continue };
            if incoming.is_done() {
                if let Some(incoming) = self.incoming.remove(&id) {
                    self.report(id, incoming)?;
                }
            } else if quiet && self.writing_bytes < WRITING_BYTES_MAX {
                let mut jobs = Vec::new();
                incoming.abandon(&mut jobs);
                self.ask(jobs);
            }
        }
        Ok(())
    }

    /// Serves the closing period (RFC 9000 10.2.1): answers what the peer repeats. Only without `--keep`: otherwise the loop
    /// does it.
    fn drain(&mut self, id: ConnectionId) -> Result<()> {
        loop {
            match self.endpoint.connection(id).drained() {
                Err(Error::Woken) if !self.interruption.is_asked() => {}
                Ok(()) | Err(Error::Woken) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Tells the result of a connection.
    fn report(&mut self, id: ConnectionId, mut incoming: Incoming) -> Result<()> {
        self.progress.clear();
        let statistics = self.endpoint.connection(id).statistics()?;
        let now = self.endpoint.clock().now();
        incoming.live.tell_last(now, incoming.report.address.as_deref(), incoming.report.bytes, &statistics)?;
        let records = match incoming.answers {
            Some(answers) => self.endpoint.connection(id).stream_statistics(answers)?,
            None => StreamStatistics::default(),
        };
        incoming.report.take(&statistics, records);
        let mut report = incoming.conclude();
        report.is_told = report.error.as_ref().is_some_and(|error| self.progress.has_told(error));
        if !self.arguments.keep {
            self.drain(id)?;
        }
        self.endpoint.release(id);
        self.served += 1;
        self.success &= report.is_success();
        if let Some(sentence) = report.sentence_of_receiver() {
            eprintln!("{sentence}");
        }
        if let Some(error) = report.untold_error() {
            eprintln!("segstream: {error}");
        }
        self.flush_segments();
        if !self.arguments.json {
            return Ok(());
        }
        if matches!(self.destination, Destination::StandardOutput) { json::print_to_standard_error(&report) } else { json::print(&report) }
    }
}

/// Aborts a connection that exceeds its limit of bytes, once; the event follows.
fn break_off(endpoint: &mut Endpoint, id: ConnectionId, incoming: &mut Incoming, sentence: String) -> Result<()> {
    if incoming.report.error.is_none() && incoming.closed.is_none() {
        endpoint.connection(id).abort(REFUSED, &sentence)?;
        incoming.report.error = Some(sentence);
    }
    Ok(())
}
