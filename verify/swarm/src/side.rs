//! One side of a connection and its application: what it sends, takes and asks for.
//!
//! Called by the swarm with events of the connection and with tasks of the event queue. The application behaves: it never
//! submits what it must not, ends every segment it has opened, and takes whatever there is.
//!
//! Invariant: everything a call of the connection has accepted was reported to the checkers.

use crate::event::{Delivered, Event, SegmentName, StreamName};
use crate::payload;
use crate::side_plan::{Change, Ending, SidePlan};
use crate::task::{Act, Task};
use crate::watch::Watch;
use segstream_base::halves::SubmitError;
use segstream_base::{Duration, Instant, SegmentNumber, StreamId};
use segstream_network::EventQueue;
use segstream_proto::connection::{Connection, ConnectionEvent, Received};
use segstream_proto::error::OpenStreamError;
use segstream_wire::contract::Contract;
use segstream_wire::repair::repair_unit_bytes;

/// A stream it sends on.
#[derive(Debug, Default)]
struct Outgoing {
    /// Its number, once it is open.
    number: Option<StreamId>,
    /// Segments handed over, and those the connection refused.
    next: usize,
    /// The number of the next segment.
    segment: SegmentNumber,
    /// Pieces appended of the open segment.
    open: Option<usize>,
    /// It waits until it may hand over more.
    waits: bool,
    over: bool,
}

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) number: u32,
    pub(crate) host: usize,
    /// The life of the host it belongs to.
    pub(crate) life: u32,
    pub(crate) plan: SidePlan,
    outgoing: Vec<Outgoing>,
    /// Streams of the peer: number and name.
    pub(crate) incoming: Vec<(StreamId, StreamName)>,
    pub(crate) established: bool,
    pub(crate) closed: bool,
}

/// What an application has at hand.
pub(crate) struct Scene<'a> {
    /// The swarm's time.
    pub(crate) now: Instant,
    /// The host's.
    pub(crate) local: Instant,
    /// What the host's clock shows when the swarm's shows zero.
    pub(crate) clock: Duration,
    pub(crate) connection: &'a mut Connection,
    pub(crate) event_queue: &'a mut EventQueue<Task>,
    pub(crate) watch: &'a mut Watch,
}

/// What came of handing something over.
enum Step {
    /// Go on.
    Done,
    /// Wait until the window opens.
    Blocked,
    /// Nothing is taken any more.
    Over,
}

impl Side {
    pub(crate) fn new(number: u32, host: usize, life: u32, plan: SidePlan) -> Self {
        let outgoing = plan.streams.iter().map(|_| Outgoing::default()).collect();
        Self { number, host, life, plan, outgoing, incoming: Vec::new(), established: false, closed: false }
    }

    /// The contracts of the streams that are opened with the request; they have the numbers from 0 on.
    pub(crate) fn first_contracts(&mut self) -> Vec<Contract> {
        let mut contracts = Vec::new();
        for index in 0..self.plan.streams.len() {
            if self.plan.streams[index].later.is_none() {
                let number = StreamId(contracts.len() as u32);
                self.outgoing[index].number = Some(number);
                contracts.push(self.labelled(index, number));
            }
        }
        contracts
    }

    fn labelled(&self, index: usize, stream: StreamId) -> Contract {
        let name = StreamName { side: self.number, stream };
        Contract { label: name.to_string(), ..self.plan.streams[index].contract.clone() }
    }

    /// The application has asked for the connection: its streams are open.
    pub(crate) fn begin(&self, now: Instant, event_queue: &mut EventQueue<Task>, watch: &mut Watch) {
        for (index, outgoing) in self.outgoing.iter().enumerate() {
            if let Some(stream) = outgoing.number {
                let name = StreamName { side: self.number, stream };
                watch.tell(Event::Opened { name, contract: Box::new(self.labelled(index, stream)) });
                event_queue.schedule(now, Task::Stream { side: self.number, stream: index });
            }
        }
        self.plan_ending(now, event_queue);
    }

