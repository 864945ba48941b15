//! The contract of a stream, and the limits of an endpoint (spec 4.1, 6.5).
//!
//! Called by set-up and by both halves. A connection request or an OPEN frame carries the contract that the sender proposes; the receiver
//! may lower the window or refuse the stream.
//!
//! Invariant: a decoded contract is valid: E <= W, B <= W, no size is zero, and a unit can fit the smallest datagram that any path must
//! carry. Its sender checks that it does: [`crate::part::Part::check_room`].

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer, text_len, varint_len};
use segstream_base::{Duration, Instant, Tolerance};

/// The largest unit. With the seal of plain mode, on the first 64 streams and with a window of up to 2^14 units, it fits a
/// datagram of 1200 bytes behind the longest heading it can get; elsewhere units are shorter ([`crate::part::Part::check_room`]).
pub const UNIT_BYTES_MAX: u32 = 1160;
/// The most units a segment can have.
pub const SEGMENT_UNITS_MAX: u32 = 1 << 28;
/// The longest label in bytes.
pub const LABEL_BYTES_MAX: usize = 512;

/// In which order the application is handed segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// By segment number.
    #[default]
    InOrder,
    /// As they are accepted.
    AsAccepted,
}

/// Interleaving as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InterleaveChoice {
    /// Chosen from the tolerance.
    #[default]
    Auto,
    /// Never.
    Off,
    /// In blocks of so many units.
    Depth(u32),
}

/// The contract of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The size of a unit in bytes, 1 to [`UNIT_BYTES_MAX`], or 12 less where shipments are encrypted. Each also has to fit the
    /// smallest datagram with whatever stands in front of it: a window of more than 2^14 units or 2^30 bytes, a stream number
    /// above 63, and tolerances of the segments' own leave less. Up to 1123 bytes fit always. Default 1024.
    pub unit_bytes: u32,
    /// How much may be missing; a W longer than the segment means the segment. Default (2^28, 0, 0): reliable.
    pub tolerance: Tolerance,
    /// The first so many units of every segment must arrive. Default 0.
    pub importance: u32,
    /// Default in order.
    pub order: Order,
    /// A segment older than this, counted from its submission, is abandoned; zero means never. It travels in whole microseconds.
    /// Default zero.
    ///
    /// Why the type of the standard library: an application fills it in.
    pub lifetime: core::time::Duration,
    /// Default auto.
    pub interleave: InterleaveChoice,
    /// The receiver's buffer for the stream in units, at least 1. Default 16 MiB worth of units.
    pub window_units: u32,
    /// The most segments in the window, at least 1. Default 65,536 or the units if fewer.
    pub window_segments: u32,
    /// The stream's share when several have data waiting, 1 to 255. Default 1.
    pub weight: u8,
    /// A text for the application, such as a file's name; at most [`LABEL_BYTES_MAX`] bytes. Default empty.
    pub label: String,
}

impl Default for Contract {
    fn default() -> Self {
        Self {
            unit_bytes: 1024,
            tolerance: Tolerance::reliable(SEGMENT_UNITS_MAX),
            importance: 0,
            order: Order::InOrder,
            lifetime: core::time::Duration::ZERO,
            interleave: InterleaveChoice::Auto,
            window_units: 16 * 1024,
            window_segments: 16 * 1024,
            weight: 1,
            label: String::new(),
        }
    }
}

/// Why a contract is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// See the message.
    #[error("a unit of {0} bytes is not allowed; give 1 to {UNIT_BYTES_MAX}")]
    UnitBytes(u32),
    /// See the message.
    #[error(
        "a unit of {unit_bytes} bytes does not fit the smallest datagram (1200 bytes) with the headers of this stream; give 1 to {fits}"
    )]
    UnitRoom {
        /// The proposed size.
        unit_bytes: u32,
        /// The largest that fits.
        fits: u32,
    },
    /// See the message.
    #[error("the tolerance ({0}) is not allowed: W must be 1 to {SEGMENT_UNITS_MAX}, and neither E nor B may exceed W")]
    Tolerance(Tolerance),
    /// See the message.
    #[error("a window of {units} units and {segments} segments is not allowed; both must be 1 to {SEGMENT_UNITS_MAX}")]
    Window {
        /// The proposed units.
        units: u32,
        /// The proposed segments.
        segments: u32,
    },
    /// See the message.
    #[error("an interleaving depth of {0} is not allowed; give 1 to {SEGMENT_UNITS_MAX}, or turn interleaving off")]
    Interleave(u32),
    /// See the message.
    #[error("the weight must be 1 to 255")]
    Weight,
    /// See the message.
    #[error("the label has {0} bytes; at most {LABEL_BYTES_MAX} are allowed")]
    Label(usize),
}

