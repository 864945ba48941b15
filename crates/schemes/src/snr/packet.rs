//! The packets of SNR: data and the sender's state forward, the receiver's state back.
//!
//! Called by both halves and by the endpoint adapter. The papers give no formats, so these are chosen;
//! they follow SSTP's frame (EC 4.1): a connection identifier and a type in front, a checksum at the end.
//! Integers are big-endian.
//!
//! ```text
//! data            CID 4  TYPE 2  BLOCK 4  PACKET 2  PACKETS 2  STRIDE 2  payload  CHECKSUM 2
//! sender state    CID 4  TYPE 2  INTERVAL 4  BLOCKS 4  SENT 2  PACKETS 2  FLAGS 2  CHECKSUM 2
//! receiver state  CID 4  TYPE 2  INTERVAL 4  CUMULATIVE 4  FLAGS 2  COUNT 2  bits  CHECKSUM 2
//! ```
//!
//! STRIDE is the payload of a full packet, so that a short last packet can be placed. The bits of a
//! receiver state are COUNT bits in words of 16, least significant first.
//!
//! Invariant: no input makes `decode` panic, and what decodes has its packet within its block and its
//! payload within its stride.

use crate::checksum;
use crate::envelope::{CHECKSUM_BYTES, DATA, Sealing, opened, opened_as};
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

const SENDER_STATE: u16 = 1;
const RECEIVER_STATE: u16 = 2;

/// Bytes of a data packet in front of its payload.
const DATA_HEADER_BYTES: usize = 16;
/// Bytes of a sender state in front of its checksum.
const SENDER_STATE_BYTES: usize = 20;
/// Bytes of a receiver state in front of its bits.
const RECEIVER_STATE_BYTES: usize = 18;

/// The one bit of FLAGS: no block follows (sender), every block has been accepted (receiver).
const END: u16 = 1;

/// A packet from sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// One packet of a block.
    Data {
        /// The connection.
        connection: u32,
        /// The block, which is the segment.
        block: u32,
        /// Which packet of it, counted from 0.
        packet: u16,
        /// How many packets the block has.
        packets: u16,
        /// Payload bytes of every packet of the block but the last.
        stride: u16,
        /// Payload bytes of this one.
        bytes: u16,
    },
    /// What the sender has sent so far.
    State(SenderState),
}

/// The sender's state: the highest sequence it has sent, and whether more will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderState {
    /// The connection.
    pub connection: u32,
    /// The number of the interval that ends with this state; wraps.
    pub interval: u32,
    /// How many blocks have been begun; the last of them is the highest sent.
    pub blocks: u32,
    /// How many packets of the highest block have been sent.
    pub sent: u16,
    /// How many packets the highest block has.
    pub packets: u16,
    /// No block follows those begun.
    pub end: bool,
}

/// The receiver's state: what it has accepted, cumulative and block by block over its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The connection.
    pub connection: u32,
    /// The number of the interval that ends with this state; wraps. The difference to the last one that
    /// arrived is k.
    pub interval: u32,
    /// The first block that is not accepted: all before it are.
    pub cumulative: u32,
    /// Every block up to the end has been accepted.
    pub ended: bool,
    /// Which of the blocks from `cumulative` on are accepted.
    pub received: Received,
}

/// A bit for each block of the receiver's window, of a fixed size so that a state needs no allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    words: [u16; Self::MAX_BLOCKS as usize / 16],
    count: u16,
}

impl Received {
    /// The longest window a state can name.
    pub const MAX_BLOCKS: u16 = 512;

    /// `count` blocks, at most [`Received::MAX_BLOCKS`], none of them accepted.
    pub const fn new(count: u16) -> Self {
        let count = if count > Self::MAX_BLOCKS { Self::MAX_BLOCKS } else { count };
        Self { words: [0; Self::MAX_BLOCKS as usize / 16], count }
    }

    /// How many blocks it speaks of.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Marks the block `i` behind the cumulative one as accepted; nothing happens beyond the count.
    pub fn mark(&mut self, i: u16) {
        if i < self.count
            && let Some(word) = self.words.get_mut(usize::from(i / 16))
        {
            *word |= 1 << (i % 16);
        }
    }

    /// Whether the block `i` behind the cumulative one is accepted; `false` beyond the count.
    pub fn contains(&self, i: u16) -> bool {
        i < self.count && self.words.get(usize::from(i / 16)).is_some_and(|word| word >> (i % 16) & 1 == 1)
    }

    /// The words that hold the count.
    fn words(&self) -> impl Iterator<Item = u16> + '_ {
        self.words.iter().take(usize::from(self.count.div_ceil(16))).copied()
    }

    const fn encoded_len(&self) -> usize {
        self.count.div_ceil(16) as usize * 2
    }
}

