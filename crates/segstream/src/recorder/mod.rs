//! Records what connections do in files: a qlog for each connection, and a log of losses.
//!
//! Switched on by [`crate::Builder::record`]. The endpoint hands over events as they are; a thread of the recorder writes them. The feature
//! is `recorder`.
//!
//! Invariant: the endpoint never waits for a file. If the recorder falls behind, or its disk takes nothing any more, events are dropped and
//! counted: what waits is bounded (`BATCHES_MAX`, `WAITING_BYTES_MAX`). Nothing is recorded that tells a key, a token, payload, or a
//! label of a stream.

mod frames;
mod loss_log;
mod qlog;

use crate::Timestamp;
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
const GATHERING: Duration = Duration::from_millis(5);
/// How much memory the events that wait take at most, of all connections together.
const WAITING_BYTES_MAX: usize = 32 << 20;

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

impl Batch {
    fn memory_bytes(&self) -> usize {
        self.events.iter().map(Traced::memory_bytes).sum()
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
        let qlog = records.qlog.clone().map(Qlog::in_folder).transpose()?;
        let loss_log = records.loss_log.as_deref().map(LossLog::create).transpose()?;
        let (batches, received) = sync_channel(BATCHES_MAX);
        let (omitted, ends, waiting_bytes) = (Arc::default(), Ends::default(), Arc::<AtomicUsize>::default());
        let queue = Queue { batches: received, late: Arc::clone(&ends), waiting_bytes: Arc::clone(&waiting_bytes) };
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || queue.write(qlog, loss_log))?;
        Ok(Self { shared: Arc::new(Shared { work: Mutex::new(Some(Work { batches, thread })), omitted, ends, waiting_bytes }) })
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
        let (bytes, events) = (batch.memory_bytes(), batch.events.len() as u64);
        // Invariant: the lock is held, so only the thread changes this besides, and it only takes away.
        let sent = if self.shared.waiting_bytes.load(Ordering::Relaxed) + bytes > WAITING_BYTES_MAX {
            Err(TrySendError::Full(batch))
        } else {
            self.shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
            work.batches.try_send(batch).inspect_err(|_| _ = self.shared.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed))
        };
        match sent {
            // Why: after an error the thread has ended, which `finish` tells.
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
        self.shared.waiting_bytes.fetch_add(end.memory_bytes(), Ordering::Relaxed);
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
        if self.recorder.hand_over(Batch { origin: recorded.origin, events, ended: false }) {
            recorded.is_known = true;
        } else {
            recorded.omitted = before.max(1) - 1 + count;
        }
    }

    /// The connection with this number is gone.
    pub(crate) fn end(&mut self, serial: u64) {
        if let Some(Recorded { origin, omitted, last, is_known: true }) = self.connections.remove(&serial) {
            let untold = (omitted > 0).then_some(Traced { at: last, event: TraceEvent::Omitted(omitted) });
            self.recorder.hand_over_end(Batch { origin, events: untold.into_iter().collect(), ended: true });
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
}

impl Queue {
    /// The thread: writes what comes until nothing more can come, or a file fails.
    fn write(self, mut qlog: Option<Qlog>, mut loss_log: Option<LossLog>) -> io::Result<()> {
        let mut write = |batch: &Batch| {
            self.waiting_bytes.fetch_sub(batch.memory_bytes(), Ordering::Relaxed);
            if let Some(qlog) = &mut qlog {
                qlog.write(batch)?;
            }
            if let Some(log) = &mut loss_log {
                log.write(batch)?;
            }
            Ok::<(), io::Error>(())
        };
        let mut held = Vec::new();
        for batch in &self.batches {
            let mut next = Some(batch);
            while let Some(batch) = next {
                write(&batch)?;
                held.append(&mut take(&self.late));
                next = self.batches.try_recv().ok();
            }
            // Why only when the queue is empty: what a connection did before its end was in it.
            held.drain(..).try_for_each(|end| write(&end))?;
            std::thread::sleep(GATHERING);
        }
        take(&self.late).iter().try_for_each(write)?;
        if let Some(qlog) = qlog {
            qlog.finish()?;
        }
        loss_log.map_or(Ok(()), LossLog::finish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::{ShipmentNumber, StreamId};
    use segstream_proto::trace::{Content, Shipments};
    use segstream_wire::{Kind, Report, ReportFrame};

    const ORIGIN: Origin = Origin {
        serial: 3,
        role: Role::Initiator,
        remote: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9),
        epoch: Duration::ZERO,
    };

    fn batch(event: TraceEvent, ended: bool) -> Batch {
        Batch { origin: ORIGIN, events: vec![Traced { at: Timestamp::ZERO, event }], ended }
    }

    /// A recorder whose thread takes nothing until something is sent: as a disk that stands.
    fn stalled(folder: &std::path::Path, batches_max: usize) -> (Recorder, SyncSender<()>) {
        let (batches, received) = sync_channel(batches_max);
        let (go, held) = sync_channel::<()>(0);
        let (ends, waiting_bytes) = (Ends::default(), Arc::<AtomicUsize>::default());
        let queue = Queue { batches: received, late: Arc::clone(&ends), waiting_bytes: Arc::clone(&waiting_bytes) };
        let qlog = Qlog::in_folder(folder.to_owned()).unwrap();
        let thread = std::thread::spawn(move || {
            held.recv().unwrap();
            queue.write(Some(qlog), None)
        });
        let shared = Shared { work: Mutex::new(Some(Work { batches, thread })), omitted: Arc::default(), ends, waiting_bytes };
        (Recorder { shared: Arc::new(shared) }, go)
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("segstream-recorder-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_recorder_that_falls_behind_delays_nobody_and_its_file_tells_what_is_missing() {
        let folder = folder("behind");
        let (recorder, go) = stalled(&folder, 2);
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
        assert_eq!(recorder.shared.waiting_bytes.load(Ordering::Relaxed), 0, "what was written waits no more");
    }

    #[test]
    fn of_connections_that_come_and_go_while_the_disk_stands_nothing_is_kept() {
        let folder = folder("crowd");
        let (recorder, go) = stalled(&folder, 8);
        let mut recording = Recording::new(recorder.clone(), Duration::ZERO);
        for serial in 0..1000 {
            recording.record_of(serial, || Origin { serial, ..ORIGIN }, batch(TraceEvent::Established, false).events);
            recording.end(serial);
        }
        assert!(recording.connections.is_empty());
        let ends = recorder.shared.ends.lock().unwrap().len();
        assert!(ends <= 8, "{ends} ends of connections wait");
        go.send(()).unwrap();
        recorder.finish().unwrap();
        let files = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!((1..=8).contains(&files) && recorder.events_omitted() >= 992, "{files} files, {}", recorder.events_omitted());
    }

    #[test]
    fn a_disk_that_stands_costs_a_bounded_memory_whatever_the_events_hold() {
        let folder = folder("stands");
        let (recorder, go) = stalled(&folder, BATCHES_MAX);
        // Reports as long as a hostile peer can make them: 2000 frames in one.
        let frame = ReportFrame::Complete { stream: StreamId(1), first: segstream_base::SegmentNumber(0), count: 1 };
        let report = Report { frames: (0..2000).map(|_| frame.clone()).collect(), ..Report::default() };
        let long = |number| {
            let content = Content::Report(Box::new(report.clone()));
            TraceEvent::Received(Shipments { kind: Kind::Report, first: ShipmentNumber(number), count: 1, bytes: 9000, content })
        };
        let accepted = (0..2 * BATCHES_MAX as u64).filter(|number| recorder.hand_over(batch(long(*number), false))).count();
        let waiting = recorder.shared.waiting_bytes.load(Ordering::Relaxed);
        let each = batch(long(0), false).memory_bytes();
        assert!(each > 2000 * size_of::<ReportFrame>() && accepted < BATCHES_MAX, "{accepted} batches of {each} bytes");
        assert!(waiting <= WAITING_BYTES_MAX && waiting + each > WAITING_BYTES_MAX, "{waiting} bytes wait");
        assert_eq!(recorder.events_omitted(), 2 * BATCHES_MAX as u64 - accepted as u64);
        go.send(()).unwrap();
        recorder.finish().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(recorder.shared.waiting_bytes.load(Ordering::Relaxed), 0);
    }
}
