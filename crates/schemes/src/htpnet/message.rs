//! The messages between the processes, the host and the network (HT 5, HT Fig 7).
//!
//! Called by every process. Data are never in a message: a packet's payload lies in a packet store, and its slot goes from
//! process to process (HT 3.1).
//!
//! Invariant: a message can be sent to another thread; only those of a state exchange own memory.

use super::Class;
use super::packet::{Control, Feedback, Forward, Reason, Terms, TransmitterState};
use segstream_base::{Duration, Instant};
use segstream_blocks::Bitmap;

/// A packet's worth of user data, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The segment.
    pub segment: u32,
    /// Which packet of it.
    pub packet: u16,
    /// Whether it is the last one.
    pub last: bool,
    /// Payload bytes.
    pub bytes: u16,
    /// Its slot in the packet store; the owner of the store interprets it.
    pub slot: u32,
}

/// A message between two processes, or a process and the outside.
#[derive(Clone, Debug)]
pub enum Message {
    /// Host to Tx1: send this. Units come in the order of segments and packets.
    Offer(Unit),
    /// Host to Tx1: nothing follows; there were this many segments.
    Finish(u32),
    /// Host to Tx2: another smallest gap between packets, `None` for none.
    Rate(Option<Duration>),
    /// Host to Tx2: another class.
    Class(Class),
    /// Tx1 to host: the slot can be used again. Rx1 to host: and so can that of a packet it has no use for.
    Release {
        /// The segment the unit belongs to.
        segment: u32,
        /// The slot.
        slot: u32,
        /// Whether it has arrived for certain; otherwise, without error control, it is only not waited for.
        arrived: bool,
    },
    /// Tx2 or Rx2 to host: set-up or release has come this far.
    Connection(ConnectionNews),
    /// Tx2 to Tx1, Rx2 to Rx1: the connection is open on these terms.
    Open(Terms),
    /// Tx2 to Tx1: put this packet behind the data, and tell what went before it. TIME and LSEQ are Tx1's to fill in.
    Sync {
        /// The packet.
        state: TransmitterState,
        /// The class of the data that follow.
        class: Class,
        /// Whether both sides know that these have error control.
        certain: bool,
    },
    /// Tx1 to Tx2: the packet has gone, and these data before it.
    Sent(Box<SentLog>),
    /// Tx1 to Tx2: data leave, the first ones since the last exchange.
    Busy,
    /// Tx2 to Tx1: the bitmap of what has arrived and what has not.
    Verdicts(Box<Verdicts>),
    /// Tx1 to Tx2: everything was sent and released.
    Drained {
        /// Packets there were.
        packets: u64,
        /// Segments there were.
        segments: u32,
    },
    /// Tx2 to the congestion avoidance process: what an exchange has measured.
    Measured(Measured),
    /// Tx2 to Tx1: packets come no closer than this, by RATE.
    Gap(Duration),
    /// Congestion avoidance to Tx1: packets come no closer than this.
    AvoidingGap(Duration),
    /// To the network and from it, in the order of sending: all of them go to Rx1, behind one another.
    Forward {
        /// The packet.
        packet: Forward,
        /// Where its payload lies; 0 when it has none.
        slot: u32,
    },
    /// To the network and from it, to Tx2.
    Feedback(Feedback),
    /// Rx1 to Rx2: an exchange, and what has been received in front of it.
    Status(Box<Status>),
    /// Rx1 to Rx2: a packet of set-up or release.
    Control {
        /// The packet.
        control: Control,
        /// Whether everything it speaks of has been received.
        settled: bool,
    },
    /// Rx1 to Rx2: data come, the first ones of the connection.
    Heard,
    /// Rx1 to host: this has been received.
    Deliver {
        /// The unit, with the receiver's slot.
        unit: Unit,
        /// Its number in the sequence of all packets.
        seq: u64,
    },
    /// Rx1 to host: nothing before this number will come any more.
    Passed(u64),
    /// Rx1 to host: there were this many segments, and no more will come.
    Ended(u32),
    /// Host to Rx1: this many slots can be used again.
    Consumed(u32),
}

/// What Tx1 has sent since the exchange before (HT 5).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentLog {
    /// When the state packet left.
    pub left: Instant,
    /// The gap that was kept.
    pub gap: Duration,
    /// The numbers, each with whether it was sent before.
    pub packets: Vec<(u64, bool)>,
    /// Packets sent so far: the number after LSEQ.
    pub sent: u64,
    /// Whether data wait to be sent.
    pub waiting: bool,
}

/// What Tx2 has found out from a report (HT 5).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// The number after CAACK.
    pub next: u64,
    /// Numbers beyond it that have arrived and were not reported before.
    pub arrived: Vec<u64>,
    /// Numbers to be retransmitted, in the order in which they were sent.
    pub lost: Vec<u64>,
    /// CREDIT.
    pub credit: u16,
}

/// What an exchange tells about congestion (HT 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Between the departures of this TXS and the one before.
    pub alpha: Duration,
    /// Between their arrivals; the mean of them where exchanges were lost.
    pub beta: Duration,
    /// How many exchanges this one is after the last that was measured.
    pub exchanges: u64,
    /// The gap in force when this TXS left; where there was none, the mean one between the packets of the exchange.
    pub gap: Duration,
    /// The gap that holds by RATE, below which congestion avoidance must not go.
    pub floor: Duration,
}

/// What Rx1 has received when an exchange arrives (HT 5).
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The exchange.
    pub state: TransmitterState,
    /// When it arrived.
    pub arrived: Instant,
    /// The first number that is waited for.
    pub next: u64,
    /// Which numbers from `next` on have been received.
    pub bitmap: Bitmap,
    /// Free buffers.
    pub credit: u16,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionNews {
    /// It is open.
    Open(Terms),
    /// The peer has refused it, or does not answer.
    Refused(Reason),
    /// It has been released.
    Released,
}
