//! The thread that looks at what a receiver has: for every offer whether it is wanted, and from where.
//!
//! Called by the receiver's loop: offers in, replies back, and a wake-up for each batch. It makes directories and links at once.
//!
//! ```text
//! nothing of that name             wanted from its beginning, or from where the part of the same transfer ends
//! a file of the same length        its hash is told: the sender compares, and need not send it
//! another file                     as --overwrite says
//! ```
//!
//! Invariant: what is read to answer an offer is read in this thread, so that it keeps no connection waiting but for its own offers.
//! Invariant: a link leads to nothing outside of what was sent.
//!
//! Limit: a sender that is admitted can have each file of the directory read once for each of its offers.

use super::Destination;
use super::file_name::SafePath;
use super::sink::{split, unusable};
use super::storage::{Directory, Disk as _, Existing, Inode, Resumable, TransferId, find};
use crate::manifest::{Kind, Offer};
use clap::ValueEnum;
use segstream::{ConnectionId, Fingerprint};
use segstream_net::Waker;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Files shorter than this have no journal: they are sent anew.
pub(super) const JOURNAL_BYTES_MIN: u64 = 256 * 1024;
/// How much of a file is read at a time.
const READ_BYTES: usize = 256 * 1024;

/// Which files give way to those that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Overwrite {
    /// None. One that differs is an error.
    Never,
    /// Those that were changed before the sender's.
    Newer,
    /// All that differ.
    Always,
}

/// What a receiver replies to an offer.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// It is wanted; whether the file that has its name gives way.
    Want(bool),
    /// It is wanted from where a part ends; whether the file that has its name gives way.
    Resume(Box<Resumable>, bool),
    /// There is a file of this length and hash; whether it gives way, and whether it stays because it is newer.
    Has { hash: String, replaces: bool, newer: bool },
    /// What is here is newer and stays.
    Newer,
    /// A directory or link that is there now.
    Made,
    /// Not wanted: why.
    Refused(String),
}

/// What the thread is asked.
#[derive(Debug)]
pub(super) enum Question {
    /// What is wanted of these offers of a sender.
    Offers(ConnectionId, Option<Fingerprint>, Vec<Offer>),
    /// These directories are complete.
    Finished(ConnectionId, Vec<Offer>),
}

/// What the thread answers.
#[derive(Debug)]
pub(super) enum Finding {
    Replies(ConnectionId, Vec<(u64, Reply)>),
    /// So many directories have their times.
    Finished(ConnectionId, u64),
}

/// A handle of the thread.
#[derive(Debug)]
pub(super) struct Checks {
    questions: Option<Sender<Question>>,
    findings: Receiver<Finding>,
    thread: Option<JoinHandle<()>>,
}

impl Checks {
    /// Starts the thread; `waker` wakes whoever waits for findings.
    pub(super) fn start(destination: Destination, overwrite: Overwrite, hidden: bool, waker: Waker) -> Self {
        let (questions, todo) = channel::<Question>();
        let (done, findings) = channel();
        let thread = std::thread::spawn(move || {
            let mut thread = Thread { destination, overwrite, hidden, directory: None };
            while let Ok(question) = todo.recv() {
                let _ = done.send(thread.answer(question));
                waker.wake();
            }
        });
        Self { questions: Some(questions), findings, thread: Some(thread) }
    }

    /// Queues a question.
    pub(super) fn ask(&self, question: Question) {
        // Why ignored: the thread ends only when this is dropped.
        let _ = self.questions.as_ref().map(|questions| questions.send(question));
    }

