//! The two state packets: what the transmitter has sent, and what the receiver has (HT 3.3, HT 3.4).
//!
//! Called by the codec of the packets, by Tx2 and Rx2. CLASS needs three bits of its byte. In an RXS the others say how
//! many pairs of RANGE are used (top four), and whether the report is a continuation (the fourth):
//!
//! A report covers what lies after CAACK. A continuation covers what lies from its first `bseq` on: that pair is the last
//! run of the report before, told again, so that the hole behind it is covered. A successor, whose CLASS has the highest
//! bit set (four pairs do not need it to be counted), tells no run again: it covers what lies behind the last `eseq` of the
//! report with the ESYNC before its own, or, where that was lost, what lies from its first `bseq` on. Coverage ends with the
//! last `eseq` when every pair is used, because there may be more; otherwise it has no end, and what is not told has not
//! arrived.
//!
//! Invariant: pairs that are not used are (0, 0).

use super::{RXS, TXS};
use crate::htpnet::Class;
use crate::htpnet::ticks::gap_field;
use segstream_base::Duration;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};

/// The bit of CLASS that marks a continuation.
const CONTINUED: u8 = 8;
/// The bit of CLASS that marks a successor, with four pairs.
const SUCCEEDS: u8 = 0x80;

/// Where the coverage of a report begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Coverage {
    /// Behind CAACK.
    #[default]
    Whole,
    /// At its first run, which was the last of another report with the same ESYNC.
    Continued,
    /// Behind the last run of the report with the ESYNC before, if that is known; only with [`Pairs::Four`].
    Succeeding,
}

/// How many pairs RANGE has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Pairs {
    /// 16 bytes (HT Table 2).
    #[default]
    Four,
    /// 32 bytes (the text of HT 3.4).
    Eight,
}

impl Pairs {
    /// Their number.
    pub const fn count(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The transmitter's state (TXS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitterState {
    /// CI.
    pub connection: u8,
    /// SYNC: the number of the exchange.
    pub sync: u16,
    /// TIME: when it left, in ticks of 100 us.
    pub time: u16,
    /// LSEQ: the largest number sent; 65535 before the first.
    pub lseq: u16,
    /// CLASS: what the transmitter wants, from the data behind this packet on.
    pub class: Class,
    /// RATE: the gap between packets in microseconds, 0 for none; a node of the network may raise it.
    pub rate: u16,
}

impl TransmitterState {
    /// Its length.
    pub const BYTES: usize = 13;

    /// What a node of the network does that wants packets to come no closer than `gap` (HT 3.2): RATE only ever grows.
    pub fn raise_gap(&mut self, gap: Duration) {
        self.rate = self.rate.max(gap_field(Some(gap)));
    }

    pub(super) fn encode(&self, out: &mut Writer<'_>) {
        out.u8(self.connection);
        out.u8(TXS);
        out.u16(self.sync);
        out.u16(self.time);
        out.u16(self.lseq);
        out.u8(self.class.number());
        out.u16(self.rate);
    }

    pub(super) fn decode(connection: u8, fields: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (sync, time, lseq) = (fields.u16("SYNC")?, fields.u16("TIME")?, fields.u16("LSEQ")?);
        let class = fields.u8("CLASS")?;
        let Some(class) = Class::new(class) else {
            return Err(fields.error("CLASS", DecodeErrorKind::OutOfRange(u64::from(class))));
        };
        let rate = fields.u16("RATE")?;
        fields.finish("RATE")?;
        Ok(Self { connection, sync, time, lseq, class, rate })
    }
}

/// RANGE: runs of packets received beyond CAACK, first and last number of each, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeList {
    pairs: [(u16, u16); 8],
    used: u8,
    room: Pairs,
}

impl RangeList {
    /// An empty list with room for `room`.
    pub const fn new(room: Pairs) -> Self {
        Self { pairs: [(0, 0); 8], used: 0, room }
    }

    /// Adds a run; `false` when there is no room.
    pub fn push(&mut self, bseq: u16, eseq: u16) -> bool {
        if self.is_full() {
            return false;
        }
        self.pairs[usize::from(self.used)] = (bseq, eseq);
        self.used += 1;
        true
    }

    /// The runs.
    pub fn as_slice(&self) -> &[(u16, u16)] {
        &self.pairs[..usize::from(self.used)]
    }