impl Contract {
    /// Checks that the contract does not contradict itself.
    pub fn validate(&self) -> Result<(), ContractError> {
        if self.unit_bytes == 0 || self.unit_bytes > UNIT_BYTES_MAX {
            return Err(ContractError::UnitBytes(self.unit_bytes));
        }
        check_tolerance(self.tolerance)?;
        let allowed = 1..=SEGMENT_UNITS_MAX;
        if !allowed.contains(&self.window_units) || !allowed.contains(&self.window_segments) {
            return Err(ContractError::Window { units: self.window_units, segments: self.window_segments });
        }
        match self.interleave {
            InterleaveChoice::Depth(depth) if !allowed.contains(&depth) => return Err(ContractError::Interleave(depth)),
            _ => {}
        }
        if self.weight == 0 {
            return Err(ContractError::Weight);
        }
        if self.label.len() > LABEL_BYTES_MAX {
            return Err(ContractError::Label(self.label.len()));
        }
        Ok(())
    }

    /// How many units a segment of `bytes` bytes has; an empty segment has one empty unit.
    #[inline]
    pub fn units_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.unit_bytes.max(1))).max(1)
    }

    /// Writes the contract.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.varint(u64::from(self.unit_bytes));
        encode_tolerance(self.tolerance, out);
        out.varint(u64::from(self.importance));
        out.u8(self.flags());
        if let InterleaveChoice::Depth(depth) = self.interleave {
            out.varint(u64::from(depth));
        }
        out.varint(Duration::from(self.lifetime).as_micros());
        out.varint(u64::from(self.window_units));
        out.varint(u64::from(self.window_segments));
        out.u8(self.weight);
        out.text(&self.label);
    }

    fn flags(&self) -> u8 {
        let interleave = match self.interleave {
            InterleaveChoice::Auto => 0,
            InterleaveChoice::Off => 2,
            InterleaveChoice::Depth(_) => 4,
        };
        interleave | u8::from(self.order == Order::AsAccepted)
    }

    /// How many bytes [`Contract::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        let depth = if let InterleaveChoice::Depth(depth) = self.interleave { varint_len(u64::from(depth)) } else { 0 };
        varint_len(u64::from(self.unit_bytes))
            + tolerance_len(self.tolerance)
            + varint_len(u64::from(self.importance))
            + 2
            + depth
            + varint_len(Duration::from(self.lifetime).as_micros())
            + varint_len(u64::from(self.window_units))
            + varint_len(u64::from(self.window_segments))
            + text_len(&self.label)
    }

    /// Reads a contract and checks it.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = input.position();
        let unit_bytes = input.varint_up_to(u64::from(UNIT_BYTES_MAX), "unit bytes")? as u32;
        let tolerance = decode_tolerance(input)?;
        let importance = input.varint_up_to(u64::from(SEGMENT_UNITS_MAX), "importance")? as u32;
        let flags = input.u8("contract flags")?;
        let order = if flags & 1 == 0 { Order::InOrder } else { Order::AsAccepted };
        let interleave = match flags & !1 {
            0 => InterleaveChoice::Auto,
            2 => InterleaveChoice::Off,
            4 => InterleaveChoice::Depth(input.varint_up_to(u64::from(SEGMENT_UNITS_MAX), "interleaving depth")? as u32),
            _ => return Err(input.error("contract flags", DecodeErrorKind::OutOfRange(u64::from(flags)))),
        };
        let contract = Self {
            unit_bytes,
            tolerance,
            importance,
            order,
            lifetime: Duration::from_micros(input.varint_up_to(MICROS_MAX, "lifetime")?).into(),
            interleave,
            window_units: input.varint_up_to(u64::from(SEGMENT_UNITS_MAX), "window units")? as u32,
            window_segments: input.varint_up_to(u64::from(SEGMENT_UNITS_MAX), "window segments")? as u32,
            weight: input.u8("weight")?,
            label: input.text(LABEL_BYTES_MAX, "label")?.to_owned(),
        };
        contract.validate().map_err(|_| DecodeError { at, field: "contract", kind: DecodeErrorKind::OutOfRange(0) })?;
        Ok(contract)
    }
}

/// Checks that a tolerance can travel: W is no longer than any segment, E <= W, B <= W.
///
/// # Errors
/// When it cannot. One that was clipped to a segment may have an E or a B above its W.
pub fn check_tolerance(tolerance: Tolerance) -> Result<(), ContractError> {
    let (window, errors, burst) = tolerance.triplet();
    if window > SEGMENT_UNITS_MAX || errors > window || burst > window {
        return Err(ContractError::Tolerance(tolerance));
    }
    Ok(())
}

pub(crate) fn encode_tolerance(tolerance: Tolerance, out: &mut Writer<'_>) {
    let (window, errors, burst) = tolerance.triplet();
    out.varint(u64::from(window));
    out.varint(u64::from(errors));
    out.varint(u64::from(burst));
}

/// How many bytes a tolerance takes.
#[inline]
pub fn tolerance_len(tolerance: Tolerance) -> usize {
    let (window, errors, burst) = tolerance.triplet();
    varint_len(u64::from(window)) + varint_len(u64::from(errors)) + varint_len(u64::from(burst))
}

