//! The finite queue against the exact solution of its Markov chain, and the queue without end against closed forms.

use segstream_base::random::Seed;
use segstream_sim::tandem::{Customer, Order, Queue};

const ORDERS: [Order; 2] = [Order::DeparturesFirst, Order::ArrivalsFirst];

/// A queue with room for `room`, a service of `service` slots, and two independent Bernoulli streams of arrivals.
#[derive(Clone, Copy, Debug)]
struct Model {
    room: u32,
    service: u32,
    user: f64,
    external: f64,
    order: Order,
}

/// What is compared: how many were there, and which share of each stream was dropped.
#[derive(Clone, Debug)]
struct Measures {
    occupancy: Vec<f64>,
    user_dropped: f64,
    external_dropped: f64,
}

impl Measures {
    fn values(&self) -> Vec<f64> {
        [&self.occupancy[..], &[self.user_dropped, self.external_dropped]].concat()
    }
}

impl Model {
    /// One slot of the chain from `packets` in the queue, of which the first has `left` slots of service to go. Returns
    /// the same after the slot, and whether each of the arrivals was dropped.
    fn slot(&self, (packets, left): (usize, usize), arrivals: [bool; 2]) -> ((usize, usize), [bool; 2]) {
        let room = self.room as usize;
        let (mut packets, mut left) = (packets, left.saturating_sub(1));
        let leaves = packets > 0 && left == 0;
        let mut dropped = [false; 2];
        if leaves && self.order == Order::DeparturesFirst {
            packets -= 1;
        }
        for (arrives, dropped) in arrivals.into_iter().zip(&mut dropped) {
            *dropped = arrives && packets == room;
            packets += usize::from(arrives && packets < room);
        }
        if leaves && self.order == Order::ArrivalsFirst {
            packets -= 1;
        }
        if left == 0 && packets > 0 {
            left = self.service as usize;
        }
        ((packets, left), dropped)
    }

    /// The stationary distribution by iteration, and what it says.
    fn solve(&self) -> Measures {
        let (room, service) = (self.room as usize, self.service as usize);
        let place = |(packets, left): (usize, usize)| packets * (service + 1) + left;
        let chance = |arrives: bool, rate: f64| if arrives { rate } else { 1.0 - rate };
        let mut now = vec![0.0; (room + 1) * (service + 1)];
        now[0] = 1.0;
        let mut measures = None;
        for _ in 0..200_000 {
            let mut next = vec![0.0; now.len()];
            let mut dropped = [0.0; 2];
            for state in (0..=room).flat_map(|packets| (0..=service).map(move |left| (packets, left))) {
                let weight = now[place(state)];
                for arrivals in [[false, false], [false, true], [true, false], [true, true]] {
                    let weight = weight * chance(arrivals[0], self.user) * chance(arrivals[1], self.external);
                    let (to, drops) = self.slot(state, arrivals);
                    next[place(to)] += weight;
                    for (sum, dropped) in dropped.iter_mut().zip(drops) {
                        *sum += if dropped { weight } else { 0.0 };
                    }
                }
            }
            // Why the mean of both: a chain with a period would go round forever.
            let moved: f64 = next.iter().zip(&now).map(|(next, now)| (next - now).abs()).sum();
            now.iter_mut().zip(&next).for_each(|(now, next)| *now = (*now + next) / 2.0);
            if moved < 1e-13 {
                let occupancy = (0..=room).map(|packets| (0..=service).map(|left| now[place((packets, left))]).sum()).collect();
                measures = Some(Measures {
                    occupancy,
                    user_dropped: dropped[0] / self.user.max(1e-300),
                    external_dropped: dropped[1] / self.external.max(1e-300),
                });
                break;
            }
        }
        measures.expect("the iteration converges")
    }

    /// The same from batches of a run of the queue itself.
    fn simulate(&self, seed: u64) -> Vec<Measures> {
        let (mut user, mut external) = (Seed(seed).stream("user"), Seed(seed).stream("external"));
        let mut queue: Queue<()> = Queue::new(self.room, self.service, self.order);
        let mut batches = Vec::new();
        for slot in 0..1_020_000u64 {
            let first = user.chance(self.user).then_some(Customer::User(()));
            let second = external.chance(self.external).then_some(Customer::External);
            queue.pass(slot, first, second);
            if (slot + 1) % 20_000 == 0 {
                let outcome = queue.outcome(slot + 1);
                let slots = outcome.occupancy_slots.iter().sum::<u64>() as f64;
                let share = |dropped: u64, arrived: u64| if arrived == 0 { 0.0 } else { dropped as f64 / arrived as f64 };
                batches.push(Measures {
                    occupancy: outcome.occupancy_slots.iter().map(|count| *count as f64 / slots).collect(),
                    user_dropped: share(outcome.dropped.user, outcome.arrived.user),
                    external_dropped: share(outcome.dropped.external, outcome.arrived.external),
                });
                queue.restart(slot + 1);
            }
        }
        batches.split_off(1)
    }
}