    /// Whether every pair is used.
    pub const fn is_full(&self) -> bool {
        self.used as usize == self.room.count()
    }

    /// What it has room for.
    pub const fn room(&self) -> Pairs {
        self.room
    }
}

/// The receiver's state (RXS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverState {
    /// CI.
    pub connection: u8,
    /// ESYNC: the number of the exchange it answers.
    pub esync: u16,
    /// ETIME: the TIME of the packet it answers.
    pub etime: u16,
    /// SPGAP: between the arrivals of this exchange and the one before, in ticks of 100 us; 0 for the first. Where TXS were
    /// lost in between, the mean gap of an exchange.
    pub spgap: u16,
    /// CLASS: what the receiver grants of the requested class.
    pub class: Class,
    /// RATE: the largest gap that transmitter, network and receiver ask for, in microseconds.
    pub rate: u16,
    /// CAACK: everything up to and with this number has been received, or is not waited for; 65535 before the first.
    pub caack: u16,
    /// Where it begins.
    pub coverage: Coverage,
    /// RANGE.
    pub ranges: RangeList,
    /// CREDIT: how many packets beyond CAACK the receiver has buffers for.
    pub credit: u16,
}

impl ReceiverState {
    /// Its length: 33 with four pairs, 49 with eight.
    pub const fn bytes(&self) -> usize {
        17 + 4 * self.ranges.room.count()
    }

    const fn coverage_bits(&self) -> u8 {
        match (self.coverage, self.ranges.room) {
            (Coverage::Whole, _) => 0,
            (Coverage::Succeeding, Pairs::Four) => SUCCEEDS,
            // With eight pairs there is no bit left; the weaker word is true as well.
            (Coverage::Continued | Coverage::Succeeding, _) => CONTINUED,
        }
    }

    pub(super) fn encode(&self, out: &mut Writer<'_>) {
        out.u8(self.connection);
        out.u8(RXS);
        out.u16(self.esync);
        out.u16(self.etime);
        out.u16(self.spgap);
        out.u8(self.class.number() | self.coverage_bits() | self.ranges.used << 4);
        out.u16(self.rate);
        out.u16(self.caack);
        for (bseq, eseq) in self.ranges.pairs.iter().take(self.ranges.room.count()) {
            out.u16(*bseq);
            out.u16(*eseq);
        }
        out.u16(self.credit);
    }

    pub(super) fn decode(connection: u8, fields: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (esync, etime, spgap) = (fields.u16("ESYNC")?, fields.u16("ETIME")?, fields.u16("SPGAP")?);
        let class = fields.u8("CLASS")?;
        let (rate, caack) = (fields.u16("RATE")?, fields.u16("CAACK")?);
        // Four pairs and CREDIT are 18 bytes, eight are 34; what is neither is refused below.
        let mut ranges = RangeList::new(if fields.remaining() < 20 { Pairs::Four } else { Pairs::Eight });
        let succeeds = ranges.room == Pairs::Four && class & SUCCEEDS != 0;
        ranges.used = if succeeds { (class & !SUCCEEDS) >> 4 } else { class >> 4 };
        if usize::from(ranges.used) > ranges.room.count() {
            return Err(fields.error("CLASS", DecodeErrorKind::OutOfRange(u64::from(class))));
        }
        for (index, pair) in ranges.pairs.iter_mut().take(ranges.room.count()).enumerate() {
            *pair = (fields.u16("RANGE")?, fields.u16("RANGE")?);
            if index >= usize::from(ranges.used) && *pair != (0, 0) {
                return Err(fields.error("RANGE", DecodeErrorKind::OutOfRange(u64::from(pair.0))));
            }
        }
        let credit = fields.u16("CREDIT")?;
        fields.finish("CREDIT")?;
        let coverage = match (succeeds, class & CONTINUED != 0) {
            (false, false) => Coverage::Whole,
            (false, true) => Coverage::Continued,
            (true, false) => Coverage::Succeeding,
            (true, true) => return Err(fields.error("CLASS", DecodeErrorKind::OutOfRange(u64::from(class)))),
        };
        Ok(Self { connection, esync, etime, spgap, class: Class::of_field(class), rate, caack, coverage, ranges, credit })
    }
}