pub(crate) fn decode_tolerance(input: &mut Reader<'_>) -> Result<Tolerance, DecodeError> {
    let at = input.position();
    let window = input.varint_up_to(u64::from(SEGMENT_UNITS_MAX), "tolerance window")? as u32;
    let errors = input.varint_up_to(u64::from(SEGMENT_UNITS_MAX), "tolerated units")? as u32;
    let burst = input.varint_up_to(u64::from(SEGMENT_UNITS_MAX), "tolerated burst")? as u32;
    Tolerance::new(window, errors, burst).map_err(|_| DecodeError {
        at,
        field: "tolerance",
        kind: DecodeErrorKind::OutOfRange(u64::from(errors.max(burst))),
    })
}

/// Times and spans travel in whole microseconds, as many as nanoseconds fit 64 bits: about 584 years.
const MICROS_MAX: u64 = u64::MAX / 1000;

/// Source times travel in whole microseconds.
pub(crate) fn encode_time(time: Instant, out: &mut Writer<'_>) {
    out.varint(time.as_nanos() / 1000);
}

/// How many bytes a source time takes.
#[inline]
pub fn time_len(time: Instant) -> usize {
    varint_len(time.as_nanos() / 1000)
}

pub(crate) fn decode_time(input: &mut Reader<'_>, field: &'static str) -> Result<Instant, DecodeError> {
    Ok(Instant::from_nanos(input.varint_up_to(MICROS_MAX, field)? * 1000))
}

/// What an endpoint allows its peer; each side states its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most streams of the peer that may be live at a time. Default 256.
    pub streams: u32,
    /// The largest datagram the endpoint accepts. Default 65,507.
    pub datagram_bytes: u32,
    /// The idle timeout. Default 10 s.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { streams: 256, datagram_bytes: 65_507, idle_timeout: Duration::from_secs(10) }
    }
}

impl Limits {
    pub(crate) fn encode(&self, out: &mut Writer<'_>) {
        out.varint(u64::from(self.streams));
        out.varint(u64::from(self.datagram_bytes));
        out.varint(self.idle_timeout.as_millis());
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            streams: input.varint_up_to(u64::from(u32::MAX), "streams")? as u32,
            datagram_bytes: input.varint_up_to(65_535, "datagram bytes")? as u32,
            idle_timeout: Duration::from_millis(input.varint_up_to(1 << 40, "idle timeout")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(contract: &Contract) -> Result<Contract, DecodeError> {
        let mut buffer = [0; 1024];
        let mut writer = Writer::new(&mut buffer);
        contract.encode(&mut writer);
        let count = writer.finish().unwrap();
        assert_eq!(count, contract.encoded_len());
        Contract::decode(&mut Reader::new(&buffer[..count]))
    }

    #[test]
    fn a_contract_comes_back_as_it_was() {
        let contract = Contract {
            tolerance: Tolerance::new(1024, 32, 1).unwrap(),
            interleave: InterleaveChoice::Depth(64),
            order: Order::AsAccepted,
            lifetime: core::time::Duration::from_millis(200),
            label: "slices/größe".into(),
            ..Contract::default()
        };
        assert_eq!(round_trip(&contract).as_ref(), Ok(&contract));
        assert_eq!(round_trip(&Contract::default()), Ok(Contract::default()));
    }

    #[test]
    fn a_lifetime_travels_in_whole_microseconds_whatever_it_is() {
        use core::time::Duration;
        let longest = Duration::from_micros(u64::MAX / 1000);
        for (lifetime, told) in [(Duration::from_nanos(1500), Duration::from_micros(1)), (Duration::MAX, longest)] {
            let contract = Contract { lifetime, ..Contract::default() };
            assert_eq!(round_trip(&contract).map(|contract| contract.lifetime), Ok(told), "{lifetime:?}");
        }
    }

    #[test]
    fn a_contradictory_contract_is_refused_by_both_ends() {
        let wrong = [
            Contract { tolerance: Tolerance::new(8, 5, 1).unwrap().clipped_to(4), ..Contract::default() },
            Contract { tolerance: Tolerance::reliable(SEGMENT_UNITS_MAX + 1), ..Contract::default() },
            Contract { window_units: 0, ..Contract::default() },
            Contract { unit_bytes: 0, ..Contract::default() },
            Contract { weight: 0, ..Contract::default() },
            Contract { interleave: InterleaveChoice::Depth(0), ..Contract::default() },
        ];
        for contract in wrong {
            assert!(contract.validate().is_err(), "{contract:?}");
            assert!(round_trip(&contract).is_err(), "{contract:?}");
        }
    }

    #[test]
    fn three_numbers_that_are_no_tolerance_are_not_decoded() {
        for bytes in [[0, 0, 0], [4, 5, 1], [4, 1, 5]] {
            assert!(decode_tolerance(&mut Reader::new(&bytes)).is_err(), "{bytes:?}");
        }
        assert_eq!(decode_tolerance(&mut Reader::new(&[4, 4, 1])).map(Tolerance::triplet), Ok((4, 4, 1)));
    }

    #[test]
    fn an_empty_segment_has_one_unit() {
        let contract = Contract::default();
        assert_eq!([0, 1, 1024, 1025].map(|bytes| contract.units_of(bytes)), [1, 1, 1, 2]);
    }
}
