//! Newtypes for numbers that could be mixed up.
//!
//! A number is a place on a line, not an amount: two of one kind have an order and a distance, and one plus a distance is
//! another. Nothing else is defined, so that a stream is never added to a segment, nor a count taken for a number.
//! How many there are of something stays a plain integer.
//!
//! Used by everyone. Invariant: a number is as large as its integer, prints as its integer, and costs what it costs.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Each `Name(integer)` below is a number of its own kind.
macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident($integer:ty);)+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $integer);

        impl $name {
            /// Where counting begins.
            pub const FIRST: Self = Self(0);

            /// The number after this one.
            #[inline]
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }

            /// The number before this one; `None` before the first.
            #[inline]
            pub fn previous(self) -> Option<Self> {
                self.0.checked_sub(1).map(Self)
            }

            /// This many numbers further on, or the last there is.
            #[inline]
            #[must_use]
            pub const fn saturating_add(self, distance: $integer) -> Self {
                Self(self.0.saturating_add(distance))
            }

            /// How far this number lies behind `earlier`; zero if it does not.
            #[inline]
            pub const fn since(self, earlier: Self) -> $integer {
                self.0.saturating_sub(earlier.0)
            }

            /// Where this number is in a list whose first element has the number `base`; `None` in front of it.
            #[inline]
            pub fn place_from(self, base: Self) -> Option<usize> {
                usize::try_from(self.0.checked_sub(base.0)?).ok()
            }

            /// The numbers from this one on.
            #[inline]
            pub fn onward(self) -> impl Iterator<Item = Self> + Clone + fmt::Debug {
                (self.0..).map(Self)
            }

            /// The numbers from this one up to `end`, which is not among them.
            #[inline]
            pub fn up_to(self, end: Self) -> impl DoubleEndedIterator<Item = Self> + Clone + fmt::Debug {
                (self.0..end.0).map(Self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        /// This many numbers further on.
        impl Add<$integer> for $name {
            type Output = Self;

            #[inline]
            fn add(self, distance: $integer) -> Self {
                Self(self.0 + distance)
            }
        }

        impl AddAssign<$integer> for $name {
            #[inline]
            fn add_assign(&mut self, distance: $integer) {
                self.0 += distance;
            }
        }

        /// The distance from an earlier number.
        impl Sub for $name {
            type Output = $integer;

            #[inline]
            fn sub(self, earlier: Self) -> $integer {
                self.0 - earlier.0
            }
        }

        impl From<$name> for u64 {
            #[inline]
            fn from(number: $name) -> Self {
                Self::from(number.0)
            }
        }
    )+};
}

numbers! {
    /// Which stream of a connection: counted from 0 by the side that sends on it.
    StreamId(u32);
    /// Which segment of a stream, counted from 0 in the order of submission.
    SegmentNumber(u64);
    /// Which shipment of a connection in one direction, counted from 0, whatever it carries. No number is used twice.
    ShipmentNumber(u64);
    /// Which shipment with a report in it, counted from 0: what the sender of data confirms.
    ReportNumber(u64);
    /// Which state of the sender, counted from 0: an exchange is one, and what its echo tells.
    ExchangeNumber(u64);
    /// Which unit of a segment, counted from 0 in the order of its bytes: what the application is told.
    UnitIndex(u32);
    /// Which place in the sending order of a segment, counted from 0: what parts and requests name. Interleaving puts a unit at
    /// another position than its index.
    Position(u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_prints_as_its_integer() {
        assert_eq!(format!("{} {:?} {:>4}", SegmentNumber(7), StreamId(8), SegmentNumber(9)), "7 8    9");
        assert_eq!(format!("{:?}", (StreamId(1), SegmentNumber(2))), "(1, 2)");
    }

    #[test]
    fn numbers_have_an_order_and_a_distance() {
        let (early, late) = (SegmentNumber(3), SegmentNumber::FIRST + 5);
        assert_eq!((early.next(), late - early, late.since(early), early.since(late)), (SegmentNumber(4), 2, 2, 0));
        assert_eq!((late.place_from(early), early.place_from(late)), (Some(2), None));
        assert_eq!(early.up_to(late).collect::<Vec<_>>(), [SegmentNumber(3), SegmentNumber(4)]);
        assert_eq!(late.up_to(early).count(), 0);
    }
}
