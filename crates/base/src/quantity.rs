//! Quantities that are types until they are printed: bandwidth and byte counts.
//!
//! Called by pacing, the path model, configuration and statistics.
//!
//! Invariant: a link that converts bytes to time carries the remainder below one nanosecond along
//! ([`Bandwidth::transmit_time`]), so a million packets take exactly as long as their sum of bits says.

use crate::time::Duration;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Bits per second, with k = 1000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bandwidth(u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// What is left below one nanosecond after a conversion, in units of 1/`bits_per_second` nanoseconds.
///
/// Keep one per link and hand it to every [`Bandwidth::transmit_time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Remainder(u64);

impl Bandwidth {
    /// Nothing passes.
    pub const ZERO: Self = Self(0);

    /// A bandwidth of `bits` bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// A bandwidth of `megabits` million bits per second.
    pub const fn from_megabits_per_second(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Whether nothing passes.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The time `bytes` take at this bandwidth, rounded down; what is cut off is kept in `remainder`
    /// and added to the next call. [`Duration::MAX`] when the bandwidth is zero.
    pub fn transmit_time(self, bytes: Bytes, remainder: &mut Remainder) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // Why: a packet's bits times 10^9 fit 64 bits, and a division of 128 bits costs ten times as much.
        if let Some(scaled) = bytes.0.checked_mul(8_000_000_000).and_then(|scaled| scaled.checked_add(remainder.0)) {
            remainder.0 = scaled % self.0;
            return Duration::from_nanos(scaled / self.0);
        }
        let bits = u128::from(bytes.0) * 8;
        let scaled = bits * 1_000_000_000 + u128::from(remainder.0);
        remainder.0 = (scaled % u128::from(self.0)) as u64;
        Duration::from_nanos(u64::try_from(scaled / u128::from(self.0)).unwrap_or(u64::MAX))
    }

    /// The bytes that pass in `span`, rounded down.
    pub fn bytes_in(self, span: Duration) -> Bytes {
        let bits = u128::from(self.0) * u128::from(span.as_nanos()) / 1_000_000_000;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// The units of [`Bytes::of_unit`], as an error lists them.
    pub const UNITS: &'static str = "KiB, MiB, GiB, TiB, kB, MB, GB or TB";

    /// A count of `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How much one `unit` is, whose name is one of [`Bytes::UNITS`], `B` or empty, in capitals or not. `None` for another name.
    pub fn of_unit(unit: &str) -> Option<Self> {
        Some(Self(match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return None,
        }))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl fmt::Debug for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints with the unit that keeps the number at least one: `100 Mbit/s`.
impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            1_000_000_000.. => (1e9, "Gbit/s"),
            1_000_000.. => (1e6, "Mbit/s"),
            1_000.. => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        write!(f, "{} {unit}", (self.0 as f64 / scale * 1000.0).round() / 1000.0)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints with the unit that keeps the number at least one: `16 MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0x4000_0000.. => (0x4000_0000 as f64, "GiB"),
            0x10_0000.. => (0x10_0000 as f64, "MiB"),
            0x400.. => (1024.0, "KiB"),
            _ => (1.0, "B"),
        };
        write!(f, "{} {unit}", (self.0 as f64 / scale * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_take_exactly_the_sum_of_their_bits() {
        let rate = Bandwidth::from_bits_per_second(333_333_333);
        let mut remainder = Remainder::default();
        let mut total = 0u64;
        for _ in 0..1_000_000 {
            total += rate.transmit_time(Bytes::new(1052), &mut remainder).as_nanos();
        }
        let exact = 1_000_000u128 * 1052 * 8 * 1_000_000_000 / 333_333_333;
        assert_eq!(u128::from(total), exact);
    }

    #[test]
    fn the_short_division_agrees_with_the_long_one() {
        let rate = Bandwidth::from_bits_per_second(7_777_777);
        let half = 2_305_843_009u64;
        for bytes in [half - 1, half, half + 1, half * 2] {
            let (mut whole, mut parts) = (Remainder::default(), Remainder::default());
            let at_once = rate.transmit_time(Bytes::new(bytes), &mut whole);
            let in_two =
                rate.transmit_time(Bytes::new(bytes / 2), &mut parts) + rate.transmit_time(Bytes::new(bytes - bytes / 2), &mut parts);
            assert_eq!((at_once, whole), (in_two, parts), "{bytes} bytes");
        }
    }

    #[test]
    fn a_closed_link_takes_for_ever() {
        let mut remainder = Remainder::default();
        assert_eq!(Bandwidth::ZERO.transmit_time(Bytes::new(1), &mut remainder), Duration::MAX);
    }

    #[test]
    fn quantities_print_with_their_unit() {
        assert_eq!(Bandwidth::from_megabits_per_second(250).to_string(), "250 Mbit/s");
        assert_eq!(Bytes::new(16 << 20).to_string(), "16 MiB");
        assert_eq!(Bandwidth::from_megabits_per_second(8).bytes_in(Duration::from_millis(1)), Bytes::new(1000));
    }
}
