//! Reordering: packets that are held back and overtaken.
//!
//! Called by [`crate::Path`]. Written `none`, `P:distance=N` or `P:delay=T`; P is the share of packets held
//! back. (`netem` sends the chosen packets ahead instead; here a chosen packet is the late one, as on real
//! paths.)
//!
//! - `1%:delay=10ms`: one packet in a hundred takes 10 ms longer, and whatever follows may overtake it.
//! - `1%:distance=5`: one packet in a hundred is held back until five later ones have overtaken it.
//!
//! A path answers when a packet is sent and cannot know when later ones will be. So a distance of N holds
//! a packet back for N + 1/2 times the mean spacing of the stream: in an even stream exactly N packets
//! overtake it. In an uneven one fewer may, but never more: a packet that would be the one too many waits
//! behind the held one. On a sparse stream a packet is held for [`HOLD_MAX`] at most. Only one packet is held at a time; the chance of the packets in between is raised
//! so that the share stays P.
//!
//! Invariant: a distance of N never lets more than N packets overtake. So a path that loses nothing never shows
//! a gap that a receiver with a re-sequencing distance of N would take for a loss.

use crate::delay::Delay;
use crate::probability::{Probability, parse_pairs, parse_span};
use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};

/// The longest time for which a distance holds a packet back.
// Why: on a path that carries a packet now and then, such as the reports of a transfer the other way, N packets
// can be seconds.
pub const HOLD_MAX: Duration = Duration::from_millis(100);

/// Which packets arrive out of order, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum ReorderSpec {
    /// None.
    #[default]
    None,
    /// A share of the packets takes a time longer than the others.
    Delay {
        /// The share.
        share: Probability,
        /// The additional delay, above zero.
        delay: Duration,
    },
    /// A share of the packets is overtaken by a number of others.
    Distance {
        /// The share; times (distance + 1) it must not exceed 1.
        share: Probability,
        /// How many packets overtake, at least 1.
        distance: u32,
    },
}

impl ReorderSpec {
    /// Checks a specification that was built by hand; parsed ones have passed.
    ///
    /// # Errors
    /// Says what is wrong with which value.
    pub fn check(&self) -> Result<(), SpecError> {
        match *self {
            Self::None => Ok(()),
            Self::Delay { delay, .. } if delay.is_zero() => Err(SpecError::ReorderByNothing(self.to_string())),
            Self::Delay { .. } => Ok(()),
            Self::Distance { distance: 0, .. } => Err(SpecError::ReorderByNothing(self.to_string())),
            Self::Distance { share, distance } => Self::chance_while_free(share, distance).map(|_| ()),
        }
    }

    /// The chance q of a packet to be held while none is, such that a cycle of 1/q packets and the N that
    /// overtake is 1/P packets long: q = P / (1 - P N).
    fn chance_while_free(share: Probability, distance: u32) -> Result<Probability, SpecError> {
        let free = 1.0 - share.get() * f64::from(distance);
        let chance = if share.is_zero() { 0.0 } else { share.get() / free };
        // Why: a share of exactly 1 / (distance + 1) may come out above 1 by the last digit.
        let chance = if chance > 1.0 && chance < 1.0 + 1e-9 { 1.0 } else { chance };
        Probability::new(chance).map_err(|_| SpecError::ReorderTooOften { share: share.get(), distance })
    }
}

impl FromStr for ReorderSpec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        let refused = || SpecError::NotAReordering(text.to_owned());
        let (share, by) = text.split_once(':').ok_or_else(refused)?;
        let share = Probability::parse(share, "share of reordered packets")?;
        let [distance, delay] = parse_pairs(by, "reorder", ["distance", "delay"], "distance or delay")?;
        let spec = match (distance, delay) {
            (Some(text), None) => {
                let distance = text.parse().map_err(|_| SpecError::NotANumber { what: "distance", text: text.to_owned() })?;
                Self::Distance { share, distance }
            }
            (None, Some(text)) => Self::Delay { share, delay: parse_span(text, "delay of reordered packets")? },
            _ => return Err(refused()),
        };
        spec.check()?;
        Ok(spec)
    }
}

impl fmt::Display for ReorderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Delay { share, delay } => write!(f, "{share}:delay={delay}"),
            Self::Distance { share, distance } => write!(f, "{share}:distance={distance}"),
        }
    }
}

/// Decides which packets are held back, and until when.
#[derive(Clone, Debug)]
pub struct Reorder {
    chance: Probability,
    random: Random,
    hold: Hold,
}

#[derive(Clone, Debug)]
enum Hold {
    Delay(Duration),
    Distance { distance: u32, spacing: Spacing, held: Option<Held> },
}

/// The packet that is held back.
#[derive(Clone, Copy, Debug)]
struct Held {
    arrival: Instant,
    may_overtake: u32,
}

