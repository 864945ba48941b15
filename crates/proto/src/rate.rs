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
        /// The rate of a live source, if the application knows it; zero if not. The stream has it at once, and `auto` holds it beside
        /// others, up to half of the bottleneck.
        start: Bandwidth,
    },
}

/// Why a rate cannot be kept. The rate before it stays in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The floor is above the peak.
    #[error("an automatic rate cannot have a floor of {floor} and a peak of {peak}; give a floor above 0 and a peak not below it")]
    Bounds {
        /// The floor, as given.
        floor: Bandwidth,
        /// The peak, as given.
        peak: Bandwidth,
    },
    /// The start lies outside the bounds.
    #[error("an automatic rate between {floor} and {peak} cannot start at {start}; give a start within the bounds")]
    Start {
        /// The start, as given.
        start: Bandwidth,
        /// The floor.
        floor: Bandwidth,
        /// The peak.
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
    /// The floor of an automatic rate unless told otherwise: a datagram a second (a cellular link at the edge of its reach carries little more).
    pub const FLOOR: Bandwidth = Bandwidth::from_bits_per_second(10_000);
    /// The peak of an automatic rate unless told otherwise.
    pub const PEAK: Bandwidth = Bandwidth::from_bits_per_second(100_000_000_000);
    /// An automatic rate from 10 kbit/s to 100 Gbit/s under the controller `auto`: the default.
    pub const AUTO: Self = Self::between(Self::FLOOR, Self::PEAK);

    /// An automatic rate within other bounds, under the controller `auto`.
    pub const fn between(floor: Bandwidth, peak: Bandwidth) -> Self {
        Self::Auto { floor, peak, congestion: &congestion::auto::ALGORITHM, start: Bandwidth::ZERO }
    }

    /// The same automatic rate under another controller; a rate that is not automatic stays as it is.
    pub const fn under(self, congestion: &'static Algorithm) -> Self {
        match self {
            Self::Auto { floor, peak, start, .. } => Self::Auto { floor, peak, congestion, start },
            other => other,
        }
    }

    /// The same automatic rate for a live source of the rate `start`: the stream has that at once, and gives way when the path does not
    /// carry it. `auto` holds it beside others, up to half of the bottleneck. Zero for nothing known. A rate that is not automatic stays as
    /// it is.
    pub const fn starting_at(self, start: Bandwidth) -> Self {
        match self {
            Self::Auto { floor, peak, congestion, .. } => Self::Auto { floor, peak, congestion, start },
            other => other,
        }
    }

    /// A fixed rate without bursts.
    pub const fn smooth(rate: Bandwidth) -> Self {
        Self::Fixed(RateSpec::smooth(rate))
    }

    /// The highest rate, which the peer is told; zero when unpaced.
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
            Self::Auto { floor, peak, start, .. } if !start.is_zero() && (start < floor || start > peak) => {
                Err(RateError::Start { start, floor, peak })
            }
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

    /// The initial rate of an automatic rate, if one is set.
    pub(crate) fn start(&self) -> Option<Bandwidth> {
        match *self {
            Self::Auto { start, .. } if !start.is_zero() => Some(start),
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
        let (floor, peak, start) = (Rate::FLOOR, Rate::PEAK, Bandwidth::from_bits_per_second(1000));
        assert_eq!(Rate::AUTO.starting_at(start).check(Class::ALL), Err(RateError::Start { start, floor, peak }));
    }
}
