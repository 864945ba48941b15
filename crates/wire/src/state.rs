//! The sender's state, TXS: state that the receiver needs and that no data part contains (spec 4).
//!
//! Every TXS contains its number and its time, and confirms the reports that have arrived; then frames follow to the end of the shipment. A
//! frame is a self-contained statement. The absence of a frame means nothing, so a sender may put any choice of frames into any TXS.
//!
//! Called by both halves. Invariant: frames are idempotent; receiving one twice, late or out of order
//! changes nothing.

use crate::class::Class;
use crate::contract::{Contract, decode_time, decode_tolerance, encode_time, encode_tolerance, time_len, tolerance_len};
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer, varint_len};
use segstream_base::{Bandwidth, ExchangeNumber, Instant, Position, ReportNumber, SegmentNumber, ShipmentNumber, StreamId, Tolerance};
use smallvec::SmallVec;

/// Which reports have arrived: the highest report number, and a bitmap of the 64 before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Confirmed {
    /// The highest report number received; `None` before the first.
    pub highest: Option<ReportNumber>,
    /// Bit i says whether report `highest - 1 - i` has arrived.
    pub before: u64,
}

impl Confirmed {
    /// Notes that `report` has arrived.
    pub const fn insert(&mut self, report: ReportNumber) {
        match self.highest {
            None => self.highest = Some(report),
            Some(highest) if report.0 > highest.0 => {
                let shift = report.0 - highest.0;
                self.before = if shift > 64 {
                    0
                } else {
                    let moved = if shift == 64 { 0 } else { self.before << shift };
                    moved | 1 << (shift - 1)
                };
                self.highest = Some(report);
            }
            Some(highest) => {
                let behind = highest.0 - report.0;
                if behind >= 1 && behind <= 64 {
                    self.before |= 1 << (behind - 1);
                }
            }
        }
    }

    /// Whether `report` is known to have arrived.
    pub const fn contains(&self, report: ReportNumber) -> bool {
        match self.highest {
            None => false,
            Some(highest) if report.0 > highest.0 => false,
            Some(highest) => {
                let behind = highest.0 - report.0;
                behind == 0 || (behind <= 64 && self.before & (1 << (behind - 1)) != 0)
            }
        }
    }
}

/// What the sender says of a segment it has sent completely, or will send no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// Whether it was opened before its length was known.
    pub opened: bool,
    /// Its length in bytes.
    pub length: u64,
    /// The source's time of it.
    pub source_time: Instant,
    /// Its tolerance, when it is not the stream's.
    pub tolerance: Option<Tolerance>,
    /// The number of the last shipment that carried a unit of it: of its first pass in a FINISHED frame,
    /// of any pass in a SKIP frame; `None` when nothing of it was ever sent.
    pub last_shipment: Option<ShipmentNumber>,
}

/// How far the first pass over an open segment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The stream.
    pub stream: StreamId,
    /// The segment, opened and not finished.
    pub segment: SegmentNumber,
    /// Every position below this one has left once, and none from it on.
    pub position: Position,
    /// The source's time of it.
    pub source_time: Instant,
    /// Its tolerance, when it is not the stream's.
    pub tolerance: Option<Tolerance>,
    /// The number of the last shipment that carried a unit of it.
    pub last_shipment: ShipmentNumber,
}

/// A frame of the sender's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateFrame {
    /// Opens a stream; repeated until the receiver grants it a window or refuses it.
    Open {
        /// The stream.
        stream: StreamId,
        /// What it promises.
        contract: Box<Contract>,
    },
    /// A segment whose first pass is over and whose verdict is not known yet.
    Finished(Finished),
    /// No more will be sent of this segment; repeated until its verdict comes.
    Skip(Finished),
    /// An open segment that pauses: what has left of it can be declared lost although nothing follows.
    Reached(Reached),
    /// The stream has so many segments and no more; repeated until the receiver says so too.
    End {
        /// The stream.
        stream: StreamId,
        /// How many segments it has.
        segments: u64,
    },
    /// The sender has data that the window does not admit.
    Waiting {
        /// The stream.
        stream: StreamId,
    },
    /// From now on data has this class and rate; repeated until a report echoes it.
    Reclass {
        /// Counts the changes.
        change: u64,
        /// The class.
        class: Class,
        /// The rate in bits per second, 0 when unpaced.
        rate: Bandwidth,
    },
}

