//! Arguments of `send` that need more than a number: the rate, its congestion control, and interleaving.
//!
//! Called by the parser.
//!
//! Invariant: what is refused is refused with a sentence that says what to write.

use crate::quantity;
use segstream::{Algorithm, Bandwidth, Class, InterleaveChoice, Rate, RateSpec};

/// A rate: `auto`, perhaps with bounds and a start as in `auto:floor=1mbit,peak=50mbit,start=8mbit`, or `P`, or `P,F,L`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    match text.trim().strip_prefix("auto") {
        Some("") => Ok(Rate::AUTO),
        Some(bounds) => automatic(bounds.strip_prefix(':').ok_or_else(|| not_a_rate(text))?).ok_or_else(|| not_a_rate(text))?,
        None => fixed(text).map(Rate::Fixed),
    }
}

fn not_a_rate(text: &str) -> String {
    format!(
        "\"{text}\" is not a rate; write auto (congestion-controlled), auto:floor=1mbit,peak=50mbit (the same within bounds), auto:start=8mbit (the \
         same for a live source of that rate), a fixed rate \
         such as 50mbit, or P,F,L such as 50mbit,100,8 (F bursts per second of L datagrams each, sent at the rate P)"
    )
}

/// The bounds of an automatic rate; `None` when the text is none.
fn automatic(bounds: &str) -> Option<Result<Rate, String>> {
    let (mut floor, mut peak, mut start) = (None, None, None);
    for bound in bounds.split(',') {
        let (key, value) = bound.split_once('=')?;
        let slot = match key.trim() {
            "floor" => &mut floor,
            "peak" => &mut peak,
            "start" => &mut start,
            _ => return None,
        };
        match quantity::bandwidth(value.trim()) {
            Ok(value) if slot.is_none() => *slot = Some(value),
            Ok(_) => return None,
            Err(sentence) => return Some(Err(sentence)),
        }
    }
    let peak = peak.unwrap_or(Rate::PEAK);
    let rate = Rate::between(floor.unwrap_or(Rate::FLOOR.min(peak)), peak).starting_at(start.unwrap_or(Bandwidth::ZERO));
    Some(rate.check(Class::ALL).map(|()| rate).map_err(|error| error.to_string()))
}

/// A fixed rate.
fn fixed(text: &str) -> Result<RateSpec, String> {
    let refused = || not_a_rate(text);
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

/// A congestion control that users can choose, by its name.
pub(super) fn congestion(text: &str) -> Result<&'static Algorithm, String> {
    Algorithm::offered(text.trim()).map_err(|error| error.to_string())
}

/// Interleaving: `auto`, `off` or a depth.
pub(super) fn interleave(text: &str) -> Result<InterleaveChoice, String> {
    match text.trim() {
        "auto" => Ok(InterleaveChoice::Auto),
        "off" => Ok(InterleaveChoice::Off),
        depth => match depth.parse() {
            Ok(depth) if depth > 0 => Ok(InterleaveChoice::Depth(depth)),
            _ => Err(format!("\"{text}\" is not an interleaving; write auto, off, or a depth of at least 1 unit, such as 64")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_interleavings_are_read() {
        assert_eq!(fixed("50mbit").map(|rate| rate.is_smooth()), Ok(true));
        assert_eq!(fixed("50mbit, 100, 8").map(|rate| rate.burst_shipments()), Ok(8));
        assert_eq!(rate("auto"), Ok(Rate::AUTO));
        let megabits = Bandwidth::from_megabits_per_second;
        assert_eq!(rate("auto:floor=1mbit, peak=50mbit"), Ok(Rate::between(megabits(1), megabits(50))));
        assert_eq!(rate("auto:start=8mbit"), Ok(Rate::AUTO.starting_at(megabits(8))));
        assert_eq!(rate("auto:start=8mbit, peak=9mbit"), Ok(Rate::between(Rate::FLOOR, megabits(9)).starting_at(megabits(8))));
        assert_eq!(rate("auto:peak=10kbit").map(|rate| rate.peak().bits_per_second()), Ok(10_000), "a low peak lowers the floor");
        assert_eq!(interleave("64"), Ok(InterleaveChoice::Depth(64)));
        for text in [
            "auto:",
            "auto=1",
            "auto:peak",
            "auto:peak=1",
            "auto:top=1mbit",
            "auto:floor=2mbit,peak=1mbit",
            "auto:start=2mbit,peak=1mbit",
            "auto:start=2mbit,start=1mbit",
            "automatic",
            "50",
            "50mbit,1",
            "50mbit,0,1",
            "50mbit,1,0",
            "0mbit",
            "50mbit,x,1",
        ] {
            assert!(rate(text).expect_err(text).split(' ').count() > 5);
        }
        assert!(interleave("0").is_err() && interleave("on").is_err());
    }

    #[test]
    fn a_congestion_control_that_is_not_offered_is_refused_with_the_names_of_those_that_are() {
        for name in ["auto", "bbr", "cubic", "prague"] {
            assert_eq!(congestion(name).map(|algorithm| algorithm.name), Ok(name));
        }
        for name in ["bbr1", "linux_cubic", "reno", "vegas", ""] {
            let told = congestion(name).expect_err(name);
            assert_eq!(told, format!("\"{name}\" is not a congestion control that can be chosen; give auto, bbr, cubic or prague"));
        }
    }
}
