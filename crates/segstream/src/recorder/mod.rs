//! Records what connections do in files: a qlog for each connection, and a log of losses.
//!
//! Switched on by [`crate::Builder::record`]. The endpoint hands over events as they are; a thread of the recorder writes them. The feature
//! is `recorder`.
//!
//! Invariant: the endpoint never waits for a file. If the recorder falls behind, or its disk takes nothing any more, events are dropped and
//! counted: what waits is bounded (`BATCHES_MAX`, `WAITING_BYTES_MAX`), and so are the open files (`OPEN_MAX`). A file that fails ends, and
//! no other. Nothing is recorded that tells a key, a token, payload, or a
//! label of a stream.

mod failures;
mod frames;
mod loss_log;
mod open_files;
mod qlog;
mod qlog_events;

use crate::Timestamp;
use failures::Failures;
use loss_log::LossLog;
use qlog::Qlog;
use segstream_proto::connection::{Connection, Role};
use segstream_proto::trace::{TraceEvent, Traced};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many batches of events wait for the thread. A batch is what one connection did in one turn of its endpoint.
const BATCHES_MAX: usize = 4096;
/// So long the thread lets batches gather when it has written all there were.
///
/// Why: at 1 Gbit/s an endpoint has thousands of turns a second, and to wake a sleeping thread costs it more than all else that recording does.
/// Twenty times as many turns as that still have room.
const GATHERING: Duration = Duration::from_millis(20);
/// How much memory the events that wait take at most, of all connections together.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// How many qlogs are open at a time. The others are opened again when they have some thousands of bytes to append.
///
/// Why: a process may have 1024 files open by default (`ulimit -n`), and needs some for its sockets.
const OPEN_MAX: usize = 64;

/// What a recorder writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Records {
    /// The folder for a qlog of each connection, in JSON text sequences (RFC 7464). It is created if it is missing. Default: none.
    pub qlog: Option<PathBuf>,
    /// The file for the losses of the peers' streams, in lines of JSON. It must not exist. Default: none.
    pub loss_log: Option<PathBuf>,
}

/// Writes what connections do to files. Clones share the files.
#[derive(Clone, Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    work: Mutex<Option<Work>>,
    omitted: Arc<AtomicU64>,
    ends: Ends,
    waiting_bytes: Arc<AtomicUsize>,
}

/// The ends of connections for which the queue had no room. Each is small, and of a connection of which nothing was accepted there is none:
/// so there are at most as many as batches wait and connections have a file.
type Ends = Arc<Mutex<Vec<Batch>>>;

#[derive(Debug)]
struct Work {
    batches: SyncSender<Batch>,
    thread: JoinHandle<Failures>,
}

/// What one connection did.
#[derive(Debug)]
struct Batch {
    origin: Origin,
    events: Vec<Traced>,
    /// About how much memory the events take.
    memory_bytes: usize,
    /// Nothing more will come of the connection.
    ended: bool,
}

impl Batch {
    fn new(origin: Origin, events: Vec<Traced>, ended: bool) -> Self {
        let memory_bytes = events.iter().map(Traced::memory_bytes).sum();
        Self { origin, events, memory_bytes, ended }
    }
}

/// Of which connection events are.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// The number of the connection in this process.
    serial: u64,
    role: Role,
    remote: SocketAddr,
    /// What the time of day shows at the beginning of the endpoint's clock, since 1970.
    epoch: Duration,
}

impl Origin {
    /// Milliseconds since 1970.
    fn unix_ms(&self, at: Timestamp) -> f64 {
        self.epoch.as_secs_f64() * 1e3 + at.as_nanos() as f64 / 1e6
    }
}

