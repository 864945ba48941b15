//! What is delivered is what was submitted, within what its contract tolerates; and both ends say the same of it.
//!
//! One of the checkers. Source: spec 8 (tolerance), 10 (lifetime). The tolerance is counted here by definition: windows
//! one by one, runs walked along.
//!
//! Invariant: a segment is handed over once and judged once, and *expired* has a cause: too old, longer than the
//! window, or a class without error control or flow control.

use super::{Checker, must};
use crate::event::{Delivered, Event, SegmentName, StreamName};
use crate::payload;
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant, Run, Tolerance, UnitIndex};
use segstream_proto::error::CloseReason;
use segstream_wire::Class;
use segstream_wire::contract::Contract;
use std::collections::{BTreeMap, BTreeSet};

/// A verdict and the holes.
type Judgement = (Verdict, Vec<Run<UnitIndex>>);

#[derive(Debug)]
struct Segment {
    submitted: Instant,
    /// Bytes accepted so far.
    bytes: u64,
    own: Option<Tolerance>,
    opened: bool,
    told: Option<Judgement>,
    delivered: Option<Judgement>,
}

#[derive(Debug)]
struct Stream {
    contract: Contract,
    segments: Vec<Segment>,
    /// The sides that got the event.
    offered: BTreeSet<u32>,
}

#[derive(Debug)]
struct Side {
    host: usize,
    crashed: bool,
    graceful: bool,
    /// The controls that were on in its direction all the time.
    always: u8,
}

/// What was promised, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Promise {
    sides: BTreeMap<u32, Side>,
    streams: BTreeMap<StreamName, Stream>,
}

impl Promise {
    fn segment(&mut self, name: SegmentName) -> Result<&mut Segment, String> {
        let stream = self.streams.get_mut(&name.stream);
        stream.and_then(|stream| stream.segments.get_mut(name.segment.0 as usize)).ok_or_else(|| format!("{name} was never submitted"))
    }

    fn class(&mut self, side: u32, class: Class) {
        if let Some(side) = self.sides.get_mut(&side) {
            side.always &= class.number();
        }
    }

    fn on_delivered(&mut self, delivered: &Delivered) -> Result<(), String> {
        let name = delivered.name;
        let always = self.sides.get(&name.stream.side).map_or(0, |side| side.always);
        let Some(stream) = self.streams.get_mut(&name.stream) else { return Err(format!("{name} is of a stream that was never opened")) };
        let Some(segment) = stream.segments.get_mut(name.segment.0 as usize) else { return Err(format!("{name} was never submitted")) };
        must!(segment.delivered.is_none(), "{name} was delivered twice");
        let case = Case { contract: &stream.contract, segment, delivered, always: Class::new(always).unwrap_or_default() };
        case.check_length()?;
        case.check_bytes()?;
        case.check_verdict()?;
        segment.delivered = Some((delivered.verdict, delivered.holes.clone()));
        agree(name, segment)
    }

    /// What was judged as delivered to a sender that closed gracefully was handed over, if the receiver still existed.
    fn on_over(&self) -> Result<(), String> {
        for (name, stream) in &self.streams {
            let graceful = self.sides.get(&name.side).is_some_and(|side| side.graceful);
            let alive = |at: &u32| self.sides.get(at).is_some_and(|side| !side.crashed);
            if !graceful || !stream.offered.iter().all(alive) {
                continue;
            }
            for (number, segment) in stream.segments.iter().enumerate() {
                let judged = segment.told.as_ref().is_some_and(|(verdict, _)| *verdict != Verdict::Unknown);
                must!(!judged || segment.delivered.is_some(), "{name}/{number} was judged and its sender told, but nobody was handed it");
            }
        }
        Ok(())
    }
}

/// Both ends say the same, once both have spoken.
fn agree(name: SegmentName, segment: &Segment) -> Result<(), String> {
    if let (Some(told), Some(delivered)) = (&segment.told, &segment.delivered)
        && told.0 != Verdict::Unknown
    {
        must!(told == delivered, "the sender was told {told:?} of {name}, but its receiver {delivered:?}");
    }
    Ok(())
}

