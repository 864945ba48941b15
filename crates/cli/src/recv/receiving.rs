//! The loop of a receiver: serve the network, take segments, give them to the writer, answer the sender.
//!
//! Called by the verb.
//!
//! Invariant: no more than [`WRITING_BYTES_MAX`] wait to be written beyond a segment; what does not fit stays in the
//! window, and the sender waits.

use super::admitting::Admitting;
use super::incoming::{Incoming, Stage};
use super::writer::{Job, Outcome, Writer};
use super::{Arguments, Destination, Holes};
use crate::interruption::Interruption;
use crate::json;
use crate::live_statistics::LiveStatistics;
use crate::manifest::{self, ANSWERS_LABEL, Answer};
use crate::progress::Progress;
use anyhow::{Context as _, Result};
use segstream::blocking::Endpoint;
use segstream::{Bytes, ConnectionEvent, ConnectionId, Error, StreamStatistics, SubmitError};
use segstream_base::{Duration, Instant};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};

/// Bytes that may wait to be written.
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
    admitting: Admitting,
    writer: Writer,
    destination: Destination,
    segments: Option<BufWriter<File>>,
    interruption: Interruption,
    incoming: BTreeMap<ConnectionId, Incoming>,
    progress: Progress,
    /// Bytes given to the writer and not written.
    writing_bytes: u64,
    served: u64,
    success: bool,
}

impl<'a> Receiving<'a> {
    /// A receiver that listens.
    pub(super) fn new(
        endpoint: Endpoint,
        arguments: &'a Arguments,
        admitting: Admitting,
        destination: Destination,
        segments: Option<BufWriter<File>>,
        interruption: Interruption,
    ) -> Self {
        Self {
            writer: Writer::start(destination.clone(), endpoint.waker()),
            endpoint,
            arguments,
            admitting,
            destination,
            segments,
            interruption,
            incoming: BTreeMap::new(),
            progress: Progress::new(None, arguments.stats.is_some() || arguments.keep),
            writing_bytes: 0,
            served: 0,
            success: true,
        }
    }

