//! Repair units: how many answer a request, and which leave next.
//!
//! *Hedged repair.* A retransmission can be lost like any other shipment, and then the segment waits for a round trip more. So a request
//! for m units is answered by m + x repair units, any m of which restore what is missing; x is the smallest with which fewer than m arrive
//! with a probability of at most 1e-3, under the losses that the receiver has counted lately. Units that share a shipment are lost
//! together, so x is counted in shipments ([`super::hedge`]). Hairpin (NSDI 2024) puts redundancy into retransmissions too.
//!
//! Called by the half for requests and when a shipment may leave.
//!
//! Invariant: no repair unit is sent twice, and none that was neither asked for nor planned ([`super::code_ahead`]). Nothing more is sent
//! while those that arrived and those that are not lost by the echo can restore what is missing. Numbers are never used again; when they
//! are used up, units are sent again as without a code.
//!
//! Limit: where data waits behind what is being sent (a bulk transfer), redundancy would cost goodput and save no time that anybody waits
//! for; units are then sent again one by one.

use super::SendHalf;
use super::hedge::{Answer, Hedge, SPARE_MAX, TURNS_ROUND_TRIPS};
use super::segment::{SendSegment, is_lost};
use super::stream::SendStream;
use super::unfinished::EXAMINED_A_TURN;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::fence::Fence;
use segstream_blocks::work::{self, Loop};
use segstream_wire::Repair;
use segstream_wire::repair::{CODED_UNITS_MAX, PROTECTED_MAX, repair_unit_bytes, repair_units_max};
use smallvec::SmallVec;

/// The most units beyond a tolerance for which a hedge is calculated; more are all named.
const BESIDE_MAX: u32 = 256;

/// A hedge of units by name that a code does not protect.
#[derive(Clone, Copy, Debug)]
struct Beside {
    /// How many a window misses beyond what it may, and how many spare ones that takes.
    beyond: u32,
    spare: u32,
}

/// The code of a segment: which units it protects, and which repair units have left.
#[derive(Debug)]
pub(crate) struct SendCode {
    pub(crate) fence: Fence,
    /// Protected units.
    protected: u32,
    /// The shipment of each repair unit that has left, low 32 bits.
    ships: SmallVec<[u32; 8]>,
    /// Repair units that are to leave, and how many of them share a shipment at most.
    pub(crate) pending: u32,
    per_shipment: u32,
    /// Repair units that leave when the first pass is over, and whether any was coded ahead.
    planned: u32,
    is_ahead: bool,
    /// The most that have arrived, as far as the receiver has told.
    held: u32,
    /// The most protected units that were lost so far.
    asked: u32,
    /// What the receiver told of lost units in the report with this echo.
    told: Option<(ShipmentNumber, u32)>,
    /// The largest hedge of units that are sent again by name.
    beside: Option<Beside>,
}

impl SendCode {
    fn new(fence: Fence, units: u32) -> Self {
        let protected = fence.count(units);
        Self {
            fence,
            protected,
            ships: SmallVec::new(),
            pending: 0,
            per_shipment: u32::MAX,
            planned: 0,
            is_ahead: false,
            held: 0,
            asked: 0,
            told: None,
            beside: None,
        }
    }

    /// A code of which so many repair units leave behind the segment.
    pub(super) fn ahead(fence: Fence, units: u32, repairs: u32) -> Self {
        let code = Self::new(fence, units);
        Self { planned: repairs.min(repair_units_max(code.protected)), is_ahead: true, ..code }
    }

    /// What was planned is to leave; returns how many repair units that is.
    pub(super) fn release(&mut self) -> u32 {
        let released = core::mem::take(&mut self.planned);
        self.pending += released;
        released
    }

    /// Repair units that may still arrive, judged with the echo and the reordering threshold of a report.
    fn under_way(&self, echo: ShipmentNumber, reorder: u32) -> u32 {
        self.ships.iter().rev().take_while(|&&ship| !is_lost(ship, echo, reorder)).count() as u32 + self.pending + self.planned
    }

    /// How many more leave, of a segment that has lost so many protected units; `None` if there are not enough left, or none answers
    /// requests (`hedge` is that by which they are counted).
    fn answer(&mut self, lost: u32, (echo, reorder): (ShipmentNumber, u32), hedge: Option<Hedge>) -> Option<Answer> {
        let lost = lost.min(self.protected);
        let (needed, under_way) = (lost.saturating_sub(self.held), self.under_way(echo, reorder));
        // Why not only the first: what was coded ahead may suffice for more than was lost when it was asked for first.
        if (lost <= self.asked || self.is_ahead) && needed <= under_way {
            return Some(Answer::NOTHING);
        }
        let hedge = hedge?;
        let left = repair_units_max(self.protected) - self.ships.len() as u32 - self.pending - self.planned;
        if needed > under_way + left {
            return None;
        }
        self.asked = self.asked.max(lost);
        let answer = hedge.answer(needed);
        let units = answer.units.saturating_sub(under_way).min(left);
        self.pending += units;
        self.per_shipment = answer.per_shipment;
        Some(Answer { units, ..answer })
    }
}

