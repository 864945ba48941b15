//! The receiving half of XTP: delivers what comes in sequence, and tells its state when asked or when a gap opens.
//!
//! Called by the laboratory under the contract of the halves. Sources: XT 2, XT Table 2.
//!
//! What is in sequence goes to the user, who takes [`Config::reads`] for each packet (`delivery`): SREQ is answered at once, DREQ
//! when what had come has been read. Every CNTL moves the window: ALLOC is DSEQ and the window (XT 4).
//!
//! A gap is reported once. A receiver that discards would by the letter of XT Table 2 send a CNTL for every packet behind it;
//! it sends one when a packet is neither the one expected nor the one behind the packet before.
//!
//! Invariant: nothing from ALLOC on is kept; segments are delivered in order, whole, once.

use super::delivery::{Delivery, Message};
use super::options::Options;
use super::packet::{Feedback, Forward, Place};
use super::store::{Held, Store};
use super::{Config, ConfigError, ReceiverStrategy};
use segstream_base::Instant;
use segstream_base::halves::{Deadline, Probe, ReceiverEvent, SegmentNumber, StreamId, Verdict};
use std::collections::VecDeque;

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    /// The window in sequence numbers.
    window: u64,
    /// One more than the highest byte up to which all have come.
    rseq: u64,
    /// What of it the user has read.
    delivery: Delivery,
    /// Where RSEQ is, and how many packets of the segment have come.
    place: Place,
    packets: u32,
    store: Store,
    /// The sequence number behind the packet that came last.
    behind_last: u64,
    /// The number of the last question, and whether a CNTL is to leave, to answer it or to tell of a gap.
    echo: u32,
    owed: bool,
    gap: bool,
    /// The sequence number at which the stream ends.
    end: Option<u64>,
    ended: bool,
    received_again: u64,
    out_of_sequence: u64,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// A receiver; it says nothing until something arrives.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, _now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            window: config.window_bytes(),
            rseq: 0,
            delivery: Delivery::new(config.reads),
            place: Place { segment: 0, offset: 0 },
            packets: 0,
            store: Store::default(),
            behind_last: 0,
            echo: 0,
            owed: false,
            gap: false,
            end: None,
            ended: false,
            received_again: 0,
            out_of_sequence: 0,
            events: VecDeque::new(),
            config,
        })
    }

    /// One more than the highest byte that may come.
    #[inline]
    fn alloc(&self) -> u64 {
        self.delivery.dseq().saturating_add(self.window)
    }

    /// A packet of data has come.
    #[inline]
    fn take(&mut self, now: Instant, packet: Held) {
        if packet.start == self.rseq {
            self.deliver(now, packet);
            self.deliver_stored(now);
        } else if packet.start < self.rseq {
            self.received_again += 1;
        } else if packet.end <= self.alloc() {
            self.take_out_of_sequence(packet);
        }
        self.behind_last = packet.end;
    }

    /// XT Table 2.
    fn take_out_of_sequence(&mut self, packet: Held) {
        self.out_of_sequence += 1;
        let opens_gap = match self.config.receiver {
            ReceiverStrategy::Discard => packet.start != self.behind_last,
            ReceiverStrategy::StoreConservative | ReceiverStrategy::StoreAggressive => {
                // It lies behind RSEQ, so that with nothing kept it opens a gap, and the only one.
                let is_first = self.store.is_empty();
                let is_new = self.store.insert(packet);
                self.received_again += u64::from(!is_new);
                is_first && self.config.receiver == ReceiverStrategy::StoreAggressive
            }
        };
        if opens_gap {
            self.gap = true;
            self.owed = true;
        }
    }

    /// A packet in sequence goes to the user; not when it does not continue its message.
    #[inline]
    fn deliver(&mut self, now: Instant, packet: Held) -> bool {
        if packet.place != self.place || packet.end > self.alloc() || self.packets >= self.config.segment_packets {
            return false;
        }
        let payload = packet.end - packet.start - u64::from(Forward::sequence_bytes(0));
        let Some(offset) = u32::try_from(payload).ok().and_then(|payload| self.place.offset.checked_add(payload)) else { return false };
        self.rseq = packet.end;
        self.place.offset = offset;
        self.packets += 1;
        let message = packet.is_last.then(|| self.complete());
        if let Some(read) = self.delivery.push(now, self.rseq, message) {
            self.tell(read);
        }
        true
    }

    fn complete(&mut self) -> Message {
        let segment = SegmentNumber(u64::from(self.place.segment));
        // Limit: the sender has no segment behind the last number.
        self.place = Place { segment: self.place.segment.saturating_add(1), offset: 0 };
        Message { segment, packets: core::mem::take(&mut self.packets) }
    }

    fn tell(&mut self, message: Message) {
        let Message { segment, packets: units } = message;
        self.events.push_back(ReceiverEvent::Delivered { stream: StreamId(0), segment, verdict: Verdict::Complete, units, holes: 0 });
    }

    /// What the user has read by now, and what hangs on it: the answer to DREQ, and the end.
    fn read(&mut self, now: Instant) {
        while let Some(read) = self.delivery.read(now) {
            if let Some(message) = read {
                self.tell(message);
            }
        }
        if let Some(sync) = self.delivery.answered() {
            self.echo = self.echo.max(sync);
            self.owed = true;
        }
        self.end();
    }

    /// Delivers what the last packet has put into sequence. What does not continue is thrown away: it stays missing.
    #[inline]
    fn deliver_stored(&mut self, now: Instant) {
        while let Some(held) = self.store.pop(self.rseq) {
            if held.start == self.rseq {
                self.deliver(now, held);
            }
        }
    }

    /// Whether the stream is over with what is here.
    fn end(&mut self) {
        if self.end == Some(self.rseq) && self.delivery.dseq() == self.rseq && self.packets == 0 && !self.ended {
            self.ended = true;
            self.events.push_back(ReceiverEvent::Ended { stream: StreamId(0), segments: u64::from(self.place.segment) });
        }
    }
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        let (key, options, sync, behind) = match *packet {
            Forward::Data { key, options, sync, sequence, bytes, .. } => {
                let length = u64::from(Forward::sequence_bytes(u32::from(bytes)));
                (key, options, sync, sequence.checked_add(length))
            }
            Forward::Control { key, options, sync, sequence } => (key, options, sync, Some(sequence)),
        };
        let Some(behind) = behind.filter(|_| key == self.config.key) else { return };
        if let Forward::Data { sequence, place, .. } = *packet {
            self.take(now, Held { start: sequence, end: behind, place, is_last: options.has(Options::EOM) });
        }
        if options.has(Options::WCLOSE) && behind >= self.rseq {
            self.end = self.end.or(Some(behind));
        }
        if options.has(Options::DREQ) {
            self.delivery.ask(self.rseq, sync);
        }
        if options.has(Options::SREQ) {
            self.echo = self.echo.max(sync);
            self.owed = true;
        }
        self.read(now);
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Instant) -> Option<Feedback> {
        if !core::mem::take(&mut self.owed) {
            return None;
        }
        let gap = core::mem::take(&mut self.gap);
        Some(Feedback {
            key: self.config.key,
            options: Options::NONE.with_if(Options::FASTNAK, gap).with_if(Options::RCLOSE, self.ended),
            dseq: self.delivery.dseq(),
            rseq: self.rseq,
            alloc: self.alloc(),
            echo: self.echo,
            spans: self.store.spans(self.config.spans_max()),
        })
    }

    /// `reading`: the user has read a packet. A CNTL leaves at once.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        self.delivery.next_at().map(|at| Deadline { at, timer: "reading" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.read(now);
    }

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("rseq_bytes", self.rseq as f64);
        out.gauge("unread_packets", self.delivery.len() as f64);
        out.gauge("held_packets", self.store.len() as f64);
        out.gauge("received_again_packets", self.received_again as f64);
        out.gauge("out_of_sequence_packets", self.out_of_sequence as f64);
    }
}
