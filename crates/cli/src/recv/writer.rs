//! The thread that writes what is received, so that a slow disk or pipe never keeps the network waiting.
//!
//! Called by the receiver's loop: jobs in, completions back, and a wake-up for each. The caller bounds the queue:
//! every completed write says its size.
//!
//! Invariant: jobs are done in the order they come, but for whole files: those are kept in groups, which are synced together.
//! An error ends one file and no other.

use super::sink::{Attributes, Sink, Taken};
use super::storage::{Beginning, INTERVAL_BYTES, Kept, Small};
use crate::content_hash::ContentHash;
use segstream::ConnectionId;
use segstream::{Bytes, StreamId};
use segstream_net::Waker;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A group of whole files is kept when so many jobs have come since its first, or sooner, when no job waits.
const GROUP_JOBS_MAX: usize = 256;
/// How long a file is written until its journal says how far, if something was.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// A stream of a connection.
pub(super) type Key = (ConnectionId, StreamId);

/// A file in a pack.
#[derive(Debug)]
pub(super) struct Packed {
    /// Its offer.
    pub(super) offer: u64,
    pub(super) name: String,
    pub(super) attributes: Attributes,
    /// BLAKE3 of it, as the sender says.
    pub(super) blake3: String,
    /// Where it is in the pack.
    pub(super) place: Range<usize>,
}

/// A request to the writer thread.
#[derive(Debug)]
pub(super) enum Job {
    /// Begins the destination of a stream.
    Open(Key, String, Attributes, Beginning),
    /// Writes bytes at an offset, or at the end. The ranges are missing, and zeros.
    Write(Key, Option<u64>, Bytes, Vec<Range<usize>>),
    /// Writes the files of a pack.
    Unpack(ConnectionId, Bytes, Vec<Packed>),
    /// The stream is complete: computes its content hash.
    Hash(Key),
    /// The hash is right: renames the part file to its final name.
    Keep(Key),
    /// Incomplete, or wrong: keeps the part file under its provisional name.
    Leave(Key, bool),
}

/// The result of a job.
#[derive(Debug)]
pub(super) enum Completion {
    /// So many bytes have left the queue, written or failed.
    Written(u64),
    /// Writing failed; nothing more of the stream is written.
    Failed(Key, String),
    /// The content hash; `None` where the bytes cannot be read back.
    Hashed(Key, Option<String>),
    /// The file has its final name, and whether it would survive a power cut.
    Renamed(Key, bool),
    /// What became of the files of packs: whether each would survive a power cut, or a sentence.
    Unpacked(ConnectionId, Vec<(u64, Kept)>),
    /// The part file was kept; its path, if there is one.
    Left(Key, Option<String>),
}

/// A handle of the writer thread.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once it is finished.
    jobs: Option<Sender<Job>>,
    completions: Receiver<Completion>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Open {
    /// Whether a segment has come with holes: then nothing is left to compare.
    has_holes: bool,
    hash: ContentHash,
    /// Where the next bytes go that have no place of their own.
    end: u64,
    /// When the journal was written last.
    noted_at: Instant,
}

/// What the thread does next.
#[derive(Debug)]
enum Next {
    Job(Job),
    /// The group of whole files is kept.
    Group,
}

/// Whole files that are to be kept.
#[derive(Debug, Default)]
struct Group {
    streams: Vec<Key>,
    /// Files of packs: connection, offer, and where it is.
    small: Vec<(ConnectionId, u64, Small)>,
    /// How many jobs have come since the first.
    jobs: usize,
}

#[derive(Debug)]
struct Thread {
    sink: Sink<Key>,
    open: BTreeMap<Key, Open>,
    group: Group,
}