    /// Plans the end, if it does not depend on anything.
    pub(crate) fn plan_ending(&self, now: Instant, event_queue: &mut EventQueue<Task>) {
        if let Ending::After(after, act) = self.plan.ending {
            event_queue.schedule(now + after, Task::Act { side: self.number, act });
        }
    }

    /// The connection has an event.
    pub(crate) fn on_event(&mut self, scene: &mut Scene<'_>, event: ConnectionEvent, takes: bool) {
        match event {
            ConnectionEvent::Connected => self.on_connected(scene),
            ConnectionEvent::StreamOpened(stream) => self.on_opened(scene, stream),
            ConnectionEvent::Readable(stream) if takes => self.take(scene, stream),
            ConnectionEvent::Ended { stream, segments } => {
                if let Some(name) = self.incoming_name(stream) {
                    scene.watch.tell(Event::Ended { at: self.number, name, segments });
                }
            }
            ConnectionEvent::Judged { stream, segments, verdict, holes } => {
                for segment in segments.start.up_to(segments.end) {
                    let name = SegmentName { stream: StreamName { side: self.number, stream }, segment };
                    scene.watch.tell(Event::Told { name, verdict, holes: holes.clone() });
                }
            }
            ConnectionEvent::Durable(stream, durable) => {
                let name = StreamName { side: self.number, stream };
                scene.watch.tell(Event::Durable { name, segments: durable.segments });
            }
            ConnectionEvent::Writable(stream) => self.on_writable(scene, stream),
            ConnectionEvent::StreamsAvailable => self.on_streams_available(scene),
            ConnectionEvent::Refused(stream, _) => {
                scene.watch.tell(Event::Refused(StreamName { side: self.number, stream }));
                self.on_writable(scene, stream);
            }
            ConnectionEvent::Closed(reason) => {
                self.closed = true;
                scene.watch.tell(Event::Closed { side: self.number, reason });
            }
            _ => {}
        }
    }

    fn on_connected(&mut self, scene: &mut Scene<'_>) {
        self.established = true;
        scene.watch.tell(Event::Established { side: self.number, class: scene.connection.class() });
        for (index, stream) in self.plan.streams.iter().enumerate() {
            if self.outgoing[index].number.is_none() {
                let at = scene.now + stream.later.unwrap_or(Duration::ZERO);
                scene.event_queue.schedule(at, Task::Stream { side: self.number, stream: index });
            }
        }
        if let Some(change) = self.plan.change {
            scene.event_queue.schedule(scene.now + change.after, Task::Act { side: self.number, act: Act::Reconfigure });
        }
        self.end_when_done(scene);
    }

    fn on_opened(&mut self, scene: &mut Scene<'_>, stream: StreamId) {
        let Some(contract) = scene.connection.receiving_contract(stream) else { return };
        let Some(name) = StreamName::of_label(&contract.label) else { return };
        self.incoming.push((stream, name));
        scene.watch.tell(Event::Offered { at: self.number, name, order: contract.order });
    }

    fn on_writable(&mut self, scene: &mut Scene<'_>, stream: StreamId) {
        let waiting = |outgoing: &Outgoing| outgoing.number == Some(stream) && outgoing.waits;
        if let Some(index) = self.outgoing.iter().position(waiting) {
            self.outgoing[index].waits = false;
            self.go_on(scene, index);
        }
    }

    /// Those that wait to be opened are, in their order, as far as may be.
    fn on_streams_available(&mut self, scene: &mut Scene<'_>) {
        for index in 0..self.outgoing.len() {
            if self.outgoing[index].waits && self.outgoing[index].number.is_none() {
                self.outgoing[index].waits = false;
                self.go_on(scene, index);
            }
        }
    }

    fn incoming_name(&self, stream: StreamId) -> Option<StreamName> {
        self.incoming.iter().find(|(number, _)| *number == stream).map(|&(_, name)| name)
    }

    /// Takes everything readable.
    pub(crate) fn take_all(&mut self, scene: &mut Scene<'_>) {
        for index in 0..self.incoming.len() {
            self.take(scene, self.incoming[index].0);
        }
    }

