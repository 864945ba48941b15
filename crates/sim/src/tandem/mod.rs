//! A tandem of finite queues, in slots, that drives any pair of halves (XT Figure 2).
//!
//! ```text
//! messages --> XTP1 ----> LINK1 ----> link ----> LINK2 ----> XTP2 --> messages
//!           (the sender;   ^ finite   1 slot,    | finite    finite;
//!            2 slots a     |          6 slots    v           2 slots
//!            packet)    external     of way   external
//! ```
//!
//! A message is a segment. XTP1 asks the sending half for a packet when its server is free; the receiving half takes a
//! packet when it leaves XTP2. Control, in both directions, takes a fixed time, is never lost and occupies nobody
//! (XT 3.2). Called by laboratories and tests; it names no protocol.
//!
//! - [`config`]: [`TandemConfig`], the stations and the traffic.
//! - [`arrivals`]: [`Arrivals`], Bernoulli and interrupted Bernoulli.
//! - [`queue`]: [`Queue`], a finite queue with its server; `link`: what lies between.
//! - `messages`: what has arrived and is not delivered; [`outcome`]: [`TandemOutcome`], what a run brought.
//! - [`steady_state`]: whether it has a mean at all.
//!
//! Time: all of a slot happens at its beginning, in this order.
//!
//! 1. A packet leaves XTP1 for LINK1. When an external packet arrives there too, [`Tie`] says which is first.
//! 2. LINK1 with what has arrived; what leaves it enters the link. LINK2 with what has crossed the link; a corrupted or
//!    external packet that leaves it is gone. XTP2 with what has left LINK2. In each, [`Order`] says what is first.
//! 3. The packet that leaves XTP2 is handed to the receiver; then control that has arrived; then its timer, if due.
//! 4. Feedback that has arrived is handed to the sender; then its timer, if due; then a message that arrives in the slot.
//! 5. A free server of XTP1 asks the sender for a packet. Its service begins in this slot, and packets that carry
//!    nothing leave at once. A busy one asks for control only.
//!
//! So a message of n packets that meets nobody takes `delay_slots_min + xtp_processing_slots * (n - 1)`, 15 + 2 (n - 1).
//! A half's timer expires in the first slot that does not begin before it.
//!
//! Invariant: the same halves, configuration and seed give the same run on every platform. Arrivals, lengths, external
//! traffic, ties and noise draw from streams of their own, as often in every run: two schemes meet the same messages, the same
//! external packets and the same bad slots of the link under one seed. In steady state nothing is allocated.

pub mod arrivals;
pub mod config;
mod link;
mod messages;
pub mod outcome;
pub mod queue;
pub mod steady_state;

pub use arrivals::{Arrivals, ArrivalsError};
pub use config::{TandemConfig, TandemConfigError};
pub use outcome::{Batch, DelaySums, TandemOutcome};
pub use queue::{Customer, Order, Queue, QueueOutcome, Split, Tie};

use arrivals::Process;
use link::{ControlLine, Link};
use messages::Messages;
use outcome::BATCHES;
use segstream_base::halves::{Deadline, Packet as _, Receiver, ReceiverEvent, Sender, SenderCounters, SenderEvent, SubmitError};
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};

/// How many packets a half may hand out in one slot beside data.
const AT_ONCE_MAX: u32 = 1 << 16;
/// The slot of what never comes.
const NEVER: u64 = u64::MAX;

/// Why a run over a tandem cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TandemError {
    /// The sender will not take a message, ever.
    #[error("message {message} (counted from 0) was refused: {error}")]
    Refused {
        /// Which.
        message: u64,
        /// Why.
        error: SubmitError,
    },
    /// A half sends control without end.
    #[error("the {half} handed out {AT_ONCE_MAX} control packets in slot {slot} and still had more; it must stop")]
    Endless {
        /// Which half.
        half: &'static str,
        /// When.
        slot: u64,
    },
}

