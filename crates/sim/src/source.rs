//! Sources of segments.
//!
//! Called by [`crate::Simulation`] at the start, when a segment is due and when the window opens.
//!
//! Invariant: segments are submitted in order, each exactly once, and the sender's `finish` follows the last
//! at the same instant.

use crate::observer::Observer;
use segstream_base::halves::{Segment, Sender, StreamId, SubmitError};
use segstream_base::{Duration, Instant};
use std::sync::Arc;

/// A source of segments of one length, on stream 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Always has the next segment ready: submits while the sender accepts, and again when its window opens.
    Backlog {
        /// How many segments.
        segments: u64,
        /// The length of each.
        segment_bytes: u64,
    },
    /// Has a segment every `interval`, the first at the start. One that is refused for now waits its turn and
    /// keeps the time it was due as its source time.
    Periodic {
        /// How many segments.
        segments: u64,
        /// The length of each.
        segment_bytes: u64,
        /// From one to the next.
        interval: Duration,
    },
    /// Has segments at given instants, otherwise as [`Source::Periodic`].
    Scheduled {
        /// When each is due, in order.
        due: Arc<[Instant]>,
        /// The length of each.
        segment_bytes: u64,
    },
}

impl Source {
    /// How many segments it has in all.
    pub fn segments(&self) -> u64 {
        match self {
            Self::Backlog { segments, .. } | Self::Periodic { segments, .. } => *segments,
            Self::Scheduled { due, .. } => due.len() as u64,
        }
    }

    const fn segment_bytes(&self) -> u64 {
        match self {
            Self::Backlog { segment_bytes, .. } | Self::Periodic { segment_bytes, .. } | Self::Scheduled { segment_bytes, .. } => {
                *segment_bytes
            }
        }
    }
}

/// A source and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    source: Source,
    submitted: u64,
    blocked: bool,
    finished: bool,
}

impl Feed {
    pub(crate) const fn new(source: Source) -> Self {
        Self { source, submitted: 0, blocked: false, finished: false }
    }

    pub(crate) fn segments(&self) -> u64 {
        self.source.segments()
    }

    /// The segment that comes next, counted from 0.
    pub(crate) const fn next(&self) -> u64 {
        self.submitted
    }

    /// The window has opened.
    pub(crate) const fn unblock(&mut self) {
        self.blocked = false;
    }

    /// When the next segment is to be submitted; never while the sender refuses it.
    pub(crate) fn due(&self) -> Instant {
        if self.blocked || self.submitted == self.source.segments() { Instant::FAR_FUTURE } else { self.due_at() }
    }

    fn due_at(&self) -> Instant {
        match &self.source {
            Source::Backlog { .. } => Instant::ZERO,
            Source::Periodic { interval, .. } => Instant::ZERO + *interval * self.submitted,
            Source::Scheduled { due, .. } => due.get(self.submitted as usize).copied().unwrap_or(Instant::FAR_FUTURE),
        }
    }

    /// Submits what is due. Returns whether the sender has been told anything.
    pub(crate) fn submit<S: Sender, O: Observer>(&mut self, now: Instant, sender: &mut S, observer: &mut O) -> Result<bool, SubmitError> {
        if self.finished || self.blocked {
            return Ok(false);
        }
        let before = self.submitted;
        while self.due() <= now {
            let source_time = match self.source {
                Source::Backlog { .. } => now,
                Source::Periodic { .. } | Source::Scheduled { .. } => self.due_at(),
            };
            let segment = Segment { stream: StreamId(0), bytes: Some(self.source.segment_bytes()), source_time, tolerance: None };
            match sender.submit(now, segment) {
                Ok(number) => {
                    self.submitted += 1;
                    observer.submitted(now, &segment, number);
                }
                Err(SubmitError::Blocked) => self.blocked = true,
                Err(error) => return Err(error),
            }
        }
        if self.submitted == self.source.segments() {
            self.finished = true;
            sender.finish(now);
        }
        Ok(self.finished || self.submitted > before)
    }
}
