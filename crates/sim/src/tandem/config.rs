//! What a tandem is made of, and which values are invalid.
//!
//! Called by whoever builds a [`super::Tandem`].
//!
//! Invariant: [`TandemConfig::default`] is the model of XT 3.2 at a user throughput of 0.12 messages a slot. Where the
//! paper is silent the value is ours, and its line says so.

use super::arrivals::{Arrivals, ArrivalsError, Process};
use super::queue::{Order, Tie};
use segstream_base::Duration;

/// The most packets a queue of a tandem may have room for.
pub const ROOM_MAX: u32 = 65_536;

/// The stations, the traffic and the length of a run. A slot is the unit of all times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TandemConfig {
    /// How long a slot is, for halves, which count in time. Default: 81.92 us, a packet of 1024 bytes at 100 Mbit/s.
    pub slot: Duration,
    /// The service of LINK1 and LINK2. Default: 2.
    pub processing_slots: u32,
    /// The service of XTP1 and XTP2. Default: 2.
    pub xtp_processing_slots: u32,
    /// What the link takes to send a packet. Default: 1.
    pub transmission_slots: u32,
    /// What a packet takes to cross the link. Default: 6.
    pub propagation_slots: u32,
    /// Packets that LINK1 has room for, the one in service among them. Default: 13. Why not the paper's 10: it does not
    /// say whether the packets in service and in transmission, and one that leaves as another comes, take one of the ten
    /// buffers; with them it is 13.
    pub link1_room: u32,
    /// Packets that LINK2 has room for, the one in service among them. Default: 10.
    pub link2_room: u32,
    /// Packets that XTP2 has room for, the one in service among them. Default: 10.
    pub xtp2_room: u32,
    /// The probability that a packet of the external traffic arrives at LINK1 in a slot. Default: 0.1.
    pub external_rate: f64,
    /// The probability that a packet is corrupted on the link. Default: 8.19e-6, 8192 bits at a bit error rate of 1e-9.
    pub packet_error_rate: f64,
    /// What a control packet takes, in either direction. Default: 14, the stations and the propagation of a data packet
    /// without the transmission.
    pub control_slots: u32,
    /// What comes first when one packet leaves a queue in the slot in which another arrives. Default: the one that
    /// leaves, which makes room.
    pub order: Order,
    /// Which is first when a packet of the halves and one of the external traffic arrive at LINK1 in one slot. Default: the
    /// external one. The paper does not say; inferred from its results: with departures first it gives the optimum windows of
    /// XT Table 4 in their order, closer than a drawn one; the user's own first does not.
    pub tie: Tie,
    /// How messages arrive. Default: [`Arrivals::Bernoulli`] at 0.12.
    pub arrivals: Arrivals,
    /// The probability that a message has one packet more: its length is geometric. Default: 0.5, so 2 packets on the
    /// average.
    pub message_continue: f64,
    /// The most packets a message has; what the draw gives beyond it is cut off. Default: 64, which one message in 2^64
    /// would exceed.
    pub message_packets_max: u32,
    /// The payload of a packet in bytes: a message of n packets is a segment of n times that. Default: 1024.
    pub packet_payload_bytes: u32,
    /// Slots that are measured. Default: two million.
    pub slots: u64,
    /// Slots in front of them that are not. Default: 20 000.
    pub warm_up_slots: u64,
}

impl Default for TandemConfig {
    fn default() -> Self {
        Self {
            slot: Duration::from_nanos(81_920),
            processing_slots: 2,
            xtp_processing_slots: 2,
            transmission_slots: 1,
            propagation_slots: 6,
            link1_room: 13,
            link2_room: 10,
            xtp2_room: 10,
            external_rate: 0.1,
            packet_error_rate: 8.19e-6,
            control_slots: 14,
            order: Order::default(),
            tie: Tie::default(),
            arrivals: Arrivals::Bernoulli { rate: 0.12 },
            message_continue: 0.5,
            message_packets_max: 64,
            packet_payload_bytes: 1024,
            slots: 2_000_000,
            warm_up_slots: 20_000,
        }
    }
}

/// Why a tandem cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TandemConfigError {
    /// A count that must not be zero is.
    #[error("{what} is 0; give at least 1")]
    Zero {
        /// Which.
        what: &'static str,
    },
    /// A queue is too large to be measured.
    #[error("{queue} has room for {room} packets; give at most {ROOM_MAX}")]
    Room {
        /// Which queue.
        queue: &'static str,
        /// Its room.
        room: u32,
    },
    /// Not a probability.
    #[error("{what} is {value}; give a probability, from 0 to 1")]
    Probability {
        /// Which.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// Messages would have no end.
    #[error("the probability that a message goes on is {value}; give 0 or more and less than 1")]
    Endless {
        /// What was given.
        value: f64,
    },
    /// The arrival process is invalid.
    #[error(transparent)]
    Arrivals(#[from] ArrivalsError),
}

impl TandemConfig {
    /// Whether a tandem can be built.
    ///
    /// # Errors
    /// Names the first value that cannot be.
    pub fn check(&self) -> Result<(), TandemConfigError> {
        let counts = [
            ("the length of a slot", self.slot.as_nanos()),
            ("the service of a LINK station", u64::from(self.processing_slots)),
            ("the service of an XTP station", u64::from(self.xtp_processing_slots)),
            // Why not 0: an answer would be there before the slot is over in which it was requested.
            ("the delay of control", u64::from(self.control_slots)),
            ("the most packets of a message", u64::from(self.message_packets_max)),
            ("the payload of a packet", u64::from(self.packet_payload_bytes)),
            ("the number of measured slots", self.slots),
            ("the room of LINK1", u64::from(self.link1_room)),
            ("the room of LINK2", u64::from(self.link2_room)),
            ("the room of XTP2", u64::from(self.xtp2_room)),
        ];
        if let Some((what, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(TandemConfigError::Zero { what });
        }
        let rooms = [("LINK1", self.link1_room), ("LINK2", self.link2_room), ("XTP2", self.xtp2_room)];
        if let Some((queue, room)) = rooms.into_iter().find(|(_, room)| *room > ROOM_MAX) {
            return Err(TandemConfigError::Room { queue, room });
        }
        let probabilities = [("the rate of the external traffic", self.external_rate), ("the packet error rate", self.packet_error_rate)];
        if let Some((what, value)) = probabilities.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return Err(TandemConfigError::Probability { what, value });
        }
        if !(0.0..1.0).contains(&self.message_continue) {
            return Err(TandemConfigError::Endless { value: self.message_continue });
        }
        Process::new(self.arrivals)?;
        Ok(())
    }

    /// The mean length of a message in packets.
    pub fn message_packets_mean(&self) -> f64 {
        (1.0 - libm::pow(self.message_continue, f64::from(self.message_packets_max))) / (1.0 - self.message_continue)
    }

    /// What a message of one packet takes from end to end when nothing is in its way.
    pub const fn delay_slots_min(&self) -> u64 {
        2 * (self.processing_slots as u64 + self.xtp_processing_slots as u64)
            + self.transmission_slots as u64
            + self.propagation_slots as u64
    }

    /// From the start of a packet's service at XTP1 to the arrival of what the receiver answers, when nothing is in the way.
    pub const fn control_round_trip_slots(&self) -> u64 {
        self.delay_slots_min() + self.control_slots as u64
    }
}