impl Writer {
    /// Starts the thread; `waker` wakes whoever waits for completions.
    pub(super) fn start(sink: Sink<Key>, waker: Waker) -> Self {
        let (jobs, todo) = channel::<Job>();
        let (done, completions) = channel();
        let thread = std::thread::spawn(move || {
            let mut thread = Thread { sink, open: BTreeMap::new(), group: Group::default() };
            while let Some(next) = thread.next(&todo) {
                let told = match next {
                    Next::Job(job) => thread.work(job),
                    Next::Group => thread.keep(),
                };
                for completion in told {
                    let _ = done.send(completion);
                }
                waker.wake();
            }
        });
        Self { jobs: Some(jobs), completions, thread: Some(thread) }
    }

    /// Queues a job.
    pub(super) fn ask(&self, job: Job) {
        // Why ignored: the thread ends only when this is dropped.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// The next completion, if there is one.
    pub(super) fn poll(&self) -> Option<Completion> {
        self.completions.try_recv().ok()
    }

    /// Waits until all queued jobs are done and ends the thread; the results.
    pub(super) fn finish(&mut self) -> Vec<Completion> {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.completions.try_iter().collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Group {
    const fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.small.is_empty()
    }
}

impl Thread {
    /// What is next, waiting for a job if need be; nothing when all is done.
    fn next(&mut self, todo: &Receiver<Job>) -> Option<Next> {
        if self.group.is_empty() {
            return todo.recv().ok().map(Next::Job);
        }
        self.group.jobs += 1;
        if self.group.jobs > GROUP_JOBS_MAX {
            return Some(Next::Group);
        }
        Some(todo.try_recv().map_or(Next::Group, Next::Job))
    }

    fn work(&mut self, job: Job) -> Vec<Completion> {
        match job {
            Job::Open(key, name, attributes, beginning) => self.begin(key, &name, attributes, beginning),
            Job::Write(key, offset, bytes, missing) => {
                let written = Completion::Written(bytes.len() as u64);
                match self.write(key, offset, &bytes, &missing) {
                    Ok(()) => vec![written],
                    Err(sentence) => vec![written, self.fail(key, sentence)],
                }
            }
            Job::Unpack(id, bytes, packed) => self.unpack(id, &bytes, packed),
            Job::Hash(key) => self.hash(key),
            Job::Keep(key) => {
                self.group.streams.extend(self.open.remove(&key).map(|_| key));
                Vec::new()
            }
            Job::Leave(key, is_wrong) => {
                if !is_wrong {
                    // Why ignored: without the line the transfer goes on a little before.
                    let _ = self.note(key);
                }
                self.open.remove(&key);
                vec![Completion::Left(key, self.sink.leave(key, is_wrong))]
            }
        }
    }

    fn begin(&mut self, key: Key, name: &str, attributes: Attributes, beginning: Beginning) -> Vec<Completion> {
        let (hash, end) = match &beginning {
            Beginning::Resumed(resumable) => (ContentHash::resumed(*resumable.hasher.clone(), resumable.bytes), resumable.bytes),
            Beginning::Plain | Beginning::New(_) => (ContentHash::default(), 0),
        };
        match self.sink.begin(key, name, attributes, beginning) {
            Ok(()) => {
                self.open.insert(key, Open { has_holes: false, hash, end, noted_at: Instant::now() });
                Vec::new()
            }
            Err(sentence) => vec![Completion::Failed(key, sentence)],
        }
    }

    /// Writes the files of a pack; those that fail are told, the others join the group.
    fn unpack(&mut self, id: ConnectionId, bytes: &Bytes, packed: Vec<Packed>) -> Vec<Completion> {
        let mut told = Vec::new();
        for Packed { offer, name, attributes, blake3, place } in packed {
            let content = bytes.get(place).unwrap_or(&[]);
            if blake3::hash(content).to_hex().as_str() != blake3 {
                told.push((offer, Err(format!("{name:?} is not what the sender sent: its content hash differs; let it be sent again"))));
                continue;
            }
            match self.sink.put(&name, attributes, content) {
                Ok(Taken::Written(small)) => self.group.small.push((id, offer, small)),
                Ok(Taken::Discarded) => told.push((offer, Ok(false))),
                Err(sentence) => told.push((offer, Err(sentence))),
            }
        }
        let written = Completion::Written(bytes.len() as u64);
        if told.is_empty() { vec![written] } else { vec![written, Completion::Unpacked(id, told)] }
    }

    /// Keeps the group of whole files.
    fn keep(&mut self) -> Vec<Completion> {
        let Group { streams, small, .. } = std::mem::take(&mut self.group);
        let (offers, small): (Vec<_>, Vec<_>) = small.into_iter().map(|(id, offer, small)| ((id, offer), small)).unzip();
        let (streams, smalls) = self.sink.keep(streams, &small);
        let mut unpacked: BTreeMap<ConnectionId, Vec<(u64, Kept)>> = BTreeMap::new();
        for ((id, offer), kept) in offers.into_iter().zip(smalls) {
            unpacked.entry(id).or_default().push((offer, kept));
        }
        let streams = streams.into_iter().map(|(key, result)| match result {
            Ok(durable) => Completion::Renamed(key, durable),
            Err(sentence) => self.fail(key, sentence),
        });
        streams.collect::<Vec<_>>().into_iter().chain(unpacked.into_iter().map(|(id, told)| Completion::Unpacked(id, told))).collect()
    }

    fn fail(&mut self, key: Key, sentence: String) -> Completion {
        self.open.remove(&key);
        self.sink.leave(key, false);
        Completion::Failed(key, sentence)
    }

    fn write(&mut self, key: Key, offset: Option<u64>, bytes: &[u8], missing: &[Range<usize>]) -> Result<(), String> {
        // Bytes after a failure are discarded.
        let Some(open) = self.open.get_mut(&key) else { return Ok(()) };
        let offset = offset.unwrap_or(open.end);
        open.end = open.end.max(offset.saturating_add(bytes.len() as u64));
        open.has_holes |= !missing.is_empty();
        if !open.has_holes {
            open.hash.write(offset, bytes);
        }
        let written = self.sink.write_around(key, bytes, missing, offset);
        written
            .and_then(|()| self.note_if_due(key))
            .map_err(|error| format!("{} cannot be written any further: {error}", self.sink.place(key)))
    }

    fn note_if_due(&mut self, key: Key) -> std::io::Result<()> {
        let Some((open, noted)) = self.open.get(&key).zip(self.sink.noted_to(key)) else { return Ok(()) };
        let since = open.hash.known_without_gap().saturating_sub(noted);
        if since >= INTERVAL_BYTES || (since > 0 && open.noted_at.elapsed() >= NOTE_INTERVAL) { self.note(key) } else { Ok(()) }
    }

    /// Writes in the journal of a file how far it is written.
    fn note(&mut self, key: Key) -> std::io::Result<()> {
        let Some((open, noted)) = self.open.get_mut(&key).zip(self.sink.noted_to(key)) else { return Ok(()) };
        if open.has_holes || open.hash.known_without_gap() <= noted {
            return Ok(());
        }
        let read_back = |offset, buffer: &mut [u8]| self.sink.read_at(key, buffer, offset).unwrap_or(Ok(0));
        let (bytes, hash) = open.hash.without_gap(read_back)?;
        self.sink.note(key, bytes, &hash)?;
        open.noted_at = Instant::now();
        Ok(())
    }

    fn hash(&mut self, key: Key) -> Vec<Completion> {
        let Some(open) = self.open.get_mut(&key) else { return Vec::new() };
        if open.has_holes {
            return vec![Completion::Hashed(key, None)];
        }
        let hashed = std::mem::take(&mut open.hash).finish(|offset, buffer| self.sink.read_at(key, buffer, offset));
        match hashed {
            Ok(hash) => vec![Completion::Hashed(key, hash)],
            Err(error) => vec![self.fail(key, format!("what was written cannot be read back: {error}"))],
        }
    }
}
