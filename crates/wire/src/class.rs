//! The class of a connection: which of the three controls are on (HT Table 1; spec 9.3).
//!
//! Called by set-up, both halves and the command line.
//!
//! Invariant: a class is one of the eight values 0 to 7.

use core::fmt;

/// Error control 4, flow control 2, rate control 1; 7, all of them, is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class(u8);

impl Class {
    /// Everything on.
    pub const ALL: Self = Self(7);

    /// The class with the given number; `None` above 7.
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 7 { Some(Self(number)) } else { None }
    }

    /// The number, 0 to 7.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether missing units are asked for.
    pub const fn error_control(self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether the receiver's window bounds the sender.
    pub const fn flow_control(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether shipments are paced.
    pub const fn rate_control(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether anything bounds what is sent: the window, or a rate when one is given (`paced`).
    pub const fn is_limited(self, paced: bool) -> bool {
        self.flow_control() || (self.rate_control() && paced)
    }
}

impl Default for Class {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_window_only_a_rate_is_a_limit() {
        let limited = |paced| (0..8).filter(|&number| Class::new(number).unwrap().is_limited(paced)).collect::<Vec<_>>();
        assert_eq!(limited(true), [1, 2, 3, 5, 6, 7]);
        assert_eq!(limited(false), [2, 3, 6, 7]);
    }

    #[test]
    fn the_three_bits_are_those_of_the_table() {
        let on = |n| {
            let c = Class::new(n).unwrap();
            (c.error_control(), c.flow_control(), c.rate_control())
        };
        assert_eq!(on(0), (false, false, false));
        assert_eq!(on(5), (true, false, true));
        assert_eq!(on(7), (true, true, true));
        assert_eq!(Class::new(8), None);
    }
}
