//! The loop of a sender: submit segments, serve the network, process the answers of the receiver.
//!
//! Called by the verb.
//!
//! Invariant: it ends: by everything being judged and answered, by the connection's end, or by the user.

use super::Plan;
use super::file_queue::{Backlog, FileQueue, Records, Submitted, Unjudged};
use super::scheduled_change::ScheduledChange;
use super::segment_record::SegmentRecord;
use crate::interruption::{Interruption, Shutdown, ShutdownStage};
use crate::live_statistics::LiveStatistics;
use crate::manifest::{self, ANSWERS_LABEL, Answer, MANIFEST_LABEL, Record, Takes};
use crate::progress::Progress;
use crate::segment_lines::{self, SegmentLines};
use crate::transfer_report::TransferReport;
use crate::usage;
use anyhow::Result;
use segstream::blocking::Endpoint;
use segstream::{
    Bytes, Class, CloseReason, ConnectionEvent, ConnectionId, Error, Run, SegmentNumber, SocketCounters, StreamId, SubmitError, UnitIndex,
    Verdict,
};
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The stream of the manifest.
const MANIFEST: StreamId = StreamId::FIRST;
/// A receiver that says nothing about content hashes is waited for no longer than this.
const ANSWERS_PATIENCE: Duration = Duration::from_secs(3);
/// Records that wait for the manifest's buffer; then nothing more is begun.
const RECORDS_WAITING_MAX: usize = 64;
/// Directories in a record.
const OFFERS_IN_RECORD: usize = 32;
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// One transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    endpoint: Endpoint,
    plan: Plan,
    interruption: Interruption,
    shutdown: Shutdown,
    queue: FileQueue,
    report: TransferReport,
    progress: Progress,
    live: LiveStatistics,
    unjudged: Unjudged,
    /// The file of --segments-json.
    segments: Option<SegmentLines>,
    /// Units of segments that were given up before they were sent.
    units_given_up: u64,
    requested: Instant,
    connected: Instant,
    last_verdict: Instant,
    /// What is to be said in the manifest and has not been taken yet: nothing is before the receiver has opened a window.
    records: VecDeque<Record>,
    all_submitted: bool,
    manifest_finished: bool,
    /// The receiver's stream of answers.
    answers: Option<StreamId>,
    /// Directories that were told complete, and how many of them the receiver has finished.
    directories: Option<(u64, u64)>,
    closing: bool,
}

impl Transfer {
    /// A transfer that has not begun.
    pub(super) fn new(
        endpoint: Endpoint,
        plan: Plan,
        segments: Option<SegmentLines>,
        (interruption, shutdown): (Interruption, Shutdown),
    ) -> Self {
        let queue = FileQueue::new(&plan, endpoint.clock(), endpoint.waker());
        let now = endpoint.clock().now();
        Self {
            progress: Progress::new(plan.stats.are_on_standard_error()),
            live: LiveStatistics::new(&plan.stats, now),
            endpoint,
            plan,
            interruption,
            shutdown,
            queue,
            report: TransferReport::default(),
            unjudged: Unjudged::new(),
            segments,
            units_given_up: 0,
            requested: now,
            connected: now,
            last_verdict: now,
            records: VecDeque::new(),
            all_submitted: false,
            manifest_finished: false,
            answers: None,
            directories: None,
            closing: false,
        }
    }

