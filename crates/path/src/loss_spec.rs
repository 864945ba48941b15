//! Loss processes as a user writes them.
//!
//! Called by command lines and configuration; [`crate::loss`] makes the running process.
//!
//! ```text
//! none
//! 1e-3 | 0.1% | random:1e-3                                      each packet by itself
//! bursty:good=1620ms,bad=180ms,loss=1e-3[,dwell=deterministic]   two states clocked by time (EC 4.1, F9)
//! gilbert:rate=1%,burst=4                                        two states clocked by packets
//! list:5,17,18                                                   exactly these, counted from 0
//! ```
//!
//! Invariant: a specification that passes [`LossSpec::check`] loses on average less than everything, and
//! what it prints parses to itself.

use crate::probability::{Probability, parse_pairs, parse_span};
use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::Duration;

/// How long a time-clocked state lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dwell {
    /// Exponentially distributed.
    #[default]
    Exponential,
    /// Always the mean.
    Deterministic,
}

/// Which packets a path loses.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum LossSpec {
    /// None.
    #[default]
    None,
    /// Each with the same probability, independent of all others (Bernoulli).
    Random(Probability),
    /// Two states that last a time of their own, whatever is sent. Nothing is lost in the good state, with
    /// which the run starts.
    Bursty {
        /// The mean time in the good state, at least 1 us.
        good: Duration,
        /// The mean time in the bad state, at least 1 us.
        bad: Duration,
        /// The probability with which a packet is lost in the bad state; 1 makes it an outage.
        loss: Probability,
        /// How the times are distributed.
        dwell: Dwell,
    },
    /// Runs of lost packets of geometric length, clocked by packets (the simple model of Gilbert, Bell Syst.
    /// Tech. J. 39, 1960). Starts outside a run.
    Gilbert {
        /// The mean loss, below 1.
        rate: Probability,
        /// The mean length of a run of losses in packets, at least 1.
        burst: f64,
    },
    /// Exactly these packets, counted from 0 among all that are sent in this direction.
    List(Vec<u64>),
}

/// The chances of the packet-clocked process to change its state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertChances {
    /// From good to bad, at each packet.
    pub to_bad: Probability,
    /// From bad to good, at each packet.
    pub to_good: Probability,
}

impl LossSpec {
    /// The shortest dwell of a time-clocked state. A shorter one would cost more time to simulate than it
    /// could matter.
    pub const DWELL_MIN: Duration = Duration::from_micros(1);

    /// Checks a specification that was built by hand; parsed ones have passed.
    ///
    /// # Errors
    /// Says what is wrong with which value.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::None | Self::List(_) => Ok(()),
            Self::Random(share) if share.get() >= 1.0 => Err(SpecError::CertainLoss(self.to_string())),
            Self::Random(_) => Ok(()),
            Self::Bursty { good, bad, .. } => {
                // Why: with both dwells bounded the mean loss is below 1 even when the bad state is an outage.
                for (state, dwell) in [("good", *good), ("bad", *bad)] {
                    if dwell < Self::DWELL_MIN {
                        return Err(SpecError::DwellTooShort { state, dwell });
                    }
                }
                Ok(())
            }
            Self::Gilbert { rate, burst } => self.gilbert_chances(*rate, *burst).map(|_| ()),
        }
    }

    /// The chances that give a mean loss of `rate` in runs of `burst` packets: to_good = 1/burst and
    /// to_bad = rate / (burst (1 - rate)), from rate = to_bad / (to_bad + to_good).
    pub(crate) fn gilbert_chances(&self, rate: Probability, burst: f64) -> Result<GilbertChances, SpecError> {
        if rate.get() >= 1.0 {
            return Err(SpecError::CertainLoss(self.to_string()));
        }
        if !(1.0..f64::INFINITY).contains(&burst) {
            return Err(SpecError::BurstTooShort(burst));
        }
        let too_many = |_| SpecError::TooManyBursts { rate: rate.get(), burst };
        let to_bad = Probability::new(rate.get() / (burst * (1.0 - rate.get()))).map_err(too_many)?;
        let to_good = Probability::new(1.0 / burst).map_err(too_many)?;
        Ok(GilbertChances { to_bad, to_good })
    }

    /// The long-run share of packets that are lost, for an even stream (EC F9 for the time-clocked
    /// process); zero for a list.
    pub fn mean(&self) -> f64 {
        match self {
            Self::None | Self::List(_) => 0.0,
            Self::Random(share) => share.get(),
            Self::Bursty { good, bad, loss, .. } => {
                let (good, bad) = (good.as_secs_f64(), bad.as_secs_f64());
                if good + bad == 0.0 { 0.0 } else { loss.get() * bad / (good + bad) }
            }
            Self::Gilbert { rate, .. } => rate.get(),
        }
    }
}

