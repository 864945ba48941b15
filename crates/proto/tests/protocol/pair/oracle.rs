//! Watches a pair from outside and knows what really happened. It shares no code with the halves but the
//! layout of a segment.

use segstream_base::halves::Verdict;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId, Tolerance, UnitIndex};
use segstream_proto::halves::{Forward, ForwardBody};
use segstream_proto::layout::Layout;
use segstream_proto::receiver::Delivery;
use segstream_wire::contract::{Contract, Order};
use segstream_wire::{Part, ReportFrame};
use std::collections::BTreeMap;

/// What became of a shipment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Lost,
    OnItsWay,
    /// It arrived when the highest number that had arrived was so many above it.
    Arrived(u64),
}

/// What is known of a segment from outside.
#[derive(Debug, Default)]
struct Known {
    opened: bool,
    bytes: u64,
    closed: bool,
    own: Option<Tolerance>,
    /// By position: the last shipment that carried it.
    shipments: Vec<u64>,
    /// By unit: when it first arrived.
    arrived: BTreeMap<UnitIndex, Instant>,
    /// By the receiver and by the sender.
    delivered: Option<(Verdict, Vec<Run<UnitIndex>>, u32)>,
    told: Option<(Verdict, Vec<Run<UnitIndex>>)>,
}

#[derive(Debug)]
struct StreamView {
    contract: Contract,
    segments: Vec<Known>,
    granted: (u64, u64),
    /// Units started on the path, and units here that the application has not taken.
    started: u64,
    held: u64,
    deliveries: u64,
    ended: Option<u64>,
}

/// The watcher.
#[derive(Debug)]
pub struct Oracle {
    streams: Vec<StreamView>,
    fates: Vec<Fate>,
    highest: u64,
    /// R at first; it only grows.
    reorder: u64,
    /// Flow control has always been on.
    pub flow: bool,
    /// Everything the sender may send has its place.
    pub roomy: bool,
    /// Units sent again, and the shipments that carried some.
    pub retransmitted: u64,
    pub repairs: Vec<u64>,
    /// Parts of first transmission that were lost: in units.
    pub first_lost: u64,
}

impl Oracle {
    pub fn new(contracts: &[Contract], reorder: u32, flow: bool, roomy: bool) -> Self {
        let view = |contract: &Contract| StreamView {
            contract: contract.clone(),
            segments: Vec::new(),
            granted: (0, 0),
            started: 0,
            held: 0,
            deliveries: 0,
            ended: None,
        };
        Self {
            streams: contracts.iter().map(view).collect(),
            fates: Vec::new(),
            highest: 0,
            reorder: u64::from(reorder),
            flow,
            roomy: flow && roomy,
            retransmitted: 0,
            repairs: Vec::new(),
            first_lost: 0,
        }
    }

    pub fn on_submit(&mut self, stream: StreamId, bytes: Option<u64>, own: Option<Tolerance>) {
        let known = Known { opened: bytes.is_none(), bytes: bytes.unwrap_or(0), closed: bytes.is_some(), own, ..Known::default() };
        self.streams[stream.0 as usize].segments.push(known);
    }

    pub fn on_append(&mut self, stream: StreamId, bytes: u64, last: bool) {
        let open = self.streams[stream.0 as usize].segments.last_mut().unwrap();
        open.bytes += bytes;
        open.closed = last;
    }

    /// A shipment leaves the sender; the path has decided whether it is lost.
    pub fn on_departure(&mut self, packet: &Forward, kept: bool) {
        assert_eq!(packet.number, ShipmentNumber(self.fates.len() as u64), "shipments are numbered without gaps");
        self.fates.push(if kept { Fate::OnItsWay } else { Fate::Lost });
        let ForwardBody::Data(parts) = &packet.body else { return };
        let mut here: Vec<(StreamId, SegmentNumber, Position)> = Vec::new();
        for part in parts {
            if part.retransmission {
                self.check_again(part);
                self.retransmitted += u64::from(part.count);
                self.repairs.push(packet.number.0);
            } else {
                self.check_first(part);
                self.first_lost += if kept { 0 } else { u64::from(part.count) };
            }
            let known = &mut self.streams[part.stream.0 as usize].segments[part.segment.0 as usize];
            let end = part.end().0 as usize;
            if known.shipments.len() < end {
                known.shipments.resize(end, 0);
            }
            known.shipments[part.first.0 as usize..end].fill(packet.number.0);
            here.push((part.stream, part.segment, part.first));
            self.check_alone(part, &here);
        }
    }

