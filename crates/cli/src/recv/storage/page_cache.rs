//! A model of a file system with a page cache: what is written is lost in a crash unless it was synced.
//!
//! Called by the tests of storage: it takes the place of a directory, counts its calls, lets one of them fail, and says what a
//! crash may leave.
//!
//! Invariant: it promises no more than POSIX does: data reach the medium in any order and in part, a name independently of its
//! data and of other names, until the one or the other is synced. After a failed sync the data are lost although the next
//! sync succeeds (as on Linux).

use super::disk::{Disk, Existing, Inode};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Fails(io::ErrorKind),
    /// A write takes one byte.
    Short,
    /// The system crashes before the call; all later ones fail.
    Crash,
}

/// A file's bytes.
#[derive(Clone, Debug, Default)]
struct Content {
    cached: Vec<u8>,
    /// On the medium.
    synced: Vec<u8>,
    /// Whether a sync has failed, so that nothing reaches the medium any more.
    is_lost: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Created(String, usize),
    Renamed(String, String, usize),
    Removed(String),
}

impl NameChange {
    /// The directory that it changes; a rename the one where the new name is.
    fn directory(&self) -> &str {
        let (Self::Created(name, _) | Self::Renamed(_, name, _) | Self::Removed(name)) = self;
        directory(name)
    }

    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Created(name, content) => drop(names.insert(name.clone(), *content)),
            Self::Renamed(from, to, content) => {
                names.remove(from);
                names.insert(to.clone(), *content);
            }
            Self::Removed(name) => drop(names.remove(name)),
        }
    }
}

/// The directory of a name.
fn directory(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

#[derive(Debug, Default)]
struct State {
    contents: Vec<Content>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    /// Since names were synced.
    changes: Vec<NameChange>,
    calls: usize,
    fault: Option<(usize, Fault)>,
    crashed: bool,
}

/// The file system.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    state: RefCell<State>,
    open: Rc<Cell<usize>>,
    open_max: Cell<usize>,
}

/// An open file, counted while it is.
#[derive(Debug)]
pub(super) struct OpenFile {
    content: usize,
    open: Rc<Cell<usize>>,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.open.set(self.open.get() - 1);
    }
}

impl PageCache {
    /// One whose call number `at` has a fault.
    pub(super) fn with_fault(at: usize, fault: Fault) -> Self {
        Self { state: RefCell::new(State { fault: Some((at, fault)), ..State::default() }), ..Self::default() }
    }

    /// How many calls there were.
    pub(super) fn calls(&self) -> usize {
        self.state.borrow().calls
    }

    /// The most files that were open at a time.
    pub(super) const fn open_max(&self) -> usize {
        self.open_max.get()
    }

    /// The names and contents that programs see.
    pub(super) fn seen(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state.borrow();
        state.names.iter().map(|(name, content)| (name.clone(), state.contents[*content].cached.clone())).collect()
    }

    /// The names and contents that a crash leaves now; which of many possibilities, `choose` decides: a number below its
    /// argument each time.
    pub(super) fn after_crash(&self, choose: impl FnMut(u64) -> u64) -> BTreeMap<String, Vec<u8>> {
        self.restarted(choose).seen()
    }

    /// The file system after a crash now and a restart; which of many possibilities, `choose` decides.
    pub(super) fn restarted(&self, mut choose: impl FnMut(u64) -> u64) -> Self {
        let state = self.state.borrow();
        let mut names = state.synced_names.clone();
        for change in &state.changes {
            if choose(2) == 1 {
                change.apply(&mut names);
            }
        }
        let left = |content: &Content| {
            let bytes = content.left(&mut choose);
            Content { cached: bytes.clone(), synced: bytes, is_lost: false }
        };
        let contents = state.contents.iter().map(left).collect();
        let state = State { contents, synced_names: names.clone(), names, ..State::default() };
        Self { state: RefCell::new(state), ..Self::default() }
    }

    /// The same with a fault at call number `at` from now on.
    pub(super) fn faulty(self, at: usize, fault: Fault) -> Self {
        self.state.borrow_mut().fault = Some((at, fault));
        self
    }

    /// Counts a call; an error when it fails, the fault when it is a lesser one.
    fn call(&self) -> io::Result<Option<Fault>> {
        let mut state = self.state.borrow_mut();
        let this = state.calls;
        state.calls += 1;
        let fault = state.fault.filter(|(at, _)| *at == this).map(|(_, fault)| fault);
        state.crashed |= fault == Some(Fault::Crash);
        match fault {
            _ if state.crashed => Err(io::Error::other("the system has crashed")),
            Some(Fault::Fails(kind)) => Err(kind.into()),
            fault => Ok(fault),
        }
    }