impl SendSegment {
    /// How many of `missing`, which the receiver requests, are protected by `fence` and lost by the echo.
    fn lost_of(&self, missing: &[Run<Position>], fence: Fence, echo: ShipmentNumber, reorder: u32) -> u32 {
        let sent = missing.iter().filter_map(|run| Run::new(run.start(), run.end().min(self.sent.next)));
        let lost = |position: &Position| self.sent.is_lost(*position, echo, reorder);
        let protected = |position: Position| fence.every == 1 || self.layout.units_at(position, 1).all(|unit| fence.protects(unit));
        sent.flatten().filter(lost).filter(|&position| protected(position)).count() as u32
    }

    /// Whether its length is known and no code is too short for it.
    pub(super) fn has_codable_length(&self) -> bool {
        self.bytes > 0 && self.layout.units.is_some_and(|units| units <= CODED_UNITS_MAX)
    }

    /// Whether repair units can be made of it.
    fn can_be_coded(&self) -> bool {
        self.has_codable_length() && self.is_counted() && !self.skipped && !self.judged()
    }

    /// The fence that needs the fewest repair units: the widest that holds B.
    fn widest_fence(&self, important: u32) -> Fence {
        let units = self.units();
        if self.tolerance.in_force.is_reliable() {
            return Fence::ALL;
        }
        let every = if self.tolerance.in_force.is_any() { 0 } else { self.tolerance.in_force.burst().saturating_add(1).min(units.max(1)) };
        Fence { important: important.min(units), every }
    }

    /// Of `missing`, what `fence` does not protect, by window, if too many of them are missing even with the fence whole.
    fn broken_beside(&self, missing: &[Run<Position>], fence: Fence) -> Vec<Vec<Position>> {
        if fence.every == 1 {
            return Vec::new();
        }
        let sent = missing.iter().filter_map(|run| Run::new(run.start(), run.end().min(self.sent.next)));
        let of = |run: Run<Position>| self.layout.units_at(run.start(), run.len()).zip(run);
        let mut beside: Vec<_> = sent.flat_map(of).filter(|(unit, _)| !fence.protects(*unit)).collect();
        beside.sort_unstable();
        let tolerance = self.tolerance.in_force;
        if tolerance.allows(beside.iter().map(|(unit, _)| *unit), 0) {
            return Vec::new();
        }
        let windows = beside.chunk_by(|(unit, _), (next, _)| unit.0 / tolerance.window() == next.0 / tolerance.window());
        windows.map(|window| window.iter().map(|(_, position)| *position).collect()).collect()
    }

    /// Of these windows, the positions that are sent again by name: where a window misses more than it may, as many as that and the spare ones of
    /// the hedge; without a hedge, all. `None` if there is no time left to calculate it.
    fn named(&mut self, mut windows: Vec<Vec<Position>>, hedge: Option<Hedge>, positions_left: &mut u32) -> Option<(Vec<Position>, u32)> {
        let errors = self.tolerance.in_force.errors();
        let beyond = |window: &Vec<Position>| (window.len() as u32).saturating_sub(errors);
        let most = windows.iter().map(beyond).max().unwrap_or(0);
        let Some(hedge) = hedge.filter(|_| (1..=BESIDE_MAX).contains(&most)) else {
            return Some((windows.into_iter().flatten().collect(), 0));
        };
        let code = self.code.as_mut()?;
        let (spare, turns) = match code.beside.filter(|beside| beside.beyond >= most) {
            Some(beside) => (beside.spare, 0),
            None => {
                *positions_left = positions_left.checked_sub(most * SPARE_MAX / 4 + SPARE_MAX)?;
                // Why the same shipment size as a run by name: its units share it as far as the tolerance lets them.
                let per_shipment = hedge.per_shipment.min(self.tolerance.per_shipment).max(1);
                let answer = Hedge { per_shipment, ..hedge }.answer(most);
                let spare = answer.units - most;
                code.beside = Some(Beside { beyond: most, spare });
                (spare, answer.turns())
            }
        };
        let mut named = Vec::new();
        for window in windows.iter_mut().filter(|window| beyond(window) > 0) {
            let count = (beyond(window) + spare) as usize;
            // Why the first to leave: those of them that are under way stay among them when later ones are lost.
            window.sort_unstable();
            named.extend(window.iter().take(count));
        }
        Some((named, turns))
    }