impl FromStr for LossSpec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let trimmed = text.trim();
        let spec = match trimmed.split_once(':') {
            None if trimmed == "none" => Self::None,
            None => Self::Random(trimmed.parse().map_err(|_| SpecError::UnknownLoss(text.to_owned()))?),
            Some(("random", share)) => Self::Random(Probability::parse(share, "loss")?),
            Some(("bursty", pairs)) => parse_bursty(pairs)?,
            Some(("gilbert", pairs)) => parse_gilbert(pairs)?,
            Some(("list", numbers)) => parse_list(numbers)?,
            Some(_) => return Err(SpecError::UnknownLoss(text.to_owned())),
        };
        spec.check()?;
        Ok(spec)
    }
}

fn parse_bursty(pairs: &str) -> Result<LossSpec, SpecError> {
    const OF: &str = "bursty";
    const KEYS: &str = "good, bad, loss and dwell";
    let [good, bad, loss, dwell] = parse_pairs(pairs, OF, ["good", "bad", "loss", "dwell"], KEYS)?;
    let missing = |key| SpecError::MissingKey { of: OF, key };
    Ok(LossSpec::Bursty {
        good: parse_span(good.ok_or(missing("good"))?, "good")?,
        bad: parse_span(bad.ok_or(missing("bad"))?, "bad")?,
        loss: Probability::parse(loss.ok_or(missing("loss"))?, "loss")?,
        dwell: match dwell {
            None | Some("exponential") => Dwell::Exponential,
            Some("deterministic") => Dwell::Deterministic,
            Some(other) => return Err(SpecError::UnknownKey { of: "dwell", text: other.to_owned(), keys: "exponential or deterministic" }),
        },
    })
}

fn parse_gilbert(pairs: &str) -> Result<LossSpec, SpecError> {
    const OF: &str = "gilbert";
    let [rate, burst] = parse_pairs(pairs, OF, ["rate", "burst"], "rate and burst")?;
    let missing = |key| SpecError::MissingKey { of: OF, key };
    let burst = burst.ok_or(missing("burst"))?;
    Ok(LossSpec::Gilbert {
        rate: Probability::parse(rate.ok_or(missing("rate"))?, "rate")?,
        burst: burst.parse().map_err(|_| SpecError::NotANumber { what: "burst", text: burst.to_owned() })?,
    })
}