/// Mean and standard error.
fn estimate(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

fn assert_agrees(model: Model, seed: u64) {
    let exact = model.solve().values();
    let batches: Vec<Vec<f64>> = model.simulate(seed).iter().map(Measures::values).collect();
    for (at, exact) in exact.into_iter().enumerate() {
        let (mean, error) = estimate(&batches.iter().map(|batch| batch[at]).collect::<Vec<_>>());
        // Five standard errors, and three packets for what is too rare to have one.
        let allowed = 5.0 * error + 3e-6;
        assert!((mean - exact).abs() < allowed, "{model:?}, measure {at}: {mean} is not {exact} within {allowed}");
    }
}

#[test]
fn one_stream_meets_the_exact_chain() {
    let mut seed = 0;
    for order in ORDERS {
        for (room, service) in [(1, 1), (1, 2), (2, 2), (5, 2), (13, 2), (4, 3)] {
            for external in [0.1, 0.3, 0.45, 0.8] {
                seed += 1;
                assert_agrees(Model { room, service, user: 0.0, external, order }, seed);
            }
        }
    }
}

#[test]
fn of_two_streams_the_second_is_dropped_more_often_as_the_exact_chain_says() {
    for (seed, order) in (100..).zip(ORDERS) {
        for (room, user) in [(2, 0.3), (10, 0.35), (13, 0.42)] {
            let model = Model { room, service: 2, user, external: 0.1, order };
            assert_agrees(model, seed);
            let exact = model.solve();
            assert!(exact.external_dropped > exact.user_dropped, "{model:?}: {exact:?}");
        }
    }
}

#[test]
fn arrivals_first_drops_more_and_moves_nobody_who_is_not_dropped() {
    let model = |order| Model { room: 3, service: 2, user: 0.0, external: 0.4, order };
    let [departures, arrivals] = ORDERS.map(|order| model(order).solve().external_dropped);
    assert!(arrivals > 1.2 * departures, "{arrivals} against {departures}");

    // With room for all, the orders are one and the same.
    let [departures, arrivals] = ORDERS.map(|order| Model { room: 500, ..model(order) }.simulate(7));
    for (departures, arrivals) in departures.iter().zip(&arrivals) {
        assert_eq!((departures.external_dropped, arrivals.external_dropped), (0.0, 0.0));
        assert_eq!(departures.occupancy, arrivals.occupancy);
    }
}

/// By Lindley's recursion over slots and Little's law: a packet waits rate * D (D - 1) / (2 (1 - rate D)).
#[test]
fn without_drops_the_queue_is_the_closed_form_of_bernoulli_arrivals_and_a_fixed_service() {
    for (seed, (service, rate)) in (200..).zip([(1, 0.7), (2, 0.1), (2, 0.3), (2, 0.4), (5, 0.1)]) {
        let model = Model { room: 2000, service, user: 0.0, external: rate, order: Order::DeparturesFirst };
        let means: Vec<f64> = model
            .simulate(seed)
            .iter()
            .map(|batch| batch.occupancy.iter().zip(0u32..).map(|(share, packets)| share * f64::from(packets)).sum())
            .collect();
        let (mean, error) = estimate(&means);
        let (service, rate) = (f64::from(service), rate);
        let waits = rate * service * (service - 1.0) / (2.0 * (1.0 - rate * service));
        let exact = rate * (waits + service);
        assert!((mean - exact).abs() < 5.0 * error, "service {service}, rate {rate}: {mean} is not {exact} within 5 * {error}");
    }
}

#[test]
fn packets_leave_one_service_apart_in_the_order_in_which_they_came() {
    for order in ORDERS {
        let mut queue = Queue::new(3, 2, order);
        let mut left = Vec::new();
        for slot in 0..12u64 {
            let arrives = (slot < 3).then_some(Customer::User(slot));
            if let Some(Customer::User(number)) = queue.pass(slot, arrives, None) {
                left.push((slot, number));
            }
        }
        assert_eq!(left, [(2, 0), (4, 1), (6, 2)]);
        assert!(queue.is_empty());
    }
}
