//! One setting of a scheme, described once: its flag, its help, its place in a scenario's text, what it may be.
//!
//! Written by each scheme beside its halves; read by the laboratory, which makes the canonical text and its parser of it, and
//! by the command line, which makes the flag.
//!
//! Invariant: a value that was read from a setting can be written to it.

use core::fmt;
use core::str::FromStr;
use segstream_base::Duration;

/// The value of a setting, whatever its type in the scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not given: the scheme chooses.
    None,
    /// A whole number.
    Count(u64),
    /// A span of time.
    Time(Duration),
    /// Whether something is so.
    Is(bool),
    /// A word out of several.
    Word(String),
}

/// How a setting is written, and which values it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Count {
        /// The smallest.
        min: u64,
        /// The largest; `u64::MAX` for whatever its type holds.
        max: u64,
    },
    /// A span of time.
    Time {
        /// The shortest.
        min: Duration,
        /// The longest; `Duration::MAX` for no limit.
        max: Duration,
    },
    /// A word out of several; the scheme says which.
    Word {
        /// What the flag means when it is given without a word; `None` when it needs one.
        bare: Option<&'static str>,
    },
    /// A flag without a value.
    Switch {
        /// What the setting is when the flag is given.
        given: bool,
    },
}

/// Where a setting stands in a scenario's canonical text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the scheme's own section, which is left out when all of it is as by default. For all new settings.
    Section,
    /// At the top, for every scheme. Why: the first version of the text had no sections, and old texts keep their meaning.
    Always,
    /// At the top, unless it is as by default. Why: as above.
    UnlessDefault,
}

/// The description of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct About {
    /// Its flag on the command line, without the hyphens.
    pub flag: &'static str,
    /// What stands for its value in the help.
    pub value_name: &'static str,
    /// What it does, in a sentence for the help.
    pub help: &'static str,
    /// What holds when it is not given, for the help; `None` where the default value says it.
    pub by_default: Option<&'static str>,
    /// Its name in the canonical text.
    pub record: &'static str,
    /// Where it stands there.
    pub place: Place,
    /// What a value of it is called in an error: "a poll after {} packets".
    pub noun: &'static str,
    /// How it is written, and which values it has.
    pub kind: Kind,
}

/// A setting of the configuration `C`.
#[derive(Clone, Copy, Debug)]
pub struct Setting<C> {
    /// The description.
    pub about: About,
    /// Its value.
    pub get: fn(&C) -> Value,
    /// Changes it to a value of its kind.
    pub set: fn(&mut C, Value) -> Result<(), SettingError>,
}

/// Why a setting is invalid: an error of the caller that chose the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// See the message.
    #[error("{what} is not possible; give {range}")]
    OutOfRange {
        /// The value, in words.
        what: String,
        /// What is possible.
        range: String,
    },
    /// No value is called so. The text says what can be written.
    #[error("{0}")]
    Unknown(String),
    /// See the message.
    #[error("{0} is not a value of this kind")]
    OtherKind(Value),
}

impl Kind {
    /// A period of reports, states or polls: a peer that may choose it must not make us send more often.
    pub const REPORT_PERIOD: Self = Self::Time { min: Duration::from_micros(100), max: Duration::from_secs(3600) };
}

impl About {
    /// The reordering threshold R, which SSTP and the flagship share.
    pub const REORDERING_THRESHOLD: Self = Self {
        flag: "reorder",
        value_name: "N",
        help: "The reordering threshold: how many packets may overtake a packet before it is declared lost",
        by_default: None,
        record: "reorder",
        place: Place::Always,
        noun: "the reordering threshold {}",
        kind: Kind::Count { min: 0, max: 1023 },
    };

    /// Whether the value is one that the setting may have.
    ///
    /// # Errors
    /// Says what is possible.
    pub fn check(&self, value: &Value) -> Result<(), SettingError> {
        let range = match (self.kind, value) {
            (Kind::Count { min, max }, Value::Count(count)) if !(min..=max).contains(count) => range(min, max, max == u64::MAX),
            (Kind::Time { min, max }, Value::Time(time)) if !(min..=max).contains(time) => range(min, max, max == Duration::MAX),
            _ => return Ok(()),
        };
        Err(SettingError::OutOfRange { what: self.noun.replacen("{}", &value.to_string(), 1), range })
    }
}

