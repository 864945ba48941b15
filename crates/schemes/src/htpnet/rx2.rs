//! Rx2, the receiver state packet processor (HT 5): answers every exchange with the receiver's state.
//!
//! Called as a [`Stage`]. From the bitmap that Rx1 sends with an exchange it makes the block acknowledgment (HT 3.4); it
//! echoes SYNC and TIME, checks class and rate against what the receiver accepts, measures SPGAP (HT 3.5), and holds the
//! receiver's end of the connection.
//!
//! Invariant: each exchange is answered, at once and, unless one packet holds all runs, with one packet; RATE is never lowered.

mod coverage;

use super::config::Config;
use super::connection::Connection;
use super::message::{ConnectionNews, Message, Status};
use super::packet::{Control, Coverage, Feedback, ReceiverState, Terms};
use super::pipeline::Routes;
use super::ticks::spgap_field;
use super::{Class, Ranges};
use coverage::Rotation;
use segstream_base::Instant;
use segstream_base::sequence::expand;
use segstream_base::stage::{Stage, StageId};

/// The receiver state packet processor.
#[derive(Clone, Debug)]
pub struct Rx2 {
    routes: Routes,
    id: u8,
    connection: Connection,
    terms: Option<Terms>,
    own_class: Class,
    rate: u16,
    ranges: Ranges,
    rotation: Rotation,
    /// The highest SYNC and when it arrived.
    newest: Option<(u64, Instant)>,
    spgap: u16,
}

impl Rx2 {
    /// A processor that waits for its connection, or has one.
    pub fn new(config: &Config, routes: Routes) -> Self {
        Self {
            routes,
            id: config.connection,
            connection: Connection::responder(config),
            terms: None,
            own_class: config.class,
            rate: config.rate_field(),
            ranges: config.ranges,
            rotation: Rotation::default(),
            newest: None,
            spgap: 0,
        }
    }

    /// Measures the gap between the arrivals of exchanges, and says whether this one is newer than all before.
    fn note_arrival(&mut self, status: &Status) -> bool {
        let wire = u64::from(status.state.sync);
        let Some((newest, arrived)) = self.newest else {
            self.newest = Some((wire, status.arrived));
            return true;
        };
        let sync = expand(wire, 16, newest + 1);
        if sync <= newest {
            return false;
        }
        // Why divided: an exchange that was lost on the way would look like a gap that has doubled.
        self.spgap = spgap_field(arrived.min(status.arrived), status.arrived, sync - newest).max(1);
        self.newest = Some((sync, status.arrived));
        true
    }

    fn on_status(&mut self, status: &Status, out: &mut Vec<(StageId, Message)>) {
        self.connection.heard();
        self.tell(out);
        let Some(terms) = self.terms else { return };
        let is_newest = self.note_arrival(status);
        let mut state = ReceiverState {
            connection: self.id,
            esync: status.state.sync,
            etime: status.state.time,
            spgap: self.spgap,
            class: status.state.class.and(self.own_class),
            rate: status.state.rate.max(self.rate),
            caack: (status.next as u16).wrapping_sub(1),
            coverage: Coverage::Whole,
            ranges: super::packet::RangeList::new(terms.pairs),
            credit: status.credit,
        };
        let rotating = self.ranges == Ranges::Rotating;
        // Why not for an old one: the report of it will not be heard.
        let mut position = if rotating && is_newest { self.rotation.start(status) } else { None };
        loop {
            let after = coverage::report(&mut state, status, position, rotating);
            out.push((self.routes.network, Message::Feedback(Feedback::State(state))));
            if rotating && is_newest {
                self.rotation.stopped_at(after);
            }
            position = after;
            if self.ranges != Ranges::All || after.is_none() {
                return;
            }
        }
    }

    fn on_control(&mut self, now: Instant, control: &Control, settled: bool, out: &mut Vec<(StageId, Message)>) {
        self.connection.handle(now, control, settled);
        self.tell(out);
    }

    /// Sends what the connection has to send, and tells what has become of it.
    fn tell(&mut self, out: &mut Vec<(StageId, Message)>) {
        while let Some(news) = self.connection.poll_news() {
            if let ConnectionNews::Open(terms) = news {
                self.terms = Some(terms);
                out.push((self.routes.rx1, Message::Open(terms)));
            }
            out.push((self.routes.host, Message::Connection(news)));
        }
        while let Some(control) = self.connection.poll() {
            out.push((self.routes.network, Message::Feedback(Feedback::Control(control))));
        }
    }
}

impl Stage for Rx2 {
    type Message = Message;

    fn name(&self) -> &'static str {
        "Rx2"
    }

    fn handle(&mut self, now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        match message {
            Message::Status(status) => self.on_status(&status, out),
            Message::Control { control, settled } => self.on_control(now, &control, settled, out),
            Message::Heard => self.connection.heard(),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let at = self.connection.due();
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        self.connection.handle_timeout(now);
        self.tell(out);
    }
}