    fn opened(&self, content: usize) -> OpenFile {
        self.open.set(self.open.get() + 1);
        self.open_max.set(self.open_max.get().max(self.open.get()));
        OpenFile { content, open: Rc::clone(&self.open) }
    }
}

impl Content {
    /// What a crash leaves of it: the medium's bytes, with any of those in the cache that differ.
    fn left(&self, choose: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
        if self.is_lost || self.cached == self.synced {
            return self.synced.clone();
        }
        let mut left = self.synced.clone();
        let length = [self.synced.len(), self.cached.len(), choose(self.cached.len() as u64 + 1) as usize][choose(3) as usize];
        left.resize(length.max(self.synced.len()), 0);
        for (byte, cached) in left.iter_mut().zip(&self.cached) {
            if choose(2) == 1 {
                *byte = *cached;
            }
        }
        left
    }
}

impl Disk for PageCache {
    type File = OpenFile;

    fn existing(&self, name: &str) -> io::Result<Option<Existing>> {
        self.call()?;
        let state = self.state.borrow();
        let found = state.names.get(name).map(|content| (state.contents[*content].cached.len(), *content));
        Ok(found.map(|(length, content)| Existing {
            is_file: true,
            is_directory: false,
            bytes: length as u64,
            mtime: (0, 0),
            inode: content as u64,
        }))
    }

    fn create(&self, name: &str, _mode: u32) -> io::Result<(OpenFile, Inode)> {
        self.call()?;
        let mut state = self.state.borrow_mut();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = state.contents.len();
        state.contents.push(Content::default());
        state.names.insert(name.to_owned(), content);
        state.changes.push(NameChange::Created(name.to_owned(), content));
        Ok((self.opened(content), content as u64))
    }

    fn open(&self, name: &str, inode: Inode) -> io::Result<OpenFile> {
        self.call()?;
        let content = self.state.borrow().names.get(name).copied().ok_or(io::ErrorKind::NotFound)?;
        if inode != content as u64 {
            return Err(io::Error::other("another file has its name now"));
        }
        Ok(self.opened(content))
    }

    fn lock(&self, _file: &OpenFile) -> io::Result<bool> {
        self.call().map(|_| true)
    }

    fn set_attributes(&self, _file: &OpenFile, _mode: Option<u32>, _mtime: Option<(i64, u32)>) -> io::Result<()> {
        self.call().map(drop)
    }

    fn write_at(&self, file: &OpenFile, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let count = if self.call()? == Some(Fault::Short) { bytes.len().min(1) } else { bytes.len() };
        let cached = &mut self.state.borrow_mut().contents[file.content].cached;
        let end = offset as usize + count;
        cached.resize(cached.len().max(end), 0);
        cached[offset as usize..end].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn read_at(&self, file: &OpenFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.call()?;
        let state = self.state.borrow();
        let rest = state.contents[file.content].cached.get(offset as usize..).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn set_len(&self, file: &OpenFile, length: u64) -> io::Result<()> {
        self.call()?;
        self.state.borrow_mut().contents[file.content].cached.resize(length as usize, 0);
        Ok(())
    }

    fn sync(&self, file: &OpenFile) -> io::Result<()> {
        let result = self.call();
        let content = &mut self.state.borrow_mut().contents[file.content];
        content.is_lost |= result.is_err();
        result?;
        if !content.is_lost {
            content.synced = content.cached.clone();
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str, replaces: bool) -> io::Result<()> {
        self.call()?;
        let mut state = self.state.borrow_mut();
        if state.names.contains_key(to) && !replaces {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), content);
        state.changes.push(NameChange::Renamed(from.to_owned(), to.to_owned(), content));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call()?;
        let mut state = self.state.borrow_mut();
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.changes.push(NameChange::Removed(name.to_owned()));
        Ok(())
    }

    fn sync_names(&self, name: &str) -> io::Result<()> {
        self.call()?;
        let state = &mut *self.state.borrow_mut();
        let here = directory(name);
        let (synced, left) = std::mem::take(&mut state.changes).into_iter().partition(|change| change.directory() == here);
        state.changes = left;
        let synced: Vec<NameChange> = synced;
        synced.iter().for_each(|change| change.apply(&mut state.synced_names));
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        let result = self.call();
        let state = &mut *self.state.borrow_mut();
        for content in &mut state.contents {
            content.is_lost |= result.is_err() && content.cached != content.synced;
            if result.is_ok() && !content.is_lost {
                content.synced = content.cached.clone();
            }
        }
        result?;
        state.changes.clear();
        state.synced_names = state.names.clone();
        Ok(())
    }

    fn make_directory(&self, _name: &str, _mode: u32) -> io::Result<bool> {
        self.call().map(|_| true)
    }

    fn make_scratch(&self) -> io::Result<String> {
        self.call().map(|_| ".segstream.0.part".to_owned())
    }
}
