//! Progress for people, when standard error is a terminal.
//!
//! Called by `send` and `recv`, and for its bar by `sim` and `study`.
//!
//! Invariant: nothing is drawn where nobody looks: not into a file, not beside `--stats`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often it is drawn, per second.
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
}

impl Progress {
    /// Shows the transfer of `total` bytes, if that is known; nothing when `quiet` or without a terminal.
    pub(crate) fn new(total: Option<u64>, quiet: bool) -> Self {
        let template = match total {
            Some(_) => "{bytes} of {total_bytes} [{wide_bar}] {bytes_per_sec}, {eta} left",
            None => "{bytes}, {bytes_per_sec}, {elapsed}",
        };
        Self { bar: bar(total, template, quiet) }
    }

    /// So many bytes have been delivered.
    pub(crate) fn delivered(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    /// So many bytes are expected.
    pub(crate) fn expected(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    /// Prints a line without disturbing the bar.
    pub(crate) fn line(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Takes it away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
