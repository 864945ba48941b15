//! Whole files get their names: a group at a time, with one sync for all.
//!
//! Called by the writer thread when a group is full, or when nothing else is to be done.
//!
//! ```text
//! data of all ── sync ── rename each ── sync ── durable
//! ```
//!
//! Invariant: nothing of a group is called durable before the whole group is.
//! Invariant: a file that fails harms no other, but a sync that fails is the failure of all that it was for.
//!
//! Source: syncfs(2). One call writes everything that was written before, where a call for each file would wait for the medium each time.

use super::journal::Journal;
use super::{Disk, Durability, Storage, Target, USUAL_MODE, not_begun, write_all};
use std::io;

/// A group of more files than this is synced as a whole.
const SINGLE_SYNCS_MAX: usize = 2;

/// A small file that is written and has not got its name yet.
#[derive(Debug)]
pub(in crate::recv) struct Small {
    target: Target,
    /// Where it is.
    at: String,
}

/// What became of a file: whether it is durable, or a sentence.
pub(in crate::recv) type Kept = Result<bool, String>;

impl<D: Disk, K: Copy + Ord> Storage<D, K> {
    /// Writes a small file whole.
    pub(in crate::recv) fn put(&mut self, target: Target, content: &[u8]) -> Result<Small, String> {
        let name = target.name.clone();
        self.try_put(target, content).map_err(|error| format!("{name} cannot be written: {error}"))
    }

    fn try_put(&mut self, target: Target, content: &[u8]) -> io::Result<Small> {
        if self.scratch.is_none() {
            self.scratch = Some(self.disk.make_scratch()?);
        }
        let at = format!("{}/{}", self.scratch.as_deref().unwrap_or(""), self.small);
        self.small += 1;
        let (file, _) = self.disk.create(&at, target.mode.unwrap_or(USUAL_MODE))?;
        let written = write_all(&self.disk, &file, content, 0)
            .and_then(|()| target.mtime.map_or(Ok(()), |mtime| self.disk.set_attributes(&file, None, Some(mtime))));
        if let Err(error) = written {
            // Why ignored: the first error counts, and the next receiver removes it.
            let _ = self.disk.remove(&at);
            return Err(error);
        }
        Ok(Small { target, at })
    }

    /// Gives whole files their names. What became of each.
    pub(in crate::recv) fn keep(&mut self, keys: Vec<K>, small: &[Small]) -> (Vec<(K, Kept)>, Vec<Kept>) {
        let syncs = self.durability >= Durability::File;
        let at_once = syncs && (!small.is_empty() || keys.len() > SINGLE_SYNCS_MAX);
        let mut streams: Vec<(K, Kept)> = keys.into_iter().map(|key| (key, self.complete(key, syncs && !at_once))).collect();
        let mut smalls: Vec<Kept> = small.iter().map(|_| Ok(false)).collect();
        if at_once && let Err(error) = self.disk.sync_all() {
            fail(&mut streams, &mut smalls, &format!("it cannot be written to disk: {error}"));
        }
        let (mut is_nested, mut journals) = (false, Vec::new());
        for (key, kept) in streams.iter_mut().filter(|(_, kept)| kept.is_ok()) {
            is_nested |= self.parts.get(key).is_some_and(|part| part.target.name.is_nested());
            *kept = self.rename_part(*key, &mut journals);
        }
        for (kept, small) in smalls.iter_mut().zip(small) {
            match kept {
                Ok(_) => *kept = self.rename(&small.at, &small.target),
                Err(_) => drop(self.disk.remove(&small.at)),
            }
        }
        let any = streams.iter().any(|(_, kept)| kept.is_ok()) || smalls.iter().any(Result::is_ok);
        if self.durability < Durability::Directory || !any {
            self.remove(&journals);
            return (streams, smalls);
        }
        // Why everything when a name is nested: the directories on the way to it may be new too.
        let synced = if at_once || is_nested { self.disk.sync_all() } else { self.disk.sync_names("") };
        match synced {
            Ok(()) => {
                let all = streams.iter_mut().map(|(_, kept)| kept).chain(&mut smalls);
                all.filter(|kept| kept.is_ok()).for_each(|kept| *kept = Ok(true));
                // Why only now: a crash could keep that the journal is gone, and not the new name of its part.
                self.remove(&journals);
            }
            Err(error) => fail(&mut streams, &mut smalls, &format!("its name cannot be written to disk at the receiver: {error}")),
        }
        (streams, smalls)
    }

    fn rename_part(&mut self, key: K, journals: &mut Vec<Journal>) -> Kept {
        let Some(part) = self.parts.get(&key) else { return Err("it was not begun".to_owned()) };
        let from = part.created.as_ref().map_or("", |(from, _)| from.as_str());
        self.rename(from, &part.target)?;
        journals.extend(part.journal.clone());
        self.leave(key, false);
        Ok(false)
    }

    fn remove(&self, journals: &[Journal]) {
        for journal in journals {
            // Why ignored: a journal without its part is nobody's, and removed when its name is needed.
            let _ = journal.remove(&self.disk);
        }
    }

    fn rename(&self, from: &str, target: &Target) -> Kept {
        let name = &target.name;
        match self.disk.rename(from, name.as_str(), target.replaces) {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(format!("{name} has come into being meanwhile and is not overwritten; what was received is in {from}"))
            }
            Err(error) => Err(format!("{from} cannot be renamed to {name}: {error}")),
        }
    }

    /// Gives a whole file its length and attributes, and syncs its data if `syncs`.
    fn complete(&mut self, key: K, syncs: bool) -> Kept {
        let name = self.parts.get(&key).map(|part| part.target.name.clone());
        let result = self.try_complete(key, syncs);
        result.map(|()| false).map_err(|error| match name {
            Some(name) => format!("{name} cannot be written to disk: {error}"),
            None => error.to_string(),
        })
    }

    fn try_complete(&mut self, key: K, syncs: bool) -> io::Result<()> {
        self.open(key)?;
        let Some(target) = self.parts.get(&key).map(|part| part.target.clone()) else { return Err(not_begun()) };
        let Some((disk, part, file)) = self.opened(key) else { return Err(not_begun()) };
        if *part.length > *part.written_to {
            disk.set_len(file, *part.length)?;
            *part.written_to = *part.length;
        }
        if target.mode.is_some() || target.mtime.is_some() {
            disk.set_attributes(file, target.mode, target.mtime)?;
        }
        // Why a failed sync is never tried again: the system may have dropped the pages, and the second would succeed.
        if syncs { disk.sync(file) } else { Ok(()) }
    }
}

fn fail<K>(streams: &mut [(K, Kept)], smalls: &mut [Kept], sentence: &str) {
    let all = streams.iter_mut().map(|(_, kept)| kept).chain(smalls);
    all.filter(|kept| kept.is_ok()).for_each(|kept| *kept = Err(sentence.to_owned()));
}
