//! Active queue management (AQM), as a user writes it.
//!
//! Called by command lines, scenarios and configuration; [`crate::bottleneck`] runs those that decide when a packet
//! arrives, [`crate::scheduled`] those that decide at dequeue.
//!
//! ```text
//! droptail
//! codel                                     with the parameters of RFC 8289 4.4
//! codel:target=5ms,interval=100ms
//! pie:target=15ms,update=15ms,burst=150ms   RFC 8033
//! red:minth=5,maxth=15,maxp=0.1,weight=0.002    in packets
//! fq-codel:target=5ms,interval=100ms,flows=1024,quantum=1514
//! dualpi2:target=15ms,rtt=100ms,minth=800us,range=400us,coupling=2
//! ```
//!
//! A setting that is not given has the default of the RFC.
//!
//! Invariant: what parses passes [`Aqm::check`], and what it prints parses to itself.

use crate::probability::{Probability, parse_pairs, parse_span};
use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::Duration;

/// Active queue management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Aqm {
    /// Nothing: packets are dropped when the queue is full.
    #[default]
    DropTail,
    /// Controlled delay (RFC 8289): drops or marks when the queueing delay has not been below `target` for an `interval`.
    CoDel {
        /// The queueing delay that may persist, above 0. The default of RFC 8289: 5 ms.
        target: Duration,
        /// How long it may be exceeded, about the longest round trip; not below the target. The default of RFC 8289:
        /// 100 ms.
        interval: Duration,
    },
    /// Proportional integral controller, enhanced (RFC 8033): drops or marks arriving packets with a probability that it adapts.
    Pie {
        /// The queueing delay that the controller aims at, above 0. The default of RFC 8033: 15 ms.
        target: Duration,
        /// The span between two updates of the probability, above 0. The default of RFC 8033: 15 ms.
        update: Duration,
        /// How long a burst that finds an idle queue is not dropped. The default of RFC 8033: 150 ms.
        burst: Duration,
    },
    /// Random early detection (Floyd and Jacobson 1993, gentle): drops or marks arriving packets with a probability that follows an
    /// average of the queue.
    Red {
        /// The average in packets from which packets are dropped, at least 1. Default: 5, of the paper's simulations.
        min_th: u32,
        /// The average in packets at which `max_p` of them are, above `min_th`; at twice as many all are. Default: 15.
        max_th: u32,
        /// The share dropped at `max_th`, in millionths, above 0. Default: a tenth (Floyd, Discussions of setting parameters, 1997).
        max_p_ppm: u32,
        /// The weight of a packet in the average, in millionths, above 0. Default: 0.002, as in the paper.
        weight_ppm: u32,
    },
    /// Flow queueing with CoDel (RFC 8290): a queue for each flow, served in turn, each with a CoDel of its own.
    FqCoDel {
        /// As of CoDel.
        target: Duration,
        /// As of CoDel.
        interval: Duration,
        /// How many queues the flows are hashed into, 1 to [`Aqm::FLOWS_MAX`]. The default of RFC 8290: 1024.
        flows: u32,
        /// How many bytes a queue may send in its turn, at least 1. The default of RFC 8290: 1514.
        quantum: u32,
    },
    /// The coupled dual queue of L4S (RFC 9332): ECT(1) and CE into a shallow queue, all others into one of PI2.
    DualPi2 {
        /// The queueing delay that the controller aims at in the classic queue, above 0. The default of RFC 9332: 15 ms.
        target: Duration,
        /// The longest round trip the controller is stable for, not below the target. The default of RFC 9332: 100 ms.
        rtt: Duration,
        /// The queueing delay in the L4S queue above which marking begins. The default of RFC 9332: 800 µs.
        min_th: Duration,
        /// From this much above `min_th` on every packet is marked; zero makes a step of the ramp. The default of RFC 9332:
        /// 400 µs.
        range: Duration,
        /// The factor between the marks of the two queues, 1 to 16. The default of RFC 9332: 2.
        coupling: u32,
    },
}

impl Aqm {
    /// The target of RFC 8289 4.4.
    pub const TARGET: Duration = Duration::from_millis(5);
    /// The interval of RFC 8289 4.3.
    pub const INTERVAL: Duration = Duration::from_millis(100);
    /// CoDel with the parameters of RFC 8289.
    pub const CODEL: Self = Self::CoDel { target: Self::TARGET, interval: Self::INTERVAL };
    /// PIE with the parameters of RFC 8033 4.1, 4.2 and 4.4.
    pub const PIE: Self =
        Self::Pie { target: Duration::from_millis(15), update: Duration::from_millis(15), burst: Duration::from_millis(150) };
    /// RED with the usual parameters.
    pub const RED: Self = Self::Red { min_th: 5, max_th: 15, max_p_ppm: 100_000, weight_ppm: 2_000 };
    /// Flow queueing with the parameters of RFC 8290 5.2.
    pub const FQ_CODEL: Self = Self::FqCoDel { target: Self::TARGET, interval: Self::INTERVAL, flows: 1024, quantum: 1514 };
    /// The dual queue with the parameters of RFC 9332 A.1, Figure 2.
    pub const DUALPI2: Self = Self::DualPi2 {
        target: Duration::from_millis(15),
        rtt: Duration::from_millis(100),
        min_th: Duration::from_micros(800),
        range: Duration::from_micros(400),
        coupling: 2,
    };
    /// The most queues of `fq-codel`. Why a limit: each takes memory whether it is used or not.
    pub const FLOWS_MAX: u32 = 65_536;

