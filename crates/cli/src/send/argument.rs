//! Arguments of `send` that need more than a number: the rate and interleaving.
//!
//! Called by the parser.
//!
//! Invariant: what is refused is refused with a sentence that says what to write.

use crate::quantity;
use segstream::{InterleaveChoice, RateSpec};

/// A rate: `P` or `P,F,L`.
pub(super) fn rate(text: &str) -> Result<RateSpec, String> {
    if text.trim() == "auto" {
        return Err("a rate cannot be found by itself yet; give a rate that the path carries, such as --rate 50mbit".to_owned());
    }
    let refused = || {
        format!("\"{text}\" is not a rate; write the peak P as in 50mbit, or P,F,L as in 50mbit,100,8: F bursts a second of L shipments")
    };
    let pieces: Vec<&str> = text.split(',').map(str::trim).collect();
    match pieces[..] {
        [peak] => Ok(RateSpec::smooth(quantity::bandwidth(peak)?)),
        [peak, bursts, shipments] => {
            let number = |text: &str| text.parse::<u32>().map_err(|_| refused());
            RateSpec::new(quantity::bandwidth(peak)?, number(bursts)?, number(shipments)?).map_err(|error| error.to_string())
        }
        _ => Err(refused()),
    }
}

/// Interleaving: `auto`, `off` or a depth.
pub(super) fn interleave(text: &str) -> Result<InterleaveChoice, String> {
    match text.trim() {
        "auto" => Ok(InterleaveChoice::Auto),
        "off" => Ok(InterleaveChoice::Off),
        depth => match depth.parse() {
            Ok(depth) if depth > 0 => Ok(InterleaveChoice::Depth(depth)),
            _ => Err(format!("\"{text}\" is no interleaving; write auto, off, or a depth of at least 1 unit, such as 64")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_interleavings_are_read() {
        assert_eq!(rate("50mbit").map(|rate| rate.is_smooth()), Ok(true));
        assert_eq!(rate("50mbit, 100, 8").map(|rate| rate.burst_shipments()), Ok(8));
        assert_eq!(interleave("64"), Ok(InterleaveChoice::Depth(64)));
        for text in ["auto", "50", "50mbit,1", "50mbit,0,1", "50mbit,1,0", "0mbit", "50mbit,x,1"] {
            assert!(rate(text).expect_err(text).split(' ').count() > 5);
        }
        assert!(interleave("0").is_err() && interleave("on").is_err());
    }
}
