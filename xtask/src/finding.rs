//! A finding of a check: a place, and a sentence that says what is wrong and what to do.
//!
//! Called by every check; printed by `layers` and `tidy`.

use anyhow::{Result, bail};
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file, relative to the root of the project.
    pub(crate) file: String,
    /// The line, counted from 1; `None` when the file as a whole is meant.
    pub(crate) line: Option<usize>,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl Finding {
    /// A finding about a file as a whole.
    pub(crate) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, message: message.into() }
    }

    /// A finding about one line of a file, counted from 1.
    pub(crate) fn of_line(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: Some(line), message: message.into() }
    }
}

/// Prints `file:line: message`, which editors and terminals turn into a link.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// Prints all findings, and fails when there is one.
pub(crate) fn report(step: &str, checked: &str, mut findings: Vec<Finding>) -> Result<()> {
    findings.sort();
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            eprintln!("{step}: {checked}: nothing to mend");
            Ok(())
        }
        1 => bail!("{step}: {checked}: 1 thing to mend"),
        count => bail!("{step}: {checked}: {count} things to mend"),
    }
}
