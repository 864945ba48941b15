//! What the sender's state says (spec 4): streams that are opened and end, segments that are finished, skipped or have been reached,
//! exchanges, and changes of class.
//!
//! Called by the half's owner for every state. Statements are repeated until they are confirmed, so each of them may come again, and late.
//!
//! Invariant: a statement that contradicts the sender's own data, or lies beyond what was granted, changes nothing.

use super::RecvHalf;
use super::frontier::Passed;
use super::segment::About;
use super::stream::Admission;
use segstream_base::{Bandwidth, Instant, Position, SegmentNumber, ShipmentNumber, StreamId};
use segstream_wire::state::{Finished, Reached};
use segstream_wire::{Class, State, StateFrame};

impl RecvHalf {
    /// Takes the sender's state, which arrived in shipment `number`.
    pub fn on_state(&mut self, now: Instant, number: ShipmentNumber, state: &State) {
        self.reports.schedule.on_state();
        if self.reports.composition.on_state(state.sync, state.time, self.arrivals.counters.received()) && state.exchange {
            self.reports.composition.on_exchange(self.arrivals.arrived(state.sync));
            self.reports.schedule.report_now(now);
        }
        self.on_confirmed(now, &state.confirmed);
        self.note_all_retiring();
        if state.answer {
            self.reports.schedule.report_now(now);
        }
        // Why only the newest: a change replaces those before it, and each has all segments evaluated.
        let newest =
            state.frames.iter().filter_map(|frame| if let StateFrame::Reclass { change, .. } = frame { Some(*change) } else { None }).max();
        for frame in &state.frames {
            match frame {
                StateFrame::Open { stream, contract } => self.open(now, *stream, contract),
                StateFrame::Finished(finished) => self.on_statement(now, number, finished, false),
                StateFrame::Skip(finished) => self.on_skip(now, number, finished),
                StateFrame::Reached(reached) => self.on_reached(now, number, reached),
                StateFrame::End { stream, segments } => self.on_end(now, *stream, *segments),
                StateFrame::Waiting { stream } => {
                    if let Some(stream) = self.streams.get_mut(*stream) {
                        stream.sender_waits = true;
                        self.reports.schedule.report_delayed(now);
                    }
                }
                StateFrame::Reclass { change, class, rate } if Some(*change) == newest => self.on_reclass(now, *change, *class, *rate),
                StateFrame::Reclass { .. } => {}
            }
        }
        self.retire_ended(now);
    }

    /// A change of class is taken as it is asked for, or not at all; the echo tells which class is in force.
    fn on_reclass(&mut self, now: Instant, change: u64, asked: Class, rate: Bandwidth) {
        if self.reports.composition.is_new_change(change) {
            let within = asked.number() & !self.config.class_max.number() == 0;
            let limited = asked.is_limited(!rate.is_zero()) || self.config.unlimited;
            let class = if within && limited { asked } else { self.config.class };
            self.reports.composition.on_class_change(change, class);
            let before = core::mem::replace(&mut self.config.class, class);
            if class.error_control() != before.error_control() {
                self.reevaluate_all(now);
            }
        }
        self.reports.composition.echo_class_change();
        self.reports.schedule.report_now(now);
    }

    /// A segment's length and the last shipment that carried it.
    fn on_statement(&mut self, now: Instant, number: ShipmentNumber, finished: &Finished, skip: bool) {
        let about = About::of(finished);
        if self.admit(now, finished.stream, finished.segment, &about, Position::FIRST) != Admission::Open {
            return;
        }
        self.reevaluate(now, finished.stream, finished.segment);
        let Some(stream) = self.streams.get(finished.stream) else { return };
        // A number above the state's own cannot have been sent: the state was sealed after it.
        let Some(last) = finished.last_shipment.filter(|&last| last < number) else { return };
        let passed = if skip {
            Passed::Skip { segment: finished.segment }
        } else if stream.progress.frontier.0 <= finished.segment {
            Passed::Frontier { segment: finished.segment + 1, position: Position::FIRST }
        } else {
            return;
        };
        self.arrivals.frontier.push(last + 1, finished.stream, passed);
    }

    /// An open segment has come to a position and pauses there.
    fn on_reached(&mut self, now: Instant, number: ShipmentNumber, reached: &Reached) {
        let about = About { opened: true, length: None, own: reached.tolerance, source_time: reached.source_time };
        if self.admit(now, reached.stream, reached.segment, &about, reached.position) != Admission::Open {
            return;
        }
        let Some(stream) = self.streams.get_mut(reached.stream) else { return };
        if let Some(segment) = stream.segments.get_mut(reached.segment)
            && segment.layout.units.is_none()
            && segment.presence.positions.end() < reached.position
        {
            segment.presence.grow(reached.position.0);
        }
        let to = (reached.segment, reached.position);
        // A number above the state's own cannot have been sent: the state was sealed after it.
        if reached.position > Position::FIRST && to > stream.progress.frontier && reached.last_shipment < number {
            let passed = Passed::Frontier { segment: reached.segment, position: reached.position };
            self.arrivals.frontier.push(reached.last_shipment + 1, reached.stream, passed);
        }
    }

    fn on_skip(&mut self, now: Instant, number: ShipmentNumber, finished: &Finished) {
        let class = self.config.class;
        let Some(stream) = self.streams.get_mut(finished.stream) else { return };
        if finished.last_shipment.is_none()
            && stream.admit_empty(finished.segment, &About::of(finished), class, &mut self.unfinished.places_left)
        {
            self.skip(now, finished.stream, finished.segment);
        } else {
            self.on_statement(now, number, finished, true);
        }
    }

    fn on_end(&mut self, now: Instant, id: StreamId, segments: u64) {
        let Some(stream) = self.streams.get_mut(id) else {
            if self.has_retired(id) {
                self.answer_for_retired(now, id);
            }
            return;
        };
        // An end below what has been seen contradicts the sender's own data.
        if stream.end.at.is_none() && segments >= stream.segments.next_number().0 {
            stream.end.at = Some(SegmentNumber(segments));
            self.events.deliverable = true;
        }
        self.reports.schedule.report_delayed(now);
    }
}
