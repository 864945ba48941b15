//! Bad usage: errors of the command line that a parser cannot see.
//!
//! Raised by the verbs, for example for two flags that contradict each other.
//!
//! Invariant: bad usage ends with exit status 2 before anything has been sent or written.

use std::process::ExitCode;

/// The exit status of bad usage, the same as the parser's.
const BAD_USAGE: u8 = 2;

/// A sentence that says what is wrong with the command line and what to do.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error of bad usage.
pub(crate) fn bad(sentence: impl Into<String>) -> anyhow::Error {
    Usage(sentence.into()).into()
}

/// The exit status an error ends with.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<Usage>() { ExitCode::from(BAD_USAGE) } else { ExitCode::FAILURE }
}
