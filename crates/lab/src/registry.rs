//! Every scheme that can be studied: key, name, colour, marker, what it can be told, and how it is made.
//!
//! Called by scenarios, by whatever runs one, and by the command line.
//! Adding a scheme is one entry in [`SCHEMES`] and one arm in [`visit`].
//!
//! Invariant: this is the only place that names all schemes; the keys are unique.

mod configs;

use crate::figure::Marker;
use crate::flagship;
use crate::scenario::{SEGMENT_PACKETS_MAX, Scenario, ScenarioError};
use configs::{adaptive_ack_config, htpnet_config, snr_config, sscop_config, sstp_config, tcp_config, xtp_config};
use segstream_base::Instant;
use segstream_base::halves::{Receiver, Sender};
use segstream_schemes::sstp::FeedbackMode;
use segstream_schemes::{adaptive_ack, htpnet, snr, sscop, sstp, tcp, xtp};

/// Which scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The flagship.
    Segstream,
    /// SSTP (EC, FC).
    Sstp,
    /// SNR (EC 5).
    Snr,
    /// HTPNET (HT).
    Htpnet,
    /// TCP as HT 7 compares with it.
    Tcp,
    /// Adaptive acknowledgment (AA).
    AdaptiveAck,
    /// SSCOP (Q.2110), which AA compares with.
    Sscop,
    /// XTP (XT).
    Xtp,
}

/// A setting that not every scheme has, by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `--ack`
    Ack,
    /// `--accounting`
    Accounting,
    /// `--feedback ideal`
    IdealFeedback,
    /// `--status-period`
    StatusPeriod,
    /// `--slip`
    Slip,
    /// `--reorder`
    Reorder,
    /// A partial tolerance.
    PartialTolerance,
    /// A buffer smaller than the window.
    Buffer,
    /// `--service-us`
    Service,
    /// `--search-us`
    SearchCost,
    /// `--timer-us`
    TimerCost,
    /// `--sync-period`
    SyncPeriod,
    /// `--offset`
    Offset,
    /// `--ranges`
    Ranges,
    /// `--search`
    Search,
    /// `--class`
    Class,
    /// `--ptif`
    Ptif,
    /// `--backoff`
    Backoff,
    /// `--t-normal`
    TNormal,
    /// `--t-error`
    TError,
    /// `--no-tail-rule`
    TailRule,
    /// `--timer-poll`
    TimerPoll,
    /// `--max-pd`
    MaxPd,
    /// `--rtt` over sockets: the scheme counts in round trips and does not measure them, but goes without.
    RoundTrip,
}

/// One scheme.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// Which.
    pub kind: Kind,
    /// Its name on the command line and in files.
    pub key: &'static str,
    /// Its name in pictures.
    pub name: &'static str,
    /// Where it is from, in a line.
    pub source: &'static str,
    /// Its colour in pictures, of palettes that colour-blind readers can tell apart (Okabe and Ito; Tol).
    pub colour: &'static str,
    /// Its marker in pictures.
    pub marker: Marker,
    /// What it can be told besides what all can.
    pub settings: &'static [Setting],
}

/// What HTPNET and TCP can be told. HT 7 compares them in one end system, so each takes what only the other makes use
/// of: one line serves both.
const COMPARED: &[Setting] = &[
    Setting::Service,
    Setting::SearchCost,
    Setting::TimerCost,
    Setting::SyncPeriod,
    Setting::Offset,
    Setting::Ranges,
    Setting::Search,
    Setting::Class,
    Setting::Ptif,
    Setting::Backoff,
];

