//! The loss specification a user writes: `none`, `1e-3`, `gilbert:rate=1%,burst=4` and the others.
//!
//! Promises: no text makes the parser panic; a refusal is a sentence; what is accepted passes its own check,
//! loses less than everything on average, is printed so that it parses to itself, and can be run.

use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_path::LossSpec;
use segstream_path::loss::Loss;

/// Packets sent through an accepted process.
const PACKETS: u64 = 32;

/// Checks the promises for one input.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let spec: LossSpec = match text.parse() {
        Ok(spec) => spec,
        Err(refused) => {
            assert!(refused.to_string().contains(' '), "the refusal of {text:?} is no sentence: {refused}");
            return;
        }
    };
    assert_eq!(spec.check(), Ok(()), "{text:?} was accepted");
    let mean = spec.mean();
    assert!((0.0..1.0).contains(&mean), "{text:?} has the mean loss {mean}");
    let printed = spec.to_string();
    assert_eq!(printed.parse(), Ok(spec.clone()), "{text:?} prints as {printed:?}");

    let mut loss = Loss::new(&spec, Seed(1), "forward").expect("an accepted specification can be run");
    for number in 0..PACKETS {
        loss.takes(number, Instant::ZERO + Duration::from_millis(number));
    }
}
