//! The example test cases of the draft's appendix, over a bottleneck in virtual time.

use super::*;
use crate::congestion::rate_sample::{Deliveries, Departure};
use segstream_base::random::Seed;
use std::collections::VecDeque;

const PACKET: u64 = 1500;
/// 20 Mbit/s and 40 ms: 66.7 packets are under way.
const BYTES_A_SECOND: f64 = 2.5e6;
const RTT: Duration = Duration::from_millis(40);
/// Reports come so far apart, as of the flagship.
const PERIOD: Duration = Duration::from_micros(2500);
/// Packets leave on a grid of this.
const TICK: Duration = Duration::from_micros(250);

/// A packet that the bottleneck has taken, or has dropped.
struct Packet {
    departure: Departure,
    acknowledged_at: Instant,
    lost: bool,
}

/// A flow of BBR over a bottleneck whose queue holds `queue` seconds.
struct Flow {
    bbr: Bbr,
    now: Instant,
    deliveries: Deliveries,
    packets: VecDeque<Packet>,
    /// When the bottleneck has sent all that it has.
    busy: f64,
    queue: f64,
    credit: f64,
    limited: Option<Limit>,
    recovery: Option<Instant>,
    reported_at: Instant,
    /// What the application has at most, in bytes a second.
    supply: f64,
    /// One packet in so many is lost whatever the queue; zero for none.
    loss_each: u64,
    sent: u64,
    phases: Vec<(Instant, &'static str)>,
}

impl Flow {
    fn new() -> Self {
        let bounds = Bounds {
            floor: Bandwidth::from_bits_per_second(64_000),
            peak: Bandwidth::from_megabits_per_second(10_000),
            datagram: Bytes::new(PACKET),
        };
        let mut bbr = Bbr::new(Start::new(Instant::ZERO, bounds, Seed(5)));
        bbr.on_round_trip(Instant::ZERO, RTT);
        Self {
            bbr,
            now: Instant::ZERO,
            deliveries: Deliveries::default(),
            packets: VecDeque::new(),
            busy: 0.0,
            queue: 10.0,
            credit: 0.0,
            limited: None,
            recovery: None,
            reported_at: Instant::ZERO,
            supply: f64::INFINITY,
            loss_each: 0,
            sent: 0,
            phases: vec![(Instant::ZERO, "startup")],
        }
    }

    fn in_flight(&self) -> u64 {
        self.packets.len() as u64 * PACKET
    }

    /// Runs until `seconds` of its time.
    fn run(&mut self, seconds: f64) {
        while self.now.as_nanos() as f64 / 1e9 < seconds {
            self.now += TICK;
            self.send();
            if self.now >= self.reported_at + PERIOD {
                self.reported_at = self.now;
                self.report();
            }
            if self.phases.last().is_none_or(|(_, phase)| *phase != self.bbr.phase()) {
                self.phases.push((self.now, self.bbr.phase()));
            }
        }
    }

    fn send(&mut self) {
        let rate = self.bbr.pacing_rate().map_or(0.0, |rate| rate.bits_per_second() as f64 / 8.0);
        let most = rate.min(self.supply) * TICK.as_secs_f64();
        self.credit = (self.credit + most).min(most.max(2.0 * PACKET as f64));
        if self.supply < rate {
            self.limited = Some(Limit::Application);
            self.deliveries.on_app_limited(self.in_flight());
        }
        while self.credit >= PACKET as f64 {
            if self.in_flight() >= self.bbr.in_flight_cap().get() {
                self.limited = Some(Limit::Cap);
                return;
            }
            self.credit -= PACKET as f64;
            let now = self.now.as_nanos() as f64 / 1e9;
            let departure = self.deliveries.depart(self.now, self.in_flight(), PACKET);
            self.sent += 1;
            let lost = self.busy - now > self.queue || (self.loss_each > 0 && self.sent.is_multiple_of(self.loss_each));
            if !lost {
                self.busy = self.busy.max(now) + PACKET as f64 / BYTES_A_SECOND;
            }
            let acknowledged_at = Instant::from_nanos((self.busy.max(now) * 1e9) as u64) + RTT;
            self.packets.push_back(Packet { departure, acknowledged_at, lost });
        }
    }

    fn report(&mut self) {
        let in_flight_before = self.in_flight();
        let (mut delivered, mut lost, mut newest) = (0, 0, None);
        while self.packets.front().is_some_and(|packet| packet.acknowledged_at <= self.now) {
            let Some(packet) = self.packets.pop_front() else { return };
            if packet.lost {
                lost += PACKET;
            } else {
                delivered += PACKET;
                newest = Some(packet);
            }
        }
        let Some(newest) = newest else { return };
        self.deliveries.deliver(self.now, delivered);
        self.deliveries.lose(lost);
        let recovered = self.recovery.is_some_and(|since| newest.departure.sent_at >= since);
        self.recovery = self.recovery.filter(|_| !recovered);
        let event = (lost > 0 && self.recovery.is_none()).then_some(CongestionEvent::Loss);
        self.recovery = self.recovery.or(event.map(|_| self.now));
        let report = Report {
            delivered,
            packets: delivered / PACKET,
            lost,
            in_flight: self.in_flight(),
            in_flight_before,
            delivered_total: self.deliveries.total(),
            sample: Some(self.deliveries.sample(&newest.departure)),
            rtt: Some(newest.acknowledged_at.since(newest.departure.sent_at)),
            rtt_min: RTT,
            limited: self.limited.take(),
            event,
            recovered,
            recovering: self.recovery.is_some(),
            ..Report::default()
        };
        self.bbr.on_report(self.now, &report);
    }

