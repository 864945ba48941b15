//! Whether and how the half uses repair units.
//!
//! Set by the connection and its application, and by what the receiver counts; obeyed by `code_ahead` and `repair`.
//!
//! Invariant: without a history of losses, which there is when both ends can handle repair units, none leaves.

use super::{CodingTarget, SendHalf};
use segstream_base::{Instant, StreamId};
use segstream_blocks::loss_history::LossHistory;
use segstream_blocks::two_state_loss::{LossCounts, TwoStateLoss};

/// How repair units are used.
#[derive(Debug, Default)]
pub(super) struct Coding {
    /// What the path has lost lately, as the receiver counts it; there if both ends can handle repair units.
    losses: Option<Box<LossHistory>>,
    /// What is coded ahead on new streams.
    pub(super) default_target: Option<CodingTarget>,
    /// No request is answered by repair units; see [`SendHalf::set_unhedged`].
    pub(super) unhedged: bool,
    /// So many shipments with answers leave in turn with new data.
    pub(super) turns_left: u32,
    /// The last shipment that left in turn was one with answers.
    pub(super) answered: bool,
}

impl SendHalf {
    /// Both ends can handle repair units: from now on they are used.
    pub fn set_coding(&mut self) {
        self.coding.losses.get_or_insert_default();
    }

    /// Requests are answered by the units that they name; repair units leave ahead only, and what those may still restore is not sent again.
    /// For experiments that tell coding ahead from hedged repair.
    pub fn set_unhedged(&mut self) {
        self.coding.unhedged = true;
    }

    /// The loss process by which repair units are counted now; `None` unless both ends can handle them.
    pub fn loss_estimate(&self, now: Instant) -> Option<TwoStateLoss> {
        self.coding.losses.as_ref().map(|losses| losses.process(now))
    }

    /// The receiver has counted so many losses in all.
    pub(super) fn on_losses(&mut self, now: Instant, counts: LossCounts) {
        if let Some(losses) = &mut self.coding.losses {
            losses.on_totals(now, counts);
        }
    }

    /// What is coded ahead on streams that are opened from now on; `None`: nothing, the default.
    pub fn set_default_coding_target(&mut self, target: Option<CodingTarget>) {
        self.coding.default_target = target;
    }

    /// What is coded ahead on stream `id` from the next segment on. It takes effect once both ends are known to handle repair units.
    pub fn set_coding_target(&mut self, id: StreamId, target: Option<CodingTarget>) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.coding_target = target;
        }
    }
}