const OPEN: u8 = 0x01;
const FINISHED: u8 = 0x02;
const SKIP: u8 = 0x03;
const END: u8 = 0x04;
const WAITING: u8 = 0x05;
const RECLASS: u8 = 0x06;
const REACHED: u8 = 0x07;

const ANSWER: u8 = 1;
const EXCHANGE: u8 = 2;

/// The sender's state.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct State {
    /// The number of this exchange, counted from 0.
    pub sync: ExchangeNumber,
    /// When it was sent, in nanoseconds of the sender's own clock; the report echoes it.
    pub time: u64,
    /// Whether an immediate report is requested.
    pub answer: bool,
    /// Whether it is an exchange, whose arrival must be reported at once: a rate sample of congestion control (HT 3.2).
    pub exchange: bool,
    /// The reports that have arrived.
    pub confirmed: Confirmed,
    /// The statements.
    pub frames: SmallVec<[StateFrame; 2]>,
}

impl State {
    /// The bytes before the first frame are never more than this.
    pub const PRELUDE_BYTES_MAX: usize = 1 + 8 + 8 + 8 + 8;

    /// How many bytes [`State::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        let confirmed = self.confirmed.highest.map_or(1, |highest| varint_len(highest.0 + 1) + 8);
        1 + varint_len(self.sync.0) + varint_len(self.time) + confirmed + self.frames.iter().map(StateFrame::encoded_len).sum::<usize>()
    }

    /// Writes the body of a TXS.
    pub fn encode(&self, out: &mut Writer<'_>) {
        let start = out.position();
        out.u8(if self.answer { ANSWER } else { 0 } | if self.exchange { EXCHANGE } else { 0 });
        out.varint(self.sync.0);
        out.varint(self.time);
        match self.confirmed.highest {
            None => out.varint(0),
            Some(highest) => {
                out.varint(highest.0 + 1);
                out.u64(self.confirmed.before);
            }
        }
        for frame in &self.frames {
            frame.encode(out);
        }
        debug_assert_eq!(out.position() - start, self.encoded_len(), "a state is not as long as it says");
    }

    /// Reads the body of a TXS to its end.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let flags = input.u8("state flags")?;
        if flags & !(ANSWER | EXCHANGE) != 0 {
            return Err(input.error("state flags", DecodeErrorKind::UnknownType(u64::from(flags))));
        }
        let sync = ExchangeNumber(input.varint("sync")?);
        let time = input.varint("time")?;
        let confirmed = match input.varint("confirmed report")?.checked_sub(1) {
            None => Confirmed::default(),
            highest => Confirmed { highest: highest.map(ReportNumber), before: input.u64("confirmed bitmap")? },
        };
        let mut frames = SmallVec::new();
        while !input.is_empty() {
            frames.push(StateFrame::decode(input)?);
        }
        Ok(Self { sync, time, answer: flags & ANSWER != 0, exchange: flags & EXCHANGE != 0, confirmed, frames })
    }
}