    /// Cancels repair units that have not left; returns how many there were.
    pub(crate) fn drop_repairs(&mut self) -> u32 {
        self.code.take().map_or(0, |code| code.pending)
    }
}

impl SendStream {
    /// Answers a request for `missing` of a segment by repair units. How many shipments with answers leave in turn with new data; `None` if units
    /// are to be sent again one by one.
    fn answer_with_repairs(
        &mut self,
        number: SegmentNumber,
        missing: &[Run<Position>],
        (echo, reorder): (ShipmentNumber, u32),
        (hedge, may_begin): (Option<Hedge>, bool),
        positions_left: &mut u32,
    ) -> Option<u32> {
        let important = self.contract.importance;
        let segment = self.segments.get_mut(number).filter(|segment| segment.can_be_coded())?;
        let told = segment.code.as_ref().and_then(|code| code.told).filter(|told| told.0 == echo);
        let named = missing.iter().fold(0u32, |sum, run| sum.saturating_add(run.end().min(segment.sent.next).since(run.start())));
        if named > EXAMINED_A_TURN {
            // More than a segment that is coded has units: runs that overlap.
            return None;
        }
        let fence = segment.code.as_ref().map_or_else(|| segment.widest_fence(important), |code| code.fence);
        let may_code = may_begin && segment.retransmissions.count == 0 && SendCode::can_protect(fence, segment.units());
        if segment.code.is_none() && !may_code {
            return None;
        }
        // Why four for each position: it is looked at as protected or not, and again at each repetition, and several reports may come at once.
        // How many spare ones there have to be takes a step for each pair of a lost unit and a spare one, of which four take as long as to look
        // at a position; an uncoded segment that stays so pays for it too. What this turn does not answer is asked for again; a whole turn suffices,
        // also for the positions that are examined again if no repair unit answers.
        let lost_max = told.map_or(named, |told| told.1).min(PROTECTED_MAX);
        let steps = (lost_max * SPARE_MAX / 4 + SPARE_MAX).saturating_add(named.saturating_mul(4)).min(EXAMINED_A_TURN - named);
        let Some(left) = positions_left.checked_sub(steps) else { return Some(0) };
        *positions_left = left;
        // Why the spare ones are charged and not counted here: they are calculated only when a request tells something new.
        work::note(Loop::Requested, named as usize);
        let lost = told.map_or_else(|| segment.lost_of(missing, fence, echo, reorder), |told| told.1);
        if segment.code.is_none() {
            if hedge.is_none_or(|hedge| hedge.answer(lost).units <= lost) {
                return None;
            }
            segment.code = Some(Box::new(SendCode::new(fence, segment.units())));
        }
        let beside = segment.broken_beside(missing, fence);
        if lost == 0 && beside.is_empty() {
            // Nothing that the code protects is missing: what is asked for is asked for by name.
            return None;
        }
        let answer = segment.code.as_mut().and_then(|code| code.answer(lost, (echo, reorder), hedge))?;
        // What there is no time left for is asked for again.
        let (beside, turns) = segment.named(beside, hedge, positions_left).unwrap_or_default();
        self.repairs.add(number, answer.units);
        self.request(number, beside.into_iter().filter_map(Run::single), (echo, reorder), positions_left);
        Some(answer.turns() + turns)
    }

    /// The oldest segment of which repair units are to leave.
    fn oldest_repaired(&mut self) -> Option<SegmentNumber> {
        let code_of = |number| self.segments.get(number).and_then(|segment| segment.code.as_ref());
        self.repairs.oldest(|number| code_of(number).is_some_and(|code| code.pending > 0))
    }
}

/// How many repair units over units of so many bytes a shipment with `room` bytes for data holds, at least one.
fn repair_units_in(room: usize, unit_bytes: u32) -> u32 {
    (u32::try_from(room).unwrap_or(u32::MAX) / repair_unit_bytes(unit_bytes).max(1)).max(1)
}

impl SendHalf {
    /// The receiver has told how many units of a segment repair units are to restore, and how many are there.
    pub(super) fn on_any_repairs(&mut self, id: StreamId, number: SegmentNumber, echo: Option<ShipmentNumber>, (lost, held): (u32, u32)) {
        let segment = self.streams.get_mut(id).and_then(|stream| stream.segments.get_mut(number));
        if let Some(code) = segment.and_then(|segment| segment.code.as_mut()) {
            // A peer cannot have more than has left.
            code.held = code.held.max(held.min(code.ships.len() as u32));
            code.told = echo.map(|echo| (echo, lost));
        }
    }