    fn take(&mut self, scene: &mut Scene<'_>, stream: StreamId) {
        let Some(name) = self.incoming_name(stream) else { return };
        while let Some(received) = scene.connection.recv(scene.local, stream) {
            let Received { segment, verdict, bytes, units, unit_bytes, holes, judged_at, .. } = received;
            let window_units = scene.connection.receiving_contract(stream).map_or(0, |contract| contract.window_units);
            let (name, judged_at) = (SegmentName { stream: name, segment }, judged_at - scene.clock);
            let at = self.number;
            scene.watch.tell(Event::Delivered(Box::new(Delivered {
                at,
                name,
                verdict,
                bytes: bytes.into(),
                units,
                unit_bytes,
                holes,
                judged_at,
                window_units,
            })));
        }
        self.confirm(scene, stream, name);
    }

    /// The application has in safety what it has taken.
    fn confirm(&self, scene: &mut Scene<'_>, stream: StreamId, name: StreamName) {
        let Some(segments) = scene.connection.taken(stream).filter(|_| scene.connection.confirms()) else { return };
        if scene.connection.confirm(scene.local, stream, segments).is_ok() {
            scene.watch.tell(Event::Confirmed { at: self.number, name, segments });
        }
    }

    /// The application continues a stream: submits what it can.
    pub(crate) fn go_on(&mut self, scene: &mut Scene<'_>, index: usize) {
        if self.outgoing[index].over || self.outgoing[index].waits || self.closed {
            return;
        }
        let step = loop {
            match self.hand_over(scene, index) {
                Step::Done if self.outgoing[index].over => break Step::Over,
                Step::Done if self.plan.streams[index].gap.is_zero() => {}
                step => break step,
            }
        };
        match step {
            Step::Done => {
                let at = scene.now + self.plan.streams[index].gap;
                scene.event_queue.schedule(at, Task::Stream { side: self.number, stream: index });
            }
            Step::Blocked => self.outgoing[index].waits = true,
            Step::Over => {
                self.outgoing[index].over = true;
                self.end_when_done(scene);
            }
        }
    }

    /// Hands over the next thing.
    fn hand_over(&mut self, scene: &mut Scene<'_>, index: usize) -> Step {
        let Some(stream) = self.outgoing[index].number else { return self.open(scene, index) };
        if self.outgoing[index].open.is_some() {
            return self.append(scene, index, stream);
        }
        if self.outgoing[index].next >= self.plan.streams[index].segments.len() {
            if self.plan.streams[index].finishes {
                scene.connection.finish_stream(scene.local, stream);
            }
            return Step::Over;
        }
        self.submit(scene, index, stream)
    }

    fn open(&mut self, scene: &mut Scene<'_>, index: usize) -> Step {
        // The numbers of streams are given in the order of their opening.
        let opened = self.outgoing.iter().filter(|outgoing| outgoing.number.is_some()).count();
        let contract = self.labelled(index, StreamId(opened as u32));
        match scene.connection.open_stream(scene.local, contract.clone()) {
            Ok(stream) => {
                self.outgoing[index].number = Some(stream);
                let name = StreamName { side: self.number, stream };
                scene.watch.tell(Event::Opened { name, contract: Box::new(contract) });
                Step::Done
            }
            Err(OpenStreamError::TooManyStreams { live_max }) if self.will_have_room(live_max) => Step::Blocked,
            Err(_) => Step::Over,
        }
    }

    /// Whether it ends enough streams that one more will be among the `live_max` that the peer allows.
    fn will_have_room(&self, live_max: u32) -> bool {
        let opened = self.plan.streams.iter().zip(&self.outgoing).filter(|(_, outgoing)| outgoing.number.is_some());
        (opened.filter(|(plan, _)| !plan.finishes).count() as u32) < live_max
    }

