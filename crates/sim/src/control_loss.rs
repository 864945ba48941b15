//! Separate loss processes for data and for control.
//!
//! Called by `channel` for every packet in band when [`crate::Setup::control_loss`] is set. The path itself then loses
//! nothing; everything else that it does to a packet, it does to both.
//!
//! Invariant: data meets the same draws as it would if control had none: the process of data keeps the streams that
//! the path's would have, and that of control has others.

use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_path::loss::Loss;
use segstream_path::{Fate, LossPlace, LossSpec, Passage, PathConfig, PathCounters, SpecError};

/// A loss process and how many packets it has seen.
#[derive(Clone, Debug)]
struct Counted {
    loss: Loss,
    seen: u64,
}

impl Counted {
    fn takes(&mut self, now: Instant) -> bool {
        let number = self.seen;
        self.seen += 1;
        self.loss.takes(number, now)
    }
}

/// The two processes of one direction.
#[derive(Clone, Debug)]
pub(crate) struct ApartLoss {
    data: Counted,
    control: Counted,
    at: LossPlace,
    /// Packets lost in front of the path, packets lost behind it, and their lost copies.
    before: u64,
    behind: u64,
    copies: u64,
}

impl ApartLoss {
    /// Of the path `config`, whose own losses become those of data.
    pub(crate) fn new(config: &PathConfig, control: &LossSpec, seed: Seed, direction: &str) -> Result<Self, SpecError> {
        Ok(Self {
            data: Counted { loss: Loss::new(&config.loss, seed, direction)?, seen: 0 },
            control: Counted { loss: Loss::new(control, seed, &format!("control.{direction}"))?, seen: 0 },
            at: config.loss_at,
            before: 0,
            behind: 0,
            copies: 0,
        })
    }

    /// The fate of a packet that would enter the path at `now`, if it is lost in front of it.
    pub(crate) fn before(&mut self, now: Instant, is_data: bool) -> Option<Passage> {
        let lost = self.at == LossPlace::Before && self.process(is_data).takes(now);
        self.before += u64::from(lost);
        lost.then_some(LOST)
    }

    /// The fate of a packet that has left the bottleneck at `now`. As in the path, a process also counts what the
    /// queue has dropped.
    pub(crate) fn behind(&mut self, now: Instant, is_data: bool, passage: Passage) -> Passage {
        let taken = self.at == LossPlace::After && self.process(is_data).takes(now);
        if !taken || !matches!(passage.fate, Fate::Delivered { .. }) {
            return passage;
        }
        self.behind += 1;
        self.copies += u64::from(passage.duplicate.is_some());
        LOST
    }

    const fn process(&mut self, is_data: bool) -> &mut Counted {
        if is_data { &mut self.data } else { &mut self.control }
    }

    /// The path's counters as if it had done this itself.
    pub(crate) const fn counted(&self, path: PathCounters) -> PathCounters {
        PathCounters {
            sent: path.sent + self.before,
            delivered: path.delivered - self.behind - self.copies,
            lost: path.lost + self.before + self.behind,
            duplicated: path.duplicated - self.copies,
            ..path
        }
    }
}

const LOST: Passage = Passage { fate: Fate::Lost, duplicate: None, corrupt_bit: None, marked: false, queued: Duration::ZERO };
