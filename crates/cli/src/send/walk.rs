//! What is to be sent: the files that were named, and what is in directories, found as the transfer goes on.
//!
//! Called by the file queue, which takes one item after another, and by `--dry-run`.
//!
//! Invariant: no link is followed in a directory: what is sent lies in the tree that was named. A name that was excluded is not even
//! looked at.
//!
//! Limit: one directory's names are in memory at a time for each level of the tree; the number of files is not limited.

use super::exclusion::Exclusions;
use crate::manifest::Kind;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::vec;

/// Something to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Its path at the receiver.
    pub(super) name: String,
    /// Where it is; nothing is standard input.
    pub(super) path: Option<PathBuf>,
    pub(super) kind: Kind,
    /// The length, if it is a regular file.
    pub(super) bytes: Option<u64>,
    pub(super) mode: u32,
    pub(super) mtime: (i64, u32),
    /// Where a link leads.
    pub(super) target: Option<String>,
    /// Whether it was found in a directory: then no link is followed to it.
    pub(super) is_found: bool,
}

/// What the walk comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Item(Item),
    /// Something that cannot be sent: its name, and a sentence.
    Failed(String, String),
    /// Something that is left out: a sentence.
    LeftOut(String),
}

/// A directory that is being walked.
#[derive(Debug)]
struct Level {
    path: PathBuf,
    name: String,
    /// What has not been looked at.
    entries: vec::IntoIter<std::ffi::OsString>,
}

/// The walk through everything that was named.
#[derive(Debug)]
pub(super) struct Walk {
    named: vec::IntoIter<PathBuf>,
    standard_input: bool,
    levels: Vec<Level>,
    exclusions: Exclusions,
    links: bool,
}

impl Walk {
    /// A walk through `named`, or standard input when nothing is; `links`: they are sent as links.
    pub(super) fn new(named: Vec<PathBuf>, exclusions: Exclusions, links: bool) -> Self {
        Self { standard_input: named.is_empty(), named: named.into_iter(), levels: Vec::new(), exclusions, links }
    }

    fn named(&mut self, path: PathBuf) -> Found {
        let name = name(&path);
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.enter(path, name, &metadata),
            Ok(metadata) => Found::Item(Item {
                bytes: metadata.is_file().then_some(metadata.len()),
                ..Item::new(name, path, Kind::File, &metadata, false)
            }),
            Err(error) => Found::Failed(name, format!("{} cannot be read: {error}", path.display())),
        }
    }

    /// Begins a directory.
    fn enter(&mut self, path: PathBuf, name: String, metadata: &Metadata) -> Found {
        let is_found = !self.levels.is_empty();
        match names_in(&path) {
            Ok(entries) => {
                self.levels.push(Level { path: path.clone(), name: name.clone(), entries });
                Found::Item(Item::new(name, path, Kind::Directory, metadata, is_found))
            }
            Err(error) => Found::Failed(name, format!("{} cannot be read: {error}", path.display())),
        }
    }

    fn found(&mut self, path: PathBuf, name: String) -> Found {
        let metadata = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => return Found::Failed(name, format!("{} cannot be read: {error}", path.display())),
        };
        let kind = metadata.file_type();
        if kind.is_dir() {
            self.enter(path, name, &metadata)
        } else if kind.is_file() {
            Found::Item(Item { bytes: Some(metadata.len()), ..Item::new(name, path, Kind::File, &metadata, true) })
        } else if !kind.is_symlink() {
            Found::LeftOut(format!("{} is neither file nor directory and is left out", path.display()))
        } else if !self.links {
            Found::LeftOut(format!("{} is a link and is left out; give --links to send links as links", path.display()))
        } else {
            match std::fs::read_link(&path).map(|target| target.into_os_string().into_string()) {
                Ok(Ok(target)) => Found::Item(Item { target: Some(target), ..Item::new(name, path, Kind::Link, &metadata, true) }),
                Ok(Err(_)) => Found::Failed(name, format!("{} leads to a name that is not UTF-8", path.display())),
                Err(error) => Found::Failed(name, format!("{} cannot be read: {error}", path.display())),
            }
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if std::mem::take(&mut self.standard_input) {
            return Some(Found::Item(Item::standard_input()));
        }
        while let Some(level) = self.levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                self.levels.pop();
                continue;
            };
            let path = level.path.join(&entry);
            let Some(entry) = entry.to_str() else {
                let shown = entry.to_string_lossy();
                return Some(Found::Failed(format!("{}/{shown}", level.name), format!("the name of {} is not UTF-8", path.display())));
            };
            let name = format!("{}/{entry}", level.name);
            if !self.exclusions.leave_out(&name) {
                return Some(self.found(path, name));
            }
        }
        let path = self.named.next()?;
        Some(self.named(path))
    }
}

