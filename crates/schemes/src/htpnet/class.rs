//! The protocol class: which of error, flow and rate control a connection has (HT 3.2, HT Table 1).
//!
//! Called by every process. Error control counts 4, flow control 2, rate control 1, so that class 0 trusts the network
//! in everything and class 7 in nothing.
//!
//! Invariant: 0 to 7.

use core::fmt;

/// A protocol class, 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class(u8);

impl Class {
    /// All control functions.
    pub const ALL: Self = Self(7);
    /// Error and rate control: what HT's experiments run with.
    pub const ERROR_AND_RATE_CONTROL: Self = Self(5);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Class `number`; `None` above 7.
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 7 { Some(Self(number)) } else { None }
    }

    /// The class in the low bits of the CLASS field.
    pub(super) const fn of_field(field: u8) -> Self {
        Self(field & 7)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether lost packets are retransmitted and data are delivered in order.
    pub const fn has_error_control(self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether CREDIT limits the sender.
    pub const fn has_flow_control(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether RATE spaces the packets.
    pub const fn has_rate_control(self) -> bool {
        self.0 & 1 != 0
    }

    /// What both classes have.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The class that has error control besides.
    pub(super) const fn with_error_control(self) -> Self {
        Self(self.0 | 4)
    }

    /// Whether it has everything that `other` has.
    pub const fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Default for Class {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Class;

    #[test]
    fn classes_are_those_of_table_1() {
        let table = [
            (false, false, false),
            (false, false, true),
            (false, true, false),
            (false, true, true),
            (true, false, false),
            (true, false, true),
            (true, true, false),
            (true, true, true),
        ];
        for (number, functions) in (0..).zip(table) {
            let class = Class::new(number).unwrap();
            assert_eq!((class.has_error_control(), class.has_flow_control(), class.has_rate_control()), functions);
        }
        assert_eq!(Class::new(8), None);
    }
}
