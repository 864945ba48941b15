//! Records what connections do in files: a qlog for each connection, and a log of losses.
//!
//! Switched on by [`crate::Builder::record`]. The endpoint hands over events as they are; a thread of the recorder writes them. The feature
//! is `recorder`.
//!
//! Invariant: the endpoint never waits for a file. If the recorder falls behind, events are dropped and counted. Nothing is recorded that
//! tells a key, a token, payload, or a label of a stream.

mod frames;
mod loss_log;
mod qlog;

use crate::{ConnectionId, Timestamp};
use loss_log::LossLog;
use qlog::Qlog;
use segstream_proto::connection::{Connection, Role};
use segstream_proto::trace::{TraceEvent, Traced};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many batches of events wait for the thread. A batch is what one connection did in one turn of its endpoint.
const BATCHES_MAX: usize = 1024;

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
}

/// The ends of connections for which the queue had no room. There are at most as many as there were connections, and each is small.
type Ends = Arc<Mutex<Vec<Batch>>>;

#[derive(Debug)]
struct Work {
    batches: SyncSender<Batch>,
    thread: JoinHandle<io::Result<()>>,
}

/// What one connection did.
#[derive(Debug)]
struct Batch {
    origin: Origin,
    events: Vec<Traced>,
    /// Nothing more will come of the connection.
    ended: bool,
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
        let qlog = records.qlog.clone().map(Qlog::in_folder).transpose()?;
        let loss_log = records.loss_log.as_deref().map(LossLog::create).transpose()?;
        let (batches, received) = sync_channel(BATCHES_MAX);
        let (omitted, ends) = (Arc::default(), Ends::default());
        let late = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || write(&received, &late, qlog, loss_log))?;
        Ok(Self { shared: Arc::new(Shared { work: Mutex::new(Some(Work { batches, thread })), omitted, ends }) })
    }

    /// How many events were dropped so far because the recorder fell behind.
    pub fn events_omitted(&self) -> u64 {
        self.shared.omitted.load(Ordering::Relaxed)
    }

    /// Writes what has come so far and ends; what comes later is not recorded.
    ///
    /// # Errors
    ///
    /// The first error of a file. Recording has stopped there; the connections have not noticed.
    pub fn finish(&self) -> io::Result<()> {
        let work = self.shared.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map_or(Ok(()), Work::finish)
    }

    /// Hands over a batch; false if there is no room for it.
    fn hand_over(&self, batch: Batch) -> bool {
        let work = self.shared.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(work) = work.as_ref() else { return true };
        match work.batches.try_send(batch) {
            // Why: after an error the thread has ended, which `finish` tells.
            Ok(()) | Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(batch)) => {
                self.shared.omitted.fetch_add(batch.events.len() as u64, Ordering::Relaxed);
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
        if let Err(TrySendError::Full(end)) = work.batches.try_send(end) {
            self.shared.ends.lock().unwrap_or_else(PoisonError::into_inner).push(end);
        }
    }
}

impl Work {
    fn finish(self) -> io::Result<()> {
        let Self { batches, thread } = self;
        drop(batches);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the recorder has panicked")))
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
    connections: BTreeMap<ConnectionId, Recorded>,
}

#[derive(Debug)]
struct Recorded {
    origin: Origin,
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
    pub(crate) fn record(&mut self, id: ConnectionId, serial: u64, connection: &Connection, mut events: Vec<Traced>) {
        let epoch = self.epoch;
        let recorded = self.connections.entry(id).or_insert_with(|| {
            let origin = Origin { serial, role: connection.role(), remote: connection.remote(), epoch };
            Recorded { origin, omitted: 0, last: Timestamp::ZERO }
        });
        recorded.last = events.last().map_or(recorded.last, |last| last.at);
        if let Some(first) = events.first().filter(|_| recorded.omitted > 0) {
            events.insert(0, Traced { at: first.at, event: TraceEvent::Omitted(recorded.omitted) });
        }
        let count = events.len() as u64;
        let before = core::mem::take(&mut recorded.omitted);
        if !self.recorder.hand_over(Batch { origin: recorded.origin, events, ended: false }) {
            recorded.omitted = before.max(1) - 1 + count;
        }
    }