    fn submit(&mut self, scene: &mut Scene<'_>, index: usize, stream: StreamId) -> Step {
        let outgoing = &mut self.outgoing[index];
        let planned = &self.plan.streams[index].segments[outgoing.next];
        let name = SegmentName { stream: StreamName { side: self.number, stream }, segment: outgoing.segment };
        let (local, own) = (scene.local, planned.own);
        let (taken, bytes) = if planned.opened {
            (scene.connection.open_segment(local, stream, local, own), None)
        } else {
            let mut bytes = vec![0; planned.pieces[0] as usize];
            payload::fill(name, 0, &mut bytes);
            (scene.connection.send(local, stream, bytes.into(), local, own), Some(planned.pieces[0]))
        };
        match taken {
            Ok(segment) => {
                outgoing.open = planned.opened.then_some(0);
                outgoing.next += usize::from(!planned.opened);
                outgoing.segment += 1;
                scene.watch.tell(Event::Submitted { name: SegmentName { segment, ..name }, bytes, own });
                Step::Done
            }
            Err(SubmitError::Blocked) => Step::Blocked,
            Err(SubmitError::TooLong { .. }) => {
                outgoing.next += 1;
                Step::Done
            }
            Err(_) => Step::Over,
        }
    }

    fn append(&mut self, scene: &mut Scene<'_>, index: usize, stream: StreamId) -> Step {
        let outgoing = &mut self.outgoing[index];
        let planned = &self.plan.streams[index].segments[outgoing.next];
        let at = outgoing.open.unwrap_or(0);
        let Some(segment) = outgoing.segment.previous() else { return Step::Over };
        let name = SegmentName { stream: StreamName { side: self.number, stream }, segment };
        let (before, piece) = (planned.pieces[..at].iter().sum(), planned.pieces.get(at).copied().unwrap_or(0));
        let mut last = at + 1 >= planned.pieces.len();
        let mut bytes = vec![0; piece as usize];
        payload::fill(name, before, &mut bytes);
        let mut taken = scene.connection.append(scene.local, stream, &bytes, last);
        if matches!(taken, Err(SubmitError::TooLong { .. })) {
            // What does not fit the window is left out.
            (bytes, last) = (Vec::new(), true);
            taken = scene.connection.append(scene.local, stream, &bytes, last);
        }
        match taken {
            Ok(verdict) => {
                let goes_on = verdict.is_none() && !last;
                outgoing.open = goes_on.then_some(at + 1);
                outgoing.next += usize::from(!goes_on);
                if verdict.is_none() {
                    scene.watch.tell(Event::Appended { name, bytes: bytes.len() as u64, last });
                }
                Step::Done
            }
            Err(SubmitError::Blocked) => Step::Blocked,
            Err(_) => Step::Over,
        }
    }

    /// Plans the end when everything is handed over and the connection stands.
    fn end_when_done(&self, scene: &mut Scene<'_>) {
        if let Ending::WhenDone(linger) = self.plan.ending
            && self.established
            && self.outgoing.iter().all(|outgoing| outgoing.over)
        {
            scene.event_queue.schedule(scene.now + linger, Task::Act { side: self.number, act: Act::Close });
        }
    }

    /// The application does what it has planned.
    pub(crate) fn act(&mut self, scene: &mut Scene<'_>, act: Act) {
        match act {
            Act::Close => {
                scene.watch.tell(Event::CloseAsked(self.number));
                scene.connection.close(scene.local, 0, "done");
            }
            Act::Abort => scene.connection.abort(scene.local, 7, "enough"),
            Act::Reconfigure => {
                let Some(Change { class, rate, .. }) = self.plan.change else { return };
                // Refused when the one cannot be kept under the other, as it then is.
                let _ = scene.connection.set_rate(scene.local, rate);
                if scene.connection.set_class(scene.local, class).is_ok() {
                    scene.watch.tell(Event::ClassAsked { side: self.number, class });
                }
            }
        }
    }

    /// The most it may keep to send: two windows of each stream, as it has asked for them, and for each unit a repair unit.
    pub(crate) fn sending_most(&self) -> u64 {
        let opened = self.plan.streams.iter().zip(&self.outgoing).filter(|(_, outgoing)| outgoing.number.is_some());
        let unit_and_repair = |unit_bytes| u64::from(unit_bytes) + u64::from(repair_unit_bytes(unit_bytes));
        opened.map(|(stream, _)| 2 * u64::from(stream.contract.window_units) * unit_and_repair(stream.contract.unit_bytes)).sum()
    }
}