    /// Checks parameters that were built by hand; parsed ones have passed.
    ///
    /// # Errors
    /// Says which parameter is invalid.
    pub fn check(&self) -> Result<(), SpecError> {
        let impossible = |what| Err(SpecError::AqmImpossible { what, aqm: self.to_string() });
        match *self {
            Self::CoDel { target, interval } | Self::FqCoDel { target, interval, .. } if target.is_zero() || interval < target => {
                Err(SpecError::AqmNeverRests { target, interval })
            }
            Self::FqCoDel { flows, .. } if flows == 0 || flows > Self::FLOWS_MAX => impossible("a number of flows from 1 to 65536"),
            Self::FqCoDel { quantum: 0, .. } => impossible("a quantum above 0"),
            Self::Pie { target, update, .. } if target.is_zero() || update.is_zero() => impossible("a target and an update above 0"),
            Self::Red { min_th, max_th, .. } if min_th == 0 || max_th <= min_th => impossible("a minth above 0 and a maxth above it"),
            Self::Red { max_p_ppm, weight_ppm, .. } if max_p_ppm == 0 || weight_ppm == 0 || max_p_ppm.max(weight_ppm) > 1_000_000 => {
                impossible("a maxp and a weight above 0")
            }
            Self::DualPi2 { target, rtt, .. } if target.is_zero() || rtt < target => impossible("a target above 0 and an rtt not below it"),
            Self::DualPi2 { coupling, .. } if !(1..=16).contains(&coupling) => impossible("a coupling from 1 to 16"),
            _ => Ok(()),
        }
    }

    /// Whether it decides at dequeue and not when a packet arrives; only a [`crate::ScheduledPath`] can have it.
    pub const fn is_scheduled(&self) -> bool {
        matches!(self, Self::FqCoDel { .. } | Self::DualPi2 { .. })
    }
}

fn span(text: Option<&str>, what: &'static str, default: Duration) -> Result<Duration, SpecError> {
    text.map_or(Ok(default), |text| parse_span(text, what))
}

fn number(text: Option<&str>, what: &'static str, default: u32) -> Result<u32, SpecError> {
    text.map_or(Ok(default), |text| text.parse().map_err(|_| SpecError::NotANumber { what, text: text.to_owned() }))
}

fn millionths(text: Option<&str>, what: &'static str, default: u32) -> Result<u32, SpecError> {
    // Adding one half and cutting rounds: a probability is not negative.
    text.map_or(Ok(default), |text| Ok((Probability::parse(text, what)?.get() * 1e6 + 0.5) as u32))
}

fn codel(pairs: &str) -> Result<Aqm, SpecError> {
    let [target, interval] = parse_pairs(pairs, "codel", ["target", "interval"], "target and interval")?;
    Ok(Aqm::CoDel { target: span(target, "target of codel", Aqm::TARGET)?, interval: span(interval, "interval of codel", Aqm::INTERVAL)? })
}

fn pie(pairs: &str) -> Result<Aqm, SpecError> {
    let [target, update, burst] = parse_pairs(pairs, "pie", ["target", "update", "burst"], "target, update and burst")?;
    let usual = Duration::from_millis(15);
    Ok(Aqm::Pie {
        target: span(target, "target of pie", usual)?,
        update: span(update, "update of pie", usual)?,
        burst: span(burst, "burst of pie", Duration::from_millis(150))?,
    })
}

fn red(pairs: &str) -> Result<Aqm, SpecError> {
    let [min_th, max_th, max_p, weight] = parse_pairs(pairs, "red", ["minth", "maxth", "maxp", "weight"], "minth, maxth, maxp and weight")?;
    Ok(Aqm::Red {
        min_th: number(min_th, "minth of red", 5)?,
        max_th: number(max_th, "maxth of red", 15)?,
        max_p_ppm: millionths(max_p, "maxp of red", 100_000)?,
        weight_ppm: millionths(weight, "weight of red", 2_000)?,
    })
}

fn fq_codel(pairs: &str) -> Result<Aqm, SpecError> {
    let keys = ["target", "interval", "flows", "quantum"];
    let [target, interval, flows, quantum] = parse_pairs(pairs, "fq-codel", keys, "target, interval, flows and quantum")?;
    Ok(Aqm::FqCoDel {
        target: span(target, "target of fq-codel", Aqm::TARGET)?,
        interval: span(interval, "interval of fq-codel", Aqm::INTERVAL)?,
        flows: number(flows, "number of flows", 1024)?,
        quantum: number(quantum, "quantum", 1514)?,
    })
}

