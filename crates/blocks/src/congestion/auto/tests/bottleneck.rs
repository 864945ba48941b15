//! A bottleneck in virtual time: controllers that pace through one FIFO queue, and a stream that fills it.
//!
//! Packets meet the queue, then half the round trip, then the receiver; the echo takes the other half. The queue is known
//! by when its last packet will have left, so nothing is kept of it.

use super::super::Auto;
use super::super::cubic_window::CubicWindow;
use crate::congestion::{Controller, Exchange, Limit, Silence, Start};
use segstream_base::random::{Random, Seed};
use segstream_base::{Bandwidth, Duration, Instant};
use std::collections::VecDeque;

const DATAGRAM: u64 = 1228;
const STATE: u64 = 70;

/// What happens to the path or the streams on it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Bits a second of the bottleneck; at 0 everything is lost.
    Capacity(f64),
    /// Bits a second the application has to send.
    Application(f64),
    GreedyStops,
}

/// What an echo carries back, and what the sender knew when the state left.
#[derive(Clone, Copy, Debug, Default)]
struct Echo {
    due: Instant,
    sent_at: Instant,
    arrived_at: Instant,
    sent_bytes: u64,
    shipments: u64,
    received_bytes: u64,
    received: u64,
    limited: u64,
}

struct Stream {
    controller: Auto,
    send_at: Instant,
    state_at: Instant,
    sent_bytes: u64,
    shipments: u64,
    received_bytes: u64,
    received: u64,
    /// Nanoseconds without anything to send, and bytes the application has ready.
    limited: u64,
    ready: f64,
    owed: u64,
    states_under_way: VecDeque<Echo>,
    unanswered_since: VecDeque<Instant>,
    last: Option<Echo>,
    /// When what has passed last arrives at the earliest, since jitter keeps the order.
    in_order_at: Instant,
}

/// A window kept full, one acknowledgment a packet.
struct Greedy {
    window: CubicWindow,
    in_slow_start: bool,
    in_flight: u64,
    /// When each packet's acknowledgment, or the sign of its loss, comes.
    due: VecDeque<(Instant, bool)>,
    yielded_at: Instant,
    starts: Instant,
    stopped: bool,
}

pub(super) struct Bottleneck {
    capacity: f64,
    capacity_first: f64,
    rtt: Duration,
    queue_bytes: u64,
    loss: f64,
    /// The mean length of a run of losses, and whether one goes on.
    burst: f64,
    in_burst: bool,
    noise: Duration,
    /// What has passed arrives at multiples of this.
    aggregate: Duration,
    policer: Option<(f64, f64, f64, Instant)>,
    application: f64,
    changes: VecDeque<(Instant, Change)>,
    random: Random,
    now: Instant,
    free_at: Instant,
    streams: Vec<Stream>,
    greedy: Option<Greedy>,
    /// Bytes that arrived of each stream (the greedy one last) and the longest queue in ms, for each 100 ms.
    arrived: Vec<Vec<f64>>,
    queues: Vec<f64>,
}

impl Bottleneck {
    pub(super) fn new(capacity: f64, rtt: Duration, queue_bytes: u64) -> Self {
        Self {
            capacity,
            capacity_first: capacity,
            rtt,
            queue_bytes,
            loss: 0.0,
            burst: 1.0,
            in_burst: false,
            noise: Duration::ZERO,
            aggregate: Duration::ZERO,
            policer: None,
            application: f64::INFINITY,
            changes: VecDeque::new(),
            random: Seed(1).stream("bottleneck"),
            now: Instant::ZERO,
            free_at: Instant::ZERO,
            streams: Vec::new(),
            greedy: None,
            arrived: Vec::new(),
            queues: Vec::new(),
        }
    }

    pub(super) fn aggregate(self, aggregate: Duration) -> Self {
        Self { aggregate, ..self }
    }

    pub(super) fn noise(self, noise: Duration) -> Self {
        Self { noise, ..self }
    }

    /// Other chances than those of every path that is not told.
    pub(super) fn seed(self, seed: Seed) -> Self {
        Self { random: seed.stream("bottleneck"), ..self }
    }

