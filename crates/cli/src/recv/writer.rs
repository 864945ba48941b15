//! The thread that writes what is received, so that a slow disk or pipe never keeps the network waiting.
//!
//! Called by the receiver's loop: jobs in, outcomes back, and a wake for each. How much may wait is the caller's
//! decision: every write comes back with its size.
//!
//! Invariant: jobs are done in the order they come; an error ends one file and no other.

use super::Destination;
use super::file_name::FileName;
use super::part_file::PartFile;
use super::sink::Sink;
use crate::content_hash::ContentHash;
use segstream::ConnectionId;
use segstream::{Bytes, StreamId};
use segstream_net::Waker;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A stream of a connection.
pub(super) type Key = (ConnectionId, StreamId);

/// What is to be done.
#[derive(Debug)]
pub(super) enum Job {
    /// A stream begins.
    Open(Key, String),
    /// Bytes of it, at an offset or behind the last.
    Write(Key, Option<u64>, Bytes),
    /// All its bytes have come: hash them.
    Hash(Key),
    /// It is what it should be: give it its name.
    Keep(Key),
    /// It is not, or not whole: leave it as it is.
    Leave(Key),
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// So many bytes do not wait any more.
    Written(u64),
    /// The stream cannot be written, or not any further.
    Failed(Key, String),
    /// Its hash.
    Hashed(Key, Option<String>),
    /// It has its name.
    Kept(Key),
    /// It was left, where there is anything of it.
    Left(Key, Option<String>),
}

/// The thread, from outside.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once it is finished.
    jobs: Option<Sender<Job>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Open {
    sink: Sink,
    hash: ContentHash,
}

#[derive(Debug)]
struct Thread {
    destination: Destination,
    open: BTreeMap<Key, Open>,
    /// Whether the one file of a path has been begun.
    path_taken: bool,
}

impl Writer {
    /// Starts the thread; `waker` wakes whoever waits for outcomes.
    pub(super) fn start(destination: Destination, waker: Waker) -> Self {
        let (jobs, todo) = channel::<Job>();
        let (done, outcomes) = channel();
        let thread = std::thread::spawn(move || {
            let mut thread = Thread { destination, open: BTreeMap::new(), path_taken: false };
            for job in todo {
                for outcome in thread.work(job) {
                    let _ = done.send(outcome);
                }
                waker.wake();
            }
        });
        Self { jobs: Some(jobs), outcomes, thread: Some(thread) }
    }

    /// Has a job done.
    pub(super) fn ask(&self, job: Job) {
        // Why ignored: the thread ends only when this is dropped.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// The next outcome, if there is one.
    pub(super) fn poll(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }

    /// Has everything done that was asked, and nothing any more; what came of it.
    pub(super) fn finish(&mut self) -> Vec<Outcome> {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.outcomes.try_iter().collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Thread {
    fn work(&mut self, job: Job) -> Vec<Outcome> {
        match job {
            Job::Open(key, name) => match self.sink(&name) {
                Ok(sink) => {
                    self.open.insert(key, Open { sink, hash: ContentHash::default() });
                    Vec::new()
                }
                Err(sentence) => vec![Outcome::Failed(key, sentence)],
            },
            Job::Write(key, offset, bytes) => {
                let written = Outcome::Written(bytes.len() as u64);
                match self.write(key, offset, &bytes) {
                    Ok(()) => vec![written],
                    Err(sentence) => vec![written, Outcome::Failed(key, sentence)],
                }
            }
            Job::Hash(key) => self.hash(key),
            Job::Keep(key) => match self.open.remove(&key).map(|open| open.sink) {
                Some(Sink::Part(part)) => match part.keep() {
                    Ok(()) => vec![Outcome::Kept(key)],
                    Err(sentence) => vec![Outcome::Failed(key, sentence)],
                },
                Some(_) => vec![Outcome::Kept(key)],
                None => Vec::new(),
            },
            Job::Leave(key) => match self.open.remove(&key).map(|open| open.sink) {
                Some(Sink::Part(part)) => vec![Outcome::Left(key, Some(part.path()))],
                _ => vec![Outcome::Left(key, None)],
            },
        }
    }

    fn sink(&mut self, name: &str) -> Result<Sink, String> {
        match &self.destination {
            Destination::Nowhere => Ok(Sink::Discarded),
            Destination::StandardOutput => Ok(Sink::StandardOutput),
            Destination::Device(device) => Ok(Sink::Device(Arc::clone(device))),
            Destination::Directory(directory) => PartFile::create(directory, FileName::parse(name)?).map(Sink::Part),
            Destination::Path(path) => {
                if std::mem::replace(&mut self.path_taken, true) {
                    return Err("the receiver writes one file only; send one file, or let it write to a directory".to_owned());
                }
                let (directory, name) = split(path)?;
                PartFile::create(&directory, name).map(Sink::Part)
            }
        }
    }

    fn write(&mut self, key: Key, offset: Option<u64>, bytes: &[u8]) -> Result<(), String> {
        // What comes after a failure is thrown away.
        let Some(open) = self.open.get_mut(&key) else { return Ok(()) };
        let offset = offset.unwrap_or(open.hash.bytes());
        let written = open.sink.write_at(bytes, offset);
        open.hash.write(offset, bytes);
        written.map_err(|error| {
            let place = self.open.remove(&key).map_or_else(String::new, |open| open.sink.place());
            format!("{place} cannot be written any further: {error}")
        })
    }

    fn hash(&mut self, key: Key) -> Vec<Outcome> {
        let Some(open) = self.open.get_mut(&key) else { return Vec::new() };
        let hash = std::mem::take(&mut open.hash);
        let hashed = hash.finish(|offset, buffer| open.sink.read_at(buffer, offset));
        match hashed {
            Ok(hash) => vec![Outcome::Hashed(key, hash)],
            Err(error) => {
                self.open.remove(&key);
                vec![Outcome::Failed(key, format!("what was written cannot be read back: {error}"))]
            }
        }
    }
}

/// The directory and the name of the file at `path`.
pub(super) fn split(path: &Path) -> Result<(PathBuf, FileName), String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((directory.to_owned(), FileName::parse(name)?))
}