fn dualpi2(pairs: &str) -> Result<Aqm, SpecError> {
    let keys = ["target", "rtt", "minth", "range", "coupling"];
    let [target, rtt, min_th, range, coupling] = parse_pairs(pairs, "dualpi2", keys, "target, rtt, minth, range and coupling")?;
    Ok(Aqm::DualPi2 {
        target: span(target, "target of dualpi2", Duration::from_millis(15))?,
        rtt: span(rtt, "rtt of dualpi2", Duration::from_millis(100))?,
        min_th: span(min_th, "minth of dualpi2", Duration::from_micros(800))?,
        range: span(range, "range of dualpi2", Duration::from_micros(400))?,
        coupling: number(coupling, "coupling", 2)?,
    })
}

impl FromStr for Aqm {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let trimmed = text.trim();
        let (name, pairs) = trimmed.split_once(':').unwrap_or((trimmed, ""));
        let aqm = match name {
            "droptail" if name == trimmed => Self::DropTail,
            "codel" => codel(pairs)?,
            "pie" => pie(pairs)?,
            "red" => red(pairs)?,
            "fq-codel" => fq_codel(pairs)?,
            "dualpi2" => dualpi2(pairs)?,
            _ => return Err(SpecError::UnknownAqm(text.to_owned())),
        };
        aqm.check()?;
        Ok(aqm)
    }
}

impl fmt::Display for Aqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTail => f.write_str("droptail"),
            Self::CoDel { target, interval } => write!(f, "codel:target={target},interval={interval}"),
            Self::Pie { target, update, burst } => write!(f, "pie:target={target},update={update},burst={burst}"),
            Self::Red { min_th, max_th, max_p_ppm, weight_ppm } => {
                let share = |ppm: u32| f64::from(ppm) / 1e6;
                write!(f, "red:minth={min_th},maxth={max_th},maxp={},weight={}", share(*max_p_ppm), share(*weight_ppm))
            }
            Self::FqCoDel { target, interval, flows, quantum } => {
                write!(f, "fq-codel:target={target},interval={interval},flows={flows},quantum={quantum}")
            }
            Self::DualPi2 { target, rtt, min_th, range, coupling } => {
                write!(f, "dualpi2:target={target},rtt={rtt},minth={min_th},range={range},coupling={coupling}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_prints_as_what_it_is() {
        assert_eq!("droptail".parse(), Ok(Aqm::DropTail));
        assert_eq!("codel".parse(), Ok(Aqm::CODEL));
        assert_eq!("pie".parse(), Ok(Aqm::PIE));
        assert_eq!("red".parse(), Ok(Aqm::RED));
        assert_eq!("fq-codel".parse(), Ok(Aqm::FQ_CODEL));
        assert_eq!("dualpi2".parse(), Ok(Aqm::DUALPI2));
        assert_eq!("codel:interval=20ms".parse(), Ok(Aqm::CoDel { target: Aqm::TARGET, interval: Duration::from_millis(20) }));
        for text in [
            "droptail",
            "codel:target=5ms,interval=100ms",
            "codel:target=1.5ms,interval=30ms",
            "pie:target=20ms,update=30ms,burst=0ns",
            "red:minth=5,maxth=15,maxp=0.02,weight=0.002",
            "fq-codel:target=5ms,interval=100ms,flows=8,quantum=300",
            "dualpi2:target=15ms,rtt=100ms,minth=500µs,range=0ns,coupling=2",
        ] {
            assert_eq!(text.parse::<Aqm>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn every_parse_error_is_a_sentence_with_the_value() {
        for (text, value) in [
            ("", "\"\""),
            ("blue", "\"blue\""),
            ("red:minth=0", "minth=0"),
            ("red:maxth=5", "maxth=5"),
            ("red:maxp=0", "maxp=0"),
            ("red:weight=1e-9", "weight=0"),
            ("red:maxp=2", "\"2\""),
            ("droptail:", "\"droptail:\""),
            ("codel:target=5", "\"5\""),
            ("codel:ecn=1", "ecn=1"),
            ("codel:target=0ms", "0ns"),
            ("codel:target=5ms,interval=4ms", "4ms"),
            ("pie:alpha=1", "alpha=1"),
            ("pie:target=0ms", "target=0ns"),
            ("pie:update=0ms", "update=0ns"),
            ("fq-codel:flows=0", "flows=0"),
            ("fq-codel:flows=70000", "flows=70000"),
            ("fq-codel:flows=x", "\"x\""),
            ("fq-codel:quantum=0", "quantum=0"),
            ("fq-codel:target=9ms,interval=4ms", "4ms"),
            ("dualpi2:rtt=1ms", "rtt=1ms"),
            ("dualpi2:coupling=17", "coupling=17"),
            ("dualpi2:k=2", "k=2"),
        ] {
            let sentence = text.parse::<Aqm>().expect_err(text).to_string();
            assert!(sentence.contains(value), "{text}: {sentence}");
            assert!(sentence.split(' ').count() > 5, "{text}: {sentence}");
        }
    }
}