    pub(super) fn loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// Loss in runs of geometric length.
    pub(super) fn bursts(self, loss: f64, burst: f64) -> Self {
        Self { loss, burst, ..self }
    }

    pub(super) fn policer(self, rate: f64, burst: f64) -> Self {
        Self { policer: Some((rate, burst, burst, Instant::ZERO)), ..self }
    }

    pub(super) fn add(&mut self, starts: Instant) {
        self.add_with(super::start(starts));
    }

    /// A stream whose application has `bps` from the beginning, and has said so.
    pub(super) fn add_live(&mut self, starts: Instant, bps: f64) {
        self.application = bps;
        self.add_with(Start { source: Some(Bandwidth::from_bits_per_second(bps as u64)), ..super::start(starts) });
    }

    fn add_with(&mut self, start: Start) {
        let starts = start.now;
        let mut controller = Auto::new(start);
        controller.on_round_trip(starts, self.rtt);
        self.streams.push(Stream {
            controller,
            send_at: starts,
            state_at: starts,
            sent_bytes: 0,
            shipments: 0,
            received_bytes: 0,
            received: 0,
            limited: 0,
            ready: 0.0,
            owed: 0,
            states_under_way: VecDeque::new(),
            unanswered_since: VecDeque::new(),
            last: None,
            in_order_at: Instant::ZERO,
        });
        self.arrived.insert(self.streams.len() - 1, Vec::new());
    }

    pub(super) fn add_greedy(&mut self, starts: Instant) {
        self.greedy = Some(Greedy {
            window: CubicWindow::new(starts, 10.0),
            in_slow_start: true,
            in_flight: 0,
            due: VecDeque::new(),
            yielded_at: starts,
            starts,
            stopped: false,
        });
        self.arrived.push(Vec::new());
    }

    pub(super) fn at(&mut self, at: Instant, change: Change) {
        self.changes.push_back((at, change));
    }

    pub(super) fn controller(&self, stream: usize) -> &Auto {
        &self.streams[stream].controller
    }

    pub(super) fn sent(&self, stream: usize) -> u64 {
        self.streams[stream].shipments
    }

    /// What did not arrive, once everything has come to rest.
    pub(super) fn dropped(&self, stream: usize) -> u64 {
        self.streams[stream].shipments - self.streams[stream].received
    }

    /// The part of the first capacity that arrived from second `from` to second `until`.
    pub(super) fn share(&self, stream: usize, from: usize, until: usize) -> f64 {
        let bytes: f64 = self.arrived[stream].iter().take(until * 10).skip(from * 10).sum();
        bytes * 8.0 / ((until - from) as f64 * self.capacity_first)
    }

    /// The longest queue of each 100 ms from second `from` to second `until`.
    pub(super) fn queue_ms(&self, from: usize, until: usize) -> Vec<f64> {
        self.queues.iter().take(until * 10).skip(from * 10).copied().collect()
    }

    pub(super) fn run(&mut self, until: Instant) {
        while let Some((at, what)) = self.next().filter(|(at, _)| *at < until) {
            self.now = self.now.max(at);
            match what {
                What::Change => self.change(),
                What::Echo(index) => self.echo(index),
                What::State(index) => self.send_state(index),
                What::Data(index) => self.send_data(index),
                What::Greedy => self.greedy_acknowledged(),
            }
        }
        self.now = until;
    }

    fn next(&self) -> Option<(Instant, What)> {
        let change = self.changes.front().map(|(at, _)| (*at, What::Change));
        let greedy = self.greedy.as_ref().filter(|greedy| !greedy.stopped);
        let greedy = greedy.map(|greedy| (greedy.due.front().map_or(greedy.starts, |(due, _)| *due), What::Greedy));
        let streams = self.streams.iter().enumerate().flat_map(|(index, stream)| {
            let echo = stream.states_under_way.front().map(|echo| (echo.due, What::Echo(index)));
            [Some((stream.send_at, What::Data(index))), Some((stream.state_at, What::State(index))), echo]
        });
        [change, greedy].into_iter().chain(streams).flatten().min_by_key(|(at, _)| *at)
    }