    fn first(&self, phase: &str) -> Option<f64> {
        let found = self.phases.iter().find(|(_, name)| *name == phase);
        found.map(|(at, _)| at.as_nanos() as f64 / 1e9)
    }

    fn phases(&self) -> Vec<&'static str> {
        self.phases.iter().map(|(_, phase)| *phase).collect()
    }
}

#[test]
fn startup_ends_on_a_plateau_with_the_bandwidth_known_to_two_per_cent() {
    let mut flow = Flow::new();
    flow.run(1.5);
    // What is in flight is at the product at the end of drain, so DOWN is over with the same report.
    assert_eq!(flow.phases(), ["startup", "drain", "probe_bw_cruise"]);
    assert!(flow.full_rounds_took() < 12.0, "{:?}", flow.phases);
    let ratio = flow.bbr.max_bw.get() / (BYTES_A_SECOND * 8.0);
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

impl Flow {
    /// Round trips without a queue that startup took.
    fn full_rounds_took(&self) -> f64 {
        self.first("drain").unwrap_or(f64::INFINITY) / RTT.as_secs_f64()
    }
}

#[test]
fn drain_ends_with_what_is_in_flight_at_the_product() {
    let mut flow = Flow::new();
    while flow.first("probe_bw_cruise").is_none() {
        let until = flow.now.as_nanos() as f64 / 1e9 + 0.001;
        flow.run(until);
    }
    let product = flow.bbr.inflight(flow.bbr.bw, 1.0);
    assert!(flow.in_flight() as f64 <= product + 4.0 * PACKET as f64, "{} above {product}", flow.in_flight());
}

#[test]
fn startup_of_an_application_that_has_little_goes_on_while_nothing_is_lost() {
    let mut flow = Flow::new();
    flow.supply = BYTES_A_SECOND / 4.0;
    flow.run(4.0);
    assert_eq!(flow.phases(), ["startup"]);
}

#[test]
fn startup_ends_on_loss_whoever_is_the_limit() {
    let mut flow = Flow::new();
    (flow.supply, flow.loss_each) = (BYTES_A_SECOND / 2.0, 4);
    flow.run(4.0);
    assert!(flow.first("drain").is_some() && flow.bbr.long_term.inflight.is_some(), "{:?}", flow.phases());
}

#[test]
fn a_shallow_queue_gives_a_long_term_bound_below_what_overflowed() {
    let mut flow = Flow::new();
    flow.queue = 0.010;
    flow.run(10.0);
    let (bound, holds) = (flow.bbr.long_term.inflight.expect("a probe lost too much"), BYTES_A_SECOND * 0.050);
    assert!((0.6 * holds..1.1 * holds).contains(&bound), "{bound} where {holds} are held");
    assert!(flow.deliveries.total() as f64 > 0.85 * BYTES_A_SECOND * 10.0, "{}", flow.deliveries.total());
}

#[test]
fn probe_rtt_comes_after_five_seconds_and_lasts_a_fifth_of_one() {
    let mut flow = Flow::new();
    flow.run(12.0);
    let entered = flow.first("probe_rtt").expect("the shortest round trip has become old");
    assert!((5.0..8.0).contains(&entered), "{entered}");
    let at = flow.phases.iter().position(|(_, phase)| *phase == "probe_rtt").unwrap();
    let lasted = flow.phases[at + 1].0.since(flow.phases[at].0);
    assert!((Duration::from_millis(200)..Duration::from_millis(400)).contains(&lasted), "{lasted}");
    assert_eq!(flow.phases[at + 1].1, "probe_bw_cruise");
    let rtt = flow.bbr.min_rtt.get().unwrap();
    assert!(rtt < RTT + Duration::from_millis(2), "{rtt}");
}

#[test]
fn a_pause_of_the_application_is_as_good_as_a_probe() {
    let mut flow = Flow::new();
    flow.run(2.0);
    flow.supply = 0.0;
    flow.run(9.0);
    flow.supply = f64::INFINITY;
    flow.run(9.5);
    assert_eq!(flow.first("probe_rtt"), None, "{:?}", flow.phases());
}

#[test]
fn acknowledgments_in_bursts_raise_the_window_above_two_products() {
    let mut extra = ExtraAcked::new(Instant::ZERO);
    let product = BYTES_A_SECOND * RTT.as_secs_f64();
    let mut flow = Flow::new();
    flow.run(0.001);
    for burst in 1..20 {
        let now = Instant::ZERO + Duration::from_millis(20 * burst);
        let report = Report { delivered: (BYTES_A_SECOND * 0.020) as u64, ..Report::default() };
        let rs = flow.bbr.rate_sample(now, &report);
        extra.update(&rs, BYTES_A_SECOND * 8.0, 10.0 * product, (burst, extra_acked::FILTER_LEN));
    }
    assert!((0.4 * product..1.1 * product).contains(&extra.get()), "{} of {product}", extra.get());
}
