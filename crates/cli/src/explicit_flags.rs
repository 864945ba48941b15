//! Which flags the user wrote on the command line; defaults do not count.
//!
//! Called by `send` and `recv`, where some flags have a meaning only with `--scheme`, and others only without it.
//!
//! Invariant: it is the first field of its arguments, because each field removes what it parses from the matches.

use crate::usage;
use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::collections::BTreeSet;

/// The flags that the user wrote, by the names of their fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExplicitFlags(BTreeSet<String>);

impl ExplicitFlags {
    /// Refuses the first of `flags` that the user wrote. `when` ends the error text: "--FLAG has no effect WHEN".
    ///
    /// # Errors
    /// Bad usage.
    pub(crate) fn refuse(&self, flags: &[&str], when: &str) -> Result<()> {
        match flags.iter().find(|flag| self.0.contains(**flag)) {
            Some(flag) => Err(usage::bad(format!("--{} has no effect {when}; leave it out", flag.replace('_', "-")))),
            None => Ok(()),
        }
    }

    /// Refuses `flag` together with any of `others`; `why` is the contradiction, for the error text.
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

    /// Whether the user wrote a flag.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.0.contains(flag)
    }
}

impl FromArgMatches for ExplicitFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let explicit = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        Ok(Self(matches.ids().map(|id| id.as_str()).filter(|id| explicit(id)).map(str::to_owned).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ExplicitFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