/// A pair of halves and the tandem between them.
///
/// Both halves must be made with [`Instant::ZERO`], where the run starts.
#[derive(Debug)]
pub struct Tandem<S: Sender, R> {
    slot: u64,
    now: Instant,
    slot_length: Duration,
    warm_up_slots: u64,
    slots: u64,
    sender: S,
    receiver: R,
    /// The packet that XTP1 serves, and when it leaves.
    served: Option<S::Forward>,
    xtp1_done_at: u64,
    /// A packet has left XTP1 in this slot.
    xtp1_freed: bool,
    xtp1_slots: u64,
    link1: Queue<S::Forward>,
    link: Link<S::Forward>,
    link2: Queue<S::Forward>,
    xtp2: Queue<S::Forward>,
    control: ControlLine<S::Forward>,
    feedback: ControlLine<S::Feedback>,
    /// When the timers of the halves are due.
    sender_due: u64,
    receiver_due: u64,
    messages: Messages,
    traffic: Traffic,
    batch: Batch,
    outcome: TandemOutcome,
    /// What the sender had handed out when the measured slots began.
    counters_before: SenderCounters,
}

/// What comes from outside, each from its own stream.
#[derive(Debug)]
struct Traffic {
    process: Process,
    arrivals: Random,
    external_rate: f64,
    external: Random,
    packet_error_rate: f64,
    errors: Random,
    tie: Tie,
    ties: Random,
}

impl Traffic {
    /// Draws for every external packet, whoever meets it.
    #[inline]
    fn is_external_first(&mut self) -> bool {
        match self.tie {
            Tie::UserFirst => false,
            Tie::ExternalFirst => true,
            Tie::Drawn => self.ties.bits() & 1 == 1,
        }
    }
}

