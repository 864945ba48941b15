//! The plan of a run, drawn from its seed: hosts, paths between them, connections, faults.
//!
//! Called by the swarm, once. What an application does with a connection is drawn when it appears
//! ([`crate::side_plan`]), from the same seed.
//!
//! A third of the runs are *peaceful*: good paths, hosts that agree with each other, applications that close when they
//! are done; what remains is what no correct endpoint may mind: hostile datagrams, applications that do not read for a
//! while. There every connection must end gracefully, so that no fault can hide behind another.
//!
//! Invariant: every fault ends, or is the end of a host.

use crate::draw::{between, millis, one_of, span};
use crate::fault::{self, Fault};
use crate::paths;
use crate::side_plan::SidePlan;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_blocks::RateSpec;
use segstream_blocks::congestion::{bbr, cubic, prague};
use segstream_path::{PathConfig, QueueLimit};
use segstream_proto::config::{Config, DatagramSize};
use segstream_proto::connection::Role;
use segstream_proto::rate::Rate;
use segstream_wire::{Class, Limits};

/// The least fixed rate of a host whose ways carry next to nothing of it.
const STARVED_PEAK: Bandwidth = Bandwidth::from_megabits_per_second(20);

/// A connection that an application asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connect {
    pub(crate) at: Instant,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// A host.
#[derive(Clone, Debug)]
pub(crate) struct HostPlan {
    pub(crate) config: Config,
    /// What its clock shows when the swarm's shows zero.
    pub(crate) clock: Duration,
    /// Whether it looks at its timers before its socket after it was not driven for a while.
    pub(crate) timers_first: bool,
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) peaceful: bool,
    /// Whether the ways of a host carry next to nothing of its rate.
    pub(crate) starved: bool,
    /// Whether its hosts encrypt.
    pub(crate) encrypted: bool,
    /// A host that is served and sends its peers frames that no endpoint of ours would send ([`crate::turncoat`]). Then nothing is promised
    /// but that work and memory are bounded, and that everything ends.
    pub(crate) turncoat: Option<usize>,
    /// Whether addresses are IPv6.
    pub(crate) ipv6: bool,
    pub(crate) hosts: Vec<HostPlan>,
    /// The path from one host to another; that to itself is not used.
    pub(crate) paths: Vec<Vec<PathConfig>>,
    pub(crate) connections: Vec<Connect>,
    pub(crate) faults: Vec<Fault>,
    /// When hostile datagrams arrive.
    pub(crate) attacks: Vec<Instant>,
    /// When the last fault is over.
    pub(crate) calm: Instant,
}

impl Plan {
    /// The plan of `seed`.
    pub(crate) fn draw(seed: Seed) -> Self {
        let mut random = seed.stream("plan");
        let peaceful = random.below(3) == 0;
        let horizon = millis(&mut random, 60, 4000);
        let count = between(&mut random, 2, 4) as usize;
        let shared = class(&mut random);
        let class_of = |random: &mut Random| {
            let own = class(random);
            if peaceful { shared } else { own }
        };
        let mut hosts: Vec<HostPlan> = (0..count)
            .map(|number| {
                let class = class_of(&mut random);
                host(&mut random, number, class, peaceful)
            })
            .collect();
        let mut paths: Vec<Vec<PathConfig>> =
            (0..count).map(|_| (0..count).map(|_| paths::draw(&mut random, peaceful)).collect()).collect();
        widen(&hosts, &mut paths);
        let starved = random.chance(0.1) && !peaceful && starve(&mut hosts, &mut paths);
        let connections = (0..between(&mut random, 1, 4)).map(|number| connect(&mut random, number, count, horizon)).collect();
        let faults = fault::draw(&mut random, count, horizon, peaceful);
        let attacks = attacks(&mut random, horizon);
        let calm = faults.iter().map(Fault::over).chain(attacks.last().copied()).max().unwrap_or_default();
        Self {
            peaceful,
            starved,
            // Why not all: a handshake takes as long as a hundred datagrams.
            encrypted: seed.stream("plan.encrypted").chance(0.25),
            turncoat: turncoat(seed, count),
            ipv6: random.chance(0.3),
            hosts,
            paths,
            connections,
            faults,
            attacks,
            calm: calm.max(Instant::ZERO + horizon),
        }
    }

