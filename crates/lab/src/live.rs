//! One scheme over real sockets: the scenario's halves behind the adapter that carries any pair over UDP.
//!
//! Called by the command, and by measurements of a scheme on a real path or through the link emulator.
//!
//! The canonical text of the sender's scenario is what the sender asks the receiver for, so that both ends
//! build the same pair; each keeps its own half. Bandwidth is the rate the sender is paced at, bare packets
//! counted. The black box is the network: a scenario's loss is not applied and not told.
//!
//! Invariant: whatever a peer asks for, a receiver runs its own scheme only, within its own limits.
//!
//! Limit: plain, for laboratories, as [`segstream_net::adapter`] says.

use crate::registry::Scheme;
use crate::scenario::{self, Scenario, ScenarioError, Visitor, Workload};
use segstream_base::halves::{Receiver, Sender};
use segstream_net::SocketWarning;
use segstream_net::adapter::{
    AdapterError, BlockingReceiver, BlockingSender, Delivery, ReceiveOptions, ReceiveReport, SendOptions, SendReport, StoreLimits, Watch,
};
use segstream_schemes::sstp::FeedbackMode;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;

/// Why a scheme cannot be run over a network: an error in the request, or of the system.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// See the message.
    #[error("{0} has connections of its own, which carry more than its halves; use those")]
    OwnConnections(&'static str),
    /// See the message.
    #[error("ideal feedback is control that cannot be lost, which no network has; take full feedback")]
    IdealFeedback,
    /// See the message.
    #[error(
        "a window of {window} segments of {segment_bytes} bytes is more than this receiver keeps: {segments_max} segments, {segment_bytes_max} \
         bytes of one and {bytes_max} bytes of all; give a smaller window or shorter segments"
    )]
    Limits {
        /// Segments of the window.
        window: u32,
        /// Bytes of a segment.
        segment_bytes: u64,
        /// The most segments.
        segments_max: u64,
        /// The most bytes of a segment.
        segment_bytes_max: u64,
        /// The most bytes of a window.
        bytes_max: u64,
    },
    /// The socket cannot be opened, or the system fails.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
}

/// A judged segment and its place among the bytes that were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Where its first byte belongs: all segments but the last are equally long.
    pub offset: u64,
    /// The segment.
    pub delivery: Delivery,
}

/// A socket from which a scenario's sender can send.
#[derive(Debug)]
pub struct Sending {
    scenario: Scenario,
    segment_bytes: u64,
    sender: BlockingSender,
}

impl Sending {
    /// Opens a socket for a transfer of `scenario` to `remote`.
    ///
    /// # Errors
    ///
    /// When the scenario cannot be run over a network, before a socket is opened; when the system refuses one.
    pub fn bind(scenario: &Scenario, remote: SocketAddr, options: SendOptions) -> Result<Self, LiveError> {
        check(scenario)?;
        scenario::check_pair(scenario)?;
        let segment_bytes = scenario::segment_bytes(scenario);
        let on_sockets = Scenario { scheme: scenario.scheme.clone().on_sockets(), ..scenario.clone() };
        Ok(Self { scenario: on_sockets, segment_bytes, sender: BlockingSender::bind(remote, options)? })
    }

    /// What the system granted less of than was requested.
    pub fn warnings(&self) -> Vec<SocketWarning> {
        self.sender.warnings()
    }

    /// The length of every segment but the last, in bytes.
    pub const fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Sends `segments`, each of [`Sending::segment_bytes`] except for the last; returns when all are judged or the
    /// transfer has failed, which is told in [`SendReport::failure`].
    ///
    /// # Errors
    ///
    /// When the system fails.
    pub fn run(
        self,
        segments: impl Iterator<Item = io::Result<Vec<u8>>> + Send + 'static,
        watch: Watch<'_>,
    ) -> Result<SendReport, LiveError> {
        let run = SendRun { scenario: &self.scenario, sender: self.sender, segments, watch };
        Ok(scenario::visit(&self.scenario, run)??)
    }
}

/// A socket on which a receiver of one scheme listens.
#[derive(Debug)]
pub struct Receiving {
    scheme: &'static Scheme,
    limits: StoreLimits,
    receiver: BlockingReceiver,
}

impl Receiving {
    /// Opens a socket on `listen` for one transfer of `scheme`; port 0 takes any free one.
    ///
    /// # Errors
    ///
    /// When the scheme is not live, as [`Scheme::is_live`] says, or the system refuses the socket.
    pub fn bind(scheme: &'static Scheme, listen: SocketAddr, options: ReceiveOptions) -> Result<Self, LiveError> {
        check_scheme(scheme)?;
        Ok(Self { scheme, limits: options.receiving.limits, receiver: BlockingReceiver::bind(listen, options)? })
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.receiver.local_addr()
    }