/// All schemes, the flagship first.
pub const SCHEMES: &[Scheme] = &[
    Scheme {
        kind: Kind::Segstream,
        key: "segstream",
        name: "Segstream",
        source: "this project's transport",
        colour: "#0072b2",
        marker: Marker::Circle,
        settings: &[Setting::Reorder, Setting::PartialTolerance, Setting::Buffer],
    },
    Scheme {
        kind: Kind::Sstp,
        key: "sstp",
        name: "SSTP",
        source: "Gong and Parulkar 1992 (EC, FC)",
        colour: "#d55e00",
        marker: Marker::Square,
        settings: &[
            Setting::Ack,
            Setting::Accounting,
            Setting::IdealFeedback,
            Setting::Reorder,
            Setting::PartialTolerance,
            Setting::Buffer,
        ],
    },
    Scheme {
        kind: Kind::Snr,
        key: "snr",
        name: "SNR",
        source: "Netravali, Roome and Sabnani 1990, as EC describes it",
        colour: "#009e73",
        marker: Marker::Triangle,
        settings: &[Setting::IdealFeedback, Setting::StatusPeriod, Setting::Slip],
    },
    Scheme {
        kind: Kind::Htpnet,
        key: "htpnet",
        name: "HTPNET",
        source: "Chan and Gorton (HT)",
        colour: "#cc79a7",
        marker: Marker::Diamond,
        settings: COMPARED,
    },
    Scheme {
        kind: Kind::Tcp,
        key: "tcp",
        name: "TCP",
        source: "the TCP that Chan and Gorton compare HTPNET with (HT 7)",
        colour: "#e69f00",
        marker: Marker::Cross,
        settings: COMPARED,
    },
    Scheme {
        kind: Kind::AdaptiveAck,
        key: "adaptive-ack",
        name: "Adaptive ack.",
        source: "adaptive acknowledgment for an ATM clustering system (AA)",
        colour: "#56b4e9",
        marker: Marker::Star,
        settings: &[Setting::TNormal, Setting::TError, Setting::TailRule],
    },
    Scheme {
        kind: Kind::Sscop,
        key: "sscop",
        name: "SSCOP",
        source: "ITU-T Q.2110, which AA compares with",
        colour: "#000000",
        marker: Marker::Plus,
        settings: &[Setting::TimerPoll, Setting::MaxPd],
    },
    Scheme {
        kind: Kind::Xtp,
        key: "xtp",
        name: "XTP",
        source: "XTP's error control (XT): here with selective repeat and a storing receiver; all others over its tandem of queues",
        colour: "#882255",
        marker: Marker::Hexagon,
        settings: &[Setting::RoundTrip],
    },
];

impl Scheme {
    /// The most packets of a segment. One with SSCOP, whose unit of transfer is one SD (Q.2110).
    pub const fn segment_packets_max(&self) -> u32 {
        match self.kind {
            Kind::Sscop => 1,
            _ => SEGMENT_PACKETS_MAX,
        }
    }
}

/// The scheme with this key.
pub fn find(key: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.key == key)
}

/// All keys, for people.
pub fn keys() -> String {
    SCHEMES.iter().map(|scheme| scheme.key).collect::<Vec<_>>().join(", ")
}

/// Takes pairs of halves of whatever types.
pub trait Visitor {
    /// What comes of it.
    type Output;
    /// Makes as many pairs as it needs, of one scenario or of several of the same scheme, and works with them.
    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Self::Output, ScenarioError>
    where
        S: Sender + 'static,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback> + 'static;
}