    /// Answers a request by repair units, if that is what saves time. False if units are to be sent again one by one.
    pub(super) fn answer_with_repairs(
        &mut self,
        now: Instant,
        id: StreamId,
        number: SegmentNumber,
        missing: &[Run<Position>],
        judged_by: (ShipmentNumber, u32),
    ) -> bool {
        let Some(process) = self.loss_estimate(now) else { return false };
        let (may_begin, room, time_for_turns) = (!self.has_backlog(), self.path.pmtu.data_bytes, self.time_for_turns());
        let (left, flow) = (&mut self.unfinished.positions_left, self.config.class.flow_control());
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let per_shipment = repair_units_in(room, stream.contract.unit_bytes);
        let turns = time_for_turns.min(stream.new_units_ready(flow) / per_shipment);
        let hedge = (!self.coding.unhedged).then_some(Hedge { process, per_shipment, turns });
        let Some(turns) = stream.answer_with_repairs(number, missing, judged_by, (hedge, may_begin), left) else { return false };
        // Why no more than for one: what is asked for in several reports waits together.
        self.coding.turns_left = (self.coding.turns_left + turns).min(time_for_turns);
        true
    }

    /// Whether a whole segment waits behind the one that is being sent, and the window lets it: then nobody waits for a repair but the
    /// data behind it.
    pub(super) fn has_backlog(&self) -> bool {
        let flow = self.config.class.flow_control();
        self.streams.iter().any(|stream| stream.first_time_ready(flow) && stream.segments.next_number() > stream.current + 1)
    }

    /// The next run of repair units, which leaves in shipment `number`.
    #[inline]
    pub(super) fn take_repairs(&mut self, now: Instant, number: ShipmentNumber) -> Option<Repair> {
        // Why in two functions: mostly there are none, and only that question stands in the caller. Streams with repair units are among
        // those that have something to retransmit.
        if self.stream_counts.retransmit == 0 { None } else { self.take_pending_repairs(now, number) }
    }

    fn take_pending_repairs(&mut self, now: Instant, number: ShipmentNumber) -> Option<Repair> {
        let place = (0..self.streams.len()).find(|&place| self.streams[place].repairs.total > 0)?;
        let (id, room) = (self.streams.number(place), self.path.pmtu.data_bytes);
        let segment_number = self.streams[place].oldest_repaired()?;
        let segment = self.streams[place].segments.get_mut(segment_number)?;
        let unit_bytes = repair_unit_bytes(segment.layout.unit_bytes);
        let asked = segment.code.as_ref().is_some_and(|code| code.asked > 0);
        let first_repair = u64::from(asked && !core::mem::replace(&mut segment.retransmissions.repaired, true));
        let code = segment.code.as_mut()?;
        let first = code.ships.len() as u32;
        let one = Repair { stream: id, segment: segment_number, every: code.fence.every, first, count: 1, payload_bytes: unit_bytes };
        let longest = Repair { count: code.pending, payload_bytes: u32::from(u16::MAX), ..one }.header_len();
        let fits = repair_units_in(room.saturating_sub(longest), segment.layout.unit_bytes);
        let count = code.pending.min(fits).min(code.per_shipment);
        code.pending -= count;
        code.ships.resize((first + count) as usize, number.0 as u32);
        let is_end_of_plan = code.is_ahead && code.asked == 0 && code.pending == 0 && !segment.tolerance.in_force.is_reliable();
        segment.sent.last_shipment = Some(number);
        let stream = &mut self.streams[place];
        stream.repairs.total -= count;
        stream.counters.segments_repaired += first_repair;
        stream.counters.repair_units_sent += u64::from(count);
        self.counters.segments_repaired += first_repair;
        self.counters.repair_units_sent += u64::from(count);
        if is_end_of_plan {
            // Why again, behind them: the one in front of them may have been lost like the segment's last units, and under a partial
            // tolerance nothing is accepted before its last units are here or declared lost. A reliable segment only needs units.
            self.invalidate_due();
            self.state_timer.schedule_immediate(now);
        }
        self.refresh_at(place);
        Some(Repair { count, payload_bytes: count * unit_bytes, ..one })
    }