    fn change(&mut self) {
        match self.changes.pop_front() {
            Some((_, Change::Capacity(capacity))) => {
                // What waits leaves at the new capacity.
                let waiting = self.free_at.since(self.now).as_secs_f64() * self.capacity;
                self.free_at = self.now + Duration::from_secs_f64(if capacity > 0.0 { waiting / capacity } else { 0.0 });
                self.capacity = capacity;
            }
            Some((_, Change::Application(rate))) => self.application = rate,
            Some((_, Change::GreedyStops)) => self.greedy.iter_mut().for_each(|greedy| greedy.stopped = true),
            None => {}
        }
    }

    /// When a packet that meets the queue now has passed the bottleneck; nothing if it is dropped or lost.
    fn pass(&mut self, bytes: u64) -> Option<Instant> {
        let waiting = self.free_at.since(self.now).as_secs_f64();
        let slot = (self.now.as_nanos() / 100_000_000) as usize;
        self.queues.resize(self.queues.len().max(slot + 1), 0.0);
        self.queues[slot] = self.queues[slot].max(waiting * 1e3);
        if let Some((rate, burst, tokens, at)) = &mut self.policer {
            *tokens = (*tokens + self.now.since(*at).as_secs_f64() * *rate / 8.0).min(*burst);
            *at = self.now;
            if *tokens < bytes as f64 {
                return None;
            }
            *tokens -= bytes as f64;
        }
        if self.capacity == 0.0 || waiting * self.capacity / 8.0 + bytes as f64 > self.queue_bytes as f64 {
            return None;
        }
        self.free_at = self.free_at.max(self.now) + Duration::from_secs_f64(bytes as f64 * 8.0 / self.capacity);
        (!self.is_lost()).then_some(self.free_at)
    }

    fn is_lost(&mut self) -> bool {
        if self.burst == 1.0 {
            return self.random.chance(self.loss);
        }
        let begins = self.loss / ((1.0 - self.loss) * self.burst);
        self.in_burst = self.random.chance(if self.in_burst { 1.0 - 1.0 / self.burst } else { begins });
        self.in_burst
    }

    fn note_arrival(&mut self, stream: usize, at: Instant, bytes: u64) {
        let slot = (at.as_nanos() / 100_000_000) as usize;
        let arrived = &mut self.arrived[stream];
        arrived.resize(arrived.len().max(slot + 1), 0.0);
        arrived[slot] += bytes as f64;
    }

    /// When what has `passed` the bottleneck at that time arrives.
    fn arrives_at(&mut self, stream: usize, passed: Instant) -> Instant {
        let noise = Duration::from_nanos(self.random.below(self.noise.as_nanos()));
        let in_order_at = &mut self.streams[stream].in_order_at;
        *in_order_at = (passed + self.rtt / 2 + noise).max(*in_order_at);
        *in_order_at
    }

    fn send_data(&mut self, index: usize) {
        let stream = &mut self.streams[index];
        let rate = stream.controller.rate().bits_per_second() as f64;
        let pause = Duration::from_secs_f64((DATAGRAM + std::mem::take(&mut stream.owed)) as f64 * 8.0 / rate);
        stream.send_at = self.now + pause;
        stream.ready = if self.application.is_finite() {
            (stream.ready.min(1e5) + pause.as_secs_f64() * self.application / 8.0).min(3.0 * DATAGRAM as f64)
        } else {
            f64::INFINITY
        };
        if stream.ready < DATAGRAM as f64 {
            stream.limited += pause.as_nanos();
            return;
        }
        stream.ready -= DATAGRAM as f64;
        stream.sent_bytes += DATAGRAM;
        stream.shipments += 1;
        if let Some(passed) = self.pass(DATAGRAM) {
            self.arrives_at(index, passed);
            self.streams[index].received += 1;
            self.streams[index].received_bytes += DATAGRAM;
            self.note_arrival(index, passed, DATAGRAM);
        }
    }

