//! Which flags stand on the command line, defaults not counted.
//!
//! Called by `send` and `recv`, where some flags mean something only in one of two ways to transfer.
//!
//! Invariant: it is the first field of its arguments: fields take what they parse away from those behind them.

use crate::usage;
use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::collections::BTreeSet;

/// The flags that were given, by the names of their fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given(BTreeSet<String>);

impl Given {
    /// Refuses the first of `flags` that was given; `when` ends the sentence that it means nothing.
    ///
    /// # Errors
    /// Bad usage.
    pub(crate) fn refuse(&self, flags: &[&str], when: &str) -> Result<()> {
        match flags.iter().find(|flag| self.0.contains(**flag)) {
            Some(flag) => Err(usage::bad(format!("--{} means nothing {when}; leave it out", flag.replace('_', "-")))),
            None => Ok(()),
        }
    }

    /// Refuses `flag` together with any of `others`; `why` says what contradicts.
    ///
    /// # Errors
    /// Bad usage.
    pub(crate) fn contradiction(&self, flag: &str, others: &[&str], why: &str) -> Result<()> {
        match others.iter().find(|other| self.0.contains(flag) && self.0.contains(**other)) {
            Some(other) => Err(usage::bad(format!(
                "--{} and --{} contradict each other: {why}; leave one of them out",
                flag.replace('_', "-"),
                other.replace('_', "-")
            ))),
            None => Ok(()),
        }
    }

    /// Whether a flag was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.0.contains(flag)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        Ok(Self(matches.ids().map(|id| id.as_str()).filter(|id| given(id)).map(str::to_owned).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