fn range(min: impl fmt::Display, max: impl fmt::Display, open: bool) -> String {
    if open { format!("at least {min}") } else { format!("{min} to {max}") }
}

impl Value {
    /// Reads it into `place`, whose type has a value of this kind.
    ///
    /// # Errors
    /// Says that it is of another kind.
    pub fn read<T: TryFrom<Self, Error = SettingError>>(self, place: &mut T) -> Result<(), SettingError> {
        *place = T::try_from(self)?;
        Ok(())
    }

    /// The same for a place that need not have one.
    ///
    /// # Errors
    /// Says that it is of another kind.
    pub fn read_optional<T: TryFrom<Self, Error = SettingError>>(self, place: &mut Option<T>) -> Result<(), SettingError> {
        *place = if self == Self::None { None } else { Some(T::try_from(self)?) };
        Ok(())
    }

    /// The same for a type whose values are words.
    ///
    /// # Errors
    /// Says which words there are.
    pub fn read_word<T: FromStr<Err: fmt::Display>>(self, place: &mut T) -> Result<(), SettingError> {
        let Self::Word(word) = self else { return Err(SettingError::OtherKind(self)) };
        *place = word.parse().map_err(|error: T::Err| SettingError::Unknown(error.to_string()))?;
        Ok(())
    }

    /// The value of what is a word.
    pub fn word(word: impl fmt::Display) -> Self {
        Self::Word(word.to_string())
    }

    /// The value of what need not be there.
    pub fn optional<T: Into<Self>>(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Count(count) => count.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Is(is) => is.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Is(is)
    }
}

impl TryFrom<Value> for Duration {
    type Error = SettingError;

    fn try_from(value: Value) -> Result<Self, SettingError> {
        if let Value::Time(time) = value { Ok(time) } else { Err(SettingError::OtherKind(value)) }
    }
}

impl TryFrom<Value> for bool {
    type Error = SettingError;

    fn try_from(value: Value) -> Result<Self, SettingError> {
        if let Value::Is(is) = value { Ok(is) } else { Err(SettingError::OtherKind(value)) }
    }
}

/// Whole numbers of a type.
macro_rules! counts {
    ($($count:ty),*) => {$(
        impl From<$count> for Value {
            fn from(count: $count) -> Self {
                Self::Count(u64::from(count))
            }
        }

        impl TryFrom<Value> for $count {
            type Error = SettingError;

            fn try_from(value: Value) -> Result<Self, SettingError> {
                match value {
                    Value::Count(count) => Self::try_from(count).map_err(|_| SettingError::OutOfRange {
                        what: count.to_string(),
                        range: range(Self::MIN, Self::MAX, false),
                    }),
                    _ => Err(SettingError::OtherKind(value)),
                }
            }
        }
    )*};
}

counts!(u8, u16, u32);

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: About = About {
        flag: "max-pd",
        value_name: "N",
        help: "",
        by_default: None,
        record: "max_pd",
        place: Place::Section,
        noun: "a poll after {} packets",
        kind: Kind::Count { min: 1, max: u64::MAX },
    };

    #[test]
    fn a_value_out_of_its_range_is_refused_with_a_sentence() {
        assert_eq!(POLL.check(&Value::Count(0)).unwrap_err().to_string(), "a poll after 0 packets is not possible; give at least 1");
        POLL.check(&Value::Count(1)).unwrap();
        POLL.check(&Value::None).unwrap();
        let period =
            About { noun: "a report every {}", kind: Kind::Time { min: Duration::from_millis(1), max: Duration::from_secs(1) }, ..POLL };
        let message = period.check(&Value::Time(Duration::ZERO)).unwrap_err().to_string();
        assert_eq!(message, "a report every 0ns is not possible; give 1ms to 1s");
    }

    #[test]
    fn a_value_of_another_kind_or_size_is_refused_and_changes_nothing() {
        let mut number = 7_u8;
        assert!(Value::Count(256).read(&mut number).is_err() && Value::Is(true).read(&mut number).is_err());
        assert_eq!(number, 7);
        let mut optional = Some(7_u8);
        Value::None.read_optional(&mut optional).unwrap();
        assert_eq!((optional, Value::optional(Some(8_u8))), (None, Value::Count(8)));
    }
}