    fn send_state(&mut self, index: usize) {
        let arrives = self.pass(STATE).map(|passed| (passed, self.arrives_at(index, passed)));
        let stream = &mut self.streams[index];
        stream.state_at = self.now + stream.controller.exchange_period();
        stream.owed += STATE;
        stream.unanswered_since.push_back(self.now);
        let sent = Echo {
            sent_at: self.now,
            sent_bytes: stream.sent_bytes,
            shipments: stream.shipments,
            limited: stream.limited,
            ..Echo::default()
        };
        stream.sent_bytes += STATE;
        stream.shipments += 1;
        if let Some((passed, arrived_at)) = arrives {
            stream.received += 1;
            stream.received_bytes += STATE;
            let period = self.aggregate.as_nanos().max(1);
            let arrived_at = Instant::from_nanos(arrived_at.as_nanos().div_ceil(period) * period);
            // Everything sent before has passed or was dropped: the queue keeps the order.
            let echo = Echo {
                due: arrived_at + self.rtt / 2,
                arrived_at,
                received_bytes: stream.received_bytes,
                received: stream.received,
                ..sent
            };
            let after = stream.states_under_way.back().map_or(Instant::ZERO, |last| last.due);
            stream.states_under_way.push_back(Echo { due: echo.due.max(after), ..echo });
            self.note_arrival(index, passed, STATE);
        }
        let stream = &mut self.streams[index];
        if let Some(oldest) = stream.unanswered_since.front() {
            let since = self.now.since(*oldest);
            let silence = Silence { unanswered: stream.unanswered_since.len() as u32, since, in_flight: 0, timeout: None };
            stream.controller.on_silence(self.now, &silence);
        }
    }

    fn echo(&mut self, index: usize) {
        let stream = &mut self.streams[index];
        let Some(echo) = stream.states_under_way.pop_front() else { return };
        while stream.unanswered_since.front().is_some_and(|sent| *sent <= echo.sent_at) {
            stream.unanswered_since.pop_front();
        }
        let Some(last) = stream.last.replace(echo) else { return };
        let (shipments, received) = (echo.shipments - last.shipments, echo.received - last.received);
        let exchange = Exchange {
            sent_at: echo.sent_at,
            alpha: echo.sent_at.since(last.sent_at),
            beta: echo.arrived_at.since(last.arrived_at),
            exchanges: 1,
            sent_bytes: echo.sent_bytes - last.sent_bytes,
            received_bytes: echo.received_bytes - last.received_bytes,
            shipments,
            lost: shipments.saturating_sub(received),
            marked: 0,
            delay: echo.arrived_at.since(echo.sent_at).as_nanos() as i64 - 1_000_000_000_000,
            rtt: self.now.since(echo.sent_at),
            limited: ((echo.limited - last.limited) * 2 > echo.sent_at.since(last.sent_at).as_nanos()).then_some(Limit::Application),
            limited_for: Duration::from_nanos(echo.limited - last.limited),
        };
        stream.controller.on_exchange(self.now, &exchange);
    }

    fn greedy_acknowledged(&mut self) {
        let (now, rtt) = (self.now, self.rtt.as_secs_f64() + self.free_at.since(self.now).as_secs_f64());
        let Some(greedy) = &mut self.greedy else { return };
        if let Some((_, lost)) = greedy.due.pop_front() {
            greedy.in_flight -= 1;
            if lost && now.since(greedy.yielded_at).as_secs_f64() > rtt {
                greedy.in_slow_start = false;
                greedy.yielded_at = now;
                greedy.window.decrease(now);
            } else if greedy.in_slow_start {
                greedy.in_slow_start = rtt < 1.2 * self.rtt.as_secs_f64();
                *greedy =
                    Greedy { window: CubicWindow::new(now, greedy.window.get() + 1.0), due: std::mem::take(&mut greedy.due), ..*greedy };
            } else {
                // Why: of the packets of a round trip one is acknowledged.
                greedy.window.grow(now, rtt / greedy.window.get(), rtt);
            }
        }
        loop {
            let full = self.greedy.as_ref().is_none_or(|greedy| greedy.in_flight as f64 >= greedy.window.get());
            if full {
                return;
            }
            let (passed, at_once) = (self.pass(1500), self.free_at.max(self.now));
            if let Some(passed) = passed {
                self.note_arrival(self.streams.len(), passed, 1500);
            }
            if let Some(greedy) = &mut self.greedy {
                greedy.in_flight += 1;
                greedy.due.push_back((passed.unwrap_or(at_once) + self.rtt, passed.is_none()));
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Change,
    Echo(usize),
    State(usize),
    Data(usize),
    Greedy,
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