    /// The next finding, if there is one.
    pub(super) fn poll(&self) -> Option<Finding> {
        self.findings.try_recv().ok()
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Thread {
    destination: Destination,
    overwrite: Overwrite,
    hidden: bool,
    /// The directory of --out, once it was needed.
    directory: Option<Directory>,
}

impl Thread {
    fn answer(&mut self, question: Question) -> Finding {
        match question {
            Question::Offers(id, sender, offers) => {
                let replies = offers.iter().map(|offer| (offer.offer, self.check(offer, sender))).collect();
                Finding::Replies(id, replies)
            }
            Question::Finished(id, directories) => {
                directories.iter().for_each(|offer| self.finish(offer));
                Finding::Finished(id, directories.len() as u64)
            }
        }
    }

    fn check(&mut self, offer: &Offer, sender: Option<Fingerprint>) -> Reply {
        let (path, name) = match &self.destination {
            Destination::Nowhere if offer.kind == Kind::File => return Reply::Want(false),
            Destination::Nowhere => return Reply::Made,
            _ if offer.kind != Kind::File && !matches!(self.destination, Destination::Directory(_)) => {
                let what = if offer.kind == Kind::Link { "link" } else { "directory" };
                return Reply::Refused(format!("{} is a {what}, and --out of the receiver is no directory", offer.name));
            }
            Destination::StandardOutput | Destination::Device(_) => return Reply::Want(false),
            Destination::Path(path) => match split(path) {
                Ok(split) => split,
                Err(sentence) => return Reply::Refused(sentence),
            },
            Destination::Directory(path) => match SafePath::of_path(&offer.name, self.hidden) {
                Ok(name) => (path.clone(), name),
                Err(sentence) => return Reply::Refused(sentence),
            },
        };
        if self.directory.is_none() {
            match Directory::open(&path) {
                Ok(directory) => self.directory = Some(directory),
                Err(error) => return Reply::Refused(unusable(&error)),
            }
        }
        let Some(directory) = &self.directory else { return Reply::Want(false) };
        let checked = match offer.kind {
            Kind::Directory => make_directory(directory, &name, offer),
            Kind::Link => make_link(directory, &name, offer),
            Kind::File => self.check_file(directory, &name, offer, sender),
        };
        checked.unwrap_or_else(|error| Reply::Refused(format!("{name} cannot be created: {error}")))
    }

    fn check_file(&self, directory: &Directory, name: &SafePath, offer: &Offer, sender: Option<Fingerprint>) -> io::Result<Reply> {
        let mut replaces = false;
        if let Some(existing) = directory.existing(name.as_str())? {
            if !existing.is_file {
                return Ok(Reply::Refused(format!("{name} exists at the receiver and is no file")));
            }
            let newer = self.overwrite == Overwrite::Newer && offer.mtime.is_none_or(|mtime| mtime <= existing.mtime);
            replaces = self.overwrite != Overwrite::Never && !newer;
            if existing.bytes == offer.bytes {
                if offer.bytes >= JOURNAL_BYTES_MIN {
                    // Why: a receiver that was killed behind the rename has left the journal, and this removes one without a part.
                    find(directory, name, &transfer_id(offer, sender))?;
                }
                let hash = hash(directory, name.as_str(), existing)?;
                return Ok(Reply::Has { hash, replaces, newer });
            }
            if newer {
                return Ok(Reply::Newer);
            }
            if !replaces {
                return Ok(Reply::Refused(differs(name.as_str())));
            }
        }
        if offer.bytes >= JOURNAL_BYTES_MIN {
            let transfer = transfer_id(offer, sender);
            if let Some(resumable) = find(directory, name, &transfer)?.filter(|found| found.bytes <= offer.bytes) {
                return Ok(Reply::Resume(Box::new(resumable), replaces));
            }
        }
        Ok(Reply::Want(replaces))
    }

    /// A directory is complete: it gets its time.
    fn finish(&self, offer: &Offer) {
        let name = SafePath::of_path(&offer.name, self.hidden);
        if let (Some(directory), Ok(name), Some(mtime)) = (&self.directory, name, offer.mtime) {
            // Why ignored: somebody else's directory may refuse it, and nothing is lost.
            let _ = directory.set_directory_time(name.as_str(), mtime);
        }
    }
}

/// Which transfer an offer is.
pub(super) fn transfer_id(offer: &Offer, sender: Option<Fingerprint>) -> TransferId {
    TransferId::new(sender, &offer.name, offer.bytes, offer.mtime)
}

/// What a sender is told of a file that is there and differs.
pub(super) fn differs(name: &str) -> String {
    format!(
        "{name} exists at the receiver and is not overwritten; remove it, send under another name, or let the receiver be started with \
         --overwrite"
    )
}

fn make_directory(directory: &Directory, name: &SafePath, offer: &Offer) -> io::Result<Reply> {
    // Why its owner may do everything: the files in it are still to come.
    let is_new = directory.make_directory(name.as_str(), offer.mode.unwrap_or(0o777) | 0o700)?;
    if is_new || directory.existing(name.as_str())?.is_some_and(|existing| existing.is_directory) {
        return Ok(Reply::Made);
    }
    Ok(Reply::Refused(format!("{name} exists at the receiver and is no directory")))
}

fn make_link(directory: &Directory, name: &SafePath, offer: &Offer) -> io::Result<Reply> {
    let Some(target) = offer.target.as_deref().filter(|target| name.keeps(target)) else {
        return Ok(Reply::Refused(format!("{name} is a link that leads out of the directory that is sent, and is refused")));
    };
    match directory.make_link(name.as_str(), target) {
        Ok(()) => Ok(Reply::Made),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_same = directory.link_target(name.as_str()).is_ok_and(|there| there == target.as_bytes());
            Ok(if is_same { Reply::Made } else { Reply::Refused(differs(name.as_str())) })
        }
        Err(error) => Err(error),
    }
}

/// BLAKE3 of a file that is there.
fn hash(directory: &Directory, name: &str, existing: Existing) -> io::Result<String> {
    let inode: Inode = existing.inode;
    let file = directory.open_to_read(name, inode)?;
    let (mut hasher, mut at, mut buffer) = (blake3::Hasher::new(), 0, vec![0; READ_BYTES]);
    loop {
        match directory.read_at(&file, &mut buffer, at)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            count => {
                hasher.update(buffer.get(..count).unwrap_or(&[]));
                at += count as u64;
            }
        }
    }
}
