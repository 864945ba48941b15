//! The event loop: two halves, two directions, a source and an observer in virtual time.
//!
//! Called by laboratories, studies and tests.
//!
//! An event is an arrival, a deadline of a half or a due segment. It is handed to the half it concerns; then
//! that half alone is asked for packets, events and its next deadline. Where the ends' work takes time, `working` does
//! this when their processors come to it.
//!
//! Invariant: events happen in the order of (time, class, sequence), where the classes are: data, then control
//! in front of the receiver, packets in front of the sender, work that is done, the sender's timer, the receiver's timer, the
//! source. Packets in flight at one instant arrive in the order in which they were sent.
//!
//! Invariant: in steady state the loop allocates nothing.

mod working;

use crate::channel::Channel;
use crate::end::{EncodingFault, End};
use crate::end_system::Stations;
use crate::event_queue::{Class, EventQueue};
use crate::observer::{Direction, Moment, Observer, PacketEvent};
use crate::processor::Processor;
use crate::setup::Setup;
use crate::shared::Entry;
use crate::source::{Feed, Source};
use crate::traffic::Traffic;
use segstream_base::Instant;
use segstream_base::halves::{Packet as _, Receiver, ReceiverEvent, Sender, SenderEvent};
use segstream_base::random::Seed;
use segstream_path::{Passage, SpecError};

/// How often a half may be served at one instant without sending or telling anything.
const SPINS_MAX: u32 = 10_000;
/// How many packets a half may hand out at one instant.
const AT_ONCE_MAX: u32 = 1 << 22;

/// A pair of halves, the paths between them, a source and an observer.
///
/// Both halves must be made with [`Instant::ZERO`], where the run starts.
#[derive(Debug)]
pub struct Simulation<S: Sender, R, O> {
    now: Instant,
    event_queue: EventQueue,
    sender: S,
    receiver: R,
    forward: Channel<S::Forward>,
    back: Channel<S::Feedback>,
    /// Where the sender works, if its work takes time.
    processor: Option<Processor>,
    /// Where both halves work, if all their work takes time.
    stations: Option<Box<Stations<S::Forward, S::Feedback>>>,
    feed: Feed,
    observer: O,
    until: Instant,
    started: bool,
    /// Segments the receiver has judged, segments the sender knows of, and whether the stream has ended.
    delivered: u64,
    judged: u64,
    ended: bool,
    /// Units that arrived of segments whose promise was kept.
    units: u64,
    sender_spins: Spins,
    receiver_spins: Spins,
    /// Why the run has failed.
    failed: Option<End>,
}

/// How often a half was served at one instant without progress.
#[derive(Clone, Copy, Debug, Default)]
struct Spins {
    at: Instant,
    count: u32,
}

impl Spins {
    /// The half was served at `now`. Returns whether that was too often.
    #[inline]
    const fn too_many(&mut self, now: Instant, progress: bool) -> bool {
        if progress || self.at.as_nanos() != now.as_nanos() {
            *self = Self { at: now, count: 0 };
        }
        self.count += 1;
        self.count > SPINS_MAX
    }
}

