//! How the rate of one direction is chosen: not at all, by contract, or by congestion control.
//!
//! Part of the configuration of an endpoint and of a sending half; changed while data flows.
//!
//! Invariant: an automatic rate lies within its bounds, and is kept whatever class the two ends agree on: it
//! protects the path, not the peer.

use segstream_base::{Bandwidth, Bytes};
use segstream_blocks::burst::RateSpec;
use segstream_blocks::congestion::{self, Algorithm};
use segstream_wire::Class;

/// The rate of one direction, counted in whole IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Nothing is paced; the window alone bounds what is sent. Only for a path one owns.
    Unpaced,
    /// Contracted: kept whatever the path does. A path that carries almost nothing of it ends the connection
    /// (RFC 8084).
    Fixed(RateSpec),
    /// Congestion-controlled, for a path that is shared (HT 3.2).
    Auto {
        /// Never slower than this, however crowded the path is.
        floor: Bandwidth,
        /// Never faster than this.
        peak: Bandwidth,
        /// The controller. Default [`congestion::auto`].
        congestion: &'static Algorithm,
    },
}

/// Why a rate cannot be kept. The rate before it stays in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The bounds leave nothing.
    #[error("an automatic rate cannot have a floor of {floor} and a peak of {peak}; give a floor above 0 and a peak not below it")]
    Bounds {
        /// The floor, as given.
        floor: Bandwidth,
        /// The peak, as given.
        peak: Bandwidth,
    },
    /// The class has no rate control.
    #[error("class {0} has no rate control, which an automatic rate needs; add 1 to the class, or give a fixed rate")]
    Uncontrolled(Class),
}

impl Default for Rate {
    fn default() -> Self {
        Self::AUTO
    }
}

impl From<RateSpec> for Rate {
    fn from(spec: RateSpec) -> Self {
        Self::Fixed(spec)
    }
}

impl Rate {
    /// The floor of an automatic rate unless told otherwise: a few datagrams a second.
    pub const FLOOR: Bandwidth = Bandwidth::from_bits_per_second(64_000);
    /// The peak of an automatic rate unless told otherwise.
    pub const PEAK: Bandwidth = Bandwidth::from_bits_per_second(10_000_000_000);
    /// An automatic rate from 64 kbit/s to 10 Gbit/s under the controller `auto`: the default.
    pub const AUTO: Self = Self::between(Self::FLOOR, Self::PEAK);

    /// An automatic rate within other bounds, under the controller `auto`.
    pub const fn between(floor: Bandwidth, peak: Bandwidth) -> Self {
        Self::Auto { floor, peak, congestion: &congestion::auto::ALGORITHM }
    }

    /// The same automatic rate under another controller; a rate that is not automatic stays as it is.
    pub const fn under(self, congestion: &'static Algorithm) -> Self {
        match self {
            Self::Auto { floor, peak, .. } => Self::Auto { floor, peak, congestion },
            other => other,
        }
    }

    /// A fixed rate without bursts.
    pub const fn smooth(rate: Bandwidth) -> Self {
        Self::Fixed(RateSpec::smooth(rate))
    }

    /// The most that may ever leave; zero when unpaced. What a peer is told.
    pub const fn peak(&self) -> Bandwidth {
        match self {
            Self::Unpaced => Bandwidth::ZERO,
            Self::Fixed(spec) => spec.peak(),
            Self::Auto { peak, .. } => *peak,
        }
    }

    /// Whether the rate is congestion-controlled.
    pub const fn is_auto(&self) -> bool {
        matches!(self, Self::Auto { .. })
    }

    /// Whether the rate can be kept under `class`.
    ///
    /// # Errors
    /// When its bounds contradict each other, or an automatic rate has no rate control.
    pub fn check(&self, class: Class) -> Result<(), RateError> {
        match *self {
            Self::Auto { floor, peak, .. } if floor.is_zero() || peak < floor => Err(RateError::Bounds { floor, peak }),
            Self::Auto { .. } if !class.rate_control() => Err(RateError::Uncontrolled(class)),
            _ => Ok(()),
        }
    }

    /// The controller's bounds for datagrams of `datagram` bytes, in whole IP packets; `None` unless automatic.
    pub(crate) const fn bounds(&self, datagram: Bytes) -> Option<congestion::Bounds> {
        match *self {
            Self::Auto { floor, peak, .. } => Some(congestion::Bounds { floor, peak, datagram }),
            _ => None,
        }
    }

    /// The algorithm of an automatic rate.
    pub(crate) const fn congestion(&self) -> Option<&'static Algorithm> {
        match *self {
            Self::Auto { congestion, .. } => Some(congestion),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_automatic_rate_needs_bounds_and_rate_control() {
        let six = Class::new(6).unwrap();
        assert_eq!(Rate::AUTO.check(Class::ALL), Ok(()));
        assert_eq!(Rate::AUTO.check(six), Err(RateError::Uncontrolled(six)));
        assert_eq!(Rate::smooth(Rate::PEAK).check(six), Ok(()));
        let (floor, peak) = (Rate::PEAK, Rate::FLOOR);
        assert_eq!(Rate::between(floor, peak).check(Class::ALL), Err(RateError::Bounds { floor, peak }));
    }
}