impl Item {
    /// Standard input.
    fn standard_input() -> Self {
        Self { name: "stdin".to_owned(), path: None, kind: Kind::File, bytes: None, mode: 0, mtime: (0, 0), target: None, is_found: false }
    }

    /// What it is, for people.
    pub(super) fn line(&self) -> String {
        match (self.kind, &self.target, self.bytes) {
            (Kind::Directory, ..) => format!("{:>15} {}/", "", self.name),
            (Kind::Link, Some(target), _) => format!("{:>15} {} -> {target}", "", self.name),
            (_, _, Some(bytes)) => format!("{bytes:>15} {}", self.name),
            _ => format!("{:>15} {}", "", self.name),
        }
    }

    fn new(name: String, path: PathBuf, kind: Kind, metadata: &Metadata, is_found: bool) -> Self {
        let (mode, mtime) = (metadata.mode() & 0o777, (metadata.mtime(), metadata.mtime_nsec() as u32));
        Self { name, path: Some(path), kind, bytes: None, mode, mtime, target: None, is_found }
    }
}

/// The names in a directory, sorted, so that two runs go the same way.
fn names_in(path: &Path) -> io::Result<vec::IntoIter<std::ffi::OsString>> {
    let mut names = std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names.into_iter())
}

/// The name that a file or directory has at the receiver: the last part of its path; of `.` and the like, that of the directory it
/// stands for.
pub(super) fn name(path: &Path) -> String {
    let resolved = path.file_name().is_none().then(|| path.canonicalize().ok()).flatten();
    let path = resolved.as_deref().unwrap_or(path);
    path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(at("tree/sub/empty")).unwrap();
        for (name, content) in [("tree/a", "aa"), ("tree/sub/b.o", "b"), ("outside", "secret")] {
            std::fs::write(at(name), content).unwrap();
        }
        symlink("../outside", at("tree/link")).unwrap();
        symlink("..", at("tree/sub/up")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("tree/fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        directory
    }

    fn walked(directory: &Path, exclude: &[&str], links: bool) -> (Vec<(String, Kind)>, usize) {
        let exclusions = Exclusions::new(exclude).unwrap();
        let (mut items, mut left_out) = (Vec::new(), 0);
        for found in Walk::new(vec![directory.join("tree")], exclusions, links) {
            match found {
                Found::Item(item) => items.push((item.name, item.kind)),
                Found::LeftOut(sentence) => left_out += usize::from(sentence.contains("is left out")),
                Found::Failed(name, sentence) => panic!("{name}: {sentence}"),
            }
        }
        (items, left_out)
    }

    #[test]
    fn a_tree_is_walked_in_order_and_no_link_is_followed() {
        let directory = tree();
        let (items, left_out) = walked(directory.path(), &[], false);
        let names: Vec<&str> = items.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["tree", "tree/a", "tree/sub", "tree/sub/b.o", "tree/sub/empty"]);
        assert_eq!(left_out, 3, "two links and a FIFO");
        let (items, left_out) = walked(directory.path(), &[], true);
        assert_eq!(items.iter().filter(|(_, kind)| *kind == Kind::Link).count(), 2);
        assert!(left_out == 1 && !items.iter().any(|(name, _)| name.contains("up/")), "{items:?}");
    }

    #[test]
    fn what_is_excluded_is_not_walked() {
        let directory = tree();
        let names = |exclude: &[&str]| walked(directory.path(), exclude, false).0.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&["*.o", "empty"]), ["tree", "tree/a", "tree/sub"]);
        assert_eq!(names(&["tree/sub"]), ["tree", "tree/a"]);
    }
}
