//! The one-time code that the other end has printed, read from where no other user sees it.
//!
//! Called by `send` and `bench run` before they open a socket.
//!
//! Invariant: a code is never an argument: every user of a machine can list the arguments of its processes. The environment and the open
//! files of a process are for its own user alone (proc(5)).

use crate::usage;
use anyhow::{Context as _, Result};
use clap::Args;
use segstream::OneTimeCode;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The environment variable with a code.
pub(crate) const VARIABLE: &str = "SEGSTREAM_CODE";
/// More than a code takes in any spelling.
const BYTES_MAX: u64 = 200;

/// The flags of whoever was given a code.
#[derive(Clone, Debug, Args)]
pub(crate) struct CodeArguments {
    /// Uses the one-time code that the receiver prints, from the environment variable SEGSTREAM_CODE; asks for it if there is none.
    /// The key of this connection is derived from it. It is no argument, because every user of this machine could see it.
    #[arg(long, help_heading = "Protection")]
    code: bool,
    /// Uses the one-time code in this file; - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Protection", conflicts_with = "code")]
    code_file: Option<PathBuf>,
}

impl CodeArguments {
    /// Whether there is a code.
    pub(crate) const fn is_given(&self) -> bool {
        self.code || self.code_file.is_some()
    }

    /// Reads the code, if there is one. `input_is_data` when standard input is what is sent, so that no code can come from there.
    ///
    /// # Errors
    /// Bad usage when what is there is no code; a failure when nothing can be read.
    pub(crate) fn read(&self, input_is_data: bool) -> Result<Option<OneTimeCode>> {
        let from_input = |input_is_data: bool| match input_is_data {
            true => {
                Err(usage::bad(format!("standard input is sent, so it cannot be asked for the code; set {VARIABLE} or give --code-file")))
            }
            false => line_of_input(),
        };
        let text = match &self.code_file {
            Some(file) if file.as_os_str() == OsStr::new("-") => from_input(input_is_data)?,
            Some(file) => of_file(file)?,
            None if !self.code => return Ok(None),
            None => match env::var(VARIABLE) {
                Ok(text) => Zeroizing::new(text),
                Err(_) => {
                    eprint!("one-time code: ");
                    from_input(input_is_data)?
                }
            },
        };
        Ok(Some(text.trim().parse().map_err(|error: segstream::OneTimeCodeError| usage::bad(error.to_string()))?))
    }
}

/// Refuses a code among other arguments, where it was written out of habit.
///
/// # Errors
/// Bad usage.
pub(crate) fn refuse_among(arguments: &[PathBuf]) -> Result<()> {
    let is_code = |path: &&PathBuf| !path.exists() && path.to_str().is_some_and(|text| text.parse::<OneTimeCode>().is_ok());
    match arguments.iter().find(is_code) {
        Some(_) => Err(usage::bad(format!(
            "the one-time code is no argument: every user of this machine can see it there. Set {VARIABLE} to it, or leave it out and type it when \
             asked; if others use this machine, start the receiver again for another code"
        ))),
        None => Ok(()),
    }
}

fn line_of_input() -> Result<Zeroizing<String>> {
    let mut line = Zeroizing::new(String::new());
    io::stdin().lock().take(BYTES_MAX).read_line(&mut line).context("standard input cannot be read")?;
    if line.is_empty() {
        return Err(usage::bad(format!("no one-time code was typed; set {VARIABLE}, or give --code-file")));
    }
    Ok(line)
}

fn of_file(file: &Path) -> Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let opened = fs::File::open(file).with_context(|| format!("the one-time code cannot be read from {}", file.display()))?;
    opened.take(BYTES_MAX).read_to_string(&mut text).with_context(|| format!("{} contains no one-time code", file.display()))?;
    Ok(text)
}