    /// Sends everything; the result, whatever it is.
    ///
    /// # Errors
    /// Only for what is no result of a transfer: bad usage, or a system that fails.
    pub(super) fn run(mut self) -> Result<TransferReport> {
        let clock = self.endpoint.clock();
        let any = self.queue.prepare();
        self.tell_notes();
        if !any {
            return Ok(self.conclude());
        }
        self.requested = clock.now();
        self.last_verdict = self.requested;
        self.report.address = Some(self.plan.receiver.peer.address.to_string());
        // Why without streams: the request can be read by anyone, and labels are the names of files.
        if self.plan.careful_resume {
            self.plan.receiver.resume(&mut self.endpoint);
        }
        match self.endpoint.connect(self.plan.receiver.peer.clone(), Vec::new()) {
            Ok(id) => {
                self.connected = clock.now();
                self.report.peer = self.endpoint.connection(id).peer_fingerprint().map(|key| key.to_string());
                if let Some(sentence) = self.plan.receiver.remember() {
                    self.progress.line(&sentence);
                }
                self.live = LiveStatistics::new(&self.plan.stats, self.connected);
                self.progress.line(&format!("connected with {}", self.plan.receiver.peer.address));
                self.begin(id)?;
                self.serve(id)?;
                if let Some(sentence) = self.plan.receiver.store_capacity(&self.endpoint) {
                    self.progress.line(&sentence);
                }
            }
            Err(error @ (Error::Connect(_) | Error::Contract(_))) => return Err(usage::bad(error.to_string())),
            Err(Error::Woken) => self.report.error = Some("interrupted".to_owned()),
            Err(Error::Closed { reason, .. }) => self.report.error = Some(self.sentence(&reason)),
            Err(error) => return Err(error.into()),
        }
        Ok(self.conclude())
    }

