//! The result store: one file a run, addressed by what was run.
//!
//! Called by [`crate::runner`], which looks here before it runs anything; so an interrupted study goes on
//! where it stopped, and two figures that share a point share its run.
//!
//! Invariant: an address is a hash over the model, the scenario and the seed; a file appears whole or not
//! at all; results of another model are never read.

use crate::experiment::Experiment;
use segstream_base::random::Seed;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A hash over the sources of everything that decides a result.
pub const MODEL: &str = env!("SEGSTREAM_MODEL");

/// The layout of the store's files.
const FORMAT: u32 = 1;
const MARK: &str = "store.json";

/// What says whose store a directory is.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Mark {
    format: u32,
    model: String,
}

/// One stored run.
#[derive(Serialize, Deserialize)]
struct Entry<O> {
    scenario: serde_json::Value,
    seed: u64,
    outcome: O,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// See the message.
    #[error(
        "the store {path} was written by another version ({found}, this is {ours}), so its results may differ; remove it or name another directory"
    )]
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// The version that wrote it.
        found: String,
        /// This version.
        ours: String,
    },
    /// See the message.
    #[error("{0} has files but is no result store; name another directory")]
    NotAStore(PathBuf),
    /// See the message.
    #[error("there is no result store in {0}; name the output directory of a shard that was run")]
    Nothing(PathBuf),
    /// See the message.
    #[error("{action} {path}: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What came of it.
        error: io::Error,
    },
}

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the store at `root`, or makes one where nothing is.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let mark = Mark { format: FORMAT, model: MODEL.to_owned() };
        let at = root.join(MARK);
        match fs::read_to_string(&at) {
            Ok(text) => {
                // What cannot be read was written by a version with another layout.
                let found = serde_json::from_str::<Mark>(&text).unwrap_or(Mark { format: 0, model: "an unknown layout".to_owned() });
                if found != mark {
                    return Err(StoreError::OtherVersion { path: root.to_owned(), found: found.name(), ours: mark.name() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(root).map_err(io_error("making the directory", root))?;
                let entries = fs::read_dir(root).map_err(io_error("reading", root))?;
                // What an interrupted first sweep may have left is no stranger's.
                let is_draft = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("store.draft-");
                if entries.filter_map(Result::ok).any(|entry| !is_draft(&entry.file_name())) {
                    // Why once more: another shard may have made the store between the two looks.
                    return if at.is_file() { Self::open(root) } else { Err(StoreError::NotAStore(root.to_owned())) };
                }
                let text = serde_json::to_string(&mark).map_err(|error| io_error("writing", &at)(error.into()))?;
                write_whole(&at, &text)?;
            }
            Err(error) => return Err(io_error("reading", &at)(error)),
        }
        Ok(Self { root: root.to_owned() })
    }

    /// The result of a run, if it is here and can be read.
    pub fn get<E: Experiment>(&self, experiment: &E, seed: Seed) -> Option<E::Outcome> {
        let canonical = experiment.canonical();
        let text = fs::read_to_string(self.file(&canonical, seed)).ok()?;
        let entry: Entry<E::Outcome> = serde_json::from_str(&text).ok()?;
        // A damaged or foreign file is as good as none: the run is made again.
        (entry.seed == seed.0 && entry.scenario == value(&canonical)).then_some(entry.outcome)
    }

    /// Keeps the result of a run.
    pub fn put<E: Experiment>(&self, experiment: &E, seed: Seed, outcome: &E::Outcome) -> Result<(), StoreError> {
        let canonical = experiment.canonical();
        let file = self.file(&canonical, seed);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(io_error("making the directory", parent))?;
        }
        let entry = Entry { scenario: value(&canonical), seed: seed.0, outcome: outcome.clone() };
        let text = serde_json::to_string(&entry).map_err(|error| io_error("writing", &file)(error.into()))?;
        write_whole(&file, &text)
    }

    /// Takes what is in the store of another shard and not here: files that are there whole, byte by byte. Returns how many.
    ///
    /// # Errors
    ///
    /// If there is no store at `other`, or one of another version, or the system refuses.
    pub fn take_from(&self, other: &Path) -> Result<u64, StoreError> {
        if !other.join(MARK).is_file() {
            return Err(StoreError::Nothing(other.to_owned()));
        }
        let other = Self::open(other)?;
        let mut taken = 0;
        for folder in fs::read_dir(&other.root).map_err(io_error("reading", &other.root))? {
            let folder = folder.map_err(io_error("reading", &other.root))?.path();
            let (true, Some(name)) = (folder.is_dir(), folder.file_name()) else { continue };
            let ours = self.root.join(name);
            fs::create_dir_all(&ours).map_err(io_error("making the directory", &ours))?;
            for file in fs::read_dir(&folder).map_err(io_error("reading", &folder))? {
                let file = file.map_err(io_error("reading", &folder))?;
                let place = ours.join(file.file_name());
                // A draft is what a killed shard has left of a file.
                if file.path().extension().is_none_or(|extension| extension != "json") || place.exists() {
                    continue;
                }
                let text = fs::read_to_string(file.path()).map_err(io_error("reading", &file.path()))?;
                write_whole(&place, &text)?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    fn file(&self, canonical: &str, seed: Seed) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        for piece in [MODEL, canonical, &seed.0.to_string()] {
            hasher.update(&(piece.len() as u64).to_le_bytes());
            hasher.update(piece.as_bytes());
        }
        let address = hasher.finalize().to_hex();
        self.root.join(&address[..2]).join(format!("{}.json", &address[2..34]))
    }
}

impl Mark {
    fn name(&self) -> String {
        format!("format {}, model {}", self.format, self.model)
    }
}

fn value(canonical: &str) -> serde_json::Value {
    serde_json::from_str(canonical).unwrap_or_default()
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |error| StoreError::Io { action, path, error }
}

/// Writes under another name first, so that a reader sees all of it or nothing.
fn write_whole(path: &Path, text: &str) -> Result<(), StoreError> {
    let (draft, mut file) = draft_of(path)?;
    file.write_all(text.as_bytes()).map_err(io_error("writing", &draft))?;
    drop(file);
    fs::rename(&draft, path).map_err(io_error("writing", path))
}

/// A file of nobody else beside `path`.
///
/// Why it must be new: machines that share the directory may have processes of one number, and a killed one leaves its draft.
fn draft_of(path: &Path) -> Result<(PathBuf, fs::File), StoreError> {
    let mut number = 0_u64;
    loop {
        let draft = path.with_extension(format!("draft-{}-{number}", std::process::id()));
        match fs::File::create_new(&draft) {
            Ok(file) => return Ok((draft, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(io_error("writing", &draft)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run;
    use crate::scenario::Scenario;

    fn small() -> Scenario {
        Scenario::default().with(|it| it.workload.packets = 2560)
    }

    #[test]
    fn what_was_put_is_got_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        let outcome = run(&small(), Seed(1)).unwrap().outcome;
        store.put(&small(), Seed(1), &outcome).unwrap();
        assert_eq!(store.get(&small(), Seed(1)), Some(outcome));
        assert_eq!(store.get(&small(), Seed(2)), None);
        assert_eq!(store.get(&small().with(|it| it.workload.window = 35), Seed(1)), None);
    }

    #[test]
    fn a_store_of_another_version_is_refused_with_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let mark = r#"{"format":1,"model":"0123456789abcdef"}"#;
        for text in [mark, "{}", "nonsense"] {
            fs::write(folder.path().join(MARK), text).unwrap();
            let message = Store::open(folder.path()).unwrap_err().to_string();
            assert!(message.contains("written by another version") && message.contains(MODEL), "{message}");
        }
    }

    #[test]
    fn a_directory_of_other_files_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("letter.txt"), "dear").unwrap();
        assert!(matches!(Store::open(folder.path()), Err(StoreError::NotAStore(_))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_store_takes_what_another_shard_has_finished_and_no_draft_of_a_killed_one() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| Store::open(&folder.path().join(name)).unwrap());
        let outcome = run(&small(), Seed(1)).unwrap().outcome;
        ours.put(&small(), Seed(1), &outcome).unwrap();
        for seed in [1, 2] {
            theirs.put(&small(), Seed(seed), &outcome).unwrap();
        }
        let draft = theirs.file(&small().canonical(), Seed(2)).with_extension("draft-7-0");
        fs::write(draft, "{").unwrap();
        assert_eq!(ours.take_from(&theirs.root).unwrap(), 1);
        assert_eq!(ours.take_from(&theirs.root).unwrap(), 0);
        assert_eq!(ours.get(&small(), Seed(2)), Some(outcome));
        let ended_in = |extension: &str| {
            let folders = fs::read_dir(&ours.root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
            let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
            files.filter(|path| path.extension().unwrap().to_string_lossy().starts_with(extension)).count()
        };
        assert_eq!((ended_in("json"), ended_in("draft")), (2, 0));
        assert!(matches!(ours.take_from(&folder.path().join("nowhere")), Err(StoreError::Nothing(_))));
    }

    #[test]
    fn shards_that_begin_at_once_make_one_store() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("store");
        let outcome = run(&small(), Seed(1)).unwrap().outcome;
        std::thread::scope(|scope| {
            for seed in 0..8 {
                let (root, outcome) = (&root, &outcome);
                scope.spawn(move || Store::open(root).unwrap().put(&small(), Seed(seed), outcome).unwrap());
            }
        });
        let store = Store::open(&root).unwrap();
        assert!((0..8).all(|seed| store.get(&small(), Seed(seed)).is_some()));
    }

    #[test]
    fn a_damaged_result_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        let outcome = run(&small(), Seed(1)).unwrap().outcome;
        store.put(&small(), Seed(1), &outcome).unwrap();
        fs::write(store.file(&small().canonical(), Seed(1)), "{\"scenario\":").unwrap();
        assert_eq!(store.get(&small(), Seed(1)), None);
    }
}