impl Recorder {
    /// Starts a recorder.
    ///
    /// # Errors
    ///
    /// When a folder or file cannot be made.
    pub fn start(records: &Records) -> io::Result<Self> {
        let qlog = records.qlog.clone().map(|folder| Qlog::in_folder(folder, OPEN_MAX)).transpose()?;
        let loss_log = records.loss_log.as_deref().map(LossLog::create).transpose()?;
        let (batches, received) = sync_channel(BATCHES_MAX);
        let (omitted, ends, waiting_bytes) = (Arc::<AtomicU64>::default(), Ends::default(), Arc::<AtomicUsize>::default());
        let queue =
            Queue { batches: received, late: Arc::clone(&ends), waiting_bytes: Arc::clone(&waiting_bytes), omitted: Arc::clone(&omitted) };
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || queue.write(qlog, loss_log))?;
        Ok(Self { shared: Arc::new(Shared { work: Mutex::new(Some(Work { batches, thread })), omitted, ends, waiting_bytes }) })
    }

    /// How many events were dropped so far because the recorder fell behind, or a qlog had failed.
    pub fn events_omitted(&self) -> u64 {
        self.shared.omitted.load(Ordering::Relaxed)
    }

    /// Writes what has come so far and ends; what comes later is not recorded.
    ///
    /// # Errors
    ///
    /// The first error of a file, which the message names, and how many other files have failed. Nothing more was written to those; the others
    /// are complete, and the connections have not noticed.
    pub fn finish(&self) -> io::Result<()> {
        let work = self.shared.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map_or(Ok(()), Work::finish)
    }

    /// Hands over a batch; false if there is no room for it.
    fn hand_over(&self, batch: Batch) -> bool {
        let work = self.shared.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(work) = work.as_ref() else { return true };
        let (bytes, events) = (batch.memory_bytes, batch.events.len() as u64);
        // Invariant: the lock is held, so only the thread changes this besides, and it only takes away.
        let sent = if self.shared.waiting_bytes.load(Ordering::Relaxed) + bytes > WAITING_BYTES_MAX {
            Err(TrySendError::Full(batch))
        } else {
            self.shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
            work.batches.try_send(batch).inspect_err(|_| _ = self.shared.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed))
        };
        match sent {
            // Only a thread that has panicked takes no more, which `finish` tells.
            Ok(()) | Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(_)) => {
                self.shared.omitted.fetch_add(events, Ordering::Relaxed);
                false
            }
        }
    }
}

impl Recorder {
    /// Hands over the end of a connection, which is not dropped: the file of a connection tells how many events it lacks.
    fn hand_over_end(&self, end: Batch) {
        let work = self.shared.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(work) = work.as_ref() else { return };
        self.shared.waiting_bytes.fetch_add(end.memory_bytes, Ordering::Relaxed);
        if let Err(TrySendError::Full(end)) = work.batches.try_send(end) {
            self.shared.ends.lock().unwrap_or_else(PoisonError::into_inner).push(end);
        }
    }
}

impl Work {
    fn finish(self) -> io::Result<()> {
        let Self { batches, thread } = self;
        drop(batches);
        thread.join().map_or_else(|_| Err(io::Error::other("the thread of the recorder has panicked")), Failures::into_result)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // An error has nowhere to go: whoever wants it calls `finish`.
        _ = work.map(Work::finish);
    }
}

/// The connections of one endpoint, as the recorder knows them.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Recorder,
    epoch: Duration,
    /// By their numbers in the process.
    connections: BTreeMap<u64, Recorded>,
}

#[derive(Debug)]
struct Recorded {
    origin: Origin,
    /// Whether any of its events had room: then it may have a file, which has an end.
    is_known: bool,
    /// Events that had no room.
    omitted: u64,
    /// When the last event happened.
    last: Timestamp,
}

impl Recording {
    /// A recording for an endpoint at the beginning of whose clock the time of day was `epoch`.
    pub(crate) const fn new(recorder: Recorder, epoch: Duration) -> Self {
        Self { recorder, epoch, connections: BTreeMap::new() }
    }