    /// Opens the manifest, the first of all streams.
    fn begin(&mut self, id: ConnectionId) -> Result<()> {
        match self.endpoint.connection(id).open_stream(manifest::contract(MANIFEST_LABEL)) {
            Ok(_) => {
                let pair = self.plan.receiver.pair.map(|key| Record { pair: Some(key.to_string()), ..Record::default() });
                self.records.extend(pair);
                Ok(())
            }
            // Its event follows and tells why.
            Err(Error::Closed { .. } | Error::Closing { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Why the connection is no more.
    fn sentence(&self, reason: &CloseReason) -> String {
        let address = self.plan.receiver.peer.address;
        let explained = self.plan.receiver.explain(reason).or_else(|| no_answer(address, reason, &self.endpoint.socket_counters()));
        explained.unwrap_or_else(|| format!("the connection to {address} has ended: {}", manifest::printable(&reason.to_string())))
    }

    fn conclude(mut self) -> TransferReport {
        self.progress.clear();
        self.queue.abandon(&mut self.report);
        let span = self.last_verdict.since(self.requested);
        self.report.conclude(span);
        self.report.is_told = self.report.error.as_ref().is_some_and(|error| self.progress.has_told(error));
        self.report
    }

    fn serve(&mut self, id: ConnectionId) -> Result<()> {
        let clock = self.endpoint.clock();
        loop {
            let wake = if self.closing { Instant::FAR_FUTURE } else { self.step(id)? };
            let now = clock.now();
            let change = self.plan.changes.first().map_or(Instant::FAR_FUTURE, |change| self.connected + change.at);
            let until = wake.min(change).min(self.live.next()).min(now + SLEEP_MAX).min(self.shutdown.until());
            if let Some((of, event)) = self.endpoint.wait(Some(until.since(now).into()))?
                && of == id
                && let Some(reason) = self.on_event(id, event)?
            {
                self.end(id, &reason)?;
                return Ok(());
            }
            if self.is_interrupted() {
                self.report.error.get_or_insert_with(|| "interrupted".to_owned());
                self.endpoint.connection(id).abort(1, "interrupted by the sender's user")?;
            }
            self.change(id)?;
            self.tell(id)?;
        }
    }

    /// Whether the user has ended it, or has asked for its end (SIGTERM) longer ago than it may take. A pipe ends with what was read of it.
    fn is_interrupted(&mut self) -> bool {
        match self.shutdown.at(self.endpoint.clock().now()) {
            ShutdownStage::Begins => {
                self.queue.end_pipe();
                self.progress.line(&self.shutdown.sentence());
            }
            ShutdownStage::Over => return true,
            ShutdownStage::No | ShutdownStage::Until(_) => {}
        }
        self.interruption.is_asked()
    }

    /// Hands over what may be handed over, and closes when nothing is left to do. When to be called again.
    fn step(&mut self, id: ConnectionId) -> Result<Instant> {
        let now = self.endpoint.clock().now();
        if !self.all_submitted {
            match self.submit(id) {
                Ok(Submitted::More) => return Ok(now),
                Ok(Submitted::Wait(until)) => return Ok(until),
                Ok(Submitted::All) => self.all_submitted = true,
                // Its event follows and tells why.
                Err(Error::Closed { .. }) => return Ok(now),
                // The receiver closes: nothing more is taken.
                Err(error @ (Error::Submit(_) | Error::Closing { .. })) => {
                    self.report.error.get_or_insert_with(|| error.to_string());
                    self.all_submitted = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !self.unjudged.is_empty() {
            return Ok(Instant::FAR_FUTURE);
        }
        let patience = if self.answers.is_some() { Instant::FAR_FUTURE } else { self.last_verdict + ANSWERS_PATIENCE };
        if now < patience && (self.queue.unanswered() > 0 || !self.directories_finished(id)?) {
            return Ok(patience);
        }
        if !self.manifest_finished {
            self.manifest_finished = true;
            self.endpoint.connection(id).finish_stream(MANIFEST)?;
        }
        self.closing = true;
        self.endpoint.connection(id).begin_close(0, "everything was sent")?;
        Ok(now)
    }

    /// Tells the receiver which directories are complete; whether it has finished them all.
    fn directories_finished(&mut self, id: ConnectionId) -> Result<bool> {
        if self.directories.is_none() {
            let directories = self.queue.take_directories();
            self.directories = Some((directories.len() as u64, 0));
            let records = directories.chunks(OFFERS_IN_RECORD).map(|some| Record { finished: some.to_vec(), ..Record::default() });
            self.send_records(id, records.collect())?;
        }
        Ok(self.directories.is_none_or(|(told, finished)| finished >= told))
    }

    fn submit(&mut self, id: ConnectionId) -> Result<Submitted, Error> {
        self.learn_takes();
        let mut connection = self.endpoint.connection(id);
        let statistics = connection.statistics()?;
        let records = connection.stream_statistics(MANIFEST)?;
        let first_time = |units_sent: u64, again: u64| units_sent - again;
        let sent =
            first_time(statistics.units_sent, statistics.units_retransmitted) - first_time(records.units_sent, records.units_retransmitted);
        if self.unjudged.is_empty() {
            self.units_given_up = self.queue.units.saturating_sub(sent);
        }
        let waiting = self.queue.units.saturating_sub(sent + self.units_given_up);
        let backlog = Backlog::new(waiting * u64::from(self.plan.contract.unit_bytes), statistics.rate_bps);
        if self.records.len() > RECORDS_WAITING_MAX {
            return Ok(Submitted::Wait(Instant::FAR_FUTURE));
        }
        let mut records = Records::new();
        let submitted = self.queue.submit(&mut connection, &self.plan.contract, backlog, &mut self.unjudged, &mut records);
        records.extend(self.queue.take_failed());
        self.tell_notes();
        self.send_records(id, records)?;
        self.queue.report(&mut self.report);
        self.progress.expected(self.queue.expected_bytes());
        self.progress.name(self.queue.current_name());
        let submitted = submitted.map(|submitted| match submitted {
            Submitted::Wait(until) if !self.queue.knows_takes() => Submitted::Wait(until.min(self.connected + ANSWERS_PATIENCE)),
            submitted => submitted,
        });
        Ok(match submitted? {
            Submitted::All if !self.records.is_empty() => Submitted::Wait(Instant::FAR_FUTURE),
            submitted => submitted,
        })
    }

    /// A receiver that says nothing of itself takes files, each on its stream.
    fn learn_takes(&mut self) {
        if !self.queue.knows_takes() && self.endpoint.clock().now() >= self.connected + ANSWERS_PATIENCE {
            self.queue.set_takes(Takes::default());
        }
    }

    /// Says what is left out or has failed.
    fn tell_notes(&mut self) {
        for note in self.queue.take_notes() {
            self.progress.line(&note);
        }
    }

    /// Says `records` behind those that wait, as far as the manifest's buffer takes them.
    fn send_records(&mut self, id: ConnectionId, records: Records) -> Result<(), Error> {
        self.records.extend(records);
        while let Some(record) = self.records.front() {
            let bytes = serde_json::to_vec(record).map_err(std::io::Error::from)?;
            let now = self.endpoint.clock().now();
            match self.endpoint.connection(id).try_send(MANIFEST, Bytes::from(bytes), now, None) {
                Ok(_) => drop(self.records.pop_front()),
                Err(Error::Submit(SubmitError::Blocked)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes an event; the reason when it is the last.
    fn on_event(&mut self, id: ConnectionId, event: ConnectionEvent) -> Result<Option<CloseReason>> {
        match event {
            ConnectionEvent::Judged { stream, segments, verdict, holes } if stream != MANIFEST => {
                segments.start.up_to(segments.end).for_each(|segment| self.on_verdict(stream, segment, verdict, &holes));
                let flushed = self.segments.as_mut().map_or(Ok(()), SegmentLines::flush);
                self.end_segments_on(flushed);
            }
            ConnectionEvent::StreamOpened(stream) => {
                let label = self.endpoint.connection(id).receiving_contract(stream).map(|contract| contract.label == ANSWERS_LABEL);
                if matches!(label, Ok(true)) {
                    self.answers = Some(stream);
                }
            }
            ConnectionEvent::Readable(stream) => {
                while let Some(received) = self.endpoint.connection(id).try_recv(stream) {
                    if self.answers == Some(stream) {
                        self.on_answer(id, &received.bytes)?;
                    }
                }
            }
            ConnectionEvent::Refused(stream, reason) => {
                self.give_up(id, stream, &format!("the receiver refuses the file: {reason:?}"))?;
            }
            ConnectionEvent::Closed(reason) => return Ok(Some(reason)),
            _ => {}
        }
        Ok(None)
    }

    fn on_verdict(&mut self, stream: StreamId, segment: SegmentNumber, verdict: Verdict, holes: &[Run<UnitIndex>]) {
        let Some(submission) = self.unjudged.remove(&(stream, segment)) else { return };
        if verdict != Verdict::Unknown {
            self.last_verdict = self.endpoint.clock().now();
        }
        self.report.segments += 1;
        self.report.count(verdict, submission.bytes, self.plan.contract.unit_bytes, holes);
        if let Some(segments) = &mut self.segments {
            let now = self.endpoint.clock().now();
            let added = segments.add(&SegmentRecord::new((stream, segment), submission, (verdict, holes), now));
            self.end_segments_on(added);
        }
        if verdict == Verdict::Expired {
            // Limit: units that were sent and lost count as never sent, so a little too much is handed over.
            self.units_given_up += holes.iter().map(|hole| u64::from(hole.len())).sum::<u64>();
        }
        self.progress.delivered(self.report.bytes);
    }

    /// If a line could not be written, none is written any more, and the transfer goes on.
    fn end_segments_on(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.segments = None;
            self.report.error.get_or_insert_with(|| "not every segment is in the file of --segments-json".to_owned());
            self.progress.line(&segment_lines::failure(&error));
        }
    }

    fn on_answer(&mut self, id: ConnectionId, record: &[u8]) -> Result<()> {
        let Ok(answer) = serde_json::from_slice::<Answer>(record) else { return Ok(()) };
        if let Some(name) = &answer.paired {
            let name = manifest::printable(name);
            self.progress.line(&format!("the receiver remembers this user's key as {name}: --code is not needed any more"));
        }
        if let Some(takes) = answer.takes {
            self.queue.set_takes(takes);
        }
        if let (Some(finished), Some((_, count))) = (answer.finished, &mut self.directories) {
            *count = finished;
        }
        if let Some(sentence) = self.queue.on_answer(&answer) {
            self.progress.line(&format!("segstream: the receiver could not keep the file: {sentence}"));
        }
        if answer.kept.is_some() {
            self.last_verdict = self.endpoint.clock().now();
        }
        match answer.stream {
            Some(stream) => self.on_answer_of_stream(id, StreamId(stream), &answer),
            None => Ok(()),
        }
    }

    fn on_answer_of_stream(&mut self, id: ConnectionId, stream: StreamId, answer: &Answer) -> Result<()> {
        self.last_verdict = self.endpoint.clock().now();
        if self.queue.error_of(stream).is_some() {
            // What went wrong first is the cause.
            self.queue.settle_stream(stream, |_| {});
            return Ok(());
        }
        if let Some(error) = &answer.error {
            let sentence = format!("the receiver could not keep the file: {}", manifest::printable(error));
            return self.give_up(id, stream, &sentence);
        }
        let mut differs = None;
        self.queue.settle_stream(stream, |file| {
            file.durable = Some(answer.durable);
            file.hash_agrees = file.blake3.as_ref().zip(answer.blake3.as_ref()).map(|(ours, theirs)| ours == theirs);
            if file.hash_agrees == Some(false) {
                let sentence = format!("{} differs at the receiver: the content hashes do not agree; send it again", file.name);
                differs = file.error.insert(sentence).clone().into();
            }
        });
        if let Some(sentence) = differs {
            self.progress.line(&format!("segstream: {sentence}"));
        }
        Ok(())
    }

    fn give_up(&mut self, id: ConnectionId, stream: StreamId, sentence: &str) -> Result<()> {
        self.progress.line(&format!("segstream: {sentence}"));
        let mut records = Records::new();
        self.queue.give_up(&mut self.endpoint.connection(id), stream, sentence, &mut records)?;
        Ok(self.send_records(id, records)?)
    }

    /// Changes rate and class when their time has come.
    fn change(&mut self, id: ConnectionId) -> Result<()> {
        let now = self.endpoint.clock().now();
        while self.plan.changes.first().is_some_and(|change| self.connected + change.at <= now) {
            let change = self.plan.changes.remove(0);
            // Why this order: an automatic rate is never without rate control, not even between the two.
            if change.class.is_none_or(Class::rate_control) {
                self.change_class(id, &change)?;
                self.change_rate(id, &change)?;
            } else {
                self.change_rate(id, &change)?;
                self.change_class(id, &change)?;
            }
        }
        Ok(())
    }

    fn change_rate(&mut self, id: ConnectionId, change: &ScheduledChange) -> Result<()> {
        Ok(change.rate.map_or(Ok(()), |rate| self.endpoint.connection(id).set_rate(rate))?)
    }

    fn change_class(&mut self, id: ConnectionId, change: &ScheduledChange) -> Result<()> {
        match change.class.map_or(Ok(()), |class| self.endpoint.connection(id).set_class(class)) {
            // Its event follows and tells why.
            Ok(()) | Err(Error::Closed { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn tell(&mut self, id: ConnectionId) -> Result<()> {
        let statistics = self.endpoint.connection(id).statistics()?;
        self.report.note_round_trip(statistics.rtt_ms_min);
        self.live.tell(self.endpoint.clock().now(), self.report.address.as_deref(), self.report.bytes, &statistics)
    }

    /// The connection is no more.
    fn end(&mut self, id: ConnectionId, reason: &CloseReason) -> Result<()> {
        let statistics = self.endpoint.connection(id).statistics()?;
        self.live.tell_last(self.endpoint.clock().now(), self.report.address.as_deref(), self.report.bytes, &statistics)?;
        let records = self.endpoint.connection(id).stream_statistics(MANIFEST)?;
        self.report.take(&statistics, records);
        if !matches!(reason, CloseReason::ClosedHere) && self.report.error.is_none() {
            self.report.error = Some(self.sentence(reason));
        }
        loop {
            match self.endpoint.connection(id).drained() {
                // A pipe that goes on, or a user who is impatient.
                Err(Error::Woken) if !self.interruption.is_asked() => {}
                Ok(()) | Err(Error::Woken) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Why nobody answered, as far as the network has said so (ICMP).
///
/// Why only at the end: anyone near the path can forge such a message, and a receiver may be about to start, so it shortens
/// nothing.
fn no_answer(address: SocketAddr, reason: &CloseReason, network: &SocketCounters) -> Option<String> {
    let CloseReason::NoAnswer(waited) = reason else { return None };
    let answered = if network.refused > 0 {
        let times = network.refused;
        format!(
            "the network answered {times} times that no program listens on UDP port {} there; start recv first, or check the port",
            address.port()
        )
    } else if network.unreachable > 0 {
        let times = network.unreachable;
        format!("the network answered {times} times that it cannot reach that host; check the address, and that the host is up")
    } else {
        return None;
    };
    Some(format!("nobody answered at {address} within {waited:?}: {answered}"))
}
