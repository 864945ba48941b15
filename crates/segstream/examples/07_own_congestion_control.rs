//! Shows: a congestion control of one's own: a window that grows by a packet a round trip, and falls by a third on loss or a mark.
//! Run: `cargo run -p segstream --example 07_own_congestion_control`
//! Expect:
//! ```text
//! in state "probing": 2000 units judged complete
//! ```
#![allow(clippy::print_stdout)]

use segstream::blocking::Endpoint;
use segstream::congestion::{Algorithm, Bandwidth, Bounds, Bytes, Clock, Controller, Duration, Instant, Limit, Probe, Report, Silence};
use segstream::{Config, Contract, Error, StreamId};
use std::thread;

static ONE_UP_A_THIRD_DOWN: Algorithm = Algorithm {
    name: "one_up_a_third_down",
    about: "a packet more a round trip, a third less after a loss",
    // Only those of the library can be chosen by name.
    offered: false,
    clock: Clock::Reports,
    responds_to_ecn: true,
    start: |start| Box::new(OneUpAThirdDown { datagram: start.bounds.datagram.get(), window: 32.0, rtt: None }),
};

#[derive(Debug)]
struct OneUpAThirdDown {
    datagram: u64,
    /// In packets.
    window: f64,
    rtt: Option<Duration>,
}

impl Controller for OneUpAThirdDown {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.datagram = bounds.datagram.get();
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    fn on_report(&mut self, _now: Instant, report: &Report) {
        self.rtt = report.rtt.or(self.rtt);
        if report.event.is_some() {
            self.window = (self.window * 2.0 / 3.0).max(2.0);
        } else if report.limited == Some(Limit::Cap) {
            self.window += report.delivered as f64 / self.datagram as f64 / self.window;
        }
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        if silence.timeout.is_some() {
            self.window = 2.0;
        }
    }

    fn on_path_change(&mut self, _now: Instant) {
        (self.window, self.rtt) = (32.0, None);
    }

    /// The window alone limits; the sender spreads its packets over the round trip.
    fn pacing_rate(&self) -> Option<Bandwidth> {
        None
    }

    fn in_flight_cap(&self) -> Bytes {
        Bytes::new(self.window as u64 * self.datagram)
    }

    fn exchange_period(&self) -> Duration {
        // So far apart that they take little of the rate.
        let rtt = self.rtt.map_or(0.2, Duration::as_secs_f64);
        segstream::congestion::exchange_period(self.rtt, rtt / self.window)
    }

    fn phase(&self) -> &'static str {
        "probing"
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", self.window);
    }
}

fn main() -> Result<(), Error> {
    let mut receiver = Endpoint::builder().allow_anyone().listen(([127, 0, 0, 1], 0))?;
    let peer = receiver.peer();
    let receiving = thread::spawn(move || -> Result<(), Error> {
        let id = receiver.accept(None)?;
        let mut connection = receiver.connection(id);
        while connection.recv(StreamId::FIRST, None)?.is_some() {}
        connection.closed(None)?;
        receiver.close()
    });

    let config = Config::default().with_congestion(&ONE_UP_A_THIRD_DOWN);
    let mut endpoint = Endpoint::builder().config(config).bind(([127, 0, 0, 1], 0))?;
    let id = endpoint.connect(peer, vec![Contract::default()])?;
    let mut connection = endpoint.connection(id);
    let segment = connection.send(StreamId::FIRST, vec![7; 2000 * 1024].into())?;
    let judged = connection.verdict(StreamId::FIRST, segment, None)?;
    let phase = connection.statistics()?.phase.unwrap_or_default();
    println!("in state {phase:?}: {} units judged {}", 2000 - judged.missing(), judged.verdict);
    connection.close(0, "done")?;
    receiving.join().expect("the receiving thread does not panic")
}