/// Lends `visitor` what makes halves of the scenario's scheme, at the origin of time: of this scenario, and of any
/// other that asks for the same scheme.
pub fn visit<V: Visitor>(scenario: &Scenario, visitor: V) -> Result<V::Output, ScenarioError> {
    let scheme = scenario.registered()?;
    check(scenario, scheme)?;
    let now = Instant::ZERO;
    match scheme.kind {
        Kind::Segstream => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            flagship::pair(scenario, now)
        }),
        Kind::Sstp => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            let config = sstp_config(scenario);
            Ok((sstp::Sender::new(config, now).map_err(refusal)?, sstp::Receiver::new(config, now).map_err(refusal)?))
        }),
        Kind::Snr => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            let config = snr_config(scenario);
            let (sender, receiver) = (snr::Sender::new(config.clone(), now), snr::Receiver::new(config, now));
            Ok((sender.map_err(refusal)?, receiver.map_err(refusal)?))
        }),
        Kind::Htpnet => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            let config = htpnet_config(scenario)?;
            let (sender, receiver) = (htpnet::Sender::new(config.clone(), now), htpnet::Receiver::new(config, now));
            Ok((sender.map_err(refusal)?, receiver.map_err(refusal)?))
        }),
        Kind::Tcp => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            let config = tcp_config(scenario);
            let (sender, receiver) = (tcp::Sender::new(config.clone(), now), tcp::Receiver::new(config, now));
            Ok((sender.map_err(refusal)?, receiver.map_err(refusal)?))
        }),
        Kind::AdaptiveAck => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            let config = adaptive_ack_config(scenario);
            let (sender, receiver) = (adaptive_ack::Sender::new(config.clone(), now), adaptive_ack::Receiver::new(config, now));
            Ok((sender.map_err(refusal)?, receiver.map_err(refusal)?))
        }),
        Kind::Sscop => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            let config = sscop_config(scenario);
            let (sender, receiver) = (sscop::Sender::new(config.clone(), now), sscop::Receiver::new(config, now));
            Ok((sender.map_err(refusal)?, receiver.map_err(refusal)?))
        }),
        Kind::Xtp => visitor.visit(|scenario: &Scenario| {
            check(scenario, scheme)?;
            let config = xtp_config(scenario);
            let (sender, receiver) = (xtp::Sender::new(config.clone(), now), xtp::Receiver::new(config, now));
            Ok((sender.map_err(refusal)?, receiver.map_err(refusal)?))
        }),
    }
}

/// Makes a pair only to hear whether it can be made: what [`Scenario::check`] asks, and what the scheme does.
pub fn check_pair(scenario: &Scenario) -> Result<(), ScenarioError> {
    struct Try<'a>(&'a Scenario);
    impl Visitor for Try<'_> {
        type Output = ();

        fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<(), ScenarioError>
        where
            S: Sender,
            R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
        {
            make(self.0).map(|_| ())
        }
    }
    visit(scenario, Try(scenario))
}

/// Whether halves of `scheme` can be made of the scenario.
fn check(scenario: &Scenario, scheme: &Scheme) -> Result<(), ScenarioError> {
    scenario.check()?;
    if scenario.scheme != scheme.key {
        return Err(ScenarioError::OtherScheme { asked: scenario.scheme.clone(), here: scheme.key });
    }
    check_settings(scenario, scheme)
}

/// The application bytes of one segment: the payload of its packets.
pub fn segment_bytes(scenario: &Scenario) -> Result<u64, ScenarioError> {
    let payload = match scenario.registered()?.kind {
        Kind::Segstream => flagship::payload_bytes(scenario),
        Kind::Sstp => u64::from(sstp_config(scenario).payload_bytes()),
        Kind::Snr => u64::from(snr_config(scenario).payload_bytes()),
        Kind::Htpnet => u64::from(htpnet_config(scenario)?.payload_bytes()),
        Kind::Tcp => u64::from(tcp_config(scenario).payload_bytes()),
        Kind::AdaptiveAck => u64::from(adaptive_ack_config(scenario).payload_bytes()),
        Kind::Sscop => u64::from(sscop_config(scenario).payload_bytes()),
        Kind::Xtp => u64::from(xtp_config(scenario).payload_bytes()),
    };
    Ok(payload * u64::from(scenario.segment_packets))
}

fn refusal(error: impl std::fmt::Display) -> ScenarioError {
    ScenarioError::Scheme(error.to_string())
}

