//! The processing cost of a packet at each half of a scheme, measured on this machine (EC Table 2, FC Table 1).
//!
//! Called by the studies of those tables. A run is recorded call by call in virtual time, then each half is
//! given its calls again without simulator, path or peer, and the wall time is divided by the packets.
//!
//! Invariant: a replayed half gets the very calls it got in the run, so it does the same work.
//!
//! Limit: payload is synthetic and no packet is encoded; reading the record costs a few nanoseconds a call.

use crate::run;
use crate::scenario::{self, Scenario, ScenarioError, Visitor};
use segstream_base::Instant;
use segstream_base::halves::{
    Deadline, Probe, Receiver, ReceiverEvent, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender, SenderCounters, SenderEvent,
    StreamId, SubmitError,
};
use segstream_base::random::Seed;
use segstream_sim::{Simulation, Source};
use std::hint::black_box;

/// How often each half is replayed; the median counts.
const REPETITIONS: usize = 7;

/// The cost of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Nanoseconds a data packet costs the sending half, feedback and timers included.
    pub send_ns: f64,
    /// Nanoseconds a data packet costs the receiving half, feedback and timers included.
    pub receive_ns: f64,
    /// Data packets sent in the run.
    pub packets: u64,
}

/// Measures the halves of `scenario` here and now.
pub fn measure(scenario: &Scenario) -> Result<Cost, ScenarioError> {
    let segment_bytes = scenario::segment_bytes(scenario);
    scenario::visit(scenario, Measure { scenario, segment_bytes })
}

struct Measure<'a> {
    scenario: &'a Scenario,
    segment_bytes: u64,
}

impl Visitor for Measure<'_> {
    type Output = Cost;

    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Cost, ScenarioError>
    where
        S: Sender,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
    {
        let (sender, receiver) = make(self.scenario)?;
        let source = Source::Backlog { segments: self.scenario.segments(), segment_bytes: self.segment_bytes };
        let setup = run::setup(&self.scenario.black_box, false);
        let (sender, receiver) = (Recording::new(sender), Recording::new(receiver));
        let mut simulation = Simulation::new(sender, receiver, source, &setup, Seed(1), ())?;
        simulation.run();
        let packets = simulation.sender().counters().packets_sent;
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        for _ in 0..REPETITIONS {
            let (sender, receiver) = make(self.scenario)?;
            send.push(time(|| replay_sender(sender, &simulation.sender().calls)));
            receive.push(time(|| replay_receiver(receiver, &simulation.receiver().calls)));
        }
        Ok(Cost { send_ns: median(send) / packets as f64, receive_ns: median(receive) / packets as f64, packets })
    }
}

fn time(work: impl FnOnce()) -> f64 {
    let began = std::time::Instant::now();
    work();
    began.elapsed().as_nanos() as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A call that changes a half.
enum Call<P> {
    Submit(Instant, Segment),
    Finish(Instant),
    Packet(Instant, P),
    Poll(Instant),
    Timeout(Instant),
}

/// A half that records its calls.
struct Recording<H, P> {
    half: H,
    calls: Vec<Call<P>>,
}

impl<H, P> Recording<H, P> {
    const fn new(half: H) -> Self {
        Self { half, calls: Vec::new() }
    }
}

fn replay_sender<S: Sender>(mut half: S, calls: &[Call<S::Feedback>]) {
    for call in calls {
        match call {
            Call::Submit(now, segment) => {
                let _ = black_box(half.submit(*now, *segment));
            }
            Call::Finish(now) => half.finish(*now),
            Call::Packet(now, packet) => half.handle_feedback(*now, packet),
            Call::Poll(now) => {
                black_box(half.poll_transmit(*now));
            }
            Call::Timeout(now) => half.handle_timeout(*now),
        }
        while black_box(half.poll_event()).is_some() {}
        black_box(half.poll_timeout());
    }
}

fn replay_receiver<R: Receiver>(mut half: R, calls: &[Call<R::Forward>]) {
    for call in calls {
        match call {
            Call::Packet(now, packet) => half.handle_forward(*now, packet),
            Call::Poll(now) => {
                black_box(half.poll_transmit(*now));
            }
            Call::Timeout(now) => half.handle_timeout(*now),
            Call::Submit(..) | Call::Finish(_) => {}
        }
        while black_box(half.poll_event()).is_some() {}
        black_box(half.poll_timeout());
    }
}

impl<S: Sender> Sender for Recording<S, S::Feedback> {
    type Forward = S::Forward;
    type Feedback = S::Feedback;

    fn submit(&mut self, now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        self.calls.push(Call::Submit(now, segment));
        self.half.submit(now, segment)
    }

    fn append(&mut self, now: Instant, stream: StreamId, bytes: u64, last: bool) -> Result<(), SubmitError> {
        self.half.append(now, stream, bytes, last)
    }

    fn finish(&mut self, now: Instant) {
        self.calls.push(Call::Finish(now));
        self.half.finish(now);
    }

    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        self.half.reconfigure(now, change)
    }

    fn handle_feedback(&mut self, now: Instant, packet: &S::Feedback) {
        self.calls.push(Call::Packet(now, packet.clone()));
        self.half.handle_feedback(now, packet);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<S::Forward> {
        self.calls.push(Call::Poll(now));
        self.half.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.half.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.calls.push(Call::Timeout(now));
        self.half.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.half.poll_event()
    }

    fn counters(&self) -> SenderCounters {
        self.half.counters()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.half.probe(out);
    }
}

impl<R: Receiver> Receiver for Recording<R, R::Forward> {
    type Forward = R::Forward;
    type Feedback = R::Feedback;

    fn handle_forward(&mut self, now: Instant, packet: &R::Forward) {
        self.calls.push(Call::Packet(now, packet.clone()));
        self.half.handle_forward(now, packet);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<R::Feedback> {
        self.calls.push(Call::Poll(now));
        self.half.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.half.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.calls.push(Call::Timeout(now));
        self.half.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.half.poll_event()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.half.probe(out);
    }
}
