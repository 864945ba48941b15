//! The file of measurements, a line each, by which a run that was ended goes on.
//!
//! Called by [`super::run`].
//!
//! Invariant: what is there is never changed; of two lines of one cell the later counts. A measurement without a result
//! is made again by the next run; one over a link that was late is kept and counted as such.

use super::cell::Measured;
use super::matrix::Cell;
use crate::json_lines;
use anyhow::Result;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The measurements that there are.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    measured: Vec<Measured>,
    /// From here on they are of this run.
    begun: usize,
}

impl Journal {
    /// Reads the file; makes it if it is not there.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (file, measured) = json_lines::open::<Measured>(path)?;
        Ok(Self { path: path.to_owned(), file, begun: measured.len(), measured })
    }

    /// Adds a measurement.
    pub(super) fn add(&mut self, measured: Measured) -> Result<()> {
        json_lines::add(&mut self.file, &self.path, &measured)?;
        self.measured.push(measured);
        Ok(())
    }

    /// The measurement of a cell, if it need not be made again.
    pub(super) fn of(&self, cell: &Cell) -> Option<&Measured> {
        let flags = cell.flags().join(" ");
        let is_of = |measured: &Measured| {
            let names = [&measured.workload, &measured.transport, &measured.loss].map(String::as_str);
            names == [cell.work.name(), cell.contender.name, cell.loss.name] && measured.seed == cell.seed && measured.flags == flags
        };
        let (at, found) = self.measured.iter().enumerate().rfind(|(_, measured)| is_of(measured))?;
        (at >= self.begun || found.error.is_none()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cell, matrix};
    use super::*;
    use std::io::Write as _;

    fn measured(cell: &Cell, error: Option<&str>) -> Measured {
        Measured { goodput_bps: 1.0, link_kept_up: true, error: error.map(str::to_owned), ..cell::blank(cell) }
    }

    #[test]
    fn what_was_measured_is_not_measured_again_unless_it_failed_or_was_cut() {
        let path = std::env::temp_dir().join(format!("segstream-paths-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let cells = matrix::cells(&["udt".to_owned(), "bulk".to_owned()], &[], 1, 12).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.add(measured(&cells[0], None)).unwrap();
        journal.add(measured(&cells[1], Some("nobody came"))).unwrap();
        // Within a run a failure is a result, so that the run ends.
        assert!(journal.of(&cells[1]).is_some());
        let line = serde_json::to_string(&measured(&cells[2], None)).unwrap();
        journal.file.write_all(&line.as_bytes()[..line.len() / 2]).unwrap();
        drop(journal);
        let mut journal = Journal::open(&path).unwrap();
        let known: Vec<bool> = cells[..3].iter().map(|cell| journal.of(cell).is_some()).collect();
        assert_eq!(known, [true, false, false]);
        journal.add(measured(&cells[2], None)).unwrap();
        drop(journal);
        let journal = Journal::open(&path).unwrap();
        assert!(journal.of(&cells[2]).is_some());
        let other = Cell { seconds: 30, ..cells[0] };
        assert!(journal.of(&other).is_none());
        std::fs::remove_file(&path).unwrap();
    }
}
