//! The file of runs, a line of JSON each, by which a matrix that was interrupted goes on.
//!
//! Called by [`super::run`].
//!
//! Invariant: what is there is never changed; of two lines of one run the later counts. A run is known by all that it was
//! asked for, so that a changed cell is another one.

use crate::json_lines;
use anyhow::Result;
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_blocks::congestion::auto;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The name of the file in the directory of the results.
const FILE: &str = "runs.jsonl";

/// What a run is known by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) cell: String,
    pub(super) contender: String,
    pub(super) seed: u64,
    pub(super) seconds: u32,
    /// The flags of the link.
    pub(super) link: String,
    /// Of ours; empty for the kernel's.
    pub(super) congestion: String,
    /// The size of our segments; empty for the kernel's.
    pub(super) segment: String,
}

impl Key {
    /// At what time within a slot of the controllers' schedule the run begins; on the emulator its link is set up then, and the flows begin
    /// about half a second later. It depends on cell and seed, so that all contenders begin at about the same, and the runs of a cell at many.
    pub(super) fn time_of_day(&self) -> Duration {
        Duration::from_nanos(Seed(self.seed).child(&self.cell).stream("time of day").below(auto::SLOT.as_nanos()))
    }
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    #[serde(flatten)]
    pub(super) key: Key,
    /// Of the applications of all measured flows, while all flows were there.
    pub(super) goodput_bps: f64,
    /// The part of the link that the packets of the measured flows used.
    pub(super) filled: f64,
    /// Goodput of the flow beside.
    pub(super) other_bps: Option<f64>,
    /// Seconds from the third on in which the measured flow had less than 0.2 of the link.
    pub(super) starved_seconds: u32,
    /// Jain's index of the measured flows, if they are several.
    pub(super) jain: Option<f64>,
    /// The part of packets that queue and policer dropped.
    pub(super) dropped: f64,
    /// Of all packets that went forward, as the link says.
    pub(super) queue_ms_p95: f64,
    /// The longest wait of a probe after the first change of the bandwidth, or after an outage.
    pub(super) wait_ms_max: Option<f64>,
    /// The part of a live source's segments that was complete in time.
    #[serde(default)]
    pub(super) in_time: Option<f64>,
    /// How long after the last change 0.9 of the link was used again.
    pub(super) again_after_s: Option<f64>,
    pub(super) lateness_ms_p999: f64,
    /// The mean number of waiting and running threads of the last minute.
    pub(super) load: Option<f64>,
    /// Why it does not count.
    pub(super) void: Option<String>,
}

/// The runs that there are.
#[derive(Debug)]
pub(super) struct Journal {
    /// Where they are kept, if they are.
    kept: Option<(PathBuf, File)>,
    runs: Vec<Run>,
}

impl Journal {
    /// Reads the file in a directory; makes both if they are not there.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let (file, runs) = json_lines::open(&path)?;
        Ok(Self { kept: Some((path, file)), runs })
    }

    /// Runs that are not kept.
    pub(super) const fn unkept() -> Self {
        Self { kept: None, runs: Vec::new() }
    }

    /// Adds a run.
    pub(super) fn add(&mut self, run: Run) -> Result<()> {
        if let Some((path, file)) = &mut self.kept {
            json_lines::add(file, path, &run)?;
        }
        self.runs.push(run);
        Ok(())
    }

    /// The last run of a key.
    pub(super) fn of(&self, key: &Key) -> Option<&Run> {
        self.runs.iter().rfind(|run| run.key == *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn contenders_begin_at_one_moment_of_the_schedule_and_seeds_and_cells_at_others() {
        let at = |cell: &str, contender: &str, seed| {
            Key { cell: cell.to_owned(), contender: contender.to_owned(), seed, ..Key::default() }.time_of_day()
        };
        assert_eq!(at("clean", "ours", 1), at("clean", "cubic", 1));
        let times: Vec<Duration> = (1..=20).map(|seed| at("clean", "ours", seed)).collect();
        let thirds = [0, 1, 2].map(|third| times.iter().filter(|time| time.as_nanos() / 1_000_000_000 == third).count());
        assert!(thirds.iter().all(|count| *count >= 3), "{thirds:?} of twenty in each second of the slot");
        assert_ne!(at("deep", "ours", 1), at("clean", "ours", 1));
    }

    #[test]
    fn what_was_run_is_there_again_unless_it_was_cut_or_asked_for_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        let key = |seed| Key { cell: "clean".to_owned(), contender: "ours".to_owned(), seed, seconds: 30, ..Key::default() };
        let run = |seed, goodput_bps| Run { key: key(seed), goodput_bps, ..Run::default() };
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.add(run(1, 1.0)).unwrap();
        journal.add(run(2, 2.0)).unwrap();
        let line = serde_json::to_string(&run(3, 3.0)).unwrap();
        let (_, file) = journal.kept.as_mut().unwrap();
        file.write_all(&line.as_bytes()[..line.len() / 2]).unwrap();
        drop(journal);
        let mut journal = Journal::open(directory.path()).unwrap();
        assert_eq!([1, 2, 3].map(|seed| journal.of(&key(seed)).is_some()), [true, true, false]);
        assert!(journal.of(&Key { seconds: 20, ..key(1) }).is_none());
        assert!(journal.of(&Key { link: "--rtt 50ms".to_owned(), ..key(1) }).is_none());
        journal.add(run(3, 4.0)).unwrap();
        journal.add(Run { void: Some("late".to_owned()), ..run(1, 5.0) }).unwrap();
        drop(journal);
        let journal = Journal::open(directory.path()).unwrap();
        assert_eq!(journal.of(&key(3)), Some(&run(3, 4.0)));
        assert_eq!(journal.of(&key(1)).map(|run| run.goodput_bps), Some(5.0));
    }
}
