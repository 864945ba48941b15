//! What a user writes of a path besides its loss: bandwidth, policer, the management of the queue, jitter, steps of the delay,
//! reordering, a recorded link.
//!
//! Promises: no text makes a parser panic; a refusal is a sentence; what is accepted is printed so that it parses to itself, and
//! a path can be made of it that settles every packet.

use core::fmt::{Debug, Display};
use core::str::FromStr;
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_path::{
    Aqm, DelaySteps, Jitter, OpportunityTrace, PathConfig, PathPacket, Policer, RateTrace, ReorderSpec, ScheduledPath, SpecError,
};

/// Packets sent over an accepted path.
const PACKETS: u64 = 64;

/// Checks the promises for one input.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let aqm: Option<Aqm> = parsed(text);
    let jitter: Option<Jitter> = parsed(text);
    let steps: Option<DelaySteps> = parsed(text);
    let policer: Option<Policer> = parsed(text);
    let trace: Option<RateTrace> = parsed(text);
    let reorder: Option<ReorderSpec> = parsed(text);
    let listed: Option<OpportunityTrace> = parsed(text);
    let read = accepted(text, OpportunityTrace::read(text));
    if aqm.is_some() || jitter.is_some() || steps.is_some() || policer.is_some() || trace.is_some() || reorder.is_some() {
        run(&PathConfig {
            bandwidth: trace.is_none().then(|| Bandwidth::from_megabits_per_second(8)),
            trace: trace.unwrap_or_default(),
            aqm: aqm.unwrap_or_default(),
            policer,
            reorder: reorder.unwrap_or_default(),
            jitter: jitter.unwrap_or_default(),
            delay_steps: steps.unwrap_or_default(),
            ..PathConfig::default()
        });
    }
    for opportunities in [listed, read].into_iter().flatten() {
        run(&PathConfig { bandwidth: Some(Bandwidth::from_megabits_per_second(8)), opportunities, ..PathConfig::default() });
    }
}

fn parsed<T: FromStr<Err = SpecError> + Display + Debug + PartialEq>(text: &str) -> Option<T> {
    accepted(text, text.parse())
}

fn accepted<T: FromStr<Err = SpecError> + Display + Debug + PartialEq>(text: &str, result: Result<T, SpecError>) -> Option<T> {
    match result {
        Ok(spec) => {
            let printed = spec.to_string();
            assert_eq!(printed.parse().as_ref(), Ok(&spec), "{text:?} prints as {printed:?}");
            Some(spec)
        }
        Err(refused) => {
            assert!(refused.to_string().contains(' '), "the refusal of {text:?} is no sentence: {refused}");
            None
        }
    }
}

fn run(config: &PathConfig) {
    let mut path = ScheduledPath::new(config, Seed(1), "forward").expect("an accepted description can be run");
    for number in 0..PACKETS {
        let ecn = [None, Some(Ecn::Ect0), Some(Ecn::Ect1)][(number % 3) as usize];
        path.send(
            Instant::ZERO + Duration::from_micros(700) * number,
            PathPacket { bytes: Bytes::new(1000), ecn, flow: number % 5 },
            number,
        );
    }
    path.advance(Instant::FAR_FUTURE);
    assert_eq!(core::iter::from_fn(|| path.decided()).count() as u64, PACKETS, "a packet was not settled");
}