impl<S, R> Tandem<S, R>
where
    S: Sender,
    R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
{
    /// A run that has not started. It draws from the streams `arrivals`, `lengths`, `external`, `ties` and `errors`
    /// of `seed`.
    ///
    /// # Errors
    /// Says which value of the configuration is invalid.
    pub fn new(sender: S, receiver: R, config: &TandemConfig, seed: Seed) -> Result<Self, TandemConfigError> {
        config.check()?;
        let queue = |room, service| Queue::new(room, service, config.order);
        Ok(Self {
            slot: 0,
            now: Instant::ZERO,
            slot_length: config.slot,
            warm_up_slots: config.warm_up_slots,
            slots: config.slots,
            sender,
            receiver,
            served: None,
            xtp1_done_at: NEVER,
            xtp1_freed: false,
            xtp1_slots: u64::from(config.xtp_processing_slots),
            link1: queue(config.link1_room, config.processing_slots),
            link: Link::new(config.transmission_slots, config.propagation_slots),
            link2: queue(config.link2_room, config.processing_slots),
            xtp2: queue(config.xtp2_room, config.xtp_processing_slots),
            control: ControlLine::new(config.control_slots),
            feedback: ControlLine::new(config.control_slots),
            // Why now: before the first slot nobody has asked the halves.
            sender_due: 0,
            receiver_due: 0,
            messages: Messages::new(config, seed.stream("lengths")),
            traffic: Traffic {
                process: Process::new(config.arrivals)?,
                arrivals: seed.stream("arrivals"),
                external_rate: config.external_rate,
                external: seed.stream("external"),
                packet_error_rate: config.packet_error_rate,
                errors: seed.stream("errors"),
                tie: config.tie,
                ties: seed.stream("ties"),
            },
            batch: Batch::default(),
            outcome: TandemOutcome { batches: Vec::with_capacity(BATCHES), ..TandemOutcome::default() },
            counters_before: SenderCounters::default(),
        })
    }

    /// Runs the warm-up and the measured slots. A second call returns what the first did.
    ///
    /// # Errors
    /// When a half refuses a message for good, or sends without end.
    pub fn run(&mut self) -> Result<&TandemOutcome, TandemError> {
        if self.outcome.slots > 0 {
            return Ok(&self.outcome);
        }
        self.run_to(self.warm_up_slots)?;
        self.restart();
        let (slots, parts) = (u128::from(self.slots), BATCHES as u128);
        for part in 1..=parts {
            // Why 128 bits: the product may not fit 64; the quotient does.
            self.run_to(self.warm_up_slots.saturating_add((slots * part / parts) as u64))?;
            self.close_batch();
        }
        self.close();
        Ok(&self.outcome)
    }

    /// The sending half.
    pub const fn sender(&self) -> &S {
        &self.sender
    }

    /// The receiving half.
    pub const fn receiver(&self) -> &R {
        &self.receiver
    }

    /// Data packets between the sender and the receiver that are not corrupted.
    pub fn packets_under_way(&self) -> u64 {
        let queued = self.link1.user_len() + self.link.user_len() + self.link2.user_len() + self.xtp2.user_len();
        queued as u64 + u64::from(self.served.is_some())
    }

    fn run_to(&mut self, end: u64) -> Result<(), TandemError> {
        while self.slot < end {
            self.step()?;
            self.slot += 1;
            self.now += self.slot_length;
        }
        Ok(())
    }

    /// One slot.
    #[inline]
    fn step(&mut self) -> Result<(), TandemError> {
        let traffic = &mut self.traffic;
        let message = traffic.process.arrives(&mut traffic.arrivals);
        let external = traffic.external.chance(traffic.external_rate);
        let external_first = external && traffic.is_external_first();
        let noise = traffic.errors.chance(traffic.packet_error_rate);

        let received = self.pass_packets(external, external_first, noise);
        self.serve_receiver(received)?;
        self.serve_sender(message)?;

        self.batch.slots += 1;
        self.batch.backlog_sum += self.messages.backlog;
        self.batch.backlog_max = self.batch.backlog_max.max(self.messages.backlog);
        Ok(())
    }

    /// Steps 1 and 2: the packets from XTP1 on. Returns the one that leaves XTP2.
    #[inline]
    fn pass_packets(&mut self, external: bool, external_first: bool, noise: bool) -> Option<S::Forward> {
        let slot = self.slot;
        let mut user = None;
        if self.xtp1_done_at == slot {
            self.xtp1_done_at = NEVER;
            self.xtp1_freed = true;
            user = self.served.take().map(Customer::User);
        }
        let external = external.then_some(Customer::External);
        let (first, second) = if external_first { (external, user) } else { (user, external) };
        let sent = self.link1.pass(slot, first, second);
        if let Some(customer) = sent {
            self.link.enter(slot, customer, noise);
        }
        let crossed = self.link.leave(slot);
        let passed = self.link2.pass(slot, crossed, None).filter(|customer| matches!(customer, Customer::User(_)));
        match self.xtp2.pass(slot, passed, None) {
            Some(Customer::User(packet)) => Some(packet),
            _ => None,
        }
    }

    /// Step 3.
    #[inline]
    fn serve_receiver(&mut self, received: Option<S::Forward>) -> Result<(), TandemError> {
        let mut touched = false;
        if let Some(packet) = received {
            self.outcome.packets_received += 1;
            self.receiver.handle_forward(self.now, &packet);
            touched = true;
        }
        while let Some(packet) = self.control.leave(self.slot) {
            self.receiver.handle_forward(self.now, &packet);
            touched = true;
        }
        if self.receiver_due <= self.slot {
            self.receiver.handle_timeout(self.now);
            touched = true;
        }
        if touched { self.poll_receiver() } else { Ok(()) }
    }

    fn poll_receiver(&mut self) -> Result<(), TandemError> {
        self.hear_receiver();
        let mut polled = 0;
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            self.feedback.enter(self.slot, packet);
            polled += 1;
            if polled == AT_ONCE_MAX {
                return Err(TandemError::Endless { half: "receiver", slot: self.slot });
            }
        }
        self.receiver_due = self.slot_of(self.receiver.poll_timeout());
        Ok(())
    }

    fn hear_receiver(&mut self) {
        while let Some(event) = self.receiver.poll_event() {
            let ReceiverEvent::Delivered { segment, verdict, .. } = event else { continue };
            match self.messages.judge(segment) {
                Some(arrived_at) if verdict.is_met() => self.batch.delay.add(self.slot - arrived_at),
                Some(_) => self.outcome.messages_unmet += 1,
                None => {}
            }
        }
    }

    /// Steps 4 and 5.
    #[inline]
    fn serve_sender(&mut self, message: bool) -> Result<(), TandemError> {
        let mut touched = std::mem::take(&mut self.xtp1_freed);
        while let Some(packet) = self.feedback.leave(self.slot) {
            self.sender.handle_feedback(self.now, &packet);
            touched = true;
        }
        if self.sender_due <= self.slot {
            self.sender.handle_timeout(self.now);
            touched = true;
        }
        if message {
            let packets = self.messages.arrive(self.slot);
            self.batch.messages_offered += 1;
            self.outcome.packets_offered += u64::from(packets);
            touched = true;
        }
        if touched { self.poll_sender() } else { Ok(()) }
    }

    /// Takes all that the sender has to say and to send now.
    fn poll_sender(&mut self) -> Result<(), TandemError> {
        self.hear_sender()?;
        let mut polled = 0;
        loop {
            let free = self.served.is_none();
            let packet = if free { self.sender.poll_transmit(self.now) } else { self.sender.poll_control(self.now) };
            match packet {
                Some(packet) if free && packet.is_data() => {
                    self.served = Some(packet);
                    self.xtp1_done_at = self.slot + self.xtp1_slots;
                }
                Some(packet) => {
                    self.control.enter(self.slot, packet);
                    polled += 1;
                    if polled == AT_ONCE_MAX {
                        return Err(TandemError::Endless { half: "sender", slot: self.slot });
                    }
                }
                None if self.hear_sender()? => {}
                None => break,
            }
        }
        self.sender_due = self.next_sender_due();
        Ok(())
    }

    /// Takes the sender's events, and hands it the messages that it takes. Returns whether it took any.
    fn hear_sender(&mut self) -> Result<bool, TandemError> {
        while let Some(event) = self.sender.poll_event() {
            if matches!(event, SenderEvent::WindowOpen(_)) {
                self.messages.unblock();
            }
        }
        let messages = &mut self.messages;
        messages.submit(self.now, &mut self.sender).map_err(|error| TandemError::Refused { message: messages.next(), error })
    }

    /// When the sender's timer is to be looked at, after it has sent all it may now.
    fn next_sender_due(&self) -> u64 {
        if self.served.is_none() {
            return self.slot_of(self.sender.poll_timeout());
        }
        let due = self.slot_of(self.sender.poll_control_timeout());
        // Why not what is due already: all that could be done about it is done, so it is data, which waits for the server.
        if due > self.slot { due } else { self.xtp1_done_at }
    }

    /// The first slot that does not begin before a deadline.
    fn slot_of(&self, deadline: Option<Deadline>) -> u64 {
        deadline.map_or(NEVER, |deadline| deadline.at.as_nanos().div_ceil(self.slot_length.as_nanos()))
    }

    /// The measured slots begin.
    fn restart(&mut self) {
        [&mut self.link1, &mut self.link2, &mut self.xtp2].into_iter().for_each(|queue| queue.restart(self.slot));
        (self.link.corrupted, self.control.sent, self.feedback.sent) = (0, 0, 0);
        self.batch = Batch::default();
        let batches = std::mem::take(&mut self.outcome.batches);
        self.outcome = TandemOutcome { batches, backlog_start: self.messages.backlog, ..TandemOutcome::default() };
        self.counters_before = self.sender.counters();
    }

    fn close_batch(&mut self) {
        let batch = Batch { backlog_end: self.messages.backlog, ..std::mem::take(&mut self.batch) };
        self.outcome.messages_offered += batch.messages_offered;
        self.outcome.delay.merge(&batch.delay);
        self.outcome.batches.push(batch);
    }

    /// The measured slots are over.
    fn close(&mut self) {
        let (before, after) = (self.counters_before, self.sender.counters());
        let outcome = &mut self.outcome;
        outcome.slots = self.slots;
        outcome.packets_sent = after.packets_sent.saturating_sub(before.packets_sent);
        outcome.packets_retransmitted = after.packets_retransmitted.saturating_sub(before.packets_retransmitted);
        outcome.packets_corrupted = self.link.corrupted;
        (outcome.control_packets, outcome.feedback_packets) = (self.control.sent, self.feedback.sent);
        let queues = [(&mut self.link1, &mut outcome.link1), (&mut self.link2, &mut outcome.link2), (&mut self.xtp2, &mut outcome.xtp2)];
        queues.into_iter().for_each(|(queue, outcome)| outcome.clone_from(queue.outcome(self.slot)));
        outcome.backlog_end = self.messages.backlog;
    }
}
