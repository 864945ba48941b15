//! Changes of rate and class while a transfer runs: `--at 5s:rate=40mbit,class=5`.
//!
//! Called by the parser of `send`, and by its loop when the time has come.
//!
//! Invariant: a change changes something, and only what it names.

use super::argument::rate;
use crate::quantity;
use segstream::{Class, Rate};
use segstream_base::Duration;
use std::str::FromStr;

/// A change, counted from the moment the connection is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduledChange {
    /// When.
    pub(super) at: Duration,
    /// The new rate.
    pub(super) rate: Option<Rate>,
    /// The new class.
    pub(super) class: Option<Class>,
}

impl FromStr for ScheduledChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("\"{text}\" is not a change; write when and what, as in 5s:rate=40mbit,class=5");
        let (at, changes) = text.split_once(':').ok_or_else(refused)?;
        let mut change = Self { at: quantity::duration(at)?, rate: None, class: None };
        for (key, value) in settings(changes).ok_or_else(refused)? {
            let known = match key {
                "rate" => change.rate.replace(rate(&value)?).is_none(),
                "class" => change.class.replace(class(&value)?).is_none(),
                _ => false,
            };
            if !known {
                return Err(refused());
            }
        }
        Ok(change)
    }
}

/// The settings of `text`; what has no key of its own goes on with the value before it, as in `rate=40mbit,100,8` and in
/// `rate=auto:floor=1mbit,peak=50mbit`.
fn settings(text: &str) -> Option<Vec<(&str, String)>> {
    let mut settings: Vec<(&str, String)> = Vec::new();
    for piece in text.split(',') {
        match piece.split_once('=') {
            Some((key, value)) if !matches!(key.trim(), "floor" | "peak") => settings.push((key.trim(), value.trim().to_owned())),
            _ => {
                let (_, value) = settings.last_mut()?;
                value.push(',');
                value.push_str(piece.trim());
            }
        }
    }
    Some(settings)
}

/// A class, 0 to 7.
pub(super) fn class(text: &str) -> Result<Class, String> {
    text.trim().parse().ok().and_then(Class::new).ok_or_else(|| {
        format!("\"{text}\" is not a class; write a sum of 4 (error control), 2 (flow control) and 1 (rate control), such as 7 for all")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream::{Bandwidth, RateSpec};

    #[test]
    fn a_change_names_when_and_what() {
        let change: ScheduledChange = "5s:rate=40mbit,class=5".parse().unwrap();
        let rate = Rate::smooth(Bandwidth::from_megabits_per_second(40));
        assert_eq!(change, ScheduledChange { at: Duration::from_secs(5), rate: Some(rate), class: Class::new(5) });
        let bursts: ScheduledChange = "100ms:rate=40mbit,100,8".parse().unwrap();
        assert_eq!(bursts.rate, RateSpec::new(Bandwidth::from_megabits_per_second(40), 100, 8).ok().map(Rate::Fixed));
        let automatic: ScheduledChange = "5s:rate=auto:floor=1mbit,peak=50mbit,class=7".parse().unwrap();
        assert_eq!(automatic.rate.map(|rate| (rate.is_auto(), rate.peak().bits_per_second())), Some((true, 50_000_000)));
        assert_eq!(automatic.class, Class::new(7));
    }

    #[test]
    fn what_is_no_change_is_refused_with_a_sentence() {
        for text in
            ["", "5s", "5s:", "5s:rate", "5:rate=1mbit", "5s:speed=1", "5s:class=8", "5s:rate=automatic", "5s:rate=1mbit,rate=2mbit"]
        {
            let sentence = text.parse::<ScheduledChange>().expect_err(text);
            assert!(sentence.split(' ').count() > 5, "{sentence}");
        }
    }
}
