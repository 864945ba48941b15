//! One measurement: two ends, each a process of its own, both on this machine or one of them on another.
//!
//! Called by the verb, for each transport in turn.
//!
//! Invariant: the receiver listens before the sender starts, and each has a processor of its own where there are two.

use super::child::{End, Role};
use super::end::job::Job;
use super::end::line::Outcome;
use super::end::usable_processors;
use super::remote::Control;
use super::transport::Transport;
use anyhow::Result;

/// What the two ends have counted.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The end that was connected to, and received.
    pub(super) serve: Outcome,
    /// The end that connected, and sent.
    pub(super) run: Outcome,
}

/// The processors that the two ends stay on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Processors {
    pub(super) run: Option<usize>,
    pub(super) serve: Option<usize>,
}

impl Processors {
    /// The first two, if there are two and `pinned` is asked for.
    pub(super) fn choose(pinned: bool) -> Self {
        match usable_processors()[..] {
            [run, serve, ..] if pinned => Self { run: Some(run), serve: Some(serve) },
            _ => Self::default(),
        }
    }
}

/// Where the receiver is.
#[derive(Debug)]
pub(super) enum Host {
    Here,
    There(Box<Control>),
}

impl Host {
    /// Measures once.
    pub(super) fn measure(&mut self, transport: &Transport, job: &Job, processors: Processors) -> Result<Sample> {
        match self {
            Self::Here => measure_here(transport, job, processors),
            Self::There(control) => control.measure(transport, job, processors),
        }
    }
}

fn measure_here(transport: &Transport, job: &Job, processors: Processors) -> Result<Sample> {
    let (program, name) = (&transport.program, &transport.known.name);
    let role = Role::Serve { bind: ([127, 0, 0, 1], 0).into() };
    let receiver = End::start(program, name, role, job, processors.serve)?;
    let listening = receiver.listening()?;
    let role = Role::Run { connect: listening.listening, trust: &listening.trust };
    let sender = End::start(program, name, role, job, processors.run)?;
    // Why the receiver's words first: where it fails, the sender only finds that nobody answers.
    let run = sender.outcome().map_err(|error| receiver.complaint().unwrap_or(error))?;
    Ok(Sample { serve: receiver.outcome()?, run })
}
