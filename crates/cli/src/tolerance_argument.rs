//! A tolerance as it is written on the command line: `reliable`, `any`, `E,B` or `W,E,B`.
//!
//! Called by `send` and `sim`.
//!
//! Invariant: what is read does not contradict itself; a W longer than the segment means the segment.

use segstream::Tolerance;
use segstream_wire::contract::SEGMENT_UNITS_MAX;
use std::str::FromStr;

/// How much of a segment may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToleranceArgument {
    /// Nothing.
    Reliable,
    /// Everything.
    Any,
    /// Of a segment at most so many units, and at most so many in a row.
    OfSegment {
        /// E.
        errors: u32,
        /// B.
        burst: u32,
    },
    /// Of every W units.
    OfWindow(Tolerance),
}

impl FromStr for ToleranceArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "reliable" => return Ok(Self::Reliable),
            "any" => return Ok(Self::Any),
            _ => {}
        }
        let refused = || format!("\"{text}\" is not a tolerance; write reliable, any, E,B as in 5,1, or W,E,B as in 1024,5,1");
        let numbers: Vec<u32> = text.split(',').map(|number| number.trim().parse()).collect::<Result<_, _>>().map_err(|_| refused())?;
        match numbers[..] {
            [errors, burst] => check_reachable(text, errors, burst).map(|()| Self::OfSegment { errors, burst }),
            [window, ..] if window > SEGMENT_UNITS_MAX => {
                Err(format!("a window of W = {window} units is longer than any segment; give at most {SEGMENT_UNITS_MAX}, or only E,B"))
            }
            [window, errors, burst] => {
                let tolerance = Tolerance::new(window, errors, burst).map_err(|error| error.to_string())?;
                check_reachable(text, errors, burst).map(|()| Self::OfWindow(tolerance))
            }
            _ => Err(refused()),
        }
    }
}

/// Refuses a B above E, which bounds nothing. Why: whoever writes it has exchanged E and B, or takes B for something
/// else.
fn check_reachable(text: &str, errors: u32, burst: u32) -> Result<(), String> {
    if burst <= errors {
        return Ok(());
    }
    Err(format!(
        "in the tolerance \"{text}\" the run B = {burst} is longer than all units that may be missing, E = {errors}; lower B to {errors}, or \
         raise E (the order is E,B or W,E,B)"
    ))
}

impl ToleranceArgument {
    /// The tolerance of segments of at most `units` units, as it stands in a contract.
    ///
    /// # Errors
    /// A sentence when E or B exceeds a segment that is W itself.
    pub(crate) fn of_segments(self, units: u32) -> Result<Tolerance, String> {
        const ALL: u32 = SEGMENT_UNITS_MAX;
        match self {
            Self::Reliable => Ok(Tolerance::reliable(ALL)),
            Self::Any => Ok(Tolerance::any(ALL)),
            Self::OfWindow(tolerance) => Ok(tolerance),
            Self::OfSegment { errors, burst } => {
                // Why: to get the error text of the tolerance itself.
                Tolerance::new(units.max(1), errors, burst)
                    .map_err(|error| format!("{error} (without a W the window is the segment, here {units} units)"))?;
                Tolerance::new(ALL, errors, burst).map_err(|error| error.to_string())
            }
        }
    }

    /// The tolerance of segments of `packets` packets, for a scheme.
    ///
    /// # Errors
    /// A sentence when E or B exceeds the segment.
    pub(crate) fn of_packets(self, packets: u32) -> Result<Tolerance, String> {
        let packets = packets.max(1);
        match self {
            Self::Reliable => Ok(Tolerance::reliable(packets)),
            Self::Any => Ok(Tolerance::any(packets)),
            Self::OfSegment { errors, burst } => Tolerance::new(packets, errors, burst).map_err(|error| error.to_string()),
            Self::OfWindow(tolerance) => Ok(tolerance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_tolerance_is_read() {
        assert_eq!("reliable".parse(), Ok(ToleranceArgument::Reliable));
        assert_eq!("any".parse(), Ok(ToleranceArgument::Any));
        assert_eq!("5, 1".parse(), Ok(ToleranceArgument::OfSegment { errors: 5, burst: 1 }));
        let window: ToleranceArgument = "1024,5,1".parse().unwrap();
        assert_eq!(window.of_segments(256), Ok(Tolerance::new(1024, 5, 1).unwrap()));
        let segment: ToleranceArgument = "5,1".parse().unwrap();
        assert_eq!(segment.of_segments(256), Ok(Tolerance::new(SEGMENT_UNITS_MAX, 5, 1).unwrap()));
    }

    #[test]
    fn a_tolerance_that_contradicts_itself_is_refused_with_a_sentence() {
        for text in ["8,9,1", "8,1,9", "5,10", "64,5,10", "0,0,0", "", "1", "1,2,3,4", "a,b", "-1,0", "400000000,1,1"] {
            let sentence = text.parse::<ToleranceArgument>().expect_err(text);
            assert!(sentence.split(' ').count() > 6, "{sentence}");
        }
        assert!("9,1".parse::<ToleranceArgument>().unwrap().of_segments(8).unwrap_err().contains("here 8 units"));
    }
}