/// A segment that was just handed over.
struct Case<'a> {
    contract: &'a Contract,
    segment: &'a Segment,
    delivered: &'a Delivered,
    always: Class,
}

impl Case<'_> {
    /// Whether it is longer than the window, so that nothing of it was ever sent.
    fn is_too_long(&self) -> bool {
        self.delivered.units > self.delivered.window_units
    }

    fn check_length(&self) -> Result<(), String> {
        let (name, length) = (self.delivered.name, self.delivered.bytes.len() as u64);
        must!(self.delivered.unit_bytes == self.contract.unit_bytes, "{name} has units of {} bytes", self.delivered.unit_bytes);
        if self.is_too_long() {
            must!(length == 0, "{name} is longer than its window, and yet {length} bytes of it came");
            return Ok(());
        }
        let (units, accepted) = (self.contract.units_of(length), self.segment.bytes);
        // Without flow control nothing at all may be known of a segment that has to make room.
        let nothing = !self.always.flow_control() && self.delivered.verdict == Verdict::Expired && self.delivered.units == 0 && length == 0;
        must!(nothing || u64::from(self.delivered.units) == units, "{name} of {length} bytes has {} units", self.delivered.units);
        must!(length <= accepted, "{name} has {length} bytes, but {accepted} were submitted");
        // Without flow control an open segment may be judged to make room, before its length is known.
        let known = self.always.flow_control() || self.delivered.verdict == Verdict::Complete;
        must!(!known || length == accepted, "{name} has {length} bytes, but {accepted} were submitted");
        Ok(())
    }

    fn check_bytes(&self) -> Result<(), String> {
        let (name, unit) = (self.delivered.name, u64::from(self.delivered.unit_bytes));
        let length = self.delivered.bytes.len() as u64;
        let slice = |from: u64, to: u64| &self.delivered.bytes[from.min(length) as usize..to.min(length) as usize];
        let is_sent = |UnitIndex(from), UnitIndex(to)| {
            let (from, to) = (u64::from(from) * unit, u64::from(to) * unit);
            let wrong = payload::first_difference(name, from.min(length), slice(from, to));
            wrong.map_or(Ok(()), |at| Err(format!("{name}: byte {at} is not what was submitted")))
        };
        let mut next = None;
        for hole in &self.delivered.holes {
            let (start, end) = (hole.start(), hole.end());
            must!(end.0 <= self.delivered.units, "{name}: the hole {hole} is outside of it");
            must!(next.is_none_or(|next| next < start), "{name}: the holes {:?} are not in order", self.delivered.holes);
            is_sent(next.unwrap_or(UnitIndex::FIRST), start)?;
            let bytes = slice(u64::from(start) * unit, u64::from(end) * unit);
            must!(bytes.iter().all(|&byte| byte == 0), "{name}: the hole {hole} is not zero");
            next = Some(end);
        }
        is_sent(next.unwrap_or(UnitIndex::FIRST), UnitIndex(self.delivered.units))
    }

    fn check_verdict(&self) -> Result<(), String> {
        let Delivered { name, verdict, holes, units, .. } = self.delivered;
        let promise = self.segment.own.unwrap_or(self.contract.tolerance);
        let missing: Vec<u32> = holes.iter().flatten().map(|unit| unit.0).collect();
        let met = allowed(promise, self.contract.importance, *units, &missing);
        match verdict {
            Verdict::Complete => must!(missing.is_empty(), "{name} is called complete, but {holes:?} are missing"),
            Verdict::WithinTolerance => {
                must!(met, "{name}: {promise:?} with {} important units does not tolerate {holes:?} of {units}", self.contract.importance);
                must!(!missing.is_empty(), "{name} is called within tolerance, but nothing is missing");
            }
            Verdict::Expired => {
                // Without flow control a segment that has to make room may be one whose length is not known yet.
                let unknown = self.segment.opened && !self.always.flow_control();
                let shortened = unknown || u64::from(*units) < self.contract.units_of(self.segment.bytes);
                must!(!met || shortened, "{name} is called expired, but {promise:?} tolerates {holes:?} of {units}");
                return self.check_cause();
            }
            Verdict::Unknown => return Err(format!("{name}: a receiver always knows")),
        }
        Ok(())
    }

    /// Nothing expires except for a reason.
    fn check_cause(&self) -> Result<(), String> {
        if !self.always.error_control() || !self.always.flow_control() || self.is_too_long() {
            return Ok(());
        }
        let (name, lifetime) = (self.delivered.name, Duration::from(self.contract.lifetime));
        must!(lifetime > Duration::ZERO, "{name} has expired, but its lifetime is unlimited and its class {}", self.always);
        let age = self.delivered.judged_at.since(self.segment.submitted);
        must!(age >= lifetime, "{name} has expired at the age of {age}, before its lifetime of {lifetime}");
        Ok(())
    }
}