fn parse_list(numbers: &str) -> Result<LossSpec, SpecError> {
    if numbers.trim().is_empty() {
        return Err(SpecError::EmptyList);
    }
    let number = |text: &str| text.trim().parse().map_err(|_| SpecError::NotANumber { what: "packet", text: text.trim().to_owned() });
    let mut list = numbers.split(',').map(number).collect::<Result<Vec<u64>, _>>()?;
    list.sort_unstable();
    list.dedup();
    Ok(LossSpec::List(list))
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Random(share) => write!(f, "random:{share}"),
            Self::Bursty { good, bad, loss, dwell } => {
                write!(f, "bursty:good={good},bad={bad},loss={loss}")?;
                if *dwell == Dwell::Deterministic { f.write_str(",dwell=deterministic") } else { Ok(()) }
            }
            Self::Gilbert { rate, burst } => write!(f, "gilbert:rate={rate},burst={burst}"),
            Self::List(numbers) => {
                f.write_str("list:")?;
                for (place, number) in numbers.iter().enumerate() {
                    if place > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{number}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> LossSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_form_is_read_and_prints_as_what_it_is() {
        let share = Probability::new(0.001).unwrap();
        assert_eq!(spec("none"), LossSpec::None);
        for text in ["1e-3", "0.1%", "random:1e-3", "random:0.1%"] {
            assert_eq!(spec(text), LossSpec::Random(share));
        }
        let (good, bad) = (Duration::from_millis(1620), Duration::from_millis(180));
        let bursty = |dwell| LossSpec::Bursty { good, bad, loss: share, dwell };
        assert_eq!(spec("bursty:good=1620ms,bad=180ms,loss=1e-3"), bursty(Dwell::Exponential));
        assert_eq!(spec("bursty:loss=1e-3,dwell=deterministic,bad=180ms,good=1.62s"), bursty(Dwell::Deterministic));
        assert_eq!(spec("gilbert:rate=1%,burst=4"), LossSpec::Gilbert { rate: Probability::new(0.01).unwrap(), burst: 4.0 });
        assert_eq!(spec("list:17,5,18,5"), LossSpec::List(vec![5, 17, 18]));
        for text in ["none", "1e-3", "bursty:good=1620ms,bad=180ms,loss=1,dwell=deterministic", "gilbert:rate=1%,burst=1.5", "list:5,17,18"]
        {
            assert_eq!(spec(&spec(text).to_string()), spec(text));
        }
    }

    #[test]
    fn the_mean_of_the_bursty_process_is_the_papers() {
        assert!((spec("bursty:good=1620ms,bad=180ms,loss=1e-3").mean() - 1e-4).abs() < 1e-18);
    }

    #[test]
    fn a_mean_loss_of_one_is_refused_everywhere() {
        for text in ["1", "100%", "random:1", "gilbert:rate=1,burst=4"] {
            let error = text.parse::<LossSpec>().expect_err(text);
            assert!(matches!(error, SpecError::CertainLoss(_)), "{error}");
            assert!(error.to_string().contains("would lose every packet"));
        }
        assert!(LossSpec::Random(Probability::new(1.0).unwrap()).check().is_err());
    }

    #[test]
    fn gilbert_refuses_what_no_chain_can_give() {
        assert_eq!("gilbert:rate=1%,burst=0.5".parse::<LossSpec>(), Err(SpecError::BurstTooShort(0.5)));
        assert!(matches!("gilbert:rate=1%,burst=nan".parse::<LossSpec>(), Err(SpecError::BurstTooShort(_))));
        // rate 2/3 in runs of one packet would need a chance of 2 to leave the good state.
        assert!(matches!("gilbert:rate=0.667,burst=1".parse::<LossSpec>(), Err(SpecError::TooManyBursts { .. })));
        assert!("gilbert:rate=0.667,burst=3".parse::<LossSpec>().is_ok());
    }

    #[test]
    fn every_parse_error_is_a_sentence_with_the_value() {
        for (text, value) in [
            ("", "\"\""),
            ("often", "often"),
            ("1.5", "1.5"),
            ("random:x", "\"x\""),
            ("gauss:1", "gauss:1"),
            ("bursty:good=1s,bad=1s", "lacks loss"),
            ("bursty:good=1,bad=1s,loss=0.1", "\"1\""),
            ("bursty:good=1s,bad=1s,loss=0.1,loss=0.2", "loss twice"),
            ("bursty:good=1s,bad=1s,loss=0.1,ugly=3", "ugly=3"),
            ("bursty:good=1s,bad=1s,loss=0.1,dwell=long", "long"),
            ("bursty:good=1ns,bad=1s,loss=0.1", "1ns"),
            ("gilbert:rate=1%", "burst"),
            ("gilbert:rate=1%,burst=x", "\"x\""),
            ("list:", "names no packet"),
            ("list:1,-2", "-2"),
            ("list:1,,2", "\"\""),
            ("list:99999999999999999999", "99999999999999999999"),
        ] {
            let sentence = text.parse::<LossSpec>().expect_err(text).to_string();
            assert!(sentence.contains(value), "{text}: {sentence}");
            assert!(sentence.split(' ').count() > 4, "{text}: {sentence}");
        }
    }
}