    /// Receives until one connection has ended, or with `--keep` until it is interrupted; whether all went well.
    pub(super) fn run(mut self) -> Result<bool> {
        while !self.interruption.is_asked() {
            let settling = self.incoming.values().any(|incoming| incoming.closed.is_some());
            let now = self.endpoint.clock().now();
            let until = self.incoming.values().map(|incoming| incoming.live.next()).fold(now + SLEEP_MAX, Instant::min);
            let timeout = if settling && self.writing_bytes == 0 { Duration::from_millis(1) } else { until.since(now) };
            let event = self.endpoint.wait(Some(timeout.into()))?;
            let quiet = event.is_none();
            if let Some((id, event)) = event {
                self.on_event(id, event)?;
            }
            while let Some(outcome) = self.writer.poll() {
                self.on_outcome(outcome)?;
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

    /// The user wants it to end: with `--keep` the usual way to, otherwise a failure.
    fn interrupt(mut self) -> Result<bool> {
        self.success &= self.arguments.keep && self.incoming.is_empty();
        let mut jobs = Vec::new();
        for (&id, incoming) in &mut self.incoming {
            self.endpoint.connection(id).abort(REFUSED, "interrupted by the receiver's user")?;
            incoming.report.error = Some("interrupted".to_owned());
            incoming.abandon(&mut jobs);
        }
        self.ask(jobs);
        for outcome in self.writer.finish() {
            self.on_outcome(outcome)?;
        }
        for (id, incoming) in std::mem::take(&mut self.incoming) {
            self.report(id, incoming)?;
        }
        self.finish()
    }

    fn finish(mut self) -> Result<bool> {
        if let Some(segments) = &mut self.segments {
            segments.flush().context("the file of --segments-json cannot be written")?;
        }
        Ok(self.success)
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
        if !self.arguments.keep && (self.served > 0 || !self.incoming.is_empty()) {
            connection.abort(REFUSED, "this receiver takes one connection and has it already; start it with --keep for more")?;
            self.endpoint.forget(id);
            return Ok(false);
        }
        let key = connection.peer_fingerprint();
        let live = LiveStatistics::new(self.arguments.stats, self.endpoint.clock().now());
        let limit = self.arguments.bytes_max().filter(|_| !matches!(self.destination, Destination::Nowhere));
        let mut incoming = Incoming::new(id, self.arguments.holes == Holes::Drop, limit, live);
        incoming.report.address = Some(address.to_string());
        incoming.report.peer = key.map(|key| key.to_string());
        self.incoming.insert(id, incoming);
        let who = key.map_or(String::new(), |key| format!(", whose key is {key}"));
        self.progress.line(&format!("connected with {address}{who}"));
        if let Some(invitation) = self.admitting.on_connected(key, !self.arguments.keep)? {
            self.progress.line(&invitation);
        }
        Ok(true)
    }

    fn read_manifest(&mut self, id: ConnectionId) -> Result<()> {
        let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
        let Some(manifest) = incoming.manifest else { return Ok(()) };
        let mut jobs = Vec::new();
        while let Some(received) = self.endpoint.connection(id).try_recv(manifest) {
            if let Some(bytes) = incoming.on_record(&received.bytes, &mut jobs) {
                self.progress.expected(bytes);
                if let Some(sentence) = incoming.refusal(Some(bytes)) {
                    break_off(&mut self.endpoint, id, incoming, sentence)?;
                }
            }
        }
        self.ask(jobs);
        Ok(())
    }

    /// Takes segments while there is room to write them; whether there were any.
    fn take(&mut self) -> Result<bool> {
        let mut jobs = Vec::new();
        let mut taken = false;
        for (&id, incoming) in &mut self.incoming {
            let now = self.endpoint.clock().now();
            let mut connection = self.endpoint.connection(id);
            for stream in incoming.receiving() {
                while self.writing_bytes < WRITING_BYTES_MAX && incoming.takes(stream) {
                    let Some(received) = connection.try_recv(stream) else { break };
                    let Some((job, record)) = incoming.on_segment(now, received) else { break };
                    if let Job::Write(_, _, bytes) = &job {
                        self.writing_bytes += bytes.len() as u64;
                    }
                    jobs.push(job);
                    taken = true;
                    if let Some(segments) = &mut self.segments {
                        segments.write_all(&json::line(&record)?).context("the file of --segments-json cannot be written")?;
                    }
                }
                // Only a file has places to write at; everything else takes one stream after another.
                if self.destination.is_sequential()
                    && incoming.streams.get(&stream).is_some_and(|arriving| arriving.stage == Stage::Receiving)
                {
                    break;
                }
            }
            self.progress.delivered(incoming.report.bytes);
            if let Some(sentence) = incoming.refusal(None) {
                break_off(&mut self.endpoint, id, incoming, sentence)?;
            }
        }
        self.ask(jobs);
        Ok(taken)
    }

    fn ask(&self, jobs: Vec<Job>) {
        for job in jobs {
            self.writer.ask(job);
        }
    }

    fn on_outcome(&mut self, outcome: Outcome) -> Result<()> {
        let ((id, stream), failed) = match outcome {
            Outcome::Written(bytes) => {
                self.writing_bytes = self.writing_bytes.saturating_sub(bytes);
                return Ok(());
            }
            Outcome::Hashed(key, blake3) => {
                let mut jobs = Vec::new();
                if let Some(incoming) = self.incoming.get_mut(&key.0) {
                    incoming.on_hashed(key.1, blake3, &mut jobs);
                }
                self.ask(jobs);
                return Ok(());
            }
            Outcome::Kept(key) => (key, None),
            Outcome::Left(key, part) => {
                if let Some(part) = part {
                    self.progress.line(&format!("segstream: what came is left in {part}"));
                }
                (key, None)
            }
            Outcome::Failed(key, sentence) => {
                self.progress.line(&format!("segstream: {sentence}"));
                (key, Some(sentence))
            }
        };
        let answer = self.incoming.get_mut(&id).and_then(|incoming| incoming.on_done(stream, failed));
        match answer {
            Some(answer) => self.answer(id, &answer),
            None => Ok(()),
        }
    }

    fn answer(&mut self, id: ConnectionId, answer: &Answer) -> Result<()> {
        let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
        if incoming.answers.is_none() {
            return Ok(());
        }
        incoming.unsent.push_back(Bytes::from(serde_json::to_vec(answer).context("an answer cannot be written as JSON")?));
        self.send_answers(id)
    }

    /// Hands over the answers that wait, as far as the buffer of their stream takes them.
    fn send_answers(&mut self, id: ConnectionId) -> Result<()> {
        let Some(incoming) = self.incoming.get_mut(&id) else { return Ok(()) };
        let Some(answers) = incoming.answers else { return Ok(()) };
        while let Some(bytes) = incoming.unsent.front() {
            let now = self.endpoint.clock().now();
            match self.endpoint.connection(id).try_send(answers, bytes.clone(), now, None) {
                Ok(_) => drop(incoming.unsent.pop_front()),
                Err(Error::Submit(SubmitError::Blocked)) => return Ok(()),
                // The sender is gone or takes nothing any more: it needs no answer.
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

    /// Answers the peer's last repetitions. Why only without `--keep`: otherwise the loop does it.
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
        let records = match incoming.answers {
            Some(answers) => self.endpoint.connection(id).stream_statistics(answers)?,
            None => StreamStatistics::default(),
        };
        incoming.report.take(&statistics, records);
        let report = incoming.conclude();
        if !self.arguments.keep {
            self.drain(id)?;
        }
        self.endpoint.forget(id);
        self.served += 1;
        self.success &= report.is_success();
        if let Some(sentence) = report.sentence_of_receiver() {
            eprintln!("{sentence}");
        }
        if let Some(error) = &report.error {
            eprintln!("segstream: {error}");
        }
        if let Some(segments) = &mut self.segments {
            segments.flush().context("the file of --segments-json cannot be written")?;
        }
        if !self.arguments.json {
            return Ok(());
        }
        if matches!(self.destination, Destination::StandardOutput) { json::print_to_standard_error(&report) } else { json::print(&report) }
    }
}

/// Breaks off a connection that has more to write than it may, once; its event follows.
fn break_off(endpoint: &mut Endpoint, id: ConnectionId, incoming: &mut Incoming, sentence: String) -> Result<()> {
    if incoming.report.error.is_none() && incoming.closed.is_none() {
        endpoint.connection(id).abort(REFUSED, &sentence)?;
        incoming.report.error = Some(sentence);
    }
    Ok(())
}