/// (W, E, B) and importance by definition.
fn allowed(promise: Tolerance, important: u32, units: u32, missing: &[u32]) -> bool {
    let (window, errors, burst) = promise.triplet();
    let window = window.min(units.max(1));
    if missing.iter().any(|&hole| hole < important) {
        return false;
    }
    if errors >= window && burst >= window {
        return true;
    }
    let of_window = |number: u32| missing.iter().filter(|&&hole| hole / window == number).count();
    let (mut run, mut longest, mut last) = (0, 0, None);
    for &hole in missing {
        run = if last.is_some_and(|last| last + 1 == hole) { run + 1 } else { 1 };
        longest = longest.max(run);
        last = Some(hole);
    }
    longest <= burst && (0..units.div_ceil(window)).all(|number| of_window(number) <= errors as usize)
}

impl Checker for Promise {
    fn name(&self) -> &'static str {
        "promise"
    }

    fn observe(&mut self, now: Instant, event: &Event) -> Result<(), String> {
        match event {
            Event::Appeared { side, host, .. } => {
                self.sides.insert(*side, Side { host: *host, crashed: false, graceful: false, always: Class::ALL.number() });
            }
            Event::Established { side, class } | Event::ClassAsked { side, class } => self.class(*side, *class),
            Event::Opened { name, contract } => {
                let stream = Stream { contract: (**contract).clone(), segments: Vec::new(), offered: BTreeSet::new() };
                must!(self.streams.insert(*name, stream).is_none(), "stream {name} was opened twice");
            }
            Event::Offered { at, name, .. } => match self.streams.get_mut(name) {
                Some(stream) => _ = stream.offered.insert(*at),
                None => return Err(format!("side {at} was told of stream {name}, which was never opened")),
            },
            Event::Submitted { name, bytes, own } => {
                let Some(stream) = self.streams.get_mut(&name.stream) else { return Err(format!("{name} has no stream")) };
                let segment =
                    Segment { submitted: now, bytes: bytes.unwrap_or(0), own: *own, opened: bytes.is_none(), told: None, delivered: None };
                stream.segments.push(segment);
            }
            Event::Appended { name, bytes, .. } => self.segment(*name)?.bytes += bytes,
            Event::Told { name, verdict, holes } => {
                let segment = self.segment(*name)?;
                must!(segment.told.is_none(), "the verdict on {name} was told twice");
                segment.told = Some((*verdict, holes.clone()));
                agree(*name, segment)?;
            }
            Event::Delivered(delivered) => self.on_delivered(delivered)?,
            Event::Closed { side, reason } => {
                if let Some(side) = self.sides.get_mut(side) {
                    side.graceful = matches!(reason, CloseReason::ClosedHere | CloseReason::ClosedByPeer { .. });
                }
            }
            Event::Crashed(host) => {
                self.sides.values_mut().filter(|side| side.host == *host).for_each(|side| side.crashed = true);
            }
            Event::Over(_) => self.on_over()?,
            _ => {}
        }
        Ok(())
    }
}