impl StateFrame {
    /// How many bytes [`StateFrame::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Open { stream, contract } => varint_len(u64::from(*stream)) + contract.encoded_len(),
            Self::Finished(finished) | Self::Skip(finished) => finished.encoded_len(),
            Self::Reached(reached) => reached.encoded_len(),
            Self::End { stream, segments } => varint_len(u64::from(*stream)) + varint_len(*segments),
            Self::Waiting { stream } => varint_len(u64::from(*stream)),
            Self::Reclass { change, rate, .. } => varint_len(*change) + 1 + varint_len(rate.bits_per_second()),
        }
    }

    /// Writes the frame.
    pub fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Open { stream, contract } => {
                out.u8(OPEN);
                out.varint(u64::from(*stream));
                contract.encode(out);
            }
            Self::Finished(finished) => {
                out.u8(FINISHED);
                finished.encode(out);
            }
            Self::Skip(finished) => {
                out.u8(SKIP);
                finished.encode(out);
            }
            Self::Reached(reached) => {
                out.u8(REACHED);
                reached.encode(out);
            }
            Self::End { stream, segments } => {
                out.u8(END);
                out.varint(u64::from(*stream));
                out.varint(*segments);
            }
            Self::Waiting { stream } => {
                out.u8(WAITING);
                out.varint(u64::from(*stream));
            }
            Self::Reclass { change, class, rate } => {
                out.u8(RECLASS);
                out.varint(*change);
                out.u8(class.number());
                out.varint(rate.bits_per_second());
            }
        }
    }

    /// Reads one frame.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = input.position();
        let kind = input.u8("state frame")?;
        Ok(match kind {
            OPEN => Self::Open { stream: stream(input)?, contract: Box::new(Contract::decode(input)?) },
            FINISHED => Self::Finished(Finished::decode(input)?),
            SKIP => Self::Skip(Finished::decode(input)?),
            REACHED => Self::Reached(Reached::decode(input)?),
            END => Self::End { stream: stream(input)?, segments: input.varint("segments")? },
            WAITING => Self::Waiting { stream: stream(input)? },
            RECLASS => {
                let change = input.varint("change")?;
                let number = input.u8("class")?;
                let class = Class::new(number).ok_or_else(|| input.error("class", DecodeErrorKind::OutOfRange(u64::from(number))))?;
                Self::Reclass { change, class, rate: Bandwidth::from_bits_per_second(input.varint("rate")?) }
            }
            _ => return Err(DecodeError { at, field: "state frame", kind: DecodeErrorKind::UnknownType(u64::from(kind)) }),
        })
    }
}

pub(crate) fn stream(input: &mut Reader<'_>) -> Result<StreamId, DecodeError> {
    Ok(StreamId(input.varint_up_to(u64::from(u32::MAX), "stream")? as u32))
}

impl Finished {
    fn encoded_len(&self) -> usize {
        1 + varint_len(u64::from(self.stream))
            + varint_len(self.segment.0)
            + varint_len(self.length)
            + time_len(self.source_time)
            + varint_len(self.last_shipment.map_or(0, |last| last.0 + 1))
            + self.tolerance.map_or(0, tolerance_len)
    }

