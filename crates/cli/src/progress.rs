//! Progress for people, when standard error is a terminal.
//!
//! Called by `send` and `recv`, and for its bar by `sim` and `study`.
//!
//! Invariant: nothing is drawn where nobody looks: not into a file, not beside `--stats`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::{Cell, RefCell};

/// How often the bar is drawn, per second.
const DRAWS_PER_SECOND: u8 = 5;

/// A bar of the length `total`, or a counter where none is known; nothing when `quiet` or without a terminal.
pub(crate) fn bar(total: Option<u64>, template: &str, quiet: bool) -> ProgressBar {
    let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    // Why: a target of standard error hides itself where there is no terminal.
    bar.set_draw_target(if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND) });
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// The progress of a transfer.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The bytes expected; 0 while they are not known.
    total: Cell<u64>,
    /// The name that is shown.
    shown: RefCell<String>,
    /// The first errors that were told.
    told: RefCell<Vec<String>>,
}

/// How many errors are remembered.
const TOLD_MAX: usize = 64;

impl Progress {
    /// Shows a transfer of unknown length; nothing when `quiet` or without a terminal.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            bar: bar(None, "{bytes}, {bytes_per_sec}, {elapsed} {msg}", quiet),
            total: Cell::new(0),
            shown: RefCell::default(),
            told: RefCell::default(),
        }
    }

    /// Shows the name of the file that is under way.
    pub(crate) fn name(&self, name: Option<&str>) {
        let Some(name) = name.filter(|name| !self.bar.is_hidden() && *self.shown.borrow() != *name) else { return };
        name.clone_into(&mut self.shown.borrow_mut());
        self.bar.set_message(name.to_owned());
    }

    /// Sets how many bytes have been delivered.
    pub(crate) fn delivered(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    /// Sets how many bytes are expected, if any.
    pub(crate) fn expected(&self, bytes: u64) {
        let before = self.total.replace(bytes);
        if bytes == before || self.bar.is_hidden() {
            return;
        }
        if before == 0
            && let Ok(style) = ProgressStyle::with_template("{bytes} of {total_bytes} [{wide_bar}] {bytes_per_sec}, {eta} left {msg}")
        {
            self.bar.set_style(style);
        }
        self.bar.set_length(bytes);
    }

    /// Prints a line without disturbing the bar.
    pub(crate) fn line(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
        let mut told = self.told.borrow_mut();
        if told.len() < TOLD_MAX && text.starts_with("segstream:") {
            told.push(text.to_owned());
        }
    }

    /// Whether a line has told this error.
    pub(crate) fn has_told(&self, error: &str) -> bool {
        self.told.borrow().iter().any(|line| line.ends_with(error))
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