    /// A connection is gone.
    pub(crate) fn end(&mut self, id: ConnectionId) {
        if let Some(Recorded { origin, omitted, last }) = self.connections.remove(&id) {
            let untold = (omitted > 0).then_some(Traced { at: last, event: TraceEvent::Omitted(omitted) });
            self.recorder.hand_over_end(Batch { origin, events: untold.into_iter().collect(), ended: true });
        }
    }
}

/// The ends that had no room.
fn take(ends: &Ends) -> Vec<Batch> {
    core::mem::take(&mut *ends.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The thread: writes what comes until nothing more can come, or a file fails.
fn write(batches: &Receiver<Batch>, ends: &Ends, mut qlog: Option<Qlog>, mut loss_log: Option<LossLog>) -> io::Result<()> {
    let mut write = |batch: &Batch| {
        if let Some(qlog) = &mut qlog {
            qlog.write(batch)?;
        }
        if let Some(log) = &mut loss_log {
            log.write(batch)?;
        }
        Ok::<(), io::Error>(())
    };
    let mut held = Vec::new();
    for batch in batches {
        let mut next = Some(batch);
        while let Some(batch) = next {
            write(&batch)?;
            held.append(&mut take(ends));
            next = batches.try_recv().ok();
        }
        // Why only when the queue is empty: what a connection did before its end was in it.
        held.drain(..).try_for_each(|end| write(&end))?;
    }
    take(ends).iter().try_for_each(write)?;
    if let Some(qlog) = qlog {
        qlog.finish()?;
    }
    loss_log.map_or(Ok(()), LossLog::finish)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(event: TraceEvent, ended: bool) -> Batch {
        let origin = Origin { serial: 3, role: Role::Initiator, remote: ([192, 0, 2, 1], 9).into(), epoch: Duration::ZERO };
        Batch { origin, events: vec![Traced { at: Timestamp::ZERO, event }], ended }
    }

    #[test]
    fn a_recorder_that_falls_behind_delays_nobody_and_its_file_tells_what_is_missing() {
        let folder = std::env::temp_dir().join(format!("segstream-recorder-{}", std::process::id()));
        let (batches, received) = sync_channel(2);
        let (go, held) = sync_channel::<()>(0);
        let ends = Ends::default();
        let (late, qlog) = (Arc::clone(&ends), Qlog::in_folder(folder.clone()).unwrap());
        let thread = std::thread::spawn(move || {
            // As a disk that does not take anything for a while.
            held.recv().unwrap();
            write(&received, &late, Some(qlog), None)
        });
        let shared = Shared { work: Mutex::new(Some(Work { batches, thread })), omitted: Arc::default(), ends };
        let recorder = Recorder { shared: Arc::new(shared) };
        assert!(recorder.hand_over(batch(TraceEvent::Established, false)) && recorder.hand_over(batch(TraceEvent::Omitted(1), false)));
        // The queue is full, and nobody takes from it: these calls return all the same.
        assert!((0..5).all(|_| !recorder.hand_over(batch(TraceEvent::Established, false))));
        assert_eq!(recorder.events_omitted(), 5);
        recorder.hand_over_end(batch(TraceEvent::Omitted(5), true));
        go.send(()).unwrap();
        recorder.finish().unwrap();
        let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(file).unwrap();
        let events: Vec<&str> = text.lines().skip(1).map(|line| line.split("\"name\":\"segstream:").nth(1).unwrap_or(line)).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(events.len(), 3, "{text}");
        assert!(
            text.lines().last().unwrap().contains("events_omitted") && text.lines().last().unwrap().contains("{\"count\":5}"),
            "{text}"
        );
    }
}