    /// What the connection with the number `serial` in the process did.
    pub(crate) fn record(&mut self, serial: u64, connection: &Connection, events: Vec<Traced>) {
        let epoch = self.epoch;
        self.record_of(serial, || Origin { serial, role: connection.role(), remote: connection.remote(), epoch }, events);
    }

    fn record_of(&mut self, serial: u64, origin: impl FnOnce() -> Origin, mut events: Vec<Traced>) {
        let recorded = self.connections.entry(serial).or_insert_with(|| Recorded {
            origin: origin(),
            is_known: false,
            omitted: 0,
            last: Timestamp::ZERO,
        });
        recorded.last = events.last().map_or(recorded.last, |last| last.at);
        if let Some(first) = events.first().filter(|_| recorded.omitted > 0) {
            events.insert(0, Traced { at: first.at, event: TraceEvent::Omitted(recorded.omitted) });
        }
        let count = events.len() as u64;
        let before = core::mem::take(&mut recorded.omitted);
        if self.recorder.hand_over(Batch::new(recorded.origin, events, false)) {
            recorded.is_known = true;
        } else {
            recorded.omitted = before.max(1) - 1 + count;
        }
    }

    /// The connection with this number is gone.
    pub(crate) fn end(&mut self, serial: u64) {
        if let Some(Recorded { origin, omitted, last, is_known: true }) = self.connections.remove(&serial) {
            let untold = (omitted > 0).then_some(Traced { at: last, event: TraceEvent::Omitted(omitted) });
            self.recorder.hand_over_end(Batch::new(origin, untold.into_iter().collect(), true));
        }
    }
}

/// The ends that had no room.
fn take(ends: &Ends) -> Vec<Batch> {
    core::mem::take(&mut *ends.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What waits for the thread.
#[derive(Debug)]
struct Queue {
    batches: Receiver<Batch>,
    late: Ends,
    waiting_bytes: Arc<AtomicUsize>,
    omitted: Arc<AtomicU64>,
}

impl Queue {
    /// The thread: writes what comes until nothing more can come. The files that have failed.
    fn write(self, qlog: Option<Qlog>, loss_log: Option<LossLog>) -> Failures {
        let mut files = Files { qlog, loss_log, failures: Failures::default() };
        let mut write = |batch: &Batch| {
            self.waiting_bytes.fetch_sub(batch.memory_bytes, Ordering::Relaxed);
            self.omitted.fetch_add(files.write(batch), Ordering::Relaxed);
        };
        let mut held = Vec::new();
        for batch in &self.batches {
            let mut next = Some(batch);
            while let Some(batch) = next {
                write(&batch);
                held.append(&mut take(&self.late));
                next = self.batches.try_recv().ok();
            }
            // Why only when the queue is empty: what a connection did before its end was in it.
            held.drain(..).for_each(|end| write(&end));
            std::thread::sleep(GATHERING);
        }
        take(&self.late).iter().for_each(write);
        files.finish()
    }
}

/// Where the thread writes.
#[derive(Debug)]
struct Files {
    qlog: Option<Qlog>,
    /// `None` also when it has failed.
    loss_log: Option<LossLog>,
    failures: Failures,
}

impl Files {
    /// Writes what a connection did; how many events its qlog lacks because it has failed.
    fn write(&mut self, batch: &Batch) -> u64 {
        if let Some(mut log) = self.loss_log.take() {
            match log.write(batch) {
                Ok(()) => self.loss_log = Some(log),
                Err(error) => self.failures.note(log.path(), error),
            }
        }
        self.qlog.as_mut().map_or(0, |qlog| qlog.write(batch, &mut self.failures))
    }

    /// Writes what has gathered.
    fn finish(mut self) -> Failures {
        if let Some(mut log) = self.loss_log
            && let Err(error) = log.finish()
        {
            self.failures.note(log.path(), error);
        }
        if let Some(qlog) = self.qlog {
            qlog.finish(&mut self.failures);
        }
        self.failures
    }
}

#[cfg(test)]
mod tests;