    fn encode(&self, out: &mut Writer<'_>) {
        out.u8(u8::from(self.tolerance.is_some()) | u8::from(self.opened) << 1);
        out.varint(u64::from(self.stream));
        out.varint(self.segment.0);
        out.varint(self.length);
        encode_time(self.source_time, out);
        out.varint(self.last_shipment.map_or(0, |last| last.0 + 1));
        if let Some(tolerance) = self.tolerance {
            encode_tolerance(tolerance, out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let flags = input.u8("segment flags")?;
        if flags > 3 {
            return Err(input.error("segment flags", DecodeErrorKind::UnknownType(u64::from(flags))));
        }
        Ok(Self {
            stream: stream(input)?,
            segment: SegmentNumber(input.varint("segment")?),
            opened: flags & 2 != 0,
            length: input.varint("segment length")?,
            source_time: decode_time(input, "source time")?,
            last_shipment: input.varint("last shipment")?.checked_sub(1).map(ShipmentNumber),
            tolerance: if flags & 1 != 0 { Some(decode_tolerance(input)?) } else { None },
        })
    }
}

impl Reached {
    fn encoded_len(&self) -> usize {
        1 + varint_len(u64::from(self.stream))
            + varint_len(self.segment.0)
            + varint_len(u64::from(self.position))
            + time_len(self.source_time)
            + varint_len(self.last_shipment.0)
            + self.tolerance.map_or(0, tolerance_len)
    }

    fn encode(&self, out: &mut Writer<'_>) {
        out.u8(u8::from(self.tolerance.is_some()));
        out.varint(u64::from(self.stream));
        out.varint(self.segment.0);
        out.varint(u64::from(self.position));
        encode_time(self.source_time, out);
        out.varint(self.last_shipment.0);
        if let Some(tolerance) = self.tolerance {
            encode_tolerance(tolerance, out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let flags = input.u8("segment flags")?;
        if flags > 1 {
            return Err(input.error("segment flags", DecodeErrorKind::UnknownType(u64::from(flags))));
        }
        Ok(Self {
            stream: stream(input)?,
            segment: SegmentNumber(input.varint("segment")?),
            position: Position(input.varint_up_to(u64::from(u32::MAX), "position")? as u32),
            source_time: decode_time(input, "source time")?,
            last_shipment: ShipmentNumber(input.varint("last shipment")?),
            tolerance: if flags == 1 { Some(decode_tolerance(input)?) } else { None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_state_comes_back_as_it_was() {
        let finished = Finished {
            stream: StreamId(3),
            segment: SegmentNumber(1 << 40),
            opened: true,
            length: 1 << 20,
            source_time: Instant::from_nanos(5000),
            tolerance: Some(Tolerance::new(256, 3, 1).unwrap()),
            last_shipment: Some(ShipmentNumber(9)),
        };
        let state = State {
            sync: ExchangeNumber(9),
            time: 1 << 50,
            answer: true,
            exchange: true,
            confirmed: Confirmed { highest: Some(ReportNumber(70)), before: 0xf0f0 },
            frames: [
                StateFrame::Open { stream: StreamId(1), contract: Box::default() },
                StateFrame::Finished(finished),
                StateFrame::Skip(Finished { tolerance: None, last_shipment: None, ..finished }),
                StateFrame::End { stream: StreamId(70_000), segments: 5 },
                StateFrame::Reached(Reached {
                    stream: StreamId(2),
                    segment: SegmentNumber(7),
                    position: Position(90),
                    source_time: Instant::from_nanos(3000),
                    tolerance: Some(Tolerance::new(9, 2, 1).unwrap()),
                    last_shipment: ShipmentNumber(12),
                }),
                StateFrame::Waiting { stream: StreamId(0) },
                StateFrame::Reclass { change: 1, class: Class::ALL, rate: Bandwidth::from_megabits_per_second(10) },
            ]
            .into_iter()
            .collect(),
        };
        let mut buffer = [0; 600];
        let mut writer = Writer::new(&mut buffer);
        state.encode(&mut writer);
        let count = writer.finish().unwrap();
        assert_eq!(count, state.encoded_len());
        assert_eq!(State::decode(&mut Reader::new(&buffer[..count])), Ok(state));
    }

    proptest! {
        #[test]
        fn what_is_confirmed_has_arrived_and_the_last_65_are_remembered(arrivals in proptest::collection::vec(0u64..200, 1..100)) {
            let mut confirmed = Confirmed::default();
            for &report in &arrivals {
                confirmed.insert(ReportNumber(report));
            }
            let highest = *arrivals.iter().max().unwrap();
            for report in 0..300 {
                if confirmed.contains(ReportNumber(report)) {
                    prop_assert!(arrivals.contains(&report));
                }
            }
            prop_assert!(confirmed.contains(ReportNumber(highest)));
            prop_assert!(confirmed.contains(ReportNumber(*arrivals.last().unwrap())) || arrivals.last().unwrap() + 64 < highest);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(input in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = State::decode(&mut Reader::new(&input));
        }
    }
}
