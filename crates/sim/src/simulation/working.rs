//! The event loop where the work of both ends takes time.
//!
//! Called by the loop in place of its own steps when [`crate::Setup::end_systems`] is set; who works on what is
//! [`crate::end_system`]'s to say.
//!
//! A half is asked for a packet, or for its deadline, whenever something has happened at its end. While its processor is
//! busy or may make no more, a deadline that has come may be that of a packet which waits for the processor, and ringing
//! it again would change nothing: it expires at the end of the work. Timers that lie ahead expire at their time.
//!
//! Invariant: the processor of an end is asked after everything that happens there, so it never stands idle while there
//! is work.

use super::Simulation;
use crate::end_system::Work;
use crate::event_queue::Class;
use crate::observer::{Direction, Moment, Observer, PacketEvent};
use segstream_base::Instant;
use segstream_base::halves::{Deadline, Packet as _, Receiver, Sender};

impl<S, R, O> Simulation<S, R, O>
where
    S: Sender,
    R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
    O: Observer,
{
    /// A packet has arrived at the receiver's end.
    pub(super) fn wait_for_receiver(&mut self, class: Class) {
        let ring = if class == Class::Forward { &mut self.forward.in_band } else { &mut self.forward.apart };
        if let (Some(flight), Some(stations)) = (ring.pop(), &mut self.stations) {
            self.event_queue.set(class, ring.next_at());
            if O::PACKETS {
                let (now, number, packet) = (self.now, flight.number, &flight.packet);
                self.observer.packet(PacketEvent { now, direction: Direction::Forward, number, moment: Moment::Arrived, packet });
            }
            if let Some(link) = &mut self.forward.shared {
                link.count_arrival(flight.packet.encoded_len());
            }
            self.forward.count_arrival(flight.packet.is_data());
            stations.receiver.arrive(flight.packet, flight.marked);
        }
        self.serve_receiver();
    }

    /// A packet has arrived at the sender's end.
    pub(super) fn wait_for_sender(&mut self, class: Class) {
        let ring = if class == Class::Back { &mut self.back.in_band } else { &mut self.back.apart };
        if let (Some(flight), Some(stations)) = (ring.pop(), &mut self.stations) {
            self.event_queue.set(class, ring.next_at());
            if O::PACKETS {
                let (now, number, packet) = (self.now, flight.number, &flight.packet);
                self.observer.packet(PacketEvent { now, direction: Direction::Back, number, moment: Moment::Arrived, packet });
            }
            self.back.count_arrival(flight.packet.is_data());
            stations.sender.arrive(flight.packet, flight.marked);
        }
        self.serve_sender();
    }

    /// A processor has something to do: the sender's before the receiver's.
    pub(super) fn finish_work(&mut self) {
        let now = self.now;
        let Some(stations) = &mut self.stations else { return };
        let (at_sender, at_receiver) = (stations.sender.next_at() <= now, stations.receiver.next_at() <= now);
        if at_sender {
            self.finish_senders_work();
        }
        if at_receiver {
            self.finish_receivers_work();
        }
    }

    fn finish_senders_work(&mut self) {
        let now = self.now;
        match self.stations.as_mut().and_then(|stations| stations.sender.finish(now)) {
            Some(Work::Arrived(arrived)) => self.sender.handle_feedback(now, &arrived.packet),
            Some(Work::Leaving(packet)) => {
                let free_at = self.forward.free_at();
                if let Err(fault) = self.forward.send(now, packet, &mut self.observer) {
                    self.fail(Direction::Forward, self.forward.sent(), fault);
                }
                self.event_queue.set(Class::Forward, self.forward.in_band.next_at());
                self.event_queue.set(Class::ForwardApart, self.forward.apart.next_at());
                self.expect_decisions();
                if let Some(stations) = self.stations.as_mut().filter(|_| free_at > now && self.forward.free_at() > free_at) {
                    stations.sender.waits_until(free_at);
                }
            }
            None => {}
        }
        if self.sender.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.sender.handle_timeout(now);
        }
        self.serve_sender();
    }

    fn finish_receivers_work(&mut self) {
        let now = self.now;
        match self.stations.as_mut().and_then(|stations| stations.receiver.finish(now)) {
            Some(Work::Arrived(arrived)) => {
                if arrived.marked {
                    self.receiver.note_congestion_mark(now);
                }
                self.receiver.handle_forward(now, &arrived.packet);
            }
            Some(Work::Leaving(packet)) => {
                let free_at = self.back.free_at();
                if let Err(fault) = self.back.send(now, packet, &mut self.observer) {
                    self.fail(Direction::Back, self.back.sent(), fault);
                }
                self.event_queue.set(Class::Back, self.back.in_band.next_at());
                self.event_queue.set(Class::BackApart, self.back.apart.next_at());
                self.expect_decisions();
                if let Some(stations) = self.stations.as_mut().filter(|_| free_at > now && self.back.free_at() > free_at) {
                    stations.receiver.waits_until(free_at);
                }
            }
            None => {}
        }
        if self.receiver.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.receiver.handle_timeout(now);
        }
        self.serve_receiver();
    }

    /// Something has happened at the sender's end. Returns whether the half has told anything or got to work.
    pub(super) fn serve_working_sender(&mut self) -> bool {
        let now = self.now;
        let mut told = self.hear_sender_out();
        let mut works = false;
        let mut may_ask = false;
        if let Some(stations) = &mut self.stations
            && stations.sender.is_free()
        {
            let station = &mut stations.sender;
            works = station.begin_arrived(now, S::Feedback::encoded_len);
            may_ask = !works && station.has_room(now);
            if may_ask && let Some(packet) = self.sender.poll_transmit(now) {
                station.begin_leaving(now, packet.encoded_len(), packet);
                (works, may_ask) = (true, false);
                told |= self.hear_sender_out();
            }
        }
        let due = if may_ask { self.sender.poll_timeout() } else { self.sender.poll_control_timeout() };
        self.event_queue.set(Class::SenderTimer, ahead(due, now, may_ask));
        self.note_work();
        works || told
    }

    /// Something has happened at the receiver's end. Returns whether the half has told anything or got to work.
    pub(super) fn serve_working_receiver(&mut self) -> bool {
        let now = self.now;
        let told = self.hear_receiver();
        let mut works = false;
        let mut may_ask = false;
        if let Some(stations) = &mut self.stations
            && stations.receiver.is_free()
        {
            let station = &mut stations.receiver;
            may_ask = station.has_room(now);
            if may_ask && let Some(packet) = self.receiver.poll_transmit(now) {
                station.begin_leaving(now, packet.encoded_len(), packet);
                works = true;
            } else {
                works = station.begin_arrived(now, S::Forward::encoded_len);
            }
            may_ask &= !works;
        }
        self.event_queue.set(Class::ReceiverTimer, ahead(self.receiver.poll_timeout(), now, may_ask));
        self.note_work();
        works || told
    }

    /// Takes the sender's events and submits until neither brings more. Returns whether there were events.
    fn hear_sender_out(&mut self) -> bool {
        let mut told = false;
        loop {
            let heard = self.hear_sender();
            told |= heard.events;
            if !heard.submitted {
                return told;
            }
        }
    }

    fn note_work(&mut self) {
        let at = self.stations.as_ref().map_or(Instant::FAR_FUTURE, |stations| stations.next_at());
        self.event_queue.set(Class::Work, at);
    }
}

/// When a half's deadline expires: not again, where it has come and the half could not be asked.
fn ahead(deadline: Option<Deadline>, now: Instant, asked: bool) -> Instant {
    deadline.map(|deadline| deadline.at).filter(|at| asked || *at > now).unwrap_or(Instant::FAR_FUTURE)
}