    /// Exact repair: the last shipment of each unit is lost, or later than R allows.
    fn check_again(&self, part: &Part) {
        let known = &self.streams[part.stream.0 as usize].segments[part.segment.0 as usize];
        for position in part.first.up_to(part.end()) {
            let last = *known.shipments.get(position.0 as usize).expect("only what was sent is sent again");
            let lost = match self.fates[last as usize] {
                Fate::Lost => self.highest > last + self.reorder,
                Fate::OnItsWay => self.highest > last + self.reorder,
                // Without flow control, or with a buffer smaller than the window, what arrives may find no room.
                Fate::Arrived(behind) => behind > self.reorder || !self.roomy,
            };
            assert!(
                lost,
                "{part:?} is sent again, but shipment {last} of position {position} is not lost: {:?}",
                self.fates[last as usize]
            );
        }
    }

    fn check_first(&mut self, part: &Part) {
        let view = &mut self.streams[part.stream.0 as usize];
        let known = &view.segments[part.segment.0 as usize];
        assert_eq!(part.first.0 as usize, known.shipments.len(), "{part:?}: units leave in sending order, each once");
        let units = view.contract.units_of(known.bytes);
        if part.opened {
            view.started += u64::from(part.count);
        } else if part.first == Position::FIRST {
            view.started += units;
        }
        assert!(u64::from(part.end()) <= units, "{part:?}: more than was submitted");
        if self.flow {
            assert!(part.segment.0 < view.granted.0, "{part:?}: beyond the granted segments {:?}", view.granted);
            assert!(view.started <= view.granted.1, "{part:?}: {} units started of {:?} granted", view.started, view.granted);
        }
    }

    /// Under a partial tolerance the loss of this shipment alone must not break the promise.
    fn check_alone(&self, part: &Part, here: &[(StreamId, SegmentNumber, Position)]) {
        let view = &self.streams[part.stream.0 as usize];
        let known = &view.segments[part.segment.0 as usize];
        let promise = known.own.unwrap_or(view.contract.tolerance);
        let units = view.contract.units_of(known.bytes) as u32;
        if !known.closed || !promise.clipped_to(units).is_partial() {
            return;
        }
        let same = here.iter().filter(|other| (other.0, other.1) == (part.stream, part.segment)).count();
        assert_eq!(same, 1, "one part a shipment under a partial tolerance");
        let mut lost: Vec<UnitIndex> = layout(view, known, part).units_at(part.first, part.count).collect();
        lost.sort_unstable();
        assert!(allowed(promise, 0, units, &lost), "{part:?} breaks {promise:?} of {units} units when lost alone: {lost:?}");
    }

    /// A shipment arrives, before the receiver looks at it.
    pub fn on_arrival(&mut self, now: Instant, packet: &Forward) {
        let behind = self.highest.saturating_sub(packet.number.0);
        self.highest = self.highest.max(packet.number.0);
        if matches!(self.fates[packet.number.0 as usize], Fate::Arrived(_)) {
            return;
        }
        self.fates[packet.number.0 as usize] = Fate::Arrived(behind);
        let ForwardBody::Data(parts) = &packet.body else { return };
        if behind >= 1024 {
            return;
        }
        for part in parts {
            let view = &mut self.streams[part.stream.0 as usize];
            let known = &view.segments[part.segment.0 as usize];
            let layout = layout(view, known, part);
            let known = &mut view.segments[part.segment.0 as usize];
            let before = known.arrived.len();
            for unit in layout.units_at(part.first, part.count) {
                known.arrived.entry(unit).or_insert(now);
            }
            if known.delivered.is_none() {
                let whole = if known.opened { (known.arrived.len() - before) as u64 } else { view.contract.units_of(known.bytes) };
                view.held += if known.opened || before == 0 { whole } else { 0 };
            }
            let window = u64::from(view.contract.window_units);
            assert!(!self.flow || view.held <= window, "{} units are held in a window of {window}", view.held);
        }
    }

    pub fn on_report_arrival(&mut self, frames: &[ReportFrame]) {
        for frame in frames {
            if let ReportFrame::Grant { stream, segments, units, .. } = *frame
                && let Some(view) = self.streams.get_mut(stream.0 as usize)
            {
                view.granted = (view.granted.0.max(segments), view.granted.1.max(units));
            }
        }
    }