impl Reorder {
    /// The reordering described by `spec`, drawn from the stream `reorder.<direction>`; `None` when nothing
    /// is reordered.
    ///
    /// # Errors
    /// As [`ReorderSpec::check`].
    pub fn new(spec: ReorderSpec, seed: Seed, direction: &str) -> Result<Option<Self>, SpecError> {
        spec.check()?;
        let random = seed.stream(&format!("reorder.{direction}"));
        Ok(match spec {
            ReorderSpec::None => None,
            ReorderSpec::Delay { share, delay } => Some(Self { chance: share, random, hold: Hold::Delay(delay) }),
            ReorderSpec::Distance { share, distance } => Some(Self {
                chance: ReorderSpec::chance_while_free(share, distance)?,
                random,
                hold: Hold::Distance { distance, spacing: Spacing::default(), held: None },
            }),
        })
    }

    /// Draws whether the next packet may be held back. Called once for each packet sent.
    #[inline]
    pub fn picks(&mut self) -> bool {
        self.chance.happens(&mut self.random)
    }

    /// When a packet arrives late that would arrive at `in_order`; `None` when it is not held back.
    ///
    /// `picked` is what [`Reorder::picks`] said of it. Called for each packet that gets through; `delay` is
    /// told when later packets must not overtake any more.
    pub fn hold(&mut self, picked: bool, departure: Instant, in_order: Instant, delay: &mut Delay) -> Option<Instant> {
        match &mut self.hold {
            Hold::Delay(extra) => picked.then(|| in_order + *extra),
            Hold::Distance { distance, spacing, held } => {
                spacing.note(departure);
                if let Some(overtaken) = held {
                    let overtakes = in_order < overtaken.arrival;
                    overtaken.may_overtake -= u32::from(overtakes);
                    if overtaken.may_overtake == 0 {
                        delay.wait_for(overtaken.arrival);
                    }
                    let done = !overtakes || overtaken.may_overtake == 0;
                    if done {
                        *held = None;
                    }
                    if overtakes {
                        return None;
                    }
                }
                let wait = (spacing.mean() * (2 * u64::from(*distance) + 1) / 2).min(HOLD_MAX);
                if !picked || wait.is_zero() {
                    return None;
                }
                let arrival = in_order + wait;
                *held = Some(Held { arrival, may_overtake: *distance });
                Some(arrival)
            }
        }
    }
}

/// The smoothed spacing of the packets that get through.
#[derive(Clone, Copy, Debug, Default)]
struct Spacing {
    last: Option<Instant>,
    mean_nanos: u64,
}

impl Spacing {
    /// Why: a pause between bursts says nothing about the spacing inside them, so one gap counts for at
    /// most this many times the mean.
    const PAUSE_GAPS: u64 = 8;
    const LEAST: u64 = 1_000;

    fn note(&mut self, departure: Instant) {
        if let Some(last) = self.last {
            let gap = departure.since(last).as_nanos();
            if self.mean_nanos == 0 {
                self.mean_nanos = gap;
            } else {
                let gap = gap.min((self.mean_nanos * Self::PAUSE_GAPS).max(Self::LEAST));
                self.mean_nanos = (self.mean_nanos * 7 + gap).div_ceil(8);
            }
        }
        self.last = Some(departure);
    }

    fn mean(self) -> Duration {
        Duration::from_nanos(self.mean_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_print_as_what_they_are() {
        let share = Probability::new(0.01).unwrap();
        assert_eq!("1%:distance=5".parse(), Ok(ReorderSpec::Distance { share, distance: 5 }));
        assert_eq!("0.01:delay=10ms".parse(), Ok(ReorderSpec::Delay { share, delay: Duration::from_millis(10) }));
        assert_eq!("none".parse(), Ok(ReorderSpec::None));
        for text in ["none", "1%:distance=5", "1%:delay=10ms"] {
            let spec: ReorderSpec = text.parse().unwrap();
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }

    #[test]
    fn every_parse_error_is_a_sentence_with_the_value() {
        for (text, value) in [
            ("", "\"\""),
            ("1%", "1%"),
            ("2:distance=5", "\"2\""),
            ("1%:distance=x", "\"x\""),
            ("1%:distance=0", "distance=0"),
            ("1%:delay=0ms", "delay=0ns"),
            ("1%:delay=10", "\"10\""),
            ("1%:gap=5", "gap=5"),
            ("1%:distance=5,delay=1ms", "1%:distance=5,delay=1ms"),
            ("20%:distance=5", "0.2"),
        ] {
            let sentence = text.parse::<ReorderSpec>().expect_err(text).to_string();
            assert!(sentence.contains(value), "{text}: {sentence}");
            assert!(sentence.split(' ').count() > 5, "{text}: {sentence}");
        }
        assert!("50%:distance=1".parse::<ReorderSpec>().is_ok());
        assert!("25%:distance=3".parse::<ReorderSpec>().is_ok());
    }
}