impl<S, R, O> Simulation<S, R, O>
where
    S: Sender,
    R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
    O: Observer,
{
    /// A run that has not started. The paths draw from `seed.child("path")`.
    ///
    /// # Errors
    /// Says which value of a path's configuration is invalid.
    pub fn new(sender: S, receiver: R, source: Source, setup: &Setup, seed: Seed, observer: O) -> Result<Self, SpecError> {
        Ok(Self {
            now: Instant::ZERO,
            event_queue: EventQueue::new(),
            sender,
            receiver,
            forward: Channel::new(Direction::Forward, setup, seed)?,
            back: Channel::new(Direction::Back, setup, seed)?,
            processor: setup.sender_cost.filter(|_| setup.end_systems.is_none()).map(Processor::new),
            stations: setup.end_systems.map(|system| Box::new(Stations::new(system))),
            feed: Feed::new(source),
            observer,
            until: setup.until.unwrap_or(Instant::FAR_FUTURE),
            started: false,
            delivered: 0,
            judged: 0,
            ended: false,
            units: 0,
            sender_spins: Spins::default(),
            receiver_spins: Spins::default(),
            failed: None,
        })
    }

    /// Runs until the receiver has judged every segment.
    pub fn run(&mut self) -> End {
        self.start();
        while self.delivered < self.feed.segments() {
            if let Err(end) = self.step() {
                return end;
            }
        }
        self.failed.unwrap_or(End::Delivered)
    }

    /// Runs on until the sender knows every verdict too, and the receiver knows that the stream has ended.
    pub fn settle(&mut self) -> End {
        self.start();
        while self.delivered.min(self.judged) < self.feed.segments() || !self.ended {
            if let Err(end) = self.step() {
                return end;
            }
        }
        self.failed.unwrap_or(End::Settled)
    }

    /// Puts a shared link in front of the forward path, by an entry of [`crate::shared::Link::enter`]. Call it before the run starts;
    /// [`crate::Shared`] drives the run then.
    pub fn join(&mut self, entry: Entry) {
        self.forward.shared = Some(entry);
    }

    /// How the run joined a shared link.
    pub(crate) const fn entry(&self) -> Option<&Entry> {
        self.forward.shared.as_ref()
    }

    /// The time of the next event; the start before it has started, far future when nothing is pending or the run has failed.
    pub(crate) fn next_at(&self) -> Instant {
        match self.event_queue.next() {
            _ if self.failed.is_some() => Instant::FAR_FUTURE,
            _ if !self.started => Instant::ZERO,
            Some((at, _)) => at.max(self.now),
            None => Instant::FAR_FUTURE,
        }
    }

    /// Runs every event up to `to` and those at it.
    pub(crate) fn advance_to(&mut self, to: Instant) {
        self.start();
        while self.next_at() <= to && self.step().is_ok() {}
    }

    /// Why the run has failed, if it has.
    pub(crate) const fn failed(&self) -> Option<End> {
        self.failed
    }

    /// Units that arrived of segments whose promise was kept.
    pub(crate) const fn units_delivered(&self) -> u64 {
        self.units
    }

    /// The bytes that are in flight forward.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.forward.bytes_in_flight()
    }

    /// The counters so far.
    pub fn traffic(&self) -> Traffic {
        Traffic { forward: self.forward.traffic(), back: self.back.traffic() }
    }

    /// The sending half.
    pub const fn sender(&self) -> &S {
        &self.sender
    }

    /// The receiving half.
    pub const fn receiver(&self) -> &R {
        &self.receiver
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, when the run is over.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// The time of the last event; after [`End::Limit`], the limit.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Starts the source and the halves.
    fn start(&mut self) {
        if !self.started {
            self.started = true;
            self.submit();
            self.serve_sender();
            self.serve_receiver();
        }
    }

    /// The next event.
    #[inline]
    fn step(&mut self) -> Result<(), End> {
        if let Some(end) = self.failed {
            return Err(end);
        }
        let (at, class) = self.event_queue.next().ok_or(End::Quiet)?;
        if at > self.until {
            self.now = self.now.max(self.until);
            return Err(End::Limit);
        }
        // Why: a deadline may lie in the past; the clock does not go back for it.
        self.now = self.now.max(at);
        match class {
            Class::Forward | Class::ForwardApart => self.arrive_forward(class),
            Class::Back | Class::BackApart => self.arrive_back(class),
            Class::Work => self.finish_work(),
            Class::SenderTimer => self.sender_timer(),
            Class::ReceiverTimer => self.receiver_timer(),
            Class::Source => {
                self.submit();
                self.serve_sender();
            }
            Class::Queue => {
                self.forward.decide(self.now, &mut self.observer);
                self.back.decide(self.now, &mut self.observer);
                self.expect_packets();
            }
        }
        Ok(())
    }

    /// Updates when packets in band arrive, and when a queue decides about one.
    fn expect_packets(&mut self) {
        self.event_queue.set(Class::Forward, self.forward.in_band.next_at());
        self.event_queue.set(Class::Back, self.back.in_band.next_at());
        self.expect_decisions();
    }

    /// Updates when a queue decides about the next packet.
    #[inline]
    fn expect_decisions(&mut self) {
        self.event_queue.set(Class::Queue, self.forward.decides_at().min(self.back.decides_at()));
    }

    /// The shared link has decided at `now` about the packet `number`.
    pub(crate) fn decided_on_link(&mut self, now: Instant, number: u64, passage: &Passage) {
        self.now = self.now.max(now);
        self.forward.decided_on_link(self.now, number, passage, &mut self.observer);
        self.expect_packets();
    }

    #[inline]
    fn arrive_forward(&mut self, class: Class) {
        if self.stations.is_some() {
            return self.wait_for_receiver(class);
        }
        let ring = if class == Class::Forward { &mut self.forward.in_band } else { &mut self.forward.apart };
        if let Some(flight) = ring.front() {
            if O::PACKETS {
                let (now, number, packet) = (self.now, flight.number, &flight.packet);
                self.observer.packet(PacketEvent { now, direction: Direction::Forward, number, moment: Moment::Arrived, packet });
            }
            if flight.marked {
                self.receiver.note_congestion_mark(self.now);
            }
            self.receiver.handle_forward(self.now, &flight.packet);
            if let Some(link) = &mut self.forward.shared {
                link.count_arrival(flight.packet.encoded_len());
            }
            let is_data = flight.packet.is_data();
            ring.pop();
            self.event_queue.set(class, ring.next_at());
            self.forward.count_arrival(is_data);
        }
        self.serve_receiver();
    }

    #[inline]
    fn arrive_back(&mut self, class: Class) {
        if self.stations.is_some() {
            return self.wait_for_sender(class);
        }
        let ring = if class == Class::Back { &mut self.back.in_band } else { &mut self.back.apart };
        if let Some(flight) = ring.front() {
            if O::PACKETS {
                let (now, number, packet) = (self.now, flight.number, &flight.packet);
                self.observer.packet(PacketEvent { now, direction: Direction::Back, number, moment: Moment::Arrived, packet });
            }
            self.sender.handle_feedback(self.now, &flight.packet);
            let is_data = flight.packet.is_data();
            ring.pop();
            self.event_queue.set(class, ring.next_at());
            self.back.count_arrival(is_data);
        }
        // Why: an opened window is used before the half is asked what it can send with what it has.
        self.hear_sender();
        self.serve_sender();
    }

    #[inline]
    fn sender_timer(&mut self) {
        self.sender.handle_timeout(self.now);
        let progress = self.serve_sender();
        if self.sender_spins.too_many(self.now, progress) {
            let timer = self.sender.poll_timeout().map_or("", |deadline| deadline.timer);
            self.failed.get_or_insert(End::Stuck { timer });
        }
    }

    #[inline]
    fn receiver_timer(&mut self) {
        self.receiver.handle_timeout(self.now);
        let progress = self.serve_receiver();
        if self.receiver_spins.too_many(self.now, progress) {
            let timer = self.receiver.poll_timeout().map_or("", |deadline| deadline.timer);
            self.failed.get_or_insert(End::Stuck { timer });
        }
    }

    /// Submits what the source has. Returns whether the sender was told anything.
    fn submit(&mut self) -> bool {
        let told = self.feed.submit(self.now, &mut self.sender, &mut self.observer);
        self.event_queue.set(Class::Source, self.feed.due());
        told.unwrap_or_else(|error| {
            self.failed.get_or_insert(End::Refused { segment: self.feed.next(), error });
            false
        })
    }

    /// Takes what the sender has to send and to tell. Returns whether there was anything.
    #[inline]
    fn serve_sender(&mut self) -> bool {
        if self.stations.is_some() {
            return self.serve_working_sender();
        }
        let mut sent = 0;
        let mut told = false;
        loop {
            while let Some(packet) = self.poll_sender() {
                sent += 1;
                if let Err(fault) = self.forward.send(self.now, packet, &mut self.observer) {
                    self.fail(Direction::Forward, self.forward.sent(), fault);
                }
                if sent > AT_ONCE_MAX || self.failed.is_some() {
                    self.failed.get_or_insert(End::Stuck { timer: "transmit" });
                    break;
                }
            }
            let heard = self.hear_sender();
            told |= heard.events;
            if !heard.submitted {
                break;
            }
        }
        if sent > 0 {
            self.event_queue.set(Class::Forward, self.forward.in_band.next_at());
            self.event_queue.set(Class::ForwardApart, self.forward.apart.next_at());
            self.expect_decisions();
        }
        self.event_queue.set(Class::SenderTimer, self.sender_due());
        sent > 0 || told
    }

    /// What the sender has to send now.
    #[inline]
    fn poll_sender(&mut self) -> Option<S::Forward> {
        match &mut self.processor {
            None => self.sender.poll_transmit(self.now),
            Some(processor) => processor.poll(self.now, &mut self.sender),
        }
    }

    /// When the sender is to be served again.
    #[inline]
    fn sender_due(&self) -> Instant {
        match &self.processor {
            None => self.sender.poll_timeout().map_or(Instant::FAR_FUTURE, |deadline| deadline.at),
            Some(processor) => processor.due(self.now, &self.sender),
        }
    }

    /// Takes the sender's events, and submits when the window has opened.
    #[inline]
    fn hear_sender(&mut self) -> Heard {
        let mut heard = Heard::default();
        let mut open = false;
        while let Some(event) = self.sender.poll_event() {
            heard.events = true;
            match event {
                SenderEvent::Started { stream, segment } => self.observer.started(self.now, stream, segment),
                SenderEvent::Judged { .. } => {
                    self.judged += 1;
                    self.observer.judged(self.now, &event);
                }
                SenderEvent::WindowOpen(_) => open = true,
                _ => {}
            }
        }
        if open {
            self.feed.unblock();
            heard.submitted = self.submit();
        }
        heard
    }

    /// Takes what the receiver has to send and to tell. Returns whether there was anything.
    #[inline]
    fn serve_receiver(&mut self) -> bool {
        if self.stations.is_some() {
            return self.serve_working_receiver();
        }
        let mut sent = 0;
        let told = self.hear_receiver();
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            sent += 1;
            if let Err(fault) = self.back.send(self.now, packet, &mut self.observer) {
                self.fail(Direction::Back, self.back.sent(), fault);
            }
            if sent > AT_ONCE_MAX || self.failed.is_some() {
                self.failed.get_or_insert(End::Stuck { timer: "transmit" });
                break;
            }
        }
        if sent > 0 {
            self.event_queue.set(Class::Back, self.back.in_band.next_at());
            self.event_queue.set(Class::BackApart, self.back.apart.next_at());
            self.expect_decisions();
        }
        let due = self.receiver.poll_timeout().map_or(Instant::FAR_FUTURE, |deadline| deadline.at);
        self.event_queue.set(Class::ReceiverTimer, due);
        sent > 0 || told
    }

    /// Takes the receiver's events. Returns whether there were any.
    #[inline]
    fn hear_receiver(&mut self) -> bool {
        let mut told = false;
        while let Some(event) = self.receiver.poll_event() {
            told = true;
            if let ReceiverEvent::Delivered { verdict, units, holes, .. } = &event {
                self.delivered += 1;
                self.units += if verdict.is_met() { u64::from(units.saturating_sub(*holes)) } else { 0 };
            }
            self.ended |= matches!(event, ReceiverEvent::Ended { .. });
            self.observer.delivered(self.now, &event);
        }
        told
    }

    #[cold]
    fn fail(&mut self, direction: Direction, number: u64, fault: EncodingFault) {
        self.failed.get_or_insert(End::BadEncoding { direction, number, at: self.now, fault });
    }
}

/// What a look at the sender's events has brought.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// There were events.
    events: bool,
    /// The source has told the sender something.
    submitted: bool,
}