impl Forward {
    /// Bytes of a data packet around its payload, the same as SSTP's.
    pub const OVERHEAD_BYTES: u32 = (DATA_HEADER_BYTES + CHECKSUM_BYTES) as u32;
}

impl Packet for Forward {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data { bytes, .. } => Self::OVERHEAD_BYTES as usize + usize::from(*bytes),
            Self::State(_) => SENDER_STATE_BYTES + CHECKSUM_BYTES,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Data { connection, block, packet, packets, stride, bytes } => {
                let mut sealing = Sealing::start(out, connection, DATA);
                sealing.u32(block);
                sealing.u16(packet);
                sealing.u16(packets);
                sealing.u16(stride);
                sealing.finish_behind_payload(bytes);
            }
            Self::State(state) => {
                let mut sealing = Sealing::start(out, state.connection, SENDER_STATE);
                sealing.u32(state.interval);
                sealing.u32(state.blocks);
                sealing.u16(state.sent);
                sealing.u16(state.packets);
                sealing.u16(if state.end { END } else { 0 });
                sealing.finish();
            }
        }
    }

    fn seal(&self, encoding: &mut [u8]) {
        checksum::seal(encoding);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut body = opened(input)?;
        let connection = body.u32("connection")?;
        match body.u16("type")? {
            DATA => decode_data(connection, &mut body),
            SENDER_STATE => {
                let state = SenderState {
                    connection,
                    interval: body.u32("interval")?,
                    blocks: body.u32("blocks")?,
                    sent: body.u16("sent")?,
                    packets: body.u16("packets")?,
                    end: body.u16("flags")? & END != 0,
                };
                body.finish("sender state")?;
                if state.sent > state.packets {
                    return Err(body.error("sent", DecodeErrorKind::OutOfRange(u64::from(state.sent))));
                }
                Ok(Self::State(state))
            }
            other => Err(body.error("type", DecodeErrorKind::UnknownType(u64::from(other)))),
        }
    }

    #[inline]
    fn is_data(&self) -> bool {
        matches!(self, Self::Data { .. })
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        match *self {
            Self::Data { block, packet, stride, bytes, .. } if index == 0 && bytes > 0 => Some(PayloadSpan {
                at: DATA_HEADER_BYTES,
                bytes: usize::from(bytes),
                stream: StreamId(0),
                segment: SegmentNumber(u64::from(block)),
                offset: u64::from(packet) * u64::from(stride),
            }),
            _ => None,
        }
    }
}

fn decode_data(connection: u32, body: &mut Reader<'_>) -> Result<Forward, DecodeError> {
    let block = body.u32("block")?;
    let packet = body.u16("packet")?;
    let packets = body.u16("packets")?;
    if packet >= packets {
        return Err(body.error("packet", DecodeErrorKind::OutOfRange(u64::from(packet))));
    }
    let stride = body.u16("stride")?;
    let left = body.remaining();
    let is_last = packet + 1 == packets;
    match u16::try_from(left) {
        Ok(bytes) if bytes == stride || (is_last && bytes < stride) => {
            Ok(Forward::Data { connection, block, packet, packets, stride, bytes })
        }
        _ => Err(body.error("payload", DecodeErrorKind::OutOfRange(left as u64))),
    }
}

impl Packet for Feedback {
    fn encoded_len(&self) -> usize {
        RECEIVER_STATE_BYTES + self.received.encoded_len() + CHECKSUM_BYTES
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let mut sealing = Sealing::start(out, self.connection, RECEIVER_STATE);
        sealing.u32(self.interval);
        sealing.u32(self.cumulative);
        sealing.u16(if self.ended { END } else { 0 });
        sealing.u16(self.received.count);
        for word in self.received.words() {
            sealing.u16(word);
        }
        sealing.finish();
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (connection, mut body) = opened_as(input, RECEIVER_STATE)?;
        let interval = body.u32("interval")?;
        let cumulative = body.u32("cumulative")?;
        let ended = body.u16("flags")? & END != 0;
        let count = body.u16("count")?;
        if count > Received::MAX_BLOCKS {
            return Err(body.error("count", DecodeErrorKind::OutOfRange(u64::from(count))));
        }
        let mut received = Received::new(count);
        for index in 0..count.div_ceil(16) {
            let word = body.u16("bits")?;
            // Why bit by bit: bits beyond the count are dropped. This runs once in a state period.
            (0..16).filter(|bit| word >> bit & 1 == 1).for_each(|bit| received.mark(index * 16 + bit));
        }
        body.finish("receiver state")?;
        Ok(Self { connection, interval, cumulative, ended, received })
    }

    #[inline]
    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}