    /// What the system granted less of than was requested.
    pub fn warnings(&self) -> Vec<SocketWarning> {
        self.receiver.warnings()
    }

    /// Waits for a sender, hands every judged segment to `sink`, and returns when the sender has closed or the
    /// transfer has failed, which is told in [`ReceiveReport::failure`]. A sender that asks for another scheme,
    /// or for more than the limits, is told so and not waited for.
    ///
    /// # Errors
    ///
    /// When the system fails.
    pub fn run(self, sink: impl FnMut(Arrived) -> io::Result<()>, watch: Watch<'_>) -> Result<ReceiveReport, LiveError> {
        // Any scenario of the scheme names the types of its halves.
        let any = Scenario::of(self.scheme);
        let run = ReceiveRun { scheme: self.scheme, receiver: self.receiver, limits: self.limits, sink, watch };
        Ok(scenario::visit(&any, run)??)
    }
}

/// What the sender tells the receiver: the scenario without the losses, which are the network's, and without the costs,
/// which are the machine's.
fn parameters(scenario: &Scenario) -> String {
    let workload = Workload { offered: None, ..scenario.workload };
    Scenario { black_box: scenario.black_box.known(), workload, scheme: scenario.scheme.clone() }.canonical()
}

fn check(scenario: &Scenario) -> Result<(), LiveError> {
    scenario.check()?;
    check_scheme(scenario.scheme.scheme())?;
    match scenario.black_box.feedback {
        FeedbackMode::Ideal => Err(LiveError::IdealFeedback),
        FeedbackMode::Full => Ok(()),
    }
}

fn check_scheme(scheme: &Scheme) -> Result<(), LiveError> {
    if scheme.is_live { Ok(()) } else { Err(LiveError::OwnConnections(scheme.key)) }
}

/// Whether a receiver with these limits can keep the scenario's window.
fn check_limits(scenario: &Scenario, limits: StoreLimits) -> Result<(), LiveError> {
    let segment_bytes = scenario::segment_bytes(scenario);
    // The store keeps room for the oldest segment apart, and may allocate twice what has come of the others.
    let shared = limits.bytes.saturating_sub(limits.segment_bytes.saturating_add(limits.segment_bytes / 8));
    let bytes_max = shared / 2;
    let window_bytes = u64::from(scenario.workload.window).saturating_mul(segment_bytes);
    if u64::from(scenario.workload.window) <= limits.segments && segment_bytes <= limits.segment_bytes && window_bytes <= bytes_max {
        return Ok(());
    }
    Err(LiveError::Limits {
        window: scenario.workload.window,
        segment_bytes,
        segments_max: limits.segments,
        segment_bytes_max: limits.segment_bytes,
        bytes_max,
    })
}

struct SendRun<'a, 'w, I> {
    scenario: &'a Scenario,
    sender: BlockingSender,
    segments: I,
    watch: Watch<'w>,
}

impl<I: Iterator<Item = io::Result<Vec<u8>>> + Send + 'static> Visitor for SendRun<'_, '_, I> {
    type Output = Result<SendReport, AdapterError>;

    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Self::Output, ScenarioError>
    where
        S: Sender,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
    {
        let (sender, _) = make(self.scenario)?;
        Ok(self.sender.run(sender, &parameters(self.scenario), self.segments, self.watch))
    }
}

struct ReceiveRun<'a, F> {
    scheme: &'static Scheme,
    receiver: BlockingReceiver,
    limits: StoreLimits,
    sink: F,
    watch: Watch<'a>,
}

impl<F: FnMut(Arrived) -> io::Result<()>> Visitor for ReceiveRun<'_, F> {
    type Output = Result<ReceiveReport, AdapterError>;

    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Self::Output, ScenarioError>
    where
        S: Sender,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
    {
        let Self { scheme, receiver, limits, mut sink, watch } = self;
        let segment_bytes = Cell::new(0);
        let build = |text: &str| {
            let built = || -> Result<R, LiveError> {
                let scenario = Scenario::from_canonical(text)?;
                check(&scenario)?;
                if scenario.scheme.key() != scheme.key {
                    return Err(ScenarioError::OtherScheme { asked: scenario.scheme.key(), here: scheme.key }.into());
                }
                check_limits(&scenario, limits)?;
                segment_bytes.set(scenario::segment_bytes(&scenario));
                Ok(make(&scenario)?.1)
            };
            built().map_err(|error| error.to_string())
        };
        let sink = |delivery: Delivery| {
            let offset = delivery.segment.0.saturating_mul(segment_bytes.get());
            sink(Arrived { offset, delivery })
        };
        Ok(receiver.run(build, sink, watch))
    }
}