/// Refuses what the scheme cannot be told.
fn check_settings(scenario: &Scenario, scheme: &Scheme) -> Result<(), ScenarioError> {
    if scenario.segment_packets > scheme.segment_packets_max() {
        return Err(ScenarioError::OnePacketSegments(scenario.segment_packets));
    }
    let usual = Scenario::default();
    let asked = [
        (Setting::Ack, "ack", scenario.ack != usual.ack),
        (Setting::Accounting, "accounting", scenario.accounting != usual.accounting),
        (Setting::IdealFeedback, "feedback ideal", scenario.feedback == FeedbackMode::Ideal),
        (Setting::StatusPeriod, "status-period", scenario.status_period.is_some()),
        (Setting::Slip, "slip", scenario.slip),
        (Setting::Reorder, "reorder", scenario.reorder != usual.reorder),
        (Setting::PartialTolerance, "tolerance other than reliable or any", scenario.tolerance.is_partial()),
        (Setting::Buffer, "buffer", scenario.buffer_segments() != scenario.window),
        (Setting::Service, "service-us", scenario.service != usual.service),
        (Setting::SearchCost, "search-us", scenario.search_cost != usual.search_cost),
        (Setting::TimerCost, "timer-us", scenario.timer_cost != usual.timer_cost),
        (Setting::SyncPeriod, "sync-period", scenario.sync_period != usual.sync_period),
        (Setting::Offset, "offset", scenario.offset != usual.offset),
        (Setting::Ranges, "ranges", scenario.ranges != usual.ranges),
        (Setting::Search, "search", scenario.search != usual.search),
        (Setting::Class, "class", scenario.class != usual.class),
        (Setting::Ptif, "ptif", scenario.ptif != usual.ptif),
        (Setting::Backoff, "backoff", scenario.backoff != usual.backoff),
        (Setting::Backoff, "timer-tick", scenario.timer_tick != usual.timer_tick),
        (Setting::TNormal, "t-normal", scenario.t_normal != usual.t_normal),
        (Setting::TError, "t-error", scenario.t_error != usual.t_error),
        (Setting::TailRule, "no-tail-rule", scenario.tail_rule != usual.tail_rule),
        (Setting::TimerPoll, "timer-poll", scenario.timer_poll != usual.timer_poll),
        (Setting::MaxPd, "max-pd", scenario.max_pd != usual.max_pd),
    ];
    match asked.iter().find(|(setting, _, asked)| *asked && !scheme.settings.contains(setting)) {
        Some((_, setting, _)) => Err(ScenarioError::NotApplicable { setting, scheme: scheme.key.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_names_colours_and_markers_are_unique() {
        for (at, scheme) in SCHEMES.iter().enumerate() {
            for other in &SCHEMES[..at] {
                assert!(scheme.key != other.key && scheme.name != other.name);
                assert!(scheme.colour != other.colour && scheme.marker != other.marker, "{} looks like {}", scheme.key, other.key);
            }
        }
    }

    #[test]
    fn every_scheme_makes_halves_of_its_usual_scenario() {
        for scheme in SCHEMES {
            check_pair(&Scenario::of(scheme)).unwrap_or_else(|error| panic!("{}: {error}", scheme.key));
        }
        let long = Scenario { scheme: "sscop".into(), ..Scenario::default() };
        assert!(check_pair(&long).unwrap_err().to_string().contains("segments of 256 packets are not possible with sscop"));
    }

    #[test]
    fn a_setting_a_scheme_does_not_have_is_refused() {
        let scenario = Scenario { scheme: "segstream".into(), feedback: FeedbackMode::Ideal, ..Scenario::default() };
        struct Nothing;
        impl Visitor for Nothing {
            type Output = ();
            fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<(), ScenarioError>
            where
                S: Sender,
                R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
            {
                make(&Scenario::default()).map(|_| ())
            }
        }
        let told = visit(&scenario, Nothing).unwrap_err().to_string();
        assert_eq!(told, "--feedback ideal means nothing to segstream; leave it out");
        let scenario = Scenario { feedback: FeedbackMode::Full, ..scenario };
        let told = visit(&scenario, Nothing).unwrap_err().to_string();
        assert!(told.contains("\"sstp\" is asked for, but it is segstream here"), "{told}");
    }
}