    /// How many answers may leave in turn with new data, by the time that it takes.
    fn time_for_turns(&self) -> u32 {
        let round_trip = self.path.rtt.smoothed().map_or(0.0, |round_trip| round_trip.as_secs_f64());
        (TURNS_ROUND_TRIPS * round_trip / (2.0 * self.shipment_time().as_secs_f64())) as u32
    }

    /// Whether the next shipment is one of new data although answers wait: they leave in turn.
    pub(super) fn is_turn_of_new_data(&mut self) -> bool {
        if self.coding.turns_left == 0 {
            return false;
        }
        if self.stream_counts.retransmit == 0 {
            self.coding.turns_left = 0;
            return false;
        }
        let flow = self.config.class.flow_control();
        let answered = core::mem::take(&mut self.coding.answered);
        answered && self.streams.iter().any(|stream| stream.first_time_ready(flow))
    }

    /// A shipment that answers a request has left.
    pub(super) fn note_answer(&mut self) {
        self.coding.answered = self.coding.turns_left > 0;
        self.coding.turns_left = self.coding.turns_left.saturating_sub(1);
    }

    /// The fence of a segment's code, which has one if repair units of it have left.
    pub(crate) fn fence(&self, stream: StreamId, segment: SegmentNumber) -> Option<Fence> {
        Some(self.streams.get(stream)?.segments.get(segment)?.code.as_ref()?.fence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_blocks::two_state_loss::TwoStateLoss;

    const PATH: Hedge = Hedge { process: TwoStateLoss::NONE, per_shipment: 1, turns: 0 };

    fn losing(rate: f64) -> Hedge {
        Hedge { process: TwoStateLoss::independent(rate), ..PATH }
    }

    fn answers(code: &mut SendCode, lost: u32, judged_by: (ShipmentNumber, u32), hedge: Hedge) -> Option<u32> {
        code.answer(lost, judged_by, Some(hedge)).map(|answer| answer.units)
    }

    fn code() -> (SendCode, Hedge) {
        (SendCode::new(Fence::ALL, 256), losing(0.1))
    }

    /// All that are pending leave, in shipments from `ship` on.
    fn leave(code: &mut SendCode, ship: u32) {
        let count = core::mem::take(&mut code.pending);
        code.ships.extend(ship..ship + count);
    }

    #[test]
    fn a_request_is_answered_once_with_what_it_asks_for_and_spare_ones() {
        let (mut code, path) = code();
        assert_eq!(answers(&mut code, 1, (ShipmentNumber(100), 3), path), Some(3), "one at 1e-1 takes three");
        leave(&mut code, 101);
        assert_eq!(answers(&mut code, 1, (ShipmentNumber(102), 3), path), Some(0), "they are on their way");
        assert_eq!(answers(&mut code, 2, (ShipmentNumber(102), 3), path), Some(2), "two take five");
        assert_eq!(answers(&mut code, 5, (ShipmentNumber(102), 3), PATH), Some(0), "nothing is lost on the way: five are there");
    }

    #[test]
    fn a_request_of_one_shipment_is_answered_by_whole_shipments() {
        let path = Hedge { per_shipment: 4, ..losing(0.01) };
        for (lost, expected) in [(4, (8, 4)), (9, (12, 3))] {
            let mut code = SendCode::new(Fence::ALL, 256);
            let more = answers(&mut code, lost, (ShipmentNumber(100), 3), path);
            assert_eq!((more, code.per_shipment), (Some(expected.0), expected.1), "{lost}: one shipment more, each of as many");
        }
    }

    #[test]
    fn nothing_is_added_while_what_arrived_and_what_is_under_way_is_enough() {
        let (mut code, path) = code();
        answers(&mut code, 5, (ShipmentNumber(100), 3), path);
        let sent = code.pending;
        leave(&mut code, 101);
        // The echo has passed all of them, and five have arrived.
        let passed = (ShipmentNumber(u64::from(101 + sent) + 4), 3);
        code.held = 5;
        assert_eq!(answers(&mut code, 5, passed, path), Some(0));
        code.held = 4;
        assert_eq!(answers(&mut code, 5, passed, path), Some(3), "one is missing, which takes three");
    }

    #[test]
    fn when_the_numbers_are_used_up_units_are_sent_again() {
        let mut code = SendCode::new(Fence::ALL, 10);
        let path = losing(0.3);
        assert_eq!(answers(&mut code, 7, (ShipmentNumber(100), 3), path), Some(8), "no more than there are");
        leave(&mut code, 101);
        assert_eq!(answers(&mut code, 9, (ShipmentNumber(100), 3), path), None);
        assert_eq!(answers(&mut code, 7, (ShipmentNumber(200), 3), path), None, "all are lost");
    }
}