    /// What the application does with side `number`.
    pub(crate) fn side(&self, seed: Seed, number: u32, role: Role) -> SidePlan {
        let mut plan = SidePlan::draw(seed, number, role, self.peaceful);
        if self.starved {
            // For the same reason as in `starve`.
            plan.change = None;
        }
        plan
    }
}

/// One run in eight has a host that turns against its peers.
fn turncoat(seed: Seed, hosts: usize) -> Option<usize> {
    let mut random = seed.stream("plan.turncoat");
    let there_is_one = random.chance(0.125);
    there_is_one.then(|| random.below(hosts as u64) as usize)
}

/// Gives hosts that may be without a rate paths that their own states do not fill.
fn widen(hosts: &[HostPlan], paths: &mut [Vec<PathConfig>]) {
    if hosts.iter().all(|host| host.config.class.rate_control() && !matches!(host.config.rate, Rate::Unpaced)) {
        return;
    }
    // Limit: without a rate a sender whose reordering threshold has grown sends the states behind its last data
    // 200 us apart, up to 17 Mbit/s of them, and keeps a narrower way full.
    let least = Bandwidth::from_megabits_per_second(20);
    for path in paths.iter_mut().flatten() {
        path.bandwidth = path.bandwidth.map(|bandwidth| bandwidth.max(least));
    }
}

/// Makes the ways of the first host with a fixed rate so narrow that they carry next to nothing of it, if there is one.
fn starve(hosts: &mut [HostPlan], paths: &mut [Vec<PathConfig>]) -> bool {
    let fixed = |host: &HostPlan| matches!(host.config.rate, Rate::Fixed(_));
    let Some(number) = hosts.iter().position(fixed) else { return false };
    // Without its circuit breaker it would continue for an hour.
    let config = &mut hosts[number].config;
    config.circuit_breaker = true;
    if config.rate.peak() < STARVED_PEAK {
        config.rate = Rate::smooth(STARVED_PEAK);
    }
    // Limit: states alone, one every 25 ms, fill a way of less than about 100 kbit/s, and nothing else comes through.
    let bits = (config.rate.peak().bits_per_second() / 100).clamp(100_000, 300_000);
    for path in &mut paths[number] {
        path.bandwidth = Some(Bandwidth::from_bits_per_second(bits));
        path.queue = QueueLimit::Packets(4);
    }
    for host in hosts {
        // Limit: without rate control a sender repairs and asks as fast as it is answered, keeps a queue this short full
        // with its own states forever, and no circuit breaker watches it.
        host.config.class = Class::ALL;
    }
    true
}

fn connect(random: &mut Random, number: u64, hosts: usize, horizon: Duration) -> Connect {
    let from = random.below(hosts as u64) as usize;
    // The first host always accepts, so that connections are possible.
    let other = (from + 1 + random.below(hosts as u64 - 1) as usize) % hosts;
    let (from, to) = if number == 0 && other != 0 && from != 0 { (from, 0) } else { (from, other) };
    let at = Instant::ZERO + Duration::from_nanos(random.below(horizon.as_nanos()));
    Connect { at: if number == 0 { Instant::ZERO } else { at }, from, to }
}

/// Everything on, mostly. Every one of them is limited by a window or by a rate.
fn class(random: &mut Random) -> Class {
    Class::new(one_of(random, &[7, 7, 7, 7, 7, 7, 6, 6, 5, 5, 3, 2, 1])).unwrap_or_default()
}

