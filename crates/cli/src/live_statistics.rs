//! Statistics while a transfer runs: a line of JSON a period (`--stats`, `--stats-json`).
//!
//! Called by `send` and `recv` as time passes. The lines go to a file of their own, or to standard error, because standard output carries
//! data or the result.
//!
//! Invariant: a line has left when the round of the program's loop is over; a file that cannot be written ends no transfer.
//!
//! Invariant: a line is one object with every field of the library's statistics.

use crate::{json, quantity};
use anyhow::{Context as _, Result};
use clap::Args;
use segstream::Statistics;
use segstream_base::{Duration, Instant};
use serde::Serialize;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How often lines come if only their file was named.
const PERIOD: Duration = Duration::from_secs(1);

/// The flags of both ends.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatsArguments {
    /// Prints the statistics of each connection at this interval, one line of JSON each time: on standard error among what is for people,
    /// or in the file of --stats-json.
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    stats: Option<Duration>,
    /// Writes the lines of --stats to this file and nothing else, each when it is due [default interval: 1s].
    #[arg(long, value_name = "FILE")]
    stats_json: Option<PathBuf>,
}

impl StatsArguments {
    /// What the flags ask for; the file is made, or emptied.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn start(&self) -> Result<StatsLines> {
        let file = self.stats_json.as_ref().map(|path| {
            File::create(path).with_context(|| format!("{} cannot be written; choose another file with --stats-json", path.display()))
        });
        let file = file.transpose()?.map(|file| Arc::new(Mutex::new(Some(file))));
        Ok(StatsLines { period: self.stats.or(file.as_ref().map(|_| PERIOD)), file })
    }
}

/// Where lines go, and how often. Clones share the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatsLines {
    period: Option<Duration>,
    /// None after a write has failed.
    file: Option<Arc<Mutex<Option<File>>>>,
}

impl StatsLines {
    /// Whether lines are printed among what is for people.
    pub(crate) const fn are_on_standard_error(&self) -> bool {
        self.period.is_some() && self.file.is_none()
    }

    fn print(&self, line: &Line<'_>) -> Result<()> {
        let Some(file) = &self.file else { return json::print_to_standard_error(line) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.as_mut().map(|file| Ok::<_, anyhow::Error>(file.write_all(&json::line(line)?)?));
        if let Some(Err(error)) = written {
            *file = None;
            eprintln!("segstream: the file of --stats-json cannot be written any further: {error}");
        }
        Ok(())
    }
}

/// The lines of one connection.
#[derive(Debug)]
pub(crate) struct LiveStatistics {
    lines: StatsLines,
    start: Instant,
    next: Instant,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Where the other end is, which tells the lines of several connections apart.
    address: Option<&'a str>,
    /// The time of day, in milliseconds since 1970.
    unix_ms: f64,
    /// Since the transfer began.
    seconds: f64,
    /// Application bytes delivered so far.
    bytes: u64,
    #[serde(flatten)]
    statistics: &'a Statistics,
}

impl LiveStatistics {
    /// Lines from `now` on, as often as was asked for.
    pub(crate) fn new(lines: &StatsLines, now: Instant) -> Self {
        Self { lines: lines.clone(), start: now, next: lines.period.map_or(Instant::FAR_FUTURE, |period| now + period) }
    }

    /// When the next line is due.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Prints the last line of a connection, if lines are wanted: its totals are those at its end.
    pub(crate) fn tell_last(&mut self, now: Instant, address: Option<&str>, bytes: u64, statistics: &Statistics) -> Result<()> {
        self.next = self.next.min(now);
        if self.lines.period.is_some() { self.tell(now, address, bytes, statistics) } else { Ok(()) }
    }

    /// Prints a line if one is due.
    pub(crate) fn tell(&mut self, now: Instant, address: Option<&str>, bytes: u64, statistics: &Statistics) -> Result<()> {
        let Some(period) = self.lines.period.filter(|_| now >= self.next) else { return Ok(()) };
        while self.next <= now {
            self.next += period;
        }
        self.lines.print(&Line { address, unix_ms: json::unix_ms(), seconds: now.since(self.start).as_secs_f64(), bytes, statistics })
    }
}
