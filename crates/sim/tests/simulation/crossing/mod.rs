//! A shared link with cross traffic, as the tests of both set it up.
#![allow(dead_code, unreachable_pub)]

use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_blocks::congestion::{Algorithm, Controller, Start};
use segstream_path::{Aqm, LossPlace, LossSpec, PathConfig, QueueLimit};
use segstream_schemes::cross_traffic::{BOUNDS, Constant, Receiver, Sender, Sink, Supply};
use segstream_sim::shared::{Entry, FlowCounters, Link};
use segstream_sim::{Setup, Shared, Simulation, Source};

/// Nothing of a simulation's own source: cross traffic has its supply.
const NO_SOURCE: Source = Source::Backlog { segments: 0, segment_bytes: 0 };

pub fn seconds(count: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(count)
}

pub fn mbit(rate: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(rate)
}

/// A link of `rate` with a queue of `products` bandwidth-delay products of 60 ms.
pub fn link(rate: Bandwidth, products: f64) -> Link {
    let queue = (rate.bytes_in(Duration::from_millis(60)).get() as f64 * products) as u64;
    Link::new(&PathConfig { bandwidth: Some(rate), queue: QueueLimit::Bytes(Bytes::new(queue)), ..PathConfig::default() }, Seed(1)).unwrap()
}

/// A bottleneck of so many Mbit/s with a queue of 600 kB that `aqm` manages.
pub fn managed(rate: u64, aqm: Aqm) -> PathConfig {
    PathConfig { bandwidth: Some(mbit(rate)), queue: QueueLimit::Bytes(Bytes::new(600_000)), aqm, ..PathConfig::default() }
}

/// Own paths of 60 ms there and back, with loss on the forward path.
pub fn own(loss: &str) -> Setup {
    let loss = if loss.is_empty() { LossSpec::None } else { loss.parse().unwrap() };
    let delay = Duration::from_millis(30);
    Setup {
        forward: PathConfig { delay, loss, loss_at: LossPlace::After, ..PathConfig::default() },
        back: PathConfig { delay, ..PathConfig::default() },
        ..Setup::default()
    }
}

pub type Tcp = Simulation<Sender, Receiver, ()>;

/// A controller of the list by name.
pub fn controller(name: &str) -> Box<dyn Controller> {
    (Algorithm::named(name).expect(name).start)(Start::new(Instant::ZERO, BOUNDS, Seed(3)))
}

pub fn tcp(congestion: &str, supply: Supply, ecn: Option<Ecn>, setup: &Setup, entry: Entry) -> Tcp {
    let sender = Sender::new(controller(congestion), supply, ecn);
    let mut simulation = Simulation::new(sender, Receiver::default(), NO_SOURCE, setup, Seed(1), ()).unwrap();
    simulation.join(entry);
    simulation
}

pub fn greedy(congestion: &str, setup: &Setup, entry: Entry) -> Tcp {
    tcp(congestion, Supply::greedy(), None, setup, entry)
}

pub fn constant(supply: Supply, setup: &Setup, entry: Entry) -> Simulation<Constant, Sink, ()> {
    let mut simulation = Simulation::new(Constant::new(supply), Sink::default(), NO_SOURCE, setup, Seed(1), ()).unwrap();
    simulation.join(entry);
    simulation
}

/// What each flow has got through in bit/s between the end of the run now and `until`.
pub fn rates(shared: &mut Shared<'_>, until: Instant) -> Vec<f64> {
    let arrived = |shared: &Shared<'_>| shared.flows().map(|flow| flow.counters().bytes_arrived).collect::<Vec<_>>();
    let before = arrived(shared);
    let span = until.since(shared.now()).as_secs_f64();
    shared.run_until(until).unwrap();
    arrived(shared).iter().zip(before).map(|(after, before)| (after - before) as f64 * 8.0 / span).collect()
}

/// The bytes of a flow that are in one place or another: all that it has sent.
pub const fn bytes_found(counters: &FlowCounters) -> u64 {
    counters.bytes_arrived + counters.bytes_dropped + counters.bytes_lost + counters.bytes_in_flight
}

pub fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}