    /// The application takes a segment.
    pub fn on_delivery(&mut self, delivery: &Delivery) {
        let flow = self.flow;
        let view = &mut self.streams[delivery.stream.0 as usize];
        let number = delivery.segment;
        assert!(number.0 < view.segments.len() as u64, "segment {number} was never submitted");
        if view.contract.order == Order::InOrder {
            assert_eq!(number.0, view.deliveries, "in order");
        }
        view.deliveries += 1;
        let contract = view.contract.clone();
        let known = &mut view.segments[number.0 as usize];
        assert!(known.delivered.is_none(), "segment {number} is delivered twice");
        let units = contract.units_of(known.bytes) as u32;
        if flow {
            assert_eq!((delivery.units, delivery.length), (units, known.bytes), "the length of segment {number}");
        }
        let holes: Vec<UnitIndex> = delivery.holes.iter().flatten().collect();
        assert!(holes.is_sorted_by(|a, b| a < b) && holes.iter().all(|&hole| hole.0 < delivery.units), "{holes:?}");
        for unit in UnitIndex::FIRST.up_to(UnitIndex(delivery.units)) {
            let (at, hole) = (known.arrived.get(&unit), holes.binary_search(&unit).is_ok());
            if hole && flow {
                assert!(at.is_none_or(|&at| at >= delivery.judged_at), "unit {unit} of {number} is called missing but arrived");
            } else if !hole {
                assert!(at.is_some_and(|&at| at <= delivery.judged_at), "unit {unit} of {number} is called present but never arrived");
            }
        }
        let promise = known.own.unwrap_or(contract.tolerance);
        let met = allowed(promise, contract.importance, delivery.units, &holes);
        match delivery.verdict {
            Verdict::Complete => assert!(holes.is_empty()),
            Verdict::WithinTolerance => assert!(met && !holes.is_empty(), "{promise:?}: {holes:?} of {units}"),
            Verdict::Expired => assert!(!met || !flow && delivery.units < units, "{promise:?} is met: {holes:?} of {units}"),
            Verdict::Unknown => panic!("a receiver always knows"),
        }
        let held = if known.opened { known.arrived.len() as u64 } else { u64::from(units) };
        view.held -= if known.arrived.is_empty() { 0 } else { held.min(view.held) };
        known.delivered = Some((delivery.verdict, delivery.holes.clone(), delivery.units));
    }

    /// The sender tells a verdict.
    pub fn on_acked(&mut self, stream: StreamId, segment: SegmentNumber, verdict: Verdict, holes: &[Run<UnitIndex>]) {
        let known = &mut self.streams[stream.0 as usize].segments[segment.0 as usize];
        assert!(known.told.is_none(), "the verdict on {segment} is told twice");
        assert!(holes.is_sorted_by(|a, b| a.end() < b.start()), "{holes:?}");
        known.told = Some((verdict, holes.to_vec()));
    }

    pub fn on_ended(&mut self, stream: StreamId, segments: u64) {
        let view = &mut self.streams[stream.0 as usize];
        assert_eq!(view.ended, None, "a stream ends once");
        assert_eq!((segments, view.deliveries), (view.segments.len() as u64, segments), "everything is delivered before the end");
        view.ended = Some(segments);
    }

    /// Wherever both ends have spoken they agree.
    pub fn check_agreement(&self) {
        for (id, view) in self.streams.iter().enumerate() {
            for (number, known) in view.segments.iter().enumerate() {
                if let (Some((verdict, holes, _)), Some(told)) = (&known.delivered, &known.told) {
                    assert_eq!((verdict, holes), (&told.0, &told.1), "stream {id} segment {number}");
                }
            }
        }
    }

    /// Everything has ended and both ends agree.
    pub fn check_over(&self) {
        self.check_agreement();
        for (id, view) in self.streams.iter().enumerate() {
            for (number, known) in view.segments.iter().enumerate() {
                assert!(known.delivered.is_some(), "stream {id}: segment {number} of {} was never delivered", view.segments.len());
                assert!(known.told.is_some(), "stream {id}: the sender never learnt the verdict on {number}");
            }
            assert_eq!(view.ended, Some(view.segments.len() as u64), "stream {id}: the end");
        }
    }

    /// How many segments have this verdict at the receiver.
    pub fn count(&self, verdict: Verdict) -> usize {
        let all = self.streams.iter().flat_map(|view| &view.segments);
        all.filter(|known| known.delivered.as_ref().is_some_and(|delivered| delivered.0 == verdict)).count()
    }
}

fn layout(view: &StreamView, known: &Known, part: &Part) -> Layout {
    Layout::new(&view.contract, known.own.unwrap_or(view.contract.tolerance), part.opened, part.length)
}

/// (W, E, B) and importance by definition: windows are counted one by one, runs are walked.
pub fn allowed(promise: Tolerance, important: u32, units: u32, holes: &[UnitIndex]) -> bool {
    let (window, errors, burst) = promise.triplet();
    if holes.iter().any(|&hole| hole.0 < important) {
        return false;
    }
    let window = window.min(units.max(1));
    if errors >= window && burst >= window {
        return true;
    }
    let crowded = (0..units.div_ceil(window)).any(|k| holes.iter().filter(|&&hole| hole.0 / window == k).count() > errors as usize);
    let (mut run, mut longest, mut last) = (0, 0, None);
    for &hole in holes {
        run = if last.is_some_and(|last| last + 1 == hole) { run + 1 } else { 1 };
        longest = longest.max(run);
        last = Some(hole);
    }
    !crowded && longest <= burst
}