fn host(random: &mut Random, number: usize, class: Class, peaceful: bool) -> HostPlan {
    let datagram_bytes = one_of(random, &[1200, 1200, 1200, 1472, 4000, 9000]);
    let limits = Limits {
        streams: one_of(random, &[256, 256, 256, 1, 3]),
        datagram_bytes: one_of(random, &[65_507, 65_507, 1200, 1300]),
        idle_timeout: span(random, Duration::from_millis(500), Duration::from_secs(6)),
    };
    let config = Config {
        limits,
        class,
        rate: rate(random, class, datagram_bytes, peaceful),
        circuit_breaker: random.chance(0.8),
        datagram_bytes: DatagramSize::Fixed(datagram_bytes),
        unlimited: false,
        reorder: one_of(random, &[3, 3, 1, 8]),
        stream_window_bytes: one_of(random, &[64 << 20, 64 << 20, 64 << 10, 8 << 10]),
        connection_window_bytes: one_of(random, &[256 << 20, 256 << 20, 64 << 10]),
        connections: one_of(random, &[1024, 1024, 1, 2, 5]),
        accept: number == 0 || random.chance(0.85),
        pacing_quantum: Duration::from_micros(one_of(random, &[200, 200, 0, 1000])),
        connect_timeout: span(random, Duration::from_secs(1), Duration::from_secs(8)),
        confirms: random.chance(0.5),
        memory_bytes: one_of(random, &[8 << 30, 8 << 30, 8 << 30, 4 << 20]),
        ..Config::default()
    };
    let config = if peaceful { agreeable(&config) } else { config };
    HostPlan { config, clock: span(random, Duration::from_micros(1), Duration::from_secs(1 << 20)), timers_first: random.chance(0.5) }
}

/// With limits that nothing in the swarm comes up against.
fn agreeable(config: &Config) -> Config {
    let limits = Limits { idle_timeout: config.limits.idle_timeout.max(Duration::from_secs(3)), ..config.limits };
    Config { limits, connections: 1024, memory_bytes: 8 << 30, accept: true, connect_timeout: Duration::from_secs(10), ..config.clone() }
}

/// A rate that goes with the class.
pub(crate) fn rate(random: &mut Random, class: Class, datagram_bytes: usize, peaceful: bool) -> Rate {
    let most = if peaceful { 1_000_000 } else { 100_000_000 };
    let peak = Bandwidth::from_bits_per_second(between(random, 200_000, 500_000).max(magnitude(random, 200_000, most)));
    let (bursts, length) = (between(random, 5, 100) as u32, between(random, 1, 16) as u32);
    let bursty = RateSpec::new(peak, bursts, length).ok().filter(|spec| spec.check(Bytes::new(datagram_bytes as u64 + 48)).is_ok());
    let floor = Bandwidth::from_bits_per_second(magnitude(random, 32_000, 200_000));
    let (choice, free) = (random.below(10), class.flow_control() && random.chance(0.4));
    match choice {
        _ if free && !class.rate_control() => Rate::Unpaced,
        0..=1 if class.rate_control() => Rate::AUTO,
        2 if class.rate_control() => Rate::AUTO.under(&bbr::ALGORITHM).starting_at(peak),
        3 if class.rate_control() => Rate::AUTO.under(&cubic::ALGORITHM),
        4 if class.rate_control() => Rate::between(floor, peak).under(&prague::ALGORITHM),
        5..=7 => bursty.map_or(Rate::smooth(peak), Rate::Fixed),
        _ if free => Rate::Unpaced,
        _ => Rate::smooth(peak),
    }
}

/// A number as likely between 1 and 10 thousand as between 10 and 100.
pub(crate) fn magnitude(random: &mut Random, least: u64, most: u64) -> u64 {
    span(random, Duration::from_nanos(least), Duration::from_nanos(most)).as_nanos()
}

fn attacks(random: &mut Random, horizon: Duration) -> Vec<Instant> {
    let count = if random.chance(0.5) { between(random, 1, 60) } else { 0 };
    let mut attacks: Vec<Instant> = (0..count).map(|_| Instant::from_nanos(random.below(horizon.as_nanos() * 2))).collect();
    attacks.sort_unstable();
    attacks
}
