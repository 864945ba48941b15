//! The hedge: how many units answer a request, so that a second one is rare, and whether they leave in turn with new data.
//!
//! Called for every request that repair units answer. Where losses come in runs, one run can take all answers that leave in a row. Spare ones
//! that outlast it would delay the segments behind. So answers and new data leave in turn: a run then takes half as many of the answers.
//!
//! Limit: what is counted as new data is that of the same stream's present segment.

use segstream_blocks::two_state_loss::TwoStateLoss;

/// With this probability an answered request may need another one.
const RISK: f64 = 1e-3;
/// The most shipments of repair units beyond those that hold what is asked for.
pub(super) const SPARE_MAX: u32 = 64;
/// From this mean length of a run of losses on, answers leave in turn with new data.
const RUN_ALTERNATING: f64 = 2.0;

/// Answers leave in turn with new data only if that takes at most this part of a round trip.
///
/// Why: the segment that is answered waits twice as long for the last of them. It is a round trip late already, those behind it are not.
pub(super) const TURNS_ROUND_TRIPS: f64 = 0.125;

/// By what a sender counts the repair units that answer a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hedge {
    /// How shipments are lost.
    pub(super) process: TwoStateLoss,
    /// How many repair units share a shipment.
    pub(super) per_shipment: u32,
    /// How many shipments with answers may leave in turn with new data.
    pub(super) turns: u32,
}

/// How many units answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) units: u32,
    /// How many of them share a shipment.
    pub(super) per_shipment: u32,
    /// They leave in turn with shipments of new data.
    pub(super) alternating: bool,
}

impl Answer {
    pub(super) const NOTHING: Self = Self { units: 0, per_shipment: 1, alternating: false };

    /// How many shipments of it leave in turn with new data.
    pub(super) const fn turns(self) -> u32 {
        if self.alternating { self.units.div_ceil(self.per_shipment) } else { 0 }
    }
}

impl Hedge {
    /// How many units leave so that `asked` of them arrive but for [`RISK`].
    ///
    /// Why in turn with new data where losses come in runs: a run then takes half as many of them, so fewer spare ones are needed, and the
    /// new data waits for fewer. Why not always as many in a shipment as fit: three units need no more than another three in a
    /// shipment of their own.
    pub(super) fn answer(self, asked: u32) -> Answer {
        let per_shipment = asked.div_ceil(asked.div_ceil(self.per_shipment).max(1)).max(1);
        let most = asked + SPARE_MAX * per_shipment;
        // Why not for more than that: no answer is shorter than what is asked for.
        if self.process.mean_run() >= RUN_ALTERNATING && asked.div_ceil(per_shipment) <= self.turns {
            let units = self.process.spaced(2).units_for(asked, per_shipment, RISK, most);
            if units.div_ceil(per_shipment) <= self.turns {
                return Answer { units, per_shipment, alternating: true };
            }
        }
        Answer { units: self.process.units_for(asked, per_shipment, RISK, most), per_shipment, alternating: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURSTS: Hedge = Hedge { process: TwoStateLoss::NONE, per_shipment: 1, turns: 1000 };

    fn losing(rate: f64, mean_run: f64) -> Hedge {
        Hedge { process: TwoStateLoss::new(rate, mean_run), ..BURSTS }
    }

    #[test]
    fn in_runs_answers_leave_in_turn_with_new_data_and_need_fewer_spare_ones() {
        for (asked, mean_run) in [(1, 4.0), (12, 8.0), (40, 20.0)] {
            let hedge = losing(0.01, mean_run);
            let (turns, row) = (hedge.answer(asked), Hedge { turns: 0, ..hedge }.answer(asked));
            assert!(turns.alternating && !row.alternating);
            let spare = (turns.units - asked, row.units - asked);
            assert!(3 * spare.0 <= 2 * spare.1, "{asked} in runs of {mean_run}: {spare:?}");
        }
    }

    #[test]
    fn where_losses_are_single_or_new_data_ends_answers_leave_first() {
        assert!(!losing(0.1, 1.0 / 0.9).answer(12).alternating && !losing(0.01, 1.9).answer(12).alternating);
        let needed = losing(0.01, 8.0).answer(12).units;
        let with = |turns| Hedge { turns, ..losing(0.01, 8.0) }.answer(12).alternating;
        assert_eq!((with(needed - 1), with(needed)), (false, true));
    }
}
